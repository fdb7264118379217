/* report.c: see report.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/report.h"

#include "engine/hosts.h"
#include "host/diagnose.h"

#include "base/units.h"
#include "host/path.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOWS_SHOWN 64
#define LATE_NS     ((uint64_t)(1 * PT_MS))

static bool goes(const struct pt_shape *s, uint32_t id, bool reverse)
{
    return (id >= s->forward) == reverse;
}

void pt_half_direction(const struct pt_half *h, const struct pt_shape *s, bool reverse,
                       struct pt_counters *c, struct pt_seq_books *seq)
{
    *c = (struct pt_counters){0};
    *seq = (struct pt_seq_books){0};
    if (s->forward == 0 ||
        s->forward == s->flows) { /* one direction: the sums, however many flows */
        if (reverse == (s->forward == 0)) {
            *c = h->c[PT_PHASE_MEASURE];
            *seq = h->seq;
        }
        return;
    }
    for (uint32_t i = 0; i < h->flow_count; i++) {
        const struct pt_half_flow *f = &h->flows[i];
        if (!goes(s, f->id, reverse))
            continue;
        pt_counters_add(c, &f->c);
        pt_seq_books_add(seq, &f->seq);
    }
}

const struct pt_half *pt_report_receiver(const struct pt_report *rep, bool reverse)
{
    return reverse ? rep->local : rep->peer;
}

const struct pt_half *pt_report_sender(const struct pt_report *rep, bool reverse)
{
    return reverse ? rep->peer : rep->local;
}

static double rate(double n, double s)
{
    return s > 0 ? n / s : 0;
}

/* ---- one direction of a one-way transfer */

struct direction {
    bool reverse, sender_known, receiver_known;
    struct pt_counters tx, rx;
    struct pt_seq_books seq;
    double tx_s, rx_s; /* the two windows */
};

static void read_direction(const struct pt_report *rep, bool reverse, struct direction *d)
{
    struct pt_seq_books unused;
    const struct pt_half *tx = pt_report_sender(rep, reverse),
                         *rx = pt_report_receiver(rep, reverse);
    *d = (struct direction){
        .reverse = reverse, .sender_known = tx && !tx->sends_unknown, .receiver_known = rx};
    if (tx) {
        pt_half_direction(tx, rep->shape, reverse, &d->tx, &unused);
        d->tx_s = tx->window_s;
    }
    if (rx) {
        pt_half_direction(rx, rep->shape, reverse, &d->rx, &d->seq);
        bool counted = rep->shape->bytes || rep->shape->ops_per_flow || rep->shape->whole;
        d->rx_s = counted && rx->transfer_s > 0 ? rx->transfer_s : rx->window_s;
    }
}

static void set(struct pt_result *r, const char *base, const char *key, bool known, double v)
{
    char path[96];
    snprintf(path, sizeof(path), "%s%s", base, key);
    if (known)
        pt_result_real(r, path, v);
    else
        pt_result_null(r, path);
}

static void count(struct pt_result *r, const char *base, const char *key, bool known, uint64_t v)
{
    char path[96];
    snprintf(path, sizeof(path), "%s%s", base, key);
    if (known)
        pt_result_u64(r, path, v);
    else
        pt_result_null(r, path);
}

