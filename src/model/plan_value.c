/* plan_value.c: the keys and values of the tests of a plan, by the option tables; --set; and what
 * contradicts what. See plan_file.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/plan_value.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS 160 /* options of a command, and the keys of a test that are none */

/* What is about this terminal, its files or the server's key belongs to the command line. */
static bool is_key(const struct pt_opts *o, const struct pt_opt *opt)
{
    return !(opt->flags & (PT_OPT_LOCAL | PT_OPT_HIDDEN)) && !pt_opt_is_without(o, opt->name);
}

static struct pt_opt_at find_key(struct pt_plan *p, const char *key)
{
    struct pt_opt_at at = pt_opt_find(p->sets, PT_PLAN_SETS, key);
    return at.opt && is_key(at.opts, at.opt) ? at : (struct pt_opt_at){0};
}

static void forget(struct pt_opt_at at)
{
    at.opts->given &= ~((uint64_t)1 << at.row);
}

static int unknown_key(struct pt_plan_file *f, struct pt_plan_test *t, const struct pt_yaml *y,
                       struct pt_err *e)
{
    const char *known[KEYS + 4] = {"name", "from", "to"}, *near;
    const char *command = t->plan.form->manual.command;
    char quoted[80];
    size_t n = 3;
    pt_log_quote(quoted, sizeof(quoted), y->key, strlen(y->key));
    for (size_t s = 0; s < PT_PLAN_SETS; s++)
        for (const struct pt_opt *o = t->plan.sets[s].table; o && o->name && n < KEYS; o++)
            if (is_key(&t->plan.sets[s], o))
                known[n++] = o->name;
    struct pt_opt_at at = pt_opt_find(t->plan.sets, PT_PLAN_SETS, y->key);
    if (at.opt && at.opt->flags & PT_OPT_LOCAL)
        pt_fail(e, -EINVAL, "'%s' is no key of a test: it is said on the command line", quoted);
    else if (pt_opt_is_without(&t->plan.sets[PT_PLAN_COMMON], y->key))
        pt_fail(e, -EINVAL, "'%s' does not apply to %s", quoted, command);
    else if ((near = pt_nearest(y->key, known)))
        pt_fail(e, -EINVAL, "unknown key '%s' of %s; did you mean '%s'?", quoted, command, near);
    else
        pt_fail(e, -EINVAL,
                "unknown key '%s' of %s; expected name, from, to or a long option that `pitot %s "
                "--help` lists",
                quoted, command, command);
    return pt_plan_at_key(f, y, e);
}

/* ---- values */

static int take_text(struct pt_plan_file *f, struct pt_opt_at at, const struct pt_yaml *y,
                     struct pt_err *e)
{
    if (y->kind != PT_YAML_TEXT || pt_yaml_is_nothing(y)) {
        pt_fail(e, -EINVAL, "%s: expected %s", at.opt->name,
                at.opt->type == PT_OPT_BOOL   ? "true or false"
                : at.opt->type == PT_OPT_LIST ? "a text, or a list of texts"
                                              : "one value");
        return pt_plan_at_value(f, y, e);
    }
    int rc = pt_opt_set(at.opts, 1, at.opt->name, y->text, e);
    return rc < 0 ? pt_plan_at_value(f, y, e) : 0;
}

static int take_value(struct pt_plan_file *f, struct pt_opt_at at, const struct pt_yaml *y,
                      struct pt_err *e)
{
    int rc = 0;
    if (y->kind == PT_YAML_LIST && at.opt->type == PT_OPT_LIST) {
        if (!y->n) {
            pt_fail(e, -EINVAL, "%s: the list is empty; leave the key out", at.opt->name);
            return pt_plan_at_value(f, y, e);
        }
        for (const struct pt_yaml *c = y->first; rc == 0 && c; c = c->next)
            rc = take_text(f, at, c, e);
    } else {
        rc = take_text(f, at, y, e);
    }
    if (y->fallback)
        forget(at);
    return rc;
}

/* ---- ends */

/* The hosts that a name stands for. 0: none. */
static uint32_t find_hosts(const struct pt_plan_file *f, const char *name, uint32_t *first)
{
    char one[PT_PLAN_NAME];
    for (uint32_t i = 0; i < f->host_names; i++) {
        if (strcmp(f->host[i].name, name) != 0)
            continue;
        *first = f->host[i].first;
        return f->host[i].count;
    }
    for (*first = 0; *first < f->hosts; (*first)++)
        if (!strcmp(pt_plan_file_host(f, *first, one), name))
            return 1;
    return 0;
}

