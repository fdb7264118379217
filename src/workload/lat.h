/* lat.h: what the two files of `pitot lat` share: ping-pong and connection per request.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_WORKLOAD_LAT_H
#define PT_WORKLOAD_LAT_H

#include "engine/load.h"
#include "engine/worker.h"

struct pt_lat_opts {
    bool udp, spin, same_cpu, crr, one_way;
    struct pt_load load;
};

#define PT_LAT_SIZE    14 /* bytes: what sockperf sends, so that figures compare */
#define PT_LAT_ONE_WAY 32 /* sequence number and three instants */

/* Bytes of a request, and of its answer. */
size_t pt_lat_size(const struct pt_plan *p);

/* Connection per request (--crr): the answering worker accepts, answers, and closes. */
int pt_lat_crr_worker_init(struct pt_worker *w, struct pt_err *e);
int pt_lat_crr_flow_init(struct pt_flow *f, struct pt_err *e);
int pt_lat_crr_due(struct pt_flow *f, pt_ns due);
void pt_lat_crr_tick(struct pt_flow *f, pt_ns now);
void pt_lat_crr_fini(struct pt_worker *w);

#endif
