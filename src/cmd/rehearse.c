/* rehearse.c: see rehearse.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/rehearse.h"

#include "cmd/test.h"
#include "engine/search.h"

#include <stdio.h>
#include <string.h>

/* A copy of the test's plan as it would run; the shape of it. */
static int shape_of(const struct pt_plan_test *t, struct pt_shape *shape, struct pt_err *e)
{
    struct pt_plan plan;
    int rc = pt_plan_copy(&plan, &t->plan, e);
    if (rc < 0)
        return rc;
    struct pt_test test = {.wl = pt_workload_find(plan.form->manual.command), .plan = &plan};
    pt_plan_settle(&plan);
    rc = pt_test_check(&test, e);
    *shape = test.shape;
    pt_plan_fini(&plan);
    return rc;
}

int pt_rehearse_check(const struct pt_plan_file *f, struct pt_err *e)
{
    for (uint32_t i = 0; i < f->tests; i++) {
        const struct pt_plan_test *t = f->test[i];
        struct pt_shape shape;
        if (shape_of(t, &shape, e) < 0)
            return pt_plan_file_refuse(f, t->line, t->column, e);
    }
    return 0;
}

static pt_ns time_of(const struct pt_plan_test *t)
{
    const struct pt_workload *wl = pt_workload_find(t->plan.form->manual.command);
    const struct pt_common *c = &t->plan.common;
    struct pt_shape shape;
    const struct pt_search_limit *limit = wl->search ? wl->search(&t->plan) : NULL;
    if (shape_of(t, &shape, NULL) < 0 || shape.bytes || shape.ops_per_flow || c->boost.every ||
        (limit && limit->given))
        return -1;
    return (shape.warmup + shape.duration) * c->repeat;
}

pt_ns pt_rehearse_time(const struct pt_plan_file *f, uint32_t group)
{
    pt_ns longest = 0;
    for (uint32_t i = 0; i < f->tests; i++) {
        const struct pt_plan_test *t = f->test[i];
        if (t->group != group || t->left_out)
            continue;
        pt_ns time = time_of(t);
        if (time < 0)
            return -1;
        longest = time > longest ? time : longest;
    }
    return longest;
}

/* ---- the text */

/* A word that a shell reads back as it is. */
static void print_word(const char *name, const char *text, struct pt_buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._/:,+@%=-";
    pt_buf_addf(out, " --%s=", name);
    if (strspn(text, plain) == strlen(text)) {
        pt_buf_adds(out, text);
        return;
    }
    pt_buf_adds(out, "'");
    for (; *text; text++)
        pt_buf_add(out, *text == '\'' ? "'\\''" : text, *text == '\'' ? 4 : 1);
    pt_buf_adds(out, "'");
}

static void print_option(const struct pt_opts *o, const struct pt_opt *opt, struct pt_buf *out)
{
    struct pt_buf value;
    if (opt->type == PT_OPT_LIST) {
        const struct pt_strs *list = (const void *)((const char *)o->values + opt->offset);
        for (uint32_t i = 0; i < list->n; i++)
            print_word(opt->name, list->at[i], out);
        return;
    }
    pt_buf_init(&value, 16384);
    pt_opt_print(opt, o->values, &value);
    print_word(opt->name, pt_buf_str(&value), out);
    pt_buf_fini(&value);
}

/* The command line that is the same test. */
static void print_command(const struct pt_plan_test *t, struct pt_buf *out)
{
    pt_buf_addf(out, "    pitot %s", t->plan.form->manual.command);
    for (size_t s = 0; s < PT_COUNT(t->plan.sets); s++) {
        const struct pt_opts *o = &t->plan.sets[s];
        for (uint32_t row = 0; o->table && o->table[row].name; row++)
            if (o->given >> row & 1)
                print_option(o, &o->table[row], out);
    }
    pt_buf_adds(out, "\n");
}

static const char *address(const struct pt_stage *s, uint32_t host, const struct pt_common *c,
                           char out[PT_ADDR_TEXT])
{
    const struct pt_topo_host *h = &s->topo.host[host];
    return pt_addr_print_ip(c->ipv6 ? &h->v6 : &h->v4, out);
}

static void print_ends(const struct pt_stage *s, const struct pt_plan_test *t, struct pt_buf *out)
{
    char name[PT_PLAN_NAME], to[PT_ADDR_TEXT], from[PT_ADDR_TEXT];
    const struct pt_common *c = &t->plan.common;
    if (!t->senders)
        pt_buf_adds(out, "    this machine, over its loopback\n");
    for (uint32_t i = 0; i < t->senders; i++)
        pt_buf_addf(out, "    %s (%s) to %s (%s)\n",
                    pt_plan_file_host(s->plan, t->sender + i, name),
                    address(s, t->sender + i, c, from), t->to, address(s, t->target, c, to));
}

static void print_time(pt_ns time, const char *otherwise, struct pt_buf *out)
{
    char text[PT_UNITS_TEXT];
    if (time < 0)
        pt_buf_adds(out, otherwise);
    else
        pt_buf_adds(out, pt_time_show(text, sizeof(text), (double)time / 1e9));
}

static void print_group(const struct pt_stage *s, uint32_t group, struct pt_buf *out)
{
    const struct pt_plan_file *f = s->plan;
    uint32_t members = 0;
    for (uint32_t i = 0; i < f->tests; i++)
        if (f->test[i]->group == group && !f->test[i]->left_out)
            members += f->test[i]->senders ? f->test[i]->senders : 1;
    for (uint32_t i = 0; i < f->tests; i++) {
        const struct pt_plan_test *t = f->test[i];
        if (t->group != group || t->left_out)
            continue;
        pt_buf_addf(out, "\n  %s, ", t->name);
        print_time(time_of(t), "until it is done", out);
        if (members > 1)
            pt_buf_addf(out, ", one of %u that run together", members);
        pt_buf_adds(out, "\n");
        print_ends(s, t, out);
        print_command(t, out);
    }
}

void pt_rehearse_print(const struct pt_stage *s, struct pt_buf *out)
{
    const struct pt_plan_file *f = s->plan;
    pt_ns all = 0;
    bool more = false;
    for (uint32_t g = 0; g < f->groups; g++) {
        pt_ns time = pt_rehearse_time(f, g);
        more |= time < 0;
        all += time > 0 ? time : 0;
    }
    pt_buf_addf(out, "plan %s: ", f->name);
    print_time(all, "", out);
    pt_buf_adds(out, more ? " and what ends by itself\n" : " of measurement\n");
    pt_buf_addf(out, "%s\n", s->topo.n ? s->topo.text : "this machine as it is");
    for (uint32_t g = 0; g < f->groups; g++)
        print_group(s, g, out);
}
