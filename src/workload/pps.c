/* pps.c: packets per second: `pitot pps`.
 *
 * One operation is one small datagram, numbered per flow. `plain` hands the kernel one datagram per
 * call, so each passes the whole stack; `gso` hands it many in one call (segmentation offload). The
 * figure that counts is what the receiving application got; where the others went is in `path`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload/pps.h"

#include "engine/report.h"
#include "engine/shape.h"
#include "net/udp.h"
#include "proto/dgram.h"

#include <errno.h>
#include <string.h>

static enum pt_pps_path path(const struct pt_worker *w)
{
    return pt_pps_path(w->job->spec.plan);
}

size_t pt_pps_size(const struct pt_plan *p)
{
    return p->common.size ? (size_t)p->common.size : PT_PPS_SIZE;
}

/* What differs from path to path. */
static const struct {
    unsigned burst;              /* of one flow, before the next one's turn */
    const char *tx_via, *rx_via; /* what takes the place of UDP sockets */
} ways[] = {
    [PT_PPS_AUTO] = {.burst = 16},
    [PT_PPS_PLAIN] = {.burst = 16},
    [PT_PPS_GSO] = {.burst = 512},
    [PT_PPS_PACKET] = {.burst = 64, .tx_via = "AF_PACKET"},
    [PT_PPS_XDP] = {.burst = 64, .tx_via = "AF_XDP", .rx_via = "AF_XDP"},
};

static int shape(const struct pt_plan *p, struct pt_shape *s, struct pt_err *e)
{
    const struct pt_pps_opts *o = p->params;
    const struct pt_common *c = &p->common;
    size_t size = pt_pps_size(p);
    enum pt_chan_kind chan;
    int rc = pt_shape_channel(p, true, &chan, e);
    if (rc < 0)
        return rc;
    if (size > 65507)
        return pt_fail(e, -EINVAL, "--size: a datagram holds at most 65507 bytes");
    if (c->rate.bits)
        return pt_fail(e, -EINVAL,
                       "--rate of pps is in packets per second, e.g. 100k; "
                       "for bit/s use `pitot bw -u`");
    bool gso = o->path == PT_PPS_GSO, xdp = o->path == PT_PPS_XDP;
    if (xdp && c->connections > PT_PPS_XDP_FLOWS)
        return pt_fail(e, -EINVAL, "--path xdp takes at most %d connections", PT_PPS_XDP_FLOWS);
    bool coalesce = gso && !o->no_coalesce;
    *s = (struct pt_shape){
        .chan = PT_CHAN_UDP,
        .flows = c->connections,
        .forward = c->connections,
        .moderate = true,
        .sequenced = size >= PT_DGRAM_SHORT,
        .recv_size = coalesce      ? 65536
                     : size < 2048 ? 2048
                                   : 65536,
        .recv_batch = coalesce ? 8 : 32,
        .recv_kind = coalesce ? PT_RECV_DGRAM_META : PT_RECV_DGRAM,
        .gro = coalesce,
        /* Plain sockets have room for little more than one super-packet's datagrams. */
        .burst = gso && !coalesce ? 128 : ways[o->path].burst,
        .polls = xdp,
        .tx_via = ways[o->path].tx_via,
        .rx_via = ways[o->path].rx_via,
        .ops_per_s = c->rate.per_s,
        .op_bytes = size,
        .bits_per_s = c->rate.per_s * 8 * (double)size,
        .ops_per_flow = c->requests,
        .warmup = c->warmup,
        .duration = c->duration,
        .tail = 20 * PT_MS,
    };
    pt_shape_peer(p, s);
    return 0;
}

static int worker_init(struct pt_worker *w, struct pt_err *e)
{
    return path(w) == PT_PPS_XDP      ? pt_pps_xdp_init(w, e)
           : path(w) == PT_PPS_PACKET ? pt_pps_packet_init(w, e)
                                      : 0;
}

static void worker_fini(struct pt_worker *w)
{
    if (path(w) == PT_PPS_XDP)
        pt_pps_xdp_fini(w);
    else if (path(w) == PT_PPS_PACKET)
        pt_pps_packet_fini(w);
}

void pt_pps_fill(const struct pt_pps_flow *p, uint8_t *datagram)
{
    if (p->form == PT_DGRAM_SOCKPERF)
        pt_sockperf_write(datagram, &(struct pt_sockperf){.flags = PT_SOCKPERF_CLIENT,
                                                          .length = (uint32_t)p->size});
}

