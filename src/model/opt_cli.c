/* opt_cli.c: the command line, as GNU programs read it; see opt.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/opt.h"
#include "model/opt_row.h"

#include <errno.h>
#include <string.h>

#define NAME_MAX_LEN 64

/* The arguments that are still to be read. */
struct cursor {
    int at, argc;
    const char *const *argv;
};

static const char *next(struct cursor *c)
{
    return c->at < c->argc ? c->argv[c->at++] : NULL;
}

static struct pt_opt_at find_letter(struct pt_opts *sets, size_t n, char letter)
{
    for (size_t s = 0; s < n; s++) {
        for (uint32_t row = 0; sets[s].table && sets[s].table[row].name; row++) {
            const struct pt_opt *opt = &sets[s].table[row];
            if (opt->letter == letter && !pt_opt_is_without(&sets[s], opt->name))
                return (struct pt_opt_at){&sets[s], opt, row};
        }
    }
    return (struct pt_opt_at){0};
}

static int take_value(struct pt_opt_at at, struct cursor *c, struct pt_err *e)
{
    const char *value = next(c);
    if (!value)
        return pt_fail(e, -EINVAL, "--%s needs a value: --%s %s", at.opt->name, at.opt->name,
                       at.opt->metavar ? at.opt->metavar : at.opt->names[0]);
    return pt_opt_set_row(at, value, e);
}

/* `name`, `name=value`; `no-name` of a boolean. */
static int parse_long(struct pt_opts *sets, size_t n, const char *arg, struct cursor *c,
                      struct pt_err *e)
{
    char name[NAME_MAX_LEN];
    size_t len = strcspn(arg, "=");
    if (len >= sizeof(name))
        len = sizeof(name) - 1;
    memcpy(name, arg, len);
    name[len] = '\0';
    const char *value = arg[len] == '=' ? arg + len + 1 : NULL;
    struct pt_opt_at at = pt_opt_find(sets, n, name);
    if (!at.opt && !strncmp(name, "no-", 3)) {
        struct pt_opt_at positive = pt_opt_find(sets, n, name + 3);
        if (positive.opt && positive.opt->type == PT_OPT_BOOL) {
            if (value)
                return pt_fail(e, -EINVAL, "--%s takes no value", name);
            return pt_opt_set_row(positive, "false", e);
        }
    }
    if (!at.opt)
        return pt_opt_unknown(sets, n, name, "--", e);
    if (value)
        return pt_opt_set_row(at, value, e);
    if (at.opt->type == PT_OPT_BOOL)
        return pt_opt_set_row(at, "true", e);
    return take_value(at, c, e);
}

/* Letters of booleans, then at most one that takes a value: the rest, or the next argument. */
static int parse_letters(struct pt_opts *sets, size_t n, const char *arg, struct cursor *c,
                         struct pt_err *e)
{
    for (const char *p = arg; *p; p++) {
        struct pt_opt_at at = find_letter(sets, n, *p);
        if (!at.opt) {
            char letter[2] = {*p, '\0'};
            return pt_opt_unknown(NULL, 0, letter, "-", e);
        }
        if (at.opt->type != PT_OPT_BOOL)
            return p[1] ? pt_opt_set_row(at, p + 1, e) : take_value(at, c, e);
        int rc = pt_opt_set_row(at, "true", e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int pt_opts_parse(struct pt_opts *sets, size_t n, int argc, const char *const *argv,
                  struct pt_args *args, struct pt_err *e)
{
    struct cursor c = {.argc = argc, .argv = argv};
    bool only_args = false;
    args->n = 0;
    for (const char *arg = next(&c); arg; arg = next(&c)) {
        int rc = 0;
        if (!only_args && !strcmp(arg, "--")) {
            only_args = true;
        } else if (!only_args && arg[0] == '-' && arg[1] == '-') {
            rc = parse_long(sets, n, arg + 2, &c, e);
        } else if (!only_args && arg[0] == '-' && arg[1]) {
            rc = parse_letters(sets, n, arg + 1, &c, e);
        } else if (args->n == PT_ARGS_MAX) {
            rc = pt_fail(e, -EINVAL, "more than %d arguments", PT_ARGS_MAX);
        } else {
            args->at[args->n++] = arg;
        }
        if (rc < 0)
            return -EINVAL;
    }
    return 0;
}
