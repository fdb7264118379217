/* loop.h: the event loop of a worker: completions, over io_uring or epoll.
 *
 * Completion-shaped: an operation is started and ends in exactly one callback; the multishot forms
 * (receive, accept) call back many times and flag the last one. io_uring does this natively; the
 * epoll back end performs the system call on readiness and runs the same callback. Both pass one
 * test suite.
 *
 * One thread, one loop. Operations are embedded in the caller's structs, zeroed before first use,
 * and must stay where they are until their last callback, or until the _stop/_cancel call has
 * returned: after that no callback of theirs runs any more (a late kernel completion is recognised
 * and dropped). Callbacks may start and stop any operation, their own included. After warm-up
 * nothing allocates.
 *
 * File descriptors are handed over in blocking mode (listeners: O_NONBLOCK); the loop passes
 * MSG_DONTWAIT itself, and in exchange may block in recv(2) when one receive is all it waits for:
 * that saves epoll's share of every wake-up. SO_RCVTIMEO belongs to the loop while a receive is
 * active; pt_recv_stop sets it back to 0.
 *
 * One receive per descriptor, and on a stream one send at a time. Before a descriptor is closed its
 * operations are stopped, or have had their last callback. Stop a stream's receive only to close
 * it, for bytes that io_uring has taken from the socket by then are lost with it: pt_recv_pause
 * keeps them. A loop belongs to the process that made it: make it after fork(2).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_EV_LOOP_H
#define PT_EV_LOOP_H

#include "base/err.h"
#include "base/types.h"

#include <sys/socket.h>

struct pt_loop;

enum pt_backend { PT_BACKEND_AUTO, PT_BACKEND_EPOLL, PT_BACKEND_URING };

enum pt_wait {
    PT_WAIT_BLOCK, /* sleep in the kernel until something happens */
    PT_WAIT_SPIN,  /* never sleep: poll the sockets themselves (epoll: direct receives) */
};

struct pt_loop_spec {
    enum pt_backend backend; /* AUTO: what pt_loop_choose says */
    enum pt_wait wait;
    size_t recv_size;     /* bytes of one pooled receive buffer; 0 = 64 KiB */
    unsigned recv_count;  /* pooled buffers, a power of two; 0 = 64; epoll needs only one */
    unsigned ops;         /* operations expected at once (queue sizes); 0 = 256 */
    pt_ns spin_before_ns; /* BLOCK: wake this long before a deadline and poll until it; 0 = exact
                             deadlines do not matter */
};

/* 0 or a negative errno with the reason: -ENOSYS/-EPERM when io_uring was asked for and the kernel
 * refuses it. */
int pt_loop_new(struct pt_loop **out, const struct pt_loop_spec *spec,
                struct pt_err *e) PT_MUST_USE;
void pt_loop_free(struct pt_loop *l);
/* "epoll" or "io_uring". */
const char *pt_loop_name(const struct pt_loop *l);

/* The start-up probe: measures round trips of `size` bytes over a socket pair, both ends in one
 * process, under each back end that the kernel allows, in the given wait mode; a few ms. Returns
 * the faster and writes the reason ("epoll: io_uring 1.31 us, epoll 1.02 us per round trip"). */
enum pt_backend pt_loop_choose(enum pt_wait wait, size_t size, char *reason, size_t reason_cap);

/* The clock as read after the last wait: the arrival time of what the callbacks are handed. In SPIN
 * mode and direct receives it is read right after the system call that returned data. */
pt_ns pt_loop_now(const struct pt_loop *l);
/* Reads the clock afresh and returns it. */
pt_ns pt_loop_touch(struct pt_loop *l);

/* Waits until something happens or `deadline` (PT_NS_MAX: none; now or past: only poll), then runs
 * what is due. Returns the number of callbacks run, or a negative errno. Signals end the wait
 * early, and 50 ms do, so a caller that looks at a flag set by a signal handler between steps needs
 * nothing else. Not to be called from a callback. */
int pt_loop_step(struct pt_loop *l, pt_ns deadline) PT_MUST_USE;

/* ---- receive, multishot */

enum pt_recv_kind {
    PT_RECV_STREAM,  /* recv(2) into a pooled buffer, or `into` */
    PT_RECV_DISCARD, /* TCP: MSG_TRUNC, the kernel drops the bytes without copying; buf is NULL */
    PT_RECV_DGRAM,   /* recv(2)/recvmmsg(2): one callback per datagram, no meta */
    PT_RECV_DGRAM_META, /* recvmsg(2): with address and control messages, `meta` is set */
};

struct pt_recv_meta {
    const struct sockaddr *from;
    socklen_t from_len;
    uint32_t seg;    /* UDP GRO segment size; 0: one datagram */
    uint32_t drops;  /* SO_RXQ_OVFL: datagrams this socket has dropped so far; 0 when not enabled */
    pt_ns kernel_ns; /* SO_TIMESTAMPNS: CLOCK_REALTIME at which the stack took it; 0: not enabled */
    bool truncated;  /* the datagram was longer than the buffer */
};

struct pt_recv;
/* `n` > 0 bytes in `buf` (valid only during the call); 0 end of stream (a datagram may be empty:
 * then n == 0 too, see `kind`); < 0 a negative errno. For streams n <= 0 was the last call; for
 * datagrams errors (-ECONNREFUSED from ICMP) do not end the receive, -ENOTSOCK/-EBADF do. */
