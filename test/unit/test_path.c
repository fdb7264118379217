/* test_path.c: losses are booked where a counter saw them, never twice, never negative.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "host/path.h"

#include <string.h>

static struct pt_netstat tx, rx;
static struct pt_path p;

/* 1000 datagrams of 14 B sent and accepted over eth0, counters known and quiet. */
static struct pt_path_sender sender(void)
{
    pt_netstat_clear(&tx);
    for (int i = 0; i < PT_NETSTAT_COUNT; i++)
        tx.counter[i] = 0;
    tx.devs = 1;
    tx.dev[0] = (struct pt_netdev){.name = "eth0", .tx_packets = 1000, .tx_bytes = 56000};
    return (struct pt_path_sender){.attempted = 1000,
                                   .attempted_bytes = 14000,
                                   .accepted = 1000,
                                   .accepted_bytes = 14000,
                                   .net = &tx,
                                   .dev = "eth0",
                                   .qdisc_drops = 0};
}

static struct pt_path_receiver receiver(uint64_t received)
{
    pt_netstat_clear(&rx);
    for (int i = 0; i < PT_NETSTAT_COUNT; i++)
        rx.counter[i] = 0;
    rx.softnet_all = (struct pt_softnet){0, 0, 0};
    rx.devs = 1;
    rx.dev[0] = (struct pt_netdev){.name = "eth1", .rx_packets = (int64_t)received};
    return (struct pt_path_receiver){.received = received,
                                     .received_bytes = received * 14,
                                     .unread = 0,
                                     .socket_drops = 0,
                                     .net = &rx,
                                     .dev = "eth1"};
}

static void expect_losses(int64_t kernel, int64_t nic, int64_t wire, int64_t delivered, int64_t app)
{
    int64_t lost[] = {0, kernel, nic, wire, delivered, app};
    for (int i = 0; i < PT_PATH_STEPS; i++)
        if (p.stage[i].lost_here != lost[i])
            fail_msg("%s lost %d, expected %d: %s", pt_path_name((enum pt_path_step)i),
                     (int)p.stage[i].lost_here, (int)lost[i], p.stage[i].evidence);
    for (int i = 1; i < PT_PATH_STEPS; i++)
        assert_int_equal(p.stage[i].packets, p.stage[i - 1].packets - p.stage[i].lost_here);
}

static void assert_says(enum pt_path_step step, const char *text)
{
    if (!strstr(p.stage[step].evidence, text))
        fail_msg("%s: '%s' lacks '%s'", pt_path_name(step), p.stage[step].evidence, text);
}

static void nothing_lost(void **state)
{
    (void)state;
    struct pt_path_sender s = sender();
    struct pt_path_receiver r = receiver(1000);
    pt_path_build(&p, &s, &r, false);
    expect_losses(0, 0, 0, 0, 0);
    for (int i = 0; i < PT_PATH_STEPS; i++) {
        assert_int_equal(p.stage[i].packets, 1000);
        assert_int_equal(p.stage[i].bytes, 14000);
        assert_true(p.stage[i].evidence[0]);
    }
    assert_says(PT_PATH_NIC_SENT, "eth0 tx_packets +1000");
    assert_says(PT_PATH_NIC_RECEIVED, "eth1 rx_packets +1000");
}

