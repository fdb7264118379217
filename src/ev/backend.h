/* backend.h: what loop.c and the two back ends share; private to ev/.
 *
 * A back end embeds `struct pt_loop` first and brings a table of functions. It keeps these
 * promises: an operation is marked inactive before its last callback; after every callback it looks
 * at `running`, which a stop or cancel of that very operation clears, before it touches the
 * operation again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_EV_BACKEND_H
#define PT_EV_BACKEND_H

#include "ev/loop.h"

/* The longest wait in the kernel: a signal that came just before it is noticed after this. */
#define PT_EV_WAIT_MOST    (50 * PT_MS)
#define PT_EV_DISCARD_SIZE ((size_t)1 << 20)
/* Room for the control messages this loop knows: timestamp, drops, segment size. */
#define PT_EV_CONTROL_SIZE ((size_t)256)

enum pt_op_kind { PT_OP_SEND, PT_OP_CONNECT, PT_OP_ACCEPT, PT_OP_POLL, PT_OP_FINISHED };

struct pt_backend_calls {
    const char *name;
    size_t size; /* of the struct that embeds pt_loop */
    int (*open)(struct pt_loop *l, struct pt_err *e);
    void (*close)(struct pt_loop *l);
    /* Waits at most `timeout` (0: only polls), runs callbacks, sets `now` if any ran or if it
     * slept. Callbacks run, or a negative errno; -EINTR for a signal. */
    int (*wait)(struct pt_loop *l, pt_ns timeout);
    int (*recv_start)(struct pt_loop *l, struct pt_recv *r);
    /* Of an active receive, paused or not; recv_pause of one that is not paused. */
    void (*recv_stop)(struct pt_loop *l, struct pt_recv *r);
    void (*recv_pause)(struct pt_loop *l, struct pt_recv *r);
    int (*recv_resume)(struct pt_loop *l, struct pt_recv *r);
    int (*connect)(struct pt_loop *l, struct pt_op *op, const struct sockaddr *to, socklen_t len);
    /* Starts a send, accept or poll whose `p` is filled in, or resumes a resting accept. */
    int (*op_start)(struct pt_loop *l, struct pt_op *op);
    /* Withdraws an active operation. */
    void (*op_cancel)(struct pt_loop *l, struct pt_op *op);
};

struct pt_timer_slot {
    pt_ns due;
    struct pt_timer *timer;
};

struct pt_timer_heap {
    struct pt_timer_slot *slots;
    size_t count, cap;
};

struct pt_loop {
    const struct pt_backend_calls *calls;
    struct pt_loop_spec spec; /* defaults filled in */
    pt_ns now;
    const void *running; /* the operation whose callback runs, NULL once it was stopped */
    struct pt_timer_heap timers;
    struct pt_timer accept_retry;
    struct pt_op *resting; /* accepts waiting for accept_retry, linked by p.next */
};

extern const struct pt_backend_calls pt_backend_epoll, pt_backend_uring;

/* Accepts what is there; returns the callbacks run. `*verdict`: > 0 wait for this listener again;
 * 0 the callback cancelled `op`, which is not to be touched; < 0 the errno that accept4(2) gave:
 * the back end detaches `op` and calls pt_ev_accept_over, which reports it and ends or rests it. */
int pt_ev_accept(struct pt_loop *l, struct pt_op *op, int *verdict);
void pt_ev_accept_over(struct pt_loop *l, struct pt_op *op, int err);

/* Bytes from one pooled buffer to the next: an odd number of cache lines, or equal offsets in all
 * buffers would share one cache set. */
static inline size_t pt_ev_stride(size_t size)
{
    return (((size + PT_CACHE_LINE - 1) / PT_CACHE_LINE) | 1) * PT_CACHE_LINE;
}

/* recv(2) of `size` bytes into r->into, in pieces where it holds less. */
ssize_t pt_ev_recv_into(const struct pt_recv *r, size_t size, int flags);
/* Fills `meta` from the control messages of `msg`. */
void pt_ev_meta(struct pt_recv_meta *meta, struct msghdr *msg);

static inline bool pt_ev_is_stream(const struct pt_recv *r)
{
    return r->kind == PT_RECV_STREAM || r->kind == PT_RECV_DISCARD;
}

/* Whether this error ends a datagram receive; the others are only reported. */
bool pt_ev_fatal(int err);

/* ---- timers (timer.c) */

int pt_timer_heap_init(struct pt_timer_heap *h, size_t cap) PT_MUST_USE;
void pt_timer_heap_fini(struct pt_timer_heap *h);
/* The first instant at which a timer is due; PT_NS_MAX without timers. */
static inline pt_ns pt_timer_heap_first(const struct pt_timer_heap *h)
{
    return h->count ? h->slots[0].due : PT_NS_MAX;
}
/* Runs what is due at `now`; returns the callbacks run. */
int pt_timer_heap_run(struct pt_timer_heap *h, pt_ns now);

#endif
