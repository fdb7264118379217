/* loop_harness.h: runs every loop test under each back end and wait mode, over socket pairs of
 * every family.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_TEST_LOOP_HARNESS_H
#define PT_TEST_LOOP_HARNESS_H

#include "harness.h"

#include "ev/loop.h"
#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct setting {
    const char *name;
    enum pt_backend backend;
    enum pt_wait wait;
};

static const struct setting settings[] = {
    {"epoll, block", PT_BACKEND_EPOLL, PT_WAIT_BLOCK},
    {"epoll, spin", PT_BACKEND_EPOLL, PT_WAIT_SPIN},
    {"io_uring, block", PT_BACKEND_URING, PT_WAIT_BLOCK},
    {"io_uring, spin", PT_BACKEND_URING, PT_WAIT_SPIN},
};

/* The loop under test. */
static inline struct pt_loop *loop_of(void **state, size_t recv_size, unsigned recv_count)
{
    const struct setting *s = *state;
    const struct pt_loop_spec spec = {
        .backend = s->backend, .wait = s->wait, .recv_size = recv_size, .recv_count = recv_count};
    struct pt_loop *l;
    struct pt_err e = {0};
    int rc = pt_loop_new(&l, &spec, &e);
    if (rc < 0)
        print_error("%s\n", e.text);
    assert_int_equal(rc, 0);
    return l;
}

/* Only a kernel that refuses io_uring is an excuse, and the reason is printed. */
static inline bool offered(const struct setting *s)
{
    const struct pt_loop_spec spec = {.backend = s->backend, .wait = s->wait};
    struct pt_loop *l;
    struct pt_err e = {0};
    int rc = pt_loop_new(&l, &spec, &e);
    if (rc == 0)
        pt_loop_free(l);
    else
        print_message("# not tested: %s: %s\n", s->name, e.text);
    return rc == 0 || s->backend != PT_BACKEND_URING || (rc != -ENOSYS && rc != -EPERM);
}

/* Steps until the condition holds; fails after 5 s. */
#define UNTIL(l, condition)                                                                        \
    do {                                                                                           \
        pt_ns until_end = pt_clock_now() + 5 * PT_S;                                               \
        while (!(condition)) {                                                                     \
            assert_true(pt_loop_step((l), pt_clock_now() + 5 * PT_MS) >= 0);                       \
            assert_true(pt_clock_now() < until_end);                                               \
        }                                                                                          \
    } while (0)

/* Steps a while, for things that must not happen. */
static inline void settle(struct pt_loop *l)
{
    for (int i = 0; i < 40; i++)
        assert_true(pt_loop_step(l, pt_clock_now() + PT_MS / 4) >= 0);
}

enum family { TCP4, TCP6, UNIX_STREAM, UDP4, UDP6, UNIX_DGRAM, FAMILIES };
#define STREAMS   UDP4
#define DATAGRAMS FAMILIES

static inline socklen_t loopback(int family, struct sockaddr_storage *a)
{
    memset(a, 0, sizeof(*a));
    a->ss_family = (sa_family_t)family;
    if (family == AF_INET6) {
        ((struct sockaddr_in6 *)(void *)a)->sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
        return sizeof(struct sockaddr_in6);
    }
    ((struct sockaddr_in *)(void *)a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return sizeof(struct sockaddr_in);
}

/* A socket bound to a free port of the loopback; its address goes to `a`. */
static inline int bound(int family, int type, struct sockaddr_storage *a, socklen_t *len)
{
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    *len = loopback(family, a);
    assert_int_equal(bind(fd, (struct sockaddr *)a, *len), 0);
    *len = sizeof(*a);
    assert_int_equal(getsockname(fd, (struct sockaddr *)a, len), 0);
    return fd;
}

static inline int listener(int family, struct sockaddr_storage *a, socklen_t *len)
{
    int fd = bound(family, SOCK_STREAM | SOCK_NONBLOCK, a, len);
    assert_int_equal(listen(fd, 128), 0);
    return fd;
}

static inline void tcp_pair(int family, int fds[2])
{
    struct sockaddr_storage a;
    socklen_t len;
    int l = listener(family, &a, &len), on = 1;
    fds[0] = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&a, len), 0);
    fds[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fds[1] >= 0);
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    close(l);
}

