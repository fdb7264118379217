/* impaired.h: what an answering worker of `pitot truth` puts between the socket and the workload.
 *
 * Everything received passes a path with known delay, loss, stalls and rate (net/impair.h) before
 * the workload sees it, so its answers and its counts are those of that path. Streams that the path
 * cannot take are not read on, so TCP's own flow control carries the pressure back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_IMPAIRED_H
#define PT_ENGINE_IMPAIRED_H

#include "engine/worker.h"

struct pt_impaired;

int pt_impaired_new(struct pt_impaired **out, struct pt_worker *w, const struct pt_impairment *how,
                    struct pt_err *e) PT_MUST_USE;
void pt_impaired_free(struct pt_impaired *im);

void pt_impaired_offer(struct pt_impaired *im, struct pt_flow *f, const uint8_t *bytes, size_t n,
                       const struct pt_recv_meta *meta, pt_ns now);
/* When something leaves; PT_NS_MAX: nothing waits. */
pt_ns pt_impaired_next(const struct pt_impaired *im);
/* Hands the workload what is due. */
void pt_impaired_deliver(struct pt_impaired *im, pt_ns now);
/* The peer has ended this stream. True when bytes of it are still on the path: the flow is ended
 * once they have left. */
bool pt_impaired_end(struct pt_impaired *im, const struct pt_flow *f) PT_MUST_USE;
/* What the skewed clock shows. */
pt_ns pt_impaired_clock(const struct pt_impaired *im, pt_ns now);

#endif