static void put_direction(const struct pt_report *rep, const struct direction *d,
                          struct pt_result *r, const char *base)
{
    bool t = d->sender_known, x = d->receiver_known;
    char b[64];
    snprintf(b, sizeof(b), "%stotals.", base);
    count(r, b, "tx_bytes", t, d->tx.tx_bytes);
    count(r, b, "rx_bytes", x, d->rx.rx_bytes);
    bool packets = rep->shape->chan == PT_CHAN_UDP;
    if (packets) {
        count(r, b, "tx_packets", t, d->tx.tx_packets);
        count(r, b, "rx_packets", x, d->rx.rx_packets);
        bool s = rep->shape->sequenced;
        uint64_t lost = s ? pt_seq_lost(&d->seq, d->tx.tx_packets)
                        : d->tx.tx_packets > d->rx.rx_packets ? d->tx.tx_packets - d->rx.rx_packets
                                                              : 0;
        count(r, b, "lost_packets", t && x, lost);
        count(r, b, "reordered_packets", x && s, d->seq.reordered);
        count(r, b, "duplicate_packets", x && s, d->seq.duplicate);
        count(r, b, "late_packets", x && s, d->seq.late);
        snprintf(b, sizeof(b), "%srates.", base);
        set(r, b, "loss_pct", t && x && d->tx.tx_packets,
            d->tx.tx_packets ? 100.0 * (double)lost / (double)d->tx.tx_packets : 0);
    }
    snprintf(b, sizeof(b), "%srates.", base);
    set(r, b, "tx_bits_per_s", t, rate((double)d->tx.tx_bytes * 8, d->tx_s));
    set(r, b, "rx_bits_per_s", x && d->rx_s > 0, rate((double)d->rx.rx_bytes * 8, d->rx_s));
    if (packets) {
        set(r, b, "tx_packets_per_s", t, rate((double)d->tx.tx_packets, d->tx_s));
        set(r, b, "rx_packets_per_s", x, rate((double)d->rx.rx_packets, d->rx_s));
    }
}

static void one_way(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_shape *s = rep->shape;
    struct direction d;
    bool bidir = s->forward > 0 && s->forward < s->flows;
    for (int k = 0; k < 2 && bidir; k++) {
        json_t *o = json_object();
        json_object_set_new(o, "name", json_string(k ? "reverse" : "forward"));
        pt_result_append(r, "directions", o);
        read_direction(rep, k, &d);
        char base[32];
        snprintf(base, sizeof(base), "directions.%d.", k);
        put_direction(rep, &d, r, base);
    }
    bool counted = s->bytes || s->ops_per_flow;
    if (!bidir) {
        read_direction(rep, s->forward == 0, &d);
        put_direction(rep, &d, r, "");
        if (counted && d.receiver_known)
            pt_result_real(r, "duration_s", d.rx_s);
        return;
    }
    /* Both directions together. */
    struct direction f, b;
    read_direction(rep, false, &f);
    read_direction(rep, true, &b);
    d = f;
    d.sender_known = f.sender_known && b.sender_known;
    d.receiver_known = f.receiver_known && b.receiver_known;
    pt_counters_add(&d.tx, &b.tx);
    pt_counters_add(&d.rx, &b.rx);
    pt_seq_books_add(&d.seq, &b.seq);
    put_direction(rep, &d, r, "");
    if (counted && d.receiver_known)
        pt_result_real(r, "duration_s", f.rx_s > b.rx_s ? f.rx_s : b.rx_s);
}

/* ---- operations */

static void operations(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_half *h = rep->local;
    const struct pt_counters *c = &h->c[PT_PHASE_MEASURE];
    uint64_t ops = c->ops, ok = c->ok;
    if (!rep->shape->both && rep->shape->forward == 0) {
        ops = ok = 0; /* the peer's operations: its counters are in its half */
        if (rep->peer) {
            ops = rep->peer->c[PT_PHASE_MEASURE].ops;
            ok = rep->peer->c[PT_PHASE_MEASURE].ok;
        }
    }
    uint64_t errors = pt_counters_errors(c);
    pt_result_u64(r, "totals.operations", ops);
    pt_result_u64(r, "totals.ok", ok);
    pt_result_u64(r, "totals.in_flight_at_end", ops > ok + errors ? ops - ok - errors : 0);
    for (unsigned i = 0; i < PT_OP_ERRORS; i++) {
        char path[64];
        snprintf(path, sizeof(path), "totals.errors.%s", pt_op_error_names[i]);
        pt_result_u64(r, path, c->errors[i]);
    }
    pt_result_real(r, "rates.operations_per_s", rate((double)ok, h->window_s));
    if (rep->shape->both) {
        pt_result_u64(r, "totals.tx_bytes", c->tx_bytes);
        pt_result_u64(r, "totals.rx_bytes", c->rx_bytes);
        pt_result_real(r, "rates.tx_bits_per_s", rate((double)c->tx_bytes * 8, h->window_s));
        pt_result_real(r, "rates.rx_bits_per_s", rate((double)c->rx_bytes * 8, h->window_s));
        if (h->hist[PT_HIST_LATENCY])
            pt_result_hist(r, "latency", h->hist[PT_HIST_LATENCY]);
        if (h->hist[PT_HIST_SERVICE])
            pt_result_hist(r, "service_time", h->hist[PT_HIST_SERVICE]);
    }
}

