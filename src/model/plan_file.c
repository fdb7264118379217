/* plan_file.c: see plan_file.h: from the tree to hosts and tests. Values of tests are read in
 * plan_value.c; plan_print.c writes a plan.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/plan_file.h"

#include "base/log.h"
#include "model/plan_value.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- sentences */

/* "--duration must be" as "duration must be": a plan has no dashes before its keys. Command lines
 * stand in backticks and keep theirs. */
static void without_dashes(char *text)
{
    char *to = text;
    bool quoted = false;
    for (const char *from = text; *from; from++) {
        quoted ^= *from == '`';
        bool begins = !quoted && (from == text || strchr(" ('", from[-1]));
        if (begins && from[0] == '-' && from[1] == '-' && islower((unsigned char)from[2]))
            from += 2;
        *to++ = *from;
    }
    *to = '\0';
}

int pt_plan_file_refuse(const struct pt_plan_file *f, uint32_t line, uint32_t column,
                        struct pt_err *e)
{
    if (!e)
        return -EINVAL;
    without_dashes(e->text);
    pt_fail_prefix(e, "%s:%u:%u", f->origin, line, column);
    return e->code = -EINVAL;
}

int pt_plan_at_value(const struct pt_plan_file *f, const struct pt_yaml *y, struct pt_err *e)
{
    return pt_plan_file_refuse(f, y->line, y->column, e);
}

int pt_plan_at_key(const struct pt_plan_file *f, const struct pt_yaml *y, struct pt_err *e)
{
    return pt_plan_file_refuse(f, y->key_line, y->key_column, e);
}

int pt_plan_unknown_key(const struct pt_plan_file *f, const struct pt_yaml *y, const char *of,
                        const char *const *known, struct pt_err *e)
{
    char quoted[80], all[160] = "";
    const char *near = pt_nearest(y->key, known);
    for (size_t i = 0, n = 0; known[i] && n < sizeof(all); i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "", known[i]);
    pt_log_quote(quoted, sizeof(quoted), y->key, strlen(y->key));
    if (near)
        pt_fail(e, -EINVAL, "unknown key '%s' of %s; did you mean '%s'?", quoted, of, near);
    else
        pt_fail(e, -EINVAL, "unknown key '%s' of %s; expected one of %s", quoted, of, all);
    return pt_plan_at_key(f, y, e);
}

static int expect_kind(const struct pt_plan_file *f, const struct pt_yaml *y,
                       enum pt_yaml_kind kind, const char *expected, struct pt_err *e)
{
    if (y->kind == kind && !y->fallback)
        return 0;
    pt_fail(e, -EINVAL, "expected %s", expected);
    return pt_plan_at_value(f, y, e);
}

int pt_plan_take_name(const struct pt_plan_file *f, const struct pt_yaml *y, char out[PT_PLAN_NAME],
                      struct pt_err *e)
{
    size_t n = y->kind == PT_YAML_TEXT ? strlen(y->text) : 0;
    if (!n || n >= PT_PLAN_NAME || y->fallback || pt_yaml_is_nothing(y)) {
        pt_fail(e, -EINVAL, "expected a name of 1 to %d bytes", PT_PLAN_NAME - 1);
        return pt_plan_at_value(f, y, e);
    }
    memcpy(out, y->text, n + 1);
    return 0;
}

/* ---- hosts */

static int take_count(struct pt_plan_file *f, struct pt_plan_host *h, const struct pt_yaml *y,
                      struct pt_err *e)
{
    uint64_t n = 0;
    if (strcmp(y->key, "count") != 0)
        return pt_plan_unknown_key(f, y, "a host", (const char *const[]){"count", NULL}, e);
    if (y->kind != PT_YAML_TEXT || y->fallback || pt_count_parse(y->text, &n, NULL) < 0 || !n ||
        n > PT_PLAN_HOSTS) {
        pt_fail(e, -EINVAL, "count: expected a number of hosts, 1 to %d", PT_PLAN_HOSTS);
        return pt_plan_at_value(f, y, e);
    }
    h->count = (uint32_t)n;
    return 0;
}

/* The name of a host is part of addresses in reports and of NAME-1. */
static bool is_host_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t n = strlen(name);
    return n && n <= 40 && strspn(name, letters) == n && name[0] != '-';
}

