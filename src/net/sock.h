/* sock.h: sockets, made with their options in the order the kernel needs them.
 *
 * All are CLOEXEC. Connected sockets and datagram sockets are handed over in blocking mode,
 * listeners in non-blocking mode: what ev/loop.h expects. Cold path only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_SOCK_H
#define PT_NET_SOCK_H

#include "net/addr.h"

/* Zeroed: the kernel's defaults, nothing is set. */
struct pt_sockopts {
    int tos;           /* 0-255: the whole TOS or traffic class byte, DSCP in its upper six bits */
    int mss;           /* TCP_MAXSEG, bytes */
    int sndbuf;        /* SO_SNDBUF, bytes as asked (the kernel doubles and clips) */
    int rcvbuf;        /* SO_RCVBUF; switches TCP's receive auto-tuning off */
    int notsent_lowat; /* TCP_NOTSENT_LOWAT, bytes */
    bool nodelay;      /* TCP_NODELAY */
    bool v6only;       /* listeners and unconnected datagram sockets on an IPv6 address */
    bool reuseport;    /* SO_REUSEPORT: several sockets share the address */
    char cc[16];       /* TCP_CONGESTION; empty: the system's */
};

/* Sets what was asked on a socket that is not connected and does not listen yet; options that do
 * not exist for the socket's kind (mss on UDP, tos on unix) are not touched. -ENOENT: no such
 * congestion control (the sentence lists those there are); -EPERM: it may not be used here. */
int pt_sockopts_apply(int fd, const struct pt_sockopts *o, struct pt_err *e) PT_MUST_USE;

/* What the kernel really uses. Buffers are as getsockopt says them: the kernel's own doubled
 * figure, which includes its bookkeeping. */
struct pt_sock_granted {
    int sndbuf, rcvbuf;
    int mss;        /* TCP: the current one; else 0 */
    int tos;        /* 0 for unix */
    char cc[16];    /* TCP only */
    char note[320]; /* what differs from what was asked, with the sysctl to raise; else empty */
};

int pt_sock_granted(struct pt_sock_granted *g, int fd, const struct pt_sockopts *asked) PT_MUST_USE;

/* Raises the receive buffer to `bytes` where it is smaller: past net.core.rmem_max with
 * CAP_NET_ADMIN, else as far as that goes. A wish: pt_sock_granted tells what came of it. */
void pt_sock_room(int fd, int bytes);

/* Holds TCP's receive window near `bytes` instead of letting it grow by itself. False, and nothing
 * is changed, when net.core.rmem_max is less and CAP_NET_ADMIN is not there. */
bool pt_sock_hold_window(int fd, int bytes);
/* Lets it grow by itself again, where the kernel can (Linux 5.15); `sndbuf`: that one was set, and
 * stays. */
void pt_sock_release_window(int fd, bool sndbuf);

/* The congestion controls this kernel has loaded, space separated, into `out`. */
int pt_sock_cc_available(char *out, size_t cap) PT_MUST_USE;
/* The one new sockets get (net.ipv4.tcp_congestion_control); "" when the kernel does not say. */
void pt_sock_cc_default(char out[16]);
/* The congestion control of a TCP socket into `out`. */
int pt_sock_cc_get(int fd, char out[16]) PT_MUST_USE;

/* A socket of `type` (SOCK_STREAM, SOCK_DGRAM) for the family of `to`, options set, bound to `from`
 * (NULL or length 0: not bound; port 0: address only, with IP_BIND_ADDRESS_NO_PORT so that the port
 * is chosen at connect time and one address serves as many ports per destination), not connected.
 * Returns the descriptor. */
int pt_sock_open(int type, const struct pt_addr *to, const struct pt_addr *from,
                 const struct pt_sockopts *o, struct pt_err *e) PT_MUST_USE;

/* pt_sock_open and connect(2), at most until `deadline` (CLOCK_MONOTONIC; PT_NS_MAX: as long as
 * the kernel tries). SOCK_STREAM and SOCK_DGRAM, IP and unix. Returns the descriptor. -ETIMEDOUT,
 * -ECONNREFUSED, …, -EINTR when a signal came. */
int pt_sock_connect(int type, const struct pt_addr *to, const struct pt_addr *from,
                    const struct pt_sockopts *o, pt_ns deadline, struct pt_err *e) PT_MUST_USE;

/* Tries the addresses of a list in order; `used` gets the index of the one that answered. The
 * sentence is the last address's. */
int pt_sock_connect_any(int type, const struct pt_addr_list *to, const struct pt_addr *from,
                        const struct pt_sockopts *o, pt_ns deadline, unsigned *used,
                        struct pt_err *e) PT_MUST_USE;

/* A stream listener, TCP or unix. On [::] it takes IPv4 too unless `v6only`. REUSEADDR is set. A
 * unix path that nobody serves any more is replaced. `backlog` 0: the system's maximum. `o` may be
 * NULL. */
int pt_sock_listen(const struct pt_addr *at, unsigned backlog, const struct pt_sockopts *o,
                   struct pt_err *e) PT_MUST_USE;

/* A datagram socket bound to `at`, not connected. `o` may be NULL. */
int pt_sock_bind(const struct pt_addr *at, const struct pt_sockopts *o,
                 struct pt_err *e) PT_MUST_USE;

/* Two connected unix sockets of `type` (SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET). */
int pt_sock_pair(int type, int fds[2]) PT_MUST_USE;

int pt_sock_set_nonblock(int fd, bool on) PT_MUST_USE;

#endif
