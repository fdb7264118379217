/* test_welch.c: Student's quantiles against published tables, Welch's interval against worked
 * examples.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/types.h"
#include "stat/welch.h"

#include <math.h>

static void near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within))
        fail_msg("%.10g is not %.10g", got, want);
}

static void quantiles_are_those_of_the_tables(void **state)
{
    (void)state;
    static const struct {
        double confidence, df, t;
    } table[] = {
        {0.95, 1, 12.7062},   {0.95, 2, 4.30265},  {0.95, 3, 3.18245},  {0.95, 4, 2.77645},
        {0.95, 5, 2.57058},   {0.95, 10, 2.22814}, {0.95, 30, 2.04227}, {0.95, 120, 1.97993},
        {0.95, 1e7, 1.95996}, {0.99, 1, 63.6567},  {0.99, 8, 3.35539},  {0.90, 6, 1.94318},
        {0.5, 2, 0.816497},
    };
    for (size_t i = 0; i < PT_COUNT(table); i++)
        near(pt_student_quantile(table[i].confidence, table[i].df), table[i].t, table[i].t * 1e-5);
    /* In between it falls. */
    double before = pt_student_quantile(0.95, 1);
    for (double df = 1.25; df < 40; df *= 1.25) {
        double t = pt_student_quantile(0.95, df);
        assert_true(t < before);
        before = t;
    }
}

static void the_interval_is_welchs(void **state)
{
    (void)state;
    /* Means 20.82 and 22.98, variances 8.03 and 4.85, 15 each: df 26.4 (a common example). */
    static const double a[] = {27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
                               21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4};
    static const double b[] = {27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0,
                               24.8, 20.2, 21.9, 22.1, 22.9, 30.0, 23.9};
    struct pt_interval i;
    assert_true(pt_welch(a, PT_COUNT(a), b, PT_COUNT(b), 0.95, &i));
    double ma = 0, mb = 0;
    for (size_t k = 0; k < PT_COUNT(a); k++) {
        ma += a[k] / PT_COUNT(a);
        mb += b[k] / PT_COUNT(b);
    }
    near(i.middle, mb - ma, 1e-12);
    near(i.middle - i.low, i.high - i.middle, 1e-12);
    /* Equal sizes and variances: the classical interval with 2n - 2 degrees. */
    static const double c[] = {1, 2, 3}, d[] = {4, 5, 6};
    assert_true(pt_welch(c, 3, d, 3, 0.95, &i));
    near(i.middle, 3, 1e-12);
    near(i.high, 3 + 2.776445 * sqrt(2.0 / 3), 1e-5);
}

static void little_is_known_of_little(void **state)
{
    (void)state;
    static const double one[] = {5}, two[] = {7, 7}, same[] = {5, 5};
    struct pt_interval i;
    assert_false(pt_welch(one, 1, two, 2, 0.95, &i));
    near(i.middle, 2, 0);
    assert_true(isnan(i.low) && isnan(i.high));
    assert_false(pt_welch(one, 0, two, 2, 0.95, &i));
    assert_true(isnan(i.middle));
    assert_true(pt_welch(same, 2, two, 2, 0.95, &i));
    near(i.low, 2, 0);
    near(i.high, 2, 0);
}

/* Of intervals over samples from one distribution 95 % hold zero. */
static void it_covers_what_it_says(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252ULL;
    unsigned held = 0, rounds = 4000;
    for (unsigned r = 0; r < rounds; r++) {
        double v[2][5];
        for (int s = 0; s < 2; s++) {
            for (int k = 0; k < 5; k++) {
                double sum = 0; /* of 12 uniform ones: nearly normal */
                for (int u = 0; u < 12; u++) {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                    sum += (double)(x >> 11) / 9007199254740992.0;
                }
                v[s][k] = sum * (s ? 3 : 1) - (s ? 18 : 6);
            }
        }
        struct pt_interval i;
        assert_true(pt_welch(v[0], 5, v[1], 5, 0.95, &i));
        held += i.low <= 0 && i.high >= 0;
    }
    near((double)held / rounds, 0.95, 0.015);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_the_tables),
        cmocka_unit_test(the_interval_is_welchs),
        cmocka_unit_test(little_is_known_of_little),
        cmocka_unit_test(it_covers_what_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
