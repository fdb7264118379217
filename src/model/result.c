/* result.c: see result.h. Reading files is in result_load.c, histograms in result_hist.c, repeated
 * runs in result_repeat.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/result.h"

#include "base/log.h"
#include "base/rng.h"
#include "model/plan.h"
#include "os/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 80

static void note_failure(struct pt_result *r, int code)
{
    if (!r->failed)
        r->failed = code;
}

/* ---- text that may hold any bytes */

static json_t *text_json(const char *text)
{
    if (!text)
        return json_null();
    json_t *s = json_string(text);
    if (s)
        return s;
    /* Not UTF-8, or no memory; four characters replace a byte at most. */
    size_t cap = strlen(text) * 4 + 8;
    char *quoted = malloc(cap);
    if (!quoted)
        return NULL;
    s = json_string(pt_log_quote(quoted, cap, text, strlen(text)));
    free(quoted);
    return s;
}

/* ---- life */

/* Sortable and unique: "20260131T235959Z-1f2e3d4c". */
static void make_id(const char *started, char *out, size_t cap)
{
    uint32_t random = 0;
    if (pt_random_bytes(&random, sizeof(random)) < 0)
        random = (uint32_t)pt_clock_now();
    char stamp[32];
    size_t n = 0;
    for (const char *p = started; *p && *p != '.' && n < sizeof(stamp) - 1; p++) {
        if (*p != '-' && *p != ':')
            stamp[n++] = *p;
    }
    stamp[n] = '\0';
    snprintf(out, cap, "%sZ-%08x", stamp, random);
}

struct pt_result *pt_result_bare(const char *schema, pt_ns realtime)
{
    struct pt_result *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->root = json_object();
    if (!r->root) {
        free(r);
        return NULL;
    }
    char started[32], id[64];
    pt_clock_rfc3339(realtime, started);
    make_id(started, id, sizeof(id));
    pt_result_str(r, "schema", schema);
    pt_result_str(r, "version", PT_VERSION);
    pt_result_str(r, "id", id);
    pt_result_str(r, "started", started);
    pt_result_str(r, "status", "ok");
    pt_result_i64(r, "exit", 0);
    return r;
}

struct pt_result *pt_result_new(pt_ns realtime)
{
    struct pt_result *r = pt_result_bare(PT_RESULT_SCHEMA, realtime);
    static const char *const lists[] = {"headline", "limited_by", "warnings", "notes"};
    for (size_t i = 0; r && i < PT_COUNT(lists); i++)
        pt_result_take(r, lists[i], json_array());
    return r;
}

void pt_result_free(struct pt_result *r)
{
    if (!r)
        return;
    json_decref(r->root);
    free(r);
}

int pt_result_failed(const struct pt_result *r)
{
    return r->failed;
}

/* A document is as deep as its schema. */
static void round_all(json_t *v)
{
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_real(v)) {
        json_real_set(v, pt_real_stored(json_real_value(v)));
    } else if (json_is_object(v)) {
        json_object_foreach(v, key, member)
        {
            round_all(member);
        }
    } else if (json_is_array(v)) {
        json_array_foreach(v, i, member)
        {
            round_all(member);
        }
    }
}

void pt_result_round(struct pt_result *r)
{
    round_all(r->root);
}

/* ---- paths */

/* Copies the first key of a path; returns what follows it ("" at the end), NULL when it is empty or
 * too long. */
static const char *first_key(const char *path, char key[KEY_MAX])
{
    size_t n = 0;
    for (; *path && *path != '.'; path++) {
        if (n == KEY_MAX - 1)
            return NULL;
        key[n++] = *path;
    }
    key[n] = '\0';
    return !n ? NULL : *path ? path + 1 : path;
}

static json_t *element(json_t *array, const char *key)
{
    size_t index = 0;
    if (strspn(key, "0123456789") != strlen(key) || strlen(key) > 9)
        return NULL;
    for (; *key; key++)
        index = index * 10 + (size_t)(*key - '0');
    return json_array_get(array, index);
}

