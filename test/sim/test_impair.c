/* test_impair.c: what an impaired path does, under a virtual clock, is what its spec says.
 *
 * Exact where the spec is exact; where it is random, within six standard errors of what probability
 * theory says (one false alarm in 5e8 comparisons).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/impair_ledger.h"
#include "net/impair_queue.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRAWS 200000
#define SIGMA 6.0
#define SLOTS 4096

static struct pt_rng rng;
static struct pt_impair_record record;
static struct pt_impair_queue queue;
static double draws[DRAWS];

static void begin(const struct pt_impair_spec *spec)
{
    struct pt_impair_spec seeded = *spec;
    struct pt_err e = {0};
    if (seeded.seed == 0)
        seeded.seed = pt_rng_u64(&rng);
    memset(&record, 0, sizeof(record));
    assert_int_equal(pt_impair_check(&seeded, &e), 0);
    assert_int_equal(pt_impair_queue_init(&queue, &seeded, &record, 1, false, SLOTS, 64, &e), 0);
}

static int offer(pt_ns now, uint32_t number)
{
    int copies = pt_impair_offer(&queue, now, NULL, NULL, 0, &number, sizeof(number));
    assert_in_range(copies, 0, 2);
    return copies;
}

/* Takes the next departure at its own instant; returns its number and fills `at`. */
static uint32_t leave(pt_ns *at)
{
    struct pt_departure d;
    uint32_t number;
    *at = pt_impair_next(&queue);
    assert_true(*at < PT_NS_MAX);
    assert_false(pt_impair_take(&queue, *at - 1, &d));
    assert_true(pt_impair_take(&queue, *at, &d));
    assert_int_equal(d.len, sizeof(number));
    assert_int_equal(d.due, *at);
    memcpy(&number, d.bytes, sizeof(number));
    pt_impair_done(&queue, &d);
    return number;
}

static void end(void)
{
    assert_int_equal(pt_impair_queued(&queue), 0);
    assert_int_equal(record.offered,
                     record.passed + record.lost + record.rate_dropped + record.queue_dropped);
    assert_int_equal(record.departed, record.passed + record.duplicated - record.forgotten);
    assert_int_equal(record.delay.count, record.departed);
    assert_int_equal(record.lateness.count, record.departed);
    assert_int_equal(queue.free_count, SLOTS);
    pt_impair_queue_fini(&queue);
}

static void assert_near(double got, double want, double error, const char *what)
{
    if (!(fabs(got - want) <= error))
        fail_msg("%s: got %.9g, want %.9g within %.3g", what, got, want, error);
}

static void assert_share(uint64_t hits, uint64_t n, double p, const char *what)
{
    assert_near((double)hits / (double)n, p, SIGMA * sqrt(p * (1 - p) / (double)n), what);
}

static int by_value(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

static void draw_all(const struct pt_delay *d)
{
    for (size_t i = 0; i < DRAWS; i++) {
        draws[i] = (double)pt_delay_draw(d, &rng);
        assert_true(draws[i] >= 0);
    }
    qsort(draws, DRAWS, sizeof(draws[0]), by_value);
}

static double mean_of_draws(void)
{
    double sum = 0;
    for (size_t i = 0; i < DRAWS; i++)
        sum += draws[i];
    return sum / DRAWS;
}

/* The share of draws below the true quantile q must be q, within sampling error: no density needed.
 */
static void assert_quantile(double value, double q, const char *what)
{
    uint64_t below = 0;
    while (below < DRAWS && draws[below] < value)
        below++;
    assert_share(below, DRAWS, q, what);
}

static void fixed_delay_is_exact(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.delay = {.kind = PT_DELAY_FIXED, .a = 5 * PT_MS}};
    begin(&spec);
    for (uint32_t i = 0; i < 1000; i++) {
        pt_ns now = 77 + (pt_ns)i * 13 * PT_MS, at;
        offer(now, i);
        assert_int_equal(leave(&at), i);
        assert_int_equal(at, now + 5 * PT_MS);
    }
    assert_int_equal(pt_hist_min(&record.delay), 5 * PT_MS);
    assert_int_equal(pt_hist_max(&record.delay), 5 * PT_MS);
    end();
}

