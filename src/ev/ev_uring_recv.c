/* ev_uring_recv.c: receives of the io_uring back end, and the buffers the kernel chooses from.
 *
 * - Pooled receives are multishot with a ring of provided buffers; a buffer goes back to the kernel
 *   as soon as its callback has returned.
 * - Receives into the caller's block, and discarding ones, are a poll followed by recv(2): many
 *   receives may share one block, which the kernel would fill before the first callback runs.
 * - What comes for a paused receive is held, in order; spares take the place of held buffers in the
 *   ring. A resumption is a no-op whose completion hands over what was held and arms again; until
 *   then completions join what is held.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/ev_uring.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* ---- buffers */

static void pool_give(struct pt_uring_loop *l, unsigned pool, unsigned buffer)
{
    struct pt_uring_pool *p = &l->pools[pool];
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

static size_t ring_bytes(const struct pt_uring_loop *l)
{
    return l->base.spec.recv_count * sizeof(struct io_uring_buf);
}

void pt_uring_pool_close(struct pt_uring_loop *l, unsigned pool)
{
    struct pt_uring_pool *p = &l->pools[pool];
    if (p->ring)
        munmap(p->ring, ring_bytes(l));
    if (p->bytes)
        munmap(p->bytes, 2 * l->base.spec.recv_count * p->stride);
    free(p->held);
    *p = (struct pt_uring_pool){0};
}

int pt_uring_pool_open(struct pt_uring_loop *l, unsigned pool)
{
    struct pt_uring_pool *p = &l->pools[pool];
    if (p->ring)
        return 0;
    const unsigned count = l->base.spec.recv_count;
    p->size = l->base.spec.recv_size;
    if (pool == PT_POOL_META)
        p->size +=
            sizeof(struct io_uring_recvmsg_out) + l->meta.msg_namelen + l->meta.msg_controllen;
    p->stride = pt_ev_stride(p->size);
    p->ring = map(ring_bytes(l));
    p->bytes = map(2 * count * p->stride);
    p->held = calloc(2 * count, sizeof(*p->held));
    int rc = -ENOMEM;
    if (p->ring && p->bytes && p->held) {
        struct io_uring_buf_reg reg = {.ring_addr = (uint64_t)(uintptr_t)p->ring,
                                       .ring_entries = count,
                                       .bgid = (uint16_t)pool};
        rc = io_uring_register_buf_ring(&l->ring, &reg, 0);
    }
    if (rc < 0) {
        pt_uring_pool_close(l, pool);
        return rc;
    }
    io_uring_buf_ring_init(p->ring);
    for (unsigned i = 0; i < count; i++)
        pool_give(l, pool, i);
    for (unsigned i = count; i < 2 * count; i++) {
        p->held[i].next = p->spare;
        p->spare = i + 1;
    }
    return 0;
}

/* ---- holding back */

static bool holds_back(const struct pt_recv *r)
{
    return r->p.paused || r->p.resume;
}

static void hold(struct pt_uring_loop *l, struct pt_recv *r, unsigned pool, unsigned buffer,
                 int res)
{
    struct pt_uring_pool *p = &l->pools[pool];
    p->held[buffer] = (struct pt_uring_held){.res = res};
    if (r->p.held)
        p->held[r->p.held_last - 1].next = buffer + 1;
    else
        r->p.held = buffer + 1;
    r->p.held_last = buffer + 1;
    r->p.pool = (uint8_t)pool;
    if (!p->spare) {
        p->owed++;
        return;
    }
    unsigned spare = p->spare - 1;
    p->spare = p->held[spare].next;
    pool_give(l, pool, spare);
}

static void let_go(struct pt_uring_loop *l, unsigned pool, unsigned buffer)
{
    struct pt_uring_pool *p = &l->pools[pool];
    if (p->owed) {
        p->owed--;
        pool_give(l, pool, buffer);
        return;
    }
    p->held[buffer].next = p->spare;
    p->spare = buffer + 1;
}

/* Which pool a receive takes its buffers from. */
static unsigned pool_of(const struct pt_recv *r)
{
    if (r->kind == PT_RECV_DGRAM_META)
        return PT_POOL_META;
    return r->kind == PT_RECV_DISCARD || r->into ? PT_POOL_NONE : PT_POOL_PLAIN;
}

static unsigned next_held(struct pt_uring_loop *l, struct pt_recv *r, int *res)
{
    const struct pt_uring_pool *p = &l->pools[r->p.pool];
    unsigned buffer = r->p.held - 1;
    *res = p->held[buffer].res;
    r->p.held = p->held[buffer].next;
    return buffer;
}

/* ---- arming */

static int recv_arm(struct pt_uring_loop *l, struct pt_recv *r)
{
    const unsigned pool = pool_of(r);
    int rc = pool == PT_POOL_NONE ? 0 : pt_uring_pool_open(l, pool);
    if (rc < 0)
        return rc;
    struct io_uring_sqe *sqe;
    uint32_t i = pt_uring_take(l, PT_URING_RECV, r, &sqe);
    if (!i)
        return -ENOMEM;
    if (pool == PT_POOL_NONE) {
        io_uring_prep_poll_add(sqe, r->fd, POLLIN);
    } else {
        if (pool == PT_POOL_META)
            io_uring_prep_recvmsg_multishot(sqe, r->fd, &l->meta, 0);
        else
            io_uring_prep_recv_multishot(sqe, r->fd, NULL, 0, 0);
        sqe->flags |= IOSQE_BUFFER_SELECT;
        sqe->buf_group = (uint16_t)pool;
    }
    l->entries[i].pool = (uint8_t)pool;
    pt_uring_bind(l, sqe, i);
    r->p.slot = i;
    return 0;
}

static void end_recv(struct pt_recv *r, int err)
{
    r->p.active = false;
    r->fn(r, NULL, err, NULL);
}

static void arm_again(struct pt_uring_loop *l, struct pt_recv *r)
{
    int rc = recv_arm(l, r);
    if (rc < 0)
        end_recv(r, rc);
}

int pt_uring_recv_start(struct pt_loop *base, struct pt_recv *r)
{
    int rc = recv_arm((struct pt_uring_loop *)(void *)base, r);
    r->p.active = rc == 0;
    return rc;
}

static void drop_resumption(struct pt_uring_loop *l, struct pt_recv *r)
{
    if (r->p.resume)
        l->entries[r->p.resume].what = NULL;
    r->p.resume = 0;
}

void pt_uring_recv_stop(struct pt_loop *base, struct pt_recv *r)
{
    struct pt_uring_loop *l = (struct pt_uring_loop *)(void *)base;
    drop_resumption(l, r);
    while (r->p.held) {
        int res;
        let_go(l, r->p.pool, next_held(l, r, &res));
    }
    if (!r->p.slot)
        return;
    l->entries[r->p.slot].what = NULL;
    pt_uring_cancel(l, r->p.slot);
}

void pt_uring_recv_pause(struct pt_loop *base, struct pt_recv *r)
{
    struct pt_uring_loop *l = (struct pt_uring_loop *)(void *)base;
    drop_resumption(l, r);
    if (r->p.slot)
        pt_uring_cancel(l, r->p.slot);
}

int pt_uring_recv_resume(struct pt_loop *base, struct pt_recv *r)
{
    struct pt_uring_loop *l = (struct pt_uring_loop *)(void *)base;
    struct io_uring_sqe *sqe;
    uint32_t i = pt_uring_take(l, PT_URING_RESUME, r, &sqe);
    if (!i) {
        pt_uring_recv_stop(base, r);
        return -ENOMEM;
    }
    io_uring_prep_nop(sqe);
    pt_uring_bind(l, sqe, i);
    r->p.resume = i;
    return 0;
}

/* ---- completions */

/* Hands over a buffer as the completion described it; false when the callback stopped or paused. */
static bool deliver(struct pt_uring_loop *l, struct pt_recv *r, unsigned pool, uint8_t *buf, int n)
{
    l->base.running = r;
    if (pool != PT_POOL_META || n < 0) {
        r->fn(r, n > 0 ? buf : NULL, n, NULL);
        return l->base.running == r;
    }
    struct io_uring_recvmsg_out *out = io_uring_recvmsg_validate(buf, n, &l->meta);
    if (!out) {
        r->fn(r, NULL, -EBADMSG, NULL);
        return l->base.running == r;
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
    return l->base.running == r;
}

static bool ends(const struct pt_recv *r, int res)
{
    return pt_ev_is_stream(r) ? res <= 0 : res < 0 && pt_ev_fatal(-res);
}

/* The request is over and it is not the socket's doing: it only has to be armed again. */
static bool is_transient(const struct pt_recv *r, int res)
{
    int off = 0;
    switch (res) {
    case -ENOBUFS:   /* all pooled buffers were in use; by now they are back */
    case -ECANCELED: /* by a pause that is over */
    case -EINTR:
        return true;
    case -EAGAIN: /* somebody left it O_NONBLOCK */
        return ioctl(r->fd, FIONBIO, &off) == 0;
    default:
        return false;
    }
}

/* The descriptor of a receive without pooled buffers is readable. */
static int read_block(struct pt_uring_loop *l, struct pt_recv *r)
{
    const bool discard = r->kind == PT_RECV_DISCARD;
    const size_t size = r->into_size ? r->into_size : PT_EV_DISCARD_SIZE;
    int calls = r->batch ? (int)r->batch : 1, ran = 0;
    while (ran < calls) {
        ssize_t n = discard ? recv(r->fd, NULL, size, MSG_DONTWAIT | MSG_TRUNC)
                            : pt_ev_recv_into(r, size, MSG_DONTWAIT);
        int res = n < 0 ? -errno : (int)n;
        if (res == -EAGAIN)
            break;
        if (res == -EINTR)
            continue;
        ran++;
        if (ends(r, res)) {
            end_recv(r, res);
            return ran;
        }
        if (!deliver(l, r, PT_POOL_NONE, r->into, res))
            return ran;
        if (pt_ev_is_stream(r) && (size_t)n < size)
            break;
    }
    arm_again(l, r);
    return ran;
}

static int polled(struct pt_uring_loop *l, struct pt_recv *r, int res)
{
    if (res >= 0 && pool_of(r) == PT_POOL_NONE)
        return read_block(l, r);
    if (res < 0 && !is_transient(r, res)) {
        end_recv(r, res);
        return 1;
    }
    arm_again(l, r);
    return 0;
}

static int multishot(struct pt_uring_loop *l, struct pt_recv *r, unsigned pool, uint8_t *buf,
                     int res, bool more)
{
    if (!more && is_transient(r, res)) {
        arm_again(l, r);
        return 0;
    }
    if (ends(r, res))
        end_recv(r, res);
    else if (deliver(l, r, pool, buf, res) && !more)
        arm_again(l, r);
    return 1;
}

int pt_uring_recv_completed(struct pt_uring_loop *l, uint32_t entry, int res, unsigned flags)
{
    struct pt_recv *r = l->entries[entry].what;
    const unsigned pool = l->entries[entry].pool, buffer = flags >> IORING_CQE_BUFFER_SHIFT;
    const bool has_buffer = (flags & IORING_CQE_F_BUFFER) != 0;
    const bool more = (flags & IORING_CQE_F_MORE) != 0;
    int ran = 0;
    if (!more) {
        pt_uring_free(l, entry);
        if (r)
            r->p.slot = 0;
    }
    if (r && holds_back(r)) {
        if (has_buffer && res > 0) {
            hold(l, r, pool, buffer, res);
            return 0;
        }
        if (pool != PT_POOL_NONE && !more && !is_transient(r, res) && ends(r, res)) {
            r->p.ended = true;
            r->p.end = res;
        }
    } else if (r && pool == PT_POOL_NONE) {
        ran = polled(l, r, res);
    } else if (r) {
        ran = multishot(l, r, pool,
                        has_buffer ? l->pools[pool].bytes + buffer * l->pools[pool].stride : NULL,
                        res, more);
    }
    if (has_buffer)
        pool_give(l, pool, buffer);
    return ran;
}

int pt_uring_resumed(struct pt_uring_loop *l, uint32_t entry)
{
    struct pt_recv *r = l->entries[entry].what;
    pt_uring_free(l, entry);
    if (!r)
        return 0;
    r->p.resume = 0;
    int ran = 0;
    while (r->p.held) {
        const unsigned pool = r->p.pool;
        int res;
        unsigned buffer = next_held(l, r, &res);
        bool on = deliver(l, r, pool, l->pools[pool].bytes + buffer * l->pools[pool].stride, res);
        let_go(l, pool, buffer);
        ran++;
        if (!on)
            return ran;
    }
    if (r->p.ended) {
        end_recv(r, r->p.end);
        return ran + 1;
    }
    /* Otherwise the cancelled request has yet to report, and is armed again then. */
    if (!r->p.slot)
        arm_again(l, r);
    return ran;
}
