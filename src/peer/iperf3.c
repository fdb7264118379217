/* iperf3.c: a stock `iperf3 -s` (3.1 to 3.21) at the other end of `pitot bw --peer iperf3`.
 *
 * What the server says of a test is one set of totals at its end. So:
 * - TCP that we send: the window's bytes are those that its kernel acknowledged (TCP_INFO), and the
 *   server's total is held against what we sent. It stops reading at once when it hears of the end,
 *   so we say so only when all is acknowledged and it has had a moment to read.
 * - TCP that it sends: our own count, in our window.
 * - UDP: its totals are those of the whole test; there is no warm-up, and every datagram counts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "peer/list.h"

#include "base/rng.h"
#include "engine/channel.h"
#include "engine/sources.h"
#include "net/exact.h"
#include "net/iperf3_control.h"
#include "net/tcp_info.h"
#include "os/clock.h"
#include "os/signal.h"
#include "proto/iperf3.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define VERSION   "3.12"       /* whose parameters we speak */
#define DRAIN_NS  (5 * PT_S)   /* for what has been sent to be acknowledged */
#define READ_NS   (50 * PT_MS) /* for the server to read what has been acknowledged */
#define ANSWER_NS (30 * PT_S)  /* of a UDP stream: as iperf3 itself waits */

struct own {
    struct pt_iperf3_control control;
    char cookie[PT_IPERF3_COOKIE];
    struct pt_iperf3_params params;
    int *flows; /* copies, to see what is not acknowledged yet */
    uint32_t flow_count;
    bool started, ended, displayed; /* we have said TEST_END; it has said DISPLAY_RESULTS */
    bool drained;
    pt_ns start_ns, sent_ns; /* of the test; when all was acknowledged */
    struct pt_iperf3_results results;
    bool have_results;
};

/* ---- before the start */

static int reach(struct pt_far *f, pt_ns deadline, struct pt_err *e)
{
    const struct pt_run_spec *s = f->spec;
    struct own *o = calloc(1, sizeof(*o));
    struct pt_sockopts nodelay = {.nodelay = true};
    struct pt_addr from;
    struct pt_tcp_info t;
    char text[PT_ADDR_TEXT];
    uint8_t random[PT_IPERF3_COOKIE - 1];
    unsigned used = 0;
    if (!o)
        return pt_fail(e, -ENOMEM, "no memory");
    f->own = o;
    o->control.fd = -1;
    int rc = pt_sources_first(&from, &f->plan->common, s->to, e);
    if (rc < 0)
        return rc;
    o->control.fd = pt_sock_connect_any(SOCK_STREAM, s->to, &from, &nodelay, deadline, &used, e);
    if (o->control.fd < 0)
        return o->control.fd;
    f->fd = o->control.fd;
    f->at = s->to->addr[used];
    snprintf(f->name, sizeof(f->name), "iperf3 server at %s", pt_addr_print(&f->at, text));
    snprintf(o->control.name, sizeof(o->control.name), "%s", f->name);
    rc = pt_random_bytes(random, sizeof(random));
    if (rc < 0)
        return pt_fail(e, rc, "random numbers: %s", pt_strerror(rc));
    pt_iperf3_cookie(o->cookie, random);
    f->identity = json_pack("{s:s, s:s}", "software", "iperf3", "address", text);
    if (pt_tcp_info_read(&t, o->control.fd) == 0)
        f->rtt_ns = (pt_ns)t.rtt_us * PT_US;
    rc = pt_exact_write(o->control.fd, o->cookie, sizeof(o->cookie), deadline);
    return rc < 0 ? pt_iperf3_lost(&o->control, rc, e)
                  : pt_iperf3_expect(&o->control, PT_IPERF3_PARAM_EXCHANGE, deadline, e);
}

/* About a millisecond's worth: its senders wait between whole blocks. */
static uint64_t paced_block(double bits_per_s)
{
    double bytes = bits_per_s / 8 / 1000;
    return bytes < 1448 ? 1448 : bytes > 131072 ? 131072 : (uint64_t)bytes;
}

