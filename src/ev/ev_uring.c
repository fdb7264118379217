/* ev_uring.c: the loop over io_uring.
 *
 * - Pooled receives are multishot with a ring of provided buffers; a buffer goes back to the kernel
 *   as soon as its callback has returned. Receives into the caller's block, and discarding ones,
 *   are single shots that are armed again.
 * - Sends wait in the submission queue for the next step: one io_uring_enter submits and waits.
 * - While polling, the kernel is entered only when it has raised IORING_SQ_TASKRUN or there is
 *   something to submit; otherwise a round is one load from shared memory.
 * - Accept is a poll followed by accept4(2): io_uring answers -EAGAIN at once on a listener that is
 *   O_NONBLOCK, and listeners that workers share must be.
 * - A wait is always for one completion: with DEFER_TASKRUN a wait for more has been seen to sleep
 *   through full socket buffers.
 *
 * Each request in the kernel holds an entry; its number and generation are the user_data. Stopping
 * empties the entry and cancels at once, in one system call, so that the kernel drops its reference
 * to the socket before the caller closes it; the entry itself is free again when the last
 * completion has come.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/backend.h"
#include "ev/uring_abi.h"

#include "os/clock.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define SQ_LEAST       64u
#define SQ_MOST        4096u
#define CQ_PER_SQ      4u
#define CLOSE_PATIENCE 100 /* steps of 1 ms until every request has ended */

enum { POOL_PLAIN, POOL_META, POOLS };

struct pool {
    struct io_uring_buf_ring *ring; /* NULL until the first receive that needs it */
    uint8_t *bytes;
    size_t stride, size; /* size: of one buffer */
};

enum entry_kind { ENTRY_FREE, ENTRY_RECV, ENTRY_OP };

struct entry {
    void *what; /* NULL: stopped, the kernel has not finished yet */
    uint32_t generation;
    uint32_t next_free;
    uint8_t kind;
    uint8_t pool;
};

struct uring_loop {
    struct pt_loop base;
    struct io_uring ring;
    bool ring_open, task_flag; /* task_flag: IORING_SQ_TASKRUN is raised when a wait would pay */
    unsigned enter_flags;
    struct pool pools[POOLS];
    struct msghdr meta;    /* the shape of a POOL_META buffer */
    struct entry *entries; /* entry 0 is none */
    uint32_t entry_count, entry_used, free_head, live;
};

static struct uring_loop *self(struct pt_loop *l)
{
    return (struct uring_loop *)(void *)l;
}

/* ---- entries */

static uint32_t entry_take(struct uring_loop *l, enum entry_kind kind, void *what)
{
    uint32_t i = l->free_head;
    if (i) {
        l->free_head = l->entries[i].next_free;
    } else {
        if (l->entry_used == l->entry_count) {
            struct entry *more = realloc(l->entries, 2 * l->entry_count * sizeof(*more));
            if (!more)
                return 0;
            memset(more + l->entry_count, 0, l->entry_count * sizeof(*more));
            l->entries = more;
            l->entry_count *= 2;
        }
        i = l->entry_used++;
    }
    struct entry *e = &l->entries[i];
    e->what = what;
    e->kind = (uint8_t)kind;
    e->generation++;
    l->live++;
    return i;
}

static void entry_free(struct uring_loop *l, uint32_t i)
{
    struct entry *e = &l->entries[i];
    e->kind = ENTRY_FREE;
    e->what = NULL;
    e->next_free = l->free_head;
    l->free_head = i;
    l->live--;
}

static uint64_t entry_id(const struct uring_loop *l, uint32_t i)
{
    return (uint64_t)l->entries[i].generation << 32 | i;
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
static int enter(struct uring_loop *l, unsigned least, pt_ns timeout)
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

static struct io_uring_sqe *take_sqe(struct uring_loop *l)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ring);
    if (PT_UNLIKELY(!sqe) && enter(l, 0, 0) == 0)
        sqe = io_uring_get_sqe(&l->ring);
    return sqe;
}

