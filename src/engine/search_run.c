/* search_run.c: --search with real runs: each trial is one, and the document is that of the best.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/rounds.h"
#include "engine/search.h"
#include "os/signal.h"

#include <errno.h>
#include <stdio.h>

#define TRIAL_MIN    (1 * PT_S)
#define TRIAL_MAX    (2 * PT_S)
#define TRIAL_WARMUP (200 * PT_MS)

struct searcher {
    const struct pt_rounds *r;
    struct pt_search search;
    struct pt_result *best; /* the confirming run, else the last trial that held, else the flood */
    bool bits;
};

static pt_ns smaller(pt_ns a, pt_ns b)
{
    return a < b ? a : b;
}

/* The load of one trial. Confirmations have the length that was asked for. */
static void set_load(struct pt_common *c, const struct pt_trial *t, bool bits)
{
    c->rate = (struct pt_rate){.per_s = t->rate, .bits = bits};
    if (t->kind == PT_TRIAL_CONFIRM)
        return;
    pt_ns fifth = c->duration / 5;
    c->duration = smaller(c->duration, fifth < TRIAL_MIN ? TRIAL_MIN : smaller(fifth, TRIAL_MAX));
    c->warmup = smaller(c->warmup, TRIAL_WARMUP);
}

static int run_once(const struct searcher *x, const struct pt_trial *t, struct pt_result **out,
                    struct pt_err *e)
{
    struct pt_plan plan;
    int rc = pt_plan_copy(&plan, x->r->run.plan, e);
    if (rc < 0)
        return rc;
    set_load(&plan.common, t, x->bits);
    struct pt_run_spec spec = x->r->run;
    spec.plan = &plan;
    if (t->kind != PT_TRIAL_CONFIRM)
        spec.live = NULL;
    rc = pt_rounds_run(&spec, out, e);
    pt_plan_fini(&plan);
    return rc;
}

static int read_trial(const struct searcher *x, const struct pt_result *r, struct pt_trial *t,
                      struct pt_err *e)
{
    const char *unit = x->r->run.wl->yield;
    char tx[64], rx[64];
    snprintf(tx, sizeof(tx), "rates.tx_%s", unit);
    snprintf(rx, sizeof(rx), "rates.rx_%s", unit);
    if (pt_signal_seen())
        return pt_fail(e, -EINTR, "interrupted");
    const char *why = pt_result_get_str(r, "warnings.0");
    if (pt_result_get_status(r) == PT_RESULT_PARTIAL || !pt_result_get_real(r, tx, &t->sent_s) ||
        !pt_result_get_real(r, rx, &t->received_s))
        return pt_fail(e, -EPIPE, "a trial broke: %s", why ? why : "it has no figures");
    if (!pt_result_get_real(r, "rates.loss_pct", &t->loss_pct))
        t->loss_pct = 100;
    return 0;
}

static void tell(const struct searcher *x, const struct pt_trial *t)
{
    static const char *const words[] = {"ok", "too much", "the generator is the limit"};
    const char *unit = x->bits ? "bit/s" : "pps";
    char rate[PT_UNITS_TEXT], sent[PT_UNITS_TEXT], loss[PT_UNITS_TEXT];
    pt_si_show(rate, sizeof(rate), t->rate, unit);
    pt_si_show(sent, sizeof(sent), t->sent_s, unit);
    pt_percent_show(loss, sizeof(loss), t->loss_pct);
    pt_rounds_say(x->r, "%-8s %12s  sent %12s  lost %8s  %s", pt_trial_kind_name(t->kind),
                  t->rate > 0 ? rate : "-", sent, loss, words[pt_trial_judge(&x->search.limit, t)]);
}

static int trial(void *ctx, struct pt_trial *t, struct pt_err *e)
{
    struct searcher *x = ctx;
    struct pt_result *r = NULL;
    int rc = run_once(x, t, &r, e);
    if (rc < 0)
        return rc;
    rc = read_trial(x, r, t, e);
    if (rc == 0)
        tell(x, t);
    bool holds = rc == 0 && t->loss_pct <= x->search.limit.loss_pct;
    if (x->best && (rc < 0 || !(t->kind == PT_TRIAL_CONFIRM || holds))) {
        pt_result_free(r);
        return rc;
    }
    pt_result_free(x->best);
    x->best = r;
    return rc;
}

static json_t *trials_json(const struct searcher *x)
{
    const char *unit = x->r->run.wl->yield;
    char tx[64], rx[64];
    snprintf(tx, sizeof(tx), "tx_%s", unit);
    snprintf(rx, sizeof(rx), "rx_%s", unit);
    json_t *all = json_array();
    for (unsigned i = 0; i < x->search.n; i++) {
        const struct pt_trial *t = &x->search.trial[i];
        json_array_append_new(all, json_pack("{s:s, s:o, s:f, s:f, s:f, s:b, s:s}", "trial",
                                             pt_trial_kind_name(t->kind), "rate",
                                             t->rate > 0 ? json_real(t->rate) : json_null(), tx,
                                             t->sent_s, rx, t->received_s, "loss_pct", t->loss_pct,
                                             "ok", t->verdict == PT_TRIAL_OK, "verdict",
                                             pt_trial_verdict_name(t->verdict)));
    }
    return all;
}

/* The answer stands first in the headline. */
static void put_headline(struct pt_result *r, const char *path, bool bits)
{
    pt_result_headline(r, "highest rate within the limit", path, bits ? "bit/s" : "packet/s");
    json_t *all = pt_result_at(r, "headline");
    size_t last = json_array_size(all) - 1;
    if (json_array_insert(all, 0, json_array_get(all, last)) == 0)
        json_array_remove(all, last + 1);
}

static void put_search(const struct searcher *x, struct pt_result *r)
{
    const struct pt_search *s = &x->search;
    struct pt_buf limit;
    char found[64];
    pt_buf_init(&limit, 64);
    pt_search_kind.print(&s->limit, &limit);
    snprintf(found, sizeof(found), "search.found_%s", x->r->run.wl->yield);
    pt_result_str(r, "search.limit", pt_buf_str(&limit));
    if (s->found > 0)
        pt_result_real(r, found, s->found);
    else
        pt_result_null(r, found);
    pt_result_bool(r, "search.confirmed", s->confirmed);
    pt_result_bool(r, "search.generator_limited", s->generator_limited);
    pt_result_take(r, "search.trials", trials_json(x));
    put_headline(r, found, x->bits);
    if (!(s->found > 0))
        pt_result_warn(r, "no rate was found that keeps %s", pt_buf_str(&limit));
    else if (!s->confirmed)
        pt_result_warn(r, "the rate held in short trials, but not in a run of the full length");
    if (s->generator_limited)
        pt_result_warn(r, "the generator was the limit of the search: the path may carry more");
    pt_buf_fini(&limit);
}

int pt_rounds_search(const struct pt_rounds *r, const struct pt_search_limit *limit,
                     struct pt_result **out, struct pt_err *e)
{
    struct searcher x = {.r = r, .bits = strcmp(r->run.wl->yield, "bits_per_s") == 0};
    struct pt_err why = {0};
    int rc = pt_search(&x.search, limit, trial, &x, &why);
    if (!x.best)
        return pt_fail(e, rc < 0 ? rc : -EIO, "%s", why.text);
    put_search(&x, x.best);
    if (rc < 0) {
        pt_result_warn(x.best, "partial: the search ended after %u trials: %s", x.search.n,
                       why.text);
        pt_result_status(x.best, PT_RESULT_PARTIAL);
    }
    *out = x.best;
    return 0;
}
