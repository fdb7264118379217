/* loop.c: the step, and what both back ends share: defaults, waiting, accepting.
 *
 * A back end knows one verb, "wait at most this long"; blocking, spinning and polling shortly
 * before a deadline are made of it here, so they are the same for both.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/backend.h"

#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define RECV_SIZE_MAX  ((size_t)1 << 30)
#define RECV_COUNT_MAX (1u << 15)
#define OPS_MAX        (1u << 20)
/* A failed try costs 50-200 ns, the clock 25: look at it seldom while the limit is far. */
#define TRIES_PER_CLOCK 16
#define TRY_NS          128
#define ACCEPT_BATCH    64
#define ACCEPT_REST     (10 * PT_MS)

static void accept_again(struct pt_timer *t, pt_ns due);

static int check_spec(struct pt_loop_spec *s, struct pt_err *e)
{
    if (s->recv_size == 0)
        s->recv_size = 65536;
    if (s->recv_count == 0)
        s->recv_count = 64;
    if (s->ops == 0)
        s->ops = 256;
    if (s->recv_size > RECV_SIZE_MAX || s->recv_count > RECV_COUNT_MAX || s->ops > OPS_MAX)
        return pt_fail(e, -EINVAL,
                       "event loop: %zu bytes per buffer, %u buffers or %u operations is too much",
                       s->recv_size, s->recv_count, s->ops);
    if (s->recv_count & (s->recv_count - 1))
        return pt_fail(e, -EINVAL, "event loop: %u receive buffers: must be a power of two",
                       s->recv_count);
    return 0;
}

static int make(struct pt_loop **out, const struct pt_loop_spec *s,
                const struct pt_backend_calls *calls, struct pt_err *e)
{
    struct pt_loop *l = calloc(1, calls->size);
    if (!l || pt_timer_heap_init(&l->timers, s->ops) < 0) {
        free(l);
        return pt_fail(e, -ENOMEM, "event loop: out of memory");
    }
    l->calls = calls;
    l->spec = *s;
    l->accept_retry = (struct pt_timer){.fn = accept_again, .ctx = l};
    int rc = calls->open(l, e);
    if (rc < 0) {
        pt_timer_heap_fini(&l->timers);
        free(l);
        return rc;
    }
    /* The kernel may wake a sleeper 50 us late to save power; exact deadlines cannot afford it. */
    if (s->spin_before_ns > 0)
        prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    l->now = pt_clock_now();
    *out = l;
    return 0;
}

int pt_loop_new(struct pt_loop **out, const struct pt_loop_spec *spec, struct pt_err *e)
{
    struct pt_loop_spec s = *spec;
    int rc = check_spec(&s, e);
    if (rc < 0)
        return rc;
    enum pt_backend backend = s.backend;
    if (backend == PT_BACKEND_AUTO)
        backend = pt_loop_choose(s.wait, 64, NULL, 0);
    return make(out, &s, backend == PT_BACKEND_URING ? &pt_backend_uring : &pt_backend_epoll, e);
}

void pt_loop_free(struct pt_loop *l)
{
    if (!l)
        return;
    l->calls->close(l);
    pt_timer_heap_fini(&l->timers);
    free(l);
}

const char *pt_loop_name(const struct pt_loop *l)
{
    return l->calls->name;
}

pt_ns pt_loop_now(const struct pt_loop *l)
{
    return l->now;
}

pt_ns pt_loop_touch(struct pt_loop *l)
{
    return l->now = pt_clock_now();
}

static unsigned tries_until(pt_ns left)
{
    if (left >= TRIES_PER_CLOCK * TRY_NS)
        return TRIES_PER_CLOCK;
    return left < TRY_NS ? 1 : (unsigned)(left / TRY_NS);
}

/* Polls until something happens, `limit`, or the longest wait. */
static int spin(struct pt_loop *l, pt_ns limit)
{
    pt_ns give_up = l->now + PT_EV_WAIT_MOST;
    unsigned tries = tries_until(limit - l->now);
    for (;;) {
        int n = l->calls->wait(l, 0);
        if (n != 0)
            return n;
        if (--tries > 0)
            continue;
        l->now = pt_clock_now();
        if (l->now >= limit || l->now >= give_up)
            return 0;
        tries = tries_until(limit - l->now);
    }
}

static int sleep_then_spin(struct pt_loop *l, pt_ns limit)
{
    if (limit == PT_NS_MAX)
        return l->calls->wait(l, PT_EV_WAIT_MOST);
    l->now = pt_clock_now();
    pt_ns give_up = l->now + PT_EV_WAIT_MOST;
    for (;;) {
        pt_ns left = limit - l->now - l->spec.spin_before_ns;
        if (left <= 0)
            return spin(l, limit);
        int n = l->calls->wait(l, left < PT_EV_WAIT_MOST ? left : PT_EV_WAIT_MOST);
        if (n != 0 || l->now >= limit || l->now >= give_up)
            return n;
    }
}

int pt_loop_step(struct pt_loop *l, pt_ns deadline)
{
    pt_ns first = pt_timer_heap_first(&l->timers);
    pt_ns limit = first < deadline ? first : deadline;
    int n;
    if (limit <= l->now) {
        n = l->calls->wait(l, 0);
        if (n == 0)
            l->now = pt_clock_now();
    } else if (l->spec.wait == PT_WAIT_SPIN) {
        n = spin(l, limit);
    } else {
        n = sleep_then_spin(l, limit);
    }
    if (n < 0 && n != -EINTR)
        return n;
    if (n < 0)
        n = 0;
    if (pt_timer_heap_first(&l->timers) <= l->now)
        n += pt_timer_heap_run(&l->timers, l->now);
    return n;
}

