/* test_loop_datagram.c: datagrams through the loop, under both back ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "loop_harness.h"

#include <fcntl.h>
#include <netinet/udp.h>
#include <poll.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103 /* Linux 4.18 */
#endif
#ifndef UDP_GRO
#define UDP_GRO 104 /* Linux 5.0 */
#endif

static const enum pt_recv_kind kinds[] = {PT_RECV_DGRAM, PT_RECV_DGRAM_META};
static const unsigned batches[] = {0, 4};

static void keeps_boundaries_and_order(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    for (enum family f = STREAMS; f < DATAGRAMS; f++) {
        for (size_t k = 0; k < 4; k++) {
            int fds[2];
            pair(f, fds);
            struct sink s = {.recv.batch = batches[k / 2]};
            sink_start(&s, l, fds[0], kinds[k % 2]);
            /* Fewer than a Unix socket queues by default. */
            for (uint8_t i = 0; i < 9; i++)
                send_now(fds[1], (uint8_t[2]){i, 0xee}, i == 5 ? 0 : 2);
            UNTIL(l, s.calls == 9);
            assert_int_equal(s.empty, 1);
            assert_int_equal(s.kept, 16);
            for (uint8_t i = 0; i < 8; i++)
                assert_int_equal(s.data[2 * i], i < 5 ? i : i + 1);
            assert_true(pt_recv_active(&s.recv));
            pt_recv_stop(l, &s.recv);
            close_pair(fds);
        }
    }
    pt_loop_free(l);
}

static void more_datagrams_than_buffers(void **state)
{
    struct pt_loop *l = loop_of(state, 64, 2);
    for (size_t k = 0; k < 4; k++) {
        int fds[2];
        pair(UDP4, fds);
        struct sink s = {.recv.batch = batches[k / 2]};
        for (int i = 0; i < 200; i++)
            send_now(fds[1], &i, sizeof(i));
        sink_start(&s, l, fds[0], kinds[k % 2]);
        UNTIL(l, s.calls == 200);
        for (int i = 0; i < 200; i++)
            assert_memory_equal(s.data + 4 * i, &i, 4);
        pt_recv_stop(l, &s.recv);
        close_pair(fds);
    }
    pt_loop_free(l);
}

static void into_a_callers_buffer(void **state)
{
    struct pt_loop *l = loop_of(state, 64, 2);
    uint8_t block[2000];
    int fds[2];
    pair(UDP4, fds);
    struct sink s = {.recv.into = block, .recv.into_size = sizeof(block)};
    sink_start(&s, l, fds[0], PT_RECV_DGRAM);
    uint8_t text[1500] = {9, 8, 7};
    for (unsigned i = 1; i <= 3; i++) {
        send_now(fds[1], text, sizeof(text));
        UNTIL(l, s.calls == i);
        assert_int_equal(s.last, 1500);
        assert_memory_equal(block, text, 1500);
    }
    send_now(fds[1], text, 0);
    UNTIL(l, s.empty == 1);
    send_now(fds[1], text, 3);
    UNTIL(l, s.last == 3);
    pt_recv_stop(l, &s.recv);
    close_pair(fds);
    pt_loop_free(l);
}

static void stop_within_a_batch(void **state)
{
    struct pt_loop *l = loop_of(state, 64, 8);
    for (size_t k = 0; k < 4; k++) {
        int fds[2];
        pair(UDP4, fds);
        struct sink s = {.recv.batch = batches[k / 2], .stop_at = 2};
        for (int i = 0; i < 8; i++)
            send_now(fds[1], &i, sizeof(i));
        sink_start(&s, l, fds[0], kinds[k % 2]);
        UNTIL(l, s.calls == 2);
        settle(l);
        assert_int_equal(s.calls, 2);
        close_pair(fds);
    }
    pt_loop_free(l);
}

