/* group.c: see group.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/group.h"

#include "cmd/member.h"
#include "model/run_document.h"
#include "os/clock.h"
#include "os/signal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAD_NS  (150 * PT_MS) /* from the last one's arrival to the first start */
#define GRACE_NS (30 * PT_S)   /* for reports after a signal */

struct group {
    struct pt_stage *stage;
    struct pt_member *member;
    unsigned n;
    unsigned told; /* signals that were handed on */
    pt_ns told_ns;
    json_t *windows[PT_PLAN_TOGETHER]; /* of each member; NULL: it gave none */
};

/* ---- while they run */

/* All wait: they pass. One of them never will: nobody does. */
static void tend_gate(struct group *g)
{
    unsigned waiting = 0, gone = 0;
    pt_ns longest = 0;
    for (unsigned i = 0; i < g->n; i++) {
        const struct pt_member *m = &g->member[i];
        waiting += m->warmup >= 0;
        gone += m->gate < 0;
        longest = m->warmup > longest ? m->warmup : longest;
    }
    if (g->n == 1 || !waiting || (waiting < g->n && !gone))
        return;
    pt_ns window = pt_clock_now() + LEAD_NS + longest;
    for (unsigned i = 0; i < g->n; i++) {
        if (g->member[i].warmup < 0)
            continue;
        if (gone)
            pt_member_close_gate(&g->member[i]);
        else
            pt_member_pass(&g->member[i], window);
    }
}

static void hand_on_signals(struct group *g)
{
    unsigned came = pt_signal_count();
    for (; g->told < came; g->told++)
        for (unsigned i = 0; i < g->n; i++)
            (void)!pt_child_signal(&g->member[i].child, SIGTERM);
    if (came && !g->told_ns)
        g->told_ns = pt_clock_now();
}

/* Until every member has said what it has to say. */
static void attend(struct group *g)
{
    struct pollfd p[2 * PT_PLAN_TOGETHER + 1];
    for (;;) {
        unsigned open = 0;
        hand_on_signals(g);
        tend_gate(g);
        for (unsigned i = 0; i < g->n; i++) {
            p[2 * i] = (struct pollfd){.fd = g->member[i].parcel, .events = POLLIN};
            p[2 * i + 1] = (struct pollfd){.fd = g->member[i].gate, .events = POLLIN};
            open += g->member[i].parcel >= 0;
        }
        p[2 * g->n] = (struct pollfd){.fd = g->told ? -1 : pt_signal_fd(), .events = POLLIN};
        if (!open || (g->told_ns && pt_clock_now() > g->told_ns + GRACE_NS))
            return;
        if (poll(p, 2 * g->n + 1, g->told ? 50 : -1) <= 0)
            continue;
        for (unsigned i = 0; i < g->n; i++) {
            if (p[2 * i + 1].revents)
                pt_member_arrived(&g->member[i]);
            if (p[2 * i].revents)
                pt_member_read(&g->member[i]);
        }
    }
}

/* ---- what they gave */

/* Between the first worker of any and the last of all, in the round where that was longest. */
static pt_ns skew(const struct group *g)
{
    size_t rounds = json_array_size(g->windows[0]);
    pt_ns worst = -1;
    for (size_t k = 0; k < rounds; k++) {
        pt_ns first = PT_NS_MAX, last = 0;
        for (unsigned i = 0; i < g->n; i++) {
            const json_t *w = json_array_get(g->windows[i], k);
            pt_ns a = json_integer_value(json_array_get(w, 0));
            pt_ns b = json_integer_value(json_array_get(w, 1));
            if (!json_is_array(w))
                return -1;
            first = a < first ? a : first;
            last = b > last ? b : last;
        }
        worst = last - first > worst ? last - first : worst;
    }
    return worst;
}

/* A document for a test that measured nothing. */
static struct pt_result *failed_test(const struct pt_plan_test *t, const char *why)
{
    struct pt_result *r = pt_result_new(pt_clock_realtime());
    if (!r)
        return NULL;
    pt_result_plan(r, &t->plan);
    pt_result_str(r, "test.target", t->senders ? t->to : NULL);
    pt_result_warn(r, "%s", why);
    pt_result_status(r, PT_RESULT_FAILED);
    return r;
}

