/* bw.c: bandwidth: `pitot bw`.
 *
 * One operation is one block handed to the socket (TCP, unix) or one datagram (UDP). The figure
 * that counts is what the receiver got, in the receiver's own window. With --bytes the transfer is
 * exact to the byte and its time runs from the start to the last byte's arrival.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload/bw.h"

#include "engine/report.h"
#include "engine/shape.h"
#include "net/sock.h"
#include "net/udp.h"
#include "proto/iperf3.h"

#include <stdio.h>
#include <string.h>

#define RECV_BLOCK ((size_t)1 << 20)

struct bw_worker {
    struct pt_bulk bulk;
    struct pt_bw_tuner tuner;
    struct pt_bw_window window;
    bool open;
};

static const struct pt_bw_opts *opts(const struct pt_worker *w)
{
    return w->job->spec.plan->params;
}

/* Paced streams go out in pieces of about a millisecond, so that there are no bursts. */
static size_t paced_block(const struct pt_common *c)
{
    double bytes = c->rate.per_s / 8 / (c->connections ? c->connections : 1) / 1000;
    return bytes < 1448 ? 1448 : bytes > 131072 ? 131072 : (size_t)bytes;
}

static int check_transfer(const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_bw_opts *o = p->params;
    const struct pt_common *c = &p->common;
    enum pt_chan_kind chan;
    int rc = pt_shape_channel(p, o->udp, &chan, e);
    if (rc < 0)
        return rc;
    bool udp = chan == PT_CHAN_UDP;
    if (o->reverse && o->bidir)
        return pt_fail(e, -EINVAL, "--reverse and --bidir exclude each other");
    if (udp && o->discard)
        return pt_fail(e, -EINVAL, "--discard is about TCP: it has no effect on UDP");
    if (udp && o->zerocopy != PT_BW_AUTO && o->zerocopy != PT_BW_OFF)
        return pt_fail(e, -EINVAL, "--zerocopy is about TCP; UDP uses segmentation offload");
    if (udp && c->size && (c->size < 16 || c->size > 65507))
        return pt_fail(e, -EINVAL, "--size of a UDP datagram: 16 to 65507 bytes");
    if (!udp && c->size > PT_BULK_BYTES)
        return pt_fail(e, -EINVAL, "--size: blocks of at most 4 MiB");
    if (o->bytes && (c->requests || pt_plan_given(p, "duration")))
        return pt_fail(e, -EINVAL,
                       "--bytes ends the transfer: leave --requests and --duration out");
    if (o->bytes && c->connections > o->bytes)
        return pt_fail(e, -EINVAL, "--bytes: fewer bytes than connections");
    if (o->search.given && (!o->udp || o->bidir || o->bytes))
        return pt_fail(e, -EINVAL,
                       "--search is about datagrams in one direction for a certain time: it goes "
                       "with --udp, not with --bidir or --bytes");
    return 0;
}

/* What --requests and --rate in operations count when no size is given. */
static size_t stream_block(const struct pt_common *c)
{
    return c->rate.per_s > 0 ? paced_block(c) : PT_BW_BLOCK;
}

/* What a stock server cannot be told. */
static int check_peer(const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_bw_opts *o = p->params;
    const struct pt_common *c = &p->common;
    bool udp = o->udp || !strcmp(c->via, "udp");
    if (!c->peer[0])
        return 0;
    if (o->discard && !o->reverse)
        return pt_fail(e, -EINVAL,
                       "--discard: a server of %s receives in its own way; with --reverse it is "
                       "this host that discards",
                       c->peer);
    if (c->connections > PT_IPERF3_STREAMS)
        return pt_fail(e, -EINVAL, "--connections: a server of %s takes %d at most", c->peer,
                       PT_IPERF3_STREAMS);
    if (udp && pt_plan_given(p, "warmup") && c->warmup)
        return pt_fail(e, -EINVAL,
                       "--warmup: a server of %s tells the losses of a UDP test as a whole, which "
                       "has none therefore; leave it out",
                       c->peer);
    return 0;
}

