/* route.h: what must stand in front of a payload to reach an address: interface, source, MACs.
 *
 * Asked from the kernel (RTM_GETROUTE, RTM_GETNEIGH), once, before a run. Addresses are 16 bytes in
 * network order; IPv4 uses the first four.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_ROUTE_H
#define PT_OS_ROUTE_H

#include "base/err.h"
#include "base/types.h"

#include <sys/socket.h>

struct pt_route {
    int family; /* AF_INET or AF_INET6 */
    unsigned ifindex;
    bool local;         /* the destination is this host: goes through lo, has no MAC addresses */
    bool gatewayed;     /* next_hop is a router, not the destination */
    uint8_t source[16]; /* the one asked for, or the kernel's choice */
    uint8_t destination[16];
    uint8_t next_hop[16];
    int next_hop_family; /* an IPv4 destination may have an IPv6 router */
    uint8_t source_mac[6];
    uint8_t next_hop_mac[6]; /* zero until pt_route_resolve */
};

/* The route to `to` (AF_INET or AF_INET6; a link-local address needs its sin6_scope_id). `from`
 * NULL or an address to send from; `ifindex` 0 or the interface to leave by. -ENETUNREACH,
 * -EHOSTUNREACH: no route; -EAFNOSUPPORT: another family. */
int pt_route_find(struct pt_route *r, const struct sockaddr *to, const struct sockaddr *from,
                  unsigned ifindex, struct pt_err *e) PT_MUST_USE;

/* The next hop's MAC address into `r`, waiting at most `timeout_ns` for ARP or neighbour discovery,
 * which it provokes with an empty datagram to the discard port of the next hop. Sleeps between
 * looks: cold path only. -EHOSTUNREACH: it does not answer; -EOPNOTSUPP: the route is local or the
 * interface has no Ethernet addresses. */
int pt_route_resolve(struct pt_route *r, pt_ns timeout_ns, struct pt_err *e) PT_MUST_USE;

#endif
