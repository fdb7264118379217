/* test_netstat.c: counters from captured /proc/net texts, whole, old, odd and hostile.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "os/netstat.h"

#include <stdlib.h>
#include <string.h>

static struct pt_netstat s, a, b;

/* Linux 6.18. */
static const char dev[] =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
    "fifo colls carrier compressed\n"
    "    lo: 668828215182 45729421    1    2    3     4          5         6 668828215183 45729422 "
    " "
    "  7    8    9    10       11         12\n"
    "eth0:26751304     826    0    0    0     0          0         0    48926     530    0    0    "
    "0     0       0          0\n";

static const char snmp[] =
    "Ip: Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos "
    "InDiscards InDelivers OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs "
    "ReasmFails FragOKs FragFails FragCreates OutTransmits\n"
    "Ip: 2 64 45689006 0 0 0 0 21 45689007 44702879 22 23 0 24 25 26 27 28 29 44702879\n"
    "IcmpMsg: InType3 OutType3\n"
    "IcmpMsg: 80 80\n"
    "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets "
    "CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n"
    "Tcp: 1 200 120000 -1 103 104 105 106 5 1000 1001 1002 0 107 0\n"
    "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors "
    "IgnoredMulti MemErrors\n"
    "Udp: 18446744073709551615 31 32 33 34 35 36 37 38\n"
    "UdpLite: InDatagrams NoPorts\n"
    "UdpLite: 7 7\n";

static const char snmp6[] = "Ip6InReceives                   \t26000\n"
                            "Ip6FragCreates                  \t8\n"
                            "Icmp6InMsgs                     \t5\n"
                            "Udp6InDatagrams                 \t18219\n"
                            "Udp6RcvbufErrors                \t4\n"
                            "UdpLite6InDatagrams             \t99\n";

static const char netstat[] =
    "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPRcvQDrop\n"
    "TcpExt: 0 11 12 13 14\n"
    "IpExt: InNoRoutes InTruncatedPkts\n"
    "IpExt: 0 0\n";

static const char softnet[] =
    "02d7d812 00000001 00000007 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
    "00000000 00000000 00000000 00000000 00000000\n"
    "01667a01 00000002 00000002 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
    "00000000 00000000 00000005 00000000 00000000\n";

static int64_t counter(const char *name)
{
    int i = pt_netstat_find(name);
    assert_true(i >= 0);
    assert_string_equal(pt_netstat_name((enum pt_netstat_counter)i), name);
    return s.counter[i];
}

static void a_whole_capture_is_read(void **state)
{
    (void)state;
    pt_netstat_clear(&s);
    pt_netstat_parse_dev(&s, dev);
    pt_netstat_parse_tables(&s, snmp);
    pt_netstat_parse_tables(&s, netstat);
    pt_netstat_parse_snmp6(&s, snmp6);
    pt_netstat_parse_softnet(&s, softnet);
    assert_int_equal(s.devs, 2);
    const struct pt_netdev *lo = pt_netstat_dev(&s, "lo"), *eth = pt_netstat_dev(&s, "eth0");
    assert_true(lo && eth);
    assert_int_equal(lo->rx_bytes, 668828215182);
    assert_int_equal(lo->rx_packets, 45729421);
    assert_int_equal(lo->rx_errors, 1);
    assert_int_equal(lo->rx_dropped, 2);
    assert_int_equal(lo->rx_fifo, 3);
    assert_int_equal(lo->rx_compressed, 5);
    assert_int_equal(lo->tx_bytes, 668828215183);
    assert_int_equal(lo->tx_packets, 45729422);
    assert_int_equal(lo->tx_errors, 7);
    assert_int_equal(lo->tx_dropped, 8);
    assert_int_equal(lo->tx_fifo, 9);
    assert_int_equal(lo->tx_compressed, 12);
    assert_int_equal(eth->rx_bytes, 26751304);
    assert_int_equal(eth->tx_packets, 530);
    assert_null(pt_netstat_dev(&s, "eth"));
    assert_int_equal(counter("Ip.InReceives"), 45689006);
    assert_int_equal(counter("Ip.InDelivers"), 45689007);
    assert_int_equal(counter("Ip.FragCreates"), 29);
    assert_int_equal(counter("Tcp.RetransSegs"), 1002);
    assert_int_equal(counter("Tcp.OutRsts"), 107);
    assert_int_equal(counter("Udp.RcvbufErrors"), 34);
    assert_int_equal(counter("Udp.MemErrors"), 38);
    assert_int_equal(counter("Udp.InDatagrams"), -1); /* does not fit */
    assert_int_equal(counter("Ip6.InReceives"), 26000);
    assert_int_equal(counter("Ip6.FragCreates"), 8);
    assert_int_equal(counter("Udp6.InDatagrams"), 18219);
    assert_int_equal(counter("TcpExt.ListenOverflows"), 11);
    assert_int_equal(counter("TcpExt.TCPRcvQDrop"), 14);
    assert_int_equal(counter("TcpExt.TCPOFODrop"), -1); /* not in this text */
    assert_int_equal(s.cpus, 6);
    assert_int_equal(s.softnet[0].processed, 0x02d7d812);
    assert_int_equal(s.softnet[5].dropped, 2);
    assert_int_equal(s.softnet[1].processed, -1);
    assert_int_equal(s.softnet_all.dropped, 3);
    assert_int_equal(s.softnet_all.squeezed, 9);
    assert_int_equal(
        pt_netstat_sum(&s, PT_NETSTAT_UDP4_RCVBUF_ERRORS, PT_NETSTAT_UDP6_RCVBUF_ERRORS), 38);
    assert_int_equal(pt_netstat_sum(&s, PT_NETSTAT_UDP4_MEM_ERRORS, PT_NETSTAT_UDP6_MEM_ERRORS),
                     38);
    assert_int_equal(pt_netstat_sum(&s, PT_NETSTAT_UDP4_IN_DATAGRAMS, PT_NETSTAT_UDP6_MEM_ERRORS),
                     -1);
}