static void each_loss_goes_to_its_stage(void **state)
{
    (void)state;
    struct pt_path_sender s = sender();
    struct pt_path_receiver r = receiver(500);
    s.attempted = 1100;
    s.attempted_bytes = 15400;
    tx.counter[PT_NETSTAT_UDP4_SNDBUF_ERRORS] = 100;
    s.qdisc_drops = 50;
    tx.dev[0].tx_dropped = 10;
    rx.dev[0].rx_fifo = 7;
    rx.softnet_all.dropped = 100;
    rx.dev[0].rx_dropped = 90; /* the same drops, seen from the interface */
    rx.counter[PT_NETSTAT_UDP6_IN_CSUM_ERRORS] = 3;
    r.socket_drops = 200;
    r.unread = 20;
    pt_path_build(&p, &s, &r, false);
    expect_losses(100, 60, 117, 303, 20);
    assert_int_equal(p.stage[PT_PATH_NIC_SENT].bytes, 940 * 14);
    assert_int_equal(p.stage[PT_PATH_APP_RECEIVED].bytes, 500 * 14);
    assert_says(PT_PATH_KERNEL_SENT, "refused 100");
    assert_says(PT_PATH_KERNEL_SENT, "Udp.SndbufErrors +100");
    assert_says(PT_PATH_NIC_SENT, "queueing discipline dropped 50");
    assert_says(PT_PATH_NIC_SENT, "tx_dropped +10");
    assert_says(PT_PATH_NIC_RECEIVED, "rx_fifo +7");
    assert_says(PT_PATH_NIC_RECEIVED, "110 that no counter of either host explains");
    assert_says(PT_PATH_KERNEL_DELIVERED, "receive buffers full: 200");
    assert_says(PT_PATH_KERNEL_DELIVERED, "softnet dropped (whole host) +100");
    assert_says(PT_PATH_APP_RECEIVED, "20 left unread");
}

static void silent_queue_drops_are_found(void **state)
{
    (void)state;
    struct pt_path_sender s = sender();
    struct pt_path_receiver r = receiver(970);
    s.attempted = 1020; /* 20 refused: they are in SndbufErrors too */
    s.qdisc_drops = -1;
    tx.counter[PT_NETSTAT_UDP4_SNDBUF_ERRORS] = 50;
    pt_path_build(&p, &s, &r, false);
    expect_losses(20, 30, 0, 0, 0);
}

static void other_traffic_never_costs_ours(void **state)
{
    (void)state;
    struct pt_path_sender s = sender();
    struct pt_path_receiver r = receiver(995);
    tx.dev[0].tx_packets = 5000;
    tx.dev[0].tx_dropped = 4000;
    s.qdisc_drops = 4000;
    rx.dev[0].rx_packets = 9000;
    rx.softnet_all.dropped = 4000;
    r.socket_drops = -1;
    rx.counter[PT_NETSTAT_UDP4_RCVBUF_ERRORS] = 4000;
    pt_path_build(&p, &s, &r, false);
    expect_losses(0, 0, 0, 5, 0);
    assert_says(PT_PATH_NIC_SENT, "4000 of them other traffic");
    r = receiver(1000);
    rx.softnet_all.dropped = 4000;
    pt_path_build(&p, &s, &r, false);
    expect_losses(0, 0, 0, 0, 0);
}

static void super_packets_are_labelled(void **state)
{
    (void)state;
    struct pt_path_sender s = sender();
    struct pt_path_receiver r = receiver(600);
    s.gso = 100;
    tx.dev[0].tx_packets = 10;
    rx.dev[0].rx_packets = 6;
    s.qdisc_drops = 1;
    r.gro = true;
    r.socket_drops = 3;
    pt_path_build(&p, &s, &r, false);
    expect_losses(0, 100, 0, 300, 0);
    assert_says(PT_PATH_NIC_SENT, "super-packets of up to 100 datagrams");
    assert_says(PT_PATH_KERNEL_DELIVERED, "3 super-packets");
    r.gro = false; /* then the socket counts datagrams */
    r.socket_drops = 250;
    pt_path_build(&p, &s, &r, false);
    expect_losses(0, 100, 50, 250, 0);
}

static void the_loopback_counts_once(void **state)
{
    (void)state;
    struct pt_path_sender s = sender();
    struct pt_path_receiver r = receiver(900);
    strcpy(tx.dev[0].name, "lo");
    tx.dev[0].rx_packets = 1000;
    tx.counter[PT_NETSTAT_UDP4_RCVBUF_ERRORS] = 100;
    tx.softnet_all = (struct pt_softnet){0, 0, 0};
    s.dev = r.dev = "lo";
    r.net = &tx;
    r.socket_drops = 100;
    pt_path_build(&p, &s, &r, true);
    expect_losses(0, 0, 0, 100, 0);
    assert_says(PT_PATH_NIC_RECEIVED, "lo rx_packets +1000");
    assert_says(PT_PATH_NIC_RECEIVED, "sent and received at once");
}

