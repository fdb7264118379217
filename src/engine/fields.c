/* fields.c: see fields.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/fields.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static json_t *one_to_json(const struct pt_field *f, const char *at)
{
    switch (f->type) {
    case PT_FIELD_U64: {
        uint64_t v;
        memcpy(&v, at, sizeof(v));
        return v ? json_integer((json_int_t)(v > INT64_MAX ? INT64_MAX : v)) : NULL;
    }
    case PT_FIELD_U32: {
        uint32_t v;
        memcpy(&v, at, sizeof(v));
        return v ? json_integer(v) : NULL;
    }
    case PT_FIELD_I64: {
        int64_t v;
        memcpy(&v, at, sizeof(v));
        return v ? json_integer(v) : NULL;
    }
    case PT_FIELD_INT: {
        int v;
        memcpy(&v, at, sizeof(v));
        return v ? json_integer(v) : NULL;
    }
    case PT_FIELD_REAL: {
        double v;
        memcpy(&v, at, sizeof(v));
        return isfinite(v) && v != 0 ? json_real(v) : NULL;
    }
    case PT_FIELD_BOOL: {
        bool v;
        memcpy(&v, at, sizeof(v));
        return v ? json_true() : NULL;
    }
    case PT_FIELD_TEXT:
        return *at ? json_string(at) : NULL;
    }
    return NULL;
}

json_t *pt_fields_to_json(const struct pt_field *table, const void *from)
{
    json_t *o = json_object();
    for (; o && table->name; table++) {
        json_t *v = one_to_json(table, (const char *)from + table->offset);
        if (v && json_object_set_new(o, table->name, v) < 0) {
            json_decref(o);
            return NULL;
        }
    }
    return o;
}

static int integer(const struct pt_field *f, char *at, json_int_t v)
{
    if (f->type == PT_FIELD_U64 && v >= 0) {
        uint64_t u = (uint64_t)v;
        memcpy(at, &u, sizeof(u));
    } else if (f->type == PT_FIELD_U32 && v >= 0 && v <= UINT32_MAX) {
        uint32_t u = (uint32_t)v;
        memcpy(at, &u, sizeof(u));
    } else if (f->type == PT_FIELD_I64) {
        int64_t i = v;
        memcpy(at, &i, sizeof(i));
    } else if (f->type == PT_FIELD_INT && v >= INT32_MIN && v <= INT32_MAX) {
        int i = (int)v;
        memcpy(at, &i, sizeof(i));
    } else {
        return -EPROTO;
    }
    return 0;
}

static int one_from_json(const struct pt_field *f, char *at, const json_t *v)
{
    if (f->type == PT_FIELD_REAL) {
        double d = json_number_value(v);
        if (!json_is_number(v) || !isfinite(d))
            return -EPROTO;
        memcpy(at, &d, sizeof(d));
        return 0;
    }
    if (f->type == PT_FIELD_BOOL) {
        bool b = json_is_true(v);
        if (!json_is_boolean(v))
            return -EPROTO;
        memcpy(at, &b, sizeof(b));
        return 0;
    }
    if (f->type == PT_FIELD_TEXT) {
        size_t n = json_string_length(v);
        if (!json_is_string(v) || n >= f->size)
            return -EPROTO;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)json_string_value(v)[i] < 0x20)
                return -EPROTO;
        memcpy(at, json_string_value(v), n + 1);
        return 0;
    }
    return json_is_integer(v) ? integer(f, at, json_integer_value(v)) : -EPROTO;
}

int pt_fields_from_json(const struct pt_field *table, void *into, const json_t *from)
{
    if (!json_is_object(from))
        return -EPROTO;
    for (; table->name; table++) {
        const json_t *v = json_object_get(from, table->name);
        int rc = v ? one_from_json(table, (char *)into + table->offset, v) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}
