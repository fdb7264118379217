/* test_units.c: what the exact printers print reads back as the same value, whatever the value, and
 * what the other printers show is within half a unit of the third digit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/rng.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

#define ROUNDS 20000

static struct pt_rng rng;

/* Every magnitude is equally likely. */
static uint64_t some_u64(void)
{
    return pt_rng_u64(&rng) >> (1 + pt_rng_below(&rng, 63));
}

static double some_real(double least, double most)
{
    return least * pow(most / least, pt_rng_unit(&rng));
}

static void whole_quantities_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        static const uint64_t scales[] = {1, 1000, 1024, 1000000, 1048576, 60000000000};
        uint64_t scale = scales[pt_rng_below(&rng, PT_COUNT(scales))];
        uint64_t v = some_u64();
        if (v <= INT64_MAX / scale)
            v *= scale;
        char t[PT_UNITS_TEXT];
        uint64_t back = ~v;
        assert_int_equal(pt_size_parse(pt_size_print(t, sizeof(t), v), &back, NULL), 0);
        assert_int_equal(back, v);
        assert_int_equal(pt_count_parse(pt_count_print(t, sizeof(t), v), &back, NULL), 0);
        assert_int_equal(back, v);
        pt_ns ns = -1;
        assert_int_equal(pt_time_parse(pt_time_print(t, sizeof(t), (pt_ns)v), &ns, NULL), 0);
        assert_int_equal(ns, (pt_ns)v);
    }
}

static void real_quantities_round_trip(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        char t[PT_UNITS_TEXT];
        double v = some_real(1e-8, 1e17), back = -1;
        if (pt_rng_below(&rng, 2))
            v = round(v);
        assert_int_equal(pt_real_parse(pt_real_print(t, sizeof(t), v), &back, NULL), 0);
        assert_memory_equal(&back, &v, sizeof(v));
        struct pt_rate r = {v > 1e-6 ? v : 1, pt_rng_below(&rng, 2)}, r2 = {0};
        assert_int_equal(pt_rate_parse(pt_rate_print(t, sizeof(t), r), &r2, NULL), 0);
        assert_memory_equal(&r2.per_s, &r.per_s, sizeof(r.per_s));
        assert_int_equal(r2.bits, r.bits);
        double p = some_real(1e-6, 100), p2 = -1;
        assert_int_equal(pt_percent_parse(pt_percent_print(t, sizeof(t), p), &p2, NULL), 0);
        assert_memory_equal(&p2, &p, sizeof(p));
    }
}

static void shown_quantities_are_near(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        char t[PT_UNITS_TEXT];
        double v = some_real(1, 9e14);
        struct pt_rate r;
        assert_int_equal(pt_rate_parse(pt_si_show(t, sizeof(t), v, "bit/s"), &r, NULL), 0);
        assert_true(fabs(r.per_s - v) <= v * 0.0051);
        pt_ns ns;
        double s = some_real(1e-6, 59);
        assert_int_equal(pt_time_parse(pt_time_show(t, sizeof(t), s), &ns, NULL), 0);
        assert_true(fabs((double)ns / 1e9 - s) <= s * 0.0051 + 0.5e-9);
    }
}

static void noise_never_parses_in_part(void **state)
{
    (void)state;
    static const char letters[] = "0123456789.kKMGTiBbtsmuhn%/- x";
    for (int i = 0; i < ROUNDS * 5; i++) {
        char t[12];
        size_t n = pt_rng_below(&rng, sizeof(t));
        for (size_t j = 0; j < n; j++)
            t[j] = letters[pt_rng_below(&rng, sizeof(letters) - 1)];
        t[n] = '\0';
        uint64_t bytes;
        pt_ns ns;
        struct pt_rate r;
        /* Whatever was accepted begins with a digit or a point and holds a digit. */
        if (!pt_size_parse(t, &bytes, NULL) || !pt_time_parse(t, &ns, NULL) ||
            !pt_rate_parse(t, &r, NULL)) {
            assert_int_equal(strspn(t, "0123456789.") > 0, 1);
            assert_non_null(strpbrk(t, "0123456789"));
            assert_null(strchr(t, '-'));
            assert_null(strchr(t, 'x'));
        }
    }
}

static int seed(void **state)
{
    (void)state;
    uint64_t s = 1;
    if (pt_random_bytes(&s, sizeof(s)) < 0)
        return -1;
    print_message("# seed %llu\n", (unsigned long long)s);
    pt_rng_init(&rng, s);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_quantities_round_trip),
        cmocka_unit_test(real_quantities_round_trip),
        cmocka_unit_test(shown_quantities_are_near),
        cmocka_unit_test(noise_never_parses_in_part),
    };
    return cmocka_run_group_tests(tests, seed, NULL);
}
