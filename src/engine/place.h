/* place.h: how many workers each end gets, and on which CPU each runs.
 *
 * Two machines: worker i of either end on the i-th usable CPU of its own. One machine: a single
 * pair of workers gets a CPU each, so that they run at the same time; several pairs share a CPU
 * pair by pair (sender i and receiver i together), which on one machine carries most, since a
 * packet then stays in the caches of one CPU. Spinning ends never share one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_PLACE_H
#define PT_ENGINE_PLACE_H

#include "engine/job.h"

struct pt_place {
    bool same_machine;
    bool paired; /* sender i and receiver i share a CPU */
    bool joins;  /* the sender may go over to the receiver's CPU, if it finds that better */
    unsigned workers, peer_workers;
    int cpu[PT_WORKERS_MAX];      /* -1: not pinned */
    int peer_cpu[PT_WORKERS_MAX]; /* one machine only; else the peer places its own */
    char text[160];
    char note[160]; /* when --workers was clipped; "" */
};

/* -EINVAL when --cpus names a CPU that this process may not use. */
int pt_place_check(const struct pt_common *c, struct pt_err *e) PT_MUST_USE;

/* `peer_cpus` 0: the peer did not say. */
int pt_place_plan(struct pt_place *p, const struct pt_shape *s, const struct pt_common *c,
                  bool same_machine, unsigned peer_cpus, struct pt_err *e) PT_MUST_USE;

#endif
