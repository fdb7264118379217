/* test_pacer.c: the pacer on a virtual clock: counts, splits, bursts, stalls, steps, Poisson.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "engine/pacer.h"

#include <errno.h>
#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

#define HOUR (3600 * PT_S)
/* Not a round number, so that nothing works by accident at zero. */
#define START ((pt_ns)1234567890123)

static uint64_t seed;

static struct pt_pacer begun(struct pt_pacer_spec spec, unsigned worker, unsigned workers)
{
    struct pt_pacer p;
    struct pt_err e = {0};
    if (pt_pacer_init(&p, &spec, worker, workers, &e))
        fail_msg("%s", e.text);
    assert_true(pt_pacer_next(&p) == PT_NS_MAX);
    pt_pacer_start(&p, START);
    return p;
}

static struct pt_pacer_spec uniform(double rate_ops, unsigned flows)
{
    return (struct pt_pacer_spec){.mode = PT_PACER_UNIFORM, .rate_ops = rate_ops, .flows = flows};
}

/* Rates as a person types them, and the fraction each means. */
static const struct {
    double rate;
    uint64_t ops, per_s;
} rates[] = {
    {1.0 / 3, 1, 3},
    {1e-6, 1, 1000000},
    {0.1, 1, 10},
    {1, 1, 1},
    {7, 7, 1},
    {33.3, 333, 10},
    {1000, 1000, 1},
    {1e6 / 7, 1000000, 7},
    {99999.99, 9999999, 100},
    {100000, 100000, 1},
    {123456.789, 123456789, 1000},
    {41e6, 41000000, 1},
    {999999937, 999999937, 1},
    {1e10, 10000000000, 1},
};

static void a_double_means_its_simplest_fraction(void **state)
{
    (void)state;
    struct pt_pacer_rate r;
    for (size_t i = 0; i < PT_COUNT(rates); i++) {
        assert_int_equal(pt_pacer_rate_from(&r, rates[i].rate), 0);
        assert_int_equal(r.ops, rates[i].ops);
        assert_int_equal(r.per_s, rates[i].per_s);
    }
    static const double wrong[] = {0, -1, 1e-7, 1.1e10, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < PT_COUNT(wrong); i++)
        assert_int_equal(pt_pacer_rate_from(&r, wrong[i]), -EINVAL);
    struct pt_rng rng;
    pt_rng_init(&rng, seed);
    for (unsigned i = 0; i < 100000; i++) {
        double x = exp(log(1e-6) + pt_rng_unit(&rng) * (log(1e10) - log(1e-6)));
        if (x < PT_PACER_RATE_MIN || x > PT_PACER_RATE_MAX)
            continue;
        assert_int_equal(pt_pacer_rate_from(&r, x), 0);
        assert_true(r.ops < (uint64_t)1 << 53 && r.per_s <= (uint64_t)1 << 36);
        if (fabs((double)r.ops / (double)r.per_s - x) > 0x1p-36)
            fail_msg("%.17g became %" PRIu64 "/%" PRIu64, x, r.ops, r.per_s);
    }
}

/* Operations with floor(k * period) < HOUR. */
static uint64_t ops_in_an_hour(size_t i)
{
    u128 per = (u128)rates[i].per_s * (uint64_t)PT_S;
    return (uint64_t)(((u128)HOUR * rates[i].ops + per - 1) / per);
}

/* The whole hour at every rate. At high rates one worker of many walks its share of it, each
 * operation compared with the definition floor(k * period); the other workers differ only in k. */
static void an_hour_is_exact_at_any_rate(void **state)
{
    (void)state;
    for (size_t i = 0; i < PT_COUNT(rates); i++) {
        uint64_t total = ops_in_an_hour(i);
        unsigned workers = total > 300000 ? (unsigned)(total / 300000) : 1;
        if (workers > PT_PACER_FLOWS_MAX)
            workers = PT_PACER_FLOWS_MAX;
        unsigned worker = workers / 3;
        struct pt_pacer p = begun(uniform(rates[i].rate, 0), worker, workers);
        uint64_t k = worker;
        while (pt_pacer_next(&p) < START + HOUR) {
            u128 want = (u128)k * rates[i].per_s * (uint64_t)PT_S / rates[i].ops;
            pt_ns due = pt_pacer_take(&p);
            if (due - START != (pt_ns)want)
                fail_msg("rate %.17g, operation %" PRIu64 ": due %" PRId64 ", not %" PRId64,
                         rates[i].rate, k, due - START, (pt_ns)want);
            k += workers;
        }
        assert_int_equal(p.taken, total > worker ? (total - worker - 1) / workers + 1 : 0);
    }
}

