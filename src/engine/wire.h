/* wire.h: what one machine's network counters moved by during a test, and on which interface.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_WIRE_H
#define PT_ENGINE_WIRE_H

#include "net/addr.h"
#include "os/netstat.h"

#include <jansson.h>

struct pt_wire {
    char dev[16]; /* the interface towards the peer; "": unknown */
    unsigned ifindex, mtu;
    int64_t qdisc_drops;   /* of its root discipline; -1: unknown */
    struct pt_netstat net; /* the difference; while it runs, the snapshot at its begin */
};

/* Looks at the route to `peer` and the counters now. NULL: no memory, or a unix socket. */
struct pt_wire *pt_wire_begin(const struct pt_addr *peer);
/* Turns the snapshot into the difference up to now. */
void pt_wire_end(struct pt_wire *w);
void pt_wire_free(struct pt_wire *w);

json_t *pt_wire_to_json(const struct pt_wire *w);
/* From a peer that is not trusted; NULL when it is not readable or not there. */
struct pt_wire *pt_wire_from_json(const json_t *from);

#endif