static int check(const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_bw_opts *o = p->params;
    int rc = check_transfer(p, e);
    rc = rc < 0 ? rc : check_peer(p, e);
    return rc < 0 ? rc : pt_search_check(&o->search, p, e);
}

static const struct pt_search_limit *search(const struct pt_plan *p)
{
    return &((const struct pt_bw_opts *)p->params)->search;
}

static int shape(const struct pt_plan *p, struct pt_shape *s, struct pt_err *e)
{
    const struct pt_bw_opts *o = p->params;
    const struct pt_common *c = &p->common;
    enum pt_chan_kind chan = PT_CHAN_TCP;
    int rc = check_transfer(p, e);
    if (rc == 0)
        rc = pt_shape_channel(p, o->udp, &chan, e);
    if (rc < 0)
        return rc;
    bool udp = chan == PT_CHAN_UDP;
    size_t block = c->size ? (size_t)c->size : udp ? 1472 : stream_block(c);
    double ops = c->rate.bits ? c->rate.per_s / 8 / (double)block : c->rate.per_s;
    *s = (struct pt_shape){
        .chan = chan,
        .flows = o->bidir ? 2 * c->connections : c->connections,
        .forward = o->reverse ? 0 : c->connections,
        .moderate = ops <= 0, /* jitter is told at a rate only */
        .joins = !udp && !o->bidir && ops <= 0,
        .sequenced = udp,
        .recv_size = udp ? 65536 : RECV_BLOCK,
        .unread = !udp,
        .recv_batch = udp ? 1 : 4,
        .recv_kind = udp          ? PT_RECV_DGRAM_META
                     : o->discard ? PT_RECV_DISCARD
                                  : PT_RECV_STREAM,
        .gro = udp,
        .burst = udp ? 64 : 1,
        .ops_per_s = ops,
        .bits_per_s = ops * 8 * (double)block,
        .bytes = o->bytes      ? o->bytes
                 : c->requests ? c->requests * block * c->connections
                               : 0,
        .warmup = c->warmup,
        .duration = c->duration,
        .tail = 20 * PT_MS,
    };
    if (s->bytes)
        s->warmup = 0;
    pt_shape_peer(p, s);
    return 0;
}

static int worker_init(struct pt_worker *w, struct pt_err *e)
{
    struct bw_worker *b = w->own;
    const struct pt_common *c = &w->job->spec.plan->common;
    if (w->shape->chan == PT_CHAN_UDP || !w->senders)
        return 0;
    int rc = pt_bulk_open(&b->bulk, e);
    if (rc < 0)
        return rc;
    b->open = true;
    b->bulk.reuse = w->job->spec.same_machine;
    size_t fixed = c->size ? (size_t)c->size : w->paced ? paced_block(c) : 0;
    if (c->requests && !fixed)
        fixed = PT_BW_BLOCK;
    pt_bw_tune_init(&b->tuner, opts(w), fixed, w->job->spec.beside >= 0,
                    w->paced ? 0 : w->shape->warmup);
    char text[PT_WORKER_NOTE];
    pt_bw_tune_text(&b->tuner, text, sizeof(text));
    pt_worker_note(w, "%s", text);
    return 0;
}

static void worker_fini(struct pt_worker *w)
{
    struct bw_worker *b = w->own;
    if (b->open)
        pt_bulk_close(&b->bulk);
}

/* This flow's share of a counted transfer; shares differ by a byte at most. */
static uint64_t share(const struct pt_shape *s, uint32_t flow)
{
    uint32_t n = flow < s->forward ? s->forward : s->flows - s->forward;
    uint32_t i = flow < s->forward ? flow : flow - s->forward;
    return s->bytes / n + (i < s->bytes % n);
}

