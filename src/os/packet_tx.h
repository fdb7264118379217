/* packet_tx.h: sends whole Ethernet frames through a packet socket, past the IP stack.
 *
 * By sendmmsg rather than a PACKET_TX_RING: over veth into an ordinary UDP socket it delivers as
 * much or more (0.36 to 0.40 against 0.30 to 0.37 Mpps), needs no ring to be watched, and says
 * which frame failed. Bound without a protocol: the socket receives nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_PACKET_TX_H
#define PT_OS_PACKET_TX_H

#include "base/err.h"
#include "base/types.h"

struct pt_packet_tx_spec {
    unsigned ifindex;
    unsigned frames;      /* sent by one call at most: 1 .. 1024 */
    unsigned frame_bytes; /* the longest frame: 14 .. 65536 */
    bool qdisc_bypass; /* to the driver directly; a full driver drops instead of holding us back */
};

struct pt_packet_tx; /* one worker's; heap, with its frames */

/* -EPERM: CAP_NET_RAW is missing. */
int pt_packet_tx_open(struct pt_packet_tx **out, const struct pt_packet_tx_spec *spec,
                      struct pt_err *e) PT_MUST_USE;
/* NULL is allowed. */
void pt_packet_tx_close(struct pt_packet_tx *p);

/* Frame `i` (0 .. frames-1). The caller's to write between sends; keeps its content, so headers are
 * built once. */
uint8_t *pt_packet_tx_frame(struct pt_packet_tx *p, unsigned i);

/* Sends frames first .. first+n-1, `len` bytes each, waiting for room in the socket buffer. Returns
 * how many were accepted, at least one, counted from `first`: fewer than `n` when the next one
 * failed, and sending it again tells why. Or a negative errno: -ENOBUFS, dropped by the queue or
 * the driver (skip it, it is lost); -EMSGSIZE, longer than the MTU allows; -EINTR; -ENETDOWN,
 * -ENXIO. */
int pt_packet_tx_send(struct pt_packet_tx *p, unsigned first, unsigned n, uint32_t len) PT_MUST_USE;

#endif