/* The engine stops asking for meta once it has seen enough of it; nothing may be lost by that. */
static void kind_changes_between_datagrams(void **state)
{
    struct pt_loop *l = loop_of(state, 64, 2);
    int fds[2];
    pair(UDP4, fds);
    struct sink s = {0};
    sink_start(&s, l, fds[0], PT_RECV_DGRAM_META);
    for (int i = 0; i < 100; i++) {
        send_now(fds[1], &i, sizeof(i));
        if (i % 7 == 0)
            assert_true(pt_loop_step(l, 0) >= 0);
        if (i % 10 == 0) {
            pt_recv_pause(l, &s.recv);
            s.recv.kind = i % 20 ? PT_RECV_DGRAM_META : PT_RECV_DGRAM;
            assert_int_equal(pt_recv_resume(l, &s.recv), 0);
        }
    }
    UNTIL(l, s.calls == 100);
    for (int i = 0; i < 100; i++)
        assert_memory_equal(s.data + 4 * i, &i, 4);
    pt_recv_stop(l, &s.recv);
    close_pair(fds);
    pt_loop_free(l);
}

/* A closed port answers with ICMP; when somebody opens it, the same receive goes on. */
static void refused_is_reported_and_not_the_end(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    for (size_t k = 0; k < 8; k++) {
        struct sockaddr_storage a, b;
        socklen_t a_len, b_len;
        int family = k / 4 ? AF_INET6 : AF_INET;
        int peer = bound(family, SOCK_DGRAM, &a, &a_len);
        int fd = bound(family, SOCK_DGRAM, &b, &b_len);
        assert_int_equal(connect(fd, (struct sockaddr *)&a, a_len), 0);
        close(peer);
        struct sink s = {.recv.batch = batches[k / 2 % 2]};
        sink_start(&s, l, fd, kinds[k % 2]);
        settle(l);
        for (unsigned i = 1; i <= 2; i++) {
            OUTCOME(o);
            assert_int_equal(pt_op_send(l, &o.op, fd, "x", 1), 0);
            UNTIL(l, s.errors == i && o.calls == 1);
            assert_int_equal(s.last, -ECONNREFUSED);
            assert_true(pt_recv_active(&s.recv));
        }
        peer = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(peer, (struct sockaddr *)&a, a_len), 0);
        assert_int_equal(connect(peer, (struct sockaddr *)&b, b_len), 0);
        send_now(peer, "open", 4);
        UNTIL(l, s.bytes == 4);
        pt_recv_stop(l, &s.recv);
        close(peer);
        close(fd);
    }
    pt_loop_free(l);
}

static void send_reports_the_refusal(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    struct sockaddr_storage a;
    socklen_t len;
    int peer = bound(AF_INET, SOCK_DGRAM, &a, &len);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, len), 0);
    close(peer);
    send_now(fd, "x", 1);
    struct pollfd p = {.fd = fd, .events = 0};
    assert_int_equal(poll(&p, 1, 1000), 1); /* POLLERR: the ICMP error has come */
    OUTCOME(o);
    assert_int_equal(pt_op_send(l, &o.op, fd, "x", 1), 0);
    UNTIL(l, o.calls == 1);
    assert_int_equal(o.res, -ECONNREFUSED);
    close(fd);
    pt_loop_free(l);
}