/* A million operations, walked together: the next due of all workers is the one schedule's next,
 * and each flow gets every flows-th operation. */
static void any_split_is_the_same_schedule(void **state)
{
    (void)state;
    static const struct {
        unsigned workers, flows;
    } splits[] = {{1, 1}, {2, 2}, {2, 3}, {3, 64}, {7, 5}, {16, 1000}, {5, 0}};
    static const double some[] = {1.0 / 3, 33.3, 123456.789, 41e6, 3e9};
    for (size_t r = 0; r < PT_COUNT(some); r++) {
        for (size_t s = 0; s < PT_COUNT(splits); s++) {
            unsigned workers = splits[s].workers, flows = splits[s].flows;
            struct pt_pacer whole = begun(uniform(some[r], 0), 0, 1), part[16];
            for (unsigned w = 0; w < workers; w++)
                part[w] = begun(uniform(some[r], flows), w, workers);
            for (unsigned k = 0; k < 20000; k++) {
                unsigned flow = k % (flows ? flows : workers);
                struct pt_pacer *mine = &part[flow % workers];
                for (unsigned w = 0; w < workers; w++)
                    assert_true(pt_pacer_next(&part[w]) >= pt_pacer_next(mine));
                assert_int_equal(pt_pacer_flow(mine), flow);
                pt_ns due = pt_pacer_take(&whole);
                assert_true(pt_pacer_take(mine) == due);
            }
        }
    }
}

/* Polled each time something is due, there is one operation to start, unless the rate has several
 * to the nanosecond. */
static void no_burst_when_polled_in_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < PT_COUNT(rates); i++) {
        struct pt_pacer p = begun(uniform(rates[i].rate, 0), 0, 1);
        unsigned most = rates[i].rate <= 1e9 ? 1 : (unsigned)(rates[i].rate / 1e9);
        for (unsigned k = 0; k < 1000; k++) {
            pt_ns now = pt_pacer_next(&p), due[64];
            assert_int_equal(pt_pacer_due(&p, now - 1, 64), 0);
            assert_int_equal(pt_pacer_due(&p, now, 64), most);
            assert_int_equal(pt_pacer_take_due(&p, now, due, 64), most);
            assert_true(due[0] == now && pt_pacer_next(&p) > now);
        }
    }
}

/* 100 ms without polling at 1,000/s: all 100 are due, each at its own instant. */
static void a_stall_leaves_all_due(void **state)
{
    (void)state;
    struct pt_pacer p = begun(uniform(1000, 0), 0, 1);
    pt_ns due[256];
    assert_int_equal(pt_pacer_take_due(&p, START + 10 * PT_MS - 1, due, 256), 10);
    pt_ns now = START + 110 * PT_MS - 1;
    assert_int_equal(pt_pacer_due(&p, now, 256), 100);
    assert_int_equal(pt_pacer_due(&p, now, 7), 7);
    assert_int_equal(pt_pacer_take_due(&p, now, due, 7), 7);
    assert_int_equal(pt_pacer_take_due(&p, now, due + 7, 249), 93);
    for (int k = 0; k < 100; k++)
        assert_true(due[k] == START + (10 + k) * PT_MS);
    assert_int_equal(pt_pacer_due(&p, now, 256), 0);
    assert_true(pt_pacer_next(&p) == now + 1);
    assert_int_equal(p.taken, 110);
}

static void closed_and_empty_have_nothing_due(void **state)
{
    (void)state;
    struct pt_pacer p = begun((struct pt_pacer_spec){.mode = PT_PACER_CLOSED}, 0, 1);
    assert_true(pt_pacer_next(&p) == PT_NS_MAX && pt_pacer_take(&p) == PT_NS_MAX);
    assert_int_equal(pt_pacer_due(&p, PT_NS_MAX, 9), 0);
    assert_int_equal(pt_pacer_change(&p, 5, START), -EINVAL);
    /* Two flows on four workers: the last two have none, and take a change without harm. */
    p = begun(uniform(1000, 2), 3, 4);
    assert_true(pt_pacer_next(&p) == PT_NS_MAX);
    assert_int_equal(pt_pacer_change(&p, 5, START + PT_S), 0);
    assert_true(pt_pacer_next(&p) == PT_NS_MAX);
    assert_int_equal(p.taken, 0);
}