static void fill_params(struct pt_far *f)
{
    struct own *o = f->own;
    const struct pt_shape *s = f->shape;
    const struct pt_common *c = &f->plan->common;
    bool both = s->forward && s->forward < s->flows, udp = s->chan == PT_CHAN_UDP;
    double each = s->bits_per_s / (both ? s->flows / 2 : s->flows);
    pt_ns whole = s->bytes ? 0 : s->warmup + s->duration;
    o->params = (struct pt_iperf3_params){
        .udp = udp,
        .reverse = !s->forward,
        .bidir = both,
        .counters64 = udp,
        .time_s = (uint32_t)((whole + PT_S - 1) / PT_S),
        .omit_s = s->warmup % PT_S ? 0 : (uint32_t)(s->warmup / PT_S),
        .bytes = s->bytes,
        .parallel = both ? s->flows / 2 : s->flows,
        .len = (uint32_t)(c->size    ? c->size
                          : udp      ? 1460
                          : each > 0 ? paced_block(each)
                                     : 128 << 10),
        .mss = c->mss,
        .tos = c->tos,
        .bits_per_s = each > 0 ? (uint64_t)each : 0,
    };
    if (o->params.omit_s)
        o->params.time_s -= o->params.omit_s;
    snprintf(o->params.congestion, sizeof(o->params.congestion), "%.15s", c->cc);
    snprintf(o->params.version, sizeof(o->params.version), VERSION);
}

static int propose(struct pt_far *f, pt_ns deadline, struct pt_err *e)
{
    struct own *o = f->own;
    fill_params(f);
    int rc = pt_iperf3_send_json(&o->control, pt_iperf3_params_json(&o->params), deadline, e);
    return rc < 0 ? rc : pt_iperf3_expect(&o->control, PT_IPERF3_CREATE_STREAMS, deadline, e);
}

/* A duplicate of the request could be taken for another stream, so it is not repeated; as iperf3
 * does it. Datagrams of a test that the other end sends may come before the answer. */
static int open_datagrams(struct pt_far *f, int fd, pt_ns deadline, struct pt_err *e)
{
    struct own *o = f->own;
    uint8_t answer[64];
    pt_ns most = pt_clock_now() + ANSWER_NS;
    int rc = pt_exact_write(fd, pt_iperf3_udp_hello, sizeof(pt_iperf3_udp_hello), deadline);
    deadline = deadline < most ? deadline : most;
    while (rc == 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        pt_ns left = deadline - pt_clock_now();
        struct timespec ts = {.tv_sec = left > 0 ? left / PT_S : 0,
                              .tv_nsec = left > 0 ? left % PT_S : 0};
        int n = ppoll(&p, 1, &ts, NULL);
        if (n == 0)
            return pt_fail(e, -ETIMEDOUT,
                           "the %s does not answer a UDP stream: is UDP let through?", f->name);
        ssize_t got = n < 0 ? -1 : recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
        if (got >= 0 && pt_iperf3_is_udp_reply(answer, (size_t)got))
            return 0;
        if (got < 0 && errno != EAGAIN)
            rc = -errno;
    }
    return pt_iperf3_lost(&o->control, rc, e);
}

static int dial(struct pt_far *f, struct pt_dial *d, pt_ns deadline, struct pt_err *e)
{
    struct own *o = f->own;
    struct pt_sockopts options;
    bool udp = f->shape->chan == PT_CHAN_UDP;
    pt_channel_options(&options, &f->plan->common, f->shape);
    o->flows = calloc(f->shape->flows, sizeof(*o->flows));
    if (!o->flows)
        return pt_fail(e, -ENOMEM, "no memory for %u flows", f->shape->flows);
    for (uint32_t i = 0; i < f->shape->flows; i++) {
        int fd = pt_sock_connect(udp ? SOCK_DGRAM : SOCK_STREAM, &f->at,
                                 d[i].from.len ? &d[i].from : NULL, &options, deadline, e);
        if (fd < 0)
            return fd;
        d[i].fd = fd;
        int rc = udp ? open_datagrams(f, fd, deadline, e)
                     : pt_exact_write(fd, o->cookie, sizeof(o->cookie), deadline);
        if (rc < 0)
            return udp ? rc : pt_iperf3_lost(&o->control, rc, e);
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (copy < 0)
            return pt_fail(e, -errno, "one more descriptor per flow: %s", pt_strerror(-errno));
        o->flows[o->flow_count++] = copy;
    }
    return 0;
}

