/* worker_private.h: what the files of the worker share: worker.c (life), turn.c (turns), flow.c
 * (flows).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_WORKER_PRIVATE_H
#define PT_ENGINE_WORKER_PRIVATE_H

#include "engine/worker.h"

/* Precise instants: the loop wakes this early and polls. */
#define PT_SPIN_BEFORE (100 * PT_US)
/* Bytes of answers that may wait before a flow reads no more. */
#define PT_OUT_HELD ((size_t)64 << 10)

/* The silence up to `now`, when it is the longest so far. */
static inline void pt_worker_silent(struct pt_worker_stat *st, pt_ns now)
{
    if (PT_UNLIKELY(now - st->last_rx_ns > st->gap_ns)) {
        st->gap_ns = now - st->last_rx_ns;
        st->gap_at_ns = st->last_rx_ns;
    }
}

/* Something arrived. */
static inline void pt_worker_heard(struct pt_worker *w, pt_ns now)
{
    struct pt_worker_stat *st = w->st;
    if (w->phase == PT_PHASE_MEASURE) {
        pt_worker_silent(st, now);
        if (!st->first_rx_ns)
            st->first_rx_ns = now;
    }
    st->last_rx_ns = now;
}

/* flow.c */
/* Ends what the loop does for it. */
void pt_flow_stop(struct pt_flow *f);
/* Takes TCP_INFO into its statistics. */
void pt_flow_probe(struct pt_flow *f);
/* Its sending half is over: the receiver sees the end of the stream. */
void pt_flow_finish(struct pt_flow *f);
/* Starting operations failed with `rc`: waits for room, tries again later, or ends the flow. */
void pt_flow_stuck(struct pt_flow *f, int rc);
/* The end of a pause. */
void pt_flow_resume(struct pt_flow *f);

/* turn.c */
int pt_flow_start_receiving(struct pt_flow *f) PT_MUST_USE;
/* The window closes before its time: stopped, or nothing is left to measure. */
void pt_worker_close_window(struct pt_worker *w, pt_ns now);
/* Works until it is over. */
int pt_worker_turn(struct pt_worker *w) PT_MUST_USE;

#endif