static void uniform_delay_has_its_moments(void **state)
{
    (void)state;
    struct pt_delay d = {.kind = PT_DELAY_UNIFORM, .a = PT_MS, .b = 3 * PT_MS};
    draw_all(&d);
    assert_true(draws[0] >= 1e6 && draws[DRAWS - 1] <= 3e6);
    assert_near(mean_of_draws(), 2e6, SIGMA * 2e6 / sqrt(12.0 * DRAWS), "mean");
    assert_quantile(1.2e6, 0.1, "p10");
    assert_quantile(2.98e6, 0.99, "p99");
}

static void normal_delay_has_its_moments(void **state)
{
    (void)state;
    struct pt_delay far = {.kind = PT_DELAY_NORMAL, .a = 10 * PT_MS, .b = PT_MS};
    draw_all(&far);
    assert_near(mean_of_draws(), 1e7, SIGMA * 1e6 / sqrt(DRAWS), "mean");
    assert_quantile(1e7, 0.5, "p50");
    assert_quantile(1e7 + 2.3263479e6, 0.99, "p99");
    assert_quantile(1e7 - 1.2815516e6, 0.1, "p10");

    /* Cut at zero one deviation below the mean: for a = -1, with phi and Phi of the normal
     * distribution, Z = 1 - Phi(a): mean = m + s phi/Z; p50 where Phi = Phi(a) + Z/2. */
    struct pt_delay cut = {.kind = PT_DELAY_NORMAL, .a = PT_MS, .b = PT_MS};
    draw_all(&cut);
    double z = 0.8413447461, phi = 0.2419707245;
    double variance = 1 - phi / z - (phi / z) * (phi / z);
    assert_near(mean_of_draws(), 1e6 * (1 + phi / z), SIGMA * 1e6 * sqrt(variance / DRAWS),
                "cut mean");
    assert_quantile(1e6, (0.5 - (1 - z)) / z, "cut at the untruncated mean");
}

static void exponential_delay_has_its_moments(void **state)
{
    (void)state;
    struct pt_delay d = {.kind = PT_DELAY_EXP, .a = 2 * PT_MS};
    draw_all(&d);
    assert_near(mean_of_draws(), 2e6, SIGMA * 2e6 / sqrt(DRAWS), "mean");
    assert_quantile(2e6 * log(2), 0.5, "p50");
    assert_quantile(2e6 * log(100), 0.99, "p99");
}

static void table_delay_follows_its_weights(void **state)
{
    (void)state;
    struct pt_delay d = {.kind = PT_DELAY_TABLE,
                         .count = 4,
                         .rows = {{PT_MS, 85}, {7 * PT_MS, 0}, {10 * PT_MS, 10}, {50 * PT_MS, 5}}};
    uint64_t seen[4] = {0};
    for (size_t i = 0; i < DRAWS; i++) {
        pt_ns x = pt_delay_draw(&d, &rng);
        size_t row = 0;
        while (row < 4 && d.rows[row].delay != x)
            row++;
        assert_in_range(row, 0, 3);
        seen[row]++;
    }
    assert_share(seen[0], DRAWS, 0.85, "first row");
    assert_int_equal(seen[1], 0);
    assert_share(seen[2], DRAWS, 0.10, "third row");
    assert_share(seen[3], DRAWS, 0.05, "last row");
}

/* The example of the method: 1,000 probes/s against a path that freezes 100 ms in each second. */
static void periodic_stall_is_exact(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {
        .stall = {.length = 100 * PT_MS, .every = PT_S, .at = 250 * PT_MS}};
    pt_ns start = 123456789;
    begin(&spec);
    for (uint32_t i = 0; i < 20000; i++) {
        offer(start + i * PT_MS, i);
        while (pt_impair_next(&queue) <= start + i * PT_MS) {
            pt_ns at;
            uint32_t number = leave(&at);
            uint32_t into = number % 1000;
            uint32_t wants = into >= 250 && into < 350 ? number - into + 350 : number;
            assert_int_equal(at, start + wants * PT_MS);
        }
    }
    assert_int_equal(record.stalled, 2000);
    assert_int_equal(pt_hist_quantile(&record.delay, 0.5), 0);
    assert_near((double)pt_hist_quantile(&record.delay, 0.95), 50e6, 1e6, "p95");
    assert_near((double)pt_hist_quantile(&record.delay, 0.99), 90e6, 1e6, "p99");
    assert_int_equal(pt_hist_max(&record.delay), 100 * PT_MS);
    end();
}

