/* test_udp.c: offload, path MTU, drop counts and timestamps on the loopback.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/sock.h"
#include "net/udp.h"
#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

struct pair {
    int to, from;
};

static const char *const families[] = {"127.0.0.1", "::1"};

static struct pair open_pair(const char *text, const struct pt_sockopts *o)
{
    struct pt_addr at;
    struct pt_err e = {0};
    assert_int_equal(pt_addr_parse(&at, text, 0, &e), 0);
    struct pair p = {.to = pt_sock_bind(&at, o, &e)};
    assert_true(p.to >= 0);
    assert_int_equal(pt_addr_local(&at, p.to), 0);
    p.from = pt_sock_connect(SOCK_DGRAM, &at, NULL, NULL, 0, &e);
    assert_true(p.from >= 0);
    return p;
}

static void close_pair(struct pair p)
{
    close(p.to);
    close(p.from);
}

static void one_send_becomes_many_datagrams(void **state)
{
    (void)state;
    unsigned most = pt_udp_gso_segments();
    assert_true(most == 64 || most == 128);
    static uint8_t buf[65536];
    for (size_t i = 0; i < sizeof(buf); i++)
        buf[i] = (uint8_t)(i * 7);
    for (size_t f = 0; f < PT_COUNT(families); f++) {
        struct pair p = open_pair(families[f], NULL);
        uint8_t got[200];
        /* The last one is short. */
        assert_int_equal(pt_udp_send_gso(p.from, buf, 250, 100, 0), 250);
        size_t at = 0;
        for (unsigned i = 0; i < 3; i++) {
            ssize_t n = recv(p.to, got, sizeof(got), MSG_DONTWAIT);
            assert_int_equal(n, i < 2 ? 100 : 50);
            assert_memory_equal(got, buf + at, (size_t)n);
            at += (size_t)n;
        }
        assert_int_equal(pt_udp_send_gso(p.from, buf, most * 10, 10, 0), most * 10);
        assert_int_equal(pt_udp_send_gso(p.from, buf, (size_t)most * 10 + 10, 10, 0), -EINVAL);
        assert_int_equal(pt_udp_send_gso(p.from, buf, 10, 65536, 0), -EINVAL);

        /* The same with the option of the socket. */
        while (recv(p.to, got, sizeof(got), MSG_DONTWAIT) >= 0)
            continue;
        assert_int_equal(pt_udp_segment(p.from, 60), 0);
        assert_int_equal(send(p.from, buf, 120, 0), 120);
        assert_int_equal(recv(p.to, got, sizeof(got), MSG_DONTWAIT), 60);
        assert_int_equal(recv(p.to, got, sizeof(got), MSG_DONTWAIT), 60);
        assert_int_equal(pt_udp_segment(p.from, 0), 0);
        assert_int_equal(send(p.from, buf, 120, 0), 120);
        assert_int_equal(recv(p.to, got, sizeof(got), MSG_DONTWAIT), 120);
        assert_int_equal(pt_udp_segment(p.from, 65536), -EINVAL);
        close_pair(p);
    }
}

static void coalesced_datagrams_tell_their_size(void **state)
{
    (void)state;
    static uint8_t buf[65536];
    for (size_t f = 0; f < PT_COUNT(families); f++) {
        struct pair p = open_pair(families[f], NULL);
        unsigned seg = 0;
        assert_int_equal(pt_udp_gro(p.to, true), 0);
        assert_int_equal(pt_udp_send_gso(p.from, buf, 6400, 100, 0), 6400);
        assert_int_equal(pt_udp_recv_gro(p.to, buf, sizeof(buf), &seg, MSG_DONTWAIT), 6400);
        assert_int_equal(seg, 100);
        assert_int_equal(send(p.from, buf, 77, 0), 77);
        assert_int_equal(pt_udp_recv_gro(p.to, buf, sizeof(buf), &seg, MSG_DONTWAIT), 77);
        assert_int_equal(seg, 77);
        assert_int_equal(pt_udp_recv_gro(p.to, buf, sizeof(buf), &seg, MSG_DONTWAIT), -EAGAIN);
        close_pair(p);
    }
}

static void a_send_carries_whole_segments(void **state)
{
    (void)state;
    assert_int_equal(pt_udp_gso_bytes(64, 14), 64 * 14);
    assert_int_equal(pt_udp_gso_bytes(128, 14), 128 * 14);
    assert_int_equal(pt_udp_gso_bytes(64, 1472), 44 * 1472);
    assert_int_equal(pt_udp_gso_bytes(64, 65507), 65507);
    assert_int_equal(pt_udp_gso_bytes(64, 65508), 0);
    assert_int_equal(pt_udp_gso_bytes(64, 0), 0);
}

