/* netif.h: makes and changes interfaces, addresses and routes of the present network namespace.
 *
 * Each operation is one order on the routing socket. The builders are apart from the sending, so
 * that the bytes can be checked without any rights. Names are 1 to 15 bytes; addresses are in
 * network order, 4 bytes for AF_INET and 16 for AF_INET6. Functions return 0 or the kernel's
 * refusal with a sentence: -EPERM, -EEXIST, -ENODEV, -EOPNOTSUPP (that kind of interface is not in
 * the kernel), …; -EINVAL: a name or prefix length out of range, refused before it is sent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_NETIF_H
#define PT_OS_NETIF_H

#include "base/err.h"
#include "base/types.h"
#include "os/netlink.h"

/* A pair of veth: `name` here, `peer` in the namespace of the descriptor `peer_netns` (-1: here).
 * Both are down. */
struct pt_netif_veth {
    const char *name, *peer;
    int peer_netns;
    unsigned mtu; /* of both; 0: the kernel's default */
};
int pt_netif_veth_request(struct pt_nl_request *r, const struct pt_netif_veth *v) PT_MUST_USE;
int pt_netif_veth(const struct pt_netif_veth *v, struct pt_err *e) PT_MUST_USE;

int pt_netif_bridge_request(struct pt_nl_request *r, const char *name) PT_MUST_USE;
int pt_netif_bridge(const char *name, struct pt_err *e) PT_MUST_USE;

struct pt_netif_change {
    bool up;           /* false: stays as it is */
    bool no_autoconf;  /* IPv6 makes no link-local address of its own; before `up` */
    unsigned master;   /* index of the bridge it becomes a port of; 0: none */
    const char *alias; /* a text of 1 to 255 bytes on the interface; NULL: none */
};
int pt_netif_change_request(struct pt_nl_request *r, unsigned ifindex,
                            const struct pt_netif_change *c) PT_MUST_USE;
int pt_netif_change(unsigned ifindex, const struct pt_netif_change *c,
                    struct pt_err *e) PT_MUST_USE;
int pt_netif_delete(unsigned ifindex, struct pt_err *e) PT_MUST_USE;

/* IPv6 addresses are usable at once: without duplicate address detection. */
int pt_netif_address_request(struct pt_nl_request *r, unsigned ifindex, int family,
                             const void *address, unsigned bits) PT_MUST_USE;
int pt_netif_address(unsigned ifindex, int family, const void *address, unsigned bits,
                     struct pt_err *e) PT_MUST_USE;

/* To `address`/`bits` (bits 0: the default route) through the interface, by `gateway` when it is
 * not NULL, which needs no route of its own. */
int pt_netif_route_request(struct pt_nl_request *r, unsigned ifindex, int family,
                           const void *address, unsigned bits, const void *gateway) PT_MUST_USE;
int pt_netif_route(unsigned ifindex, int family, const void *address, unsigned bits,
                   const void *gateway, struct pt_err *e) PT_MUST_USE;

/* The alias of an interface into out[cap], "" when it has none. */
int pt_netif_alias(unsigned ifindex, char *out, size_t cap) PT_MUST_USE;

#endif
