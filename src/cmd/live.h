/* live.h: what a live line shows of a running test: three figures that fit its workload.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_LIVE_H
#define PT_CMD_LIVE_H

#include "cmd/output.h"
#include "engine/run.h"

/* Context of pt_live_show, which is a struct pt_run_spec's `live`. */
struct pt_live_lines {
    struct pt_output *output;
    const struct pt_shape *shape;
    bool packets; /* packets are what counts, rather than bits */
};

void pt_live_show(void *ctx, const struct pt_live *l);

#endif