static void truncation_and_sender_are_told(void **state)
{
    struct pt_loop *l = loop_of(state, 100, 8);
    for (int k = 0; k < 4; k++) {
        struct sockaddr_storage a, b, *from;
        socklen_t a_len, b_len;
        int family = k / 2 ? AF_INET6 : AF_INET;
        int fd = bound(family, SOCK_DGRAM, &a, &a_len);
        int peer = bound(family, SOCK_DGRAM, &b, &b_len);
        assert_int_equal(connect(peer, (struct sockaddr *)&a, a_len), 0);
        struct sink s = {.recv.batch = batches[k % 2]};
        sink_start(&s, l, fd, PT_RECV_DGRAM_META);
        char text[150] = {0};
        for (size_t n = 99; n <= 101; n++) {
            unsigned calls = s.calls;
            text[0] = (char)n;
            send_now(peer, text, n);
            UNTIL(l, s.calls == calls + 1);
            assert_int_equal(s.last, n < 100 ? n : 100);
            assert_int_equal(s.meta.truncated, n > 100);
            assert_int_equal(s.data[s.kept - (size_t)s.last], n);
            from = &s.from;
            assert_int_equal(s.meta.from_len, b_len);
            assert_memory_equal(from, &b, b_len);
            assert_int_equal(s.meta.seg, 0);
            assert_int_equal(s.meta.drops, 0);
            assert_int_equal(s.meta.kernel_ns, 0);
        }
        pt_recv_stop(l, &s.recv);
        close(fd);
        close(peer);
    }
    pt_loop_free(l);
}

static void counts_what_the_socket_dropped(void **state)
{
    struct pt_loop *l = loop_of(state, 2048, 8);
    for (size_t k = 0; k < 2; k++) {
        int fds[2], on = 1, small = 1;
        pair(UDP4, fds);
        assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on)), 0);
        assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
        char text[1000] = {0};
        for (int i = 0; i < 50; i++)
            send_now(fds[1], text, sizeof(text));
        struct sink s = {.recv.batch = batches[k]};
        sink_start(&s, l, fds[0], PT_RECV_DGRAM_META);
        UNTIL(l, s.calls > 0);
        settle(l);
        /* The count travels with the datagrams that are queued after the loss. */
        unsigned received = s.calls;
        send_now(fds[1], text, sizeof(text));
        UNTIL(l, s.calls == received + 1);
        assert_true(received < 50);
        assert_int_equal(s.meta.drops, 50 - received);
        pt_recv_stop(l, &s.recv);
        close_pair(fds);
    }
    pt_loop_free(l);
}

static void kernel_time_is_that_of_the_arrival(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    for (int k = 0; k < 4; k++) {
        int fds[2], on = 1;
        pair(k / 2 ? UDP6 : UDP4, fds);
        assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)), 0);
        struct sink s = {.recv.batch = batches[k % 2]};
        sink_start(&s, l, fds[0], PT_RECV_DGRAM_META);
        for (unsigned i = 1; i <= 3; i++) {
            pt_ns before = pt_clock_realtime();
            send_now(fds[1], "x", 1);
            UNTIL(l, s.calls == i);
            /* Stamping is switched on in the background: at first it may be done on reading. */
            assert_in_range(s.meta.kernel_ns, before, pt_clock_realtime());
        }
        pt_recv_stop(l, &s.recv);
        close_pair(fds);
    }
    pt_loop_free(l);
}

static void coalesced_datagrams_name_their_size(void **state)
{
    struct pt_loop *l = loop_of(state, 65536, 8);
    for (int k = 0; k < 4; k++) {
        int fds[2], on = 1, seg = 100;
        pair(k / 2 ? UDP6 : UDP4, fds);
        if (setsockopt(fds[0], SOL_UDP, UDP_GRO, &on, sizeof(on)) < 0 ||
            setsockopt(fds[1], SOL_UDP, UDP_SEGMENT, &seg, sizeof(seg)) < 0) {
            print_message("# no UDP segmentation here: %s\n", strerror(errno));
            close_pair(fds);
            break;
        }
        uint8_t text[1050];
        for (size_t i = 0; i < sizeof(text); i++)
            text[i] = (uint8_t)(i / 100);
        struct sink s = {.recv.batch = batches[k % 2]};
        sink_start(&s, l, fds[0], PT_RECV_DGRAM_META);
        send_now(fds[1], text, sizeof(text));
        UNTIL(l, s.bytes == sizeof(text));
        assert_memory_equal(s.data, text, sizeof(text));
        assert_int_equal(s.calls, 1);
        assert_int_equal(s.meta.seg, 100);
        pt_recv_stop(l, &s.recv);
        close_pair(fds);
    }
    pt_loop_free(l);
}