static int flow_init(struct pt_flow *f, struct pt_err *e)
{
    struct pt_pps_flow *p = f->own;
    p->size = pt_pps_size(f->w->job->spec.plan);
    p->batch = 1;
    p->form = f->w->shape->dgram;
    int most = pt_udp_payload_max(f->fd);
    bool fragments = most > 0 && p->size > (size_t)most;
    int rc = pt_udp_fragment(f->fd, fragments);
    if (rc < 0)
        return pt_fail(e, rc, "path MTU discovery: %s", pt_strerror(rc));
    if (fragments && (f->dir & PT_DIR_TX))
        pt_worker_note(f->w, "datagrams of %zu B are fragmented: the path takes %d B in one piece",
                       p->size, most);
    if ((f->dir & PT_DIR_RX) && f->w->shape->gro)
        return pt_udp_gro(f->fd, true);
    if (!(f->dir & PT_DIR_TX))
        return 0;
    if (path(f->w) == PT_PPS_PACKET || path(f->w) == PT_PPS_XDP)
        return pt_pps_frame_init(f, e);
    if (path(f->w) == PT_PPS_GSO) {
        unsigned segments = pt_udp_gso_segments();
        size_t whole = pt_udp_gso_bytes(segments, (unsigned)p->size);
        if (fragments || whole < 2 * p->size)
            return pt_fail(e, -EOPNOTSUPP,
                           "--path gso: no segmentation offload for datagrams of "
                           "%zu bytes here; try --path plain",
                           p->size);
        p->batch = whole / p->size;
        rc = pt_udp_segment(f->fd, (unsigned)p->size);
        if (rc < 0)
            return pt_fail(e, rc, "segmentation offload: %s", pt_strerror(rc));
        pt_worker_note(f->w, "%zu datagrams per send (segmentation offload)", p->batch);
    }
    p->bytes = pt_worker_alloc(f->w, p->batch * p->size);
    if (!p->bytes)
        return pt_fail(e, -ENOMEM, "no memory for datagrams");
    for (size_t i = 0; i < p->batch; i++)
        pt_pps_fill(p, p->bytes + i * p->size);
    return 0;
}

static int send_batches(struct pt_flow *f, struct pt_pps_flow *p, unsigned n, bool measured)
{
    unsigned done = 0;
    while (done < n) {
        unsigned k = n - done < p->batch ? n - done : (unsigned)p->batch;
        for (unsigned i = 0; i < k; i++)
            pt_dgram_write(p->form, p->bytes + i * p->size, p->size, p->number + i, measured);
        ssize_t sent = pt_flow_write(f, p->bytes, k * p->size);
        if (PT_UNLIKELY(sent < 0)) {
            f->w->st->tx_refused += sent == -ENOBUFS ? k : 0;
            return done ? (int)done : (int)sent;
        }
        p->number += k;
        done += k;
        pt_flow_sent(f, (uint64_t)sent, k);
    }
    return (int)done;
}

static int on_due(struct pt_flow *f, pt_ns due, unsigned n)
{
    (void)due;
    struct pt_pps_flow *p = f->own;
    struct pt_worker *w = f->w;
    bool measured = w->phase == PT_PHASE_MEASURE;
    int rc = path(w) == PT_PPS_XDP      ? pt_pps_xdp_send(f, n, measured)
             : path(w) == PT_PPS_PACKET ? pt_pps_packet_send(f, n, measured)
                                        : send_batches(f, p, n, measured);
    if (rc > 0)
        pt_flow_did(f, (unsigned)rc);
    return rc;
}

static void on_data(struct pt_flow *f, uint8_t *bytes, size_t n, const struct pt_recv_meta *meta,
                    pt_ns now)
{
    struct pt_pps_flow *p = f->own;
    size_t seg = meta && meta->seg ? meta->seg : n;
    struct pt_seq_books *inside = &f->st->seq;
    (void)now;
    if (PT_UNLIKELY(p->size < PT_DGRAM_HEADER)) {
        for (size_t at = 0; at + PT_DGRAM_SHORT <= n && p->size >= PT_DGRAM_SHORT; at += seg) {
            uint32_t head = pt_get32(bytes + at);
            pt_seq_see(&p->seq, pt_seq_extend(&p->seq, head & 0x7fffffffu, 31),
                       head >> 31 ? inside : &p->scrap);
        }
        return;
    }
    for (size_t at = 0; at + PT_DGRAM_HEADER <= n; at += seg) {
        uint64_t head = pt_get64(bytes + at);
        pt_seq_see(&p->seq, head & ~((uint64_t)1 << 63), head >> 63 ? inside : &p->scrap);
    }
}