/* ---- series */

static json_t *number_or_null(bool known, double v)
{
    return known ? json_real(v) : json_null();
}

/* The peer's point that ends nearest to `t_s`, of the window. */
static const struct pt_point *peer_point(const struct pt_report *rep, double t_s)
{
    const struct pt_point *nearest = NULL;
    for (uint32_t i = 0; rep->peer && i < rep->peer->series.n; i++) {
        const struct pt_point *p = &rep->peer->series.at[i];
        if (p->t_s < p->span_s / 2 || fabs(p->t_s - t_s) > p->span_s / 2)
            continue;
        if (!nearest || fabs(p->t_s - t_s) < fabs(nearest->t_s - t_s))
            nearest = p;
    }
    return nearest;
}

static void series(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_half *h = rep->local;
    pt_result_take(r, "series", json_array());
    bool packets = rep->shape->chan == PT_CHAN_UDP;
    for (uint32_t i = 0; i < h->series.n; i++) {
        const struct pt_point *p = &h->series.at[i];
        if (p->t_s < p->span_s / 2)
            continue; /* more of it lies in the warm-up */
        const struct pt_point *q = rep->shape->both ? NULL : peer_point(rep, p->t_s);
        bool here = rep->shape->both || rep->shape->forward < rep->shape->flows;
        struct pt_counters c = p->c;
        if (q && !rep->shape->both) {
            c.rx_bytes += q->c.rx_bytes;
            c.rx_packets += q->c.rx_packets;
            c.tx_bytes += q->c.tx_bytes;
            c.tx_packets += q->c.tx_packets;
        }
        bool rx = here || q;
        const struct pt_point *s = p->cwnd ? p : q && q->cwnd ? q : NULL;
        json_t *o = json_pack(
            "{s:f, s:f, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o}",
            "t_s", p->t_s, "span_s", p->span_s, "operations", (json_int_t)p->c.ops, "ok",
            (json_int_t)p->c.ok, "errors", (json_int_t)pt_counters_errors(&p->c), "tx_bytes",
            (json_int_t)c.tx_bytes, "rx_bytes",
            rx ? json_integer((json_int_t)c.rx_bytes) : json_null(), "tx_packets",
            packets ? json_integer((json_int_t)c.tx_packets) : json_null(), "rx_packets",
            packets && rx ? json_integer((json_int_t)c.rx_packets) : json_null(), "p50_us",
            number_or_null(p->samples, (double)p->p50_ns / 1e3), "p99_us",
            number_or_null(p->samples && p->p99_ns, (double)p->p99_ns / 1e3), "max_us",
            number_or_null(p->samples, (double)p->max_ns / 1e3), "connections", (int)p->connections,
            "rtt_us", number_or_null(s, s ? s->rtt_us : 0), "cwnd",
            s ? json_integer(s->cwnd) : json_null(), "retransmits",
            s ? json_integer((json_int_t)s->retransmits) : json_null());
        json_object_set_new(o, "delivery_rate_bits_per_s",
                            number_or_null(s, s ? (double)s->delivery_Bps * 8 : 0));
        json_object_set_new(o, "limited_by",
                            s && s->limit ? json_string(pt_half_limits[s->limit - 1])
                                          : json_null());
        pt_result_append(r, "series", o);
    }
}

