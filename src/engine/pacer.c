/* pacer.c: see pacer.h.
 *
 * A due instant is kept as whole nanoseconds and a rest in units of 1 / rate.ops ns, and moved on
 * by a stride of the same shape: Bresenham's line, one addition and one comparison per operation.
 * Bounds: ops < 2^53 (a double's mantissa), per_s <= 2^36, flows <= 2^20, so every product below
 * stays under 2^123.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/pacer.h"

#include <errno.h>
#include <math.h>

__extension__ typedef unsigned __int128 u128;

#define PER_S_MAX ((uint64_t)1 << 36)

/* The convergents of the continued fraction of the double, which is itself the exact fraction
 * num / den: Euclid's algorithm, until one rounds to the same double. */
int pt_pacer_rate_from(struct pt_pacer_rate *r, double rate_ops)
{
    if (!(rate_ops >= PT_PACER_RATE_MIN && rate_ops <= PT_PACER_RATE_MAX))
        return -EINVAL;
    int exponent;
    u128 num = (u128)ldexp(frexp(rate_ops, &exponent), 53);
    u128 den = (u128)1 << (53 - exponent);
    u128 p = 1, q = 0, p_old = 0, q_old = 1;
    while (den) {
        u128 whole = num / den, rest = num % den;
        u128 p_new = whole * p + p_old, q_new = whole * q + q_old;
        if (q_new > PER_S_MAX)
            break;
        p_old = p, q_old = q, p = p_new, q = q_new;
        if ((double)p / (double)q == rate_ops)
            break;
        num = den, den = rest;
    }
    *r = (struct pt_pacer_rate){.ops = (uint64_t)p, .per_s = (uint64_t)q};
    return 0;
}

static pt_ns add_saturating(pt_ns a, pt_ns b)
{
    return b > PT_NS_MAX - a ? PT_NS_MAX : a + b;
}

/* The distance of `ops` operations of the whole test. */
static struct pt_pacer_stride stride_of(struct pt_pacer_rate rate, unsigned ops)
{
    u128 span = (u128)ops * rate.per_s * (uint64_t)PT_S;
    u128 ns = span / rate.ops;
    return (struct pt_pacer_stride){.ns = ns > PT_NS_MAX ? PT_NS_MAX : (pt_ns)ns,
                                    .rest = (uint64_t)(span % rate.ops)};
}

static unsigned flows_here(const struct pt_pacer *p)
{
    if (p->worker >= p->flows)
        return 0;
    return (p->flows - p->worker - 1) / p->workers + 1;
}

static double period_ns(struct pt_pacer_rate rate)
{
    return 1e9 * (double)rate.per_s / (double)rate.ops;
}

static void rate_apply(struct pt_pacer *p, struct pt_pacer_rate rate)
{
    unsigned here = flows_here(p);
    p->rate = rate;
    p->near = stride_of(rate, p->workers);
    p->wrap = stride_of(rate, p->flows - (here - 1) * p->workers);
    p->mean_ns = period_ns(rate) * p->flows / here;
}

/* Step `p->step` begins at `begun`: notes when it ends and what comes then. */
static void step_schedule(struct pt_pacer *p, pt_ns begun)
{
    p->change_at = PT_NS_MAX;
    if (p->step >= p->step_count)
        return;
    pt_ns duration = p->steps[p->step].duration_ns;
    p->step++;
    if (!duration)
        return;
    p->change_at = add_saturating(begun, duration);
    p->change_to = (struct pt_pacer_rate){0};
    if (p->step < p->step_count && pt_pacer_rate_from(&p->change_to, p->steps[p->step].rate_ops))
        p->change_to.ops = 0; /* not reached: init checked every step */
}

/* What is left to wait at `at`, stretched from the old period to the new one. The rounding, below
 * 1 / rate.ops ns, is the same in every worker, so their parts still interleave exactly. */
static void rate_change(struct pt_pacer *p, pt_ns at, struct pt_pacer_rate to)
{
    struct pt_pacer_rate from = p->rate;
    if (!to.ops) {
        p->next = PT_NS_MAX;
        return;
    }
    rate_apply(p, to);
    if (p->mode == PT_PACER_POISSON) {
        double left = (double)(p->next - at) + p->next_part;
        left *= period_ns(to) / period_ns(from);
        if (left >= (double)(PT_NS_MAX - at)) {
            p->next = PT_NS_MAX;
            return;
        }
        p->next = at + (pt_ns)left;
        p->next_part = left - floor(left);
        return;
    }
    u128 left = (u128)(uint64_t)(p->next - at) * from.ops + p->next_rest;
    left = left * to.per_s / from.per_s;
    u128 ns = left / to.ops;
    p->next = ns > (u128)(PT_NS_MAX - at) ? PT_NS_MAX : at + (pt_ns)ns;
    p->next_rest = (uint64_t)(left % to.ops);
}

/* Whatever is due at or after a change of rate is due by the new rate. */
static void changes_apply(struct pt_pacer *p)
{
    while (p->next >= p->change_at && p->next != PT_NS_MAX) {
        pt_ns at = p->change_at;
        rate_change(p, at, p->change_to);
        step_schedule(p, at);
    }
}