static void names_find_their_counters(void **state)
{
    (void)state;
    for (int i = 0; i < PT_NETSTAT_COUNT; i++)
        assert_int_equal(pt_netstat_find(pt_netstat_name((enum pt_netstat_counter)i)), i);
    assert_int_equal(pt_netstat_find("Udp"), -1);
    assert_int_equal(pt_netstat_find(""), -1);
    assert_string_equal(pt_netstat_name((enum pt_netstat_counter)(PT_NETSTAT_COUNT + 7)), "");
}

static void odd_texts_do_no_harm(void **state)
{
    (void)state;
    pt_netstat_clear(&s);
    /* More names than values, values of another table, no newline at the end, a table cut off. */
    pt_netstat_parse_tables(&s,
                            "Udp: InDatagrams NoPorts InErrors\nUdp: 1 x\n"
                            "Ip: InReceives\nTcp: InSegs\nTcp: 5\n"
                            "TcpExt: ListenDrops\nTcpExt: -3\n: \n:\n\n\nIp6: InReceives\nIp6: 9");
    assert_int_equal(counter("Udp.InDatagrams"), 1);
    assert_int_equal(counter("Udp.NoPorts"), -1);
    assert_int_equal(counter("Udp.InErrors"), -1);
    assert_int_equal(counter("Ip.InReceives"), -1);
    assert_int_equal(counter("Tcp.InSegs"), 5);
    assert_int_equal(counter("TcpExt.ListenDrops"), -1);
    assert_int_equal(counter("Ip6.InReceives"), 9);

    pt_netstat_parse_dev(&s, "a:1 2 3\n"                                   /* short */
                             "  :1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n" /* no name */
                             "name-of-16-bytes:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n" /* long */
                             "b:1 2 3 4 5 6 7 8 9 10 11 12 -13 14 15 16\n" /* negative */
                             "eth0:1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 extra\n" /* alias */
                             "c:99999999999999999999 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                             "d:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16");
    assert_int_equal(s.devs, 2);
    assert_string_equal(s.dev[0].name, "eth0:1");
    assert_int_equal(s.dev[0].tx_compressed, 16);
    assert_string_equal(s.dev[1].name, "d");

    pt_netstat_parse_snmp6(&s, "Udp6\t1\nUdp6InErrors\nUdp6NoPorts x\n6\t6\nUdp6MemErrors 3");
    assert_int_equal(counter("Udp6.InErrors"), -1);
    assert_int_equal(counter("Udp6.NoPorts"), -1);
    assert_int_equal(counter("Udp6.MemErrors"), 3);

    /* Nine columns, as before 2.6.36; a CPU number beyond all bounds; rubbish. */
    pt_netstat_parse_softnet(&s, "00000010 00000001 00000002 0 0 0 0 0 0\nxyz\n"
                                 "1 2 3 0 0 0 0 0 0 0 0 0 ffffffff\n\n");
    assert_int_equal(s.cpus, 1);
    assert_int_equal(s.softnet_all.processed, 16);
    assert_int_equal(s.softnet_all.dropped, 1);
    pt_netstat_clear(&s);
    pt_netstat_parse_softnet(&s, "");
    assert_int_equal(s.softnet_all.dropped, -1);
}

/* Every text, cut anywhere and with any byte replaced, is read without harm. */
static void broken_texts_do_no_harm(void **state)
{
    (void)state;
    static void (*const parsers[])(struct pt_netstat *, const char *) = {
        pt_netstat_parse_dev, pt_netstat_parse_tables, pt_netstat_parse_snmp6,
        pt_netstat_parse_softnet};
    static const char *const texts[] = {dev, snmp, snmp6, softnet};
    static const char bytes[] = {'\n', ':', ' ', '9', '\t', '\x80', 'x'};
    for (size_t t = 0; t < PT_COUNT(texts); t++) {
        size_t n = strlen(texts[t]);
        for (size_t i = 0; i < n; i++) {
            char *copy = malloc(n + 1);
            assert_non_null(copy);
            memcpy(copy, texts[t], n + 1);
            copy[i] = bytes[i % sizeof(bytes)];
            pt_netstat_clear(&s);
            parsers[t](&s, copy);
            copy[i] = 0;
            copy = realloc(copy, i + 1);
            parsers[t](&s, copy);
            free(copy);
            for (unsigned d = 0; d < s.devs; d++)
                assert_true(s.dev[d].rx_bytes >= 0 && s.dev[d].name[0]);
            for (int c = 0; c < PT_NETSTAT_COUNT; c++)
                assert_true(s.counter[c] >= -1);
        }
    }
}

static void more_interfaces_than_fit_are_counted(void **state)
{
    (void)state;
    pt_netstat_clear(&s);
    for (int i = 0; i < PT_NETDEV_MAX + 5; i++)
        pt_netstat_parse_dev(&s, "x: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
    assert_int_equal(s.devs, PT_NETDEV_MAX);
    assert_int_equal(s.devs_left_out, 5);
}

static void differences_are_never_negative(void **state)
{
    (void)state;
    pt_netstat_clear(&a);
    pt_netstat_clear(&b);
    a.at = 5;
    b.at = 105;
    pt_netstat_parse_tables(&a, "Udp: InDatagrams NoPorts InErrors\nUdp: 100 100 1\n");
    pt_netstat_parse_tables(&b, "Udp: InDatagrams NoPorts OutDatagrams\nUdp: 150 99 7\n");
    pt_netstat_parse_dev(&a, "lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                             "gone: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
    pt_netstat_parse_dev(&b, "new: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                             "lo: 11 1 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
    pt_netstat_parse_softnet(&a, "fffffff0 fffffffe 00000000\n00000001 00000000 00000000\n");
    pt_netstat_parse_softnet(&b, "00000010 00000001 00000000\n00000002 00000000 00000000\n");
    pt_netstat_sub(&s, &b, &a);
    assert_int_equal(s.at, 100);
    assert_int_equal(counter("Udp.InDatagrams"), 50);
    assert_int_equal(counter("Udp.NoPorts"), -1);
    assert_int_equal(counter("Udp.InErrors"), -1);
    assert_int_equal(counter("Udp.OutDatagrams"), -1);
    assert_int_equal(s.devs, 1);
    assert_string_equal(s.dev[0].name, "lo");
    assert_int_equal(s.dev[0].rx_bytes, 10);
    assert_int_equal(s.dev[0].rx_packets, -1);
    assert_int_equal(s.dev[0].tx_bytes, 0);
    assert_int_equal(s.softnet[0].processed, 0x20);
    assert_int_equal(s.softnet_all.dropped, 3);
    assert_int_equal(s.softnet_all.processed, 0x21);
}

static void this_machine_is_read(void **state)
{
    (void)state;
    struct pt_err e = {0};
    if (pt_netstat_read(&s, &e) != 0)
        fail_msg("%s", e.text);
    assert_true(s.at > 0);
    assert_non_null(pt_netstat_dev(&s, "lo"));
    assert_true(counter("Udp.InDatagrams") >= 0);
    assert_true(counter("Tcp.RetransSegs") >= 0);
    assert_true(s.softnet_all.processed >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_capture_is_read),
        cmocka_unit_test(names_find_their_counters),
        cmocka_unit_test(odd_texts_do_no_harm),
        cmocka_unit_test(broken_texts_do_no_harm),
        cmocka_unit_test(more_interfaces_than_fit_are_counted),
        cmocka_unit_test(differences_are_never_negative),
        cmocka_unit_test(this_machine_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
