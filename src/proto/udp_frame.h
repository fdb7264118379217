/* udp_frame.h: Ethernet + IPv4 or IPv6 + UDP headers, built and read as bytes.
 *
 * For paths that go around the kernel's stack. A frame is built once and then only its payload is
 * patched, the checksum following incrementally (RFC 1624, equation 3).
 * Addresses are 16 bytes in network order, IPv4 in the first four; ports are in host order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_PROTO_UDP_FRAME_H
#define PT_PROTO_UDP_FRAME_H

#include "base/types.h"

#define PT_UDP_FRAME_HEADER4 42 /* 14 + 20 + 8 */
#define PT_UDP_FRAME_HEADER6 62 /* 14 + 40 + 8 */

struct pt_udp_frame_ends {
    bool ipv6;
    uint8_t source_mac[6], destination_mac[6];
    uint8_t source[16], destination[16];
    uint16_t source_port, destination_port;
    uint8_t ttl; /* hop limit; 0 means 64 */
    uint8_t tos; /* traffic class */
};

static inline size_t pt_udp_frame_header_len(bool ipv6)
{
    return ipv6 ? PT_UDP_FRAME_HEADER6 : PT_UDP_FRAME_HEADER4;
}

/* Writes the headers in front of a payload that is already in place at frame + header length, and
 * returns the length of the whole frame. IPv4 is sent with DF set and identification 0 (RFC 6864).
 * -EMSGSIZE: longer than `cap` or than UDP can say. */
ssize_t pt_udp_frame_build(uint8_t *frame, size_t cap, const struct pt_udp_frame_ends *ends,
                           size_t payload_len) PT_MUST_USE;

/* Replaces `n` bytes of the payload at `offset` and corrects the UDP checksum. `offset` and `n` are
 * even; `header_len` is the frame's own. */
void pt_udp_frame_patch(uint8_t *frame, size_t header_len, size_t offset, const void *bytes,
                        size_t n);
/* The same for the destination and source ports (host order). */
void pt_udp_frame_set_ports(uint8_t *frame, size_t header_len, uint16_t source,
                            uint16_t destination);

struct pt_udp_frame_view {
    struct pt_udp_frame_ends ends;
    const uint8_t *payload; /* inside the frame */
    size_t payload_len;
};

/* Reads a frame of `len` bytes (padding behind the datagram is left out). -EBADMSG: cut short or
 * lengths that contradict each other; -EPROTONOSUPPORT: whole, but not plain UDP over IPv4 or IPv6
 * (fragments, VLAN tags and IPv6 extension headers included). Does not look at checksums: packets
 * of a neighbouring kernel carry unfinished ones. */
int pt_udp_frame_parse(const uint8_t *frame, size_t len, struct pt_udp_frame_view *out) PT_MUST_USE;

/* Whether the IPv4 header's and the UDP checksum of a parsable frame are right. */
bool pt_udp_frame_checksum_ok(const uint8_t *frame, size_t len) PT_MUST_USE;

#endif
