/* diagnose.h: what limited a run, from its result document alone.
 *
 * A test is limited when it wanted more than it got: a closed loop that floods, an open loop that
 * fell short of its rate, packets or operations that were lost. Of a test that got what it asked
 * for nothing is said.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_HOST_DIAGNOSE_H
#define PT_HOST_DIAGNOSE_H

#include "model/result.h"

/* Appends to `limited_by` {what, where, evidence, advice}, the most likely first. */
void pt_diagnose(struct pt_result *r);

#endif
