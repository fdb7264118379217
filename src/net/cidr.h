/* cidr.h: address prefixes: who may talk to a server (--allow).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_CIDR_H
#define PT_NET_CIDR_H

#include "net/addr.h"

struct pt_cidr {
    int family;         /* AF_INET, AF_INET6 */
    unsigned bits;      /* 0-32, 0-128 */
    uint8_t prefix[16]; /* network order; IPv4 uses the first four */
};

/* "10.0.0.0/8", "fd00::/8", an address alone is a full-length prefix. -EINVAL: not a prefix, or it
 * has bits behind its length (the sentence names the prefix that was probably meant). */
int pt_cidr_parse(struct pt_cidr *c, const char *text, struct pt_err *e) PT_MUST_USE;
/* IPv4 prefixes match IPv4 and v4-mapped addresses; IPv6 prefixes match genuine IPv6 only (a prefix
 * inside ::ffff:0:0/96 is read as IPv4). unix never matches. */
bool pt_cidr_match(const struct pt_cidr *c, const struct pt_addr *a);

#endif