static int take_end(struct pt_plan_file *f, const struct pt_yaml *y, char name[PT_PLAN_NAME],
                    uint32_t *first, uint32_t *n, struct pt_err *e)
{
    const char *known[PT_PLAN_HOSTS + 1] = {0};
    char quoted[80];
    int rc = pt_plan_take_name(f, y, name, e);
    if (rc < 0)
        return rc;
    *n = find_hosts(f, name, first);
    if (*n)
        return 0;
    for (uint32_t i = 0; i < f->host_names; i++)
        known[i] = f->host[i].name;
    const char *near = pt_nearest(name, known);
    pt_log_quote(quoted, sizeof(quoted), name, strlen(name));
    if (!f->host_names)
        pt_fail(e, -EINVAL, "%s: the plan has no `hosts:`, so there is no '%s'", y->key, quoted);
    else
        pt_fail(e, -EINVAL, "%s: there is no host '%s'; %s '%s'%s", y->key, quoted,
                near ? "did you mean" : "expected one such as", near ? near : known[0],
                near ? "?" : "");
    return pt_plan_at_value(f, y, e);
}

static int check_ends(struct pt_plan_file *f, struct pt_plan_test *t, struct pt_err *e)
{
    const char *missing = !t->from[0] ? "from" : !t->to[0] ? "to" : NULL;
    if (!f->hosts || !missing)
        return 0;
    pt_fail(e, -EINVAL, "`%s` is missing: in a plan with `hosts` a test says from which to which",
            missing);
    return pt_plan_file_refuse(f, t->line, t->column, e);
}

/* ---- a test */

static int take_key(struct pt_plan_file *f, struct pt_plan_test *t, const struct pt_yaml *y,
                    struct pt_err *e)
{
    uint32_t n = 0;
    int rc;
    if (!strcmp(y->key, "name"))
        return pt_plan_take_name(f, y, t->name, e);
    if (!strcmp(y->key, "from"))
        return take_end(f, y, t->from, &t->sender, &t->senders, e);
    if (!strcmp(y->key, "to")) {
        rc = take_end(f, y, t->to, &t->target, &n, e);
        if (rc == 0 && n > 1) {
            pt_fail(e, -EINVAL, "to: one host answers a test, and '%s' are %u; name one, %s-1",
                    t->to, n, t->to);
            rc = pt_plan_at_value(f, y, e);
        }
        return rc;
    }
    struct pt_opt_at at = find_key(&t->plan, y->key);
    return at.opt ? take_value(f, at, y, e) : unknown_key(f, t, y, e);
}

int pt_plan_value_test(struct pt_plan_file *f, const struct pt_plan_form *form,
                       const struct pt_yaml *y, struct pt_err *e)
{
    if (f->tests == PT_PLAN_TESTS) {
        pt_fail(e, -EINVAL, "more than %d tests", PT_PLAN_TESTS);
        return pt_plan_at_key(f, y, e);
    }
    if (y->kind != PT_YAML_MAP && !pt_yaml_is_nothing(y)) {
        pt_fail(e, -EINVAL, "%s: expected its options, such as {duration: 10s}", y->key);
        return pt_plan_at_value(f, y, e);
    }
    struct pt_plan_test *t = calloc(1, sizeof(*t));
    if (!t)
        return pt_fail(e, -ENOMEM, "no memory for the plan");
    int rc = pt_plan_init(&t->plan, form, e);
    if (rc < 0) {
        free(t);
        return rc;
    }
    f->test[f->tests++] = t;
    t->group = f->groups;
    t->line = y->key_line;
    t->column = y->key_column;
    for (const struct pt_yaml *c = y->first; rc == 0 && c; c = c->next)
        rc = take_key(f, t, c, e);
    return rc < 0 ? rc : check_ends(f, t, e);
}

/* ---- --set */

static bool is_clean(const char *text)
{
    struct pt_yaml *y = NULL;
    struct pt_buf quoted;
    pt_buf_init(&quoted, 4096);
    pt_yaml_print_text(&quoted, text);
    bool clean = !quoted.failed && pt_yaml_parse(pt_buf_str(&quoted), quoted.len, &y, NULL) == 0 &&
                 !strcmp(y->text, text);
    pt_yaml_free(y);
    pt_buf_fini(&quoted);
    return clean;
}