static void single_stall_happens_once(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.stall = {.length = 2 * PT_S, .at = 3 * PT_S},
                                  .delay = {.kind = PT_DELAY_FIXED, .a = PT_MS}};
    begin(&spec);
    for (uint32_t i = 0; i < 1000; i++)
        offer(i * 10 * PT_MS, i);
    for (uint32_t i = 0; i < 1000; i++) {
        pt_ns at, wants = i * 10 * PT_MS + PT_MS;
        assert_int_equal(leave(&at), i);
        assert_int_equal(at, wants >= 3 * PT_S && wants < 5 * PT_S ? 5 * PT_S : wants);
    }
    assert_int_equal(record.stalled, 200);
    assert_int_equal(record.reordered, 0);
    end();
}

static void rate_cap_is_exact_and_counts_its_drops(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {
        .rate = {.unit = PT_RATE_PACKETS, .per_s = 7, .queue_ns = 10 * PT_S}};
    pt_ns at = 0;
    uint32_t left = 0;
    begin(&spec);
    /* 20/s into 7/s: the k-th departure is at (k + 1) / 7 s, rounded down, without drift. */
    for (uint32_t i = 0; i < 20 * 100; i++) {
        pt_ns now = i * (PT_S / 20);
        while (pt_impair_next(&queue) <= now) {
            leave(&at);
            left++;
            assert_int_equal(at, (pt_ns)left * PT_S / 7);
        }
        offer(now, i);
    }
    while (pt_impair_queued(&queue)) {
        leave(&at);
        left++;
        assert_int_equal(at, (pt_ns)left * PT_S / 7);
    }
    /* Arrivals span 99.95 s and the queue drains for at most 10 s and one packet. */
    assert_in_range(left, 7 * 109, 7 * 110 + 1);
    assert_int_equal(record.rate_dropped, 2000 - left);
    end();
}

static void bit_rate_counts_payload(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.rate = {.unit = PT_RATE_BITS, .per_s = 100000000}};
    uint8_t packet[64] = {0};
    begin(&spec);
    /* 64 B at 100 Mbit/s: 5,120 ns each; the default queue holds 50 ms of them. */
    for (uint32_t i = 0; i < 4000; i++)
        assert_int_equal(pt_impair_offer(&queue, 0, NULL, NULL, 0, packet, sizeof(packet)), 1);
    for (uint32_t i = 0; i < 4000; i++) {
        struct pt_departure d;
        assert_int_equal(pt_impair_next(&queue), (pt_ns)(i + 1) * 5120);
        assert_true(pt_impair_take(&queue, (pt_ns)(i + 1) * 5120, &d));
        pt_impair_done(&queue, &d);
    }
    assert_int_equal(record.departed_bytes, 4000 * 64);
    end();
}

static void every_nth_is_lost_and_duplicated(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.loss = {.kind = PT_CHANCE_EVERY, .every = 100},
                                  .dup = {.kind = PT_CHANCE_EVERY, .every = 33}};
    begin(&spec);
    uint32_t passed = 0;
    for (uint32_t i = 1; i <= 10000; i++) {
        int wants = i % 100 == 0 ? 0 : ++passed % 33 == 0 ? 2 : 1;
        assert_int_equal(offer(i, i), wants);
        for (int copy = 0; copy < wants; copy++) {
            pt_ns at;
            assert_int_equal(leave(&at), i);
        }
    }
    assert_int_equal(record.lost, 100);
    assert_int_equal(record.duplicated, 300);
    assert_int_equal(record.reordered, 0);
    end();
}

static void random_loss_has_its_share(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.loss = {.kind = PT_CHANCE_RANDOM, .p = 0.01}};
    begin(&spec);
    for (uint32_t i = 0; i < DRAWS; i++) {
        pt_ns at;
        if (offer(i, i))
            leave(&at);
    }
    assert_share(record.lost, DRAWS, 0.01, "loss");
    end();
}

