/* ev_uring.c: the loop over io_uring: requests, operations, waiting.
 *
 * - Sends wait in the submission queue for the next step: one io_uring_enter submits and waits.
 * - While polling, the kernel is entered only when it has raised IORING_SQ_TASKRUN or there is
 *   something to submit; otherwise a round is one load from shared memory.
 * - Accept is a poll followed by accept4(2): io_uring answers -EAGAIN at once on a listener that is
 *   O_NONBLOCK, and listeners that workers share must be.
 * - A wait is always for one completion: with DEFER_TASKRUN a wait for more has been seen to sleep
 *   through full socket buffers.
 *
 * Each request in the kernel holds an entry. Stopping empties it and cancels at once, in one system
 * call, so that the kernel drops its reference to the socket before the caller closes it; the entry
 * is free again when the last completion has come.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/ev_uring.h"
#include "ev/uring_abi.h"

#include "os/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define SQ_LEAST       64u
#define SQ_MOST        4096u
#define CQ_PER_SQ      4u
#define CLOSE_PATIENCE 100 /* steps of 1 ms until every request has ended */

static struct pt_uring_loop *self(struct pt_loop *l)
{
    return (struct pt_uring_loop *)(void *)l;
}

/* ---- entering the kernel */

/* Publishes what io_uring_get_sqe handed out; returns how many the kernel has to take. */
static unsigned flush(struct io_uring *r)
{
    struct io_uring_sq *sq = &r->sq;
    sq->sqe_head = sq->sqe_tail;
    __atomic_store_n(sq->ktail, sq->sqe_tail, __ATOMIC_RELEASE);
    return sq->sqe_tail - __atomic_load_n(sq->khead, __ATOMIC_ACQUIRE);
}

/* Submits, runs what the kernel has deferred, and waits for `least` completions, at most `timeout`
 * (0: as long as it takes). 0 or a negative errno. */
static int enter(struct pt_uring_loop *l, unsigned least, pt_ns timeout)
{
    struct __kernel_timespec ts = {.tv_sec = timeout / PT_S, .tv_nsec = timeout % PT_S};
    struct io_uring_getevents_arg arg = {.ts = (uint64_t)(uintptr_t)&ts};
    unsigned flags = IORING_ENTER_GETEVENTS | l->enter_flags;
    int rc;
    if (timeout > 0)
        rc = io_uring_enter2((unsigned)l->ring.ring_fd, flush(&l->ring), least,
                             flags | IORING_ENTER_EXT_ARG, (sigset_t *)(void *)&arg, sizeof(arg));
    else
        rc = io_uring_enter2((unsigned)l->ring.ring_fd, flush(&l->ring), least, flags, NULL, 0);
    return rc < 0 ? rc : 0;
}

static struct io_uring_sqe *take_sqe(struct pt_uring_loop *l)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ring);
    if (PT_UNLIKELY(!sqe) && enter(l, 0, 0) == 0)
        sqe = io_uring_get_sqe(&l->ring);
    return sqe;
}

/* ---- requests */

static int more_entries(struct pt_uring_loop *l)
{
    struct pt_uring_entry *more = realloc(l->entries, 2 * l->entry_count * sizeof(*more));
    if (!more)
        return -ENOMEM;
    memset(more + l->entry_count, 0, l->entry_count * sizeof(*more));
    l->entries = more;
    l->entry_count *= 2;
    return 0;
}

uint32_t pt_uring_take(struct pt_uring_loop *l, enum pt_uring_kind kind, void *what,
                       struct io_uring_sqe **sqe)
{
    *sqe = NULL;
    if (!l->free_head && l->entry_used == l->entry_count && more_entries(l) < 0)
        return 0;
    *sqe = take_sqe(l);
    if (!*sqe)
        return 0;
    uint32_t i = l->free_head;
    if (i)
        l->free_head = l->entries[i].next_free;
    else
        i = l->entry_used++;
    struct pt_uring_entry *e = &l->entries[i];
    e->what = what;
    e->kind = (uint8_t)kind;
    e->generation++;
    l->live++;
    return i;
}

static uint64_t id_of(const struct pt_uring_loop *l, uint32_t entry)
{
    return (uint64_t)l->entries[entry].generation << 32 | entry;
}

void pt_uring_bind(const struct pt_uring_loop *l, struct io_uring_sqe *sqe, uint32_t entry)
{
    io_uring_sqe_set_data64(sqe, id_of(l, entry));
}

void pt_uring_free(struct pt_uring_loop *l, uint32_t entry)
{
    struct pt_uring_entry *e = &l->entries[entry];
    e->kind = PT_URING_FREE;
    e->what = NULL;
    e->next_free = l->free_head;
    l->free_head = entry;
    l->live--;
}

void pt_uring_cancel(struct pt_uring_loop *l, uint32_t entry)
{
    struct io_uring_sqe *sqe = take_sqe(l);
    if (!sqe)
        return;
    io_uring_prep_cancel64(sqe, id_of(l, entry), 0);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, 0);
    enter(l, 0, 0);
}

/* ---- operations */

