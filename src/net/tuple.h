/* tuple.h: which source address and port the n-th flow uses towards which destination.
 *
 * A connection is one (source address, source port, destination) tuple, so their number ends at
 * addresses x ports x destinations. The plan knows that product before the first socket is opened,
 * and every worker computes its flows' tuples from it alone: pure, no allocation, no kernel.
 *
 * Destinations vary fastest, then source addresses, then ports, so that consecutive flows spread.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_TUPLE_H
#define PT_NET_TUPLE_H

#include "net/addr.h"

#define PT_TUPLE_RANGES    64
#define PT_TUPLE_ADDRESSES (1U << 24) /* of one range, at most */

/* The ports the kernel chooses from when none is bound (net.ipv4.ip_local_port_range less those of
 * ip_local_reserved_ports in it). */
struct pt_ephemeral {
    uint16_t first, last;
    uint32_t count;
};

/* From this namespace's sysctls, or 32768-60999 when they cannot be read. */
void pt_ephemeral_read(struct pt_ephemeral *p);

struct pt_tuple_range {
    struct pt_addr first; /* port 0 */
    uint32_t count;       /* consecutive addresses */
};

struct pt_tuple_plan {
    struct pt_tuple_range range[PT_TUPLE_RANGES];
    unsigned ranges;     /* 0: the kernel chooses the source address */
    uint64_t addresses;  /* sum of their counts; 1 when there are none */
    bool ports_given;    /* else the kernel chooses the port at connect time */
    uint16_t port_first; /* when given */
    uint32_t ports;      /* per source address and destination: given, or ephemeral */
    unsigned destinations;
    int family;
    uint64_t capacity; /* distinct tuples */
};

struct pt_tuple {
    struct pt_addr from; /* for pt_sock_open: length 0 = do not bind; port 0 = address only */
    unsigned to;         /* index of the destination */
};

/* `bind`: NULL, or addresses and ranges separated by commas: "10.0.0.5", "10.0.0.5-10.0.0.20",
 * "10.0.0.5/28" (from that address to the last of its prefix); IPv6 likewise. `ports`: NULL, or
 * "A-B", or "A". `to`: `destinations` >= 1 addresses of one family. -EINVAL with the part that is
 * wrong: not an address, another family than the destination, the destination itself among the
 * sources (a socket would connect to itself). */
int pt_tuple_plan(struct pt_tuple_plan *p, const char *bind, const char *ports,
                  const struct pt_addr *to, unsigned destinations,
                  const struct pt_ephemeral *ephemeral, struct pt_err *e) PT_MUST_USE;

/* -EADDRNOTAVAIL when `flows` exceed the capacity, with the sum and what to add. */
int pt_tuple_check(const struct pt_tuple_plan *p, uint64_t flows, struct pt_err *e) PT_MUST_USE;

/* The tuple of flow `n`; beyond the capacity they begin again. */
void pt_tuple_at(const struct pt_tuple_plan *p, uint64_t n, struct pt_tuple *out);

#endif
