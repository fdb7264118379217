/* ev_uring.h: the io_uring back end's own structs, shared by its two files; private to ev/.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_EV_URING_H
#define PT_EV_URING_H

#include "ev/backend.h"

#include <liburing.h>

/* POOL_NONE: no buffer of the loop's. */
enum { PT_POOL_PLAIN, PT_POOL_META, PT_POOLS, PT_POOL_NONE = PT_POOLS };

/* A buffer that is neither in the ring nor in a callback. */
struct pt_uring_held {
    uint32_t next; /* number + 1; 0: the last */
    int res;       /* as the completion said */
};

/* Twice as many buffers as the ring has: the others are spares. */
struct pt_uring_pool {
    struct io_uring_buf_ring *ring; /* NULL until the first receive that needs it */
    uint8_t *bytes;
    size_t stride, size; /* size: of one buffer */
    struct pt_uring_held *held;
    uint32_t spare; /* first of a list, number + 1 */
    uint32_t owed;  /* buffers that the ring misses */
};

enum pt_uring_kind { PT_URING_FREE, PT_URING_RECV, PT_URING_RESUME, PT_URING_OP };

/* A request in the kernel; its number and generation are the user_data. */
struct pt_uring_entry {
    void *what; /* NULL: stopped, the kernel has not finished yet */
    uint32_t generation;
    uint32_t next_free;
    uint8_t kind;
    uint8_t pool; /* of a receive */
};

struct pt_uring_loop {
    struct pt_loop base;
    struct io_uring ring;
    bool ring_open;
    unsigned enter_flags;
    struct pt_uring_pool pools[PT_POOLS];
    struct msghdr meta;             /* the shape of a PT_POOL_META buffer */
    struct pt_uring_entry *entries; /* entry 0 is none */
    uint32_t entry_count, entry_used, free_head, live;
};

/* ---- ev_uring.c */

/* A submission entry, and a request entry for `what` bound to it, whose number it returns; 0 when
 * there is no room (then *sqe is NULL). The caller prepares *sqe and calls pt_uring_bind last. */
uint32_t pt_uring_take(struct pt_uring_loop *l, enum pt_uring_kind kind, void *what,
                       struct io_uring_sqe **sqe);
void pt_uring_bind(const struct pt_uring_loop *l, struct io_uring_sqe *sqe, uint32_t entry);
void pt_uring_free(struct pt_uring_loop *l, uint32_t entry);
/* Makes the kernel let go of the request, and of its descriptor, before it returns. */
void pt_uring_cancel(struct pt_uring_loop *l, uint32_t entry);

/* ---- ev_uring_recv.c */

int pt_uring_pool_open(struct pt_uring_loop *l, unsigned pool);
void pt_uring_pool_close(struct pt_uring_loop *l, unsigned pool);
int pt_uring_recv_start(struct pt_loop *base, struct pt_recv *r);
void pt_uring_recv_stop(struct pt_loop *base, struct pt_recv *r);
void pt_uring_recv_pause(struct pt_loop *base, struct pt_recv *r);
int pt_uring_recv_resume(struct pt_loop *base, struct pt_recv *r);
/* A completion of a PT_URING_RECV or PT_URING_RESUME entry; returns the callbacks run. */
int pt_uring_recv_completed(struct pt_uring_loop *l, uint32_t entry, int res, unsigned flags);
int pt_uring_resumed(struct pt_uring_loop *l, uint32_t entry);

#endif