static void refuses_what_is_out_of_range(void **state)
{
    (void)state;
    static const struct pt_pacer_step endless_first[] = {{10, 0}, {20, PT_S}};
    static const struct pt_pacer_step no_rate[] = {{10, PT_S}, {0, PT_S}};
    const struct pt_pacer_spec wrong[] = {
        uniform(0, 0),
        uniform(1e11, 0),
        uniform(1000, PT_PACER_FLOWS_MAX + 1),
        {.mode = PT_PACER_UNIFORM, .steps = endless_first, .step_count = 2},
        {.mode = PT_PACER_POISSON, .steps = no_rate, .step_count = 2},
    };
    for (size_t i = 0; i < PT_COUNT(wrong); i++) {
        struct pt_pacer p;
        struct pt_err e = {0};
        assert_int_equal(pt_pacer_init(&p, &wrong[i], 0, 1, &e), -EINVAL);
        assert_true(e.text[0] != '\0');
    }
    struct pt_pacer p;
    struct pt_pacer_spec fine = uniform(1000, 0);
    assert_int_equal(pt_pacer_init(&p, &fine, 2, 2, NULL), -EINVAL);
}

/* 4/s for 0.625 s, then 2/s: operation 3 is half due at the change (due 0.75 s by the old rate,
 * 0.125 s of 0.25 s to go), so it comes half a new period later, and the steps end at 2 s. */
static void a_step_keeps_its_phase(void **state)
{
    (void)state;
    static const struct pt_pacer_step steps[] = {{4, 625 * PT_MS}, {2, 1375 * PT_MS}};
    struct pt_pacer p = begun(
        (struct pt_pacer_spec){.mode = PT_PACER_UNIFORM, .steps = steps, .step_count = 2}, 0, 1);
    static const pt_ns want_ms[] = {0, 250, 500, 875, 1375, 1875};
    for (size_t i = 0; i < PT_COUNT(want_ms); i++)
        assert_true(pt_pacer_take(&p) == START + want_ms[i] * PT_MS);
    assert_true(pt_pacer_take(&p) == PT_NS_MAX);
    assert_int_equal(p.taken, 6);
}

/* Steps of odd rates and lengths: the count is that of the rate's integral, and every split
 * interleaves to the same schedule. */
static void steps_count_and_split_exactly(void **state)
{
    (void)state;
    static const struct pt_pacer_step steps[] = {
        {33.3, 777 * PT_MS},    {10007, 1234567891}, {0.7, 10 * PT_S},
        {123456.789, 99999999}, {41e6, 1000003},     {3, 0},
    };
    static const unsigned flow_counts[] = {1, 2, 3, 50};
    pt_ns end = START + 20 * PT_S;
    double integral = 0;
    pt_ns at = START;
    for (size_t i = 0; i < PT_COUNT(steps); i++) {
        pt_ns length = steps[i].duration_ns ? steps[i].duration_ns : end - at;
        integral += steps[i].rate_ops * (double)length / 1e9;
        at += length;
    }
    for (size_t f = 0; f < PT_COUNT(flow_counts); f++) {
        struct pt_pacer_spec spec = {.mode = PT_PACER_UNIFORM,
                                     .steps = steps,
                                     .step_count = PT_COUNT(steps),
                                     .flows = flow_counts[f]};
        struct pt_pacer whole = begun(spec, 0, 1), part[3];
        for (unsigned w = 0; w < 3; w++)
            part[w] = begun(spec, w, 3);
        unsigned k = 0;
        for (; pt_pacer_next(&whole) < end; k++) {
            struct pt_pacer *mine = &part[k % flow_counts[f] % 3];
            pt_ns due = pt_pacer_take(&whole), got = pt_pacer_take(mine);
            if (due != got)
                fail_msg("flows %u, operation %u: %" PRId64 " against %" PRId64, flow_counts[f], k,
                         due - START, got - START);
        }
        assert_true(fabs(k - integral) <= 1);
    }
}

