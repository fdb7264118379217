/* boost_run.c: --boost with real runs: each step is one, and the document is that of the best.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/boost.h"
#include "engine/rounds.h"
#include "os/signal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define STEP_WARMUP    (500 * PT_MS)
#define FDS_FOR_OTHERS 256 /* descriptors that are not flows */

struct booster {
    const struct pt_rounds *r;
    struct pt_result *now, *best;
    json_t *steps;
};

static int run_once(const struct booster *x, const struct pt_step *s, struct pt_result **out,
                    struct pt_err *e)
{
    struct pt_plan plan;
    int rc = pt_plan_copy(&plan, x->r->run.plan, e);
    if (rc < 0)
        return rc;
    struct pt_common *c = &plan.common;
    c->connections = s->connections;
    c->rate.per_s = s->rate;
    c->rate.bits |= c->boost.rate.bits;
    c->duration = c->boost.every;
    c->warmup = c->warmup < STEP_WARMUP ? c->warmup : STEP_WARMUP;
    struct pt_run_spec spec = x->r->run;
    spec.plan = &plan;
    spec.live = NULL;
    rc = pt_rounds_run(&spec, out, e);
    pt_plan_fini(&plan);
    return rc;
}

static double at(const struct pt_result *r, const char *path)
{
    double v = (double)NAN;
    return pt_result_get_real(r, path, &v) ? v : (double)NAN;
}

/* A percentile below p99 that is over the limit says that p99 is too. */
static double p99_at_least(const struct pt_result *r)
{
    static const char *const paths[] = {"latency.p99_us", "latency.p95_us", "latency.p90_us",
                                        "latency.p75_us", "latency.p50_us"};
    double v = (double)NAN;
    for (size_t i = 0; i < PT_COUNT(paths) && !isfinite(v); i++)
        v = at(r, paths[i]);
    return v;
}

static int step(void *ctx, struct pt_step *s, struct pt_err *e)
{
    struct booster *x = ctx;
    char yield[64];
    int rc = run_once(x, s, &x->now, e);
    if (rc < 0)
        return rc;
    pt_rounds_yield_path(x->r->run.wl, yield, sizeof(yield));
    if (!pt_result_get_real(x->now, yield, &s->yield_s))
        s->yield_s = 0;
    s->p99_us = p99_at_least(x->now);
    s->broken = pt_result_get_status(x->now) != PT_RESULT_OK;
    if (!pt_signal_seen())
        return 0;
    /* Half a step counts for nothing, unless there is nothing else. */
    if (x->best)
        pt_result_free(x->now);
    else
        x->best = x->now;
    x->now = NULL;
    return pt_fail(e, -EINTR, "interrupted");
}

static json_t *real_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *step_json(const struct booster *x, const struct pt_step *s)
{
    char yield[64];
    pt_rounds_yield_path(x->r->run.wl, yield, sizeof(yield));
    const char *const paths[] = {"rates.operations_per_s", yield, "rates.loss_pct",
                                 "latency.mean_us", "latency.p99_us"};
    json_t *o = json_pack("{s:i, s:o, s:s}", "connections", (int)s->connections, "rate",
                          s->rate > 0 ? json_real(s->rate) : json_null(), "verdict",
                          pt_step_verdict_name(s->verdict));
    for (size_t i = 0; i < PT_COUNT(paths); i++)
        json_object_set_new(o, strchr(paths[i], '.') + 1, real_or_null(at(x->now, paths[i])));
    return o;
}

static void tell(const struct booster *x, const struct pt_step *s)
{
    const char *unit = x->r->run.wl->yield;
    bool bits = !strcmp(unit, "bits_per_s");
    char rate[PT_UNITS_TEXT], yield[PT_UNITS_TEXT], p99[PT_UNITS_TEXT];
    pt_si_show(rate, sizeof(rate), s->rate, bits ? "bit/s" : "/s");
    pt_si_show(yield, sizeof(yield), s->yield_s,
               bits                             ? "bit/s"
               : !strcmp(unit, "packets_per_s") ? "pps"
                                                : "/s");
    pt_time_show(p99, sizeof(p99), at(x->now, "latency.p99_us") / 1e6);
    pt_rounds_say(x->r, "%6u connections  %12s  %14s  p99 %10s  %s", s->connections,
                  s->rate > 0 ? rate : "closed loop", yield, p99, pt_step_verdict_name(s->verdict));
}

static void judged(void *ctx, const struct pt_step *s, bool best)
{
    struct booster *x = ctx;
    json_array_append_new(x->steps, step_json(x, s));
    tell(x, s);
    if (best) {
        pt_result_free(x->best);
        x->best = x->now;
    } else {
        pt_result_free(x->now);
    }
    x->now = NULL;
}

static uint32_t connections_max(const struct pt_rounds *r)
{
    int64_t fds = (pt_fd_limit_raise() - FDS_FOR_OTHERS) / 2;
    (void)r;
    return fds < 1 ? 1 : fds < PT_FLOWS_MAX ? (uint32_t)fds : PT_FLOWS_MAX;
}

int pt_rounds_boost(const struct pt_rounds *r, struct pt_result **out, struct pt_err *e)
{
    struct booster x = {.r = r, .steps = json_array()};
    struct pt_boost_spec b;
    struct pt_err why = {0};
    pt_boost_begin(&b, r->run.plan, connections_max(r));
    int rc = pt_boost(&b, step, judged, &x, &why);
    if (!x.best) {
        json_decref(x.steps);
        return pt_fail(e, rc < 0 ? rc : -EIO, "%s", why.text);
    }
    unsigned done = (unsigned)json_array_size(x.steps);
    const char *verdict =
        json_string_value(json_object_get(json_array_get(x.steps, done ? done - 1 : 0), "verdict"));
    if (rc == 0 && done == 1 && verdict && strcmp(verdict, "p99 passed") == 0)
        pt_result_warn(x.best, "the first step already passed the limit of p99");
    pt_result_take(x.best, "steps", x.steps);
    if (rc < 0) {
        pt_result_warn(x.best, "partial: the boost ended after %u steps: %s", done, why.text);
        pt_result_status(x.best, PT_RESULT_PARTIAL);
    }
    *out = x.best;
    return 0;
}