static int take_host(struct pt_plan_file *f, const struct pt_yaml *y, struct pt_err *e)
{
    struct pt_plan_host *h = &f->host[f->host_names];
    if (!is_host_name(y->key)) {
        pt_fail(e, -EINVAL, "a host has a name of up to 40 letters, digits and . _ -");
        return pt_plan_at_key(f, y, e);
    }
    if (!pt_yaml_is_nothing(y)) {
        int rc = expect_kind(f, y, PT_YAML_MAP, "{} for one host, or {count: N}", e);
        if (rc < 0)
            return rc;
    }
    *h = (struct pt_plan_host){.count = 1, .first = f->hosts};
    snprintf(h->name, sizeof(h->name), "%s", y->key);
    for (const struct pt_yaml *c = y->first; c; c = c->next) {
        int rc = take_count(f, h, c, e);
        if (rc < 0)
            return rc;
    }
    if (f->hosts + h->count > PT_PLAN_HOSTS) {
        pt_fail(e, -EINVAL, "more than %d hosts in all", PT_PLAN_HOSTS);
        return pt_plan_at_key(f, y, e);
    }
    f->host_names++;
    f->hosts += h->count;
    return 0;
}

const char *pt_plan_file_host(const struct pt_plan_file *f, uint32_t index, char out[PT_PLAN_NAME])
{
    out[0] = '\0';
    for (uint32_t i = 0; i < f->host_names; i++) {
        const struct pt_plan_host *h = &f->host[i];
        if (index < h->first || index - h->first >= h->count)
            continue;
        if (h->count == 1)
            snprintf(out, PT_PLAN_NAME, "%s", h->name);
        else
            snprintf(out, PT_PLAN_NAME, "%s-%u", h->name, index - h->first + 1);
    }
    return out;
}

/* `a` written by itself and NAME-1 of a group are two hosts of one name. */
static int check_host_names(const struct pt_plan_file *f, const struct pt_yaml *hosts,
                            struct pt_err *e)
{
    char a[PT_PLAN_NAME], b[PT_PLAN_NAME];
    for (uint32_t i = 0; i < f->hosts; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(pt_plan_file_host(f, i, a), pt_plan_file_host(f, k, b)) != 0)
                continue;
            pt_fail(e, -EINVAL, "two hosts are called %s: hosts of a `count` are numbered", a);
            return pt_plan_at_value(f, hosts, e);
        }
    }
    return 0;
}

static int take_hosts(struct pt_plan_file *f, const struct pt_yaml *y, struct pt_err *e)
{
    int rc = expect_kind(f, y, PT_YAML_MAP, "a map of hosts, such as {target: {}, sender: {}}", e);
    if (rc == 0 && !y->n) {
        pt_fail(e, -EINVAL, "expected at least one host; without `hosts` this machine is measured");
        rc = pt_plan_at_value(f, y, e);
    }
    for (const struct pt_yaml *c = y->first; rc == 0 && c; c = c->next)
        rc = take_host(f, c, e);
    return rc < 0 ? rc : check_host_names(f, y, e);
}

/* ---- tests */

static int take_test(struct pt_plan_file *f, const struct pt_yaml *item,
                     const struct pt_plan_form *const *forms, bool nested, struct pt_err *e);

static int take_together(struct pt_plan_file *f, const struct pt_yaml *y,
                         const struct pt_plan_form *const *forms, bool nested, struct pt_err *e)
{
    if (nested) {
        pt_fail(e, -EINVAL, "`together` stands within another one: put its tests into that");
        return pt_plan_at_key(f, y, e);
    }
    int rc = expect_kind(f, y, PT_YAML_LIST, "a list of the tests that run at the same instant", e);
    if (rc == 0 && !y->n) {
        pt_fail(e, -EINVAL, "expected at least one test");
        rc = pt_plan_at_value(f, y, e);
    }
    for (const struct pt_yaml *c = y->first; rc == 0 && c; c = c->next)
        rc = take_test(f, c, forms, true, e);
    return rc;
}

static const struct pt_plan_form *find_form(const struct pt_plan_form *const *forms,
                                            const char *word)
{
    for (; *forms; forms++)
        if (!strcmp((*forms)->manual.command, word))
            return *forms;
    return NULL;
}

static int unknown_command(const struct pt_plan_file *f, const struct pt_yaml *y,
                           const struct pt_plan_form *const *forms, bool nested, struct pt_err *e)
{
    const char *known[16] = {0};
    size_t n = 0;
    for (; n < PT_COUNT(known) - 2 && forms[n]; n++)
        known[n] = forms[n]->manual.command;
    if (!nested)
        known[n] = "together";
    return pt_plan_unknown_key(f, y, "`tests`", known, e);
}

