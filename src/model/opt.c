/* opt.c: see opt.h. Rows, values, defaults; the command line is in opt_cli.c, JSON in opt_json.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/opt.h"
#include "model/opt_row.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void *pt_opt_field(const struct pt_opt *opt, void *values)
{
    return (char *)values + opt->offset;
}

const void *pt_opt_field_peek(const struct pt_opt *opt, const void *values)
{
    return (const char *)values + opt->offset;
}

bool pt_opt_is_without(const struct pt_opts *o, const char *name)
{
    for (const char *const *w = o->without; w && *w; w++) {
        if (!strcmp(*w, name))
            return true;
    }
    return false;
}

static const struct pt_opt_default *instead(const struct pt_opts *o, const struct pt_opt *opt)
{
    for (const struct pt_opt_default *d = o->defaults; d && d->name; d++) {
        if (!strcmp(d->name, opt->name))
            return d;
    }
    return NULL;
}

const char *pt_opt_fallback(const struct pt_opts *o, const struct pt_opt *opt)
{
    const struct pt_opt_default *d = instead(o, opt);
    return d && d->text ? d->text : opt->fallback;
}

const char *pt_opt_help(const struct pt_opts *o, const struct pt_opt *opt)
{
    const struct pt_opt_default *d = instead(o, opt);
    return d && d->help ? d->help : opt->help;
}

struct pt_opt_at pt_opt_find(struct pt_opts *sets, size_t n, const char *name)
{
    for (size_t s = 0; s < n; s++) {
        for (uint32_t row = 0; sets[s].table && sets[s].table[row].name; row++) {
            const struct pt_opt *opt = &sets[s].table[row];
            if (!strcmp(opt->name, name) && !pt_opt_is_without(&sets[s], name))
                return (struct pt_opt_at){&sets[s], opt, row};
        }
    }
    return (struct pt_opt_at){0};
}

bool pt_opt_given(const struct pt_opts *sets, size_t n, const char *name)
{
    for (size_t s = 0; s < n; s++) {
        for (uint32_t row = 0; sets[s].table && sets[s].table[row].name; row++) {
            if (!strcmp(sets[s].table[row].name, name))
                return sets[s].given >> row & 1;
        }
    }
    return false;
}

/* ---- limits */

static uint64_t type_max(const struct pt_opt *opt)
{
    return opt->type == PT_OPT_U32 ? UINT32_MAX : INT64_MAX;
}

static const char *print_number(const struct pt_opt *opt, uint64_t v, char *out, size_t cap)
{
    switch (opt->type) {
    case PT_OPT_SIZE:
        return pt_size_print(out, cap, v);
    case PT_OPT_TIME:
        return pt_time_print(out, cap, (pt_ns)v);
    default:
        return pt_count_print(out, cap, v);
    }
}

int pt_opt_within(const struct pt_opt *opt, double v, struct pt_err *e)
{
    uint64_t max = opt->max ? opt->max : type_max(opt);
    char low[PT_UNITS_TEXT], high[PT_UNITS_TEXT];
    print_number(opt, opt->min, low, sizeof(low));
    print_number(opt, max, high, sizeof(high));
    if (v < (double)opt->min)
        return pt_fail(e, -EINVAL, "--%s must be at least %s", opt->name, low);
    if (v > (double)max)
        return pt_fail(e, -EINVAL, "--%s must be at most %s", opt->name, high);
    return 0;
}

/* ---- one value from text */

static int parse_bool(const char *text, bool *out, struct pt_err *e)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < PT_COUNT(words); i++) {
        if (!strcmp(text, words[i])) {
            *out = i & 1;
            return 0;
        }
    }
    return pt_fail(e, -EINVAL, "expected true or false");
}

int pt_opt_enum(const struct pt_opt *opt, const char *text, int *out, struct pt_err *e)
{
    char all[200] = "";
    for (int i = 0; opt->names[i]; i++) {
        if (!strcmp(text, opt->names[i])) {
            *out = i;
            return 0;
        }
        size_t n = strlen(all);
        snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", opt->names[i]);
    }
    char quoted[80];
    pt_log_quote(quoted, sizeof(quoted), text, strlen(text));
    return pt_fail(e, -EINVAL, "'%s' is none of %s", quoted, all);
}

