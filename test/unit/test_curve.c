/* test_curve.c: what a page draws of a histogram is what the histogram holds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "sink/curve.h"
#include "stat/hdr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The drawing of `path` of a document that holds `h` there; the caller's. */
static json_t *draw(const struct pt_hist *h, const char *path)
{
    struct pt_result *r = pt_result_new(0);
    pt_result_hist(r, path, h);
    assert_int_equal(pt_result_failed(r), 0);
    json_t *all = pt_curves(r), *one = json_incref(json_object_get(all, path));
    assert_int_equal(json_object_size(all), one ? 1 : 0);
    json_decref(all);
    pt_result_free(r);
    return one;
}

static double real_at(const json_t *rows, size_t row, size_t column)
{
    return json_number_value(json_array_get(json_array_get(rows, row), column));
}

/* Bins rise, do not overlap, hold every sample and are few. */
static void check_bins(const json_t *curve, uint64_t count, double least_us, double most_us)
{
    const json_t *bins = json_object_get(curve, "bins");
    size_t n = json_array_size(bins);
    double sum = 0;
    assert_true(n >= 1 && n <= PT_CURVE_BINS);
    for (size_t i = 0; i < n; i++) {
        assert_true(real_at(bins, i, 0) < real_at(bins, i, 1));
        assert_true(i == 0 || real_at(bins, i - 1, 1) <= real_at(bins, i, 0));
        assert_true(real_at(bins, i, 2) > 0);
        sum += real_at(bins, i, 2);
    }
    assert_true(fabs(sum - (double)count) < 0.5);
    assert_true(real_at(bins, 0, 0) <= least_us * 1.001 && real_at(bins, 0, 1) > least_us);
    assert_true(real_at(bins, n - 1, 0) <= most_us && real_at(bins, n - 1, 1) >= most_us * 0.999);
}

static void counts_are_exact(void **state)
{
    (void)state;
    struct pt_hist *h = calloc(1, sizeof(*h));
    uint64_t seed = 1;
    for (int i = 0; i < 50000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        pt_hist_record(h, (seed >> 40) << (seed >> 33 & 7));
    }
    json_t *c = draw(h, "latency");
    assert_int_equal(json_integer_value(json_object_get(c, "count")), 50000);
    check_bins(c, 50000, (double)pt_hist_min(h) / 1e3, (double)pt_hist_max(h) / 1e3);
    /* Each bin against a count of our own. */
    const json_t *bins = json_object_get(c, "bins");
    for (size_t i = 0; i < json_array_size(bins); i++) {
        struct pt_hist_bucket b = {0};
        uint64_t mine = 0;
        while (pt_hist_next(h, &b)) {
            double us = (double)b.low / 1e3;
            mine += us >= real_at(bins, i, 0) && us < real_at(bins, i, 1) ? b.count : 0;
        }
        assert_int_equal(mine, (uint64_t)real_at(bins, i, 2));
    }
    json_decref(c);
    free(h);
}

static void percentiles_are_those_of_the_histogram(void **state)
{
    (void)state;
    struct pt_hist *h = calloc(1, sizeof(*h));
    for (uint64_t i = 1; i <= 10000; i++)
        pt_hist_record(h, i * 1000);
    json_t *c = draw(h, "service_time");
    const json_t *p = json_object_get(c, "percentiles");
    size_t n = json_array_size(p), nines = 0;
    assert_true(n > 50);
    for (size_t i = 0; i < n; i++) {
        double q = real_at(p, i, 0);
        assert_true(i == 0 || q > real_at(p, i - 1, 0));
        assert_true(i == 0 || real_at(p, i, 1) >= real_at(p, i - 1, 1));
        /* The samples are 1 to 10000 µs: the quantile q is q * 10000, within a bucket. */
        assert_true(fabs(real_at(p, i, 1) - fmax(1, ceil(q * 10000 - 1e-6))) <= 0.001 * 10000);
        nines += fabs(q - 0.9) < 1e-12 || fabs(q - 0.99) < 1e-12 || fabs(q - 0.999) < 1e-12;
    }
    assert_int_equal(nines, 3);
    /* Ten samples lie beyond p99.9 and none is drawn deeper. */
    assert_true(fabs(real_at(p, n - 1, 0) - 0.999) < 1e-12);
    json_decref(c);
    free(h);
}

static void odd_histograms_are_drawn(void **state)
{
    (void)state;
    static const uint64_t values[][3] = {
        {0, 0, 0}, {1, 1, 1}, {0, 1, 2}, {5000, 5000, 5000}, {0, 1000, (uint64_t)1 << 62},
    };
    struct pt_hist *h = calloc(1, sizeof(*h));
    for (size_t i = 0; i < PT_COUNT(values); i++) {
        pt_hist_reset(h);
        for (size_t k = 0; k < 3; k++)
            pt_hist_record_n(h, values[i][k], 7);
        json_t *c = draw(h, "one_way.forward");
        assert_int_equal(json_integer_value(json_object_get(c, "count")), 21);
        check_bins(c, 21, (double)values[i][0] / 1e3, (double)values[i][2] / 1e3);
        json_decref(c);
    }
    pt_hist_reset(h);
    assert_null(draw(h, "latency")); /* empty */
    free(h);
}

static void what_cannot_be_read_is_not_there(void **state)
{
    (void)state;
    struct pt_result *r = pt_result_new(0);
    pt_result_str(r, "latency.hdr", "HISTFAAAnonsense");
    pt_result_null(r, "service_time.hdr");
    pt_result_u64(r, "connect_time.hdr", 4);
    pt_result_str(r, "wakeup_time", "no block");
    json_t *all = pt_curves(r);
    assert_non_null(all);
    assert_int_equal(json_object_size(all), 0);
    json_decref(all);
    pt_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(percentiles_are_those_of_the_histogram),
        cmocka_unit_test(odd_histograms_are_drawn),
        cmocka_unit_test(what_cannot_be_read_is_not_there),
    };
    return cmocka_run_group_tests_name("curve", tests, NULL, NULL);
}
