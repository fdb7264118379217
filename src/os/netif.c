/* netif.c: see netif.h. Numbers and nesting are those of rtnetlink(7) and <linux/if_link.h>.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/netif.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { FOUND = 1, ALIAS_MAX = 255 };

static const uint16_t make = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;

static bool name_fits(const char *name)
{
    size_t n = name ? strnlen(name, IFNAMSIZ) : 0;
    return n > 0 && n < IFNAMSIZ;
}

static size_t address_bytes(int family, unsigned bits)
{
    const size_t n = family == AF_INET ? 4 : family == AF_INET6 ? 16 : 0;
    return bits <= 8 * n ? n : 0;
}

static void add_text(struct pt_nl_request *r, uint16_t type, const char *text)
{
    pt_nl_add(r, type, text, strlen(text) + 1);
}

static void add_u32(struct pt_nl_request *r, uint16_t type, unsigned value)
{
    pt_nl_add(r, type, &value, sizeof(value));
}

int pt_netif_veth_request(struct pt_nl_request *r, const struct pt_netif_veth *v)
{
    const struct ifinfomsg fixed = {.ifi_family = AF_UNSPEC};
    if (!name_fits(v->name) || !name_fits(v->peer))
        return -EINVAL;
    pt_nl_begin(r, RTM_NEWLINK, make, &fixed, sizeof(fixed));
    add_text(r, IFLA_IFNAME, v->name);
    if (v->mtu)
        add_u32(r, IFLA_MTU, v->mtu);
    size_t info = pt_nl_nest(r, IFLA_LINKINFO, NULL, 0);
    add_text(r, IFLA_INFO_KIND, "veth");
    size_t data = pt_nl_nest(r, IFLA_INFO_DATA, NULL, 0);
    size_t peer = pt_nl_nest(r, VETH_INFO_PEER, &fixed, sizeof(fixed));
    add_text(r, IFLA_IFNAME, v->peer);
    if (v->mtu)
        add_u32(r, IFLA_MTU, v->mtu);
    if (v->peer_netns >= 0)
        add_u32(r, IFLA_NET_NS_FD, (unsigned)v->peer_netns);
    pt_nl_nest_end(r, peer);
    pt_nl_nest_end(r, data);
    pt_nl_nest_end(r, info);
    return 0;
}

int pt_netif_veth(const struct pt_netif_veth *v, struct pt_err *e)
{
    struct pt_nl_request r;
    int code = pt_netif_veth_request(&r, v);
    code = code < 0 ? code : pt_nl_order(&r);
    if (code < 0)
        return pt_fail(e, code, "making the veth pair %s and %s: %s", v->name, v->peer,
                       pt_strerror(code));
    return 0;
}

int pt_netif_bridge_request(struct pt_nl_request *r, const char *name)
{
    const struct ifinfomsg fixed = {.ifi_family = AF_UNSPEC};
    if (!name_fits(name))
        return -EINVAL;
    pt_nl_begin(r, RTM_NEWLINK, make, &fixed, sizeof(fixed));
    add_text(r, IFLA_IFNAME, name);
    size_t info = pt_nl_nest(r, IFLA_LINKINFO, NULL, 0);
    add_text(r, IFLA_INFO_KIND, "bridge");
    pt_nl_nest_end(r, info);
    return 0;
}

int pt_netif_bridge(const char *name, struct pt_err *e)
{
    struct pt_nl_request r;
    int code = pt_netif_bridge_request(&r, name);
    code = code < 0 ? code : pt_nl_order(&r);
    return code < 0 ? pt_fail(e, code, "making the bridge %s: %s", name, pt_strerror(code)) : 0;
}

int pt_netif_change_request(struct pt_nl_request *r, unsigned ifindex,
                            const struct pt_netif_change *c)
{
    const struct ifinfomsg fixed = {.ifi_family = AF_UNSPEC,
                                    .ifi_index = (int)ifindex,
                                    .ifi_flags = c->up ? IFF_UP : 0,
                                    .ifi_change = c->up ? IFF_UP : 0};
    const size_t n = c->alias ? strnlen(c->alias, ALIAS_MAX + 1) : 1;
    if (ifindex == 0 || n == 0 || n > ALIAS_MAX)
        return -EINVAL;
    pt_nl_begin(r, RTM_NEWLINK, NLM_F_ACK, &fixed, sizeof(fixed));
    if (c->master)
        add_u32(r, IFLA_MASTER, c->master);
    if (c->alias)
        pt_nl_add(r, IFLA_IFALIAS, c->alias, n);
    if (c->no_autoconf) {
        const uint8_t none = IN6_ADDR_GEN_MODE_NONE;
        size_t spec = pt_nl_nest(r, IFLA_AF_SPEC, NULL, 0);
        size_t six = pt_nl_nest(r, AF_INET6, NULL, 0);
        pt_nl_add(r, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof(none));
        pt_nl_nest_end(r, six);
        pt_nl_nest_end(r, spec);
    }
    return 0;
}

int pt_netif_change(unsigned ifindex, const struct pt_netif_change *c, struct pt_err *e)
{
    struct pt_nl_request r;
    int code = pt_netif_change_request(&r, ifindex, c);
    code = code < 0 ? code : pt_nl_order(&r);
    return code < 0 ? pt_fail(e, code, "changing interface %u: %s", ifindex, pt_strerror(code)) : 0;
}

int pt_netif_delete(unsigned ifindex, struct pt_err *e)
{
    const struct ifinfomsg fixed = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
    struct pt_nl_request r;
    pt_nl_begin(&r, RTM_DELLINK, NLM_F_ACK, &fixed, sizeof(fixed));
    int code = ifindex ? pt_nl_order(&r) : -EINVAL;
    return code < 0 ? pt_fail(e, code, "deleting interface %u: %s", ifindex, pt_strerror(code)) : 0;
}

int pt_netif_address_request(struct pt_nl_request *r, unsigned ifindex, int family,
                             const void *address, unsigned bits)
{
    const struct ifaddrmsg fixed = {.ifa_family = (uint8_t)family,
                                    .ifa_prefixlen = (uint8_t)bits,
                                    .ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0,
                                    .ifa_index = ifindex};
    const size_t n = address_bytes(family, bits);
    if (n == 0 || ifindex == 0)
        return -EINVAL;
    pt_nl_begin(r, RTM_NEWADDR, make, &fixed, sizeof(fixed));
    pt_nl_add(r, IFA_LOCAL, address, n);
    pt_nl_add(r, IFA_ADDRESS, address, n);
    return 0;
}

int pt_netif_address(unsigned ifindex, int family, const void *address, unsigned bits,
                     struct pt_err *e)
{
    struct pt_nl_request r;
    int code = pt_netif_address_request(&r, ifindex, family, address, bits);
    code = code < 0 ? code : pt_nl_order(&r);
    if (code < 0)
        return pt_fail(e, code, "giving interface %u an address: %s", ifindex, pt_strerror(code));
    return 0;
}

int pt_netif_route_request(struct pt_nl_request *r, unsigned ifindex, int family,
                           const void *address, unsigned bits, const void *gateway)
{
    const struct rtmsg fixed = {.rtm_family = (uint8_t)family,
                                .rtm_dst_len = (uint8_t)bits,
                                .rtm_table = RT_TABLE_MAIN,
                                .rtm_protocol = RTPROT_STATIC,
                                .rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                                .rtm_type = RTN_UNICAST,
                                .rtm_flags = gateway ? RTNH_F_ONLINK : 0};
    const size_t n = address_bytes(family, bits);
    if (n == 0 || ifindex == 0)
        return -EINVAL;
    pt_nl_begin(r, RTM_NEWROUTE, make, &fixed, sizeof(fixed));
    if (bits)
        pt_nl_add(r, RTA_DST, address, n);
    if (gateway)
        pt_nl_add(r, RTA_GATEWAY, gateway, n);
    add_u32(r, RTA_OIF, ifindex);
    return 0;
}

int pt_netif_route(unsigned ifindex, int family, const void *address, unsigned bits,
                   const void *gateway, struct pt_err *e)
{
    struct pt_nl_request r;
    int code = pt_netif_route_request(&r, ifindex, family, address, bits, gateway);
    code = code < 0 ? code : pt_nl_order(&r);
    if (code < 0)
        return pt_fail(e, code, "adding a route through interface %u: %s", ifindex,
                       pt_strerror(code));
    return 0;
}

struct alias {
    char *out;
    size_t cap;
};

static int visit_alias(void *ctx, const struct nlmsghdr *m)
{
    const struct alias *a = ctx;
    const struct rtattr *text = pt_nl_find(m, sizeof(struct ifinfomsg), IFLA_IFALIAS, 1);
    if (m->nlmsg_type != RTM_NEWLINK)
        return -EBADMSG;
    if (text)
        snprintf(a->out, a->cap, "%.*s", (int)RTA_PAYLOAD(text), (const char *)pt_nl_value(text));
    return FOUND;
}

int pt_netif_alias(unsigned ifindex, char *out, size_t cap)
{
    const struct ifinfomsg fixed = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
    struct pt_nl_request r;
    struct alias a = {out, cap};
    out[0] = 0;
    pt_nl_begin(&r, RTM_GETLINK, 0, &fixed, sizeof(fixed));
    int code = pt_nl_ask(&r, visit_alias, &a);
    return code == FOUND ? 0 : code == 0 ? -EBADMSG : code;
}