static void burst_loss_has_its_share_and_its_runs(void **state)
{
    (void)state;
    double p = 0.02, r = 0.25;
    struct pt_impair_spec spec = {.loss = {.kind = PT_CHANCE_BURST, .p = p, .r = r}};
    uint64_t runs = 0;
    bool lost_before = false;
    begin(&spec);
    for (uint32_t i = 0; i < DRAWS; i++) {
        pt_ns at;
        bool lost = !offer(i, i);
        runs += lost && !lost_before;
        lost_before = lost;
        if (!lost)
            leave(&at);
    }
    /* A two-state chain's samples are correlated by c = 1 - p - r: the variance of its mean grows
     * by (1 + c) / (1 - c). Runs are geometric with mean 1/r and variance (1 - r) / r^2. */
    double share = p / (p + r), c = 1 - p - r;
    double error = sqrt(share * (1 - share) / DRAWS * (1 + c) / (1 - c));
    assert_near((double)record.lost / DRAWS, share, SIGMA * error, "share lost");
    double run = (double)record.lost / (double)runs;
    assert_near(run, 1 / r, SIGMA * sqrt((1 - r) / (r * r) / (double)runs), "mean run");
    end();
}

static void reorders_by_packets(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.reorder = {.every = 5, .by_packets = 3}};
    const uint32_t order[] = {1, 2, 3, 4, 6, 7, 8, 5, 9, 11, 12, 13, 10, 14, 16};
    begin(&spec);
    uint32_t taken = 0;
    for (uint32_t i = 1; i <= 16; i++) {
        pt_ns at;
        offer(i * PT_MS, i);
        while (pt_impair_next(&queue) <= i * PT_MS) {
            assert_int_equal(leave(&at), order[taken++]);
            assert_int_equal(at, i * PT_MS);
        }
    }
    assert_int_equal(taken, PT_COUNT(order));
    /* 15 is held and only one packet followed: it leaves at the end of its patience, still late. */
    pt_ns at;
    assert_int_equal(leave(&at), 15);
    assert_int_equal(at, 15 * PT_MS + PT_IMPAIR_HOLD_NS);
    assert_int_equal(record.held, 3);
    assert_int_equal(record.reordered, 3);
    end();
}

static void reorders_by_time(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.reorder = {.every = 10, .by_ns = 2500 * PT_US}};
    begin(&spec);
    for (uint32_t i = 1; i <= 20; i++)
        offer(i * PT_MS, i);
    const uint32_t order[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  11,
                              12, 10, 13, 14, 15, 16, 17, 18, 19, 20};
    for (uint32_t i = 0; i < PT_COUNT(order); i++) {
        pt_ns at;
        assert_int_equal(leave(&at), order[i]);
    }
    /* 20 was held too, but nothing came behind it. */
    assert_int_equal(record.held, 2);
    assert_int_equal(record.reordered, 1);
    end();
}

static void flows_are_numbered_apart(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.reorder = {.every = 2, .by_packets = 1}};
    struct pt_impair_flow a = {0}, b = {0};
    begin(&spec);
    /* a1 b1 a2 b2 … with every b held behind the next a: no flow sees a change of order. */
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(pt_impair_offer(&queue, i, i % 2 ? &b : &a, NULL, 0, "x", 1), 1);
    }
    struct pt_departure d;
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(pt_impair_take(&queue, PT_NS_MAX - 1, &d));
        pt_impair_done(&queue, &d);
    }
    assert_int_equal(record.held, 50);
    assert_int_equal(record.reordered, 0);
    end();
}

static void keeps_order_unless_asked(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.delay = {.kind = PT_DELAY_UNIFORM, .a = 0, .b = 10 * PT_MS},
                                  .overtake = false};
    for (int overtake = 0; overtake < 2; overtake++) {
        pt_ns at, last = 0;
        uint32_t expected = 0, moved = 0;
        spec.overtake = overtake;
        begin(&spec);
        for (uint32_t i = 0; i < 50000; i++) {
            offer(i * PT_MS, i);
            while (pt_impair_next(&queue) <= i * PT_MS) {
                moved += leave(&at) != expected++;
                assert_true(at >= last);
                last = at;
            }
        }
        while (pt_impair_queued(&queue))
            moved += leave(&at) != expected++;
        if (overtake) {
            assert_true(moved > 0 && record.reordered > 0);
            assert_near(pt_hist_mean(&record.delay), 5e6, SIGMA * 1e7 / sqrt(12.0 * 50000),
                        "independent delays keep their mean");
        } else {
            assert_int_equal(moved, 0);
            assert_int_equal(record.reordered, 0);
            assert_true(pt_hist_mean(&record.delay) > 5.5e6);
        }
        end();
    }
}

