/* xdp.h: an XDP program on one interface that takes the UDP packets of a port range, from anybody
 * or from some ports of one address.
 *
 * All other traffic (ARP, ND, TCP, other ports, fragments, VLAN tags, IPv6 extension headers) goes
 * on to the kernel's stack untouched. The program lives as long as a process holds its descriptors,
 * so a killed run leaves nothing behind. The supervisor attaches before it forks; each worker opens
 * an AF_XDP socket (xsk.h) and puts it in the map under the queue it is bound to.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_XDP_H
#define PT_OS_XDP_H

#include "base/err.h"
#include "base/types.h"

#include <linux/bpf.h>

enum pt_xdp_verdict {
    PT_XDP_REDIRECT, /* to the AF_XDP socket of the receive queue; to the stack where there is none
                      */
    PT_XDP_COUNT     /* count and drop: what the path below the socket can carry */
};

enum pt_xdp_mode {
    PT_XDP_AUTO,   /* the faster one: generic on veth with one queue, else native, else generic */
    PT_XDP_NATIVE, /* in the driver, before an skb is made; not every driver has it */
    PT_XDP_GENERIC /* in the stack, on any interface */
};

/* Packets from this address (16 bytes, network order, IPv4 in the first four), and of them those
 * from the UDP ports that pt_xdp_admit names. */
struct pt_xdp_sender {
    bool ipv6;
    uint8_t address[16];
};

struct pt_xdp_spec {
    unsigned ifindex;
    uint16_t port_first, port_last; /* UDP destination ports, host order, inclusive */
    enum pt_xdp_verdict verdict;
    unsigned queues; /* PT_XDP_REDIRECT: size of the socket map, at least 1 */
    enum pt_xdp_mode mode;
    const struct pt_xdp_sender *sender; /* nobody else's packets; NULL: anybody's */
};

struct pt_xdp {
    int map_fd, senders_fd, prog_fd, link_fd; /* -1 when closed */
    enum pt_xdp_verdict verdict;
    bool native; /* true: in the driver; false: generic, after the kernel has made an skb */
};

/* Loads and attaches. -EBUSY: the interface has a program already;
 * -EPERM: not root. On failure nothing is left open. */
int pt_xdp_attach(struct pt_xdp *x, const struct pt_xdp_spec *spec, struct pt_err *e) PT_MUST_USE;
/* Closes this process's descriptors; the last holder's close detaches. Safe to call twice. */
void pt_xdp_detach(struct pt_xdp *x);

/* PT_XDP_REDIRECT: packets of receive queue `queue` go to the AF_XDP socket `xsk_fd`, which must be
 * bound to that queue of this interface. */
int pt_xdp_join(struct pt_xdp *x, unsigned queue, int xsk_fd, struct pt_err *e) PT_MUST_USE;
/* With a `sender`: its packets from this UDP port (host order) are taken from now on. */
int pt_xdp_admit(struct pt_xdp *x, uint16_t port, struct pt_err *e) PT_MUST_USE;
/* PT_XDP_COUNT: packets and bytes (from the Ethernet header on) since the attach. */
int pt_xdp_counted(const struct pt_xdp *x, uint64_t *packets, uint64_t *bytes) PT_MUST_USE;

/* The program itself, for tests: writes at most PT_XDP_INSNS instructions, returns how many. */
#define PT_XDP_INSNS 96
size_t pt_xdp_program(struct bpf_insn out[PT_XDP_INSNS], const struct pt_xdp_spec *spec, int map_fd,
                      int senders_fd);

#endif