/* ---- buffers */

static void pool_give(struct uring_loop *l, unsigned pool, unsigned buffer)
{
    struct pool *p = &l->pools[pool];
    io_uring_buf_ring_add(p->ring, p->bytes + buffer * p->stride, (unsigned)p->size,
                          (unsigned short)buffer, io_uring_buf_ring_mask(l->base.spec.recv_count),
                          0);
    io_uring_buf_ring_advance(p->ring, 1);
}

static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static size_t ring_bytes(const struct uring_loop *l)
{
    return l->base.spec.recv_count * sizeof(struct io_uring_buf);
}

static int pool_open(struct uring_loop *l, unsigned pool)
{
    struct pool *p = &l->pools[pool];
    if (p->ring)
        return 0;
    unsigned count = l->base.spec.recv_count;
    p->size = l->base.spec.recv_size;
    if (pool == POOL_META)
        p->size +=
            sizeof(struct io_uring_recvmsg_out) + l->meta.msg_namelen + l->meta.msg_controllen;
    p->stride = pt_ev_stride(p->size);
    p->ring = map(ring_bytes(l));
    p->bytes = map(count * p->stride);
    int rc = -ENOMEM;
    if (p->ring && p->bytes) {
        struct io_uring_buf_reg reg = {.ring_addr = (uint64_t)(uintptr_t)p->ring,
                                       .ring_entries = count,
                                       .bgid = (uint16_t)pool};
        rc = io_uring_register_buf_ring(&l->ring, &reg, 0);
    }
    if (rc < 0) {
        if (p->ring)
            munmap(p->ring, ring_bytes(l));
        if (p->bytes)
            munmap(p->bytes, count * p->stride);
        *p = (struct pool){0};
        return rc;
    }
    io_uring_buf_ring_init(p->ring);
    for (unsigned i = 0; i < count; i++)
        pool_give(l, pool, i);
    return 0;
}

/* ---- receive */

static bool is_pooled(const struct pt_recv *r)
{
    return r->kind == PT_RECV_DGRAM_META || (r->kind != PT_RECV_DISCARD && !r->into);
}

static void prepare_single(struct io_uring_sqe *sqe, const struct pt_recv *r)
{
    if (r->kind == PT_RECV_DISCARD)
        io_uring_prep_recv(sqe, r->fd, NULL, r->into_size ? r->into_size : PT_EV_DISCARD_SIZE,
                           MSG_TRUNC);
    else
        io_uring_prep_recv(sqe, r->fd, r->into, r->into_size, 0);
    /* Nothing was left behind the last completion: an attempt now would fail. */
    if (!r->p.primed)
        sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
}

static void prepare_multi(struct uring_loop *l, struct io_uring_sqe *sqe, const struct pt_recv *r)
{
    if (r->kind == PT_RECV_DGRAM_META)
        io_uring_prep_recvmsg_multishot(sqe, r->fd, &l->meta, 0);
    else
        io_uring_prep_recv_multishot(sqe, r->fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = r->kind == PT_RECV_DGRAM_META ? POOL_META : POOL_PLAIN;
}

static int recv_arm(struct uring_loop *l, struct pt_recv *r)
{
    struct io_uring_sqe *sqe = take_sqe(l);
    if (!sqe)
        return -EBUSY;
    uint32_t i = entry_take(l, ENTRY_RECV, r);
    if (is_pooled(r))
        prepare_multi(l, sqe, r);
    else
        prepare_single(sqe, r);
    if (!i) {
        io_uring_prep_nop(sqe);
        io_uring_sqe_set_data64(sqe, 0);
        return -ENOMEM;
    }
    l->entries[i].pool = r->kind == PT_RECV_DGRAM_META ? POOL_META : POOL_PLAIN;
    io_uring_sqe_set_data64(sqe, entry_id(l, i));
    r->p.slot = i;
    return 0;
}

static int uring_recv_start(struct pt_loop *base, struct pt_recv *r)
{
    struct uring_loop *l = self(base);
    int rc =
        is_pooled(r) ? pool_open(l, r->kind == PT_RECV_DGRAM_META ? POOL_META : POOL_PLAIN) : 0;
    if (rc < 0)
        return rc;
    r->p.slot = 0;
    rc = recv_arm(l, r);
    r->p.active = rc == 0;
    return rc;
}

/* Empties the entry and makes the kernel let go of the descriptor. */
static void withdraw(struct uring_loop *l, uint32_t i)
{
    if (!i)
        return;
    l->entries[i].what = NULL;
    struct io_uring_sqe *sqe = take_sqe(l);
    if (!sqe)
        return;
    io_uring_prep_cancel64(sqe, entry_id(l, i), 0);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, 0);
    enter(l, 0, 0);
}

