/* tcp_info.h: what the kernel knows about one TCP connection.
 *
 * The kernel's structure is laid out in tcp_info.c rather than taken from a header: <linux/tcp.h>
 * and <netinet/tcp.h> cannot be included together, glibc's ends before the fields needed here, and
 * the layout is ABI. Every field used exists since Linux 4.19.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_TCP_INFO_H
#define PT_NET_TCP_INFO_H

#include "base/types.h"

enum pt_tcp_ca {
    PT_TCP_CA_OPEN,
    PT_TCP_CA_DISORDER,
    PT_TCP_CA_CWR,
    PT_TCP_CA_RECOVERY,
    PT_TCP_CA_LOSS
};

struct pt_tcp_info {
    /* gauges: the state now */
    uint32_t rtt_us, rttvar_us; /* smoothed RTT and its mean deviation, of the sending direction */
    uint32_t min_rtt_us;        /* windowed minimum; 0: no sample yet (the kernel says ~0) */
    uint32_t rcv_rtt_us;        /* receiver side estimate; 0: none */
    uint32_t snd_cwnd;          /* segments */
    uint64_t snd_cwnd_bytes;    /* snd_cwnd * snd_mss */
    uint32_t snd_ssthresh;      /* segments; 0x7fffffff: slow start has not ended */
    uint32_t snd_mss, rcv_mss, pmtu, advmss; /* bytes */
    uint32_t snd_wnd;   /* the peer's advertised window, bytes; 0 before Linux 5.4 */
    uint32_t rcv_space; /* receive auto-tuning's window, bytes */
    uint32_t unacked, sacked, lost, retrans; /* segments in flight, and of them */
    uint32_t notsent_bytes;                  /* written, never sent */
    uint32_t reordering;                     /* segments the sender tolerates out of order */
    uint64_t delivery_rate_Bps;              /* newest sample, bytes per second */
    uint64_t pacing_rate_Bps;                /* 0: not paced */
    bool app_limited; /* the sample was limited by the application, not by the network */
    uint8_t state;    /* TCP_ESTABLISHED = 1, … */
    enum pt_tcp_ca ca_state;
    /* counters since the connection began */
    uint32_t total_retrans;                                          /* segments */
    uint64_t bytes_retrans, bytes_sent, bytes_acked, bytes_received; /* payload */
    uint32_t segs_out, segs_in, data_segs_out, data_segs_in;
    uint32_t dsack_dups; /* retransmits that were not needed */
    uint32_t reord_seen;
    uint32_t delivered, delivered_ce; /* segments; with an ECN mark */
    uint64_t busy_us;                 /* data was outstanding or waiting; includes the next two */
    uint64_t rwnd_limited_us, sndbuf_limited_us;
};

/* One getsockopt. -ENOPROTOOPT, -EOPNOTSUPP: not TCP. */
int pt_tcp_info_read(struct pt_tcp_info *t, int fd) PT_MUST_USE;

/* Counters of `after` minus those of `before`, gauges of `after`. */
void pt_tcp_info_sub(struct pt_tcp_info *out, const struct pt_tcp_info *after,
                     const struct pt_tcp_info *before);

/* What held the sender back for the largest share of `elapsed` (`d`: a difference over it):
 * "receiver window", "send buffer", "congestion window" or "application". The kernel splits the
 * busy time into rwnd limited, sndbuf limited and the rest, in which data was in flight and only
 * the congestion window (or pacing) kept more back, unless the delivery samples are marked
 * application limited (net/ipv4/tcp.c, tcp_get_info_chrono_stats; include/linux/tcp.h,
 * TCP_CHRONO_*). Idle time is the application's. `share`, may be NULL: 0..1, of `elapsed`. */
const char *pt_tcp_limited_by(const struct pt_tcp_info *d, pt_ns elapsed, double *share);

const char *pt_tcp_ca_name(enum pt_tcp_ca state);

#endif
