/* opt_json.c: option values as JSON, for the result document and the peer; see opt.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/opt.h"
#include "model/opt_row.h"

#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEY_LEN 72

static const char *key_of(const struct pt_opt *opt, char out[KEY_LEN])
{
    snprintf(out, KEY_LEN, "%s%s", opt->name, opt->type == PT_OPT_TIME ? "_s" : "");
    for (char *p = out; *p; p++) {
        if (*p == '-')
            *p = '_';
    }
    return out;
}

static bool wanted(const struct pt_opts *o, const struct pt_opt *opt, unsigned flags)
{
    if (pt_opt_is_without(o, opt->name) || opt->flags & (PT_OPT_HIDDEN | PT_OPT_LOCAL))
        return false;
    return (opt->flags & flags) == flags;
}

/* ---- out */

static json_t *string_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *list_json(const struct pt_strs *list)
{
    json_t *array = json_array();
    for (uint32_t i = 0; array && i < list->n; i++) {
        if (json_array_append_new(array, json_string(list->at[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *text_json(const struct pt_opt *opt, const void *values)
{
    struct pt_buf text;
    pt_buf_init(&text, 64 << 10);
    pt_opt_print(opt, values, &text);
    json_t *v = text.failed ? NULL : string_or_null(pt_buf_str(&text));
    pt_buf_fini(&text);
    return v;
}

static json_t *value_json(const struct pt_opt *opt, const void *values)
{
    const void *field = pt_opt_field_peek(opt, values);
    uint32_t small = 0;
    int64_t v = 0;
    double real = 0;
    struct pt_rate rate = {0};
    switch (opt->type) {
    case PT_OPT_BOOL:
        return json_boolean(*(const bool *)field);
    case PT_OPT_U32:
        memcpy(&small, field, sizeof(small));
        return json_integer(small);
    case PT_OPT_COUNT:
    case PT_OPT_SIZE:
        memcpy(&v, field, sizeof(v));
        return json_integer(v);
    case PT_OPT_TIME:
        memcpy(&v, field, sizeof(v));
        return json_real((double)v / 1e9);
    case PT_OPT_RATE:
        memcpy(&rate, field, sizeof(rate));
        return rate.per_s > 0 ? json_pack("{s:f, s:b}", "per_s", rate.per_s, "bits", rate.bits)
                              : json_null();
    case PT_OPT_PERCENT:
        memcpy(&real, field, sizeof(real));
        return json_real(real);
    case PT_OPT_LIST:
        return list_json(field);
    case PT_OPT_ENUM:
    case PT_OPT_STRING:
    case PT_OPT_CUSTOM:
        return text_json(opt, values);
    }
    return NULL;
}

int pt_opts_to_json(const struct pt_opts *o, unsigned flags, json_t *into)
{
    char key[KEY_LEN];
    for (const struct pt_opt *opt = o->table; opt && opt->name; opt++) {
        if (!wanted(o, opt, flags))
            continue;
        if (json_object_set_new(into, key_of(opt, key), value_json(opt, o->values)) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* ---- in: the sender is not trusted */

static int wrong(const struct pt_opt *opt, const char *expected, struct pt_err *e)
{
    return pt_fail(e, -EINVAL, "parameter %s: expected %s", opt->name, expected);
}

/* NULL when it is no string, too long, or holds bytes that could fool a terminal or a C string. */
static const char *plain_text(const json_t *v, size_t cap)
{
    const char *s = json_string_value(v);
    if (!s || json_string_length(v) >= cap || strlen(s) != json_string_length(v))
        return NULL;
    for (const char *p = s; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return NULL;
    }
    return s;
}

static int integer_in(const struct pt_opt *opt, void *field, const json_t *v, struct pt_err *e)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return wrong(opt, "a whole number", e);
    uint64_t n = (uint64_t)json_integer_value(v);
    int rc = pt_opt_within(opt, (double)n, e);
    if (rc < 0)
        return rc;
    uint32_t small = (uint32_t)n;
    if (opt->type == PT_OPT_U32)
        memcpy(field, &small, sizeof(small));
    else
        memcpy(field, &n, sizeof(n));
    return 0;
}

static int time_in(const struct pt_opt *opt, void *field, const json_t *v, struct pt_err *e)
{
    double s = json_number_value(v);
    if (!json_is_number(v) || !(s >= 0) || s > 9e9)
        return wrong(opt, "seconds", e);
    pt_ns ns = llround(s * 1e9);
    int rc = pt_opt_within(opt, (double)ns, e);
    if (!rc)
        memcpy(field, &ns, sizeof(ns));
    return rc;
}

static int rate_in(const struct pt_opt *opt, void *field, const json_t *v, struct pt_err *e)
{
    struct pt_rate rate = {0};
    if (!json_is_null(v)) {
        const json_t *per_s = json_object_get(v, "per_s"), *bits = json_object_get(v, "bits");
        rate.per_s = json_number_value(per_s);
        rate.bits = json_is_true(bits);
        if (json_object_size(v) != 2 || !json_is_number(per_s) || !json_is_boolean(bits) ||
            !(rate.per_s >= 0) || rate.per_s > 1e18)
            return wrong(opt, "null or {per_s, bits}", e);
        int rc = pt_opt_within(opt, rate.per_s, e);
        if (rc < 0)
            return rc;
    }
    memcpy(field, &rate, sizeof(rate));
    return 0;
}

static int percent_in(const struct pt_opt *opt, void *field, const json_t *v, struct pt_err *e)
{
    double p = json_number_value(v);
    if (!json_is_number(v) || !(p >= 0) || p > 100)
        return wrong(opt, "a percentage", e);
    memcpy(field, &p, sizeof(p));
    return 0;
}

static int list_in(const struct pt_opt *opt, struct pt_strs *list, const json_t *v,
                   struct pt_err *e)
{
    if (!json_is_array(v))
        return wrong(opt, "a list of texts", e);
    memset(list, 0, sizeof(*list));
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *s = plain_text(json_array_get(v, i), PT_STRS_LEN);
        if (!s)
            return wrong(opt, "a list of short texts", e);
        int rc = pt_strs_add(list, s, strlen(s), e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int text_in(const struct pt_opt *opt, void *field, const json_t *v, struct pt_err *e)
{
    if (json_is_null(v) && opt->type != PT_OPT_ENUM) {
        memset(field, 0, opt->size);
        return 0;
    }
    const char *s = plain_text(v, opt->type == PT_OPT_STRING ? opt->size : 4096);
    if (!s)
        return wrong(opt, "a short text without control characters", e);
    if (opt->type == PT_OPT_ENUM)
        return pt_opt_enum(opt, s, field, e);
    if (opt->type == PT_OPT_CUSTOM)
        return opt->kind->parse(s, field, e);
    memcpy(field, s, strlen(s) + 1);
    return 0;
}

static int value_in(const struct pt_opt *opt, void *field, const json_t *v, struct pt_err *e)
{
    switch (opt->type) {
    case PT_OPT_BOOL:
        if (!json_is_boolean(v))
            return wrong(opt, "true or false", e);
        *(bool *)field = json_is_true(v);
        return 0;
    case PT_OPT_U32:
    case PT_OPT_COUNT:
    case PT_OPT_SIZE:
        return integer_in(opt, field, v, e);
    case PT_OPT_TIME:
        return time_in(opt, field, v, e);
    case PT_OPT_RATE:
        return rate_in(opt, field, v, e);
    case PT_OPT_PERCENT:
        return percent_in(opt, field, v, e);
    case PT_OPT_LIST:
        return list_in(opt, field, v, e);
    case PT_OPT_ENUM:
    case PT_OPT_STRING:
    case PT_OPT_CUSTOM:
        return text_in(opt, field, v, e);
    }
    return -EINVAL;
}

static struct pt_opt_at find_key(struct pt_opts *sets, size_t n, unsigned flags, const char *key)
{
    char own[KEY_LEN];
    for (size_t s = 0; s < n; s++) {
        for (uint32_t row = 0; sets[s].table && sets[s].table[row].name; row++) {
            const struct pt_opt *opt = &sets[s].table[row];
            if (wanted(&sets[s], opt, flags) && !strcmp(key_of(opt, own), key))
                return (struct pt_opt_at){&sets[s], opt, row};
        }
    }
    return (struct pt_opt_at){0};
}

int pt_opts_from_json(struct pt_opts *sets, size_t n, unsigned flags, const json_t *from,
                      struct pt_err *e)
{
    if (!json_is_object(from))
        return pt_fail(e, -EINVAL, "the parameters are not an object");
    const char *key;
    json_t *value;
    /* The iterator of jansson takes a non-const object; nothing is changed through it. */
    union {
        const json_t *in;
        json_t *out;
    } object = {.in = from};
    json_object_foreach(object.out, key, value)
    {
        struct pt_opt_at at = find_key(sets, n, flags, key);
        if (!at.opt) {
            char quoted[80];
            pt_log_quote(quoted, sizeof(quoted), key, strlen(key));
            return pt_fail(e, -EINVAL, "unknown parameter '%s'", quoted);
        }
        int rc = value_in(at.opt, pt_opt_field(at.opt, at.opts->values), value, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}