static void poisson_advance(struct pt_pacer *p)
{
    double gap = pt_rng_exp(&p->rng, p->mean_ns) + p->next_part;
    if (gap >= (double)(PT_NS_MAX - p->next)) {
        p->next = PT_NS_MAX;
        return;
    }
    double whole = floor(gap);
    p->next += (pt_ns)whole;
    p->next_part = gap - whole;
}

static void uniform_advance(struct pt_pacer *p, const struct pt_pacer_stride *by)
{
    p->next = add_saturating(p->next, by->ns);
    p->next_rest += by->rest;
    if (p->next_rest >= p->rate.ops) {
        p->next_rest -= p->rate.ops;
        p->next = add_saturating(p->next, 1);
    }
}

int pt_pacer_init(struct pt_pacer *p, const struct pt_pacer_spec *spec, unsigned worker,
                  unsigned workers, struct pt_err *e)
{
    *p = (struct pt_pacer){.mode = spec->mode,
                           .worker = worker,
                           .workers = workers,
                           .flows = spec->flows ? spec->flows : workers,
                           .flow = worker,
                           .next = PT_NS_MAX,
                           .last = PT_NS_MAX,
                           .change_at = PT_NS_MAX};
    if (worker >= workers || p->flows > PT_PACER_FLOWS_MAX || workers > PT_PACER_FLOWS_MAX)
        return pt_fail(e, -EINVAL, "pacer: worker %u of %u with %u flows is out of range", worker,
                       workers, p->flows);
    if (spec->mode == PT_PACER_CLOSED)
        return 0;
    double first = spec->step_count ? spec->steps[0].rate_ops : spec->rate_ops;
    if (pt_pacer_rate_from(&p->rate, first))
        return pt_fail(e, -EINVAL, "rate %g/s is out of range: give %g to %g operations/s", first,
                       PT_PACER_RATE_MIN, PT_PACER_RATE_MAX);
    for (unsigned i = 0; i < spec->step_count; i++) {
        const struct pt_pacer_step *s = &spec->steps[i];
        struct pt_pacer_rate rate;
        if (pt_pacer_rate_from(&rate, s->rate_ops))
            return pt_fail(e, -EINVAL, "rate %g/s of step %u is out of range: give %g to %g",
                           s->rate_ops, i + 1, PT_PACER_RATE_MIN, PT_PACER_RATE_MAX);
        if (s->duration_ns < 0 || (!s->duration_ns && i + 1 < spec->step_count))
            return pt_fail(e, -EINVAL, "step %u of %u needs a duration above zero", i + 1,
                           spec->step_count);
    }
    p->steps = spec->steps;
    p->step_count = spec->step_count;
    pt_rng_init(&p->rng, spec->seed);
    pt_rng_init(&p->rng, pt_rng_u64(&p->rng) + worker * 0xd1342543de82ef95u);
    return 0;
}

void pt_pacer_start(struct pt_pacer *p, pt_ns now)
{
    if (p->mode == PT_PACER_CLOSED)
        return;
    p->last = now;
    if (!flows_here(p))
        return;
    rate_apply(p, p->rate);
    p->next = now;
    step_schedule(p, now);
    if (p->mode == PT_PACER_POISSON) {
        poisson_advance(p);
    } else {
        struct pt_pacer_stride offset = stride_of(p->rate, p->worker);
        uniform_advance(p, &offset);
    }
    changes_apply(p);
}

pt_ns pt_pacer_take(struct pt_pacer *p)
{
    pt_ns due = p->next;
    if (due == PT_NS_MAX)
        return due;
    bool last_flow = p->flows - p->flow <= p->workers;
    if (p->mode == PT_PACER_POISSON)
        poisson_advance(p);
    else
        uniform_advance(p, last_flow ? &p->wrap : &p->near);
    p->flow = last_flow ? p->worker : p->flow + p->workers;
    p->last = due;
    p->taken++;
    if (PT_UNLIKELY(p->next >= p->change_at))
        changes_apply(p);
    return due;
}

unsigned pt_pacer_take_due(struct pt_pacer *p, pt_ns now, pt_ns *due, unsigned max)
{
    unsigned n = 0;
    while (n < max && p->next <= now && p->next != PT_NS_MAX)
        due[n++] = pt_pacer_take(p);
    return n;
}

unsigned pt_pacer_due(const struct pt_pacer *p, pt_ns now, unsigned max)
{
    if (p->next > now)
        return 0;
    struct pt_pacer ahead = *p;
    unsigned n = 0;
    while (n < max && ahead.next <= now && pt_pacer_take(&ahead) != PT_NS_MAX)
        n++;
    return n;
}

int pt_pacer_change(struct pt_pacer *p, double rate_ops, pt_ns at)
{
    struct pt_pacer_rate to = {0};
    if (p->mode == PT_PACER_CLOSED || p->last == PT_NS_MAX || at < p->last)
        return -EINVAL;
    if (rate_ops != 0.0 && pt_pacer_rate_from(&to, rate_ops))
        return -EINVAL;
    if (p->change_at != PT_NS_MAX)
        return -EBUSY;
    p->change_at = at;
    p->change_to = to;
    changes_apply(p);
    return 0;
}
