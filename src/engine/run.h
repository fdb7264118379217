/* run.h: one test from the asking side: reach the peer, run both ends, make the document.
 *
 * Two runs may follow each other in one process, or run side by side in two.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_RUN_H
#define PT_ENGINE_RUN_H

#include "engine/half.h"
#include "net/addr.h"
#include "net/secret.h"

/* What a live line shows; figures are those of the receiver where it tells. */
struct pt_live {
    enum pt_phase phase;
    double elapsed_s, total_s;           /* of the whole run; total 0: ends by count */
    const struct pt_point *local, *peer; /* NULL: none for this interval */
};

/* For tests of several processes of one machine whose windows shall begin at one instant. */
struct pt_gate {
    /* Called when both ends are ready; returns when it is time to start them: 0 and the instant
     * (CLOCK_MONOTONIC) at which the window shall begin, `warmup` after the start. A negative
     * errno: the test does not run. */
    int (*pass)(void *ctx, pt_ns warmup, pt_ns *window, struct pt_err *e);
    /* When the first and the last of this end's workers really went over to the window; not called
     * when none did. */
    void (*began)(void *ctx, pt_ns first, pt_ns last);
    void *ctx;
};

struct pt_far_kind;

struct pt_run_spec {
    const struct pt_far_kind *far; /* what the other end is (far.h); NULL: `pitot serve` */
    const struct pt_plan *plan;
    const struct pt_workload *wl;
    const struct pt_addr_list *to;
    const struct pt_secret *secret; /* NULL: none */
    const json_t *identity;         /* of this machine */
    void (*live)(void *ctx, const struct pt_live *l);
    void *ctx;
    const struct pt_gate *gate; /* NULL: starts as soon as both ends are ready */
};

/* A document on 0, whole or partial, with the reason among its warnings. A negative errno: nothing
 * was measured (not reached, refused, not possible), and the sentence says why. */
int pt_run(const struct pt_run_spec *spec, struct pt_result **out, struct pt_err *e) PT_MUST_USE;

const struct pt_workload *pt_workload_find(const char *name);

/* The answering side: a session of `pitot serve` (struct pt_serve_spec.session). */
struct pt_session;
int pt_answer_session(struct pt_session *s);

#endif
