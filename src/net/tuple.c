/* tuple.c: see tuple.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/tuple.h"

#include "os/sysctl.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ports */

/* "A" or "A-B", up to a comma or the end; *text moves behind it. */
static int take_ports(const char **text, uint16_t *first, uint16_t *last)
{
    unsigned long v[2];
    for (int i = 0; i < 2; i++) {
        char *end;
        if (!isdigit((unsigned char)**text))
            return -EINVAL;
        v[i] = strtoul(*text, &end, 10);
        if (end - *text > 5 || v[i] < 1 || v[i] > 65535)
            return -EINVAL;
        *text = end;
        if (i == 0 && **text != '-') {
            v[1] = v[0];
            break;
        }
        *text += i == 0;
    }
    *first = (uint16_t)v[0];
    *last = (uint16_t)v[1];
    return v[1] < v[0] || (**text && **text != ',') ? -EINVAL : 0;
}

void pt_ephemeral_read(struct pt_ephemeral *p)
{
    int64_t range[2];
    *p = (struct pt_ephemeral){.first = 32768, .last = 60999};
    if (pt_sysctl_numbers("net/ipv4/ip_local_port_range", range, 2) == 2 && range[0] >= 1 &&
        range[1] <= 65535 && range[0] <= range[1]) {
        p->first = (uint16_t)range[0];
        p->last = (uint16_t)range[1];
    }
    p->count = (uint32_t)(p->last - p->first) + 1;
    /* The kernel prints these sorted and merged, so none is subtracted twice. */
    char reserved[4096];
    uint16_t a, b;
    if (pt_sysctl_text("net/ipv4/ip_local_reserved_ports", reserved, sizeof(reserved)) < 0)
        return;
    for (const char *at = reserved; *at && take_ports(&at, &a, &b) == 0; at += *at == ',') {
        uint32_t low = a > p->first ? a : p->first, high = b < p->last ? b : p->last;
        if (low <= high)
            p->count -= high - low + 1;
    }
}

/* ---- source addresses */

static uint8_t *bytes_of(struct pt_addr *a, size_t *n)
{
    if (pt_addr_family(a) == AF_INET) {
        *n = 4;
        return (uint8_t *)&a->v4.sin_addr;
    }
    *n = 16;
    return a->v6.sin6_addr.s6_addr;
}

/* The last 32 bits: enough, since a range never leaves them (see take_range). */
static uint32_t low_word(const struct pt_addr *a)
{
    struct pt_addr copy = *a;
    size_t n;
    uint8_t *b = bytes_of(&copy, &n);
    uint32_t low;
    memcpy(&low, b + n - 4, 4);
    return ntohl(low);
}

static void add_to_address(struct pt_addr *a, uint32_t offset)
{
    size_t n;
    uint8_t *b = bytes_of(a, &n);
    uint32_t low = htonl(low_word(a) + offset);
    memcpy(b + n - 4, &low, 4);
}

static bool same_high_bytes(const struct pt_addr *a, const struct pt_addr *b)
{
    struct pt_addr x = *a, y = *b;
    size_t n;
    uint8_t *p = bytes_of(&x, &n), *q = bytes_of(&y, &n);
    return memcmp(p, q, n - 4) == 0;
}

static int count_to_prefix_end(const struct pt_addr *a, const char *bits_text, uint64_t *count)
{
    unsigned most = pt_addr_family(a) == AF_INET ? 32 : 128;
    char *end;
    unsigned long bits = strtoul(bits_text, &end, 10);
    if (!isdigit((unsigned char)bits_text[0]) || *end || bits > most || most - bits > 32)
        return -EINVAL;
    uint64_t size = (uint64_t)1 << (most - bits);
    *count = size - (low_word(a) & (size - 1));
    return 0;
}

/* One item of --bind, between two commas. */
static int take_range(struct pt_tuple_range *r, char *item, int family, struct pt_err *e)
{
    static const char expected[] = "expected an address, a range like 10.0.0.5-10.0.0.20 or "
                                   "10.0.0.5/28, or several with commas between";
    char *slash = strchr(item, '/'), *dash = strchr(item, '-');
    struct pt_addr last;
    struct pt_err why = {0};
    uint64_t count = 1;
    if (slash)
        *slash++ = 0;
    else if (dash && pt_addr_parse(&r->first, item, 0, NULL) == 0)
        dash = NULL; /* it is part of a zone: fe80::1%br-lan */
    else if (dash)
        *dash++ = 0;
    int rc = pt_addr_parse(&r->first, item, 0, &why);
    if (rc < 0)
        return pt_fail(e, rc, "source address %s; %s", why.text, expected);
    if (pt_addr_port(&r->first) != 0)
        return pt_fail(e, -EINVAL, "source address %s: ports are given apart, with --ports", item);
    if (pt_addr_family(&r->first) != family)
        return pt_fail(e, -EINVAL, "source address %s: the destination is %s", item,
                       family == AF_INET    ? "IPv4"
                       : family == AF_INET6 ? "IPv6"
                                            : "a unix socket");
    if (slash && count_to_prefix_end(&r->first, slash, &count) < 0)
        return pt_fail(e, -EINVAL, "source addresses %s/%s: no prefix length that fits; %s", item,
                       slash, expected);
    if (!slash && dash) {
        if (pt_addr_parse(&last, dash, 0, NULL) < 0 || pt_addr_family(&last) != family ||
            pt_addr_port(&last) != 0 || !same_high_bytes(&r->first, &last) ||
            low_word(&last) < low_word(&r->first))
            return pt_fail(e, -EINVAL, "source addresses %s-%s: not a range; %s", item, dash,
                           expected);
        count = (uint64_t)low_word(&last) - low_word(&r->first) + 1;
    }
    if (count > PT_TUPLE_ADDRESSES)
        return pt_fail(e, -EINVAL, "source addresses from %s: %" PRIu64 " of them, at most %u",
                       item, count, PT_TUPLE_ADDRESSES);
    r->count = (uint32_t)count;
    return 0;
}