static int no_such_key(const struct pt_plan_file *f, const char *key, struct pt_err *e)
{
    const char *known[KEYS + 1] = {0};
    char quoted[80];
    size_t n = 0;
    for (uint32_t i = 0; i < f->tests; i++)
        for (size_t s = 0; s < PT_PLAN_SETS; s++) {
            const struct pt_opts *set = &f->test[i]->plan.sets[s];
            for (const struct pt_opt *o = set->table; o && o->name && n < KEYS; o++)
                if (is_key(set, o))
                    known[n++] = o->name;
        }
    const char *near = pt_nearest(key, known);
    pt_log_quote(quoted, sizeof(quoted), key, strlen(key));
    return pt_fail(e, -EINVAL, "--set: no test has an option '%s'%s%s%s", quoted,
                   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int pt_plan_file_set(struct pt_plan_file *f, const char *assignment, struct pt_err *e)
{
    char key[64];
    size_t n = strcspn(assignment, "=");
    if (!n || n >= sizeof(key) || !assignment[n])
        return pt_fail(e, -EINVAL, "--set: expected KEY=VALUE, such as duration=5s");
    memcpy(key, assignment, n);
    key[n] = '\0';
    const char *value = assignment + n + 1;
    if (!is_clean(value))
        return pt_fail(e, -EINVAL, "--set %s: expected one line of UTF-8 text", key);
    bool found = false;
    for (uint32_t i = 0; i < f->tests; i++) {
        struct pt_opt_at at = find_key(&f->test[i]->plan, key);
        if (!at.opt)
            continue;
        found = true;
        forget(at); /* a list is replaced, not added to */
        int rc = pt_opt_set(at.opts, 1, key, value, e);
        if (rc < 0)
            return e ? pt_fail_prefix(e, "--set, test %s", f->test[i]->name) : rc;
    }
    return found ? 0 : no_such_key(f, key, e);
}

/* ---- what contradicts what */

static bool is_given(const struct pt_plan_test *t, const char *key)
{
    return pt_plan_given(&t->plan, key);
}

static int refuse(const struct pt_plan_file *f, const struct pt_plan_test *t, struct pt_err *e)
{
    return pt_plan_file_refuse(f, t->line, t->column, e);
}

/* Several runs of one test, the second begun by what the first gave, have no common instant. */
static int check_alone(const struct pt_plan_file *f, const struct pt_plan_test *t, struct pt_err *e)
{
    static const char *const keys[] = {"boost", "search", "load"};
    for (size_t i = 0; i < PT_COUNT(keys); i++) {
        if (!is_given(t, keys[i]))
            continue;
        pt_fail(e, -EINVAL, "%s: a test with it runs alone, from one host, not together", keys[i]);
        return refuse(f, t, e);
    }
    return 0;
}

static int check_group(const struct pt_plan_file *f, uint32_t group, struct pt_err *e)
{
    const struct pt_plan_test *first = NULL, *t;
    uint32_t members = 0;
    for (uint32_t i = 0; i < f->tests; i++)
        if (f->test[i]->group == group)
            members += f->test[i]->senders ? f->test[i]->senders : 1;
    for (uint32_t i = 0; i < f->tests && members > 1; i++) {
        t = f->test[i];
        if (t->group != group)
            continue;
        int rc = check_alone(f, t, e);
        if (rc < 0)
            return rc;
        if (!first)
            first = t;
        if (members > PT_PLAN_TOGETHER)
            pt_fail(e, -EINVAL, "%u tests at once, counting every sender; at most %d run together",
                    members, PT_PLAN_TOGETHER);
        else if (t->plan.common.repeat != first->plan.common.repeat)
            pt_fail(e, -EINVAL, "repeat: tests that run together are repeated equally often");
        else if (llabs(t->plan.common.warmup - first->plan.common.warmup) > PT_PLAN_WARMUPS)
            pt_fail(e, -EINVAL, "warmup: those of tests that run together differ by 10s at most");
        else
            continue;
        return refuse(f, t, e);
    }
    return 0;
}

int pt_plan_file_check(const struct pt_plan_file *f, struct pt_err *e)
{
    for (uint32_t i = 0; i < f->tests; i++) {
        int rc = pt_plan_check(&f->test[i]->plan, e);
        if (rc < 0)
            return refuse(f, f->test[i], e);
    }
    for (uint32_t g = 0; g < f->groups; g++) {
        int rc = check_group(f, g, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}
