/* udp_door.h: one UDP port for many flows, each with a socket of its own.
 *
 * The door is an unconnected socket that tells to which local address a datagram came. A flow's
 * socket is bound to that address and port and connected to the peer, so the kernel gives it that
 * peer's datagrams and the door never sees them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_UDP_DOOR_H
#define PT_NET_UDP_DOOR_H

#include "net/addr.h"

/* Bound; a port in use is an error. The descriptor. */
int pt_udp_door_open(const struct pt_addr *at, struct pt_err *e) PT_MUST_USE;

/* The next datagram, without waiting: its length (longer ones than `cap` are cut, and tell `cap`),
 * where it came from and the address it was sent to. `at` is the door's. -EAGAIN: there is none;
 * another errno: one that ICMP brought. */
ssize_t pt_udp_door_hear(int door, const struct pt_addr *at, void *bytes, size_t cap,
                         struct pt_addr *peer, struct pt_addr *local) PT_MUST_USE;

/* Sends one from the address that was written to. What cannot be sent is lost. */
void pt_udp_door_say(int door, const struct pt_addr *local, const struct pt_addr *peer,
                     const void *bytes, size_t n);

/* A flow's socket, CLOEXEC, the caller's. Between bind and connect it is open to everybody: what
 * came then is dropped. */
int pt_udp_door_flow(const struct pt_addr *local, const struct pt_addr *peer) PT_MUST_USE;

#endif
