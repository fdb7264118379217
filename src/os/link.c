/* link.c: see link.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/link.h"

#include "os/netlink.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FOUND = 1 };

static void take_text(char *out, size_t cap, const struct rtattr *a)
{
    if (a)
        snprintf(out, cap, "%.*s", (int)RTA_PAYLOAD(a), (const char *)pt_nl_value(a));
}

static void take_u32(unsigned *out, const struct rtattr *a)
{
    if (a)
        memcpy(out, pt_nl_value(a), sizeof(*out));
}

static void take_counters(struct pt_link *l, const struct rtattr *a)
{
    /* Only the fields that every supported kernel has; the struct grew later at its end. */
    struct rtnl_link_stats64 s;
    const size_t known = offsetof(struct rtnl_link_stats64, rx_nohandler);
    if (!a || RTA_PAYLOAD(a) < known)
        return;
    memcpy(&s, pt_nl_value(a), known);
    l->rx_packets = s.rx_packets;
    l->tx_packets = s.tx_packets;
    l->rx_bytes = s.rx_bytes;
    l->tx_bytes = s.tx_bytes;
    l->rx_dropped = s.rx_dropped;
    l->tx_dropped = s.tx_dropped;
    l->rx_errors = s.rx_errors;
    l->tx_errors = s.tx_errors;
}

static int visit_link(void *ctx, const struct nlmsghdr *m)
{
    struct pt_link *l = ctx;
    const size_t fixed = sizeof(struct ifinfomsg);
    if (m->nlmsg_type != RTM_NEWLINK || m->nlmsg_len < NLMSG_LENGTH(fixed))
        return -EBADMSG;
    const struct ifinfomsg *i = pt_nl_body(m);
    l->arp_type = i->ifi_type;
    l->up = i->ifi_flags & IFF_UP;
    l->loopback = i->ifi_flags & IFF_LOOPBACK;
    l->ethernet = i->ifi_type == ARPHRD_ETHER;
    take_text(l->name, sizeof(l->name), pt_nl_find(m, fixed, IFLA_IFNAME, 1));
    take_u32(&l->mtu, pt_nl_find(m, fixed, IFLA_MTU, 4));
    take_u32(&l->rx_queues, pt_nl_find(m, fixed, IFLA_NUM_RX_QUEUES, 4));
    take_u32(&l->tx_queues, pt_nl_find(m, fixed, IFLA_NUM_TX_QUEUES, 4));
    take_u32(&l->peer_ifindex, pt_nl_find(m, fixed, IFLA_LINK, 4));
    take_counters(l, pt_nl_find(m, fixed, IFLA_STATS64, 0));
    const struct rtattr *mac = pt_nl_find(m, fixed, IFLA_ADDRESS, 6);
    if (mac && l->ethernet)
        memcpy(l->mac, pt_nl_value(mac), 6);
    const struct rtattr *kind = pt_nl_find(m, fixed, IFLA_LINKINFO, 0);
    if (kind)
        take_text(l->kind, sizeof(l->kind), pt_nl_nested(kind, IFLA_INFO_KIND, 1));
    const struct rtattr *xdp = pt_nl_find(m, fixed, IFLA_XDP, 0);
    const struct rtattr *attached = xdp ? pt_nl_nested(xdp, IFLA_XDP_ATTACHED, 1) : NULL;
    l->xdp = attached && *(const uint8_t *)pt_nl_value(attached) != XDP_ATTACHED_NONE;
    return FOUND;
}

static int ethtool(int fd, struct ifreq *q, void *command)
{
    q->ifr_data = command;
    return ioctl(fd, SIOCETHTOOL, q) < 0 ? -errno : 0;
}

/* The queues in use, which are what packets can arrive on; IFLA_NUM_RX_QUEUES are those made. */
static void read_channels(struct pt_link *l, int fd, struct ifreq *q)
{
    struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};
    if (ethtool(fd, q, &c) < 0)
        return;
    if (c.rx_count + c.combined_count)
        l->rx_queues = c.rx_count + c.combined_count;
    if (c.tx_count + c.combined_count)
        l->tx_queues = c.tx_count + c.combined_count;
}

/* What the driver says of itself; without an answer the fields stay empty. */
static void ask_driver(struct pt_link *l)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    struct ifreq q = {0};
    snprintf(q.ifr_name, sizeof(q.ifr_name), "%s", l->name);
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    if (ethtool(fd, &q, &driver) == 0)
        snprintf(l->driver, sizeof(l->driver), "%.31s", driver.driver);
    read_channels(l, fd, &q);
    /* Software interfaces report a made-up 10 Gbit/s. The old command, a fixed struct, is enough.
     */
    struct ethtool_cmd speed = {.cmd = ETHTOOL_GSET};
    if (!l->loopback && !l->kind[0] && ethtool(fd, &q, &speed) == 0) {
        uint32_t mbit = ((uint32_t)speed.speed_hi << 16 | speed.speed);
        l->speed_mbit = mbit == (uint32_t)SPEED_UNKNOWN ? 0 : mbit;
    }
    close(fd);
}

