/* link.h: what an interface is, and what its queueing discipline did to our packets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_LINK_H
#define PT_OS_LINK_H

#include "base/err.h"
#include "base/types.h"

struct pt_link {
    unsigned ifindex;
    unsigned arp_type; /* ARPHRD_ETHER, ARPHRD_LOOPBACK, … */
    unsigned mtu;      /* bytes above the Ethernet header */
    unsigned rx_queues, tx_queues;
    unsigned peer_ifindex; /* veth, macvlan, vlan: IFLA_LINK, else 0; may be in another namespace */
    bool up, loopback, ethernet;
    bool xdp; /* a program is attached */
    uint8_t mac[6];
    char name[16];
    char kind[16];       /* "veth", "bridge", "tun", …; empty for hardware and lo */
    char driver[32];     /* ETHTOOL_GDRVINFO, empty when there is none */
    uint32_t speed_mbit; /* 0: the driver does not say, or invents it (veth, tun) */
    uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes;
    uint64_t rx_dropped, tx_dropped, rx_errors, tx_errors; /* IFLA_STATS64 */
};

/* -ENODEV: no such interface. */
int pt_link_read(struct pt_link *l, unsigned ifindex, struct pt_err *e) PT_MUST_USE;

/* Whether the kernel handles many packets as one: on the way out in the driver (TSO) or just above
 * it (GSO), on the way in (GRO). */
struct pt_offloads {
    bool tso, gso, gro;
};

/* -ENODEV, -EOPNOTSUPP, … */
int pt_offloads_read(struct pt_offloads *o, const char *name) PT_MUST_USE;

struct pt_qdisc_stats {
    char kind[16]; /* of the root: "fq_codel", "mq", …; "noqueue" counts nothing */
    uint64_t packets, bytes, drops, overlimits, requeues;
    uint64_t backlog_bytes, backlog_packets;
};

/* What the root queueing discipline of the interface, children included, counted since it was made.
 * Packets that bypass it (AF_XDP, PACKET_QDISC_BYPASS) are in the interface's counters only. */
int pt_qdisc_read(struct pt_qdisc_stats *q, unsigned ifindex, struct pt_err *e) PT_MUST_USE;

#endif
