/* rounds.c: see rounds.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/rounds.h"

#include "engine/load.h"
#include "engine/search.h"
#include "os/signal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_NS     (1 * PT_S)
#define IDLE_WARMUP (200 * PT_MS)

void pt_rounds_say(const struct pt_rounds *r, const char *fmt, ...)
{
    char line[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (r->say)
        r->say(r->run.ctx, line);
}

void pt_rounds_yield_path(const struct pt_workload *wl, char *out, size_t cap)
{
    bool operations = !strcmp(wl->yield, "operations_per_s");
    snprintf(out, cap, "rates.%s%s", operations ? "" : "rx_", wl->yield);
}

void pt_choice_add(json_t *chosen, const char *what, const char *value, const char *fmt, ...)
{
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    if (!chosen)
        return;
    json_array_append_new(chosen,
                          json_pack("{s:s, s:s, s:s}", "what", what, "value", value, "why", why));
}

static void lost_load(struct pt_result *r, const char *why)
{
    pt_result_warn(r, "partial: %s", why);
    pt_result_status(r, PT_RESULT_PARTIAL);
}

/* The same test for a moment without the load, to compare with: its latencies, or NULL. */
static json_t *without_load(const struct pt_run_spec *with)
{
    struct pt_plan plan;
    struct pt_result *r = NULL;
    json_t *latency = NULL;
    if (pt_plan_copy(&plan, with->plan, NULL) < 0)
        return NULL;
    struct pt_common *c = &plan.common;
    if (c->requests || c->duration > IDLE_NS)
        c->duration = IDLE_NS;
    c->requests = 0;
    c->warmup = c->warmup < IDLE_WARMUP ? c->warmup : IDLE_WARMUP;
    struct pt_run_spec spec = *with;
    spec.plan = &plan;
    spec.live = NULL;
    if (pt_run(&spec, &r, NULL) == 0) {
        latency = json_deep_copy(pt_result_at(r, "latency"));
        json_object_del(latency, "hdr");
        pt_result_free(r);
    }
    pt_plan_fini(&plan);
    return latency;
}

static int run_beside(const struct pt_load *load, const struct pt_run_spec *spec,
                      struct pt_result **out, struct pt_err *e)
{
    struct pt_load_run l;
    struct pt_err why = {0};
    json_t *block = NULL, *idle = without_load(spec);
    int started = pt_load_start(&l, load, spec, &why);
    int rc = started == -EINTR ? pt_fail(e, started, "%s", why.text) : pt_run(spec, out, e);
    int ended = started < 0 ? started : pt_load_end(&l, &block, &why);
    if (rc == 0 && ended < 0)
        lost_load(*out, why.text);
    if (rc < 0 || ended < 0) {
        json_decref(block);
        json_decref(idle);
        return rc;
    }
    const char *status = json_string_value(json_object_get(block, "status"));
    const char *first = json_string_value(json_array_get(json_object_get(block, "warnings"), 0));
    if (!status || strcmp(status, "ok") != 0)
        lost_load(*out, first ? first : "the load broke");
    pt_result_take(*out, "load", block);
    if (idle)
        pt_result_take(*out, "load.idle", idle);
    return 0;
}

int pt_rounds_run(const struct pt_run_spec *spec, struct pt_result **out, struct pt_err *e)
{
    const struct pt_load *load = spec->wl->load ? spec->wl->load(spec->plan) : NULL;
    return load && load->given ? run_beside(load, spec, out, e) : pt_run(spec, out, e);
}

static int one(const struct pt_rounds *r, struct pt_result **out, struct pt_err *e)
{
    const struct pt_run_spec *s = &r->run;
    const struct pt_search_limit *limit = s->wl->search ? s->wl->search(s->plan) : NULL;
    if (limit && limit->given)
        return pt_rounds_search(r, limit, out, e);
    if (s->plan->common.boost.every)
        return pt_rounds_boost(r, out, e);
    return pt_rounds_run(s, out, e);
}

static int repeat(const struct pt_rounds *r, uint32_t times, struct pt_result **out,
                  struct pt_err *e)
{
    struct pt_result **runs = calloc(times, sizeof(struct pt_result *));
    if (!runs)
        return pt_fail(e, -ENOMEM, "no memory for %u runs", times);
    uint32_t n = 0;
    int rc = 0;
    while (n < times && rc == 0 && !pt_signal_seen()) {
        pt_rounds_say(r, "run %u of %u", n + 1, times);
        rc = one(r, &runs[n], e);
        if (rc == 0 && n && pt_signal_seen())
            pt_result_free(runs[n]); /* half a run beside whole ones */
        else
            n += rc == 0;
    }
    /* What was measured before a run failed is not thrown away. */
    if (n) {
        int failed = rc;
        char why[sizeof(e->text)];
        snprintf(why, sizeof(why), "%s", failed ? e->text : "");
        rc = pt_result_repeat(runs, n, out, e);
        if (rc == 0 && n < times) {
            pt_result_warn(*out, "partial: %u of %u runs were done%s%s", n, times,
                           failed             ? ": "
                           : pt_signal_seen() ? ", then interrupted"
                                              : "",
                           why);
            pt_result_status(*out, PT_RESULT_PARTIAL);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        pt_result_free(runs[i]);
    free(runs);
    return rc;
}

int pt_rounds(const struct pt_rounds *r, struct pt_result **out, struct pt_err *e)
{
    uint32_t times = r->run.plan->common.repeat;
    return times > 1 ? repeat(r, times, out, e) : one(r, out, e);
}
