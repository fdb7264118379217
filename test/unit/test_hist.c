/* test_hist.c: buckets, exact figures, the ends of the range, depth.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "stat/hist.h"

#include <math.h>
#include <string.h>

static struct pt_hist *fresh(void)
{
    struct pt_hist *h = calloc(1, sizeof(*h));
    assert_non_null(h);
    return h;
}

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.17g is not within %g of %.17g", got, tolerance, want);
}

/* Every bucket begins where the one before ended, and both of its ends map to it. */
static void buckets_tile_the_range(void **state)
{
    (void)state;
    uint64_t expect = 0;
    for (uint32_t i = 0; i < PT_HIST_BUCKETS; i++) {
        uint64_t low = pt_hist_low(i), width = pt_hist_width(i);
        assert_int_equal(low, expect);
        assert_int_equal(pt_hist_index(low), i);
        assert_int_equal(pt_hist_index(low + (width - 1)), i);
        assert_true(width == 1 || low / width >= PT_HIST_SUB);
        expect = low + width;
    }
    assert_int_equal(expect, 0); /* 2^64 */
}

static void empty_is_zero_bytes(void **state)
{
    (void)state;
    struct pt_hist *h = fresh();
    assert_int_equal(pt_hist_count(h), 0);
    assert_int_equal(pt_hist_min(h), 0);
    assert_int_equal(pt_hist_max(h), 0);
    assert_int_equal(pt_hist_quantile(h, 0.5), 0);
    assert_near(pt_hist_mean(h), 0, 0);
    assert_near(pt_hist_stddev(h), 0, 0);
    assert_near(pt_hist_within_1_stddev_pct(h), 0, 0);
    assert_false(pt_hist_depth_ok(h, 0.5));
    struct pt_hist_bucket b = {0};
    assert_false(pt_hist_next(h, &b));
    free(h);
}

static void holds_both_ends(void **state)
{
    (void)state;
    struct pt_hist *h = fresh();
    pt_hist_record(h, 0);
    pt_hist_record(h, UINT64_MAX);
    pt_hist_record(h, UINT64_MAX);
    assert_int_equal(pt_hist_count(h), 3);
    assert_int_equal(pt_hist_min(h), 0);
    assert_int_equal(pt_hist_max(h), UINT64_MAX);
    assert_int_equal(pt_hist_quantile(h, 0), 0);
    assert_int_equal(pt_hist_quantile(h, 1), UINT64_MAX);
    double middle = (double)pt_hist_quantile(h, 0.5);
    assert_near(middle, 0x1p64, 0x1p64 / 2048);
    assert_near(pt_hist_mean(h), 2 * 0x1p64 / 3, 0x1p20);
    assert_near(pt_hist_stddev(h), 0x1p64 * sqrt(2) / 3, 0x1p64 / 1000);

    struct pt_hist_bucket b = {0};
    assert_true(pt_hist_next(h, &b));
    assert_int_equal(b.low, 0);
    assert_int_equal(b.high, 0);
    assert_int_equal(b.count, 1);
    assert_true(pt_hist_next(h, &b));
    assert_int_equal(b.index, PT_HIST_BUCKETS - 1);
    assert_int_equal(b.high, UINT64_MAX);
    assert_int_equal(b.count, 2);
    assert_false(pt_hist_next(h, &b));
    free(h);
}

/* 1..1000: every figure is known in closed form and every bucket is one value wide. */
static void exact_below_2048(void **state)
{
    (void)state;
    struct pt_hist *h = fresh();
    for (uint64_t v = 1000; v; v--)
        pt_hist_record(h, v);
    assert_int_equal(pt_hist_quantile(h, 0.5), 500);
    assert_int_equal(pt_hist_quantile(h, 0.75), 750);
    assert_int_equal(pt_hist_quantile(h, 0.99), 990);
    assert_int_equal(pt_hist_quantile(h, 0.999), 999);
    assert_int_equal(pt_hist_quantile(h, 0.9991), 1000);
    assert_int_equal(pt_hist_quantile(h, 0.0001), 1);
    assert_near(pt_hist_mean(h), 500.5, 1e-9);
    double stddev = sqrt((1000.0 * 1000.0 - 1) / 12);
    assert_near(pt_hist_stddev(h), stddev, 1e-9);
    /* Values 212 to 789 lie within 288.67 of 500.5. */
    assert_near(pt_hist_within_1_stddev_pct(h), 57.8, 1e-9);
    /* Of 100 samples the 7th is p7, although 0.07 * 100 comes out a little above 7. */
    pt_hist_reset(h);
    for (uint64_t v = 1; v <= 100; v++)
        pt_hist_record(h, v);
    for (unsigned percent = 1; percent <= 100; percent++)
        assert_int_equal(pt_hist_quantile(h, percent / 100.0), percent);
    free(h);
}