static void report(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_pps_opts *o = rep->plan->params;
    pt_result_headline(r, "delivered", "rates.rx_packets_per_s", "packet/s");
    if (rep->shape->sequenced)
        pt_result_headline(r, "loss", "rates.loss_pct", "%");
    pt_result_headline(r, "sent", "rates.tx_packets_per_s", "packet/s");
    if (o->path == PT_PPS_GSO)
        pt_result_note(
            r, "gso: datagrams delivered to the application; on loopback and veth they travel "
               "as super-packets, so this is not packets on a wire (see path)");
    if (o->path == PT_PPS_XDP)
        pt_pps_xdp_report(rep, r);
    if (!rep->shape->sequenced)
        pt_result_note(
            r,
            "datagrams of less than %d bytes carry no number: losses are not known one by "
            "one, reordering and duplicates not at all",
            PT_DGRAM_SHORT);
}

static int check(const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_pps_opts *o = p->params;
    const struct pt_common *c = &p->common;
    if (c->peer[0] && (o->path == PT_PPS_XDP || o->no_coalesce))
        return pt_fail(e, -EINVAL,
                       "--path xdp and --no-coalesce are about both ends: a server of %s receives "
                       "in its own way",
                       c->peer);
    if (c->peer[0] && o->search.given)
        return pt_fail(e, -EINVAL, "--search looks for losses, which a server of %s does not tell",
                       c->peer);
    if (c->peer[0] && c->size && c->size < PT_SOCKPERF_HEADER)
        return pt_fail(e, -EINVAL, "--size: a message of %s has %d bytes at least", c->peer,
                       PT_SOCKPERF_HEADER);
    return pt_search_check(&o->search, p, e);
}

static const struct pt_search_limit *search(const struct pt_plan *p)
{
    return &((const struct pt_pps_opts *)p->params)->search;
}

static const char *const path_names[] = {"auto", "plain", "gso", "packet", "xdp", NULL};

static const struct pt_opt pps_opts[] = {
    {PT_OPT_FIELD(struct pt_pps_opts, path, PT_OPT_ENUM), .name = "path", .names = path_names,
     .fallback = "auto", .help = "how packets reach the wire", .group = "Packets",
     .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_pps_opts, no_coalesce, PT_OPT_BOOL), .name = "no-coalesce",
     .help = "gso: the receiver takes datagrams one by one (plain sockets)", .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_pps_opts, search, PT_OPT_CUSTOM), .name = "search", .metavar = "LIMIT",
     .kind = &pt_search_kind,
     .help = "find the highest rate within a loss limit, e.g. loss<=0.1% (RFC 2544)"},
    {0}};

static const struct pt_opt_default pps_defaults[] = {
    {"connections", "64", "UDP flows in all"},
    {"requests", .help = "packets per flow, instead of a duration"},
    {"via", .help = "channel: udp"},
    {"rate", .help = "open loop: packets per second in all (default: as fast as they go)"},
    {"size", .help = "payload bytes of a packet (default 14)"},
    {"timeout", .help = "the other end is lost when it is silent for longer"},
    {"peer", .help = "HOST is the stock server of another tool: sockperf"},
    {0}};

const struct pt_workload pt_pps = {
    .form =
        {.manual =
             {.command = "pps",
              .summary = "packets per second",
              .usage = "[HOST] [options]",
              .about =
                  "Sends small UDP datagrams as fast as the path takes them, or at --rate, over "
                  "many flows, and counts what the receiving application gets: lost, "
                  "reordered, duplicate and late ones by their numbers. The path table shows "
                  "where packets were lost and the counter that proves it.\n\n"
                  "plain: one datagram per system call, each passes the whole stack. gso: many "
                  "per call. packet: whole frames past the sending stack. xdp: past both "
                  "stacks.",
              .examples = "pitot pps 10.0.0.2\t64 flows, as fast as they go\n"
                          "pitot pps --search 'loss<=0.1%' 10.0.0.2\tthe rate without loss\n"
                          "pitot pps -r 100k -s 64 10.0.0.2\tat a rate"},
         .peers = (const char *const[]){"sockperf", NULL},
         .opts = pps_opts,
         .params_size = sizeof(struct pt_pps_opts),
         .defaults = pps_defaults,
         .without = (const char *const[]){"inflight", "cc", "mss", NULL},
         .check = check},
    .worker_size = sizeof(struct pt_pps_worker),
    .flow_size = sizeof(struct pt_pps_flow),
    .yield = "packets_per_s",
    .choose = pt_pps_choose,
    .search = search,
    .shape = shape,
    .reach = pt_pps_reach,
    .open = pt_pps_open,
    .close = pt_pps_close,
    .worker_init = worker_init,
    .worker_fini = worker_fini,
    .on_poll = pt_pps_xdp_poll,
    .flow_init = flow_init,
    .on_due = on_due,
    .on_data = on_data,
    .report = report,
};
