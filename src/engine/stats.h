/* stats.h: what a worker writes and its supervisor reads, in memory shared by the two.
 *
 * One writer (the worker) and racing readers: plain counters that only grow, so a torn snapshot is
 * a slightly older one. Nothing is reset during a run: intervals are differences of snapshots, so
 * no sample can fall between two halves. Counters are kept per phase; an operation belongs to the
 * phase in which it was due, a received byte to the phase in which it arrived, a sequenced datagram
 * to the phase its sender marked in it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_STATS_H
#define PT_ENGINE_STATS_H

#include "base/types.h"
#include "net/sock.h"
#include "net/tcp_info.h"
#include "os/proc.h"
#include "stat/hist.h"
#include "stat/seq.h"

#include <stdatomic.h>

#define PT_WORKER_NOTE 400 /* bytes of what a worker says about its choices */

enum pt_phase {
    PT_PHASE_WARMUP,  /* excluded from the figures */
    PT_PHASE_MEASURE, /* the window of the figures */
    PT_PHASE_TAIL,    /* senders go on a little, so that the receiver's window is full */
    PT_PHASES,
};

enum pt_op_error {
    PT_OP_CONNECT,  /* the connection could not be made */
    PT_OP_TIMEOUT,  /* no answer within --timeout (a lost datagram among them) */
    PT_OP_RESET,    /* the peer reset the connection */
    PT_OP_CLOSED,   /* the peer closed the connection */
    PT_OP_PROTOCOL, /* the answer was not the one to the question */
    PT_OP_SEND,     /* the kernel refused to send */
    PT_OP_BACKLOG,  /* more operations outstanding than can be remembered */
    PT_OP_ERRORS,
};
extern const char *const pt_op_error_names[PT_OP_ERRORS];

struct pt_counters {
    uint64_t ops; /* operations started (asking side) */
    uint64_t ok;  /* … that succeeded */
    uint64_t errors[PT_OP_ERRORS];
    uint64_t tx_bytes, rx_bytes;     /* payload */
    uint64_t tx_packets, rx_packets; /* datagrams (a GSO super-packet counts its segments) */
    uint64_t tx_calls, rx_calls;     /* system calls that moved them */
};

struct pt_flow_stat {
    struct pt_counters c[PT_PHASES];
    struct pt_seq_books seq;
    uint64_t seq_top;  /* one above the highest number seen */
    uint64_t drops;    /* SO_RXQ_OVFL: what this socket dropped since it was opened */
    pt_ns first_tx_ns; /* instant of its first operation: start skew */
    double jitter_ns;  /* RFC 3550 6.4.1, where datagrams carry a time */
    struct pt_tcp_info tcp_begin, tcp_end; /* at the window's edges */
    bool tcp_valid;
    bool ended; /* the peer closed in order */
    int error;  /* negative errno that ended it early, or 0 */
    char local[64], remote[64];
};

enum pt_worker_state {
    PT_WORKER_STARTING,
    PT_WORKER_READY, /* every flow stands; waits for the start instant */
    PT_WORKER_RUNNING,
    PT_WORKER_DONE,
    PT_WORKER_FAILED,
};

enum {
    PT_HIST_LATENCY,
    PT_HIST_SERVICE,
    PT_HIST_CONNECT,
    PT_HIST_WAKEUP,
    PT_HIST_FORWARD,
    PT_HIST_BACKWARD,
    PT_HIST_LATE,
    PT_HISTS
};

struct pt_worker_stat {
    _Atomic int state; /* enum pt_worker_state */
    _Atomic uint32_t flows_open;
    _Atomic uint32_t senders; /* flows that have not sent all yet */
    struct pt_counters c[PT_PHASES];
    uint64_t late;       /* answers that came after their operation had timed out */
    uint64_t tx_refused; /* datagrams that the kernel did not take; not among tx_packets */
    uint64_t ring_drops; /* … that found no room in a receive ring of ours */
    pt_ns window_ns;     /* when it went over to the window; 0: it never did */
    pt_ns stopped_ns;    /* when the window closed early (stop, peer lost); 0: it ran its length */
    pt_ns gap_ns, gap_at_ns; /* the longest silence inside the window, and when it began */
    pt_ns last_rx_ns;
    pt_ns first_rx_ns; /* of the MEASURE phase: a counted transfer's window */
    int64_t offset_ns,
        offset_error_ns; /* --one-way: peer clock minus ours, by the fastest round trip */
    uint64_t extra[8];   /* a workload's own figures; it says which */
    uint64_t allocated;  /* bytes of heap taken after the warm-up: 0 */
    struct pt_usage usage_begin, usage_end; /* of the worker, at the window's edges */
    int error;
    char error_text[256];
    char note[PT_WORKER_NOTE];      /* what the workload chose and why (block size, path) */
    struct pt_sock_granted granted; /* of its first flow's socket; zeroed: no socket */
    struct pt_hist hist[PT_HISTS];
};

/* One job's memory: this header, then workers, then flows. */
struct pt_shared {
    _Atomic int64_t start_ns; /* the instant all begin; 0: not yet */
    _Atomic int stop;         /* enum pt_stop */
};

enum pt_stop {
    PT_STOP_NO,
    PT_STOP_SEND, /* senders end now; receivers drain */
    PT_STOP_NOW,  /* everybody ends now */
};

void pt_counters_add(struct pt_counters *into, const struct pt_counters *c);
/* after - before, never negative. */
void pt_counters_sub(struct pt_counters *out, const struct pt_counters *after,
                     const struct pt_counters *before);
uint64_t pt_counters_errors(const struct pt_counters *c);

#endif
