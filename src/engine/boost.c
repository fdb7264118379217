/* boost.c: see boost.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/boost.h"

#include <math.h>

const char *pt_step_verdict_name(enum pt_step_verdict verdict)
{
    static const char *const names[] = {"pays", "holds", "flat", "p99 passed", "broken"};
    return names[verdict];
}

void pt_boost_begin(struct pt_boost_spec *b, const struct pt_plan *plan, uint32_t connections_max)
{
    const struct pt_common *c = &plan->common;
    *b = (struct pt_boost_spec){
        .by = c->boost,
        .connections = c->connections,
        .rate = c->rate.per_s > 0 ? c->rate.per_s : c->boost.rate.per_s,
        .connections_max = connections_max,
    };
    if (c->boost.connections && !pt_plan_given(plan, "connections"))
        b->connections = c->boost.connections;
    if (b->connections > connections_max)
        b->connections = connections_max;
}

/* What a step must bring, as a part of the best before it. */
static double gain_wanted(const struct pt_step *s, const struct pt_step *before)
{
    double growth = before->connections ? (double)s->connections / before->connections - 1 : 1;
    if (before->rate > 0 && s->rate / before->rate - 1 > growth)
        growth = s->rate / before->rate - 1;
    return growth / 2 < PT_BOOST_FLAT ? growth / 2 : PT_BOOST_FLAT;
}

static enum pt_step_verdict judge(const struct pt_boost *by, const struct pt_step *s,
                                  const struct pt_step *best)
{
    if (s->broken || !(s->yield_s > 0))
        return PT_STEP_BROKEN;
    if (by->until_p99 && isfinite(s->p99_us) && s->p99_us * 1e3 > (double)by->until_p99)
        return PT_STEP_P99;
    if (s->yield_s >= best->yield_s * (1 + gain_wanted(s, best)))
        return PT_STEP_PAYS;
    return by->until_flat ? PT_STEP_FLAT : PT_STEP_HOLDS;
}

static bool ends(enum pt_step_verdict v)
{
    return v == PT_STEP_FLAT || v == PT_STEP_P99 || v == PT_STEP_BROKEN;
}

/* The next step's load; false when there is no more to be had. */
static bool add(const struct pt_boost_spec *b, struct pt_step *s)
{
    uint64_t connections = (uint64_t)s->connections + b->by.connections;
    bool more = b->by.rate.per_s > 0 || connections <= b->connections_max;
    s->connections = connections < b->connections_max ? (uint32_t)connections : b->connections_max;
    s->rate += b->by.rate.per_s;
    return more;
}

int pt_boost(const struct pt_boost_spec *b, pt_step_run run, pt_step_judged judged, void *ctx,
             struct pt_err *e)
{
    struct pt_step load = {.connections = b->connections, .rate = b->rate};
    struct pt_step best = {.connections = 0};
    for (unsigned i = 0; i < PT_BOOST_STEPS_MAX; i++) {
        struct pt_step s = load;
        int rc = run(ctx, &s, e);
        if (rc < 0)
            return rc;
        s.verdict = judge(&b->by, &s, &best);
        /* Little more is still more, as long as it does not end the boost. */
        bool is_best = i == 0 || s.verdict == PT_STEP_PAYS ||
                       (s.verdict == PT_STEP_HOLDS && s.yield_s > best.yield_s);
        judged(ctx, &s, is_best);
        if (is_best)
            best = s;
        if (ends(s.verdict) || !add(b, &load))
            return 0;
    }
    return 0;
}
