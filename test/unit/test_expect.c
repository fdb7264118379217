/* test_expect.c: thresholds mean what they say, in the unit of the figure.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "model/expect.h"
#include "model/result.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static struct pt_result *sample(void)
{
    struct pt_result *r = pt_result_new(0);
    assert_non_null(r);
    pt_result_real(r, "latency.p99_us", 4000);
    pt_result_null(r, "latency.p99_9_us");
    pt_result_real(r, "rates.rx_bits_per_s", 9.5e9);
    pt_result_real(r, "rates.loss_pct", 0.05);
    pt_result_u64(r, "totals.lost_packets", 0);
    pt_result_u64(r, "totals.rx_bytes", 2 << 20);
    pt_result_u64(r, "totals.errors.timeout", 2);
    pt_result_u64(r, "totals.errors.reset", 1);
    pt_result_real(r, "cost.cpu_s_per_GB", 0.15);
    return r;
}

static void compares_in_the_unit_of_the_figure(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool holds;
    } cases[] = {
        {"p99<5ms", true},
        {"p99 < 5 ms", true},
        {"p99<4ms", false},
        {"p99<=4ms", true},
        {"p99>=4000us", true},
        {"p99!=4ms", false},
        {"latency.p99_us<5000", true},
        {"p99_us<5000", true},
        {"p99_us>0.004s", false},
        {"rx_bits_per_s>=10gbit", false},
        {"rx_bits_per_s>=9.5gbit", true},
        {"rx_bits_per_s>9400M", true},
        {"loss<=0.1%", true},
        {"loss<0.05%", false},
        {"lost_packets==0", true},
        {"lost_packets>0", false},
        {"rx_bytes==2MiB", true},
        {"errors==3", true},
        {"totals.errors.timeout<2", false},
        {"cpu_s_per_GB<0.2", true},
        {"p99.9<1s", false}, /* null: too few samples */
        {"p50<1s", false},   /* not in this result */
    };
    struct pt_result *r = sample();
    for (size_t i = 0; i < PT_COUNT(cases); i++) {
        struct pt_expect x;
        struct pt_err e = {0};
        if (pt_expect_parse(cases[i].text, &x, &e) < 0)
            fail_msg("%s: %s", cases[i].text, e.text);
        double v;
        bool present;
        if (pt_expect_holds(&x, r, &v, &present) != cases[i].holds)
            fail_msg("%s was judged wrong (figure %f, limit %f)", cases[i].text, v, x.value);
    }
    pt_result_free(r);
}

static void refuses_what_it_cannot_judge(void **state)
{
    (void)state;
    static const struct {
        const char *text, *needle;
    } bad[] = {
        {"", "is no threshold"},
        {"p99", "is no threshold"},
        {"p99<", "is no threshold"},
        {"<5ms", "is no threshold"},
        {"p99=5ms", "is no threshold"},
        {"p99<>5ms", "is no threshold"},
        {"p99<5", "say the unit of the time, such as p99<5ms"},
        {"p99<5gbit", "expected a time"},
        {"p99<-5ms", "expected a time"},
        {"p98<5ms", "did you mean"},
        {"rx_bit_per_s>5", "did you mean rx_bits_per_s"},
        {"frobs==1", "unknown figure 'frobs'"},
        {"loss<200%", "more than 100 %"},
        {"operations_per_s>5gbit", "does not count bits"},
        {"lost_packets==x", "expected a whole number"},
        {"foo.bar<1", "unknown figure"},
    };
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        struct pt_expect x;
        struct pt_err e = {0};
        if (pt_expect_parse(bad[i].text, &x, &e) != -EINVAL || !strstr(e.text, bad[i].needle))
            fail_msg("'%s': said \"%s\", not \"%s\"", bad[i].text, e.text, bad[i].needle);
    }
}

static void a_failed_threshold_is_exit_3(void **state)
{
    (void)state;
    struct pt_result *r = sample();
    struct pt_strs list = {.n = 2, .at = {"p99<5ms", "loss==0%"}};
    assert_int_equal(pt_expect_record(&list, r, NULL), 1);
    assert_int_equal(pt_result_exit(r), 3);
    assert_true(json_is_true(pt_result_at(r, "expect.0.ok")));
    assert_true(json_is_false(pt_result_at(r, "expect.1.ok")));
    double v = 0;
    assert_true(pt_result_get_real(r, "expect.1.value", &v));
    assert_true(fabs(v - 0.05) < 1e-12);
    pt_result_free(r);
}

static void a_failed_test_stays_exit_1(void **state)
{
    (void)state;
    struct pt_result *r = sample();
    pt_result_status(r, PT_RESULT_PARTIAL);
    struct pt_strs list = {.n = 1, .at = {"p99.9<5ms"}};
    assert_int_equal(pt_expect_record(&list, r, NULL), 1);
    assert_int_equal(pt_result_exit(r), 1);
    assert_true(json_is_null(pt_result_at(r, "expect.0.value")));
    assert_int_equal(json_array_size(pt_result_at(r, "warnings")), 1);
    pt_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_in_the_unit_of_the_figure),
        cmocka_unit_test(refuses_what_it_cannot_judge),
        cmocka_unit_test(a_failed_threshold_is_exit_3),
        cmocka_unit_test(a_failed_test_stays_exit_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