static json_t *child_of(json_t *at, const char *key)
{
    return json_is_array(at) ? element(at, key) : json_object_get(at, key);
}

json_t *pt_result_at(const struct pt_result *r, const char *path)
{
    json_t *at = r->root;
    char key[KEY_MAX];
    while (*path && at) {
        path = first_key(path, key);
        if (!path)
            return NULL;
        at = child_of(at, key);
    }
    return at;
}

/* The object that holds the last key of `path`, made when missing; the key goes to `last`. Elements
 * of an array must be there. */
static json_t *holder(struct pt_result *r, const char *path, char last[KEY_MAX])
{
    json_t *at = r->root;
    for (;;) {
        path = first_key(path, last);
        if (!path || !(json_is_object(at) || (*path && json_is_array(at)))) {
            note_failure(r, -EINVAL);
            return NULL;
        }
        if (!*path)
            return at;
        json_t *child = child_of(at, last);
        if (!child && json_is_object(at)) {
            child = json_object();
            if (json_object_set_new(at, last, child) < 0) {
                note_failure(r, -ENOMEM);
                return NULL;
            }
        }
        at = child;
    }
}

/* ---- setters */

void pt_result_take(struct pt_result *r, const char *path, json_t *value)
{
    char last[KEY_MAX];
    json_t *at = holder(r, path, last);
    if (!at)
        json_decref(value);
    else if (json_object_set_new(at, last, value) < 0)
        note_failure(r, -ENOMEM);
}

void pt_result_append(struct pt_result *r, const char *path, json_t *value)
{
    json_t *array = pt_result_at(r, path);
    if (!array) {
        pt_result_take(r, path, json_array());
        array = pt_result_at(r, path);
    }
    if (!json_is_array(array)) {
        note_failure(r, -EINVAL);
        json_decref(value);
    } else if (json_array_append_new(array, value) < 0) {
        note_failure(r, -ENOMEM);
    }
}

void pt_result_u64(struct pt_result *r, const char *path, uint64_t n)
{
    pt_result_take(r, path, n > INT64_MAX ? json_null() : json_integer((json_int_t)n));
}

void pt_result_i64(struct pt_result *r, const char *path, int64_t n)
{
    pt_result_take(r, path, json_integer(n));
}

void pt_result_real(struct pt_result *r, const char *path, double v)
{
    pt_result_take(r, path, isfinite(v) ? json_real(v) : json_null());
}

void pt_result_bool(struct pt_result *r, const char *path, bool b)
{
    pt_result_take(r, path, json_boolean(b));
}

void pt_result_str(struct pt_result *r, const char *path, const char *text)
{
    pt_result_take(r, path, text_json(text));
}

void pt_result_null(struct pt_result *r, const char *path)
{
    pt_result_take(r, path, json_null());
}

static void append_text(struct pt_result *r, const char *path, const char *fmt, va_list ap)
    PT_PRINTF(3, 0);

static void append_text(struct pt_result *r, const char *path, const char *fmt, va_list ap)
{
    char text[1024];
    vsnprintf(text, sizeof(text), fmt, ap);
    pt_result_append(r, path, text_json(text));
}

void pt_result_warn(struct pt_result *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    append_text(r, "warnings", fmt, ap);
    va_end(ap);
}

void pt_result_note(struct pt_result *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    append_text(r, "notes", fmt, ap);
    va_end(ap);
}

void pt_result_headline(struct pt_result *r, const char *name, const char *path, const char *unit)
{
    double v = 0;
    json_t *value = pt_result_get_real(r, path, &v) ? json_real(v) : json_null();
    pt_result_append(r, "headline",
                     json_pack("{s:s, s:s, s:o, s:s}", "name", name, "path", path, "value", value,
                               "unit", unit));
}

/* ---- status */

static const char *const status_names[] = {"ok", "partial", "failed"};

enum pt_result_status pt_result_get_status(const struct pt_result *r)
{
    const char *text = pt_result_get_str(r, "status");
    for (size_t i = 0; text && i < PT_COUNT(status_names); i++) {
        if (!strcmp(text, status_names[i]))
            return (enum pt_result_status)i;
    }
    return PT_RESULT_FAILED;
}

