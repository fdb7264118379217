/* rehearse.h: `pitot run --dry-run`: what a plan would run, on what addresses, for how long; and
 * the checks of a plan that need no more than its tests.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_REHEARSE_H
#define PT_CMD_REHEARSE_H

#include "cmd/output.h"
#include "cmd/stage.h"

/* Each test as its command would check it, once the plan itself is sound. -EINVAL with its place.
 */
int pt_rehearse_check(const struct pt_plan_file *f, struct pt_err *e) PT_MUST_USE;

/* How long a group takes, warm-ups and repeats included; -1 when it ends by a count or by what it
 * finds. */
pt_ns pt_rehearse_time(const struct pt_plan_file *f, uint32_t group);

void pt_rehearse_print(const struct pt_stage *s, struct pt_buf *out);

#endif
