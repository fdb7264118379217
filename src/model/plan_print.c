/* plan_print.c: a plan as the YAML that gives it; see plan_file.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/plan_file.h"
#include "model/yaml.h"

#include <string.h>

/* An option without a default has no value until somebody gives one: nothing to print. */
static bool has_value(const struct pt_opt *opt, const void *values, bool given)
{
    const unsigned char *field = (const unsigned char *)values + opt->offset;
    if (given || opt->type == PT_OPT_BOOL || opt->type == PT_OPT_ENUM)
        return true;
    for (size_t i = 0; i < opt->size; i++)
        if (field[i])
            return true;
    return false;
}

static void print_list(const struct pt_strs *list, struct pt_buf *out)
{
    pt_buf_adds(out, "[");
    for (uint32_t i = 0; i < list->n; i++) {
        pt_buf_adds(out, i ? ", " : "");
        pt_yaml_print_text(out, list->at[i]);
    }
    pt_buf_adds(out, "]");
}

static void print_option(const struct pt_opts *o, uint32_t row, const char *indent,
                         struct pt_buf *out)
{
    const struct pt_opt *opt = &o->table[row];
    bool given = o->given >> row & 1;
    if (opt->flags & (PT_OPT_LOCAL | PT_OPT_HIDDEN) || pt_opt_is_without(o, opt->name) ||
        !has_value(opt, o->values, given))
        return;
    pt_buf_addf(out, "%s%s: %s", indent, opt->name, given ? "" : PT_YAML_DEFAULT " ");
    if (opt->type == PT_OPT_LIST) {
        print_list((const struct pt_strs *)(const void *)((const char *)o->values + opt->offset),
                   out);
    } else {
        struct pt_buf text;
        pt_buf_init(&text, 8192);
        pt_opt_print(opt, o->values, &text);
        pt_yaml_print_text(out, pt_buf_str(&text));
        pt_buf_fini(&text);
    }
    pt_buf_adds(out, "\n");
}

static void print_name(const char *indent, const char *key, const char *name, struct pt_buf *out)
{
    if (!name[0])
        return;
    pt_buf_addf(out, "%s%s: ", indent, key);
    pt_yaml_print_text(out, name);
    pt_buf_adds(out, "\n");
}

static void print_test(const struct pt_plan_test *t, const char *dash, const char *indent,
                       struct pt_buf *out)
{
    pt_buf_addf(out, "%s%s:\n", dash, t->plan.form->manual.command);
    print_name(indent, "name", t->name, out);
    print_name(indent, "from", t->from, out);
    print_name(indent, "to", t->to, out);
    for (size_t s = 0; s < PT_COUNT(t->plan.sets); s++) {
        const struct pt_opts *o = &t->plan.sets[s];
        for (uint32_t row = 0; o->table && o->table[row].name; row++)
            print_option(o, row, indent, out);
    }
}

static uint32_t size_of_group(const struct pt_plan_file *f, uint32_t group)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->tests; i++)
        n += f->test[i]->group == group;
    return n;
}

static void print_hosts(const struct pt_plan_file *f, struct pt_buf *out)
{
    pt_buf_adds(out, f->host_names ? "hosts:\n" : "");
    for (uint32_t i = 0; i < f->host_names; i++) {
        pt_buf_adds(out, "  ");
        pt_yaml_print_text(out, f->host[i].name);
        if (f->host[i].count > 1)
            pt_buf_addf(out, ": {count: %u}\n", f->host[i].count);
        else
            pt_buf_adds(out, ": {}\n");
    }
}

void pt_plan_file_print(const struct pt_plan_file *f, struct pt_buf *out)
{
    print_name("", "name", f->name, out);
    print_hosts(f, out);
    pt_buf_adds(out, "tests:\n");
    for (uint32_t i = 0; i < f->tests; i++) {
        const struct pt_plan_test *t = f->test[i];
        if (size_of_group(f, t->group) == 1) {
            print_test(t, "  - ", "      ", out);
            continue;
        }
        if (!i || f->test[i - 1]->group != t->group)
            pt_buf_adds(out, "  - together:\n");
        print_test(t, "      - ", "          ", out);
    }
}