/* What auto-boost does: one change after the other, given while running. */
static void changes_while_running(void **state)
{
    (void)state;
    struct pt_pacer p = begun(uniform(1000, 0), 0, 1);
    pt_ns due[4096];
    unsigned n = pt_pacer_take_due(&p, START + 500 * PT_MS, due, 4096);
    assert_int_equal(n, 501);
    assert_int_equal(pt_pacer_change(&p, 2000, START + 400 * PT_MS), -EINVAL);
    assert_int_equal(pt_pacer_change(&p, 1e99, START + PT_S), -EINVAL);
    assert_int_equal(pt_pacer_change(&p, 2000, START + PT_S), 0);
    assert_int_equal(pt_pacer_change(&p, 3000, START + 2 * PT_S), -EBUSY);
    /* A stall across the change: each side's operations at that side's instants. */
    n = pt_pacer_take_due(&p, START + 2 * PT_S - 1, due, 4096);
    assert_int_equal(n, 499 + 2000);
    assert_true(due[498] == START + 999 * PT_MS && due[499] == START + PT_S);
    assert_true(due[500] == START + PT_S + 500 * PT_US);
    assert_int_equal(pt_pacer_change(&p, 0, START + 3 * PT_S), 0);
    assert_int_equal(pt_pacer_take_due(&p, START + HOUR, due, 4096), 2000);
    assert_true(pt_pacer_next(&p) == PT_NS_MAX);
}

#define GAPS 200000

/* Gaps of one process. An exponential's mean has standard error m/sqrt(n), its variance
 * m^2*sqrt(8/n); five of either happen by chance once in two million runs. */
static void poisson_gaps_are_exponential(void **state)
{
    (void)state;
    double rate = 12345.6, mean = 1e9 / rate;
    struct pt_pacer p = begun(
        (struct pt_pacer_spec){.mode = PT_PACER_POISSON, .rate_ops = rate, .seed = seed}, 0, 1);
    double sum = 0, squares = 0, longer = 0;
    pt_ns before = START;
    for (unsigned i = 0; i < GAPS; i++) {
        pt_ns due = pt_pacer_take(&p);
        assert_true(due >= before);
        double gap = (double)(due - before);
        before = due;
        sum += gap;
        squares += (gap - mean) * (gap - mean);
        longer += gap > 2 * mean;
    }
    assert_true(fabs(sum / GAPS / mean - 1) < 5 / sqrt(GAPS));
    assert_true(fabs(squares / GAPS / (mean * mean) - 1) < 5 * sqrt(8.0 / GAPS));
    double share = exp(-2);
    assert_true(fabs(longer / GAPS - share) < 5 * sqrt(share * (1 - share) / GAPS));
}

/* Gaps of 10 ns on average: cutting off what is below a nanosecond would show as 5 % in the mean.
 */
static void poisson_keeps_parts_of_a_nanosecond(void **state)
{
    (void)state;
    struct pt_pacer p = begun(
        (struct pt_pacer_spec){.mode = PT_PACER_POISSON, .rate_ops = 1e8, .seed = seed}, 0, 1);
    pt_ns due = START;
    for (unsigned i = 0; i < GAPS; i++)
        due = pt_pacer_take(&p);
    assert_true(fabs((double)(due - START) / GAPS / 10 - 1) < 5 / sqrt(GAPS));
}

/* Three workers with 4, 3 and 3 of ten flows, merged: counts per 10 ms have mean and variance of
 * the whole rate (a Poisson count's variance equals its mean; its standard error is about
 * mean*sqrt(2/n)), and each worker its flows' share. */