static void counts_what_finds_no_slot(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.delay = {.kind = PT_DELAY_FIXED, .a = PT_S},
                                  .dup = {.kind = PT_CHANCE_EVERY, .every = SLOTS}};
    begin(&spec);
    /* The packet that would be doubled finds one slot, not two: both copies are dropped. */
    for (uint32_t i = 0; i < SLOTS - 1; i++)
        assert_int_equal(offer(i, i), 1);
    assert_int_equal(offer(SLOTS, SLOTS), 0);
    assert_int_equal(offer(SLOTS, SLOTS), 1);
    assert_int_equal(offer(SLOTS, SLOTS), 0);
    assert_int_equal(record.queue_dropped, 2);
    assert_int_equal(record.duplicated, 0);
    uint8_t large[65] = {0};
    assert_int_equal(pt_impair_offer(&queue, SLOTS, NULL, NULL, 0, large, sizeof(large)),
                     -EMSGSIZE);
    pt_ns at;
    while (pt_impair_queued(&queue))
        leave(&at);
    end();
}

static void forgets_a_flow(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.delay = {.kind = PT_DELAY_UNIFORM, .a = 0, .b = PT_S},
                                  .reorder = {.every = 20, .by_packets = 10},
                                  .overtake = true};
    struct pt_impair_flow stays = {0}, goes = {0};
    begin(&spec);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(pt_impair_offer(&queue, i, i % 3 ? &stays : &goes, NULL, 0, &i, sizeof(i)),
                         1);
    pt_impair_forget(&queue, &goes);
    assert_int_equal(record.forgotten, 334);
    assert_int_equal(pt_impair_queued(&queue), 666);
    pt_ns last = 0, at;
    while (pt_impair_queued(&queue)) {
        assert_int_not_equal(leave(&at) % 3, 0);
        assert_true(at >= last);
        last = at;
    }
    end();
}

static void streams_are_never_dropped(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {
        .rate = {.unit = PT_RATE_BITS, .per_s = 8000000, .queue_ns = 10 * PT_MS}};
    struct pt_err e = {0};
    uint8_t chunk[1000];
    pt_ns now = 0;
    uint32_t offered = 0, left = 0;
    memset(&record, 0, sizeof(record));
    assert_int_equal(pt_impair_check_stream(&spec, &e), 0);
    assert_int_equal(pt_impair_queue_init(&queue, &spec, &record, 0, true, 64, 1000, &e), 0);
    /* A sender that is always ready; 1 ms per chunk; the queue holds ten and the one in flight. */
    while (left < 1000) {
        struct pt_departure d;
        while (pt_impair_reads(&queue, now, 1000) && offered < 1000) {
            memset(chunk, (int)(offered++ & 0xff), sizeof(chunk));
            assert_int_equal(pt_impair_offer(&queue, now, NULL, NULL, 0, chunk, sizeof(chunk)), 1);
        }
        assert_true(pt_impair_queued(&queue) <= 11);
        now = pt_impair_next(&queue);
        assert_true(pt_impair_take(&queue, now, &d));
        assert_int_equal(d.bytes[999], left & 0xff);
        pt_impair_done(&queue, &d);
        assert_int_equal(now, ++left * PT_MS);
    }
    assert_int_equal(record.departed, 1000);
    assert_int_equal(record.rate_dropped + record.queue_dropped, 0);
    pt_impair_queue_fini(&queue);

    spec = (struct pt_impair_spec){.delay = {.kind = PT_DELAY_FIXED, .a = PT_S}};
    assert_int_equal(pt_impair_queue_init(&queue, &spec, &record, 0, true, 1, 1000, &e), 0);
    assert_int_equal(pt_impair_offer(&queue, 0, NULL, NULL, 0, chunk, 1000), 1);
    assert_false(pt_impair_reads(&queue, 0, 1000));
    assert_int_equal(pt_impair_offer(&queue, 0, NULL, NULL, 0, chunk, 1000), -ENOBUFS);
    pt_impair_queue_fini(&queue);
}