int pt_strs_add(struct pt_strs *list, const char *text, size_t len, struct pt_err *e)
{
    if (!len)
        return pt_fail(e, -EINVAL, "an entry is empty");
    if (list->n == PT_STRS_MAX)
        return pt_fail(e, -EINVAL, "more than %d entries", PT_STRS_MAX);
    if (len >= PT_STRS_LEN)
        return pt_fail(e, -EINVAL, "an entry is longer than %d bytes", PT_STRS_LEN - 1);
    memcpy(list->at[list->n], text, len);
    list->at[list->n][len] = '\0';
    list->n++;
    return 0;
}

static int parse_list(const struct pt_opt *opt, struct pt_strs *list, const char *text,
                      struct pt_err *e)
{
    if (!(opt->flags & PT_OPT_COMMAS))
        return pt_strs_add(list, text, strlen(text), e);
    for (;;) {
        size_t n = strcspn(text, ",");
        int rc = pt_strs_add(list, text, n, e);
        if (rc < 0 || !text[n])
            return rc;
        text += n + 1;
    }
}

static int parse_string(const struct pt_opt *opt, char *field, const char *text, struct pt_err *e)
{
    size_t n = strlen(text);
    if (n >= opt->size)
        return pt_fail(e, -EINVAL, "longer than %zu bytes", opt->size - 1);
    memcpy(field, text, n + 1);
    return 0;
}

static int parse_u64(const struct pt_opt *opt, void *field, const char *text, struct pt_err *e)
{
    uint64_t v = 0;
    pt_ns ns = 0;
    int rc = opt->type == PT_OPT_TIME   ? pt_time_parse(text, &ns, e)
             : opt->type == PT_OPT_SIZE ? pt_size_parse(text, &v, e)
                                        : pt_count_parse(text, &v, e);
    if (opt->type == PT_OPT_TIME)
        v = (uint64_t)ns;
    if (rc < 0)
        return rc;
    if (pt_opt_within(opt, (double)v, e) < 0)
        return -ERANGE;
    if (opt->type == PT_OPT_U32) {
        uint32_t small = (uint32_t)v;
        memcpy(field, &small, sizeof(small));
    } else {
        memcpy(field, &v, sizeof(v));
    }
    return 0;
}

/* -ERANGE: the sentence already names the option. */
static int parse_field(const struct pt_opt *opt, void *field, const char *text, struct pt_err *e)
{
    switch (opt->type) {
    case PT_OPT_BOOL:
        return parse_bool(text, field, e);
    case PT_OPT_U32:
    case PT_OPT_COUNT:
    case PT_OPT_SIZE:
    case PT_OPT_TIME:
        return parse_u64(opt, field, text, e);
    case PT_OPT_RATE: {
        struct pt_rate rate;
        int rc = pt_rate_parse(text, &rate, e);
        if (rc < 0)
            return rc;
        if (pt_opt_within(opt, rate.per_s, e) < 0)
            return -ERANGE;
        memcpy(field, &rate, sizeof(rate));
        return 0;
    }
    case PT_OPT_PERCENT:
        return pt_percent_parse(text, field, e);
    case PT_OPT_ENUM:
        return pt_opt_enum(opt, text, field, e);
    case PT_OPT_STRING:
        return parse_string(opt, field, text, e);
    case PT_OPT_LIST:
        return parse_list(opt, field, text, e);
    case PT_OPT_CUSTOM:
        return opt->kind->parse(text, field, e);
    }
    return pt_fail(e, -EINVAL, "has no type");
}

int pt_opt_set_row(struct pt_opt_at at, const char *text, struct pt_err *e)
{
    void *field = pt_opt_field(at.opt, at.opts->values);
    uint64_t bit = (uint64_t)1 << at.row;
    if (at.opt->type == PT_OPT_LIST && !(at.opts->given & bit))
        memset(field, 0, at.opt->size);
    int rc = parse_field(at.opt, field, text, e);
    if (rc == -ERANGE)
        return -EINVAL;
    if (rc < 0) {
        if (e)
            pt_fail_prefix(e, "--%s", at.opt->name);
        return -EINVAL;
    }
    at.opts->given |= bit;
    return 0;
}

