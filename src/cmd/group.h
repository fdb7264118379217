/* group.h: tests of a plan that run at the same instant, each in a process of its own; a group of
 * one is a test by itself.
 *
 * All get ready, then wait at a gate; the parent lets them pass with the instant at which their
 * windows begin. One that cannot get ready calls the whole group off: a latency without the load
 * it was to be measured under is another test.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_GROUP_H
#define PT_CMD_GROUP_H

#include "cmd/output.h"
#include "cmd/stage.h"
#include "engine/workload.h"

/* Runs the group's tests that are not left out, and adds what they gave to `run`: a document for
 * each, whole, partial or failed with the reason; of an interrupted one that had measured nothing a
 * warning. Live lines are those of the first member. `text` is called with each document. A
 * negative errno: no memory, or no process could be made. */
int pt_group_run(struct pt_stage *s, uint32_t group, struct pt_output *output,
                 struct pt_result *run, void (*text)(void *ctx, const struct pt_result *test),
                 void *ctx, struct pt_err *e) PT_MUST_USE;

#endif