static void refuses_nonsense(void **state)
{
    (void)state;
    const struct pt_impair_spec bad[] = {
        {.delay = {.kind = PT_DELAY_FIXED, .a = -1}},
        {.delay = {.kind = PT_DELAY_UNIFORM, .a = 2, .b = 1}},
        {.delay = {.kind = PT_DELAY_TABLE, .count = 0}},
        {.delay = {.kind = PT_DELAY_TABLE, .count = 1, .rows = {{1, 0}}}},
        {.stall = {.length = PT_S, .every = PT_S}},
        {.loss = {.kind = PT_CHANCE_RANDOM, .p = 1.5}},
        {.loss = {.kind = PT_CHANCE_BURST, .p = 0.1, .r = 0}},
        {.dup = {.kind = PT_CHANCE_BURST, .p = 0.1, .r = 0.1}},
        {.dup = {.kind = PT_CHANCE_EVERY, .every = 0}},
        {.reorder = {.every = 3, .by_packets = 3}},
        {.reorder = {.every = 3}},
        {.rate = {.unit = PT_RATE_BITS, .per_s = 0}},
        {.clock_drift_ppm = (double)NAN},
    };
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        struct pt_err e = {0};
        if (pt_impair_check(&bad[i], &e) != -EINVAL || !e.text[0])
            fail_msg("spec %zu was accepted", i);
    }
    struct pt_err e = {0};
    struct pt_impair_spec loss = {.loss = {.kind = PT_CHANCE_RANDOM, .p = 0.5}};
    struct pt_impair_spec late = {.reorder = {.every = 3, .by_packets = 1}};
    assert_int_equal(pt_impair_check_stream(&loss, &e), -EINVAL);
    assert_non_null(strstr(e.text, "loss"));
    assert_int_equal(pt_impair_check_stream(&late, &e), -EINVAL);
    assert_non_null(strstr(e.text, "reorder"));
}

static void clock_is_off_and_drifts(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.clock_offset = -3 * PT_MS, .clock_drift_ppm = 50};
    assert_int_equal(pt_impair_clock(&spec, 10 * PT_S, 10 * PT_S), 10 * PT_S - 3 * PT_MS);
    assert_int_equal(pt_impair_clock(&spec, 10 * PT_S, 30 * PT_S), 30 * PT_S - 3 * PT_MS + PT_MS);
    assert_false(pt_impair_active(&spec));
}

static struct pt_impair_spec random_spec(void)
{
    struct pt_impair_spec spec = {.delay = {.kind = (enum pt_delay_kind)pt_rng_below(&rng, 5),
                                            .a = (pt_ns)pt_rng_below(&rng, 5 * PT_MS),
                                            .b = 5 * PT_MS + (pt_ns)pt_rng_below(&rng, 5 * PT_MS)},
                                  .loss = {.kind = (enum pt_chance_kind)pt_rng_below(&rng, 4),
                                           .p = pt_rng_unit(&rng) / 4,
                                           .r = 0.1 + pt_rng_unit(&rng) / 2,
                                           .every = 2 + pt_rng_below(&rng, 50)},
                                  .dup = {.kind = (enum pt_chance_kind)pt_rng_below(&rng, 3),
                                          .p = pt_rng_unit(&rng) / 4,
                                          .every = 2 + pt_rng_below(&rng, 50)},
                                  .overtake = pt_rng_below(&rng, 2)};
    if (pt_rng_below(&rng, 2))
        spec.stall = (struct pt_stall){.length = 20 * PT_MS, .every = 100 * PT_MS};
    if (pt_rng_below(&rng, 2))
        spec.reorder = (struct pt_reorder){.every = 5 + pt_rng_below(&rng, 50), .by_packets = 4};
    else if (pt_rng_below(&rng, 2))
        spec.reorder = (struct pt_reorder){.every = 1 + pt_rng_below(&rng, 50), .by_ns = 3 * PT_MS};
    if (pt_rng_below(&rng, 2))
        spec.rate = (struct pt_rate_cap){.unit = (enum pt_rate_unit)(1 + pt_rng_below(&rng, 2)),
                                         .per_s = 500 + pt_rng_below(&rng, 100000)};
    return spec;
}

/* Whatever the spec: every packet leaves as often as its verdict said, never before it came, in the
 * order of the departures, and the books balance. */
static void books_balance_for_any_spec(void **state)
{
    (void)state;
    enum { PACKETS = 3000 };
    static int copies[PACKETS];
    static pt_ns came[PACKETS];
    for (int round = 0; round < 100; round++) {
        struct pt_impair_spec spec = random_spec();
        pt_ns now = 1, at, last = 0;
        uint64_t bytes = 0;
        begin(&spec);
        for (uint32_t i = 0; i < PACKETS || pt_impair_queued(&queue);) {
            if (i == PACKETS || pt_impair_next(&queue) <= now) {
                uint32_t number = leave(&at);
                assert_true(at >= came[number] && at >= last);
                last = at;
                assert_true(--copies[number] >= 0);
                bytes += sizeof(number);
            } else {
                came[i] = now;
                copies[i] = offer(now, i);
                now += (pt_ns)pt_rng_exp(&rng, (double)PT_MS);
                i++;
            }
        }
        for (uint32_t i = 0; i < PACKETS; i++)
            assert_int_equal(copies[i], 0);
        assert_int_equal(record.departed_bytes, bytes);
        assert_int_equal(record.offered, PACKETS);
        if (!spec.reorder.every && !spec.overtake)
            assert_int_equal(record.reordered, 0);
        end();
    }
}

