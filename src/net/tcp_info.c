/* tcp_info.c: see tcp_info.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/tcp_info.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* struct tcp_info of include/uapi/linux/tcp.h, Linux 5.4 and later, without the prefix tcpi_. The
 * kernel fills as much as it has and says how much that was. */
struct kernel_tcp_info {
    uint8_t state, ca_state, retransmits, probes, backoff, options;
    uint8_t snd_rcv_wscale;                 /* two four-bit fields */
    uint8_t delivery_rate_app_limited_bits; /* bit 0; fast open failure above it */
    uint32_t rto, ato, snd_mss, rcv_mss;
    uint32_t unacked, sacked, lost, retrans, fackets;
    uint32_t last_data_sent, last_ack_sent, last_data_recv, last_ack_recv;
    uint32_t pmtu, rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, advmss, reordering;
    uint32_t rcv_rtt, rcv_space, total_retrans;
    uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
    uint32_t segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out;
    uint64_t delivery_rate, busy_time, rwnd_limited, sndbuf_limited;
    uint32_t delivered, delivered_ce;
    uint64_t bytes_sent, bytes_retrans;
    uint32_t dsack_dups, reord_seen, rcv_ooopack, snd_wnd;
};

_Static_assert(offsetof(struct kernel_tcp_info, rto) == 8, "as the kernel lays it out");
_Static_assert(offsetof(struct kernel_tcp_info, pacing_rate) == 104, "as the kernel lays it out");
_Static_assert(offsetof(struct kernel_tcp_info, delivery_rate) == 160, "as the kernel lays it out");
_Static_assert(offsetof(struct kernel_tcp_info, bytes_sent) == 200, "as the kernel lays it out");
_Static_assert(sizeof(struct kernel_tcp_info) == 232, "as the kernel lays it out");

int pt_tcp_info_read(struct pt_tcp_info *t, int fd)
{
    struct kernel_tcp_info k = {0};
    socklen_t len = sizeof(k);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &k, &len) != 0)
        return -errno;
    *t = (struct pt_tcp_info){
        .rtt_us = k.rtt,
        .rttvar_us = k.rttvar,
        .min_rtt_us = k.min_rtt == UINT32_MAX ? 0 : k.min_rtt,
        .rcv_rtt_us = k.rcv_rtt,
        .snd_cwnd = k.snd_cwnd,
        .snd_cwnd_bytes = (uint64_t)k.snd_cwnd * k.snd_mss,
        .snd_ssthresh = k.snd_ssthresh,
        .snd_mss = k.snd_mss,
        .rcv_mss = k.rcv_mss,
        .pmtu = k.pmtu,
        .advmss = k.advmss,
        .snd_wnd = k.snd_wnd,
        .rcv_space = k.rcv_space,
        .unacked = k.unacked,
        .sacked = k.sacked,
        .lost = k.lost,
        .retrans = k.retrans,
        .notsent_bytes = k.notsent_bytes,
        .reordering = k.reordering,
        .delivery_rate_Bps = k.delivery_rate,
        /* ~0 means that nobody set a limit. */
        .pacing_rate_Bps = k.pacing_rate == UINT64_MAX ? 0 : k.pacing_rate,
        .app_limited = k.delivery_rate_app_limited_bits & 1,
        .state = k.state,
        .ca_state = k.ca_state <= PT_TCP_CA_LOSS ? (enum pt_tcp_ca)k.ca_state : PT_TCP_CA_OPEN,
        .total_retrans = k.total_retrans,
        .bytes_retrans = k.bytes_retrans,
        .bytes_sent = k.bytes_sent,
        .bytes_acked = k.bytes_acked,
        .bytes_received = k.bytes_received,
        .segs_out = k.segs_out,
        .segs_in = k.segs_in,
        .data_segs_out = k.data_segs_out,
        .data_segs_in = k.data_segs_in,
        .dsack_dups = k.dsack_dups,
        .reord_seen = k.reord_seen,
        .delivered = k.delivered,
        .delivered_ce = k.delivered_ce,
        .busy_us = k.busy_time,
        .rwnd_limited_us = k.rwnd_limited,
        .sndbuf_limited_us = k.sndbuf_limited,
    };
    return 0;
}

/* Busy times are not quite monotonic: an interval that runs is rounded when read and again when it
 * ends. */
static uint64_t grown(uint64_t after, uint64_t before)
{
    return after > before ? after - before : 0;
}

void pt_tcp_info_sub(struct pt_tcp_info *out, const struct pt_tcp_info *after,
                     const struct pt_tcp_info *before)
{
    struct pt_tcp_info d = *after;
    /* 32-bit counters wrap; their differences do not. */
    d.total_retrans -= before->total_retrans;
    d.segs_out -= before->segs_out;
    d.segs_in -= before->segs_in;
    d.data_segs_out -= before->data_segs_out;
    d.data_segs_in -= before->data_segs_in;
    d.dsack_dups -= before->dsack_dups;
    d.reord_seen -= before->reord_seen;
    d.delivered -= before->delivered;
    d.delivered_ce -= before->delivered_ce;
    d.bytes_retrans -= before->bytes_retrans;
    d.bytes_sent -= before->bytes_sent;
    d.bytes_acked -= before->bytes_acked;
    d.bytes_received -= before->bytes_received;
    d.busy_us = grown(after->busy_us, before->busy_us);
    d.rwnd_limited_us = grown(after->rwnd_limited_us, before->rwnd_limited_us);
    d.sndbuf_limited_us = grown(after->sndbuf_limited_us, before->sndbuf_limited_us);
    *out = d;
}

const char *pt_tcp_limited_by(const struct pt_tcp_info *d, pt_ns elapsed, double *share)
{
    enum { RWND, SNDBUF, CWND, APPLICATION, REASONS };
    static const char *const name[REASONS] = {"receiver window", "send buffer", "congestion window",
                                              "application"};
    double total = (double)elapsed / PT_US, busy = (double)d->busy_us;
    if (total < busy)
        total = busy;
    double us[REASONS] = {
        [RWND] = (double)d->rwnd_limited_us, [SNDBUF] = (double)d->sndbuf_limited_us};
    double rest = busy - us[RWND] - us[SNDBUF];
    us[APPLICATION] = total - busy;
    us[d->app_limited ? APPLICATION : CWND] += rest > 0 ? rest : 0;
    int most = APPLICATION;
    for (int i = 0; i < REASONS; i++)
        if (us[i] > us[most])
            most = i;
    if (share)
        *share = total > 0 ? us[most] / total : 1;
    return name[most];
}

const char *pt_tcp_ca_name(enum pt_tcp_ca state)
{
    static const char *const name[] = {"open", "disorder", "cwr", "recovery", "loss"};
    return (unsigned)state < PT_COUNT(name) ? name[state] : "unknown";
}