static struct pt_result *take_result(struct group *g, unsigned index)
{
    const struct pt_member *m = &g->member[index];
    json_t *parcel = pt_member_parcel(m), *root = json_object_get(parcel, "result");
    const char *why = json_string_value(json_object_get(parcel, "error"));
    struct pt_result *r = NULL;
    if (json_is_object(root) && (r = calloc(1, sizeof(*r)))) {
        r->root = json_incref(root);
        g->windows[index] = json_incref(json_object_get(parcel, "windows"));
    } else if (!pt_signal_seen()) {
        r = failed_test(m->test, why ? why : "its process ended without a report");
    }
    json_decref(parcel);
    return r;
}

static void name_test(const struct group *g, const struct pt_member *m, struct pt_result *r)
{
    char host[PT_PLAN_NAME];
    pt_result_str(r, "test.name", m->test->name);
    if (!m->test->senders)
        return;
    pt_result_str(r, "test.from", pt_plan_file_host(g->stage->plan, m->sender, host));
    pt_result_str(r, "test.to", m->test->to);
}

static int collect(struct group *g, struct pt_result *run,
                   void (*text)(void *ctx, const struct pt_result *test), void *ctx,
                   struct pt_err *e)
{
    size_t before = pt_run_tests(run), of_test = before;
    for (unsigned i = 0; i < g->n; i++) {
        const struct pt_member *m = &g->member[i];
        struct pt_result *r = take_result(g, i);
        if (!r && !pt_signal_seen())
            return pt_fail(e, -ENOMEM, "no memory for the report");
        if (!r)
            pt_result_warn(run, "interrupted before %s had measured anything", m->test->name);
        if (r) {
            name_test(g, m, r);
            text(ctx, r);
            pt_run_add(run, r);
        }
        if (i + 1 < g->n && g->member[i + 1].test == m->test)
            continue;
        size_t n = pt_run_tests(run) - of_test;
        if (m->test->senders > 1 && n == m->test->senders)
            pt_run_sum(run, m->test->name, of_test, n);
        of_test += n;
    }
    size_t n = pt_run_tests(run) - before;
    if (n > 1)
        pt_run_together(run, before, n, n == g->n ? skew(g) : -1);
    return 0;
}

/* ---- the whole */

static unsigned list_members(struct group *g, uint32_t group)
{
    const struct pt_plan_file *f = g->stage->plan;
    for (uint32_t i = 0; i < f->tests; i++) {
        const struct pt_plan_test *t = f->test[i];
        for (uint32_t k = 0; t->group == group && !t->left_out && k < (t->senders ? t->senders : 1);
             k++)
            g->member[g->n++] = (struct pt_member){.test = t,
                                                   .sender = t->sender + k,
                                                   .parcel = -1,
                                                   .gate = -1,
                                                   .warmup = -1,
                                                   .child = {.pidfd = -1}};
    }
    return g->n;
}

int pt_group_run(struct pt_stage *s, uint32_t group, struct pt_output *output,
                 struct pt_result *run, void (*text)(void *ctx, const struct pt_result *test),
                 void *ctx, struct pt_err *e)
{
    struct group g = {.stage = s};
    int rc = 0;
    g.member = calloc(PT_PLAN_TOGETHER, sizeof(*g.member));
    if (!g.member)
        return pt_fail(e, -ENOMEM, "no memory for the tests");
    list_members(&g, group);
    for (unsigned i = 0; i < g.n && rc == 0; i++)
        rc = pt_stage_server(s, g.member[i].test, e);
    for (unsigned i = 0; i < g.n && rc == 0; i++)
        rc = pt_member_start(&g.member[i], g.member, s, output, g.n > 1, i > 0, e);
    if (rc == 0) {
        attend(&g);
        rc = collect(&g, run, text, ctx, e);
    }
    for (unsigned i = 0; i < g.n; i++) {
        pt_member_end(&g.member[i]);
        json_decref(g.windows[i]);
    }
    free(g.member);
    return rc;
}