static void uring_recv_stop(struct pt_loop *base, struct pt_recv *r)
{
    r->p.active = false;
    withdraw(self(base), r->p.slot);
}

static void end_recv(struct pt_recv *r, int err)
{
    r->p.active = false;
    r->fn(r, NULL, err, NULL);
}

static void recv_again(struct uring_loop *l, struct pt_recv *r)
{
    int rc = recv_arm(l, r);
    if (rc < 0)
        end_recv(r, rc);
}

/* A receive ended without a byte for the caller. False when there is something to report. */
static bool recv_resumes(struct uring_loop *l, struct pt_recv *r, int res)
{
    int off = 0;
    switch (res) {
    case -EAGAIN: /* somebody left it O_NONBLOCK */
        if (ioctl(r->fd, FIONBIO, &off) < 0)
            return false;
        break;
    case -ENOBUFS: /* all pooled buffers were in use; by now they are back */
    case -EINTR:
        break;
    default:
        return false;
    }
    recv_again(l, r);
    return true;
}

static void deliver(struct uring_loop *l, struct pt_recv *r, uint8_t *buf, int n)
{
    if (r->kind != PT_RECV_DGRAM_META || n < 0) {
        r->fn(r, n > 0 ? buf : NULL, n, NULL);
        return;
    }
    struct io_uring_recvmsg_out *out = io_uring_recvmsg_validate(buf, n, &l->meta);
    if (!out) {
        r->fn(r, NULL, -EBADMSG, NULL);
        return;
    }
    uint8_t *name = io_uring_recvmsg_name(out);
    struct msghdr msg = {.msg_name = name,
                         .msg_namelen = out->namelen < l->meta.msg_namelen ? out->namelen
                                                                           : l->meta.msg_namelen,
                         .msg_control = name + l->meta.msg_namelen,
                         .msg_controllen = out->controllen,
                         .msg_flags = (int)out->flags};
    struct pt_recv_meta meta;
    pt_ev_meta(&meta, &msg);
    r->fn(r, io_uring_recvmsg_payload(out, &l->meta),
          (ssize_t)io_uring_recvmsg_payload_length(out, n, &l->meta), &meta);
}

