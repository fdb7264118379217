/* test_tcp_info.c: figures of a real connection, differences, and what limited it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/sock.h"
#include "net/tcp_info.h"
#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

static void counts_what_was_sent(void **state)
{
    (void)state;
    struct pt_addr at;
    struct pt_tcp_info before, after, d;
    static char block[50000];
    assert_int_equal(pt_addr_parse(&at, "127.0.0.1", 0, NULL), 0);
    int l = pt_sock_listen(&at, 0, NULL, NULL);
    assert_int_equal(pt_addr_local(&at, l), 0);
    int c = pt_sock_connect(SOCK_STREAM, &at, NULL, NULL, pt_clock_now() + 5 * PT_S, NULL);
    int s = accept(l, NULL, NULL);
    assert_true(l >= 0 && c >= 0 && s >= 0);
    assert_int_equal(pt_tcp_info_read(&before, c), 0);
    assert_int_equal(send(c, block, sizeof(block), 0), sizeof(block));
    for (size_t got = 0; got < sizeof(block);) {
        ssize_t n = recv(s, block, sizeof(block), 0);
        assert_true(n > 0);
        got += (size_t)n;
    }
    /* The last acknowledgement may be delayed by up to 40 ms: a byte back carries it. */
    assert_int_equal(send(s, "x", 1, 0), 1);
    assert_int_equal(recv(c, block, 1, 0), 1);
    assert_int_equal(pt_tcp_info_read(&after, c), 0);
    pt_tcp_info_sub(&d, &after, &before);
    assert_int_equal(d.bytes_sent, sizeof(block));
    assert_int_equal(d.bytes_acked, sizeof(block));
    assert_int_equal(d.bytes_received, 1);
    assert_int_equal(d.bytes_retrans, 0);
    assert_true(d.data_segs_out >= 1 && d.segs_out >= d.data_segs_out);
    assert_int_equal(after.state, 1);
    assert_true(after.snd_mss > 0 && after.pmtu > after.snd_mss);
    assert_true(after.snd_cwnd > 0 && after.snd_wnd > 0);
    assert_int_equal(after.snd_cwnd_bytes, (uint64_t)after.snd_cwnd * after.snd_mss);
    assert_true(after.rtt_us > 0 && after.min_rtt_us > 0 && after.min_rtt_us <= after.rtt_us * 8);
    assert_true(after.delivery_rate_Bps > 0);
    assert_int_equal(after.notsent_bytes, 0);
    assert_string_equal(pt_tcp_ca_name(after.ca_state), "open");
    close(s);
    close(c);
    close(l);
}

/* A receiver that does not read closes its window; the kernel must say so and we must repeat it. */
static void a_sleeping_receiver_is_recognised(void **state)
{
    (void)state;
    struct pt_addr at;
    struct pt_sockopts o = {.rcvbuf = 8192};
    struct pt_tcp_info before, after, d;
    static char block[65536];
    assert_int_equal(pt_addr_parse(&at, "127.0.0.1", 0, NULL), 0);
    int l = pt_sock_listen(&at, 0, &o, NULL);
    assert_int_equal(pt_addr_local(&at, l), 0);
    int c = pt_sock_connect(SOCK_STREAM, &at, NULL, NULL, pt_clock_now() + 5 * PT_S, NULL);
    assert_true(l >= 0 && c >= 0);
    assert_int_equal(pt_tcp_info_read(&before, c), 0);
    pt_ns began = pt_clock_now();
    while (send(c, block, sizeof(block), MSG_DONTWAIT) > 0)
        continue;
    assert_int_equal(errno, EAGAIN);
    do {
        assert_int_equal(poll(NULL, 0, 1), 0);
        assert_int_equal(pt_tcp_info_read(&after, c), 0);
        pt_tcp_info_sub(&d, &after, &before);
        assert_true(pt_clock_now() - began < 5 * PT_S);
    } while (d.rwnd_limited_us < 10000);
    double share = -1;
    assert_string_equal(pt_tcp_limited_by(&d, pt_clock_now() - began, &share), "receiver window");
    assert_true(share > 0.4 && share <= 1);
    assert_true(d.notsent_bytes > 0);
    close(c);
    close(l);
}

static void the_largest_share_wins(void **state)
{
    (void)state;
    static const struct {
        uint64_t busy, rwnd, sndbuf;
        bool app;
        const char *name;
        double share;
    } rows[] = {
        {1000, 0, 0, false, "congestion window", 1},
        {1000, 600, 100, false, "receiver window", 0.6},
        {1000, 100, 700, false, "send buffer", 0.7},
        {1000, 300, 300, false, "congestion window", 0.4},
        {400, 0, 0, false, "application", 0.6},
        {1000, 0, 0, true, "application", 1},
        {1000, 600, 0, true, "receiver window", 0.6},
        {0, 0, 0, false, "application", 1},
        {1500, 0, 0, false, "congestion window", 1},
        {100, 200, 0, false, "application", 0.9},
    };
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_tcp_info d = {.busy_us = rows[i].busy,
                                .rwnd_limited_us = rows[i].rwnd,
                                .sndbuf_limited_us = rows[i].sndbuf,
                                .app_limited = rows[i].app};
        double share = -1;
        assert_string_equal(pt_tcp_limited_by(&d, 1000 * PT_US, &share), rows[i].name);
        assert_true(share > rows[i].share - 1e-9 && share < rows[i].share + 1e-9);
    }
}

static void differences_survive_the_wrap(void **state)
{
    (void)state;
    struct pt_tcp_info a = {.segs_out = UINT32_MAX - 1, .busy_us = 10, .rtt_us = 5};
    struct pt_tcp_info b = {.segs_out = 3, .busy_us = 9, .rtt_us = 7}, d;
    pt_tcp_info_sub(&d, &b, &a);
    assert_int_equal(d.segs_out, 5);
    assert_int_equal(d.busy_us, 0);
    assert_int_equal(d.rtt_us, 7);
    pt_tcp_info_sub(&b, &b, &b);
    assert_int_equal(b.segs_out, 0);
}

static void other_sockets_have_none(void **state)
{
    (void)state;
    struct pt_tcp_info t;
    int fd = socket(AF_INET, SOCK_DGRAM, 0), fds[2];
    assert_true(pt_tcp_info_read(&t, fd) < 0);
    close(fd);
    assert_int_equal(pt_sock_pair(SOCK_STREAM, fds), 0);
    assert_true(pt_tcp_info_read(&t, fds[0]) < 0);
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(pt_tcp_info_read(&t, -1), -EBADF);
    assert_string_equal(pt_tcp_ca_name((enum pt_tcp_ca)77), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_was_sent),
        cmocka_unit_test(a_sleeping_receiver_is_recognised),
        cmocka_unit_test(the_largest_share_wins),
        cmocka_unit_test(differences_survive_the_wrap),
        cmocka_unit_test(other_sockets_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
