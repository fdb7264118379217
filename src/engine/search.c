/* search.c: see search.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/search.h"

#include <errno.h>
#include <string.h>

/* ---- the limit */

static int parse_limit(const char *text, void *field, struct pt_err *e)
{
    static const char before[] = "loss<=";
    struct pt_search_limit l = {.given = true};
    if (strncmp(text, before, sizeof(before) - 1) != 0)
        return pt_fail(e, -EINVAL, "expected a limit of the loss such as loss<=0.1%%");
    int rc = pt_percent_parse(text + sizeof(before) - 1, &l.loss_pct, e);
    if (rc < 0)
        return rc;
    if (l.loss_pct >= 100)
        return pt_fail(e, -EINVAL, "every rate keeps its loss within 100%%; expected less");
    memcpy(field, &l, sizeof(l));
    return 0;
}

static void print_limit(const void *field, struct pt_buf *out)
{
    const struct pt_search_limit *l = field;
    char t[PT_UNITS_TEXT];
    if (l->given)
        pt_buf_addf(out, "loss<=%s", pt_percent_print(t, sizeof(t), l->loss_pct));
}

const struct pt_opt_kind pt_search_kind = {parse_limit, print_limit};

int pt_search_check(const struct pt_search_limit *l, const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_common *c = &p->common;
    if (!l->given)
        return 0;
    if (c->rate.per_s > 0)
        return pt_fail(e, -EINVAL, "--search finds the rate: leave --rate out");
    if (c->boost.every)
        return pt_fail(e, -EINVAL, "--search and --boost are two ways to find a load: give one");
    if (c->requests)
        return pt_fail(e, -EINVAL,
                       "--search needs runs of a certain time: --duration instead of --requests");
    return 0;
}

/* ---- names */

const char *pt_trial_kind_name(enum pt_trial_kind kind)
{
    static const char *const names[] = {"flood", "step", "confirm"};
    return names[kind];
}

const char *pt_trial_verdict_name(enum pt_trial_verdict verdict)
{
    static const char *const names[] = {"ok", "loss", "generator"};
    return names[verdict];
}

/* ---- the search */

struct state {
    struct pt_search *s;
    pt_trial_run run;
    void *ctx;
    struct pt_err *e;
    double low, high;       /* holds, does not hold (or could not be sent) */
    bool high_tried;        /* by a paced trial, not the flood */
    bool high_by_generator; /* why `high` is where it is */
};

enum pt_trial_verdict pt_trial_judge(const struct pt_search_limit *l, const struct pt_trial *t)
{
    if (t->loss_pct > l->loss_pct)
        return PT_TRIAL_LOSS;
    if (!(t->sent_s > 0) || t->sent_s < t->rate * PT_SEARCH_REACHED)
        return PT_TRIAL_GENERATOR;
    return PT_TRIAL_OK;
}

/* Runs one trial and enters it; NULL when the run itself failed. */
static const struct pt_trial *try(struct state *x, enum pt_trial_kind kind, double rate, int *rc)
{
    struct pt_trial *t = &x->s->trial[x->s->n];
    *t = (struct pt_trial){.kind = kind, .rate = rate};
    *rc = x->run(x->ctx, t, x->e);
    if (*rc < 0)
        return NULL;
    t->verdict = pt_trial_judge(&x->s->limit, t);
    x->s->n++;
    return t;
}

/* What overload explains at this rate, when the path carries at least `low`. */
static double explained_pct(const struct state *x, const struct pt_trial *t)
{
    return x->low > 0 ? 100 * (1 - x->low / t->rate) + 1 : 100;
}

static bool deserves_another(const struct state *x, const struct pt_trial *t)
{
    if (t->verdict == PT_TRIAL_OK || x->s->n >= PT_SEARCH_TRIALS)
        return false;
    return t->verdict == PT_TRIAL_GENERATOR ||
           t->loss_pct <= x->s->limit.loss_pct + PT_SEARCH_SURE_PCT ||
           t->loss_pct > explained_pct(x, t);
}

static int step(struct state *x, double rate)
{
    int rc = 0;
    const struct pt_trial *t = try(x, PT_TRIAL_STEP, rate, &rc);
    if (t && deserves_another(x, t))
        t = try(x, PT_TRIAL_STEP, rate, &rc);
    if (!t)
        return rc;
    if (t->verdict == PT_TRIAL_OK) {
        x->low = rate;
        return 0;
    }
    x->high = rate;
    x->high_tried = true;
    x->high_by_generator = t->verdict == PT_TRIAL_GENERATOR;
    return 0;
}

static bool goes_on(const struct state *x)
{
    return x->s->n < PT_SEARCH_TRIALS && x->high - x->low > x->high * PT_SEARCH_RESOLUTION &&
           x->high > 1;
}

/* The guess is mostly near: from there in growing strides, until the answer lies between two rates
 * that were tried; then by halves. */
static double next_rate(const struct state *x, double *stride)
{
    double rate = (x->low + x->high) / 2;
    bool bracketed = x->low > 0 && x->high_tried;
    if (!bracketed && *stride < 0.5) {
        double near = x->low > 0 ? x->low * (1 + *stride) : x->high * (1 - *stride);
        *stride *= 2;
        if (near < x->high)
            rate = near;
    }
    return rate;
}

static int narrow(struct state *x, double guess)
{
    double stride = PT_SEARCH_STRIDE;
    double rate = guess < x->high ? guess : 0;
    while (goes_on(x)) {
        if (!(rate > 0))
            rate = next_rate(x, &stride);
        int rc = step(x, rate);
        if (rc < 0)
            return rc;
        rate = 0;
    }
    return 0;
}

/* Full length. A flood that lost nothing is confirmed by another flood: paced, the generator might
 * be slower. */
static int confirm(struct state *x, bool flood)
{
    struct pt_search *s = x->s;
    double rate = s->found;
    for (unsigned i = 0; i < PT_SEARCH_CONFIRMS; i++, flood = false) {
        int rc = 0;
        const struct pt_trial *t = try(x, PT_TRIAL_CONFIRM, flood ? 0 : rate, &rc);
        if (!t)
            return rc;
        if (t->verdict == PT_TRIAL_OK) {
            s->found = flood ? t->sent_s : rate;
            s->confirmed = true;
            return 0;
        }
        s->generator_limited |= t->verdict == PT_TRIAL_GENERATOR;
        rate *= 1 - PT_SEARCH_STEP_DOWN;
    }
    return 0;
}

int pt_search(struct pt_search *s, const struct pt_search_limit *limit, pt_trial_run run, void *ctx,
              struct pt_err *e)
{
    *s = (struct pt_search){.limit = *limit};
    struct state x = {.s = s, .run = run, .ctx = ctx, .e = e};
    int rc = 0;
    const struct pt_trial *flood = try(&x, PT_TRIAL_FLOOD, 0, &rc);
    if (!flood)
        return rc;
    bool flood_holds = flood->verdict == PT_TRIAL_OK;
    x.low = flood_holds ? flood->sent_s : 0;
    x.high = flood->sent_s;
    x.high_by_generator = flood_holds;
    if (!(flood->sent_s > 0))
        return 0;
    if (!flood_holds)
        rc = narrow(&x, flood->received_s);
    s->found = x.low;
    s->generator_limited = x.high_by_generator;
    if (rc < 0 || !(x.low > 0))
        return rc;
    return confirm(&x, flood_holds);
}