void pt_result_status(struct pt_result *r, enum pt_result_status s)
{
    if (s <= pt_result_get_status(r))
        return;
    pt_result_str(r, "status", status_names[s]);
    pt_result_i64(r, "exit", 1);
}

int pt_result_exit(const struct pt_result *r)
{
    uint64_t n = 0;
    return pt_result_get_u64(r, "exit", &n) && n <= 255 ? (int)n : 1;
}

/* ---- from the plan */

void pt_result_plan(struct pt_result *r, const struct pt_plan *p)
{
    const struct pt_common *c = &p->common;
    bool open = c->rate.per_s > 0 || c->boost.rate.per_s > 0;
    pt_result_str(r, "test.workload", p->form->manual.command);
    pt_result_str(r, "test.name", p->form->manual.command);
    pt_result_str(r, "test.target", p->target[0] ? p->target : NULL);
    pt_result_take(r, "test.params", pt_plan_params(p));
    pt_result_str(r, "test.load.mode", c->boost.every ? "boost" : open ? "open" : "closed");
    pt_result_str(r, "test.load.arrivals",
                  !open                                ? NULL
                  : c->arrivals == PT_ARRIVALS_POISSON ? "poisson"
                                                       : "uniform");
    pt_result_u64(r, "test.load.connections", c->connections);
    pt_result_u64(r, "test.load.workers", c->workers);
    if (open) {
        pt_result_real(r, "test.load.rate", c->rate.per_s);
        pt_result_str(r, "test.load.rate_unit", c->rate.bits ? "bit/s" : "operation/s");
        pt_result_null(r, "test.load.inflight");
    } else {
        pt_result_null(r, "test.load.rate");
        pt_result_null(r, "test.load.rate_unit");
        pt_result_u64(r, "test.load.inflight", c->inflight);
    }
    pt_result_real(r, "warmup_s", (double)c->warmup / 1e9);
}

void pt_result_argv(struct pt_result *r, int argc, const char *const *argv)
{
    pt_result_take(r, "argv", json_array());
    for (int i = 0; i < argc; i++)
        pt_result_append(r, "argv", text_json(argv[i]));
}

/* ---- getters */

bool pt_result_get_real(const struct pt_result *r, const char *path, double *v)
{
    json_t *at = pt_result_at(r, path);
    if (json_is_boolean(at))
        *v = json_is_true(at) ? 1 : 0;
    else if (json_is_number(at))
        *v = json_number_value(at);
    else
        return false;
    return true;
}

bool pt_result_get_u64(const struct pt_result *r, const char *path, uint64_t *n)
{
    json_t *at = pt_result_at(r, path);
    if (!json_is_integer(at) || json_integer_value(at) < 0)
        return false;
    *n = (uint64_t)json_integer_value(at);
    return true;
}

const char *pt_result_get_str(const struct pt_result *r, const char *path)
{
    return json_string_value(pt_result_at(r, path));
}

int pt_result_balance(const struct pt_result *r, struct pt_err *e)
{
    uint64_t operations = 0, ok = 0, in_flight = 0, errors = 0;
    if (!pt_result_get_u64(r, "totals.operations", &operations) ||
        !pt_result_get_u64(r, "totals.ok", &ok))
        return pt_fail(e, -EINVAL, "the result has no totals.operations and totals.ok to balance");
    (void)pt_result_get_u64(r, "totals.in_flight_at_end", &in_flight);
    const char *key;
    json_t *v, *object = pt_result_at(r, "totals.errors");
    json_object_foreach(object, key, v) errors += (uint64_t)json_integer_value(v);
    if (operations != ok + errors + in_flight)
        return pt_fail(
            e, -EINVAL,
            "the books do not balance: %llu operations, but %llu ok + %llu errors + %llu "
            "in flight at the end",
            (unsigned long long)operations, (unsigned long long)ok, (unsigned long long)errors,
            (unsigned long long)in_flight);
    return 0;
}
