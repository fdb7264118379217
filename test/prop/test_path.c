/* test_path.c: whatever the counters say, the waterfall's books balance.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/rng.h"
#include "host/path.h"

#include <string.h>

/* Unknown, nothing, a little, or absurdly much. */
static int64_t some(struct pt_rng *g)
{
    switch (pt_rng_below(g, 4)) {
    case 0:
        return -1;
    case 1:
        return 0;
    case 2:
        return (int64_t)pt_rng_below(g, 1000);
    default:
        return (int64_t)pt_rng_below(g, 1ULL << 53);
    }
}

static void random_counters(struct pt_rng *g, struct pt_netstat *n)
{
    pt_netstat_clear(n);
    for (int i = 0; i < PT_NETSTAT_COUNT; i++)
        n->counter[i] = some(g);
    n->devs = 1;
    n->dev[0] = (struct pt_netdev){.name = "eth0",
                                   .rx_packets = some(g),
                                   .rx_errors = some(g),
                                   .rx_dropped = some(g),
                                   .rx_fifo = some(g),
                                   .tx_packets = some(g),
                                   .tx_errors = some(g),
                                   .tx_dropped = some(g)};
    n->softnet_all.dropped = some(g);
}

static void books_balance(void **state)
{
    (void)state;
    struct pt_rng g;
    pt_rng_init(&g, test_seed());
    static struct pt_netstat tx, rx;
    for (int i = 0; i < 20000; i++) {
        random_counters(&g, &tx);
        random_counters(&g, &rx);
        uint64_t attempted = pt_rng_below(&g, 1ULL << pt_rng_below(&g, 40));
        uint64_t accepted = attempted - pt_rng_below(&g, attempted + 1);
        struct pt_path_sender s = {.attempted = attempted,
                                   .attempted_bytes = attempted * 9,
                                   .accepted = accepted,
                                   .accepted_bytes = accepted * 9,
                                   .net = pt_rng_below(&g, 4) ? &tx : NULL,
                                   .dev = pt_rng_below(&g, 4) ? "eth0" : "gone",
                                   .qdisc_drops = some(&g),
                                   .gso = (unsigned)pt_rng_below(&g, 129),
                                   .via = pt_rng_below(&g, 4) ? NULL : "AF_XDP"};
        struct pt_path_receiver r = {.received = pt_rng_below(&g, accepted + accepted / 8 + 1),
                                     .unread = some(&g),
                                     .socket_drops = some(&g),
                                     .net = pt_rng_below(&g, 4) ? &rx : NULL,
                                     .dev = pt_rng_below(&g, 4) ? "eth0" : NULL,
                                     .gro = pt_rng_below(&g, 2),
                                     .via = pt_rng_below(&g, 4) ? NULL : "XDP"};
        r.received_bytes = r.received * 9;
        struct pt_path p;
        pt_path_build(&p, &s, &r, pt_rng_below(&g, 2));
        int64_t lost = 0;
        for (int k = 0; k < PT_PATH_STEPS; k++) {
            const struct pt_path_stage *at = &p.stage[k];
            assert_true(at->lost_here >= 0 && at->packets >= 0);
            assert_int_equal(at->bytes, at->packets * 9);
            assert_true(at->evidence[0] && memchr(at->evidence, 0, sizeof(at->evidence)));
            if (k && (k < PT_PATH_APP_RECEIVED || r.received <= accepted))
                assert_int_equal(at->packets, p.stage[k - 1].packets - at->lost_here);
            lost += at->lost_here;
        }
        uint64_t counted = r.received < accepted ? r.received : accepted;
        assert_int_equal(lost, attempted - counted);
        assert_int_equal(p.stage[PT_PATH_APP_RECEIVED].packets, r.received);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(books_balance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
