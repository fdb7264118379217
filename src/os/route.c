/* route.c: see route.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/route.h"

#include "os/clock.h"
#include "os/link.h"
#include "os/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The visitor's "found it": ends the walk. */
enum { FOUND = 1 };

static size_t address_bytes(int family)
{
    return family == AF_INET6 ? 16 : 4;
}

/* Copies the address out of a socket address; its length, or 0 for another family. */
static size_t take_address(uint8_t out[16], const struct sockaddr *from)
{
    if (from->sa_family == AF_INET)
        memcpy(out, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    else if (from->sa_family == AF_INET6)
        memcpy(out, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    else
        return 0;
    return address_bytes(from->sa_family);
}

static const char *print_address(char out[INET6_ADDRSTRLEN], int family, const uint8_t *address)
{
    return inet_ntop(family, address, out, INET6_ADDRSTRLEN) ? out : "?";
}

/* RTA_GATEWAY has the family of the destination; RTA_VIA names its own (RFC 5549 routes). */
static void take_next_hop(struct pt_route *r, const struct nlmsghdr *m)
{
    const size_t n = address_bytes(r->family);
    memcpy(r->next_hop, r->destination, 16);
    r->next_hop_family = r->family;
    const struct rtattr *gateway = pt_nl_find(m, sizeof(struct rtmsg), RTA_GATEWAY, n);
    if (gateway) {
        memcpy(r->next_hop, pt_nl_value(gateway), n);
        r->gatewayed = true;
        return;
    }
    const struct rtattr *via = pt_nl_find(m, sizeof(struct rtmsg), RTA_VIA, sizeof(struct rtvia));
    if (!via)
        return;
    const struct rtvia *v = pt_nl_value(via);
    const size_t bytes = RTA_PAYLOAD(via) - sizeof(*v);
    if (bytes < address_bytes(v->rtvia_family))
        return;
    memset(r->next_hop, 0, 16);
    memcpy(r->next_hop, v->rtvia_addr, address_bytes(v->rtvia_family));
    r->next_hop_family = v->rtvia_family;
    r->gatewayed = true;
}

static int visit_route(void *ctx, const struct nlmsghdr *m)
{
    struct pt_route *r = ctx;
    if (m->nlmsg_type != RTM_NEWROUTE || m->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
        return -EBADMSG;
    const struct rtmsg *rt = pt_nl_body(m);
    switch (rt->rtm_type) {
    case RTN_UNICAST:
        break;
    case RTN_LOCAL:
        r->local = true;
        break;
    case RTN_BLACKHOLE:
    case RTN_UNREACHABLE:
    case RTN_PROHIBIT:
    case RTN_THROW:
        return -ENETUNREACH;
    default: /* broadcast, multicast: no single next hop */
        return -EOPNOTSUPP;
    }
    const struct rtattr *oif = pt_nl_find(m, sizeof(*rt), RTA_OIF, 4);
    if (!oif) /* several next hops and no choice made, which the lookup does not do */
        return -EBADMSG;
    memcpy(&r->ifindex, pt_nl_value(oif), 4);
    take_next_hop(r, m);
    const size_t n = address_bytes(r->family);
    const struct rtattr *source = pt_nl_find(m, sizeof(*rt), RTA_PREFSRC, n);
    static const uint8_t unspecified[16];
    if (source && memcmp(r->source, unspecified, n) == 0)
        memcpy(r->source, pt_nl_value(source), n);
    return FOUND;
}

static int ask_route(struct pt_route *r, bool bound, unsigned ifindex)
{
    const size_t n = address_bytes(r->family);
    const struct rtmsg fixed = {.rtm_family = (uint8_t)r->family,
                                .rtm_dst_len = (uint8_t)(n * 8),
                                .rtm_src_len = (uint8_t)(bound ? n * 8 : 0)};
    struct pt_nl_request q;
    pt_nl_begin(&q, RTM_GETROUTE, 0, &fixed, sizeof(fixed));
    pt_nl_add(&q, RTA_DST, r->destination, n);
    if (bound)
        pt_nl_add(&q, RTA_SRC, r->source, n);
    if (ifindex)
        pt_nl_add(&q, RTA_OIF, &ifindex, sizeof(ifindex));
    int code = pt_nl_ask(&q, visit_route, r);
    return code == FOUND ? 0 : code == 0 ? -EBADMSG : code;
}

/* A v6 answer leaves the source out where an address must be chosen by scope: a connected socket
 * makes the choice that ordinary sends would. Nothing is sent. */
static int choose_source(struct pt_route *r)
{
    static const uint8_t unspecified[16];
    if (memcmp(r->source, unspecified, address_bytes(r->family)) != 0)
        return 0;
    struct sockaddr_in6 to6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_scope_id = r->ifindex};
    struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(9)};
    memcpy(&to6.sin6_addr, r->destination, 16);
    memcpy(&to4.sin_addr, r->destination, 4);
    const bool six = r->family == AF_INET6;
    const void *to = six ? (const void *)&to6 : (const void *)&to4;
    int fd = socket(r->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    union {
        struct sockaddr any;
        struct sockaddr_in6 six;
    } own = {.six = {0}};
    socklen_t n = sizeof(own);
    int code = 0;
    if (connect(fd, to, six ? sizeof(to6) : sizeof(to4)) < 0 || getsockname(fd, &own.any, &n) < 0)
        code = -errno;
    else if (take_address(r->source, &own.any) == 0)
        code = -EAFNOSUPPORT;
    close(fd);
    return code;
}

int pt_route_find(struct pt_route *r, const struct sockaddr *to, const struct sockaddr *from,
                  unsigned ifindex, struct pt_err *e)
{
    char text[INET6_ADDRSTRLEN];
    *r = (struct pt_route){.family = to->sa_family};
    if (take_address(r->destination, to) == 0)
        return pt_fail(e, -EAFNOSUPPORT, "route: address family %d has none", to->sa_family);
    print_address(text, r->family, r->destination);
    if (from && (from->sa_family != to->sa_family || take_address(r->source, from) == 0))
        return pt_fail(e, -EAFNOSUPPORT, "route to %s: the source is of another family", text);
    if (ifindex == 0 && to->sa_family == AF_INET6)
        ifindex = ((const struct sockaddr_in6 *)(const void *)to)->sin6_scope_id;

    int code = ask_route(r, from != NULL, ifindex);
    if (code == 0)
        code = choose_source(r);
    if (code < 0)
        return pt_fail(e, code, "route to %s: %s; see 'ip route get %s'", text, pt_strerror(code),
                       text);
    if (r->local)
        return 0;
    struct pt_link link;
    code = pt_link_read(&link, r->ifindex, e);
    if (code == 0 && link.ethernet)
        memcpy(r->source_mac, link.mac, 6);
    return code;
}

struct neighbour_search {
    struct pt_route *route;
    bool failed;
};

static int visit_neighbour(void *ctx, const struct nlmsghdr *m)
{
    struct neighbour_search *s = ctx;
    if (m->nlmsg_type != RTM_NEWNEIGH || m->nlmsg_len < NLMSG_LENGTH(sizeof(struct ndmsg)))
        return 0;
    const struct ndmsg *nd = pt_nl_body(m);
    const size_t n = address_bytes(s->route->next_hop_family);
    const struct rtattr *address = pt_nl_find(m, sizeof(*nd), NDA_DST, n);
    if (nd->ndm_family != s->route->next_hop_family || nd->ndm_ifindex != (int)s->route->ifindex ||
        !address || memcmp(pt_nl_value(address), s->route->next_hop, n) != 0)
        return 0;
    s->failed = nd->ndm_state & NUD_FAILED;
    const struct rtattr *mac = pt_nl_find(m, sizeof(*nd), NDA_LLADDR, 6);
    const unsigned valid =
        NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE;
    if (!mac || !(nd->ndm_state & valid))
        return 0;
    memcpy(s->route->next_hop_mac, pt_nl_value(mac), 6);
    return FOUND;
}

/* A dump, because asking for one entry needs Linux 5.0 and strict checking; tables are small. */
static int look_up_neighbour(struct neighbour_search *s)
{
    const struct ndmsg fixed = {.ndm_family = (uint8_t)s->route->next_hop_family,
                                .ndm_ifindex = (int)s->route->ifindex};
    struct pt_nl_request q;
    pt_nl_begin(&q, RTM_GETNEIGH, NLM_F_DUMP, &fixed, sizeof(fixed));
    pt_nl_add(&q, NDA_IFINDEX, &s->route->ifindex, sizeof(s->route->ifindex));
    s->failed = false;
    return pt_nl_ask(&q, visit_neighbour, s);
}

/* Errors do not matter: what counts is whether the neighbour entry appears. */
static void provoke(const struct pt_route *r)
{
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_scope_id = r->ifindex};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(9)};
    memcpy(&six.sin6_addr, r->next_hop, 16);
    memcpy(&four.sin_addr, r->next_hop, 4);
    const bool v6 = r->next_hop_family == AF_INET6;
    const void *to = v6 ? (const void *)&six : (const void *)&four;
    int fd = socket(r->next_hop_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (connect(fd, to, v6 ? sizeof(six) : sizeof(four)) == 0)
        (void)!send(fd, "", 0, MSG_NOSIGNAL);
    close(fd);
}

int pt_route_resolve(struct pt_route *r, pt_ns timeout_ns, struct pt_err *e)
{
    struct pt_link link;
    char text[INET6_ADDRSTRLEN];
    if (r->local)
        return pt_fail(e, -EOPNOTSUPP,
                       "%s is this host: raw frames need another one, or a "
                       "network namespace behind a veth pair",
                       print_address(text, r->family, r->destination));
    int code = pt_link_read(&link, r->ifindex, e);
    if (code < 0)
        return code;
    if (!link.ethernet)
        return pt_fail(e, -EOPNOTSUPP, "%s has no Ethernet addresses: raw frames cannot use it",
                       link.name);

    const pt_ns until = pt_clock_now() + timeout_ns;
    struct neighbour_search s = {.route = r};
    code = look_up_neighbour(&s);
    for (pt_ns step = PT_MS, next_try = 0; code == 0; step = step < 50 * PT_MS ? 2 * step : step) {
        pt_ns now = pt_clock_now();
        if (now >= until)
            return pt_fail(e, -EHOSTUNREACH, "next hop %s does not answer on %s%s",
                           print_address(text, r->next_hop_family, r->next_hop), link.name,
                           s.failed ? " (neighbour entry is FAILED)" : "");
        if (now >= next_try) {
            provoke(r);
            next_try = now + PT_S;
        }
        pt_clock_sleep_until(now + step < until ? now + step : until);
        code = look_up_neighbour(&s);
    }
    if (code < 0)
        return pt_fail(e, code, "neighbours of %s: %s", link.name, pt_strerror(code));
    return 0;
}