/* One item of a list of tests: a map of one key. */
static int take_test(struct pt_plan_file *f, const struct pt_yaml *item,
                     const struct pt_plan_form *const *forms, bool nested, struct pt_err *e)
{
    int rc = expect_kind(f, item, PT_YAML_MAP, "a test, such as `lat: {duration: 10s}`", e);
    if (rc < 0)
        return rc;
    const struct pt_yaml *y = item->first;
    if (!y) {
        pt_fail(e, -EINVAL, "expected a test, such as `lat: {duration: 10s}`");
        return pt_plan_at_value(f, item, e);
    }
    if (y->next) {
        char quoted[80];
        pt_fail(e, -EINVAL,
                "'%s' does not belong here: an item of `tests` is one command with its options, "
                "indented below it or in {}",
                pt_log_quote(quoted, sizeof(quoted), y->next->key, strlen(y->next->key)));
        return pt_plan_at_key(f, y->next, e);
    }
    if (!strcmp(y->key, "together"))
        rc = take_together(f, y, forms, nested, e);
    else {
        const struct pt_plan_form *form = find_form(forms, y->key);
        rc = form ? pt_plan_value_test(f, form, y, e) : unknown_command(f, y, forms, nested, e);
    }
    if (rc == 0 && !nested)
        f->groups++;
    return rc;
}

/* Tests without a name are called by their command, with a number where that is taken. */
static int name_tests(struct pt_plan_file *f, struct pt_err *e)
{
    for (uint32_t i = 0; i < f->tests; i++) {
        struct pt_plan_test *t = f->test[i];
        for (uint32_t k = 0; k < i && t->name[0]; k++) {
            if (strcmp(t->name, f->test[k]->name) != 0)
                continue;
            pt_fail(e, -EINVAL, "two tests are called '%s' (the other one in line %u)", t->name,
                    f->test[k]->line);
            return pt_plan_file_refuse(f, t->line, t->column, e);
        }
    }
    for (uint32_t i = 0; i < f->tests; i++) {
        struct pt_plan_test *t = f->test[i];
        for (unsigned number = 1; !t->name[0]; number++) {
            char name[PT_PLAN_NAME];
            const char *command = t->plan.form->manual.command;
            snprintf(name, sizeof(name), number > 1 ? "%s-%u" : "%s", command, number);
            bool taken = false;
            for (uint32_t k = 0; k < f->tests; k++)
                taken |= !strcmp(f->test[k]->name, name);
            if (!taken)
                memcpy(t->name, name, sizeof(name));
        }
    }
    return 0;
}

static int take_tests(struct pt_plan_file *f, const struct pt_yaml *y,
                      const struct pt_plan_form *const *forms, struct pt_err *e)
{
    int rc = expect_kind(f, y, PT_YAML_LIST, "a list of tests, each behind a dash", e);
    if (rc == 0 && !y->n) {
        pt_fail(e, -EINVAL, "expected at least one test");
        rc = pt_plan_at_value(f, y, e);
    }
    for (const struct pt_yaml *c = y->first; rc == 0 && c; c = c->next)
        rc = take_test(f, c, forms, false, e);
    return rc < 0 ? rc : name_tests(f, e);
}

/* ---- the whole */

static int take_plan(struct pt_plan_file *f, const struct pt_yaml *root,
                     const struct pt_plan_form *const *forms, struct pt_err *e)
{
    static const char *const known[] = {"name", "hosts", "tests", NULL};
    const struct pt_yaml *tests = NULL;
    int rc = expect_kind(f, root, PT_YAML_MAP, "a plan: a map with `tests:`, `hosts:`, `name:`", e);
    for (const struct pt_yaml *c = root->first; rc == 0 && c; c = c->next) {
        if (!strcmp(c->key, "name")) {
            rc = pt_plan_take_name(f, c, f->name, e);
        } else if (!strcmp(c->key, "hosts")) {
            rc = take_hosts(f, c, e);
        } else if (!strcmp(c->key, "tests")) {
            tests = c;
        } else if (!strcmp(c->key, "link")) {
            pt_fail(e, -EINVAL,
                    "link: this version has no emulated links: hosts are joined directly; leave "
                    "the key out");
            rc = pt_plan_at_key(f, c, e);
        } else {
            rc = pt_plan_unknown_key(f, c, "a plan", known, e);
        }
    }
    if (rc < 0)
        return rc;
    if (!tests) {
        pt_fail(e, -EINVAL, "the plan has no `tests:`");
        return pt_plan_at_value(f, root, e);
    }
    /* Last, so that a test may name hosts that are written below it. */
    return take_tests(f, tests, forms, e);
}

