/* bw_udp.c: the datagrams of `pitot bw -u`: numbered, with the instant they were sent.
 *
 * As large as the path takes without fragmenting, unless --size asks for more. Where the kernel
 * offers segmentation offload a send carries as many as fit; the receiver coalesces. Each datagram
 * is counted by itself either way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload/bw.h"

#include "engine/shape.h"
#include "engine/sources.h"
#include "net/sock.h"
#include "net/udp.h"
#include "proto/dgram.h"
#include "proto/iperf3.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DATAGRAM_MAX 65507 /* bytes: the most over IPv4, and what --size allows */
#define SLOW_BITS    200e6 /* below this rate datagrams go out one by one: no lumps */

struct udp_flow {
    uint64_t number;
    size_t size, batch; /* bytes of a datagram; datagrams per send */
    uint8_t *bytes;
    struct pt_seq seq;
    struct pt_seq_books scrap; /* what came outside the window */
    int64_t transit;           /* of the previous datagram, ns; clocks need not agree */
    bool transit_known;
};

int pt_bw_udp_choose(struct pt_plan *plan, const struct pt_addr_list *to, json_t *chosen,
                     struct pt_err *e)
{
    const struct pt_bw_opts *o = plan->params;
    struct pt_common *c = &plan->common;
    struct pt_addr from;
    unsigned used = 0;
    enum pt_chan_kind chan = PT_CHAN_TCP;
    int rc = pt_shape_channel(plan, o->udp, &chan, e);
    if (rc < 0 || chan != PT_CHAN_UDP || c->size || pt_addr_family(&to->addr[0]) == AF_UNIX)
        return rc;
    rc = pt_sources_first(&from, c, to, e);
    if (rc < 0)
        return rc;
    int fd = pt_sock_connect_any(SOCK_DGRAM, to, &from, NULL, PT_NS_MAX, &used, e);
    if (fd < 0)
        return fd;
    int most = pt_udp_payload_max(fd), mtu = pt_udp_mtu(fd);
    close(fd);
    if (most < 0)
        return pt_fail(e, most, "path MTU: %s", pt_strerror(most));
    c->size = (uint64_t)(most < DATAGRAM_MAX ? most : DATAGRAM_MAX);
    char size[PT_UNITS_TEXT];
    snprintf(size, sizeof(size), "%llu B", (unsigned long long)c->size);
    pt_choice_add(chosen, "datagram", size, "the most that the path takes in one piece, MTU %d",
                  mtu);
    return 0;
}

int pt_bw_udp_init(struct pt_flow *f, struct pt_err *e)
{
    _Static_assert(sizeof(struct udp_flow) <= 2048, "bw.c flow_size");
    struct udp_flow *u = f->own;
    size_t asked = (size_t)f->w->job->spec.plan->common.size;
    int most = pt_udp_payload_max(f->fd);
    if (most < 0)
        return pt_fail(e, most, "path MTU: %s", pt_strerror(most));
    u->size = asked ? asked : (size_t)most;
    bool fragments = u->size > (size_t)most;
    int rc = pt_udp_fragment(f->fd, fragments);
    if (rc < 0)
        return pt_fail(e, rc, "path MTU discovery: %s", pt_strerror(rc));
    if (fragments && (f->dir & PT_DIR_TX))
        pt_worker_note(f->w, "datagrams of %zu B are fragmented: the path takes %d B in one piece",
                       u->size, most);
    if (f->dir & PT_DIR_RX)
        return f->w->shape->gro ? pt_udp_gro(f->fd, true) : 0;
    unsigned segments = fragments ? 0 : pt_udp_gso_segments();
    size_t whole = pt_udp_gso_bytes(segments, (unsigned)u->size);
    bool slow = f->w->shape->bits_per_s > 0 && f->w->shape->bits_per_s < SLOW_BITS;
    u->batch = slow || whole < 2 * u->size ? 1 : whole / u->size;
    u->bytes = pt_worker_alloc(f->w, u->batch * u->size);
    if (u->batch > 1)
        pt_worker_note(f->w, "datagrams of %zu B, %zu per send (segmentation offload)", u->size,
                       u->batch);
    return u->bytes ? 0 : pt_fail(e, -ENOMEM, "no memory for datagrams");
}

