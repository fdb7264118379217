/* bw.h: what the files of `pitot bw` share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_WORKLOAD_BW_H
#define PT_WORKLOAD_BW_H

#include "engine/search.h"
#include "engine/worker.h"
#include "net/bulk.h"

enum pt_bw_zerocopy { PT_BW_AUTO, PT_BW_OFF, PT_BW_SENDFILE, PT_BW_SPLICE, PT_BW_MSG_ZEROCOPY };

struct pt_bw_opts {
    bool udp, reverse, bidir, discard;
    uint64_t bytes;
    struct pt_search_limit search; /* UDP */
    int zerocopy;                  /* enum pt_bw_zerocopy */
};

/* ---- choosing block size and method by measurement, during the warm-up (bw_tune.c) */

#define PT_BW_CANDIDATES 16
#define PT_BW_BLOCK      ((size_t)256 << 10) /* when nothing is measured */

struct pt_bw_candidate {
    enum pt_bulk_method how;
    size_t block;
    bool beside;      /* on the receiver's CPU */
    double bytes, ns; /* what it moved in the time it had */
};

struct pt_bw_tuner {
    struct pt_bw_candidate c[PT_BW_CANDIDATES];
    unsigned n, at, rounds_left;
    bool down; /* second round: the other way round */
    pt_ns slice, until, began;
    enum pt_bulk_method how; /* what to use now */
    size_t block;
    bool beside;
    bool settled;
};

/* `fixed` > 0: only that block size. `joins`: the sender may share the receiver's CPU. A warm-up
 * too short to measure in gives the default. */
void pt_bw_tune_init(struct pt_bw_tuner *t, const struct pt_bw_opts *o, size_t fixed, bool joins,
                     pt_ns warmup);
/* Enters what was moved up to `now`; may change `how`, `block` and `beside`. True when it has just
 * settled. */
bool pt_bw_tune(struct pt_bw_tuner *t, pt_ns now, uint64_t bytes);
/* "write 1 MiB: 88.1 Gbit/s; …" */
void pt_bw_tune_text(const struct pt_bw_tuner *t, char *out, size_t cap);

/* ---- the receive window within one machine (bw_window.c) */

struct pt_bw_window {
    bool held; /* and not judged yet */
    pt_ns since;
    uint64_t before; /* bytes received then */
};

/* For each receiving flow, before it starts. */
void pt_bw_window_hold(struct pt_bw_window *b, struct pt_flow *f);
/* From time to time: lets go where the path turns out not to be a direct one. */
void pt_bw_window_judge(struct pt_bw_window *b, struct pt_worker *w, pt_ns now);

/* ---- datagrams (bw_udp.c) */

#define PT_BW_DGRAM 16 /* sequence number and the instant it was sent */

/* pt_workload.choose: the size of a datagram, when nobody gave one. */
int pt_bw_udp_choose(struct pt_plan *plan, const struct pt_addr_list *to, json_t *chosen,
                     struct pt_err *e);
int pt_bw_udp_init(struct pt_flow *f, struct pt_err *e);
int pt_bw_udp_due(struct pt_flow *f, pt_ns due, unsigned n);
void pt_bw_udp_data(struct pt_flow *f, const uint8_t *bytes, size_t n, size_t seg, pt_ns now);

#endif
