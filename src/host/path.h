/* path.h: where datagrams were lost on their way: the waterfall from send(2) to recv(2).
 *
 * Two figures are exact: what the sending application handed over and what the receiving one read.
 * Everything between is explained by counters of the kernels. Those of a socket are ours alone;
 * those of an interface, a queueing discipline, a CPU's backlog and the UDP layer include other
 * traffic of their host, so each explains at most what is still missing: losses are never negative,
 * never add up to more than what really is missing, and what no counter explains is booked between
 * the two interfaces. Evidence names the counters, whole, with what else they may contain.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_HOST_PATH_H
#define PT_HOST_PATH_H

#include "os/netstat.h"

#include <jansson.h>

enum pt_path_step {
    PT_PATH_APP_SENT,         /* handed to send(2) or the ring */
    PT_PATH_KERNEL_SENT,      /* accepted by it */
    PT_PATH_NIC_SENT,         /* past the queueing discipline and the interface */
    PT_PATH_NIC_RECEIVED,     /* taken in by the receiver's interface */
    PT_PATH_KERNEL_DELIVERED, /* put into the queue of the receiving socket */
    PT_PATH_APP_RECEIVED,     /* read */
    PT_PATH_STEPS
};

/* Datagrams and payload bytes; the differences are over the time in which they were counted. */
struct pt_path_sender {
    uint64_t attempted, attempted_bytes;
    uint64_t accepted, accepted_bytes; /* <= attempted */
    const struct pt_netstat *net;      /* difference; NULL: unknown */
    const char *dev;                   /* the interface; NULL: unknown */
    int64_t qdisc_drops;               /* of its root (os/link.h); -1: unknown */
    unsigned gso;    /* datagrams per GSO send: the counters see super-packets; 0, 1: none */
    const char *via; /* NULL: a UDP socket; "AF_PACKET", "AF_XDP": past UDP and IP */
};

struct pt_path_receiver {
    uint64_t received, received_bytes; /* each datagram once */
    int64_t unread;                    /* left in the sockets' queues at the end; -1: unknown */
    int64_t socket_drops;              /* sum over the sockets (pt_sock_drops); -1: unknown */
    const struct pt_netstat *net;
    const char *dev;
    bool gro;        /* the sockets take super-packets whole */
    const char *via; /* NULL: UDP sockets; "AF_XDP", "XDP": before IP and UDP */
};

struct pt_path_stage {
    int64_t packets;   /* datagrams that got so far */
    int64_t bytes;     /* their payload; between the ends computed with the mean size */
    int64_t lost_here; /* between the stage before and this one */
    char evidence[320];
};

struct pt_path {
    struct pt_path_stage stage[PT_PATH_STEPS];
};

/* `one_net`: both ends are in one network namespace (their counters are the same ones). */
void pt_path_build(struct pt_path *p, const struct pt_path_sender *s,
                   const struct pt_path_receiver *r, bool one_net);

/* "app_sent", … */
const char *pt_path_name(enum pt_path_step step);

/* The array `path` of the result document. A new reference; NULL: no memory. */
json_t *pt_path_json(const struct pt_path *p);

#endif