static int flow_init(struct pt_flow *f, struct pt_err *e)
{
    const struct pt_shape *s = f->w->shape;
    struct bw_worker *b = f->w->own;
    if (s->bytes && (f->dir & PT_DIR_TX))
        f->bytes_left = share(s, f->id);
    f->left = UINT64_MAX;
    if (f->w->shape->chan == PT_CHAN_UDP)
        return pt_bw_udp_init(f, e);
    pt_bw_window_hold(&b->window, f);
    if (opts(f->w)->zerocopy == PT_BW_MSG_ZEROCOPY && (f->dir & PT_DIR_TX)) {
        int rc = pt_bulk_allow_zerocopy(f->fd);
        if (rc < 0)
            return pt_fail(e, rc, "--zerocopy msg_zerocopy: %s", pt_strerror(rc));
    }
    return 0;
}

static void tune(struct pt_worker *w, pt_ns now, uint64_t sent)
{
    struct bw_worker *b = w->own;
    bool beside = b->tuner.beside;
    if (pt_bw_tune(&b->tuner, now, sent)) {
        char text[PT_WORKER_NOTE];
        pt_bw_tune_text(&b->tuner, text, sizeof(text));
        pt_worker_note(w, "%s", text);
    }
    if (b->tuner.beside != beside)
        pt_worker_join(w, b->tuner.beside);
}

static int on_due(struct pt_flow *f, pt_ns due, unsigned n)
{
    struct bw_worker *b = f->w->own;
    if (f->w->shape->chan == PT_CHAN_UDP)
        return pt_bw_udp_due(f, due, n);
    unsigned done = 0;
    for (; done < n; done++) {
        size_t block = b->tuner.block < f->bytes_left ? b->tuner.block : (size_t)f->bytes_left;
        ssize_t sent = pt_bulk_send(&b->bulk, b->tuner.how, f->fd, block, f->send_flags);
        if (sent < 0)
            return done ? (int)done : (int)sent;
        pt_flow_sent(f, (uint64_t)sent, 0);
        pt_flow_did(f, 1);
        if (f->bytes_left != UINT64_MAX)
            f->bytes_left -= (uint64_t)sent;
        if (PT_UNLIKELY(!b->tuner.settled))
            tune(f->w, due, (uint64_t)sent);
        if (!f->bytes_left)
            return (int)done + 1;
    }
    return (int)done;
}

static void on_data(struct pt_flow *f, uint8_t *bytes, size_t n, const struct pt_recv_meta *meta,
                    pt_ns now)
{
    if (f->w->shape->chan == PT_CHAN_UDP && n)
        pt_bw_udp_data(f, bytes, n, meta && meta->seg ? meta->seg : n, now);
}

static void on_tick(struct pt_flow *f, pt_ns now)
{
    struct bw_worker *b = f->w->own;
    pt_bw_window_judge(&b->window, f->w, now);
}

/* ---- report */

static const struct pt_half_flow *first_sender(const struct pt_half *h)
{
    for (uint32_t i = 0; h && i < h->flow_count; i++)
        if (h->flows[i].sends && h->flows[i].tcp_valid)
            return &h->flows[i];
    return NULL;
}

static void report(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_bw_opts *o = rep->plan->params;
    pt_result_headline(r, o->bidir ? "received forward" : "received",
                       o->bidir ? "directions.0.rates.rx_bits_per_s" : "rates.rx_bits_per_s",
                       "bit/s");
    if (o->bidir)
        pt_result_headline(r, "received reverse", "directions.1.rates.rx_bits_per_s", "bit/s");
    if (rep->shape->chan == PT_CHAN_UDP)
        pt_result_headline(r, "loss", "rates.loss_pct", "%");
    if (o->discard)
        pt_result_note(
            r, "--discard: the receiver dropped the bytes in the kernel without copying them; "
               "compare with other --discard runs only");
    const struct pt_half *sender = pt_report_sender(rep, o->reverse);
    const struct pt_half_flow *f = first_sender(sender);
    if (f && f->limited_by)
        pt_result_str(r, "sender_limited_by", f->limited_by);
}