static void poisson_workers_merge(void **state)
{
    (void)state;
    enum { SLOTS = 20000 };
    static unsigned slot[SLOTS];
    memset(slot, 0, sizeof(slot));
    double rate = 5000, per_slot = rate * 0.01, total = rate * SLOTS * 0.01;
    for (unsigned w = 0; w < 3; w++) {
        struct pt_pacer p = begun(
            (struct pt_pacer_spec){
                .mode = PT_PACER_POISSON, .rate_ops = rate, .flows = 10, .seed = seed},
            w, 3);
        while (pt_pacer_next(&p) < START + SLOTS * 10 * PT_MS) {
            assert_int_equal(pt_pacer_flow(&p) % 3, w);
            slot[(pt_pacer_take(&p) - START) / (10 * PT_MS)]++;
        }
        double want = total * (w == 0 ? 0.4 : 0.3);
        assert_true(fabs((double)p.taken - want) < 5 * sqrt(want));
    }
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < SLOTS; i++) {
        sum += slot[i];
        squares += (slot[i] - per_slot) * (slot[i] - per_slot);
    }
    assert_true(fabs(sum - total) < 5 * sqrt(total));
    double error = per_slot * sqrt((2 + 1 / per_slot) / SLOTS);
    assert_true(fabs(squares / SLOTS - per_slot) < 5 * error);
}

/* Seeds repeat a run; workers and seeds do not repeat each other, nor does seed 1's worker 1 repeat
 * seed 2's worker 0. */
static void poisson_is_seeded(void **state)
{
    (void)state;
    struct pt_pacer_spec spec = {.mode = PT_PACER_POISSON, .rate_ops = 1000, .seed = 1};
    struct pt_pacer a = begun(spec, 1, 2), same = begun(spec, 1, 2), other = begun(spec, 0, 2);
    spec.seed = 2;
    struct pt_pacer next_seed = begun(spec, 0, 2);
    unsigned equal = 0;
    for (unsigned i = 0; i < 1000; i++) {
        pt_ns due = pt_pacer_take(&a);
        assert_true(due == pt_pacer_take(&same));
        equal += due == pt_pacer_take(&other);
        equal += due == pt_pacer_take(&next_seed);
    }
    assert_in_range(equal, 0, 2);
}

/* 200,000/s for 1 s, then a tenth of it: both counts within five standard errors. */
static void poisson_steps(void **state)
{
    (void)state;
    static const struct pt_pacer_step steps[] = {{200000, PT_S}, {20000, 10 * PT_S}};
    struct pt_pacer p = begun(
        (struct pt_pacer_spec){
            .mode = PT_PACER_POISSON, .steps = steps, .step_count = 2, .seed = seed},
        0, 1);
    unsigned count[2] = {0};
    pt_ns before = START;
    while (pt_pacer_next(&p) != PT_NS_MAX) {
        pt_ns due = pt_pacer_take(&p);
        assert_true(due >= before && due < START + 11 * PT_S);
        before = due;
        count[due >= START + PT_S]++;
    }
    for (unsigned i = 0; i < 2; i++)
        assert_true(fabs(count[i] - 200000.0) < 5 * sqrt(200000));

    /* One a second, then 100 in the next 0.1 s: the wait for the slow one must shrink, or it would
     * eat most of the fast step. */
    static const struct pt_pacer_step sudden[] = {{1, PT_S}, {1000, 100 * PT_MS}};
    unsigned fast = 0;
    for (unsigned i = 0; i < 1000; i++) {
        p = begun(
            (struct pt_pacer_spec){
                .mode = PT_PACER_POISSON, .steps = sudden, .step_count = 2, .seed = seed + i},
            0, 1);
        while (pt_pacer_next(&p) != PT_NS_MAX)
            fast += pt_pacer_take(&p) >= START + PT_S;
    }
    assert_true(fabs(fast - 100000.0) < 5 * sqrt(100000));
}

int main(void)
{
    seed = test_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_double_means_its_simplest_fraction),
        cmocka_unit_test(an_hour_is_exact_at_any_rate),
        cmocka_unit_test(any_split_is_the_same_schedule),
        cmocka_unit_test(no_burst_when_polled_in_time),
        cmocka_unit_test(a_stall_leaves_all_due),
        cmocka_unit_test(closed_and_empty_have_nothing_due),
        cmocka_unit_test(refuses_what_is_out_of_range),
        cmocka_unit_test(a_step_keeps_its_phase),
        cmocka_unit_test(steps_count_and_split_exactly),
        cmocka_unit_test(changes_while_running),
        cmocka_unit_test(poisson_gaps_are_exponential),
        cmocka_unit_test(poisson_keeps_parts_of_a_nanosecond),
        cmocka_unit_test(poisson_workers_merge),
        cmocka_unit_test(poisson_is_seeded),
        cmocka_unit_test(poisson_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
