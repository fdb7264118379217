/* udp.h: what UDP sockets can do beyond send and receive: offload, path MTU, timestamps.
 *
 * A datagram is never fragmented unless asked: every datagram socket should go through
 * pt_udp_fragment(fd, false) before it sends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_UDP_H
#define PT_NET_UDP_H

#include "base/types.h"

/* ---- segmentation offload: one system call, one pass through the stack, many datagrams */

/* Receive coalescing (UDP_GRO): recvmsg gives many datagrams in one buffer, and their size in a
 * control message. -ENOPROTOOPT: the kernel has none (before 5.0). */
int pt_udp_gro(int fd, bool on) PT_MUST_USE;
/* Every send is cut into datagrams of `seg` bytes (UDP_SEGMENT); 0 switches it off. -ENOPROTOOPT:
 * the kernel has none (before 4.18). */
int pt_udp_segment(int fd, unsigned seg) PT_MUST_USE;
/* How many segments one send may have: 128 (Linux 6.9 and later), 64, or 0 without offload. Found
 * by sending once over a loopback socket pair of its own, about 50 us. */
unsigned pt_udp_gso_segments(void);
/* The largest multiple of `seg` that one GSO send can carry: at most `segments` of them and at most
 * 65535 bytes less the headers; 0 when `seg` is 0. */
size_t pt_udp_gso_bytes(unsigned segments, unsigned seg);
/* One send of `len` bytes, cut into datagrams of `seg` bytes by a control message, for this call
 * only. Bytes sent or a negative errno (-EINVAL: too many segments, -EMSGSIZE: a segment is larger
 * than the path takes, -EIO: the interface cannot). */
ssize_t pt_udp_send_gso(int fd, const void *buf, size_t len, unsigned seg, int flags) PT_MUST_USE;
/* recv(2) for a GRO socket: bytes; `seg` becomes the datagram size within them (= the bytes when
 * the kernel coalesced nothing). */
ssize_t pt_udp_recv_gro(int fd, void *buf, size_t cap, unsigned *seg, int flags) PT_MUST_USE;

/* ---- path MTU */

/* false: sets DF and refuses what does not fit (IP_PMTUDISC_DO, -EMSGSIZE at send); true: the stack
 * fragments (IP_PMTUDISC_DONT). Does the right thing for IPv4, IPv6 and dual-stack sockets. */
int pt_udp_fragment(int fd, bool allow) PT_MUST_USE;
/* The MTU of the path of a connected socket, bytes at the IP layer. -ENOTCONN. */
int pt_udp_mtu(int fd) PT_MUST_USE;
/* The largest UDP payload that does not fragment there: MTU - 20 or 40 - 8, at most 65507 (IPv4) or
 * 65527 (IPv6). */
int pt_udp_payload_max(int fd) PT_MUST_USE;

/* ---- losses and timestamps */

/* Each recvmsg carries how many datagrams this socket has dropped (SO_RXQ_OVFL). */
int pt_udp_count_drops(int fd) PT_MUST_USE;
/* How many datagrams the kernel dropped at this socket since it was made, for any reason (the
 * socket's sk_drops, by SO_MEMINFO): needs no received datagram. */
int64_t pt_sock_drops(int fd) PT_MUST_USE;
/* Each recvmsg carries the instant at which the stack took the datagram (SO_TIMESTAMPNS,
 * CLOCK_REALTIME). */
int pt_udp_stamp_rx(int fd, bool on) PT_MUST_USE;
/* Software transmit timestamps (SO_TIMESTAMPING: SOFTWARE | TX_SOFTWARE | OPT_ID | OPT_TSONLY):
 * every send gets a number from 0 on, and its stamp arrives on the error queue. */
int pt_udp_stamp_tx(int fd) PT_MUST_USE;

struct pt_udp_stamp {
    uint32_t id;     /* the number of the send since pt_udp_stamp_tx */
    pt_ns kernel_ns; /* CLOCK_REALTIME at which it was handed to the interface */
};

/* Takes one stamp from the error queue. 1: `s` is filled; 0: the queue is empty; a negative errno:
 * an error that the network reported (-ECONNREFUSED, -EMSGSIZE, …) was in the queue instead. */
int pt_udp_stamp_take(int fd, struct pt_udp_stamp *s) PT_MUST_USE;

#endif