/* ---- flows and fairness */

static const struct pt_half_flow *find_flow(const struct pt_half *h, uint32_t id)
{
    return h && id < h->flow_count && h->flows[id].id == id ? &h->flows[id] : NULL;
}

static json_t *flow(const struct pt_report *rep, uint32_t id, double *carried)
{
    bool reverse = id >= rep->shape->forward;
    const struct pt_half_flow *tx = find_flow(pt_report_sender(rep, reverse), id);
    const struct pt_half_flow *rx = find_flow(pt_report_receiver(rep, reverse), id);
    if (rep->shape->both)
        tx = rx = find_flow(rep->local, id);
    const struct pt_half_flow *mine = find_flow(rep->local, id);
    const struct pt_half *rh = rep->shape->both ? rep->local : pt_report_receiver(rep, reverse);
    double s = rh ? rh->window_s : rep->local->window_s;
    uint64_t bytes = rx ? rx->c.rx_bytes : tx ? tx->c.tx_bytes : 0;
    *carried = rate((double)bytes * 8, s);
    const struct pt_tcp_info *t = tx && tx->tcp_valid ? &tx->tcp : NULL;
    json_t *o = json_pack(
        "{s:i, s:s, s:s?, s:s?, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:f, s:s?}", "id", (int)id,
        "direction",
        rep->shape->both ? "both"
        : reverse        ? "reverse"
                         : "forward",
        "local", mine && mine->local[0] ? mine->local : NULL, "remote",
        mine && mine->remote[0] ? mine->remote : NULL, "bits_per_s", *carried, "packets_per_s",
        number_or_null(rx && rep->shape->chan == PT_CHAN_UDP,
                       rate(rx ? (double)rx->c.rx_packets : 0, s)),
        "retransmits", t ? json_integer(t->total_retrans) : json_null(), "cwnd",
        t ? json_integer(t->snd_cwnd) : json_null(), "srtt_us",
        number_or_null(t, t ? t->rtt_us : 0), "min_rtt_us",
        number_or_null(t && t->min_rtt_us, t ? t->min_rtt_us : 0), "delivery_rate_bits_per_s",
        number_or_null(t, t ? (double)t->delivery_rate_Bps * 8 : 0), "limited_by",
        tx ? tx->limited_by : NULL, "start_us", tx ? (double)tx->first_ns / 1e3 : 0.0, "error",
        mine && mine->error ? pt_strerror(mine->error) : NULL);
    if (rep->shape->sequenced && rx && tx)
        json_object_set_new(o, "lost_packets",
                            json_integer((json_int_t)pt_seq_lost(&rx->seq, tx->c.tx_packets)));
    if (rep->shape->sequenced && rx && rx->jitter_ns > 0)
        json_object_set_new(o, "jitter_us", json_real(rx->jitter_ns / 1e3));
    return o;
}

static void flows(const struct pt_report *rep, struct pt_result *r)
{
    pt_result_take(r, "flows", json_array());
    double sum = 0, squares = 0, least = 0, most = 0;
    uint64_t retransmits = 0;
    uint32_t n = rep->local->flow_count;
    bool tcp = false;
    for (uint32_t i = 0; i < n; i++) {
        double bits = 0;
        json_t *o = flow(rep, i, &bits);
        sum += bits;
        squares += bits * bits;
        least = i == 0 || bits < least ? bits : least;
        most = bits > most ? bits : most;
        const json_t *re = json_object_get(o, "retransmits");
        if (json_is_integer(re)) {
            retransmits += (uint64_t)json_integer_value(re);
            tcp = true;
        }
        if (i < FLOWS_SHOWN)
            pt_result_append(r, "flows", o);
        else
            json_decref(o);
    }
    pt_result_u64(r, "flows_not_shown", rep->shape->flows - (n < FLOWS_SHOWN ? n : FLOWS_SHOWN));
    if (tcp)
        pt_result_u64(r, "totals.retransmits", retransmits);
    if (rep->shape->flows < 2 || n < 2)
        return;
    /* Jain, Chiu, Hawe 1984: (Σx)² / (n Σx²). */
    pt_result_real(r, "fairness.jain", squares > 0 ? sum * sum / (n * squares) : 0);
    pt_result_real(r, "fairness.min_bits_per_s", least);
    pt_result_real(r, "fairness.max_bits_per_s", most);
    /* With --bidir the flows start at two ends, whose clocks nothing here compares. */
    const struct pt_shape *shape = rep->shape;
    bool two_ends = !shape->both && shape->forward > 0 && shape->forward < shape->flows;
    const struct pt_half *tx = shape->forward ? rep->local : rep->peer;
    pt_result_null(r, "fairness.start_skew_us");
    if (tx && !two_ends)
        pt_result_real(r, "fairness.start_skew_us", tx->start_skew_s * 1e6);
}

