/* choose.c: the start-up probe: which back end is faster here, or allowed at all.
 *
 * Round trips over a Unix socket pair whose two ends sit in one loop: no peer process, no wake-up,
 * so what is compared is what each back end adds to a message. Rounds alternate and the best of
 * each counts, because another process on the CPU can only make a round slower.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/backend.h"

#include "os/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS      6
#define ROUND_TRIPS 64
#define SIZE_MOST   ((size_t)32768)
/* Far beyond what a round takes, for a machine that has other things to do. */
#define PATIENCE (200 * PT_MS)
/* The simpler back end wins what is close. */
#define CLOSE_PERCENT 3

struct end {
    struct probe *probe;
    int fd;
    struct pt_recv recv;
    struct pt_op send;
};

struct probe {
    struct pt_loop *loop;
    struct end ends[2];
    uint8_t *message;
    size_t size;
    unsigned trips;
    bool failed;
};

static void sent(struct pt_op *op, int res, bool more)
{
    (void)more;
    if (res < 0)
        ((struct probe *)op->ctx)->failed = true;
}

static void forward(struct end *to)
{
    struct probe *p = to->probe;
    if (pt_op_active(&to->send) || pt_op_send(p->loop, &to->send, to->fd, p->message, p->size) < 0)
        p->failed = true;
}

static void received(struct pt_recv *r, uint8_t *buf, ssize_t n, const struct pt_recv_meta *meta)
{
    struct end *e = r->ctx;
    struct probe *p = e->probe;
    (void)buf;
    (void)meta;
    if (n < 0) {
        p->failed = true;
        return;
    }
    if (e == &p->ends[0] && --p->trips == 0)
        return;
    forward(e);
}

static void probe_close(struct probe *p)
{
    pt_loop_free(p->loop);
    for (int i = 0; i < 2; i++)
        if (p->ends[i].fd >= 0)
            close(p->ends[i].fd);
    free(p->message);
}

static int probe_open(struct probe *p, enum pt_backend backend, enum pt_wait wait, size_t size,
                      struct pt_err *e)
{
    *p = (struct probe){.size = size, .ends = {{.fd = -1}, {.fd = -1}}};
    const struct pt_loop_spec spec = {
        .backend = backend, .wait = wait, .recv_size = SIZE_MOST, .recv_count = 4, .ops = 8};
    int fds[2];
    int rc = pt_loop_new(&p->loop, &spec, e);
    if (rc < 0)
        return rc;
    p->message = calloc(1, size);
    if (!p->message || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0)
        return pt_fail(e, -1, "no socket pair to measure with");
    for (int i = 0; i < 2; i++) {
        struct end *end = &p->ends[i];
        *end =
            (struct end){.probe = p,
                         .fd = fds[i],
                         .recv = {.fd = fds[i], .kind = PT_RECV_DGRAM, .fn = received, .ctx = end},
                         .send = {.fn = sent, .ctx = p}};
    }
    for (int i = 0; i < 2; i++)
        if (pt_recv_start(p->loop, &p->ends[i].recv) < 0)
            return pt_fail(e, -1, "it refused a receive");
    return 0;
}

/* Nanoseconds per round trip, or -1. */
static pt_ns round_of(struct probe *p)
{
    p->trips = ROUND_TRIPS;
    pt_ns start = pt_clock_now();
    forward(&p->ends[0]);
    while (p->trips > 0 && !p->failed) {
        if (pt_loop_step(p->loop, start + PATIENCE) < 0 || pt_clock_now() > start + PATIENCE)
            p->failed = true;
    }
    return p->failed ? -1 : (pt_clock_now() - start) / ROUND_TRIPS;
}

static void say(char *reason, size_t cap, const char *fmt, ...) PT_PRINTF(3, 4);
static void say(char *reason, size_t cap, const char *fmt, ...)
{
    if (cap == 0)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reason, cap, fmt, ap);
    va_end(ap);
}

static enum pt_backend compare(struct probe *epoll, struct probe *uring, char *reason, size_t cap)
{
    pt_ns best[2] = {PT_NS_MAX, PT_NS_MAX};
    struct probe *probes[2] = {epoll, uring};
    for (int i = 0; i < 2 * ROUNDS; i++) {
        pt_ns t = round_of(probes[i % 2]);
        if (t < 0) {
            say(reason, cap, "epoll: the machine is too busy to compare it with io_uring");
            return PT_BACKEND_EPOLL;
        }
        if (t < best[i % 2])
            best[i % 2] = t;
    }
    bool uring_wins = best[1] * 100 < best[0] * (100 - CLOSE_PERCENT);
    say(reason, cap, "%s: io_uring %.2f us, epoll %.2f us per round trip",
        uring_wins ? "io_uring" : "epoll", (double)best[1] / 1e3, (double)best[0] / 1e3);
    return uring_wins ? PT_BACKEND_URING : PT_BACKEND_EPOLL;
}

enum pt_backend pt_loop_choose(enum pt_wait wait, size_t size, char *reason, size_t reason_cap)
{
    struct probe epoll, uring;
    struct pt_err e = {0};
    enum pt_backend choice = PT_BACKEND_EPOLL;
    if (size == 0)
        size = 1;
    if (size > SIZE_MOST)
        size = SIZE_MOST;
    if (probe_open(&uring, PT_BACKEND_URING, wait, size, &e) < 0)
        say(reason, reason_cap, "epoll: %s", e.text);
    else if (probe_open(&epoll, PT_BACKEND_EPOLL, wait, size, &e) < 0) {
        say(reason, reason_cap, "epoll: %s", e.text);
        probe_close(&epoll);
    } else {
        choice = compare(&epoll, &uring, reason, reason_cap);
        probe_close(&epoll);
    }
    probe_close(&uring);
    return choice;
}