/* A plan without a name is called like its file. */
static void name_plan(struct pt_plan_file *f)
{
    const char *slash = strrchr(f->origin, '/'), *base = slash ? slash + 1 : f->origin;
    size_t n = strcspn(base, ".");
    if (!f->name[0])
        snprintf(f->name, sizeof(f->name), "%.*s", (int)(n < 60 ? n : 60), n ? base : "plan");
}

int pt_plan_file_parse(struct pt_plan_file *f, const char *origin, const char *bytes, size_t n,
                       const struct pt_plan_form *const *forms, struct pt_err *e)
{
    struct pt_yaml *root = NULL;
    memset(f, 0, sizeof(*f));
    snprintf(f->origin, sizeof(f->origin), "%s", origin);
    int rc = pt_yaml_parse(bytes, n, &root, e);
    if (rc < 0 && e) {
        char rest[sizeof(e->text)]; /* LINE:COLUMN: follows the name without a space */
        memcpy(rest, e->text, sizeof(rest));
        pt_fail(e, rc, "%.200s:%s", f->origin, rest);
    }
    if (rc == 0)
        rc = take_plan(f, root, forms, e);
    pt_yaml_free(root);
    if (rc < 0)
        pt_plan_file_fini(f);
    else
        name_plan(f);
    return rc;
}

static int read_text(const char *path, struct pt_buf *into, struct pt_err *e)
{
    /* Not blocking: a FIFO without a writer reads as empty. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return pt_fail(e, -errno, "%s: %s", path, pt_strerror(-errno));
    int rc = 1;
    while (rc > 0) {
        char *room = pt_buf_reserve(into, 4096);
        ssize_t got = room ? read(fd, room, 4096) : 0;
        if (!room)
            rc = pt_fail(e, -EFBIG, "%s: larger than %zu bytes, too large for a plan", path,
                         PT_YAML_BYTES);
        else if (got < 0 && errno != EINTR)
            rc = pt_fail(e, -errno, "%s: %s", path, pt_strerror(-errno));
        else if (got == 0)
            rc = 0;
        into->len += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return rc;
}

int pt_plan_file_load(struct pt_plan_file *f, const char *path,
                      const struct pt_plan_form *const *forms, struct pt_err *e)
{
    struct pt_buf text;
    memset(f, 0, sizeof(*f));
    pt_buf_init(&text, PT_YAML_BYTES + 4096);
    int rc = read_text(path, &text, e);
    if (rc == 0)
        rc = pt_plan_file_parse(f, path, pt_buf_str(&text), text.len, forms, e);
    pt_buf_fini(&text);
    return rc;
}

void pt_plan_file_fini(struct pt_plan_file *f)
{
    for (uint32_t i = 0; i < f->tests; i++) {
        pt_plan_fini(&f->test[i]->plan);
        free(f->test[i]);
        f->test[i] = NULL;
    }
    f->tests = f->groups = 0;
}

int pt_plan_file_only(struct pt_plan_file *f, const struct pt_strs *names, struct pt_err *e)
{
    const char *known[PT_PLAN_TESTS + 1] = {0};
    for (uint32_t k = 0; k < f->tests; k++)
        known[k] = f->test[k]->name;
    for (uint32_t k = 0; k < f->tests; k++)
        f->test[k]->left_out = names->n > 0;
    for (uint32_t i = 0; i < names->n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < f->tests; k++) {
            if (strcmp(names->at[i], f->test[k]->name) != 0)
                continue;
            f->test[k]->left_out = false;
            found = true;
        }
        if (found)
            continue;
        char quoted[80];
        const char *near = pt_nearest(names->at[i], known);
        return pt_fail(e, -EINVAL, "--only: %s has no test '%s'; %s '%s'%s", f->origin,
                       pt_log_quote(quoted, sizeof(quoted), names->at[i], strlen(names->at[i])),
                       near ? "did you mean" : "its first is", near ? near : known[0],
                       near ? "?" : "");
    }
    return 0;
}