static void payload_follows_the_mtu(void **state)
{
    (void)state;
    static const int headers[] = {28, 48}, ends[] = {65507, 65527};
    static uint8_t buf[65536];
    for (size_t f = 0; f < PT_COUNT(families); f++) {
        struct pair p = open_pair(families[f], NULL);
        int mtu = pt_udp_mtu(p.from), most = pt_udp_payload_max(p.from);
        assert_true(mtu >= 1280);
        int expected = mtu - headers[f];
        assert_int_equal(most, expected < ends[f] ? expected : ends[f]);
        assert_int_equal(pt_udp_fragment(p.from, false), 0);
        assert_int_equal(send(p.from, buf, (size_t)most, 0), most);
        if (most < ends[f])
            assert_int_equal(send(p.from, buf, (size_t)most + 1, 0), -1);
        assert_int_equal(pt_udp_fragment(p.from, true), 0);
        assert_int_equal(send(p.from, buf, (size_t)ends[f], 0), ends[f]);
        assert_int_equal(pt_udp_mtu(p.to), -ENOTCONN);
        close_pair(p);
    }
    /* Through a mapped address the packets are IPv4. */
    struct pair p = open_pair("::ffff:127.0.0.1", NULL);
    int expected = pt_udp_mtu(p.from) - 28;
    assert_int_equal(pt_udp_payload_max(p.from), expected < 65507 ? expected : 65507);
    close_pair(p);
}

static void drops_are_counted(void **state)
{
    (void)state;
    struct pt_sockopts small = {.rcvbuf = 2304};
    static const uint8_t buf[1000];
    struct pair p = open_pair("127.0.0.1", &small);
    assert_int_equal(pt_udp_count_drops(p.to), 0);
    assert_int_equal(pt_sock_drops(p.to), 0);
    for (unsigned i = 0; i < 50; i++)
        assert_int_equal(send(p.from, buf, sizeof(buf), 0), sizeof(buf));
    int64_t dropped = pt_sock_drops(p.to);
    uint8_t got[1000];
    int64_t arrived = 0;
    while (recv(p.to, got, sizeof(got), MSG_DONTWAIT) > 0)
        arrived++;
    assert_true(dropped > 0);
    assert_int_equal(arrived + dropped, 50);
    assert_int_equal(pt_sock_drops(-1), -EBADF);
    close_pair(p);
}

static void both_ends_are_stamped(void **state)
{
    (void)state;
    for (size_t f = 0; f < PT_COUNT(families); f++) {
        struct pair p = open_pair(families[f], NULL);
        struct pt_udp_stamp s;
        assert_int_equal(pt_udp_stamp_rx(p.to, true), 0);
        assert_int_equal(pt_udp_stamp_tx(p.from), 0);
        assert_int_equal(pt_udp_stamp_take(p.from, &s), 0);
        pt_ns last = pt_clock_realtime();
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(send(p.from, "x", 1, 0), 1);
            struct pollfd ready = {.fd = p.from, .events = 0}; /* POLLERR comes unasked */
            assert_int_equal(poll(&ready, 1, 5000), 1);
            assert_int_equal(pt_udp_stamp_take(p.from, &s), 1);
            assert_int_equal(s.id, i);
            assert_true(s.kernel_ns >= last && s.kernel_ns <= pt_clock_realtime());
            last = s.kernel_ns;
        }
        char byte;
        union {
            struct cmsghdr align;
            char bytes[256];
        } c;
        struct iovec iov = {.iov_base = &byte, .iov_len = 1};
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = c.bytes,
                           .msg_controllen = sizeof(c.bytes)};
        assert_int_equal(recvmsg(p.to, &m, MSG_DONTWAIT), 1);
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        assert_true(h && h->cmsg_type == SCM_TIMESTAMPNS);
        close_pair(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_send_becomes_many_datagrams),
        cmocka_unit_test(coalesced_datagrams_tell_their_size),
        cmocka_unit_test(a_send_carries_whole_segments),
        cmocka_unit_test(payload_follows_the_mtu),
        cmocka_unit_test(drops_are_counted),
        cmocka_unit_test(both_ends_are_stamped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
