/* packet_tx.h: sends whole Ethernet frames through a packet socket, past the IP stack.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_PACKET_TX_H
#define PT_OS_PACKET_TX_H

#include "base/err.h"
#include "base/types.h"

struct pt_packet_tx_spec {
    unsigned ifindex;
    unsigned frames;      /* sent by one call at most; 1 .. 1024 */
    unsigned frame_bytes; /* the longest frame, 14 .. 65536 */
    bool
        qdisc_bypass; /* straight to the driver: faster, no queue in front, drops when it is full */
};

struct pt_packet_tx;

/* -EPERM: CAP_NET_RAW is missing. */
int pt_packet_tx_open(struct pt_packet_tx **out, const struct pt_packet_tx_spec *spec,
                      struct pt_err *e) PT_MUST_USE;
void pt_packet_tx_close(struct pt_packet_tx *p);
int pt_packet_tx_fd(const struct pt_packet_tx *p);

/* Frame `i` (0 .. frames-1), which is the caller's to write whenever no send is running; it keeps
 * its content, so headers are built once. */
uint8_t *pt_packet_tx_frame(struct pt_packet_tx *p, unsigned i);

/* Sends frames 0 .. n-1, `len` bytes each, and waits until the kernel has copied them. Returns how
 * many of them, from the first, were accepted (all, unless an error stopped it); or a negative
 * errno when not even the first was: -ENOBUFS, the interface dropped it; -EAGAIN, the socket buffer
 * is full; -EMSGSIZE, longer than the MTU allows; -ENETDOWN, -ENXIO. */
int pt_packet_tx_send(struct pt_packet_tx *p, unsigned n, uint32_t len) PT_MUST_USE;

#endif
