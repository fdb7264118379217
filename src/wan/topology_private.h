/* topology_private.h: how the hosts are joined; the choice is topology.c's and its tests'.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_WAN_TOPOLOGY_PRIVATE_H
#define PT_WAN_TOPOLOGY_PRIVATE_H

#include "wan/topology.h"

enum pt_topo_kind {
    PT_TOPO_BRIDGE,   /* a bridge in the hub, or routes where the kernel has none */
    PT_TOPO_ROUTES,   /* the hub routes */
    PT_TOPO_LOOPBACK, /* no namespaces */
};

/* pt_topo_open with the kind chosen. */
int pt_topo_open_as(struct pt_topo *t, const char *const *names, unsigned n, enum pt_topo_kind kind,
                    struct pt_err *e) PT_MUST_USE;

/* Makes the hub's and the hosts' interfaces, addresses and routes; the namespaces and addresses are
 * there. A failure leaves what was made in the namespaces, which go with their descriptors. */
int pt_topo_join(struct pt_topo *t, enum pt_topo_kind kind, struct pt_err *e) PT_MUST_USE;

#endif
