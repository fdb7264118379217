/* half.c: reads a finished job. See half.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/half.h"

#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pt_half_limits[PT_HALF_LIMITS] = {"receiver window", "send buffer",
                                                    "congestion window", "application"};

static void read_flow(struct pt_half_flow *out, const struct pt_job *job, uint32_t id,
                      double window_s)
{
    const struct pt_flow_stat *st = &job->flows[id];
    pt_ns start = atomic_load(&job->shared->start_ns);
    *out = (struct pt_half_flow){
        .id = id,
        .sends = (pt_shape_dir(&job->spec.shape, id, job->spec.side) & PT_DIR_TX) != 0,
        .c = st->c[PT_PHASE_MEASURE],
        .seq = st->seq,
        .drops = st->drops,
        .jitter_ns = st->jitter_ns,
        .first_ns = st->first_tx_ns ? st->first_tx_ns - start : 0,
        .tcp_valid = st->tcp_valid,
        .error = st->error,
    };
    if (job->spec.shape.whole) {
        pt_counters_add(&out->c, &st->c[PT_PHASE_WARMUP]);
        pt_counters_add(&out->c, &st->c[PT_PHASE_TAIL]);
    }
    memcpy(out->local, st->local, sizeof(out->local));
    memcpy(out->remote, st->remote, sizeof(out->remote));
    if (st->tcp_valid) {
        pt_tcp_info_sub(&out->tcp, &st->tcp_end, &st->tcp_begin);
        if (out->sends)
            out->limited_by = pt_tcp_limited_by(&out->tcp, (pt_ns)(window_s * 1e9), NULL);
    }
}

static void read_windows(struct pt_half *h, const struct pt_job *job)
{
    const struct pt_shape *s = &job->spec.shape;
    pt_ns start = atomic_load(&job->shared->start_ns);
    pt_ns begin = s->bytes ? start : start + s->warmup;
    pt_ns end = begin + s->duration;
    bool counted = s->bytes || s->ops_per_flow;
    pt_ns first_rx = 0, last_rx = 0, closed = 0;
    for (unsigned i = 0; i < job->spec.workers; i++) {
        const struct pt_worker_stat *w = &job->workers[i];
        if (w->stopped_ns > closed)
            closed = w->stopped_ns;
        if (w->first_rx_ns && (!first_rx || w->first_rx_ns < first_rx))
            first_rx = w->first_rx_ns;
        if (w->last_rx_ns > last_rx)
            last_rx = w->last_rx_ns;
        if ((double)w->gap_ns > h->gap_s * 1e9) {
            h->gap_s = (double)w->gap_ns / 1e9;
            h->gap_at_s = (double)(w->gap_at_ns - begin) / 1e9;
        }
    }
    if (counted || (closed && closed < end)) {
        h->cut = !counted;
        end = closed > begin ? closed : begin;
    }
    /* A counted transfer is over, for an end that only receives, when its last byte is there. */
    uint32_t sent_here = job->spec.side == PT_ASK ? s->forward : s->flows - s->forward;
    if (s->bytes && !sent_here && last_rx > begin)
        end = last_rx;
    h->window_s = (double)(end - begin) / 1e9;
    if (first_rx)
        h->transfer_s = (double)(last_rx - (s->bytes ? begin : first_rx)) / 1e9;
}

static int read_hists(struct pt_half *h, const struct pt_job *job)
{
    for (unsigned k = 0; k < PT_HISTS; k++) {
        uint64_t n = 0;
        for (unsigned i = 0; i < job->spec.workers; i++)
            n += pt_hist_count(&job->workers[i].hist[k]);
        if (!n)
            continue;
        h->hist[k] = calloc(1, sizeof(struct pt_hist));
        if (!h->hist[k])
            return -ENOMEM;
        pt_job_hist(job, k, h->hist[k]);
    }
    return 0;
}

static void add_note(struct pt_half *h, const char *note)
{
    for (unsigned i = 0; i < h->note_count; i++)
        if (strcmp(h->notes[i], note) == 0)
            return;
    if (*note && h->note_count < PT_HALF_NOTES)
        snprintf(h->notes[h->note_count++], sizeof(h->notes[0]), "%s", note);
}