int pt_opts_init(struct pt_opts *o, struct pt_err *e)
{
    o->given = 0;
    for (uint32_t row = 0; o->table && o->table[row].name; row++) {
        const struct pt_opt *opt = &o->table[row];
        memset(pt_opt_field(opt, o->values), 0, opt->size);
        const char *text = pt_opt_fallback(o, opt);
        if (!text)
            continue;
        int rc = pt_opt_set_row((struct pt_opt_at){o, opt, row}, text, e);
        if (rc < 0)
            return rc;
    }
    o->given = 0;
    return 0;
}

int pt_opt_set(struct pt_opts *sets, size_t n, const char *name, const char *text, struct pt_err *e)
{
    struct pt_opt_at at = pt_opt_find(sets, n, name);
    if (!at.opt)
        return pt_opt_unknown(sets, n, name, "", e);
    return pt_opt_set_row(at, text, e);
}

/* ---- one value to text */

static void print_list(const struct pt_strs *list, struct pt_buf *out)
{
    for (uint32_t i = 0; i < list->n; i++)
        pt_buf_addf(out, "%s%s", i ? "," : "", list->at[i]);
}

void pt_opt_print(const struct pt_opt *opt, const void *values, struct pt_buf *out)
{
    const void *field = pt_opt_field_peek(opt, values);
    char text[PT_UNITS_TEXT];
    uint64_t v = 0;
    uint32_t small = 0;
    double real = 0;
    int index = 0;
    struct pt_rate rate = {0};
    switch (opt->type) {
    case PT_OPT_BOOL:
        pt_buf_adds(out, *(const bool *)field ? "true" : "false");
        break;
    case PT_OPT_U32:
        memcpy(&small, field, sizeof(small));
        pt_buf_adds(out, pt_count_print(text, sizeof(text), small));
        break;
    case PT_OPT_COUNT:
    case PT_OPT_SIZE:
    case PT_OPT_TIME:
        memcpy(&v, field, sizeof(v));
        pt_buf_adds(out, print_number(opt, v, text, sizeof(text)));
        break;
    case PT_OPT_RATE:
        memcpy(&rate, field, sizeof(rate));
        pt_buf_adds(out, pt_rate_print(text, sizeof(text), rate));
        break;
    case PT_OPT_PERCENT:
        memcpy(&real, field, sizeof(real));
        pt_buf_adds(out, pt_percent_print(text, sizeof(text), real));
        break;
    case PT_OPT_ENUM:
        memcpy(&index, field, sizeof(index));
        pt_buf_adds(out, opt->names[index]);
        break;
    case PT_OPT_STRING:
        pt_buf_adds(out, field);
        break;
    case PT_OPT_LIST:
        print_list(field, out);
        break;
    case PT_OPT_CUSTOM:
        opt->kind->print(field, out);
        break;
    }
}

/* ---- names that do not exist */

#define WORD_MAX 32

/* Optimal string alignment distance: insertions, deletions, substitutions, neighbours swapped. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    size_t d[3][WORD_MAX + 1] = {0};
    if (n > WORD_MAX || m > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = d[i % 3], *above = d[(i + 2) % 3], *two_above = d[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two_above[j - 2] + 1 < best)
                best = two_above[j - 2] + 1;
            row[j] = best;
        }
    }
    return d[n % 3][m];
}

/* Keeps in `*best` the nearer one; a word that begins a longer name is near. */
static void consider(const char *word, const char *name, const char **best, size_t *least)
{
    size_t n = strlen(word);
    size_t far = distance(word, name);
    size_t allowed = n < 3 ? 1 : n < 6 ? 2 : 3;
    if (n >= 3 && !strncmp(word, name, n) && far > 1)
        far = 1;
    if (far <= allowed && far < *least) {
        *least = far;
        *best = name;
    }
}

const char *pt_nearest(const char *word, const char *const *names)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (; *names; names++)
        consider(word, *names, &best, &least);
    return best;
}

int pt_opt_unknown(const struct pt_opts *sets, size_t n, const char *name, const char *dashes,
                   struct pt_err *e)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    char quoted[80];
    pt_log_quote(quoted, sizeof(quoted), name, strlen(name));
    for (size_t s = 0; s < n; s++) {
        if (pt_opt_is_without(&sets[s], name))
            return pt_fail(e, -ENOENT, "%s%s does not apply to this command", dashes, quoted);
        for (const struct pt_opt *opt = sets[s].table; opt && opt->name; opt++) {
            if (!(opt->flags & PT_OPT_HIDDEN) && !pt_opt_is_without(&sets[s], opt->name))
                consider(name, opt->name, &best, &least);
        }
    }
    if (best)
        return pt_fail(e, -ENOENT, "unknown option %s%s; did you mean %s%s?", dashes, quoted,
                       dashes, best);
    return pt_fail(e, -ENOENT, "unknown option %s%s; --help lists all", dashes, quoted);
}