/* ---- where datagrams were lost: over the whole run, warm-up included, as the counters count */

static uint64_t all_phases(const struct pt_half *h, size_t offset)
{
    uint64_t sum = 0;
    for (unsigned p = 0; p < PT_PHASES; p++)
        sum += *(const uint64_t *)(const void *)((const char *)&h->c[p] + offset);
    return sum;
}

#define ALL(h, field) all_phases(h, offsetof(struct pt_counters, field))

static void path(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_shape *s = rep->shape;
    bool reverse = s->forward == 0;
    if (s->chan != PT_CHAN_UDP || s->both || (s->forward && s->forward < s->flows) || !rep->peer)
        return;
    const struct pt_half *tx = pt_report_sender(rep, reverse),
                         *rx = pt_report_receiver(rep, reverse);
    uint64_t sent = ALL(tx, tx_packets), calls = ALL(tx, tx_calls);
    struct pt_path_sender from = {
        .attempted = sent + tx->tx_refused,
        .attempted_bytes =
            ALL(tx, tx_bytes) + (sent ? ALL(tx, tx_bytes) / sent : 0) * tx->tx_refused,
        .accepted = sent,
        .accepted_bytes = ALL(tx, tx_bytes),
        .net = tx->wire ? &tx->wire->net : NULL,
        .dev = tx->wire && tx->wire->dev[0] ? tx->wire->dev : NULL,
        .qdisc_drops = tx->wire ? tx->wire->qdisc_drops : -1,
        .gso = calls && !s->tx_via ? (unsigned)((sent + calls / 2) / calls) : 0,
        .via = s->tx_via,
    };
    uint64_t copies = rx->seq.duplicate, got = ALL(rx, rx_packets);
    struct pt_path_receiver to = {
        .received = got > copies ? got - copies : 0,
        .received_bytes = ALL(rx, rx_bytes),
        .unread = -1,
        .socket_drops = (int64_t)rx->drops,
        .net = rx->wire ? &rx->wire->net : NULL,
        .dev = rx->wire && rx->wire->dev[0] ? rx->wire->dev : NULL,
        .gro = s->gro,
        .via = s->rx_via,
    };
    struct pt_path *p = calloc(1, sizeof(*p));
    if (!p)
        return;
    pt_path_build(p, &from, &to, rep->one_net);
    pt_result_take(r, "path", pt_path_json(p));
    free(p);
}

static void fragments(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_half *tx = rep->shape->forward ? rep->local : rep->peer;
    if (rep->shape->chan != PT_CHAN_UDP || !tx || !tx->wire)
        return;
    int64_t made =
        pt_netstat_sum(&tx->wire->net, PT_NETSTAT_IP4_FRAG_CREATES, PT_NETSTAT_IP6_FRAG_CREATES);
    /* Each datagram of ours that is too large makes at least two; fewer are other traffic. */
    if (made > 0 && (uint64_t)made >= ALL(tx, tx_packets)) {
        pt_result_i64(r, "fragments_sent", made);
        pt_result_warn(
            r,
            "the sending host made %lld IP fragments: datagrams are larger than the path "
            "takes (MTU %u)",
            (long long)made, tx->wire->mtu);
    }
}

