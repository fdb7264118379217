/* impair.c: see impair.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/impair.h"

#include <errno.h>
#include <math.h>

#define DELAY_MAX (3600 * PT_S)
#define RATE_MAX  ((uint64_t)10000000000000)
#define LEN_MAX   ((size_t)1 << 30)

static int check_delay(const struct pt_delay *d, struct pt_err *e)
{
    if (d->a < 0 || d->b < 0 || d->a > DELAY_MAX || d->b > DELAY_MAX)
        return pt_fail(e, -EINVAL, "a delay lies between 0 and one hour");
    if (d->kind == PT_DELAY_UNIFORM && d->a > d->b)
        return pt_fail(e, -EINVAL, "delay uniform:A-B wants A <= B");
    if (d->kind != PT_DELAY_TABLE)
        return 0;
    double sum = 0;
    if (d->count == 0 || d->count > PT_DELAY_ROWS)
        return pt_fail(e, -EINVAL, "a delay table has 1 to %d rows", PT_DELAY_ROWS);
    for (unsigned i = 0; i < d->count; i++) {
        if (d->rows[i].delay < 0 || d->rows[i].delay > DELAY_MAX)
            return pt_fail(e, -EINVAL, "a delay lies between 0 and one hour");
        if (!(d->rows[i].weight >= 0 && d->rows[i].weight <= 1e9))
            return pt_fail(e, -EINVAL, "a weight in a delay table is a number from 0 to 1e9");
        sum += d->rows[i].weight;
    }
    return sum > 0 ? 0 : pt_fail(e, -EINVAL, "the weights of a delay table sum to 0");
}

static int check_chance(const struct pt_chance *c, const char *what, struct pt_err *e)
{
    bool shares = c->kind == PT_CHANCE_RANDOM || c->kind == PT_CHANCE_BURST;
    if (shares && !(c->p >= 0 && c->p <= 1))
        return pt_fail(e, -EINVAL, "%s: a probability lies between 0%% and 100%%", what);
    if (c->kind == PT_CHANCE_BURST && !(c->r > 0 && c->r <= 1))
        return pt_fail(e, -EINVAL, "%s: the chance that a burst ends lies above 0%%, up to 100%%",
                       what);
    if (c->kind == PT_CHANCE_EVERY && c->every == 0)
        return pt_fail(e, -EINVAL, "%s every:N wants N >= 1", what);
    return 0;
}

int pt_impair_check(const struct pt_impair_spec *spec, struct pt_err *e)
{
    const struct pt_stall *stall = &spec->stall;
    const struct pt_reorder *reorder = &spec->reorder;
    int rc = check_delay(&spec->delay, e);
    if (!rc)
        rc = check_chance(&spec->loss, "loss", e);
    if (!rc)
        rc = check_chance(&spec->dup, "dup", e);
    if (rc)
        return rc;
    if (spec->dup.kind == PT_CHANCE_BURST)
        return pt_fail(e, -EINVAL, "dup knows P%% and every:N, no bursts");
    if (stall->length < 0 || stall->every < 0 || stall->at < 0 || stall->length > DELAY_MAX)
        return pt_fail(e, -EINVAL, "a stall lasts between 0 and one hour");
    if (stall->every && stall->length >= stall->every)
        return pt_fail(e, -EINVAL,
                       "a stall must be shorter than its period, or nothing ever passes");
    if (reorder->every && !reorder->by_packets == !reorder->by_ns)
        return pt_fail(e, -EINVAL, "reorder holds back by a number of packets or by a time");
    if (reorder->by_packets >= reorder->every && reorder->every)
        return pt_fail(e, -EINVAL,
                       "reorder every:N:by:K wants K < N, or a second packet is held "
                       "while the first still is");
    if (reorder->by_ns < 0 || reorder->by_ns > DELAY_MAX)
        return pt_fail(e, -EINVAL, "reorder holds a packet back for up to one hour");
    if (spec->rate.unit != PT_RATE_NONE && (spec->rate.per_s == 0 || spec->rate.per_s > RATE_MAX))
        return pt_fail(e, -EINVAL, "a rate cap lies between 1 and 10T per second");
    if (spec->rate.queue_ns < 0 || spec->rate.queue_ns > DELAY_MAX)
        return pt_fail(e, -EINVAL, "the queue of a rate cap holds up to one hour of its output");
    if (!(fabs(spec->clock_drift_ppm) <= 1e5))
        return pt_fail(e, -EINVAL, "a clock drifts by up to 100000 ppm");
    return 0;
}

int pt_impair_check_stream(const struct pt_impair_spec *spec, struct pt_err *e)
{
    const char *what = spec->loss.kind       ? "loss"
                       : spec->dup.kind      ? "dup"
                       : spec->reorder.every ? "reorder"
                       : spec->overtake      ? "overtake"
                                             : NULL;
    if (what)
        return pt_fail(
            e, -EINVAL,
            "%s means nothing to a TCP stream, whose bytes arrive once and in order: use UDP, "
            "or delay, stall and rate-cap",
            what);
    return pt_impair_check(spec, e);
}

bool pt_impair_active(const struct pt_impair_spec *spec)
{
    return spec->delay.kind || spec->stall.length || spec->loss.kind || spec->dup.kind ||
           spec->reorder.every || spec->rate.unit;
}

void pt_impair_record_merge(struct pt_impair_record *into, const struct pt_impair_record *from)
{
    into->offered += from->offered;
    into->offered_bytes += from->offered_bytes;
    into->passed += from->passed;
    into->passed_bytes += from->passed_bytes;
    into->lost += from->lost;
    into->rate_dropped += from->rate_dropped;
    into->queue_dropped += from->queue_dropped;
    into->duplicated += from->duplicated;
    into->held += from->held;
    into->stalled += from->stalled;
    into->departed += from->departed;
    into->departed_bytes += from->departed_bytes;
    into->reordered += from->reordered;
    into->forgotten += from->forgotten;
    into->unseen += from->unseen;
    into->refused += from->refused;
    into->unsent += from->unsent;
    pt_hist_merge(&into->delay, &from->delay);
    pt_hist_merge(&into->lateness, &from->lateness);
}

/* Marsaglia's polar method; the second value of each pair is not kept, so that a draw has no state.
 */
