/* half.h: what one end of a test has to say when it is over.
 *
 * The asking end reads it off its job; the answering end does the same and sends it as a JSON
 * message (docs/formats/control.md, "report"); the result document is made from the two.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_HALF_H
#define PT_ENGINE_HALF_H

#include "engine/job.h"
#include "engine/wire.h"

#define PT_HALF_FLOWS 1000 /* reported one by one; the rest are in the sums */
#define PT_SERIES_MAX 4096 /* points; then neighbours are joined */
#define PT_HALF_NOTES 8

struct pt_point {
    double t_s; /* the end of the interval, from the start of the window */
    double span_s;
    struct pt_counters c;
    uint64_t p50_ns, p99_ns, max_ns, samples;
    uint32_t connections;
    uint32_t rtt_us, cwnd; /* TCP senders: mean srtt, sum of windows in segments */
    uint64_t retransmits;
    uint64_t delivery_Bps; /* sum of the newest samples */
    uint32_t limit; /* what held the senders back most: 0 unknown, else pt_half_limits[limit - 1] */
};

#define PT_HALF_LIMITS 4
extern const char *const pt_half_limits[PT_HALF_LIMITS]; /* pt_tcp_limited_by's answers */

struct pt_series {
    uint32_t n;
    struct pt_point *at; /* PT_SERIES_MAX of them */
};

struct pt_half_flow {
    uint32_t id;
    bool sends;
    struct pt_counters c; /* of the window */
    struct pt_seq_books seq;
    uint64_t drops;
    double jitter_ns;
    pt_ns first_ns; /* after the start instant */
    bool tcp_valid;
    struct pt_tcp_info tcp; /* gauges at the end, counters of the window */
    const char *limited_by; /* one of pt_tcp_limited_by's */
    int error;
    char local[64], remote[64];
};

struct pt_half {
    unsigned workers;
    struct pt_counters c[PT_PHASES];
    struct pt_seq_books seq;
    uint64_t drops;
    double window_s;                 /* the length of the MEASURE phase as it really was */
    double transfer_s;               /* first to last arrival in it: a counted transfer's time */
    bool cut;                        /* it ended before its time */
    bool sends_unknown;              /* what it sent in the window it cannot tell */
    double cpu_user_s, cpu_system_s; /* in the window */
    double gap_s, gap_at_s;          /* longest silence; its begin from the start of the window */
    uint64_t late, allocated, tx_refused;
    double start_skew_s; /* between the first and the last flow's first operation */
    int64_t offset_ns, offset_error_ns;
    uint64_t extra[8];
    uint32_t flow_count; /* in `flows` */
    struct pt_half_flow *flows;
    struct pt_hist *hist[PT_HISTS]; /* NULL: nothing recorded */
    struct pt_series series;
    unsigned note_count;
    char notes[PT_HALF_NOTES][PT_WORKER_NOTE];
    char backend[16];
    struct pt_sock_granted socket; /* of one of its flows; zeroed: it has none. The note is above */
    struct pt_wire *wire;          /* what the machine counted; NULL: unknown */
    json_t *host;                  /* what the host did (host/watch.h); NULL: unknown */
    char error[256];               /* of the first worker that failed; "" */
};

/* Reads a finished job. -ENOMEM. */
int pt_half_read(struct pt_half *h, const struct pt_job *job) PT_MUST_USE;
void pt_half_fini(struct pt_half *h);

json_t *pt_half_to_json(const struct pt_half *h);
/* From a peer that is not trusted. */
int pt_half_from_json(struct pt_half *h, const json_t *from, struct pt_err *e) PT_MUST_USE;

/* ---- the series, sampled while the job runs */

struct pt_sampler {
    struct pt_series series;
    struct pt_counters before[PT_PHASES];
    struct pt_hist *seen, *now, *between; /* of the latency */
    pt_ns last_ns;
    struct pt_tcp_info tcp; /* sums of counters over the senders, at the last point */
};

int pt_sampler_open(struct pt_sampler *s, struct pt_err *e) PT_MUST_USE;
/* Adds a point that ends at `now`; returns it, valid until the next call. */
/* A run shorter than an interval has one point too: its whole window. */
void pt_sampler_last(struct pt_sampler *s, const struct pt_job *job, pt_ns now);
const struct pt_point *pt_sampler_take(struct pt_sampler *s, const struct pt_job *job, pt_ns now);
/* Everything before `window_ns` is dropped: the warm-up. */
void pt_sampler_close(struct pt_sampler *s);

json_t *pt_point_to_json(const struct pt_point *p);
int pt_point_from_json(struct pt_point *p, const json_t *from) PT_MUST_USE;

#endif