static bool overlaps(const struct pt_tuple_range *a, const struct pt_tuple_range *b)
{
    uint64_t x = low_word(&a->first), y = low_word(&b->first);
    return same_high_bytes(&a->first, &b->first) && x < y + b->count && y < x + a->count;
}

static int take_ranges(struct pt_tuple_plan *p, const char *bind, struct pt_err *e)
{
    char item[160];
    for (const char *at = bind;; at++) {
        size_t n = strcspn(at, ",");
        if (p->ranges == PT_TUPLE_RANGES || n >= sizeof(item))
            return pt_fail(e, -EINVAL, "source addresses: at most %d items", PT_TUPLE_RANGES);
        memcpy(item, at, n);
        item[n] = 0;
        struct pt_tuple_range *r = &p->range[p->ranges];
        int rc = take_range(r, item, p->family, e);
        if (rc < 0)
            return rc;
        for (unsigned i = 0; i < p->ranges; i++)
            if (overlaps(&p->range[i], r))
                return pt_fail(e, -EINVAL, "source addresses: %s is given twice", item);
        p->addresses = (p->ranges ? p->addresses : 0) + r->count;
        p->ranges++;
        at += n;
        if (!*at)
            return 0;
    }
}

/* ---- the plan */

static bool connects_to_itself(const struct pt_tuple_plan *p, const struct pt_addr *to)
{
    uint16_t port = pt_addr_port(to);
    if (port < p->port_first || port - p->port_first >= (int)p->ports)
        return false;
    struct pt_tuple_range here = {.first = *to, .count = 1};
    for (unsigned i = 0; i < p->ranges; i++)
        if (overlaps(&p->range[i], &here))
            return true;
    return false;
}

int pt_tuple_plan(struct pt_tuple_plan *p, const char *bind, const char *ports,
                  const struct pt_addr *to, unsigned destinations,
                  const struct pt_ephemeral *ephemeral, struct pt_err *e)
{
    memset(p, 0, sizeof(*p));
    p->family = pt_addr_family(&to[0]);
    p->destinations = destinations;
    p->addresses = 1;
    p->ports = ephemeral->count;
    for (unsigned i = 1; i < destinations; i++)
        if (pt_addr_family(&to[i]) != p->family)
            return pt_fail(e, -EINVAL, "destinations of several address families; use -4 or -6");
    bool ip = p->family == AF_INET || p->family == AF_INET6;
    if (!ip && (bind || ports))
        return pt_fail(e, -EINVAL,
                       "source addresses and ports (--bind, --ports) do not go with a "
                       "unix socket");
    if (!ip) {
        p->capacity = UINT64_MAX; /* unix sockets are not told apart by address */
        return 0;
    }
    int rc = bind ? take_ranges(p, bind, e) : 0;
    if (rc < 0)
        return rc;
    if (ports) {
        uint16_t last;
        const char *at = ports;
        if (take_ports(&at, &p->port_first, &last) < 0 || *at)
            return pt_fail(e, -EINVAL, "source ports '%.40s': expected A-B, each from 1 to 65535",
                           ports);
        p->ports_given = true;
        p->ports = (uint32_t)(last - p->port_first) + 1;
    }
    for (unsigned i = 0; ports && i < destinations; i++)
        if (connects_to_itself(p, &to[i])) {
            char text[PT_ADDR_TEXT];
            return pt_fail(e, -EINVAL,
                           "source ports %s include %s itself; leave port %u out of "
                           "--ports",
                           ports, pt_addr_print(&to[i], text), pt_addr_port(&to[i]));
        }
    p->capacity = p->addresses * p->ports * p->destinations;
    return 0;
}

int pt_tuple_check(const struct pt_tuple_plan *p, uint64_t flows, struct pt_err *e)
{
    if (flows <= p->capacity)
        return 0;
    uint64_t per_address = (uint64_t)p->ports * p->destinations;
    uint64_t needed = per_address ? (flows + per_address - 1) / per_address : 0;
    return pt_fail(
        e, -EADDRNOTAVAIL,
        "%" PRIu64 " connections do not fit: %" PRIu64 " source address%s x %u %sports x "
        "%u destination%s give %" PRIu64 "; --bind with %" PRIu64 " addresses would do%s",
        flows, p->addresses, p->addresses == 1 ? "" : "es", p->ports,
        p->ports_given ? "" : "ephemeral ", p->destinations, p->destinations == 1 ? "" : "s",
        p->capacity, needed, p->ports < 64000 ? ", or a wider --ports" : "");
}

void pt_tuple_at(const struct pt_tuple_plan *p, uint64_t n, struct pt_tuple *out)
{
    out->from.len = 0;
    out->to = p->destinations ? (unsigned)(n % p->destinations) : 0;
    if (p->ranges == 0 && !p->ports_given)
        return;
    n /= p->destinations ? p->destinations : 1;
    uint64_t address = n % p->addresses;
    n /= p->addresses;
    if (p->ranges == 0)
        pt_addr_any(&out->from, p->family, 0);
    for (unsigned i = 0; i < p->ranges; address -= p->range[i++].count)
        if (address < p->range[i].count) {
            out->from = p->range[i].first;
            add_to_address(&out->from, (uint32_t)address);
            break;
        }
    if (p->ports_given)
        pt_addr_set_port(&out->from, (uint16_t)(p->port_first + n % p->ports));
}