static double draw_normal(struct pt_rng *rng)
{
    for (;;) {
        double u = 2 * pt_rng_unit(rng) - 1;
        double v = 2 * pt_rng_unit(rng) - 1;
        double s = u * u + v * v;
        if (s > 0 && s < 1)
            return u * sqrt(-2 * log(s) / s);
    }
}

static pt_ns draw_table(const struct pt_delay *d, struct pt_rng *rng)
{
    double sum = 0;
    for (unsigned i = 0; i < d->count; i++)
        sum += d->rows[i].weight;
    double at = pt_rng_unit(rng) * sum;
    unsigned last = 0;
    for (unsigned i = 0; i < d->count; i++) {
        if (d->rows[i].weight <= 0)
            continue;
        last = i;
        if (at < d->rows[i].weight)
            break;
        at -= d->rows[i].weight;
    }
    return d->rows[last].delay;
}

pt_ns pt_delay_draw(const struct pt_delay *d, struct pt_rng *rng)
{
    double x;
    switch (d->kind) {
    case PT_DELAY_FIXED:
        return d->a;
    case PT_DELAY_UNIFORM:
        return d->a + (pt_ns)pt_rng_below(rng, (uint64_t)(d->b - d->a) + 1);
    case PT_DELAY_NORMAL:
        do
            x = (double)d->a + (double)d->b * draw_normal(rng);
        while (x < 0);
        return (pt_ns)x;
    case PT_DELAY_EXP:
        return (pt_ns)pt_rng_exp(rng, (double)d->a);
    case PT_DELAY_TABLE:
        return draw_table(d, rng);
    case PT_DELAY_NONE:
        break;
    }
    return 0;
}

static void init(struct pt_impair *im, const struct pt_impair_spec *spec,
                 struct pt_impair_record *record, uint64_t salt, bool stream)
{
    *im = (struct pt_impair){.spec = *spec, .record = record, .stream = stream};
    if (im->spec.rate.queue_ns == 0)
        im->spec.rate.queue_ns = PT_IMPAIR_QUEUE_NS;
    pt_rng_init(&im->rng, spec->seed ^ (salt * 0x9e3779b97f4a7c15u));
}

void pt_impair_init(struct pt_impair *im, const struct pt_impair_spec *spec,
                    struct pt_impair_record *record, uint64_t salt)
{
    init(im, spec, record, salt, false);
}