/* It starts as soon as the last stream is there. */
static int start(struct pt_far *f, pt_ns lead, pt_ns deadline, struct pt_err *e)
{
    struct own *o = f->own;
    (void)lead;
    int rc = pt_iperf3_expect(&o->control, PT_IPERF3_TEST_START, deadline, e);
    if (rc == 0)
        rc = pt_iperf3_expect(&o->control, PT_IPERF3_TEST_RUNNING, deadline, e);
    o->started = rc == 0;
    return rc;
}

/* ---- while it runs, and its end */

static bool listen_to(struct pt_far *f)
{
    struct own *o = f->own;
    struct pt_err e = {0};
    uint8_t state = 0;
    if (o->ended || f->reported)
        return true;
    int rc = pt_exact_look(o->control.fd, &state);
    if (rc == 0)
        return true;
    if (rc < 0)
        (void)pt_iperf3_lost(&o->control, rc, &e);
    else
        (void)pt_iperf3_unexpected(&o->control, (int8_t)state, pt_clock_now() + PT_S, &e);
    pt_far_broke(f, "peer lost: %s", e.text);
    return false;
}

/* Bytes that are sent and not acknowledged, over all flows. */
static uint64_t outstanding(const struct own *o)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < o->flow_count; i++) {
        int n = 0;
        if (ioctl(o->flows[i], SIOCOUTQ, &n) == 0 && n > 0)
            all += (uint64_t)n;
    }
    return all;
}

/* Waits until what was sent is there, as long as it gets less. */
static void drain(struct pt_far *f, const struct pt_job *job)
{
    struct own *o = f->own;
    pt_ns now = pt_clock_now(), begin = now;
    if (!f->shape->forward)
        return;
    while (pt_job_senders(job) && now - begin < PT_S && listen_to(f)) {
        (void)pt_clock_wait_until(now + PT_MS);
        now = pt_clock_now();
    }
    uint64_t left = outstanding(o);
    pt_ns moved = now;
    while (left && now - moved < DRAIN_NS && pt_signal_count() < 2 && listen_to(f)) {
        (void)pt_clock_wait_until(now + PT_MS);
        now = pt_clock_now();
        uint64_t n = outstanding(o);
        moved = n < left ? now : moved;
        left = n;
    }
    o->drained = !left;
    o->sent_ns = left ? 0 : now;
    o->start_ns = atomic_load(&job->shared->start_ns);
    (void)pt_clock_wait_until(now + READ_NS + 2 * f->rtt_ns);
}

static json_t *our_results(struct pt_far *f, const struct pt_job *job)
{
    struct own *o = f->own;
    struct pt_iperf3_results *r = calloc(1, sizeof(*r));
    bool udp = f->shape->chan == PT_CHAN_UDP;
    if (!r)
        return NULL;
    r->sender_has_retransmits = udp || !f->shape->forward ? -1 : 1;
    snprintf(r->congestion, sizeof(r->congestion), "%.15s", o->params.congestion);
    for (uint32_t i = 0; i < f->shape->flows && r->n < PT_COUNT(r->stream); i++) {
        const struct pt_flow_stat *st = &job->flows[i];
        bool sends = i < f->shape->forward;
        struct pt_counters c = {0};
        for (unsigned p = o->params.omit_s ? PT_PHASE_MEASURE : 0; p < PT_PHASES; p++)
            pt_counters_add(&c, &st->c[p]);
        uint64_t came = st->seq.unique + st->seq.late, top = st->seq_top;
        r->stream[r->n++] = (struct pt_iperf3_stream){
            .id = pt_iperf3_id(i),
            .bytes = sends ? c.tx_bytes : c.rx_bytes,
            .retransmits = sends && st->tcp_valid ? (int64_t)st->tcp_end.total_retrans : -1,
            .packets = udp ? (int64_t)(sends ? c.tx_packets : top) : 0,
            .errors = udp && !sends ? (int64_t)(top > came ? top - came : 0) : 0,
            .omitted_packets = -1,
            .jitter_s = st->jitter_ns / 1e9,
            .end_s = (double)f->shape->duration / 1e9,
        };
    }
    json_t *json = pt_iperf3_results_json(r);
    free(r);
    return json;
}

