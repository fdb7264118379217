/* boost.h: a load that grows by steps until more of it no longer pays.
 *
 * Knows no clock and no sockets: a function runs the steps. A step pays when it brings 5 % more
 * than the best before it (where the load grew by less than 10 %: half of what the load grew by)
 * and its p99 stays within the limit. The best step is the last one that paid; the ones after it
 * say why it was the last.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_BOOST_H
#define PT_ENGINE_BOOST_H

#include "model/plan.h"

#define PT_BOOST_FLAT      0.05
#define PT_BOOST_STEPS_MAX 1000

enum pt_step_verdict {
    PT_STEP_PAYS,
    PT_STEP_HOLDS, /* brings little more, but nobody asked to stop at that */
    PT_STEP_FLAT,
    PT_STEP_P99,    /* the limit of p99 is passed */
    PT_STEP_BROKEN, /* the run was partial or failed */
};

struct pt_step {
    uint32_t connections;
    double rate;    /* in all; 0: closed loop */
    double yield_s; /* what counts, per second: operations, packets or bits that arrived */
    double p99_us;  /* NaN: not known */
    bool broken;
    enum pt_step_verdict verdict; /* filled by the boost */
};

struct pt_boost_spec {
    struct pt_boost by;
    uint32_t connections;     /* of the first step */
    double rate;              /* of the first step; 0 with by.rate 0: closed loop */
    uint32_t connections_max; /* what can be had at most */
};

/* The first step of a plan: the load it names, or one step's worth where it names none. */
void pt_boost_begin(struct pt_boost_spec *b, const struct pt_plan *plan, uint32_t connections_max);

/* Runs one step: connections and rate are given, the rest is to be filled. */
typedef int (*pt_step_run)(void *ctx, struct pt_step *s, struct pt_err *e);
/* A step was judged; `best` when it is the new best one. */
typedef void (*pt_step_judged)(void *ctx, const struct pt_step *s, bool best);

/* 0 when it ended by itself; -EINTR or what `run` failed with. `judged` was called for every step
 * that ran; with the first of them `best` is true whatever its verdict. */
int pt_boost(const struct pt_boost_spec *b, pt_step_run run, pt_step_judged judged, void *ctx,
             struct pt_err *e) PT_MUST_USE;

/* "pays", "holds", "flat", "p99 passed", "broken". */
const char *pt_step_verdict_name(enum pt_step_verdict verdict);

#endif