/* ---- the table itself */

static size_t size_of(const struct pt_opt *opt)
{
    switch (opt->type) {
    case PT_OPT_BOOL:
        return sizeof(bool);
    case PT_OPT_U32:
        return sizeof(uint32_t);
    case PT_OPT_COUNT:
    case PT_OPT_SIZE:
        return sizeof(uint64_t);
    case PT_OPT_TIME:
        return sizeof(pt_ns);
    case PT_OPT_RATE:
        return sizeof(struct pt_rate);
    case PT_OPT_PERCENT:
        return sizeof(double);
    case PT_OPT_ENUM:
        return sizeof(int);
    case PT_OPT_LIST:
        return sizeof(struct pt_strs);
    case PT_OPT_STRING:
    case PT_OPT_CUSTOM:
        return opt->size;
    }
    return 0;
}

static int row_valid(const struct pt_opt *opt, struct pt_err *e)
{
    if (opt->size != size_of(opt) || !opt->size)
        return pt_fail(e, -EINVAL, "--%s: the field has not the size of its type", opt->name);
    if (!opt->help || !opt->help[0] || opt->help[strlen(opt->help) - 1] == '.')
        return pt_fail(e, -EINVAL, "--%s: help is missing or ends in a full stop", opt->name);
    if ((opt->type == PT_OPT_ENUM) != (opt->names != NULL))
        return pt_fail(e, -EINVAL, "--%s: names belong to an ENUM and only there", opt->name);
    if ((opt->type == PT_OPT_CUSTOM) != (opt->kind != NULL))
        return pt_fail(e, -EINVAL, "--%s: a kind belongs to CUSTOM and only there", opt->name);
    bool needs_metavar = opt->type != PT_OPT_BOOL && opt->type != PT_OPT_ENUM;
    if (needs_metavar != (opt->metavar != NULL))
        return pt_fail(e, -EINVAL, "--%s: a metavar is missing or superfluous", opt->name);
    return 0;
}

static int unique(const struct pt_opts *sets, size_t n, const struct pt_opt *row, struct pt_err *e)
{
    for (size_t s = 0; s < n; s++) {
        for (const struct pt_opt *opt = sets[s].table; opt && opt->name; opt++) {
            if (opt == row || pt_opt_is_without(&sets[s], opt->name))
                continue;
            if (!strcmp(opt->name, row->name) || (row->letter && opt->letter == row->letter))
                return pt_fail(e, -EINVAL, "--%s and --%s clash", opt->name, row->name);
        }
    }
    return 0;
}

int pt_opts_valid(const struct pt_opts *sets, size_t n, struct pt_err *e)
{
    for (size_t s = 0; s < n; s++) {
        size_t rows = 0;
        for (const struct pt_opt *opt = sets[s].table; opt && opt->name; opt++, rows++) {
            if (row_valid(opt, e) < 0)
                return -EINVAL;
            if (!pt_opt_is_without(&sets[s], opt->name) && unique(sets, n, opt, e) < 0)
                return -EINVAL;
        }
        if (rows > 64)
            return pt_fail(e, -EINVAL, "a table has more than 64 rows");
        struct pt_opts copy = sets[s];
        int rc = pt_opts_init(&copy, e);
        if (rc < 0)
            return rc;
        for (const char *const *w = sets[s].without; w && *w; w++) {
            struct pt_opts all = sets[s];
            all.without = NULL;
            if (!pt_opt_find(&all, 1, *w).opt)
                return pt_fail(e, -EINVAL, "there is no --%s to be without", *w);
        }
        for (const struct pt_opt_default *d = sets[s].defaults; d && d->name; d++) {
            if (!pt_opt_find(&copy, 1, d->name).opt)
                return pt_fail(e, -EINVAL, "there is no --%s to have a default", d->name);
        }
    }
    return 0;
}
