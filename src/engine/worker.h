/* worker.h: a worker process from the inside: its flows, and what a workload may call.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_WORKER_H
#define PT_ENGINE_WORKER_H

#include "engine/job.h"

#include <errno.h>
#include <sys/socket.h>

/* One connection or datagram session; lives on one worker for its whole life. */
struct pt_flow {
    struct pt_worker *w;
    struct pt_flow_stat *st;
    uint32_t id;    /* in the test */
    uint32_t index; /* among the worker's flows */
    int fd;         /* -1: closed */
    unsigned dir;   /* enum pt_dir */
    int send_flags; /* MSG_DONTWAIT, or 0 where the one bulk flow may block */
    bool blocked;   /* waits until it can send again */
    bool held;      /* reads no more until its answers are sent */
    bool paused;    /* … until the next tick */
    bool finished;  /* starts no more operations */
    bool dead;      /* broken or ended: not touched any more */
    uint32_t outstanding;
    uint64_t left;       /* operations of the figures it may still start; UINT64_MAX: no limit */
    uint64_t bytes_left; /* of a counted transfer; UINT64_MAX: no limit */
    struct pt_recv rx;
    struct pt_op writable;
    struct pt_op reply; /* pt_flow_send: what is on its way */
    struct pt_flow_out {
        uint8_t *bytes;
        size_t len;
    } out[2];        /* one on its way, one that gathers what comes after it */
    unsigned out_at; /* which is on its way */
    void *own;       /* the workload's flow_size bytes */
};

struct pt_worker {
    struct pt_job *job;
    const struct pt_workload *wl;
    const struct pt_shape *shape;
    struct pt_worker_stat *st;
    struct pt_loop *loop;
    struct pt_pacer pacer;
    bool paced;
    unsigned index;
    enum pt_phase phase;
    struct pt_counters *c; /* of the present phase */
    pt_ns start_ns;
    pt_ns measure_ns, end_ns, tail_ns; /* where the phases end; PT_NS_MAX: not by time */
    pt_ns boundary_ns;                 /* the next of them */
    pt_ns stop_ns;                     /* when a stop was first seen; 0: not yet */
    pt_ns ticked_ns, probed_ns;
    bool gives_way; /* the peer's worker shares this CPU */
    bool moderated; /* receives by looking every so often instead of being woken */
    bool finishing; /* starts no more operations */
    bool settle;    /* the window has begun: go over to its way of receiving */
    uint32_t flow_count, turn;
    uint32_t outstanding, blocked;
    uint32_t senders, receivers; /* flows that still do */
    struct pt_flow *flows;
    uint8_t *recv_block;          /* one large receive buffer that the stream flows share, */
    size_t recv_piece;            /* of so many bytes; 0: of the shape's recv_size */
    void *own;                    /* the workload's worker_size bytes */
    struct pt_impaired *impaired; /* `pitot truth`; NULL */
    struct pt_taken *taken;       /* what pt_worker_alloc handed out */
    size_t out_size;              /* of pt_flow.out */
    size_t heap_before;
};

/* Zeroed memory until the worker ends; NULL when there is none. Not after the start. */
void *pt_worker_alloc(struct pt_worker *w, size_t size);
/* The clock as the answering side would tell it: skewed by `pitot truth`. */
pt_ns pt_worker_clock(const struct pt_worker *w, pt_ns now);
/* Goes over to the CPU of the peer's worker (pt_job_spec.beside, which must be one), or back. */
void pt_worker_join(struct pt_worker *w, bool beside);
/* Remembers in the result what the workload chose and why; the last one wins. */
void pt_worker_note(struct pt_worker *w, const char *fmt, ...) PT_PRINTF(2, 3);

/* Remembers what the kernel granted the first socket of this worker's that is shown. */
void pt_worker_granted(struct pt_worker *w, int fd);

/* Whether an operation due then belongs to the figures. */
static inline enum pt_phase pt_worker_phase_at(const struct pt_worker *w, pt_ns due)
{
    return due < w->measure_ns ? PT_PHASE_WARMUP
           : due < w->end_ns   ? PT_PHASE_MEASURE
                               : PT_PHASE_TAIL;
}

/* Sends from a one-way flow; what went out is counted by the caller (pt_flow_sent). Bytes, or a
 * negative errno. */
static inline ssize_t pt_flow_write(struct pt_flow *f, const void *bytes, size_t n)
{
    ssize_t sent = send(f->fd, bytes, n, f->send_flags | MSG_NOSIGNAL);
    return PT_LIKELY(sent >= 0) ? sent : -errno;
}

static inline void pt_flow_sent(struct pt_flow *f, uint64_t bytes, uint64_t packets)
{
    struct pt_counters *c = f->w->c, *fc = &f->st->c[f->w->phase];
    c->tx_bytes += bytes;
    c->tx_packets += packets;
    c->tx_calls++;
    fc->tx_bytes += bytes;
    fc->tx_packets += packets;
    fc->tx_calls++;
}

/* One-way operations (a block, a datagram): started and done in one, in the present phase. */
static inline void pt_flow_did(struct pt_flow *f, unsigned n)
{
    struct pt_counters *c = f->w->c, *fc = &f->st->c[f->w->phase];
    c->ops += n;
    c->ok += n;
    fc->ops += n;
    fc->ok += n;
    if (f->w->phase == PT_PHASE_MEASURE && f->left != UINT64_MAX)
        f->left -= n < f->left ? n : f->left;
}

/* Bytes that a workload received on a socket of its own. */
void pt_flow_received(struct pt_flow *f, size_t n);

/* Sends a request or an answer: all of it, in order, by the loop when the socket does not take it
 * at once; `bytes` are copied then. -EAGAIN when too much waits already. */
int pt_flow_send(struct pt_flow *f, const void *bytes, size_t n);

/* The life of an operation: started at `sent`, due at `due`; then exactly one of done and error. */
void pt_flow_started(struct pt_flow *f, pt_ns due, pt_ns sent);
void pt_flow_done(struct pt_flow *f, pt_ns due, pt_ns sent, pt_ns now);
void pt_flow_error(struct pt_flow *f, enum pt_op_error error, pt_ns due, pt_ns sent, pt_ns now);
/* Whether a failed send or receive is one that a datagram flow outlives. */
bool pt_flow_passing(const struct pt_flow *f, int rc);
/* An operation that the kernel did not take: started and failed in one. A flow without a schedule
 * pauses for a tick then. */
void pt_flow_refused(struct pt_flow *f, pt_ns due, pt_ns now);
/* Closed loop: starts the next operations of this flow as far as `inflight` allows. */
void pt_flow_next(struct pt_flow *f);

/* The flow is broken (negative errno) or ended in order (0). Its operations are the workload's to
 * settle: `wl->on_end` is called. */
void pt_flow_end(struct pt_flow *f, int code);

/* impaired.c: what left an impaired path arrives at the workload. */
void pt_worker_deliver(struct pt_flow *f, uint8_t *bytes, size_t n, const struct pt_recv_meta *meta,
                       pt_ns now);

/* The body of a worker process; returns its exit status. */
int pt_worker_main(struct pt_job *job, unsigned index);

#endif
