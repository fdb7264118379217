/* pps_packet.c: `pitot pps --path packet`: frames through a packet socket; the receiver has
 * ordinary UDP sockets.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/packet_tx.h"
#include "workload/pps.h"

#include <errno.h>

#define FRAMES 64

int pt_pps_packet_init(struct pt_worker *w, struct pt_err *e)
{
    struct pt_pps_worker *own = w->own;
    const struct pt_pps_way *way = w->job->spec.path;
    if (!w->senders)
        return 0;
    const struct pt_packet_tx_spec spec = {
        .ifindex = way->link.ifindex,
        .frames = FRAMES,
        .frame_bytes = (unsigned)pt_pps_size(w->job->spec.plan) + 64, /* 62: the IPv6 headers */
        .qdisc_bypass = false,
    };
    pt_worker_note(w, "packet socket on %s, %u frames per send", way->link.name, FRAMES);
    return pt_packet_tx_open(&own->packet, &spec, e);
}

void pt_pps_packet_fini(struct pt_worker *w)
{
    struct pt_pps_worker *own = w->own;
    pt_packet_tx_close(own->packet);
}

int pt_pps_packet_send(struct pt_flow *f, unsigned n, bool measured)
{
    struct pt_pps_flow *p = f->own;
    struct pt_packet_tx *tx = ((struct pt_pps_worker *)f->w->own)->packet;
    if (n > FRAMES)
        n = FRAMES;
    for (unsigned i = 0; i < n; i++)
        pt_pps_frame_write(p, pt_packet_tx_frame(tx, i), p->number + i, measured);
    int sent = pt_packet_tx_send(tx, 0, n, (uint32_t)pt_pps_frame_len(p));
    if (PT_UNLIKELY(sent < 0)) {
        f->w->st->tx_refused += sent == -ENOBUFS;
        return sent == -EAGAIN ? 0 : sent;
    }
    p->number += (unsigned)sent;
    pt_flow_sent(f, (uint64_t)sent * p->size, (uint64_t)sent);
    return sent;
}
