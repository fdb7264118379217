/* workload.h: the contract between the engine and a workload.
 *
 * A workload says what one operation is. Both of its halves live in one file: the asking half
 * (driven by the pacer) and the answering half (what `pitot serve` does at the other end). It is
 * handed instants and never reads a clock; it sends through its flow and never owns a socket; so it
 * cannot measure wrongly. A missing entry of the table means the default.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_WORKLOAD_H
#define PT_ENGINE_WORKLOAD_H

#include "engine/pacer.h"
#include "engine/stats.h"
#include "ev/loop.h"
#include "model/opt.h"
#include "model/plan.h"
#include "model/result.h"
#include "proto/dgram.h"

struct pt_flow;
struct pt_worker;
struct pt_addr;
struct pt_job;
struct pt_job_spec;
struct pt_report;
struct pt_search_limit;
struct pt_load;
struct pt_addr_list;

enum pt_side { PT_ASK, PT_ANSWER };

/* What this end of a flow does with bytes. */
enum pt_dir { PT_DIR_TX = 1, PT_DIR_RX = 2, PT_DIR_BOTH = 3 };

enum pt_chan_kind { PT_CHAN_TCP, PT_CHAN_UDP, PT_CHAN_UNIX };

/* What a test asks of the engine; filled by the workload's `shape` from plan and parameters, on
 * both sides alike (the server computes it again from what the client sent: nothing else crosses).
 */
struct pt_shape {
    enum pt_chan_kind chan;
    uint32_t flows;   /* in all: forward, then reverse ones */
    uint32_t forward; /* flows whose asking side sends; the rest are sent by the answering side */
    bool both;        /* every flow goes both ways (request, response) */
    bool spin;        /* both ends poll */
    bool moderate; /* receivers of datagrams look instead of being woken: arrival times do not count
                    */
    bool polls;    /* receivers have no sockets: on_poll looks for what arrived */
    bool same_cpu; /* both ends on one CPU */
    bool joins;    /* within one machine: a lone sender may try the receiver's CPU and stay there */
    bool sequenced;           /* datagrams carry a sequence header: losses are known */
    enum pt_dgram_form dgram; /* how datagrams are numbered */
    bool lingers; /* streams stay open when all is sent: the other end hears of the end elsewhere */
    bool whole;   /* the other end tells sums of the whole test only: all phases count */
    bool answer_listens; /* the answering workers open a listener of their own (--crr) */
    size_t recv_size;    /* bytes of a receive buffer */
    bool unread;         /* streams: on_data looks at the number of bytes only */
    unsigned recv_batch;
    enum pt_recv_kind recv_kind;
    bool wakeups;      /* asking side: measure in the warm-up how long waking up takes */
    bool gro;          /* receive coalescing */
    unsigned burst;    /* operations per on_due call when nothing paces them */
    uint32_t inflight; /* closed loop: operations outstanding per flow; 0: unlimited (bulk) */
    double ops_per_s;  /* open loop rate in all, 0: closed */
    size_t op_bytes;   /* payload of one operation of a one-way transfer; 0: --rate in bits does */
    double bits_per_s; /* what that is on payload, each direction; 0: unknown */
    uint64_t ops_per_flow; /* end after so many, 0: by time */
    uint64_t bytes;        /* end after exactly so many payload bytes in all, 0: by time */
    pt_ns warmup, duration;
    pt_ns tail;                  /* senders go on for so long after the window */
    unsigned workers_most;       /* set by `reach`; 0: as many as there are CPUs */
    const char *tx_via, *rx_via; /* what takes the place of UDP sockets ("AF_XDP"); NULL: nothing */
};

struct pt_workload {
    struct pt_plan_form form;      /* name, options, defaults, manual */
    size_t worker_size, flow_size; /* private memory, zeroed */
    const char *yield; /* the rate that counts: "operations_per_s", "packets_per_s", "bits_per_s" */

    /* Cold, asking side only, once the target is known: sets what the plan left open (automatic)
     * and tells so by pt_choice_add. */
    int (*choose)(struct pt_plan *plan, const struct pt_addr_list *to, json_t *chosen,
                  struct pt_err *e);
    /* The limit of --search; NULL: this workload has none. */
    const struct pt_search_limit *(*search)(const struct pt_plan *plan);
    /* What --load puts beside it; NULL: nothing ever. */
    const struct pt_load *(*load)(const struct pt_plan *plan);

    /* Cold, before anything runs, on both sides: checks parameters, fills what is derived. */
    int (*shape)(const struct pt_plan *plan, struct pt_shape *out, struct pt_err *e);
    /* Supervisor, both sides, when the peer is known and nothing is placed yet: whether this end
     * can do it over the path to `peer`, and with how many workers at most. */
    int (*reach)(const struct pt_plan *plan, enum pt_side side, const struct pt_addr *peer,
                 struct pt_shape *s, struct pt_err *e);
    /* Supervisor, when all flows stand and before the workers are forked: makes what they share,
     * spec->path; `close` (called when that is not NULL) ends it after them. */
    int (*open)(struct pt_job_spec *spec, struct pt_err *e);
    void (*close)(struct pt_job_spec *spec);
    int (*worker_init)(struct pt_worker *w, struct pt_err *e);
    void (*worker_fini)(struct pt_worker *w);
    /* The flow's socket is open; buffers may be taken from pt_worker_alloc. */
    int (*flow_init)(struct pt_flow *f, struct pt_err *e);
    /* The flow broke (negative errno) or its peer ended it (0): settle its open operations. */
    void (*on_end)(struct pt_flow *f, int code, pt_ns now);

    /* Start up to `n` operations on this flow, the first due at `due`; returns how many were
     * started, -EAGAIN when the flow cannot take one now (the engine waits until it can), or a
     * negative errno. */
    int (*on_due)(struct pt_flow *f, pt_ns due, unsigned n);
    /* Bytes or a datagram arrived at `now`. */
    void (*on_data)(struct pt_flow *f, uint8_t *bytes, size_t n, const struct pt_recv_meta *meta,
                    pt_ns now);
    /* About every 10 ms: look after timeouts. */
    void (*on_tick)(struct pt_flow *f, pt_ns now);
    /* shape.polls: called on every turn of a receiving worker; delivers what has arrived
     * (pt_worker_deliver), and may sleep some milliseconds when nothing has for a while. */
    int (*on_poll)(struct pt_worker *w, pt_ns now);
    /* A phase begins. */
    void (*on_phase)(struct pt_worker *w, enum pt_phase phase, pt_ns now);

    /* Supervisor, after the run: figures beyond the common ones. */
    void (*report)(const struct pt_report *rep, struct pt_result *r);
};

/* Adds {what, value, why} to the list that becomes `chosen` in the document; NULL: nobody asks. */
void pt_choice_add(json_t *chosen, const char *what, const char *value, const char *fmt, ...)
    PT_PRINTF(4, 5);

#endif