/* A constant has no spread, though its bucket is wide. */
static void constant_has_no_spread(void **state)
{
    (void)state;
    struct pt_hist *h = fresh();
    pt_hist_record_n(h, 123456789, 1000);
    assert_int_equal(pt_hist_count(h), 1000);
    assert_int_equal(pt_hist_quantile(h, 0.5), 123456789);
    assert_near(pt_hist_mean(h), 123456789, 1e-6);
    assert_near(pt_hist_stddev(h), 0, 0);
    assert_near(pt_hist_within_1_stddev_pct(h), 100, 0);
    pt_hist_record_n(h, 5, 0);
    assert_int_equal(pt_hist_min(h), 123456789);
    free(h);
}

static void large_counts_do_not_overflow(void **state)
{
    (void)state;
    struct pt_hist *h = fresh();
    uint64_t quarter = (uint64_t)1 << 62;
    pt_hist_record_n(h, UINT64_MAX, quarter);
    pt_hist_record_n(h, UINT64_MAX - 1, quarter);
    pt_hist_record_n(h, 0, quarter);
    assert_int_equal(pt_hist_count(h), 3 * quarter);
    assert_near(pt_hist_mean(h), 2 * 0x1p64 / 3, 0x1p20);
    assert_int_equal(pt_hist_quantile(h, 0.3), 0);
    assert_near((double)pt_hist_quantile(h, 0.4), 0x1p64, 0x1p64 / 2048);
    assert_near(pt_hist_stddev(h), 0x1p64 * sqrt(2) / 3, 0x1p64 / 1000);
    free(h);
}

static void copies_and_resets(void **state)
{
    (void)state;
    struct pt_hist *h = fresh(), *other = fresh(), *zero = fresh();
    for (unsigned i = 0; i < 64; i++)
        pt_hist_record(h, (uint64_t)1 << i);
    pt_hist_record(other, 77);
    pt_hist_copy(other, h);
    assert_memory_equal(h, other, sizeof(*h));
    pt_hist_merge(other, zero);
    assert_memory_equal(h, other, sizeof(*h));
    pt_hist_reset(h);
    assert_memory_equal(h, zero, sizeof(*h));
    free(h);
    free(other);
    free(zero);
}

static void percentiles_need_depth(void **state)
{
    (void)state;
    static const struct {
        double q;
        uint64_t needs;
    } cases[] = {{0, 1},      {0.25, 1},    {0.5, 1},       {0.75, 40},       {0.9, 100},
                 {0.95, 200}, {0.99, 1000}, {0.999, 10000}, {0.9999, 100000}, {1, 1}};
    struct pt_hist *h = fresh();
    for (size_t i = 0; i < PT_COUNT(cases); i++) {
        pt_hist_reset(h);
        pt_hist_record_n(h, 5, cases[i].needs - 1);
        assert_false(pt_hist_depth_ok(h, cases[i].q));
        pt_hist_record(h, 5);
        assert_true(pt_hist_depth_ok(h, cases[i].q));
    }
    assert_false(pt_hist_depth_ok(h, -0.1));
    assert_false(pt_hist_depth_ok(h, 1.1));
    assert_false(pt_hist_depth_ok(h, (double)NAN));
    free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_tile_the_range), cmocka_unit_test(empty_is_zero_bytes),
        cmocka_unit_test(holds_both_ends),        cmocka_unit_test(exact_below_2048),
        cmocka_unit_test(constant_has_no_spread), cmocka_unit_test(large_counts_do_not_overflow),
        cmocka_unit_test(copies_and_resets),      cmocka_unit_test(percentiles_need_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
