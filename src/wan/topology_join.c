/* topology_join.c: the star: one veth pair per host, its far end in the hub, and a bridge or
 * routes.
 *
 * With routes every host has its address alone (/32, /128) and the hub as the gateway of
 * everything; the hub has one and the same address on all of its ports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/netif.h"
#include "os/netns.h"
#include "wan/range.h"
#include "wan/topology_private.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct join {
    struct pt_topo *t;
    const struct pt_topo_host *host;
    enum pt_topo_kind kind;
};

static const void *ip(const struct pt_addr *a)
{
    return a->sa.sa_family == AF_INET ? (const void *)&a->v4.sin_addr
                                      : (const void *)&a->v6.sin6_addr;
}

/* The hub's address in the range of a host's. */
static struct pt_addr hub_of(const struct pt_addr *host)
{
    struct pt_addr a = *host;
    if (a.sa.sa_family == AF_INET)
        ((uint8_t *)&a.v4.sin_addr)[3] = PT_RANGE_HUB;
    else
        a.v6.sin6_addr.s6_addr[15] = PT_RANGE_HUB;
    return a;
}

/* A host's addresses; the IPv6 one only where the kernel has IPv6. */
static unsigned addresses(const struct pt_addr *out[2], const struct pt_topo_host *h)
{
    out[0] = &h->v4;
    out[1] = &h->v6;
    return h->v6.len ? 2 : 1;
}

static int up(const char *name, unsigned master, bool six, struct pt_err *e)
{
    const struct pt_netif_change c = {.up = true, .no_autoconf = six, .master = master};
    return pt_netif_change(if_nametoindex(name), &c, e);
}

static int set_up_host(void *ctx, struct pt_err *e)
{
    const struct join *j = ctx;
    const struct pt_addr *own[2];
    const unsigned n = addresses(own, j->host);
    const unsigned eth0 = if_nametoindex("eth0");
    int code = up("eth0", 0, n == 2, e);
    for (unsigned i = 0; code == 0 && i < n; i++) {
        const int family = own[i]->sa.sa_family;
        const bool four = family == AF_INET;
        const bool alone = j->kind == PT_TOPO_ROUTES;
        const unsigned bits = four ? (alone ? 32 : 24) : (alone ? 128 : 64);
        const struct pt_addr hub = hub_of(own[i]);
        code = pt_netif_address(eth0, family, ip(own[i]), bits, e);
        if (code == 0 && alone)
            code = pt_netif_route(eth0, family, NULL, 0, ip(&hub), e);
    }
    return code;
}

static int forward(const char *path, struct pt_err *e)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int code = fd < 0 || write(fd, "1", 1) != 1 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return code < 0 ? pt_fail(e, code, "%s: %s", path, pt_strerror(code)) : 0;
}

static int route_port(const struct pt_topo_host *h, unsigned port, struct pt_err *e)
{
    const struct pt_addr *to[2];
    const unsigned n = addresses(to, h);
    /* Who forwards for others asks for neighbours from its link-local address alone (RFC 4861). */
    static const uint8_t link_local[16] = {0xfe, 0x80, [15] = PT_RANGE_HUB};
    int code = n == 2 ? pt_netif_address(port, AF_INET6, link_local, 64, e) : 0;
    for (unsigned i = 0; code == 0 && i < n; i++) {
        const int family = to[i]->sa.sa_family;
        const unsigned bits = family == AF_INET ? 32 : 128;
        const struct pt_addr hub = hub_of(to[i]);
        code = pt_netif_address(port, family, ip(&hub), bits, e);
        if (code == 0)
            code = pt_netif_route(port, family, ip(to[i]), bits, NULL, e);
    }
    return code;
}

static int set_up_hub(void *ctx, struct pt_err *e)
{
    struct join *j = ctx;
    const bool six = j->t->host[0].v6.len != 0;
    int code = 0;
    if (j->kind == PT_TOPO_BRIDGE) {
        code = pt_netif_bridge("br0", e);
        if (code == -EOPNOTSUPP)
            j->kind = PT_TOPO_ROUTES;
        else if (code < 0)
            return code;
        else
            code = up("br0", 0, six, e);
    }
    if (j->kind == PT_TOPO_ROUTES) {
        code = forward("/proc/sys/net/ipv4/ip_forward", e);
        if (code == 0 && six)
            code = forward("/proc/sys/net/ipv6/conf/all/forwarding", e);
    }
    const unsigned bridge = j->kind == PT_TOPO_BRIDGE ? if_nametoindex("br0") : 0;
    for (unsigned i = 0; code == 0 && i < j->t->n; i++) {
        char port[IFNAMSIZ];
        snprintf(port, sizeof(port), "port%u", i);
        const struct pt_netif_veth pair = {
            .name = port, .peer = "eth0", .peer_netns = j->t->host[i].netns};
        code = pt_netif_veth(&pair, e);
        if (code == 0)
            code = up(port, bridge, six, e);
        if (code == 0 && j->kind == PT_TOPO_ROUTES)
            code = route_port(&j->t->host[i], if_nametoindex(port), e);
    }
    return code;
}

int pt_topo_join(struct pt_topo *t, enum pt_topo_kind kind, struct pt_err *e)
{
    struct join j = {.t = t, .kind = kind};
    int code = pt_netns_call(t->hub, set_up_hub, &j, e);
    for (unsigned i = 0; code == 0 && i < t->n; i++) {
        j.host = &t->host[i];
        code = pt_netns_call(j.host->netns, set_up_host, &j, e);
        if (code < 0 && e)
            code = pt_fail_prefix(e, "host %s", j.host->name);
    }
    if (code == 0)
        snprintf(t->text, sizeof(t->text),
                 "%u host%s a network namespace of this machine, joined by veth pairs and %s", t->n,
                 t->n == 1 ? "," : "s, each",
                 j.kind == PT_TOPO_BRIDGE ? "a bridge" : "a routing hub");
    return code;
}
