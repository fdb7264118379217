/* live.c: see live.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/live.h"

#include <math.h>

#define FIGURES 4

struct line {
    struct pt_progress_figure at[FIGURES];
    size_t n;
};

static void add(struct line *l, const char *name, double value, const char *unit)
{
    if (l->n < FIGURES)
        l->at[l->n++] = (struct pt_progress_figure){.name = name, .value = value, .unit = unit};
}

static double per_s(uint64_t n, const struct pt_point *p)
{
    return p->span_s > 0 ? (double)n / p->span_s : (double)NAN;
}

static double us(uint64_t ns)
{
    return ns ? (double)ns / 1e3 : (double)NAN;
}

static void round_trips(struct line *line, const struct pt_point *p)
{
    add(line, "p50", us(p->p50_ns), "us");
    add(line, "p99", us(p->p99_ns), "us");
    add(line, "round trips", per_s(p->c.ok, p), "operation/s");
    if (pt_counters_errors(&p->c))
        add(line, "errors", (double)pt_counters_errors(&p->c), "");
}

/* The peer's points come by themselves, an instant later than ours; without one there is a gap. */
static void received(struct line *line, const struct pt_point *p, const char *name, bool packets)
{
    double v = !p ? (double)NAN : packets ? per_s(p->c.rx_packets, p) : per_s(p->c.rx_bytes * 8, p);
    add(line, name, v, packets ? "packet/s" : "bit/s");
}

static void sent(struct line *line, const struct pt_point *p, bool packets)
{
    double v = packets ? per_s(p->c.tx_packets, p) : per_s(p->c.tx_bytes * 8, p);
    add(line, "sent", v, packets ? "packet/s" : "bit/s");
}

static void transfer(struct line *line, const struct pt_live_lines *x, const struct pt_live *l)
{
    const struct pt_shape *s = x->shape;
    if (s->forward && s->forward < s->flows) {
        received(line, l->peer, "forward", x->packets);
        received(line, l->local, "reverse", x->packets);
    } else if (s->forward) {
        received(line, l->peer, x->packets ? "delivered" : "received", x->packets);
        sent(line, l->local, x->packets);
    } else {
        received(line, l->local, "received", x->packets);
    }
    if (s->chan == PT_CHAN_TCP && s->forward)
        add(line, "retransmits", (double)l->local->retransmits, "");
}

void pt_live_show(void *ctx, const struct pt_live *l)
{
    struct pt_live_lines *x = ctx;
    struct line line = {.n = 0};
    if (!l->local)
        return;
    if (x->shape->both)
        round_trips(&line, l->local);
    else
        transfer(&line, x, l);
    pt_ns elapsed = (pt_ns)(l->elapsed_s * 1e9), total = (pt_ns)(l->total_s * 1e9);
    /* To 10 ms: a line comes a little after its instant. What lies mostly in the warm-up is that.
     */
    pt_ns measured = (elapsed - x->shape->warmup + 5 * PT_MS) / (10 * PT_MS) * (10 * PT_MS);
    if (measured <= 0 || (double)measured < l->local->span_s * 1e9 / 2)
        measured = -1;
    pt_output_live(x->output, measured, line.at, line.n, elapsed, total);
}