void pt_impair_init_stream(struct pt_impair *im, const struct pt_impair_spec *spec,
                           struct pt_impair_record *record, uint64_t salt)
{
    init(im, spec, record, salt, true);
}

/* `turn`: packets that have reached the stage, this one included. */
static bool hits(struct pt_impair *im, const struct pt_chance *c, uint64_t turn)
{
    switch (c->kind) {
    case PT_CHANCE_RANDOM:
        return pt_rng_unit(&im->rng) < c->p;
    case PT_CHANCE_EVERY:
        return turn % c->every == 0;
    case PT_CHANCE_BURST:
        im->bad = im->bad ? pt_rng_unit(&im->rng) >= c->r : pt_rng_unit(&im->rng) < c->p;
        return im->bad;
    case PT_CHANCE_NEVER:
        break;
    }
    return false;
}

/* When the capped link has sent the packet, or false when its queue is full. The division's rest is
 * carried on while the link stays busy, so the rate is exact over any number of packets. */
static bool through_rate_cap(struct pt_impair *im, size_t len, pt_ns *at)
{
    const struct pt_rate_cap *cap = &im->spec.rate;
    if (cap->unit == PT_RATE_NONE)
        return true;
    if (im->busy <= *at) {
        im->busy = *at;
        im->busy_rest = 0;
    }
    if (!im->stream && im->busy - *at > cap->queue_ns)
        return false;
    if (len > LEN_MAX)
        len = LEN_MAX;
    uint64_t units = cap->unit == PT_RATE_BITS ? 8 * (uint64_t)len : 1;
    uint64_t whole = units * (uint64_t)PT_S + im->busy_rest;
    im->busy += (pt_ns)(whole / cap->per_s);
    im->busy_rest = whole % cap->per_s;
    *at = im->busy;
    return true;
}

static pt_ns past_stall(struct pt_impair *im, pt_ns at)
{
    const struct pt_stall *s = &im->spec.stall;
    pt_ns since = at - im->origin - s->at;
    if (s->length == 0 || since < 0)
        return at;
    pt_ns into = s->every ? since % s->every : since;
    if (into >= s->length)
        return at;
    im->record->stalled++;
    return at - into + s->length;
}

/* Decides whether this packet is held back, and whether it is the one the held packet waits for. */
static bool reorder(struct pt_impair *im, struct pt_verdict *v)
{
    const struct pt_reorder *r = &im->spec.reorder;
    if (im->hold_left && --im->hold_left == 0)
        v->release = true;
    if (r->every == 0 || ++im->reorder_turn % r->every != 0)
        return false;
    im->record->held++;
    v->hold = r->by_packets > 0;
    im->hold_left = r->by_packets;
    v->at += r->by_packets ? PT_IMPAIR_HOLD_NS : r->by_ns;
    return true;
}

void pt_impair_packet(struct pt_impair *im, pt_ns now, size_t len, struct pt_verdict *v)
{
    const struct pt_impair_spec *spec = &im->spec;
    struct pt_impair_record *record = im->record;
    *v = (struct pt_verdict){.at = now};
    if (!im->started) {
        im->started = true;
        im->origin = now;
        im->last = now;
    }
    record->offered++;
    record->offered_bytes += len;
    if (hits(im, &spec->loss, ++im->loss_turn)) {
        record->lost++;
        v->fate = PT_IMPAIR_LOST;
        return;
    }
    if (!through_rate_cap(im, len, &v->at)) {
        record->rate_dropped++;
        v->fate = PT_IMPAIR_RATE_DROPPED;
        return;
    }
    record->passed++;
    record->passed_bytes += len;
    v->at += pt_delay_draw(&spec->delay, &im->rng);
    bool held_back = reorder(im, v);
    v->at = past_stall(im, v->at);
    if (!held_back && !spec->overtake) {
        if (v->at < im->last)
            v->at = im->last;
        im->last = v->at;
    }
    v->copies = 1;
    if (hits(im, &spec->dup, ++im->dup_turn)) {
        record->duplicated++;
        v->copies = 2;
    }
}

pt_ns pt_impair_room(const struct pt_impair *im, pt_ns now)
{
    pt_ns from = im->busy - im->spec.rate.queue_ns;
    return im->spec.rate.unit != PT_RATE_NONE && from > now ? from : now;
}