static void read_workers(struct pt_half *h, const struct pt_job *job)
{
    for (unsigned i = 0; i < job->spec.workers; i++) {
        const struct pt_worker_stat *w = &job->workers[i];
        for (unsigned p = 0; p < PT_PHASES; p++)
            pt_counters_add(&h->c[p], &w->c[p]);
        if (job->spec.shape.whole) {
            pt_counters_add(&h->c[PT_PHASE_MEASURE], &w->c[PT_PHASE_WARMUP]);
            pt_counters_add(&h->c[PT_PHASE_MEASURE], &w->c[PT_PHASE_TAIL]);
        }
        h->late += w->late;
        h->tx_refused += w->tx_refused;
        h->drops += w->ring_drops;
        h->allocated += w->allocated;
        for (size_t k = 0; k < PT_COUNT(h->extra); k++)
            h->extra[k] += w->extra[k];
        if (w->offset_error_ns &&
            (!h->offset_error_ns || w->offset_error_ns < h->offset_error_ns)) {
            h->offset_ns = w->offset_ns;
            h->offset_error_ns = w->offset_error_ns;
        }
        add_note(h, w->note);
        add_note(h, w->granted.note);
        if (!h->socket.rcvbuf)
            h->socket = w->granted;
        if (w->error && !h->error[0])
            snprintf(h->error, sizeof(h->error), "%s", w->error_text);
    }
}

int pt_half_read(struct pt_half *h, const struct pt_job *job)
{
    const struct pt_shape *s = &job->spec.shape;
    *h = (struct pt_half){.workers = job->spec.workers};
    snprintf(h->backend, sizeof(h->backend), "%s",
             job->spec.backend == PT_BACKEND_URING ? "io_uring" : "epoll");
    struct pt_usage u;
    pt_job_usage(job, &u);
    h->cpu_user_s = (double)u.user_ns / 1e9;
    h->cpu_system_s = (double)u.system_ns / 1e9;
    read_windows(h, job);
    read_workers(h, job);
    h->flow_count = s->flows < PT_HALF_FLOWS ? s->flows : PT_HALF_FLOWS;
    h->flows = calloc(h->flow_count ? h->flow_count : 1, sizeof(*h->flows));
    if (!h->flows)
        return -ENOMEM;
    pt_ns first = PT_NS_MAX, last = 0;
    for (uint32_t i = 0; i < s->flows; i++) {
        struct pt_half_flow f;
        read_flow(&f, job, i, h->window_s);
        pt_seq_books_add(&h->seq, &f.seq);
        h->drops += f.drops;
        pt_ns began = job->flows[i].first_tx_ns;
        if (began && began < first)
            first = began;
        if (began > last)
            last = began;
        if (i < h->flow_count)
            h->flows[i] = f;
    }
    h->start_skew_s = last > first ? (double)(last - first) / 1e9 : 0;
    return read_hists(h, job);
}

void pt_half_fini(struct pt_half *h)
{
    free(h->flows);
    pt_wire_free(h->wire);
    json_decref(h->host);
    free(h->series.at);
    for (unsigned k = 0; k < PT_HISTS; k++)
        free(h->hist[k]);
    *h = (struct pt_half){0};
}

/* ---- series */

int pt_sampler_open(struct pt_sampler *s, struct pt_err *e)
{
    *s = (struct pt_sampler){0};
    s->series.at = malloc(PT_SERIES_MAX * sizeof(*s->series.at));
    s->seen = calloc(1, sizeof(*s->seen));
    s->now = calloc(1, sizeof(*s->now));
    s->between = calloc(1, sizeof(*s->between));
    if (s->series.at && s->seen && s->now && s->between)
        return 0;
    pt_sampler_close(s);
    return pt_fail(e, -ENOMEM, "no memory for the time series");
}

static void sample_latency(struct pt_sampler *s, const struct pt_job *job, struct pt_point *p)
{
    pt_hist_reset(s->now);
    pt_job_hist(job, PT_HIST_LATENCY, s->now);
    if (!pt_hist_count(s->now))
        return;
    pt_hist_between(s->between, s->now, s->seen);
    p->samples = pt_hist_count(s->between);
    p->p50_ns = pt_hist_quantile(s->between, 0.5);
    p->p99_ns = pt_hist_depth_ok(s->between, 0.99) ? pt_hist_quantile(s->between, 0.99) : 0;
    p->max_ns = pt_hist_quantile(s->between, 1.0);
    struct pt_hist *swap = s->seen;
    s->seen = s->now;
    s->now = swap;
}