static int recv_completed(struct uring_loop *l, uint32_t i, int res, unsigned flags)
{
    struct entry *e = &l->entries[i];
    struct pt_recv *r = e->what;
    const unsigned pool = e->pool, buffer = flags >> IORING_CQE_BUFFER_SHIFT;
    const bool has_buffer = (flags & IORING_CQE_F_BUFFER) != 0;
    const bool more = (flags & IORING_CQE_F_MORE) != 0;
    int ran = 0;
    if (!more) {
        entry_free(l, i);
        if (r)
            r->p.slot = 0;
    }
    if (!r || (!more && recv_resumes(l, r, res)))
        goto out;
    uint8_t *buf = has_buffer ? l->pools[pool].bytes + buffer * l->pools[pool].stride : r->into;
    const bool stream = r->kind == PT_RECV_STREAM || r->kind == PT_RECV_DISCARD;
    ran = 1;
    if ((stream && res <= 0) || (res < 0 && pt_ev_fatal(-res))) {
        end_recv(r, res);
        goto out;
    }
    r->p.primed = (flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
    l->base.running = r;
    deliver(l, r, buf, res);
    if (l->base.running == r && !more)
        recv_again(l, r);
out:
    if (has_buffer)
        pool_give(l, pool, buffer);
    return ran;
}

/* ---- operations */

static int op_arm(struct uring_loop *l, struct pt_op *op, const struct sockaddr *to, socklen_t len)
{
    struct io_uring_sqe *sqe = take_sqe(l);
    if (!sqe)
        return -EBUSY;
    uint32_t i = entry_take(l, ENTRY_OP, op);
    if (!i) {
        io_uring_prep_nop(sqe);
        io_uring_sqe_set_data64(sqe, 0);
        return -ENOMEM;
    }
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
    io_uring_sqe_set_data64(sqe, entry_id(l, i));
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
    op->p.active = false;
    withdraw(self(base), op->p.slot);
}

static int op_end(struct pt_op *op, int res)
{
    op->p.active = false;
    op->fn(op, res, false);
    return 1;
}

static int op_again(struct uring_loop *l, struct pt_op *op)
{
    int rc = op_arm(l, op, NULL, 0);
    return rc < 0 ? op_end(op, rc) : 0;
}

static int send_completed(struct uring_loop *l, struct pt_op *op, int res)
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

static int accept_completed(struct uring_loop *l, struct pt_op *op, int res)
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

static int op_completed(struct uring_loop *l, uint32_t i, int res)
{
    struct pt_op *op = l->entries[i].what;
    entry_free(l, i);
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
static int reap(struct uring_loop *l)
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
        if (l->entries[i].kind == ENTRY_RECV)
            ran += recv_completed(l, i, res, flags);
        else if (l->entries[i].kind == ENTRY_OP)
            ran += op_completed(l, i, res);
    }
    return ran;
}

static bool kernel_has_work(const struct uring_loop *l)
{
    unsigned flags = __atomic_load_n(l->ring.sq.kflags, __ATOMIC_RELAXED);
    return !l->task_flag || (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) ||
           io_uring_sq_ready(&l->ring) > 0;
}

static int uring_wait(struct pt_loop *base, pt_ns timeout)
{
    struct uring_loop *l = self(base);
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

static int ring_open(struct uring_loop *l, struct pt_err *e)
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
    l->task_flag = true;
    if (l->ring.features & IORING_FEAT_NO_IOWAIT)
        l->enter_flags |= IORING_ENTER_NO_IOWAIT;
    return 0;
}

/* Multishot receive has no bit of its own: it came with SEND_ZC, in 6.0. */
static int check_features(struct uring_loop *l, struct pt_err *e)
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
    struct uring_loop *l = self(base);
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
    if (rc == 0 && (rc = pool_open(l, POOL_PLAIN)) < 0)
        rc = pt_fail(e, rc == -EINVAL ? -ENOSYS : rc, "io_uring: no provided buffers: %s",
                     pt_strerror(rc));
    if (rc < 0)
        base->calls->close(base);
    return rc;
}

/* Closing the ring cancels in the background; the sockets must be free of it when this returns. */
static void cancel_all(struct uring_loop *l)
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
    struct uring_loop *l = self(base);
    if (l->entries && l->live > 0)
        cancel_all(l);
    if (l->ring_open)
        io_uring_queue_exit(&l->ring);
    for (unsigned i = 0; i < POOLS; i++) {
        struct pool *p = &l->pools[i];
        if (!p->ring)
            continue;
        munmap(p->ring, ring_bytes(l));
        munmap(p->bytes, base->spec.recv_count * p->stride);
    }
    free(l->entries);
}

const struct pt_backend_calls pt_backend_uring = {
    .name = "io_uring",
    .size = sizeof(struct uring_loop),
    .open = uring_open,
    .close = uring_close,
    .wait = uring_wait,
    .recv_start = uring_recv_start,
    .recv_stop = uring_recv_stop,
    .connect = uring_connect,
    .op_start = uring_op_start,
    .op_cancel = uring_op_cancel,
};