typedef void pt_recv_fn(struct pt_recv *r, uint8_t *buf, ssize_t n,
                        const struct pt_recv_meta *meta);

struct pt_recv {
    int fd;
    enum pt_recv_kind kind;
    uint8_t *into;     /* optional: receive here instead of a pooled buffer (streams: large blocks);
                          several receives may share it; not with DGRAM_META */
    size_t into_size;  /* DISCARD: most bytes dropped per call; 0 = 1 MiB */
    size_t into_piece; /* streams whose bytes nobody reads: `into` holds only so many, and a call
                          fills them again and again up to into_size; 0 = into_size */
    unsigned batch; /* datagrams per system call (recvmmsg), streams: calls per readiness; 0 = 1 */
    pt_recv_fn *fn;
    void *ctx;
    struct { /* the back end's */
        uint32_t slot;
        bool active, paused;
        bool primed;  /* epoll: SO_RCVTIMEO is set */
        bool ended;   /* io_uring: it ended with `end` while it was paused */
        uint8_t pool; /* io_uring: of what came meanwhile, held .. held_last */
        int end;
        uint32_t held, held_last; /* 0: none */
        uint32_t resume;          /* io_uring: the pending resumption */
        struct pt_recv *prev, *next;
    } p;
};

/* -EBUSY: already started, or (epoll) another receive has this descriptor. */
int pt_recv_start(struct pt_loop *l, struct pt_recv *r) PT_MUST_USE;
/* Nothing happens when it is not active. */
void pt_recv_stop(struct pt_loop *l, struct pt_recv *r);
/* Holds a receive back, for as long as it takes somebody else to catch up; nothing of a stream is
 * lost. Until it is resumed `kind` and `into` may change; what the kernel had handed over before
 * still comes as it was asked for. It stays active: stop it before the descriptor is closed.
 * Nothing happens when it is not active, or paused already. */
void pt_recv_pause(struct pt_loop *l, struct pt_recv *r);
/* Goes on, in the next step; nothing happens when it is not paused. An error ends the receive. */
int pt_recv_resume(struct pt_loop *l, struct pt_recv *r) PT_MUST_USE;
static inline bool pt_recv_active(const struct pt_recv *r)
{
    return r->p.active;
}

/* ---- one-shot operations */

struct pt_op;
/* `res` as the system call would return it, or a negative errno. `more`: multishot goes on. */
typedef void pt_op_fn(struct pt_op *op, int res, bool more);

struct pt_op {
    pt_op_fn *fn;
    void *ctx;
    struct { /* the back end's */
        int fd;
        uint8_t kind; /* enum pt_op_kind, backend.h */
        bool active;
        bool resting; /* accept: pausing after -EMFILE */
        int res;
        uint32_t slot, events, round;
        const uint8_t *buf;
        size_t len, done;
        struct pt_op *prev, *next;
    } p;
};

static inline bool pt_op_active(const struct pt_op *op)
{
    return op->p.active;
}

/* All four return 0, or a negative errno without a callback (-EBUSY: `op` is already active). */

/* Sends all of `buf` (stream) or one datagram; `buf` must stay until the callback. The epoll back
 * end tries at once and may run the callback before it returns; what does not fit goes on later.
 * res: `len`, or a negative errno. */
int pt_op_send(struct pt_loop *l, struct pt_op *op, int fd, const void *buf,
               size_t len) PT_MUST_USE;
/* Connects; the socket is left in blocking mode. res: 0 or a negative errno. */
int pt_op_connect(struct pt_loop *l, struct pt_op *op, int fd, const struct sockaddr *to,
                  socklen_t to_len) PT_MUST_USE;
/* Multishot accept. res: the new descriptor (blocking, CLOEXEC), or a negative errno (-EMFILE and
 * its like do not end it: the loop tries again 10 ms later). */
int pt_op_accept(struct pt_loop *l, struct pt_op *op, int listen_fd) PT_MUST_USE;
/* One-shot poll for POLLIN, POLLOUT, … (poll(2) bits). res: the events. */
int pt_op_poll(struct pt_loop *l, struct pt_op *op, int fd, unsigned events) PT_MUST_USE;
/* No callback after this returns; nothing happens when it is not active. The kernel may still hold
 * `buf` of a stream send until the loop's next step on io_uring: callers keep buffers in the
 * worker's arena, which outlives the loop. */
void pt_op_cancel(struct pt_loop *l, struct pt_op *op);

/* ---- timers */

struct pt_timer;
typedef void pt_timer_fn(struct pt_timer *t, pt_ns due);

struct pt_timer {
    pt_timer_fn *fn;
    void *ctx;
    struct {
        pt_ns due;
        size_t index; /* place in the heap + 1; 0: not set */
    } p;
};

static inline bool pt_timer_active(const struct pt_timer *t)
{
    return t->p.index != 0;
}

/* Calls back once, at or after `due`, within pt_loop_step; setting again moves it. One step runs no
 * more timers than were set when it began to, so a timer that sets itself to an instant already
 * past cannot starve the sockets. -ENOMEM, or -ENOSPC above 16 Mi timers. */
int pt_timer_set(struct pt_loop *l, struct pt_timer *t, pt_ns due) PT_MUST_USE;
void pt_timer_cancel(struct pt_loop *l, struct pt_timer *t);

#endif