static int op_arm(struct pt_uring_loop *l, struct pt_op *op, const struct sockaddr *to,
                  socklen_t len)
{
    struct io_uring_sqe *sqe;
    uint32_t i = pt_uring_take(l, PT_URING_OP, op, &sqe);
    if (!i)
        return -ENOMEM;
    switch ((enum pt_op_kind)op->p.kind) {
    case PT_OP_SEND:
        io_uring_prep_send(sqe, op->p.fd, op->p.buf + op->p.done, op->p.len - op->p.done,
                           MSG_NOSIGNAL | MSG_WAITALL);
        break;
    case PT_OP_CONNECT:
        io_uring_prep_connect(sqe, op->p.fd, to, len);
        break;
    default:
        io_uring_prep_poll_add(sqe, op->p.fd, op->p.events);
        break;
    }
    pt_uring_bind(l, sqe, i);
    op->p.slot = i;
    op->p.active = true;
    return 0;
}

static int uring_op_start(struct pt_loop *base, struct pt_op *op)
{
    return op_arm(self(base), op, NULL, 0);
}

static int uring_connect(struct pt_loop *base, struct pt_op *op, const struct sockaddr *to,
                         socklen_t len)
{
    int rc = op_arm(self(base), op, to, len);
    /* The kernel copies the address when it takes the request: now, while it is there. */
    return rc < 0 ? rc : enter(self(base), 0, 0);
}

static void uring_op_cancel(struct pt_loop *base, struct pt_op *op)
{
    struct pt_uring_loop *l = self(base);
    op->p.active = false;
    if (!op->p.slot)
        return;
    l->entries[op->p.slot].what = NULL;
    pt_uring_cancel(l, op->p.slot);
}

static int op_end(struct pt_op *op, int res)
{
    op->p.active = false;
    op->fn(op, res, false);
    return 1;
}

static int op_again(struct pt_uring_loop *l, struct pt_op *op)
{
    int rc = op_arm(l, op, NULL, 0);
    return rc < 0 ? op_end(op, rc) : 0;
}

static int send_completed(struct pt_uring_loop *l, struct pt_op *op, int res)
{
    int off = 0;
    if (res == -EINTR || (res == -EAGAIN && ioctl(op->p.fd, FIONBIO, &off) == 0))
        return op_again(l, op);
    if (res < 0)
        return op_end(op, res);
    op->p.done += (size_t)res;
    if (op->p.done < op->p.len)
        return res > 0 ? op_again(l, op) : op_end(op, -EPIPE);
    return op_end(op, (int)op->p.len);
}

static int accept_completed(struct pt_uring_loop *l, struct pt_op *op, int res)
{
    int verdict = res, ran = 0;
    if (res >= 0)
        ran = pt_ev_accept(&l->base, op, &verdict);
    if (verdict > 0)
        return ran + op_again(l, op);
    if (verdict < 0) {
        pt_ev_accept_over(&l->base, op, verdict);
        ran++;
    }
    return ran;
}

static int op_completed(struct pt_uring_loop *l, uint32_t i, int res)
{
    struct pt_op *op = l->entries[i].what;
    pt_uring_free(l, i);
    if (!op)
        return 0;
    op->p.slot = 0;
    switch ((enum pt_op_kind)op->p.kind) {
    case PT_OP_SEND:
        return send_completed(l, op, res);
    case PT_OP_ACCEPT:
        return accept_completed(l, op, res);
    default:
        return op_end(op, res);
    }
}

/* ---- waiting */

/* Runs the completions that are there; those that callbacks cause wait for the next step. */
static int reap(struct pt_uring_loop *l)
{
    unsigned ready = io_uring_cq_ready(&l->ring);
    if (ready == 0)
        return 0;
    l->base.now = pt_clock_now();
    int ran = 0;
    struct io_uring_cqe *cqe;
    for (; ready > 0 && io_uring_peek_cqe(&l->ring, &cqe) == 0; ready--) {
        const uint64_t id = cqe->user_data;
        const int res = cqe->res;
        const unsigned flags = cqe->flags;
        const uint32_t i = (uint32_t)id;
        io_uring_cqe_seen(&l->ring, cqe);
        if (i == 0 || i >= l->entry_used || l->entries[i].generation != id >> 32)
            continue;
        switch ((enum pt_uring_kind)l->entries[i].kind) {
        case PT_URING_RECV:
            ran += pt_uring_recv_completed(l, i, res, flags);
            break;
        case PT_URING_RESUME:
            ran += pt_uring_resumed(l, i);
            break;
        case PT_URING_OP:
            ran += op_completed(l, i, res);
            break;
        case PT_URING_FREE:
            break;
        }
    }
    return ran;
}

static bool kernel_has_work(const struct pt_uring_loop *l)
{
    unsigned flags = __atomic_load_n(l->ring.sq.kflags, __ATOMIC_RELAXED);
    return (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) || io_uring_sq_ready(&l->ring) > 0;
}

static int uring_wait(struct pt_loop *base, pt_ns timeout)
{
    struct pt_uring_loop *l = self(base);
    int rc = 0;
    if (timeout > 0 && io_uring_cq_ready(&l->ring) == 0)
        rc = enter(l, 1, timeout);
    else if (kernel_has_work(l))
        rc = enter(l, 0, 0);
    int ran = reap(l);
    if (ran == 0 && timeout > 0)
        base->now = pt_clock_now();
    if (ran > 0 || rc == -ETIME)
        return ran;
    return rc;
}