static const char *const zerocopy_names[] = {"auto",   "off",          "sendfile",
                                             "splice", "msg_zerocopy", NULL};

static const struct pt_opt bw_opts[] = {
    {PT_OPT_FIELD(struct pt_bw_opts, udp, PT_OPT_BOOL), .name = "udp", .letter = 'u',
     .help = "UDP instead of TCP; losses and jitter are counted", .group = "Bandwidth",
     .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_bw_opts, reverse, PT_OPT_BOOL), .name = "reverse", .letter = 'R',
     .help = "HOST sends, this host receives", .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_bw_opts, bidir, PT_OPT_BOOL), .name = "bidir",
     .help = "both directions at once, -c connections each", .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_bw_opts, bytes, PT_OPT_SIZE), .name = "bytes", .metavar = "N",
     .help = "transfer exactly N bytes in each direction, instead of a duration",
     .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_bw_opts, discard, PT_OPT_BOOL), .name = "discard",
     .help = "the receiver drops bytes in the kernel, without copying them", .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_bw_opts, zerocopy, PT_OPT_ENUM), .name = "zerocopy",
     .names = zerocopy_names, .fallback = "auto",
     .help = "how blocks are handed to the kernel: off is write(2); auto measures during the "
             "warm-up",
     .flags = PT_OPT_PEER},
    {PT_OPT_FIELD(struct pt_bw_opts, search, PT_OPT_CUSTOM), .name = "search", .metavar = "LIMIT",
     .kind = &pt_search_kind,
     .help = "UDP: find the highest rate within a loss limit, e.g. loss<=0.1% (RFC 2544)"},
    {0}};

static const struct pt_opt_default bw_defaults[] = {
    {"connections", .help = "TCP connections or UDP flows in all"},
    {"requests", .help = "blocks or datagrams per connection, instead of a duration"},
    {"rate", .help = "payload bits per second in all, such as 10gbit, sent without bursts; without "
                     "a unit blocks per second (default: as fast as it goes)"},
    {"size", .help = "bytes of a block, or of a UDP datagram (default: the best block is found by "
                     "measurement, datagrams as large as the path takes whole)"},
    {"timeout", .help = "the other end is lost when it is silent for longer"},
    {"peer", .help = "HOST is the stock server of another tool: iperf3"},
    {0}};

const struct pt_workload pt_bw = {
    .form = {.manual =
                 {.command = "bw",
                  .summary = "bandwidth, TCP or UDP",
                  .usage = "[HOST] [options]",
                  .about =
                      "Measures how many payload bits per second the receiver gets. Without HOST "
                      "pitot measures this machine: it starts its own `serve` on the loopback.\n\n"
                      "The block size and the way of sending are found by measurement during "
                      "the warm-up and shown. The receiver copies every byte to user space, as "
                      "an application would, unless --discard is given.",
                  .examples = "pitot bw 10.0.0.2\tone TCP connection, 10 s\n"
                              "pitot bw -c 8 --bidir 10.0.0.2\teight each way\n"
                              "pitot bw -u -r 500mbit 10.0.0.2\tUDP at a rate\n"
                              "pitot bw --bytes 10GiB 10.0.0.2\ta transfer of exactly 10 GiB"},
             .peers = (const char *const[]){"iperf3", NULL},
             .opts = bw_opts,
             .params_size = sizeof(struct pt_bw_opts),
             .defaults = bw_defaults,
             .without = (const char *const[]){"inflight", NULL},
             .check = check},
    .worker_size = sizeof(struct bw_worker),
    .flow_size = 2048,
    .yield = "bits_per_s",
    .choose = pt_bw_udp_choose,
    .search = search,
    .shape = shape,
    .worker_init = worker_init,
    .worker_fini = worker_fini,
    .flow_init = flow_init,
    .on_due = on_due,
    .on_data = on_data,
    .on_tick = on_tick,
    .report = report,
};
