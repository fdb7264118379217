/* range.h: which address ranges a topology takes: private ones that no route of the machine
 * touches.
 *
 * The hosts of a topology never see the machine's routes, but people do: an address in a report
 * must not look like one of their own networks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_WAN_RANGE_H
#define PT_WAN_RANGE_H

#include "base/err.h"
#include "net/addr.h"
#include "net/cidr.h"

/* Hosts of a range are numbered from 1; the hub is PT_RANGE_HUB. */
#define PT_RANGE_HOSTS 250
#define PT_RANGE_HUB   254

/* Do two prefixes of one family share an address? The default route (0 bits) overlaps nothing. */
bool pt_range_overlaps(const struct pt_cidr *a, const struct pt_cidr *b);

/* The first free range: a /24 of 10/8, 172.16/12, 192.168/16 or 198.18/15 (benchmarks, RFC 2544), a
 * /64 of fd77:7069:746f::/48 or 2001:2::/48 (benchmarks, RFC 5180). `first` moves the beginning of
 * the search, so that topologies of one machine look different. -EADDRNOTAVAIL: every one is in
 * use. */
int pt_range_choose(struct pt_cidr *out, int family, const struct pt_cidr *taken, size_t n_taken,
                    unsigned first, struct pt_err *e) PT_MUST_USE;

/* The same against the routes of the present namespace. */
int pt_range_free(struct pt_cidr *out, int family, unsigned first, struct pt_err *e) PT_MUST_USE;

/* Host `number` (1 to 254) of a range, port 0. */
void pt_range_host(struct pt_addr *a, const struct pt_cidr *range, unsigned number);
/* Host `number` (1 to 250) of the loopback: 127.x.y.number, x and y from `seed`; never 127.0.y.z.
 */
void pt_range_loopback(struct pt_addr *a, unsigned seed, unsigned number);

#endif
