/* range.c: see range.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "wan/range.h"

#include "os/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where ranges are looked for: base, how many bytes of it are fixed, and how many ranges follow. */
struct pool {
    int family;
    uint8_t base[16];
    unsigned ranges; /* counted in the two bytes that end the prefix */
};

static const struct pool pools[] = {
    {AF_INET, {10, 0}, 65536},
    {AF_INET, {172, 16}, 4096},
    {AF_INET, {192, 168}, 256},
    {AF_INET, {198, 18}, 512},
    {AF_INET6, {0xfd, 0x77, 0x70, 0x69, 0x74, 0x6f, 0, 0}, 65536},
    {AF_INET6, {0x20, 0x01, 0, 2, 0, 0, 0, 0}, 65536},
};

enum { ROUTES_MAX = 65536 };

bool pt_range_overlaps(const struct pt_cidr *a, const struct pt_cidr *b)
{
    unsigned bits = a->bits < b->bits ? a->bits : b->bits;
    if (a->family != b->family || bits == 0)
        return false;
    if (memcmp(a->prefix, b->prefix, bits / 8) != 0)
        return false;
    const unsigned rest = bits % 8;
    return rest == 0 || ((a->prefix[bits / 8] ^ b->prefix[bits / 8]) >> (8 - rest)) == 0;
}

static void nth(struct pt_cidr *out, const struct pool *p, unsigned index)
{
    const unsigned at = p->family == AF_INET ? 1 : 6; /* of the two bytes that count */
    *out = (struct pt_cidr){.family = p->family, .bits = p->family == AF_INET ? 24 : 64};
    memcpy(out->prefix, p->base, sizeof(out->prefix));
    const unsigned number = ((unsigned)p->base[at] << 8 | p->base[at + 1]) + index;
    out->prefix[at] = (uint8_t)(number >> 8);
    out->prefix[at + 1] = (uint8_t)number;
}

static bool is_free(const struct pt_cidr *range, const struct pt_cidr *taken, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (pt_range_overlaps(range, &taken[i]))
            return false;
    return true;
}

int pt_range_choose(struct pt_cidr *out, int family, const struct pt_cidr *taken, size_t n_taken,
                    unsigned first, struct pt_err *e)
{
    for (size_t p = 0; p < PT_COUNT(pools); p++) {
        /* 256 tries over the whole pool, evenly spaced: a route of /8 must not cost 65536. */
        const unsigned tries = pools[p].ranges < 256 ? pools[p].ranges : 256;
        const unsigned step = pools[p].ranges / tries;
        for (unsigned i = 0; pools[p].family == family && i < pools[p].ranges && i < tries; i++) {
            nth(out, &pools[p], (first + i * step) % pools[p].ranges);
            if (is_free(out, taken, n_taken))
                return 0;
        }
    }
    return pt_fail(e, -EADDRNOTAVAIL,
                   "every private %s range that hosts could have is in the routes of this machine",
                   family == AF_INET ? "IPv4" : "IPv6");
}

struct routes {
    struct pt_cidr *at;
    size_t n, cap;
    int family;
};

static int visit_route(void *ctx, const struct nlmsghdr *m)
{
    struct routes *t = ctx;
    if (m->nlmsg_type != RTM_NEWROUTE || m->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
        return 0;
    const struct rtmsg *rt = pt_nl_body(m);
    const size_t bytes = t->family == AF_INET ? 4 : 16;
    const struct rtattr *to = pt_nl_find(m, sizeof(*rt), RTA_DST, bytes);
    if (!to || rt->rtm_family != t->family || rt->rtm_dst_len > 8 * bytes || t->n == ROUTES_MAX)
        return 0;
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 64;
        void *more = realloc(t->at, cap * sizeof(*t->at));
        if (!more)
            return -ENOMEM;
        t->at = more;
        t->cap = cap;
    }
    struct pt_cidr *c = &t->at[t->n++];
    *c = (struct pt_cidr){.family = t->family, .bits = rt->rtm_dst_len};
    memcpy(c->prefix, pt_nl_value(to), bytes);
    return 0;
}

int pt_range_free(struct pt_cidr *out, int family, unsigned first, struct pt_err *e)
{
    const struct rtmsg fixed = {.rtm_family = (uint8_t)family};
    struct pt_nl_request r;
    struct routes t = {.family = family};
    pt_nl_begin(&r, RTM_GETROUTE, NLM_F_DUMP, &fixed, sizeof(fixed));
    int code = pt_nl_ask(&r, visit_route, &t);
    if (code < 0)
        pt_fail(e, code, "the routes of this machine: %s", pt_strerror(code));
    else
        code = pt_range_choose(out, family, t.at, t.n, first, e);
    free(t.at);
    return code;
}

void pt_range_host(struct pt_addr *a, const struct pt_cidr *range, unsigned number)
{
    pt_addr_any(a, range->family, 0);
    if (range->family == AF_INET) {
        memcpy(&a->v4.sin_addr, range->prefix, 4);
        a->v4.sin_addr.s_addr |= htonl(number);
    } else {
        memcpy(&a->v6.sin6_addr, range->prefix, 16);
        a->v6.sin6_addr.s6_addr[15] = (uint8_t)number;
    }
}

void pt_range_loopback(struct pt_addr *a, unsigned seed, unsigned number)
{
    pt_addr_any(a, AF_INET, 0);
    a->v4.sin_addr.s_addr =
        htonl(127u << 24 | (1 + (seed >> 8) % 254) << 16 | (seed & 255) << 8 | number);
}
