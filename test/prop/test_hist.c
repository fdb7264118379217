/* test_hist.c: the histogram against a sorted array of the same samples.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/rng.h"
#include "stat/hist.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#define SAMPLES 20000
#define ROUNDS  30

static struct pt_rng rng;
static uint64_t sample[SAMPLES];

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* Samples of one of three shapes: uniform in a random range, a random bit length each, or clustered
 * with a tail as latencies are. Returns how many. */
static size_t draw(void)
{
    size_t n = 1 + pt_rng_below(&rng, SAMPLES);
    unsigned shape = (unsigned)pt_rng_below(&rng, 3);
    unsigned bits = (unsigned)pt_rng_below(&rng, 64);
    uint64_t base = pt_rng_u64(&rng) >> bits, range = (pt_rng_u64(&rng) >> bits) | 1;
    if (range > UINT64_MAX - base)
        base = UINT64_MAX - range;
    for (size_t i = 0; i < n; i++) {
        if (shape == 0)
            sample[i] = base + pt_rng_below(&rng, range);
        else if (shape == 1)
            sample[i] = pt_rng_u64(&rng) >> pt_rng_below(&rng, 64);
        else
            sample[i] = 20000 + (uint64_t)pt_rng_exp(&rng, 5000 * (i % 100 ? 1 : 400));
    }
    return n;
}

static void assert_within(double got, double want, double share, const char *what, double q)
{
    if (!(fabs(got - want) <= share * want))
        fail_msg("%s %g: got %.17g, model %.17g", what, q, got, want);
}

/* Exact, in long double so that the model is not the weak side. */
static void check_moments(const struct pt_hist *h, size_t n)
{
    long double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += (long double)sample[i];
    long double mean = sum / (long double)n;
    for (size_t i = 0; i < n; i++)
        squares += ((long double)sample[i] - mean) * ((long double)sample[i] - mean);
    double stddev = (double)sqrtl(squares / (long double)n);
    assert_within(pt_hist_mean(h), (double)mean, 1e-9, "mean", 0);
    /* Quantising moves each value by at most 1/2048 of itself, so the deviation by at most the
     * root mean square of that. */
    double quantum = sqrt((double)(mean * mean) + stddev * stddev) / 2048;
    if (fabs(pt_hist_stddev(h) - stddev) > quantum + stddev * 1e-9)
        fail_msg("stddev: got %g, model %g, quantum %g", pt_hist_stddev(h), stddev, quantum);
}

static void quantiles_match_a_sorted_array(void **state)
{
    struct pt_hist *h = *state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        pt_hist_reset(h);
        size_t n = draw();
        for (size_t i = 0; i < n; i++)
            pt_hist_record(h, sample[i]);
        qsort(sample, n, sizeof(sample[0]), by_value);
        assert_int_equal(pt_hist_count(h), n);
        assert_int_equal(pt_hist_min(h), sample[0]);
        assert_int_equal(pt_hist_max(h), sample[n - 1]);
        check_moments(h, n);
        for (unsigned k = 0; k <= 400; k++) {
            /* Both fixed ranks and the depths that reports print. */
            size_t rank = k <= 200 ? 1 + pt_rng_below(&rng, n)
                                   : (size_t)ceil((double)n * (k - 200) / 200.0 - 1e-6);
            double q = k <= 200 ? (double)rank / (double)n : (k - 200) / 200.0;
            double want = (double)sample[rank - 1];
            assert_within((double)pt_hist_quantile(h, q), want, 0.0005, "quantile", q);
        }
    }
}

static void merge_equals_recording_all(void **state)
{
    struct pt_hist *whole = *state;
    struct pt_hist *part[4], *sum = calloc(1, sizeof(*sum));
    for (size_t i = 0; i < 4; i++)
        part[i] = calloc(1, sizeof(*part[i]));
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t n = draw();
        pt_hist_reset(whole);
        pt_hist_reset(sum);
        for (size_t i = 0; i < 4; i++)
            pt_hist_reset(part[i]);
        for (size_t i = 0; i < n; i++) {
            uint64_t times = pt_rng_below(&rng, 3);
            pt_hist_record_n(whole, sample[i], times);
            for (uint64_t t = 0; t < times; t++)
                pt_hist_record(part[pt_rng_below(&rng, 4)], sample[i]);
        }
        for (size_t i = 0; i < 4; i++)
            pt_hist_merge(sum, part[i]);
        assert_memory_equal(sum, whole, sizeof(*sum));
    }
    for (size_t i = 0; i < 4; i++)
        free(part[i]);
    free(sum);
}

/* Values within two powers of two, in a shared mapping: neither recording nor any reader may touch
 * more than the pages of the rows in use. */
static void touches_only_the_pages_in_use(void **state)
{
    (void)state;
    size_t page = 4096, size = (sizeof(struct pt_hist) + page - 1) / page * page;
    struct pt_hist *h = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(h != MAP_FAILED);
    struct pt_hist *copy = calloc(1, sizeof(*copy));
    for (unsigned i = 0; i < 100000; i++)
        pt_hist_record(h, ((uint64_t)1 << 40) + pt_rng_below(&rng, (uint64_t)3 << 40));
    pt_hist_copy(copy, h);
    assert_true(pt_hist_quantile(h, 0.5) > 0 && pt_hist_stddev(h) > 0);
    pt_hist_reset(h);
    unsigned char core[sizeof(struct pt_hist) / 4096 + 1];
    assert_int_equal(mincore(h, size, core), 0);
    unsigned resident = 0;
    for (size_t i = 0; i < size / page; i++)
        resident += core[i] & 1;
    assert_in_range(resident, 4, 8);
    assert_int_equal(pt_hist_count(copy), 100000);
    free(copy);
    munmap(h, size);
}

int main(void)
{
    pt_rng_init(&rng, test_seed());
    static struct pt_hist h;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(quantiles_match_a_sorted_array, &h),
        cmocka_unit_test_prestate(merge_equals_recording_all, &h),
        cmocka_unit_test(touches_only_the_pages_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