static void same_seed_same_path(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.delay = {.kind = PT_DELAY_EXP, .a = PT_MS},
                                  .loss = {.kind = PT_CHANCE_RANDOM, .p = 0.3},
                                  .seed = 42};
    struct pt_impair a, b, other;
    memset(&record, 0, sizeof(record));
    pt_impair_init(&a, &spec, &record, 3);
    pt_impair_init(&b, &spec, &record, 3);
    pt_impair_init(&other, &spec, &record, 4);
    bool differs = false;
    for (pt_ns now = 0; now < PT_S; now += PT_MS) {
        struct pt_verdict x, y, z;
        pt_impair_packet(&a, now, 10, &x);
        pt_impair_packet(&b, now, 10, &y);
        pt_impair_packet(&other, now, 10, &z);
        assert_int_equal(x.at, y.at);
        assert_int_equal(x.fate, y.fate);
        differs |= x.fate != z.fate;
    }
    assert_true(differs);
}

static void ledger_keeps_what_processes_leave(void **state)
{
    (void)state;
    struct pt_impair_ledger *ledger;
    struct pt_err e = {0};
    uint64_t salt;
    assert_int_equal(pt_impair_ledger_open(&ledger, &e), 0);
    for (uint64_t i = 0; i < 3; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct pt_impair_record *mine = pt_impair_claim(ledger, &salt);
            if (!mine)
                _exit(1);
            mine->offered += 10;
            pt_hist_record(&mine->delay, 1000);
            _exit(salt == i ? 0 : 2); /* without giving it back */
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    struct pt_impair_record *mine[PT_IMPAIR_PATHS];
    for (size_t i = 0; i < PT_IMPAIR_PATHS; i++)
        assert_non_null(mine[i] = pt_impair_claim(ledger, &salt));
    assert_null(pt_impair_claim(ledger, &salt));
    pt_impair_give_back(ledger, mine[7]);
    assert_ptr_equal(pt_impair_claim(ledger, &salt), mine[7]);
    assert_int_equal(pt_impair_ledger_total(ledger, &record), 3 + PT_IMPAIR_PATHS + 1);
    assert_int_equal(record.offered, 30);
    assert_int_equal(record.delay.count, 3);
    pt_impair_ledger_close(ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_delay_is_exact),
        cmocka_unit_test(uniform_delay_has_its_moments),
        cmocka_unit_test(normal_delay_has_its_moments),
        cmocka_unit_test(exponential_delay_has_its_moments),
        cmocka_unit_test(table_delay_follows_its_weights),
        cmocka_unit_test(periodic_stall_is_exact),
        cmocka_unit_test(single_stall_happens_once),
        cmocka_unit_test(rate_cap_is_exact_and_counts_its_drops),
        cmocka_unit_test(bit_rate_counts_payload),
        cmocka_unit_test(every_nth_is_lost_and_duplicated),
        cmocka_unit_test(random_loss_has_its_share),
        cmocka_unit_test(burst_loss_has_its_share_and_its_runs),
        cmocka_unit_test(reorders_by_packets),
        cmocka_unit_test(reorders_by_time),
        cmocka_unit_test(flows_are_numbered_apart),
        cmocka_unit_test(keeps_order_unless_asked),
        cmocka_unit_test(counts_what_finds_no_slot),
        cmocka_unit_test(forgets_a_flow),
        cmocka_unit_test(streams_are_never_dropped),
        cmocka_unit_test(refuses_nonsense),
        cmocka_unit_test(clock_is_off_and_drifts),
        cmocka_unit_test(books_balance_for_any_spec),
        cmocka_unit_test(same_seed_same_path),
        cmocka_unit_test(ledger_keeps_what_processes_leave),
    };
    pt_rng_init(&rng, test_seed());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