/* ---- what it cost, and whether the generator was good enough */

static void cost(const struct pt_report *rep, struct pt_result *r)
{
    double cpu = rep->local->cpu_user_s + rep->local->cpu_system_s;
    if (!rep->peer) {
        pt_result_null(r, "cost.cpu_s_per_GB");
        return;
    }
    cpu += rep->peer->cpu_user_s + rep->peer->cpu_system_s;
    const struct pt_counters *l = &rep->local->c[PT_PHASE_MEASURE],
                             *p = &rep->peer->c[PT_PHASE_MEASURE];
    double bytes = (double)l->rx_bytes + (double)p->rx_bytes;
    double packets = (double)l->rx_packets + (double)p->rx_packets;
    pt_result_real(r, "cost.cpu_s", cpu);
    if (bytes > 0)
        pt_result_real(r, "cost.cpu_s_per_GB", cpu / bytes * 1e9);
    if (packets > 0)
        pt_result_real(r, "cost.cpu_s_per_million_packets", cpu / packets * 1e6);
    if (l->ok > 0 && rep->shape->both)
        pt_result_real(r, "cost.cpu_s_per_million_operations", cpu / (double)l->ok * 1e6);
}

static void generator(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_half *h = rep->local;
    const struct pt_hist *late = h->hist[PT_HIST_LATE];
    bool valid = true;
    pt_result_str(r, "generator.engine", h->backend);
    pt_result_str(r, "generator.engine_reason", rep->engine_reason);
    pt_result_real(
        r, "generator.cpu_pct",
        rate(100 * (h->cpu_user_s + h->cpu_system_s), h->window_s * (h->workers ? h->workers : 1)));
    pt_result_u64(r, "generator.own_drops", h->drops);
    pt_result_u64(r, "generator.allocated_bytes", h->allocated);
    pt_result_null(r, "generator.pacer_late_p99_us");
    if (late) {
        uint64_t p99 = pt_hist_quantile(late, 0.99);
        pt_result_real(r, "generator.pacer_late_p99_us", (double)p99 / 1e3);
        pt_result_real(r, "generator.pacer_late_max_us", (double)pt_hist_max(late) / 1e3);
        double asked = rep->shape->ops_per_s,
               got = rate((double)h->c[PT_PHASE_MEASURE].ops, h->window_s);
        if (asked > 0 && got < 0.99 * asked && !rep->broken && h->window_s > 0.1) {
            valid = false;
            char did[PT_UNITS_TEXT], due[PT_UNITS_TEXT];
            pt_result_warn(r, "the generator reached %s of %s operations/s asked for",
                           pt_number_show(did, sizeof(did), got),
                           pt_number_show(due, sizeof(due), asked));
        }
        if (rep->shape->both && p99 > LATE_NS && asked > 0) {
            char late_by[PT_UNITS_TEXT];
            valid = false;
            pt_result_warn(r,
                           "the generator was late: 1 %% of operations started %s or more after "
                           "they were due; latencies still count from the due instant",
                           pt_time_show(late_by, sizeof(late_by), (double)p99 / 1e9));
        }
    }
    pt_result_bool(r, "generator.valid", valid);
}

void pt_report_make(const struct pt_report *rep, struct pt_result *r)
{
    pt_result_status(r, PT_RESULT_OK);
    pt_result_plan(r, rep->plan);
    pt_result_real(r, "duration_s", rep->local->window_s);
    pt_result_real(r, "warmup_s", (double)rep->shape->warmup / 1e9);
    operations(rep, r);
    if (!rep->shape->both)
        one_way(rep, r);
    series(rep, r);
    flows(rep, r);
    path(rep, r);
    fragments(rep, r);
    cost(rep, r);
    generator(rep, r);
    pt_report_hosts(rep, r);
    if (rep->wl->report)
        rep->wl->report(rep, r);
    pt_report_verdict(rep, r);
    pt_diagnose(r);
}