static void write_batch(struct udp_flow *u, enum pt_dgram_form form, size_t k, bool measured,
                        pt_ns now)
{
    for (size_t i = 0; i < k; i++) {
        uint8_t *at = u->bytes + i * u->size;
        if (form != PT_DGRAM_PITOT) { /* counted from 1 */
            pt_iperf3_dgram_write(at, now, u->number + i + 1, form == PT_DGRAM_IPERF3_64);
            continue;
        }
        pt_dgram_write(form, at, u->size, u->number + i, measured);
        if (u->size >= PT_BW_DGRAM)
            pt_put64(at + 8, (uint64_t)now);
    }
}

int pt_bw_udp_due(struct pt_flow *f, pt_ns due, unsigned n)
{
    struct udp_flow *u = f->own;
    bool measured = f->w->phase == PT_PHASE_MEASURE;
    unsigned done = 0;
    (void)due;
    while (done < n) {
        size_t k = n - done < u->batch ? n - done : u->batch;
        if (f->bytes_left != UINT64_MAX && k * u->size > f->bytes_left)
            k = f->bytes_left / u->size;
        size_t bytes = k * u->size;
        if (!k) { /* the last, shorter datagram of a counted transfer */
            if (!f->bytes_left)
                break;
            k = 1;
            bytes = (size_t)f->bytes_left;
        }
        write_batch(u, f->w->shape->dgram, k, measured, pt_loop_now(f->w->loop));
        ssize_t sent = k > 1 ? pt_udp_send_gso(f->fd, u->bytes, bytes, (unsigned)u->size,
                                               f->send_flags | MSG_NOSIGNAL)
                             : pt_flow_write(f, u->bytes, bytes);
        if (sent < 0)
            return done ? (int)done : (int)sent;
        u->number += k;
        done += (unsigned)k;
        pt_flow_sent(f, bytes, k);
        pt_flow_did(f, (unsigned)k);
        if (f->bytes_left != UINT64_MAX)
            f->bytes_left -= bytes;
    }
    return (int)done;
}

/* False: not a datagram of the test. A counter of 32 bits may come round. */
static bool see_iperf3(struct pt_flow *f, struct udp_flow *u, const uint8_t *at, size_t size,
                       int64_t *sent)
{
    bool wide = f->w->shape->dgram == PT_DGRAM_IPERF3_64;
    if (size < PT_IPERF3_DGRAM)
        return false;
    uint64_t number = pt_iperf3_dgram_read(at, wide, sent) - 1;
    if (wide ? number >> 63 : 0)
        return false;
    if (!wide)
        number = pt_seq_extend(&u->seq, number & 0xffffffffu, 32);
    pt_seq_see(&u->seq, number, &f->st->seq);
    return true;
}

void pt_bw_udp_data(struct pt_flow *f, const uint8_t *bytes, size_t n, size_t seg, pt_ns now)
{
    const enum pt_dgram_form form = f->w->shape->dgram;
    struct udp_flow *u = f->own;
    for (size_t at = 0; at < n; at += seg) {
        size_t size = n - at < seg ? n - at : seg;
        if (size < PT_DGRAM_HEADER) { /* the rest of a counted transfer: too short for a number */
            f->st->seq.unique++;
            continue;
        }
        int64_t sent = 0;
        if (form == PT_DGRAM_PITOT) {
            uint64_t head = pt_get64(bytes + at);
            bool measured = head >> 63;
            pt_seq_see(&u->seq, head & ~((uint64_t)1 << 63), measured ? &f->st->seq : &u->scrap);
            sent = size < PT_BW_DGRAM ? 0 : (int64_t)pt_get64(bytes + at + 8);
        } else if (!see_iperf3(f, u, bytes + at, size, &sent)) {
            continue;
        }
        f->st->seq_top = u->seq.next;
        if (size < PT_BW_DGRAM || f->w->moderated)
            continue;
        int64_t transit = now - sent;
        if (u->transit_known) {
            double d = (double)(transit - u->transit);
            f->st->jitter_ns += ((d < 0 ? -d : d) - f->st->jitter_ns) / 16;
        }
        u->transit = transit;
        u->transit_known = true;
    }
}