static int exchange(struct pt_far *f, const struct pt_job *job, pt_ns deadline, struct pt_err *e)
{
    struct own *o = f->own;
    json_t *theirs = NULL;
    int rc = pt_iperf3_say(&o->control, PT_IPERF3_TEST_END, deadline, e);
    o->ended = true;
    rc = rc < 0 ? rc : pt_iperf3_expect(&o->control, PT_IPERF3_EXCHANGE_RESULTS, deadline, e);
    if (rc == 0)
        rc = pt_iperf3_send_json(&o->control, our_results(f, job), deadline, e);
    if (rc == 0)
        rc = pt_iperf3_recv_json(&o->control, PT_IPERF3_RESULTS_MAX, &theirs, deadline, e);
    if (rc == 0)
        rc = pt_iperf3_results_parse(&o->results, theirs, e);
    json_decref(theirs);
    o->have_results = rc == 0;
    if (rc == 0 && pt_iperf3_expect(&o->control, PT_IPERF3_DISPLAY_RESULTS, deadline, NULL) == 0) {
        o->displayed = true;
        (void)!pt_iperf3_say(&o->control, PT_IPERF3_DONE, deadline, NULL);
    }
    return rc;
}

static void stop(struct pt_far *f, const struct pt_job *job)
{
    struct pt_err e = {0};
    drain(f, job);
    if (f->broken[0])
        return;
    if (exchange(f, job, pt_clock_now() + 10 * PT_S, &e) < 0)
        pt_far_broke(f, "no results of the other end: %s", e.text);
    else
        f->reported = true;
}

/* ---- what it all says */

/* The far end's books of one flow. */
static void fill_flow(const struct pt_far *f, const struct pt_half *local, uint32_t i,
                      struct pt_half_flow *out)
{
    const struct own *o = f->own;
    const struct pt_shape *s = f->shape;
    const struct pt_iperf3_stream *t = pt_iperf3_result_of(&o->results, pt_iperf3_id(i));
    const struct pt_half_flow *ours = i < local->flow_count ? &local->flows[i] : NULL;
    bool forward = i < s->forward, udp = s->chan == PT_CHAN_UDP;
    *out = (struct pt_half_flow){.id = i, .sends = !forward};
    if (!t)
        return;
    uint64_t packets = t->packets > 0 ? (uint64_t)t->packets : 0;
    uint64_t errors = t->errors > 0 ? (uint64_t)t->errors : 0;
    if (!forward) {
        out->c.tx_bytes = t->bytes;
        out->c.tx_packets = udp ? packets : 0;
    } else if (udp) {
        out->c.rx_bytes = t->bytes;
        out->c.rx_packets = packets > errors ? packets - errors : 0;
        out->seq.unique = out->c.rx_packets;
        out->jitter_ns = t->jitter_s > 0 ? t->jitter_s * 1e9 : 0;
    } else {
        bool timed = !s->bytes && ours && ours->tcp_valid;
        out->c.rx_bytes = timed ? ours->tcp.bytes_acked : t->bytes;
    }
}

static double window_of(const struct own *o, double otherwise)
{
    const struct pt_iperf3_stream *t = o->results.n ? &o->results.stream[0] : NULL;
    return t && t->end_s > t->start_s && t->start_s >= 0 ? t->end_s - t->start_s : otherwise;
}