static inline void udp_pair(int family, int fds[2])
{
    struct sockaddr_storage a, b;
    socklen_t a_len, b_len;
    fds[0] = bound(family, SOCK_DGRAM, &a, &a_len);
    fds[1] = bound(family, SOCK_DGRAM, &b, &b_len);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&b, b_len), 0);
    assert_int_equal(connect(fds[1], (struct sockaddr *)&a, a_len), 0);
}

static inline void pair(enum family f, int fds[2])
{
    switch (f) {
    case TCP4:
        tcp_pair(AF_INET, fds);
        break;
    case TCP6:
        tcp_pair(AF_INET6, fds);
        break;
    case UDP4:
        udp_pair(AF_INET, fds);
        break;
    case UDP6:
        udp_pair(AF_INET6, fds);
        break;
    case UNIX_STREAM:
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        break;
    default:
        assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds), 0);
        break;
    }
}

static inline void close_pair(const int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

/* Remembers what a receive was handed. */
struct sink {
    struct pt_recv recv;
    struct pt_loop *loop;
    unsigned calls, empty, errors;
    unsigned stop_at;       /* stop in this callback; 0: never */
    struct pt_recv *victim; /* stop this one too */
    size_t bytes, kept;
    ssize_t last;
    struct pt_recv_meta meta;
    struct sockaddr_storage from;
    uint8_t data[4096]; /* the first bytes */
};

static inline void sink_fn(struct pt_recv *r, uint8_t *buf, ssize_t n,
                           const struct pt_recv_meta *meta)
{
    struct sink *s = r->ctx;
    s->calls++;
    s->last = n;
    s->empty += n == 0;
    s->errors += n < 0;
    if (n > 0)
        s->bytes += (size_t)n;
    if (n > 0 && buf) {
        size_t room = sizeof(s->data) - s->kept, take = (size_t)n < room ? (size_t)n : room;
        memcpy(s->data + s->kept, buf, take);
        s->kept += take;
    }
    if (meta) {
        s->meta = *meta;
        if (meta->from)
            memcpy(&s->from, meta->from, meta->from_len);
    }
    if (s->victim)
        pt_recv_stop(s->loop, s->victim);
    if (s->calls == s->stop_at)
        pt_recv_stop(s->loop, r);
}

static inline void sink_start(struct sink *s, struct pt_loop *l, int fd, enum pt_recv_kind kind)
{
    s->loop = l;
    s->recv.fd = fd;
    s->recv.kind = kind;
    s->recv.fn = sink_fn;
    s->recv.ctx = s;
    assert_int_equal(pt_recv_start(l, &s->recv), 0);
}

/* Remembers how an operation ended. */
struct outcome {
    struct pt_op op;
    unsigned calls, last_calls;
    int res;
};

static inline void outcome_fn(struct pt_op *op, int res, bool more)
{
    struct outcome *o = op->ctx;
    o->calls++;
    o->last_calls += !more;
    o->res = res;
}

#define OUTCOME(name) struct outcome name = {.op = {.fn = outcome_fn, .ctx = &name}}

static inline void send_now(int fd, const void *bytes, size_t n)
{
    assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

struct loop_test {
    const char *name;
    CMUnitTestFunction fn;
};
#define LOOP_TEST(f)                                                                               \
    {                                                                                              \
#f, f                                                                                      \
    }

/* Every test under every setting. */
static inline int run_loop_tests(const struct loop_test *tests, size_t count)
{
    static struct CMUnitTest all[256];
    static char names[256][96];
    size_t n = 0;
    for (size_t s = 0; s < PT_COUNT(settings); s++) {
        if (!offered(&settings[s]))
            continue;
        for (size_t i = 0; i < count && n < PT_COUNT(all); i++, n++) {
            snprintf(names[n], sizeof(names[n]), "%s (%s)", tests[i].name, settings[s].name);
            union {
                const struct setting *given;
                void *state;
            } u = {.given = &settings[s]};
            all[n] = (struct CMUnitTest){
                .name = names[n], .test_func = tests[i].fn, .initial_state = u.state};
        }
    }
    return _cmocka_run_group_tests("loop", all, n, NULL, NULL);
}

#endif
