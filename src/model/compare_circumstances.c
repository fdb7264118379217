/* compare_circumstances.c: see compare_circumstances.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/compare_circumstances.h"

#include "base/buf.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

#define PATH_LEN 300

static const char *const roots[] = {
    "test.params",        "local",          "peer",   "environment",
    "congestion_control", "placement.text", "chosen", "generator.engine"};

/* Another one for each run, or told elsewhere. */
static bool is_passing(const char *path)
{
    static const char *const paths[] = {"local.pid",         "peer.pid",     "local.netns",
                                        "peer.netns",        "peer.address", "test.params.repeat",
                                        "test.params.expect"};
    for (size_t i = 0; i < PT_COUNT(paths); i++)
        if (!strcmp(path, paths[i]))
            return true;
    return false;
}

/* What names an element of a list: its interface, its interrupt, what it is about. */
static void name_of(const json_t *element, size_t index, char *out, size_t cap)
{
    static const char *const keys[] = {"if", "irq", "what"};
    snprintf(out, cap, "%zu", index);
    for (size_t i = 0; i < PT_COUNT(keys); i++) {
        const json_t *v = json_object_get(element, keys[i]);
        if (json_is_string(v))
            snprintf(out, cap, "%s", json_string_value(v));
        else if (json_is_integer(v))
            snprintf(out, cap, "%s %" JSON_INTEGER_FORMAT, keys[i], json_integer_value(v));
    }
}

static bool is_flat(const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (json_is_object(json_array_get(array, i)) || json_is_array(json_array_get(array, i)))
            return false;
    return true;
}

static void print(const json_t *v, struct pt_buf *out)
{
    char number[PT_UNITS_TEXT];
    if (json_is_string(v))
        pt_buf_adds(out, json_string_value(v));
    else if (json_is_integer(v))
        pt_buf_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        pt_buf_adds(out, pt_real_print(number, sizeof(number), json_real_value(v)));
    else if (json_is_boolean(v))
        pt_buf_adds(out, json_is_true(v) ? "yes" : "no");
    else
        pt_buf_adds(out, "-");
}

static int flatten(json_t *into, const char *path, const json_t *v);

static int flatten_members(json_t *into, const char *path, json_t *v)
{
    char below[PATH_LEN], name[64];
    const char *key;
    json_t *member;
    size_t i;
    int rc = 0;
    json_object_foreach(v, key, member)
    {
        snprintf(below, sizeof(below), "%s.%s", path, key);
        rc |= flatten(into, below, member);
    }
    json_array_foreach(v, i, member)
    {
        name_of(member, i, name, sizeof(name));
        snprintf(below, sizeof(below), "%s.%s", path, name);
        rc |= flatten(into, below, member);
    }
    return rc;
}

static int flatten(json_t *into, const char *path, const json_t *v)
{
    struct pt_buf text;
    if (!v || json_is_null(v) || is_passing(path) || strlen(path) > PATH_LEN - 80)
        return 0;
    if (json_is_object(v) || (json_is_array(v) && !is_flat(v)))
        return flatten_members(into, path, (json_t *)(uintptr_t)v);
    pt_buf_init(&text, 4096);
    if (json_is_array(v)) {
        for (size_t i = 0; i < json_array_size(v); i++) {
            pt_buf_adds(&text, i ? " " : "");
            print(json_array_get(v, i), &text);
        }
    } else {
        print(v, &text);
    }
    int rc = json_object_set_new(into, path, json_string(pt_buf_str(&text)));
    pt_buf_fini(&text);
    return rc;
}

json_t *pt_circumstances(const struct pt_result *r)
{
    json_t *all = json_object();
    int rc = all ? 0 : -1;
    for (size_t i = 0; rc == 0 && i < PT_COUNT(roots); i++) {
        const char *root = roots[i];
        if (strcmp(root, "chosen") != 0) {
            rc = flatten(all, root, pt_result_at(r, root));
            continue;
        }
        const json_t *chosen = pt_result_at(r, root);
        for (size_t k = 0; rc == 0 && k < json_array_size(chosen); k++) {
            char path[PATH_LEN], what[64];
            name_of(json_array_get(chosen, k), k, what, sizeof(what));
            snprintf(path, sizeof(path), "chosen.%s", what);
            rc = flatten(all, path, json_object_get(json_array_get(chosen, k), "value"));
        }
    }
    if (rc == 0)
        return all;
    json_decref(all);
    return NULL;
}

/* A start of the system says something only of one and the same machine. */
static bool is_other_machine(const char *path, json_t *const *sides, size_t n)
{
    const char *dot = strrchr(path, '.');
    char host[PATH_LEN];
    if (!dot || strcmp(dot, ".boot_id") != 0)
        return false;
    snprintf(host, sizeof(host), "%.*s.host", (int)(dot - path), path);
    for (size_t i = 1; i < n; i++)
        if (!json_equal(json_object_get(sides[0], host), json_object_get(sides[i], host)))
            return true;
    return false;
}

static int add_difference(json_t *into, const char *path, json_t *const *sides, size_t n)
{
    json_t *values = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *v = json_object_get(sides[i], path);
        json_array_append_new(values, v ? json_incref(v) : json_null());
    }
    return json_array_append_new(into, json_pack("{s:s, s:o}", "path", path, "values", values));
}

json_t *pt_circumstances_differ(json_t *const *sides, size_t n)
{
    json_t *all = json_array();
    int rc = all ? 0 : -1;
    for (size_t side = 0; side < n; side++) {
        const char *path;
        json_t *value;
        json_object_foreach(sides[side], path, value)
        {
            bool seen = false, same = true;
            for (size_t i = 0; i < side; i++)
                seen |= json_object_get(sides[i], path) != NULL;
            for (size_t i = 0; i < n && !seen; i++) {
                json_t *other = json_object_get(sides[i], path);
                same &= other && json_equal(other, value);
            }
            if (!seen && !same && !is_other_machine(path, sides, n))
                rc |= add_difference(all, path, sides, n);
        }
    }
    if (rc == 0)
        return all;
    json_decref(all);
    return NULL;
}