/* Sent by us in all, warm-up and tail included, and counted by it. */
static void compare_totals(const struct pt_far *f, const struct pt_half *local, struct pt_result *r)
{
    const struct own *o = f->own;
    uint64_t sent = 0, counted = 0, arrivals = f->half.c[PT_PHASE_MEASURE].rx_packets;
    for (unsigned p = 0; p < PT_PHASES; p++)
        sent += local->c[p].tx_bytes;
    for (uint32_t i = 0; i < f->shape->forward; i++) {
        const struct pt_iperf3_stream *t = pt_iperf3_result_of(&o->results, pt_iperf3_id(i));
        counted += t ? t->bytes : 0;
    }
    if (f->shape->chan == PT_CHAN_UDP) {
        uint64_t tx = local->c[PT_PHASE_MEASURE].tx_packets;
        if (arrivals > tx)
            pt_result_warn(r,
                           "the %s counted %llu datagrams more than were sent: duplicates, "
                           "which it cannot tell from others",
                           f->name, (unsigned long long)(arrivals - tx));
        return;
    }
    bool whole = !o->params.omit_s && f->shape->forward == f->shape->flows;
    if (whole && counted < sent)
        pt_result_warn(r,
                       "the %s counted %llu of the %llu bytes that were sent: it reads no more "
                       "once the test has ended",
                       f->name, (unsigned long long)counted, (unsigned long long)sent);
    if (!o->drained && f->shape->forward)
        pt_result_warn(r, "not all that was sent was acknowledged when the test ended");
}

static void conclude(struct pt_far *f, const struct pt_half *local, struct pt_result *r)
{
    struct own *o = f->own;
    struct pt_half *h = &f->half;
    const struct pt_shape *s = f->shape;
    if (!o->have_results)
        return;
    h->flows = calloc(s->flows, sizeof(*h->flows));
    if (!h->flows) {
        f->reported = false;
        return;
    }
    h->flow_count = s->flows;
    for (uint32_t i = 0; i < s->flows; i++) {
        fill_flow(f, local, i, &h->flows[i]);
        pt_counters_add(&h->c[PT_PHASE_MEASURE], &h->flows[i].c);
        pt_seq_books_add(&h->seq, &h->flows[i].seq);
    }
    h->window_s = s->forward ? local->window_s : window_of(o, local->window_s);
    if (s->bytes && o->sent_ns)
        h->transfer_s = (double)(o->sent_ns - o->start_ns) / 1e9;
    if (o->results.cpu_user_pct >= 0)
        h->cpu_user_s = o->results.cpu_user_pct / 100 * window_of(o, local->window_s);
    if (o->results.cpu_system_pct >= 0)
        h->cpu_system_s = o->results.cpu_system_pct / 100 * window_of(o, local->window_s);
    /* What it sent in our window it can tell when its own window is the same. */
    h->sends_unknown = s->chan != PT_CHAN_UDP && s->warmup && !o->params.omit_s;
    if (h->sends_unknown && s->forward < s->flows)
        pt_result_warn(r,
                       "what the %s sent is not known: it leaves out whole seconds of warm-up "
                       "only (--warmup 1s)",
                       f->name);
    compare_totals(f, local, r);
}

static void close_far(struct pt_far *f)
{
    struct own *o = f->own;
    if (!o)
        return;
    /* One that we leave in the middle shall not wait for us. */
    if (o->started && !o->ended)
        (void)!pt_iperf3_say(&o->control, PT_IPERF3_CLIENT_TERMINATE, pt_clock_now() + PT_S / 10,
                             NULL);
    for (uint32_t i = 0; i < o->flow_count; i++)
        close(o->flows[i]);
    free(o->flows);
    if (o->control.fd >= 0)
        close(o->control.fd);
    json_decref((json_t *)(uintptr_t)f->identity);
    free(o);
}

const struct pt_far_kind pt_peer_iperf3 = {
    .name = "iperf3",
    .port = PT_IPERF3_PORT,
    .reach = reach,
    .propose = propose,
    .dial = dial,
    .start = start,
    .listen = listen_to,
    .stop = stop,
    .conclude = conclude,
    .close = close_far,
};
