/* caps.h: what a server allows (net/control.h, struct pt_caps), heeded at both ends.
 *
 * The client learns the caps in the welcome: it slows an unpaced transfer down to the rate allowed,
 * and gives up what it cannot do within them. The server checks the test again and then watches
 * what is really moved, whatever its client believes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_CAPS_H
#define PT_ENGINE_CAPS_H

#include "engine/job.h"
#include "net/control.h"

/* Gives a one-way transfer without a rate the one that is allowed: plan and shape. True: it did. */
bool pt_caps_slow_down(const struct pt_caps *caps, const struct pt_workload *wl,
                       struct pt_plan *plan, struct pt_shape *s);

/* -EPERM: the test is more than `who` allows. */
int pt_caps_check(const struct pt_caps *caps, const struct pt_shape *s, const char *who,
                  struct pt_err *e) PT_MUST_USE;

/* While it runs, at the server. -EPERM: more was moved, or longer, than is allowed. */
int pt_caps_watch(const struct pt_caps *caps, const struct pt_job *job, pt_ns now,
                  struct pt_err *e) PT_MUST_USE;

#endif