/* ---- life */

static int refuse(struct pt_err *e, int rc)
{
    switch (rc) {
    case -ENOSYS:
        return pt_fail(e, rc, "io_uring: this kernel or its seccomp filter does not offer it");
    case -EPERM:
    case -EACCES:
        return pt_fail(e, -EPERM,
                       "io_uring: not permitted (kernel.io_uring_disabled or a seccomp filter)");
    default:
        return pt_fail(e, rc, "io_uring: %s", pt_strerror(rc));
    }
}

static int ring_open(struct pt_uring_loop *l, struct pt_err *e)
{
    const unsigned want[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
            IORING_SETUP_TASKRUN_FLAG,                         /* 6.1 */
        IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, /* 5.19 */
    };
    unsigned sq = SQ_LEAST;
    while (sq < l->base.spec.ops && sq < SQ_MOST)
        sq *= 2;
    int rc = -EINVAL;
    for (size_t i = 0; i < PT_COUNT(want) && rc == -EINVAL; i++) {
        struct io_uring_params p = {.flags = want[i] | IORING_SETUP_CQSIZE |
                                             IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP,
                                    .cq_entries = CQ_PER_SQ * sq};
        rc = io_uring_queue_init_params(sq, &l->ring, &p);
    }
    if (rc == -EINVAL)
        return pt_fail(e, -ENOSYS, "io_uring: this kernel is too old for it (6.0 is needed)");
    if (rc < 0)
        return refuse(e, rc);
    l->ring_open = true;
    if (l->ring.features & IORING_FEAT_NO_IOWAIT)
        l->enter_flags |= IORING_ENTER_NO_IOWAIT;
    return 0;
}

/* Multishot receive has no bit of its own: it came with SEND_ZC, in 6.0. */
static int check_features(struct pt_uring_loop *l, struct pt_err *e)
{
    const unsigned needed = IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG |
                            IORING_FEAT_CQE_SKIP | IORING_FEAT_SUBMIT_STABLE;
    struct io_uring_probe *p = io_uring_get_probe_ring(&l->ring);
    bool ok = p && io_uring_opcode_supported(p, IORING_OP_SEND_ZC) &&
              (l->ring.features & needed) == needed;
    io_uring_free_probe(p);
    if (!ok)
        return pt_fail(e, -ENOSYS, "io_uring: no multishot receive in this kernel (6.0 has it)");
    return 0;
}

static int uring_open(struct pt_loop *base, struct pt_err *e)
{
    struct pt_uring_loop *l = self(base);
    int rc = ring_open(l, e);
    if (rc < 0)
        return rc;
    l->meta = (struct msghdr){.msg_namelen = sizeof(struct sockaddr_storage),
                              .msg_controllen = PT_EV_CONTROL_SIZE};
    l->entry_count = base->spec.ops + 1;
    l->entry_used = 1;
    l->entries = calloc(l->entry_count, sizeof(*l->entries));
    rc = check_features(l, e);
    if (rc == 0 && !l->entries)
        rc = pt_fail(e, -ENOMEM, "event loop: out of memory");
    if (rc == 0 && (rc = pt_uring_pool_open(l, PT_POOL_PLAIN)) < 0)
        rc = pt_fail(e, rc == -EINVAL ? -ENOSYS : rc, "io_uring: no provided buffers: %s",
                     pt_strerror(rc));
    if (rc < 0)
        base->calls->close(base);
    return rc;
}

/* Closing the ring cancels in the background; the sockets must be free of it when this returns. */
static void cancel_all(struct pt_uring_loop *l)
{
    for (uint32_t i = 1; i < l->entry_used; i++)
        l->entries[i].what = NULL;
    struct io_uring_sqe *sqe = take_sqe(l);
    if (!sqe)
        return;
    io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL);
    io_uring_sqe_set_data64(sqe, 0);
    for (int i = 0; i < CLOSE_PATIENCE && l->live > 0; i++) {
        enter(l, 1, PT_MS);
        reap(l);
    }
}

static void uring_close(struct pt_loop *base)
{
    struct pt_uring_loop *l = self(base);
    if (l->entries && l->live > 0)
        cancel_all(l);
    if (l->ring_open)
        io_uring_queue_exit(&l->ring);
    for (unsigned i = 0; i < PT_POOLS; i++)
        pt_uring_pool_close(l, i);
    free(l->entries);
}

const struct pt_backend_calls pt_backend_uring = {
    .name = "io_uring",
    .size = sizeof(struct pt_uring_loop),
    .open = uring_open,
    .close = uring_close,
    .wait = uring_wait,
    .recv_start = pt_uring_recv_start,
    .recv_stop = pt_uring_recv_stop,
    .recv_pause = pt_uring_recv_pause,
    .recv_resume = pt_uring_recv_resume,
    .connect = uring_connect,
    .op_start = uring_op_start,
    .op_cancel = uring_op_cancel,
};
