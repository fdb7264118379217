/* report.h: from two halves to the result document.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_REPORT_H
#define PT_ENGINE_REPORT_H

#include "engine/half.h"
#include "engine/place.h"

struct pt_report {
    const struct pt_plan *plan;
    const struct pt_workload *wl;
    const struct pt_shape *shape;
    const struct pt_place *place;
    const struct pt_half *local;
    const struct pt_half *peer; /* NULL: it could not tell */
    const char *engine_reason;  /* why this loop back end */
    const char *broken;         /* why the run is partial; NULL: it is not */
    bool one_net;               /* both ends in one network namespace */
    bool interrupted;
};

/* Fills everything that all workloads share, then calls the workload's `report`. */
void pt_report_make(const struct pt_report *rep, struct pt_result *r);

/* verdict.c: what each end ran with, what went wrong, and how it ended. */
void pt_report_verdict(const struct pt_report *rep, struct pt_result *r);

/* Whose counters are the receiver's, for forward (or reverse) flows; NULL when it did not tell. */
const struct pt_half *pt_report_receiver(const struct pt_report *rep, bool reverse);
const struct pt_half *pt_report_sender(const struct pt_report *rep, bool reverse);

/* Sums over the flows of one direction at one end. */
void pt_half_direction(const struct pt_half *h, const struct pt_shape *s, bool reverse,
                       struct pt_counters *c, struct pt_seq_books *seq);

#endif