static void a_raw_path_does_not_blame_udp(void **state)
{
    (void)state;
    struct pt_path_sender s = sender();
    struct pt_path_receiver r = receiver(990);
    s.via = "AF_PACKET";
    r.via = "AF_XDP";
    s.qdisc_drops = -1;
    r.socket_drops = -1;
    tx.counter[PT_NETSTAT_UDP4_SNDBUF_ERRORS] = 10;
    rx.counter[PT_NETSTAT_UDP4_RCVBUF_ERRORS] = 10;
    rx.counter[PT_NETSTAT_UDP4_NO_PORTS] = 10;
    pt_path_build(&p, &s, &r, false);
    expect_losses(0, 0, 10, 0, 0);
    assert_says(PT_PATH_KERNEL_SENT, "AF_PACKET took every datagram");
    assert_says(PT_PATH_KERNEL_DELIVERED, "AF_XDP takes the frames before IP");
}

static void unknown_counters_and_window_edges(void **state)
{
    (void)state;
    struct pt_path_sender s = {.attempted = 10, .accepted = 10, .qdisc_drops = -1};
    struct pt_path_receiver r = {.received = 4, .unread = -1, .socket_drops = -1};
    pt_path_build(&p, &s, &r, false);
    expect_losses(0, 0, 6, 0, 0);
    assert_says(PT_PATH_NIC_SENT, "not known");
    r.received = 13;
    r.socket_drops = 2;
    pt_path_build(&p, &s, &r, false);
    for (int i = 0; i < PT_PATH_STEPS; i++)
        assert_int_equal(p.stage[i].lost_here, 0);
    assert_int_equal(p.stage[PT_PATH_KERNEL_DELIVERED].packets, 10);
    assert_int_equal(p.stage[PT_PATH_APP_RECEIVED].packets, 13);
    assert_says(PT_PATH_APP_RECEIVED, "3 more than were sent");
}

static void the_document_gets_all_stages(void **state)
{
    (void)state;
    static const char *const names[] = {"app_sent",     "kernel_sent",      "nic_sent",
                                        "nic_received", "kernel_delivered", "app_received"};
    struct pt_path_sender s = sender();
    struct pt_path_receiver r = receiver(999);
    pt_path_build(&p, &s, &r, false);
    json_t *json = pt_path_json(&p);
    assert_int_equal(json_array_size(json), PT_COUNT(names));
    for (size_t i = 0; i < PT_COUNT(names); i++) {
        json_t *g = json_array_get(json, i);
        assert_string_equal(json_string_value(json_object_get(g, "stage")), names[i]);
        assert_int_equal(json_integer_value(json_object_get(g, "packets")), p.stage[i].packets);
        assert_int_equal(json_integer_value(json_object_get(g, "bytes")), p.stage[i].bytes);
        assert_int_equal(json_integer_value(json_object_get(g, "lost_here")), p.stage[i].lost_here);
        assert_string_equal(json_string_value(json_object_get(g, "evidence")), p.stage[i].evidence);
    }
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_lost),
        cmocka_unit_test(each_loss_goes_to_its_stage),
        cmocka_unit_test(silent_queue_drops_are_found),
        cmocka_unit_test(other_traffic_never_costs_ours),
        cmocka_unit_test(super_packets_are_labelled),
        cmocka_unit_test(the_loopback_counts_once),
        cmocka_unit_test(a_raw_path_does_not_blame_udp),
        cmocka_unit_test(unknown_counters_and_window_edges),
        cmocka_unit_test(the_document_gets_all_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