static void sample_tcp(struct pt_sampler *s, const struct pt_job *job, struct pt_point *p)
{
    struct pt_tcp_info sum = {0}, d;
    uint64_t rtt = 0, n = 0, app_limited = 0;
    for (uint32_t i = 0; i < job->spec.shape.flows; i++) {
        const struct pt_flow_stat *st = &job->flows[i];
        if (!st->tcp_valid || !(pt_shape_dir(&job->spec.shape, i, job->spec.side) & PT_DIR_TX))
            continue;
        const struct pt_tcp_info *t = &st->tcp_end;
        rtt += t->rtt_us;
        p->cwnd += t->snd_cwnd;
        p->delivery_Bps += t->delivery_rate_Bps;
        sum.total_retrans += t->total_retrans;
        sum.busy_us += t->busy_us;
        sum.rwnd_limited_us += t->rwnd_limited_us;
        sum.sndbuf_limited_us += t->sndbuf_limited_us;
        app_limited += t->app_limited;
        n++;
    }
    if (!n)
        return;
    pt_tcp_info_sub(&d, &sum, &s->tcp);
    d.app_limited = 2 * app_limited > n;
    const char *by = pt_tcp_limited_by(&d, (pt_ns)(p->span_s * 1e9) * (pt_ns)n, NULL);
    for (uint32_t i = 0; i < PT_HALF_LIMITS; i++)
        if (strcmp(by, pt_half_limits[i]) == 0)
            p->limit = i + 1;
    p->rtt_us = (uint32_t)(rtt / n);
    p->retransmits = d.total_retrans;
    s->tcp = sum;
}

/* Joins neighbours: half the points, twice as long. */
static void thin_out(struct pt_series *s)
{
    for (uint32_t i = 0; i + 1 < s->n; i += 2) {
        struct pt_point a = s->at[i], b = s->at[i + 1];
        pt_counters_add(&b.c, &a.c);
        b.span_s += a.span_s;
        b.retransmits += a.retransmits;
        b.max_ns = a.max_ns > b.max_ns ? a.max_ns : b.max_ns;
        b.p99_ns = a.p99_ns > b.p99_ns ? a.p99_ns : b.p99_ns;
        b.samples += a.samples;
        s->at[i / 2] = b;
    }
    s->n /= 2;
}

const struct pt_point *pt_sampler_take(struct pt_sampler *s, const struct pt_job *job, pt_ns now)
{
    if (s->series.n == PT_SERIES_MAX)
        thin_out(&s->series);
    struct pt_point *p = &s->series.at[s->series.n++];
    *p = (struct pt_point){0};
    pt_ns start = atomic_load(&job->shared->start_ns);
    pt_ns begin = job->spec.shape.bytes ? start : start + job->spec.shape.warmup;
    p->t_s = (double)(now - begin) / 1e9;
    p->span_s = (double)(now - (s->last_ns ? s->last_ns : start)) / 1e9;
    s->last_ns = now;
    for (unsigned i = 0; i < PT_PHASES; i++) {
        struct pt_counters c, d;
        pt_job_counters(job, (enum pt_phase)i, &c);
        pt_counters_sub(&d, &c, &s->before[i]);
        pt_counters_add(&p->c, &d);
        s->before[i] = c;
    }
    for (unsigned i = 0; i < job->spec.workers; i++)
        p->connections += atomic_load(&job->workers[i].flows_open);
    sample_latency(s, job, p);
    sample_tcp(s, job, p);
    return p;
}

void pt_sampler_last(struct pt_sampler *s, const struct pt_job *job, pt_ns now)
{
    if (!s->series.at)
        return;
    const struct pt_point *p = s->series.n ? &s->series.at[s->series.n - 1] : NULL;
    if (!p || p->t_s < p->span_s / 2) /* none, or only of the warm-up */
        (void)pt_sampler_take(s, job, now);
}

void pt_sampler_close(struct pt_sampler *s)
{
    free(s->series.at);
    free(s->seen);
    free(s->now);
    free(s->between);
    *s = (struct pt_sampler){0};
}
