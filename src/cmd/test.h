/* test.h: one test from its plan to its document: what `pitot bw`, `pps` and `lat` do with theirs,
 * and `pitot run` with each of a plan.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_TEST_H
#define PT_CMD_TEST_H

#include "cmd/live.h"
#include "engine/run.h"

struct pt_test {
    const struct pt_workload *wl;
    struct pt_plan *plan;
    const struct pt_addr_list *to;
    const struct pt_far_kind *far; /* what is there; NULL: `pitot serve` */
    const struct pt_secret *secret;
    struct pt_output *output;   /* of live lines */
    const struct pt_gate *gate; /* NULL: none */
    struct pt_shape shape;      /* by pt_test_check, then by pt_test_run */
    struct pt_live_lines lines; /* private */
};

/* What can be seen to be wrong before anything is opened. -EINVAL */
int pt_test_check(struct pt_test *t, struct pt_err *e) PT_MUST_USE;
/* What was asked of this machine, as far as it can be seen before the server is reached. -EINVAL
 * and -EADDRNOTAVAIL are the user's mistake. */
int pt_test_check_here(const struct pt_test *t, struct pt_err *e) PT_MUST_USE;
/* Settles what was left to pitot and runs it: a document with `chosen`, as pt_rounds. */
int pt_test_run(struct pt_test *t, struct pt_result **out, struct pt_err *e) PT_MUST_USE;
/* What the document says of the whole: thresholds, and whether it was interrupted. A negative
 * errno: there was no memory for all of it. */
int pt_test_conclude(const struct pt_test *t, struct pt_result *r, struct pt_err *e) PT_MUST_USE;

#endif