/* ---- operations */

int pt_recv_start(struct pt_loop *l, struct pt_recv *r)
{
    if (r->p.active)
        return -EBUSY;
    if (r->fd < 0)
        return -EBADF;
    if (r->into && (r->into_size == 0 || r->into_size > INT_MAX))
        return -EINVAL;
    memset(&r->p, 0, sizeof(r->p));
    return l->calls->recv_start(l, r);
}

void pt_recv_stop(struct pt_loop *l, struct pt_recv *r)
{
    if (!r->p.active)
        return;
    if (l->running == r)
        l->running = NULL;
    l->calls->recv_stop(l, r);
    r->p.active = r->p.paused = false;
}

void pt_recv_pause(struct pt_loop *l, struct pt_recv *r)
{
    if (!r->p.active || r->p.paused)
        return;
    if (l->running == r)
        l->running = NULL;
    l->calls->recv_pause(l, r);
    r->p.active = r->p.paused = true;
}

int pt_recv_resume(struct pt_loop *l, struct pt_recv *r)
{
    if (!r->p.paused)
        return 0;
    r->p.paused = false;
    int rc = l->calls->recv_resume(l, r);
    r->p.active = rc == 0;
    return rc;
}

static int prepare(struct pt_op *op, int fd, enum pt_op_kind kind)
{
    if (op->p.active)
        return -EBUSY;
    if (fd < 0)
        return -EBADF;
    memset(&op->p, 0, sizeof(op->p));
    op->p.fd = fd;
    op->p.kind = (uint8_t)kind;
    return 0;
}

int pt_op_send(struct pt_loop *l, struct pt_op *op, int fd, const void *buf, size_t len)
{
    int rc = prepare(op, fd, PT_OP_SEND);
    if (rc < 0)
        return rc;
    if (len > INT_MAX)
        return -EMSGSIZE;
    op->p.buf = buf;
    op->p.len = len;
    op->p.events = POLLOUT;
    return l->calls->op_start(l, op);
}

int pt_op_connect(struct pt_loop *l, struct pt_op *op, int fd, const struct sockaddr *to,
                  socklen_t to_len)
{
    int rc = prepare(op, fd, PT_OP_CONNECT);
    if (rc < 0)
        return rc;
    op->p.events = POLLOUT;
    return l->calls->connect(l, op, to, to_len);
}

int pt_op_accept(struct pt_loop *l, struct pt_op *op, int listen_fd)
{
    int rc = prepare(op, listen_fd, PT_OP_ACCEPT);
    if (rc < 0)
        return rc;
    op->p.events = POLLIN;
    return l->calls->op_start(l, op);
}

int pt_op_poll(struct pt_loop *l, struct pt_op *op, int fd, unsigned events)
{
    int rc = prepare(op, fd, PT_OP_POLL);
    if (rc < 0)
        return rc;
    op->p.events = events & 0xffffu;
    return l->calls->op_start(l, op);
}

static void unrest(struct pt_loop *l, struct pt_op *op)
{
    for (struct pt_op **at = &l->resting; *at; at = &(*at)->p.next) {
        if (*at == op) {
            *at = op->p.next;
            break;
        }
    }
    op->p.resting = false;
}

void pt_op_cancel(struct pt_loop *l, struct pt_op *op)
{
    if (!op->p.active)
        return;
    if (l->running == op)
        l->running = NULL;
    if (op->p.resting) {
        unrest(l, op);
        op->p.active = false;
        return;
    }
    l->calls->op_cancel(l, op);
}

/* ---- accept */

static void accept_again(struct pt_timer *t, pt_ns due)
{
    struct pt_loop *l = t->ctx;
    struct pt_op *op;
    (void)due;
    while ((op = l->resting)) {
        unrest(l, op);
        op->p.active = false;
        int rc = l->calls->op_start(l, op);
        if (rc < 0)
            op->fn(op, rc, false);
    }
}

static bool starved(int err)
{
    return err == -EMFILE || err == -ENFILE || err == -ENOBUFS || err == -ENOMEM;
}

int pt_ev_accept(struct pt_loop *l, struct pt_op *op, int *verdict)
{
    for (int ran = 0; ran < ACCEPT_BATCH; ran++) {
        int fd;
        do
            fd = accept4(op->p.fd, NULL, NULL, SOCK_CLOEXEC);
        while (fd < 0 && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO));
        if (fd < 0) {
            *verdict = errno == EAGAIN ? 1 : -errno;
            return ran;
        }
        l->running = op;
        op->fn(op, fd, true);
        if (l->running != op) {
            *verdict = 0;
            return ran + 1;
        }
    }
    *verdict = 1;
    return ACCEPT_BATCH;
}

void pt_ev_accept_over(struct pt_loop *l, struct pt_op *op, int err)
{
    /* Out of descriptors: asking again at once would only burn the CPU. */
    if (starved(err) && (pt_timer_active(&l->accept_retry) ||
                         pt_timer_set(l, &l->accept_retry, l->now + ACCEPT_REST) == 0)) {
        op->p.resting = true;
        op->p.next = l->resting;
        l->resting = op;
        op->fn(op, err, true);
        return;
    }
    op->p.active = false;
    op->fn(op, err, false);
}
