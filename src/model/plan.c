/* plan.c: see plan.h. The table of common options is in common.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/plan.h"

#include "model/expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pt_plan_init(struct pt_plan *p, const struct pt_plan_form *form, struct pt_err *e)
{
    memset(p, 0, sizeof(*p));
    p->form = form;
    p->params = calloc(1, form->params_size ? form->params_size : 1);
    if (!p->params)
        return pt_fail(e, -ENOMEM, "no memory for the options of %s", form->manual.command);
    p->sets[PT_PLAN_OWN] = (struct pt_opts){.table = form->opts, .values = p->params};
    p->sets[PT_PLAN_COMMON] = (struct pt_opts){.table = pt_common_opts,
                                               .values = &p->common,
                                               .defaults = form->defaults,
                                               .without = form->without};
    p->sets[PT_PLAN_REPORT] = (struct pt_opts){.table = pt_reporting_opts, .values = &p->report};
    for (size_t i = 0; i < PT_PLAN_SETS; i++) {
        int rc = pt_opts_init(&p->sets[i], e);
        if (rc < 0) {
            pt_plan_fini(p);
            return rc;
        }
    }
    return 0;
}

void pt_plan_fini(struct pt_plan *p)
{
    free(p->params);
    p->params = NULL;
}

int pt_plan_copy(struct pt_plan *to, const struct pt_plan *from, struct pt_err *e)
{
    int rc = pt_plan_init(to, from->form, e);
    if (rc < 0)
        return rc;
    memcpy(to->target, from->target, sizeof(to->target));
    to->common = from->common;
    to->report = from->report;
    memcpy(to->params, from->params, from->form->params_size);
    for (size_t i = 0; i < PT_PLAN_SETS; i++)
        to->sets[i].given = from->sets[i].given;
    return 0;
}

bool pt_plan_given(const struct pt_plan *p, const char *name)
{
    return pt_opt_given(p->sets, PT_PLAN_SETS, name);
}

static int take_target(struct pt_plan *p, const struct pt_args *args, struct pt_err *e)
{
    if (args->n > 1)
        return pt_fail(e, -EINVAL, "one target at a time: '%s' and '%s' were given", args->at[0],
                       args->at[1]);
    if (!args->n)
        return 0;
    size_t n = strlen(args->at[0]);
    if (!n || n >= sizeof(p->target))
        return pt_fail(e, -EINVAL, "the target is empty or too long; expected HOST or HOST:PORT");
    memcpy(p->target, args->at[0], n + 1);
    return 0;
}

int pt_plan_parse(struct pt_plan *p, int argc, const char *const *argv, struct pt_err *e)
{
    struct pt_args args;
    int rc = pt_opts_parse(p->sets, PT_PLAN_SETS, argc, argv, &args, e);
    if (rc < 0)
        return rc;
    if (p->report.help || p->report.man)
        return 0;
    rc = take_target(p, &args, e);
    if (rc < 0)
        return rc;
    if (p->common.peer[0] && !p->target[0])
        return pt_fail(e, -EINVAL, "--peer %s: name HOST, where its server runs", p->common.peer);
    if (p->common.secret_file[0] && !p->target[0])
        return pt_fail(e, -EINVAL,
                       "--secret-file is for a server that was started elsewhere: name HOST");
    rc = pt_plan_check(p, e);
    if (rc < 0)
        return rc;
    pt_plan_settle(p);
    return 0;
}

void pt_plan_settle(struct pt_plan *p)
{
    if (p->common.requests)
        p->common.duration = 0;
}

static bool both(const struct pt_plan *p, const char *a, const char *b)
{
    return pt_plan_given(p, a) && pt_plan_given(p, b);
}

static int check_boost(const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_common *c = &p->common;
    const struct pt_boost *b = &c->boost;
    if (!b->every)
        return 0;
    if (c->requests)
        return pt_fail(e, -EINVAL,
                       "--boost and --requests contradict each other: a step of the "
                       "boost lasts `every:`, not a number of operations");
    if (pt_plan_given(p, "duration"))
        return pt_fail(e, -EINVAL,
                       "--boost and --duration contradict each other: the run ends "
                       "with `until:`; set the length of a step with `every:`");
    if (c->repeat > 1)
        return pt_fail(e, -EINVAL,
                       "--boost and --repeat cannot be used together: repeat the best "
                       "step afterwards with a fixed load");
    if (b->rate.per_s > 0 && c->rate.per_s > 0 && b->rate.bits != c->rate.bits)
        return pt_fail(e, -EINVAL,
                       "--rate and the rate of --boost must both be operations or both "
                       "be bits per second");
    if (!(b->rate.per_s > 0) && c->rate.per_s > 0)
        return pt_fail(e, -EINVAL,
                       "--boost adds only connections while --rate fixes the load, so "
                       "no step would differ; leave out --rate or add rate:R");
    return 0;
}

static int check_load(const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_common *c = &p->common;
    bool open = c->rate.per_s > 0 || c->boost.rate.per_s > 0;
    if (both(p, "requests", "duration"))
        return pt_fail(e, -EINVAL,
                       "--requests and --duration contradict each other: give the one "
                       "that shall end the run");
    if (!c->requests && c->duration < PT_MS)
        return pt_fail(e, -EINVAL, "--duration must be at least 1ms (or give --requests N)");
    if (pt_plan_given(p, "rate") && !(c->rate.per_s > 0))
        return pt_fail(e, -EINVAL, "--rate must be more than 0; without --rate the loop is closed");
    if (pt_plan_given(p, "arrivals") && !open)
        return pt_fail(e, -EINVAL, "--arrivals spaces an open loop: it needs --rate R");
    if (pt_plan_given(p, "inflight") && open)
        return pt_fail(e, -EINVAL,
                       "--inflight limits a closed loop, but --rate makes the loop "
                       "open: its schedule does not wait for replies");
    return check_boost(p, e);
}

static int check_peer(const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_common *c = &p->common;
    const char *const *known = p->form->peers;
    char all[80] = "";
    if (!c->peer[0])
        return pt_plan_given(p, "peer") ? pt_fail(e, -EINVAL, "--peer needs the name of a tool")
                                        : 0;
    for (size_t i = 0; known && known[i]; i++) {
        size_t n = strlen(all);
        snprintf(all + n, sizeof(all) - n, "%s%s", n ? ", " : "", known[i]);
        if (strcmp(c->peer, known[i]) == 0)
            return c->secret_file[0] ? pt_fail(e, -EINVAL,
                                               "--secret-file is for `pitot serve`: a server of "
                                               "%s knows no such secret",
                                               c->peer)
                                     : 0;
    }
    return pt_fail(e, -EINVAL, "--peer %s: %s measures against %s", c->peer,
                   p->form->manual.command, all[0] ? all : "pitot only");
}

static int check_rest(const struct pt_plan *p, struct pt_err *e)
{
    const struct pt_common *c = &p->common;
    if (c->ipv4 && c->ipv6)
        return pt_fail(e, -EINVAL, "-4 and -6 contradict each other: leave both out for either");
    for (uint32_t i = 0; i < c->expect.n; i++) {
        struct pt_expect x;
        int rc = pt_expect_parse(c->expect.at[i], &x, e);
        if (rc < 0)
            return rc;
    }
    return pt_reporting_check(&p->sets[PT_PLAN_REPORT], e);
}

int pt_plan_check(const struct pt_plan *p, struct pt_err *e)
{
    int rc = check_load(p, e);
    if (!rc)
        rc = check_peer(p, e);
    if (!rc)
        rc = check_rest(p, e);
    if (!rc && p->form->check)
        rc = p->form->check(p, e);
    return rc;
}

static json_t *object_of(const struct pt_plan *p, unsigned flags)
{
    json_t *o = json_object();
    for (size_t i = 0; o && i < PT_PLAN_SETS; i++) {
        if (pt_opts_to_json(&p->sets[i], flags, o) < 0) {
            json_decref(o);
            o = NULL;
        }
    }
    return o;
}

json_t *pt_plan_params(const struct pt_plan *p)
{
    return object_of(p, 0);
}

json_t *pt_plan_to_peer(const struct pt_plan *p)
{
    return object_of(p, PT_OPT_PEER);
}

int pt_plan_from_peer(struct pt_plan *p, const json_t *from, struct pt_err *e)
{
    return pt_opts_from_json(p->sets, PT_PLAN_SETS, PT_OPT_PEER, from, e);
}