int pt_link_read(struct pt_link *l, unsigned ifindex, struct pt_err *e)
{
    const struct ifinfomsg fixed = {.ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex};
    struct pt_nl_request q;
    *l = (struct pt_link){.ifindex = ifindex};
    pt_nl_begin(&q, RTM_GETLINK, 0, &fixed, sizeof(fixed));
    int code = pt_nl_ask(&q, visit_link, l);
    if (code != FOUND) {
        code = code < 0 ? code : -EBADMSG;
        return pt_fail(e, code, "interface %u: %s", ifindex, pt_strerror(code));
    }
    ask_driver(l);
    return 0;
}

int pt_offloads_read(struct pt_offloads *o, const char *name)
{
    static const uint32_t commands[] = {ETHTOOL_GTSO, ETHTOOL_GGSO, ETHTOOL_GGRO};
    bool *const answers[] = {&o->tso, &o->gso, &o->gro};
    int rc = 0, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    struct ifreq q = {0};
    snprintf(q.ifr_name, sizeof(q.ifr_name), "%.15s", name);
    for (size_t i = 0; i < PT_COUNT(commands) && rc == 0; i++) {
        struct ethtool_value v = {.cmd = commands[i]};
        rc = ethtool(fd, &q, &v);
        *answers[i] = v.data != 0;
    }
    close(fd);
    return rc;
}

struct qdisc_walk {
    struct pt_qdisc_stats *sum;
    int ifindex;
};

static void take_qdisc(struct pt_qdisc_stats *q, const struct nlmsghdr *m)
{
    const struct rtattr *s = pt_nl_find(m, sizeof(struct tcmsg), TCA_STATS2, 0);
    if (!s)
        return;
    const struct rtattr *basic = pt_nl_nested(s, TCA_STATS_BASIC, 12);
    const struct rtattr *wide = pt_nl_nested(s, TCA_STATS_PKT64, 8);
    const struct rtattr *queue = pt_nl_nested(s, TCA_STATS_QUEUE, sizeof(struct gnet_stats_queue));
    if (basic) {
        struct gnet_stats_basic b = {0};
        memcpy(&b, pt_nl_value(basic), 12); /* without the padding at its end */
        uint64_t packets = b.packets;
        if (wide) /* present where 32 bits may have wrapped */
            memcpy(&packets, pt_nl_value(wide), 8);
        q->packets = packets;
        q->bytes = b.bytes;
    }
    if (queue) {
        struct gnet_stats_queue u;
        memcpy(&u, pt_nl_value(queue), sizeof(u));
        q->drops = u.drops;
        q->overlimits = u.overlimits;
        q->requeues = u.requeues;
        q->backlog_bytes = u.backlog;
        q->backlog_packets = u.qlen;
    }
}

/* The kernel adds the children of mq and mqprio up itself when the root is dumped. */
static int visit_qdisc(void *ctx, const struct nlmsghdr *m)
{
    struct qdisc_walk *w = ctx;
    if (m->nlmsg_type != RTM_NEWQDISC || m->nlmsg_len < NLMSG_LENGTH(sizeof(struct tcmsg)))
        return 0;
    const struct tcmsg *tc = pt_nl_body(m);
    if (tc->tcm_ifindex != w->ifindex || tc->tcm_parent != TC_H_ROOT)
        return 0;
    take_text(w->sum->kind, sizeof(w->sum->kind), pt_nl_find(m, sizeof(*tc), TCA_KIND, 1));
    take_qdisc(w->sum, m);
    return 0;
}

int pt_qdisc_read(struct pt_qdisc_stats *q, unsigned ifindex, struct pt_err *e)
{
    const struct tcmsg fixed = {.tcm_family = AF_UNSPEC, .tcm_ifindex = (int)ifindex};
    struct pt_nl_request r;
    struct qdisc_walk w = {.sum = q, .ifindex = (int)ifindex};
    *q = (struct pt_qdisc_stats){0};
    pt_nl_begin(&r, RTM_GETQDISC, NLM_F_DUMP, &fixed, sizeof(fixed));
    int code = pt_nl_ask(&r, visit_qdisc, &w);
    if (code < 0)
        return pt_fail(e, code, "queueing discipline of interface %u: %s", ifindex,
                       pt_strerror(code));
    return 0;
}
