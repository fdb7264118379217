/* test.c: see test.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/test.h"

#include "cmd/cmd.h"
#include "engine/place.h"
#include "engine/rounds.h"
#include "engine/sources.h"
#include "model/expect.h"
#include "net/identity.h"
#include "os/signal.h"
#include "workload/list.h"

#include <errno.h>

int pt_test_check(struct pt_test *t, struct pt_err *e)
{
    int rc = t->wl->shape(t->plan, &t->shape, e);
    if (rc < 0)
        return rc;
    if (pt_plan_given(t->plan, "bytes") && !t->shape.bytes)
        return pt_fail(e, -EINVAL, "--bytes must be at least 1");
    if (t->plan->common.boost.until_p99 && !t->shape.both)
        return pt_fail(e, -EINVAL,
                       "--boost: %s has no latencies that until:p99>T could look at; "
                       "use until:flat",
                       t->wl->form.manual.command);
    return 0;
}

int pt_test_check_here(const struct pt_test *t, struct pt_err *e)
{
    int rc = pt_place_check(&t->plan->common, e);
    return rc < 0 ? rc : pt_sources_check(&t->plan->common, t->to, t->shape.flows, e);
}

static void say(void *ctx, const char *line)
{
    struct pt_live_lines *lines = ctx;
    pt_output_say(lines->output, line);
}

int pt_test_run(struct pt_test *t, struct pt_result **out, struct pt_err *e)
{
    json_t *chosen = json_array(), *identity = pt_identity();
    int rc = t->wl->choose ? t->wl->choose(t->plan, t->to, chosen, e) : 0;
    /* From here on the plan does not change. */
    if (rc == 0)
        rc = t->wl->shape(t->plan, &t->shape, e);
    t->lines = (struct pt_live_lines){
        .output = t->output, .shape = &t->shape, .packets = t->wl == &pt_pps};
    struct pt_rounds rounds = {.run = {.far = t->far,
                                       .plan = t->plan,
                                       .wl = t->wl,
                                       .to = t->to,
                                       .secret = t->secret,
                                       .identity = identity,
                                       .live = pt_live_show,
                                       .ctx = &t->lines,
                                       .gate = t->gate},
                               .say = say};
    if (rc == 0)
        rc = pt_rounds(&rounds, out, e);
    if (rc == 0)
        pt_result_take(*out, "chosen", json_incref(chosen));
    json_decref(chosen);
    json_decref(identity);
    return rc;
}

int pt_test_conclude(const struct pt_test *t, struct pt_result *r, struct pt_err *e)
{
    if (pt_signal_seen())
        pt_result_i64(r, "exit", PT_EXIT_INTERRUPTED);
    int rc = pt_expect_record(&t->plan->common.expect, r, e);
    if (rc >= 0 && pt_result_failed(r))
        rc = pt_fail(e, pt_result_failed(r), "no memory for the whole report");
    pt_result_round(r);
    return rc < 0 ? rc : 0;
}