static void many_sends_keep_their_order(void **state)
{
    enum { COUNT = 300 };
    struct pt_loop *l = loop_of(state, 256, 8);
    for (enum family f = STREAMS; f < DATAGRAMS; f++) {
        int fds[2];
        pair(f, fds);
        static struct outcome o[COUNT];
        static int numbers[COUNT];
        struct sink s = {0};
        sink_start(&s, l, fds[0], PT_RECV_DGRAM);
        /* A Unix socket queues about ten: the others wait inside the loop. */
        for (int i = 0; i < COUNT; i++) {
            numbers[i] = i;
            o[i] = (struct outcome){.op = {.fn = outcome_fn, .ctx = &o[i]}};
            assert_int_equal(pt_op_send(l, &o[i].op, fds[1], &numbers[i], sizeof(int)), 0);
            if (f != UNIX_DGRAM && i % 50 == 49)
                UNTIL(l, s.calls == (unsigned)i + 1);
        }
        UNTIL(l, s.calls == COUNT);
        for (int i = 0; i < COUNT; i++) {
            UNTIL(l, o[i].calls == 1);
            assert_int_equal(o[i].res, 4);
        }
        if (f != UNIX_DGRAM)
            assert_memory_equal(s.data, numbers, sizeof(numbers));
        pt_recv_stop(l, &s.recv);
        close_pair(fds);
    }
    pt_loop_free(l);
}

static void descriptor_left_nonblocking_works(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    for (enum family f = 0; f < FAMILIES; f++) {
        int fds[2];
        pair(f, fds);
        fcntl(fds[0], F_SETFL, fcntl(fds[0], F_GETFL) | O_NONBLOCK);
        struct sink s = {0};
        sink_start(&s, l, fds[0], f < STREAMS ? PT_RECV_STREAM : PT_RECV_DGRAM);
        settle(l);
        assert_int_equal(s.calls, 0);
        send_now(fds[1], "late", 4);
        UNTIL(l, s.bytes == 4);
        assert_true(pt_recv_active(&s.recv));
        pt_recv_stop(l, &s.recv);
        close_pair(fds);
    }
    pt_loop_free(l);
}

static void not_a_socket_ends_it(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    for (size_t k = 0; k < 2; k++) {
        int pipes[2];
        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        assert_int_equal(write(pipes[1], "x", 1), 1);
        struct sink s = {0};
        sink_start(&s, l, pipes[0], kinds[k]);
        UNTIL(l, s.errors == 1);
        assert_int_equal(s.last, -ENOTSOCK);
        assert_false(pt_recv_active(&s.recv));
        close_pair(pipes);
    }
    struct pt_recv none = {.fd = -1, .fn = sink_fn};
    assert_int_equal(pt_recv_start(l, &none), -EBADF);
    pt_loop_free(l);
}

int main(void)
{
    static const struct loop_test tests[] = {
        LOOP_TEST(keeps_boundaries_and_order),
        LOOP_TEST(more_datagrams_than_buffers),
        LOOP_TEST(into_a_callers_buffer),
        LOOP_TEST(stop_within_a_batch),
        LOOP_TEST(kind_changes_between_datagrams),
        LOOP_TEST(refused_is_reported_and_not_the_end),
        LOOP_TEST(send_reports_the_refusal),
        LOOP_TEST(truncation_and_sender_are_told),
        LOOP_TEST(counts_what_the_socket_dropped),
        LOOP_TEST(kernel_time_is_that_of_the_arrival),
        LOOP_TEST(coalesced_datagrams_name_their_size),
        LOOP_TEST(many_sends_keep_their_order),
        LOOP_TEST(descriptor_left_nonblocking_works),
        LOOP_TEST(not_a_socket_ends_it),
    };
    return run_loop_tests(tests, PT_COUNT(tests));
}
