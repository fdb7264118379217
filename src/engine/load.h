/* load.h: a bulk transfer beside a latency test (--load): its text, and its life.
 *
 * It is a whole run of `bw` in a process of its own, with its own session to the same server. It
 * begins first: the test beside it starts when the load's warm-up is over, and the load ends after
 * the test, so that warm-up and measurement of the test lie within it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_LOAD_H
#define PT_ENGINE_LOAD_H

#include "engine/run.h"
#include "model/opt.h"

/* `tcp`, `udp`, `tcp:4`, `tcp@1gbit`, `tcp:reverse`, `tcp:4:reverse@10gbit` */
struct pt_load {
    bool given, udp, reverse;
    uint32_t connections;
    struct pt_rate rate; /* bits per second in all; 0: as fast as it goes */
};

/* For option tables (PT_OPT_CUSTOM). */
extern const struct pt_opt_kind pt_load_kind;

struct pt_load_run {
    struct pt_child child;
    int pipe; /* what the child tells; -1: none */
};

/* Returns once the load is there. `beside` is the run it is for: its target, secret and identity
 * are the load's too. -EINTR; or why there is no load. */
int pt_load_start(struct pt_load_run *l, const struct pt_load *load,
                  const struct pt_run_spec *beside, struct pt_err *e) PT_MUST_USE;
/* Ends it. On 0 `out` is the block `load` of the document (the caller's reference). Once per
 * pt_load_start that returned 0. */
int pt_load_end(struct pt_load_run *l, json_t **out, struct pt_err *e) PT_MUST_USE;

#endif
