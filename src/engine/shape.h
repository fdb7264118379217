/* shape.h: what several workloads need to make their shape.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_SHAPE_H
#define PT_ENGINE_SHAPE_H

#include "engine/workload.h"

/* The channel of a workload that speaks TCP, or UDP with --udp; --via may name it too ("tcp",
 * "udp"). A unix socket takes the place of TCP when that is how the peer is reached (run.c,
 * answer.c). -EINVAL: no such channel, or one that contradicts --udp. */
int pt_shape_channel(const struct pt_plan *p, bool udp, enum pt_chan_kind *out,
                     struct pt_err *e) PT_MUST_USE;

/* What a stock server at the other end (--peer) makes different; the last that a `shape` does. */
void pt_shape_peer(const struct pt_plan *p, struct pt_shape *s);

#endif
