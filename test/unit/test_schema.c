/* test_schema.c: every key of the schemas of a result and of a run is defined in docs/METHOD.md,
 * and what the common code writes is in them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "model/plan.h"
#include "model/result.h"
#include "model/run_document.h"
#include "stat/hist.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *method;
static json_t *schema, *run_schema, *compare_schema;
static unsigned keys_seen;

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("cannot open %s", path);
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    assert_true(n > 0);
    fclose(f);
    return text;
}

/* `key` in backticks, alone or at the end of a path. */
static bool defined(const char *key)
{
    char quoted[100], tail[100];
    snprintf(quoted, sizeof(quoted), "`%s`", key);
    snprintf(tail, sizeof(tail), ".%s`", key);
    return strstr(method, quoted) || strstr(method, tail);
}

static void walk(json_t *at)
{
    const char *key;
    json_t *value, *properties = json_object_get(at, "properties");
    json_object_foreach(properties, key, value)
    {
        keys_seen++;
        if (!defined(key))
            fail_msg("docs/METHOD.md does not define `%s`", key);
    }
    json_object_foreach(at, key, value)
    {
        size_t i;
        json_t *item;
        walk(value);
        json_array_foreach(value, i, item) walk(item);
    }
}

static void every_key_is_defined(void **state)
{
    (void)state;
    keys_seen = 0;
    walk(schema);
    assert_true(keys_seen > 150);
}

static void every_key_of_a_run_is_defined(void **state)
{
    (void)state;
    keys_seen = 0;
    walk(run_schema);
    assert_true(keys_seen > 30);
}

static void every_key_of_a_comparison_is_defined(void **state)
{
    (void)state;
    keys_seen = 0;
    walk(compare_schema);
    assert_true(keys_seen > 30);
}

static json_t *resolve(json_t *at)
{
    const char *ref = json_string_value(json_object_get(at, "$ref"));
    if (!ref || strncmp(ref, "#/$defs/", 8) != 0)
        return at;
    return json_object_get(json_object_get(schema, "$defs"), ref + 8);
}

/* Whether an object's keys are those of the schema, down to the leaves. */
static void keys_allowed(json_t *value, json_t *by)
{
    const char *key;
    json_t *child;
    json_object_foreach(value, key, child)
    {
        json_t *rule = json_object_get(json_object_get(by, "properties"), key);
        json_t *more = json_object_get(by, "additionalProperties");
        if (!rule && json_is_true(more))
            continue;
        if (!rule && json_is_object(more))
            rule = more;
        if (!rule)
            fail_msg("the schema does not know `%s`", key);
        keys_allowed(child, resolve(rule));
    }
}

static void what_is_written_is_in_the_schema(void **state)
{
    (void)state;
    static const struct pt_plan_form form = {.manual = {.command = "lat", .summary = "x"}};
    struct pt_plan p;
    assert_int_equal(pt_plan_init(&p, &form, NULL), 0);
    struct pt_hist *h = calloc(1, sizeof(*h));
    struct pt_result *r = pt_result_new(0), *both;
    pt_result_plan(r, &p);
    pt_result_hist(r, "latency", h);
    pt_result_headline(r, "p50", "latency.p50_us", "us");
    assert_int_equal(pt_result_repeat(&r, 1, &both, NULL), 0);
    keys_allowed(both->root, schema);
    const char *key;
    size_t i;
    json_t *required = json_object_get(schema, "required"), *name;
    json_array_foreach(required, i, name)
    {
        key = json_string_value(name);
        if (!json_object_get(both->root, key))
            fail_msg("`%s` is required but was not written", key);
    }
    pt_result_free(r);
    pt_result_free(both);
    pt_plan_fini(&p);
    free(h);
}

static void what_is_written_of_a_run_is_in_its_schema(void **state)
{
    (void)state;
    struct pt_result *run = pt_run_new("x", 0);
    pt_run_add(run, pt_result_new(0));
    pt_run_add(run, pt_result_new(0));
    pt_run_together(run, 0, 2, 5);
    pt_run_sum(run, "x", 0, 2);
    pt_run_conclude(run);
    json_object_del(run->root, "tests"); /* each has a schema of its own */
    const json_t *sum = pt_result_at(run, "sums.0");
    const json_t *rule = json_object_get(
        json_object_get(json_object_get(json_object_get(run_schema, "properties"), "sums"),
                        "items"),
        "properties");
    const char *key;
    json_t *child;
    json_object_foreach((json_t *)(uintptr_t)sum, key, child)
        assert_non_null(json_object_get(rule, key));
    keys_allowed(run->root, run_schema);
    pt_result_free(run);
}

static json_t *read_schema(const char *root, const char *name)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/docs/%s", root ? root : ".", name);
    char *text = slurp(path);
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    free(text);
    return o;
}

static int load(void **state)
{
    (void)state;
    const char *root = getenv("PITOT_SOURCE");
    char path[600];
    snprintf(path, sizeof(path), "%s/docs/METHOD.md", root ? root : ".");
    method = slurp(path);
    schema = read_schema(root, "result.schema.json");
    run_schema = read_schema(root, "run.schema.json");
    compare_schema = read_schema(root, "compare.schema.json");
    return schema && run_schema && compare_schema ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    free(method);
    json_decref(schema);
    json_decref(run_schema);
    json_decref(compare_schema);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_defined),
        cmocka_unit_test(what_is_written_is_in_the_schema),
        cmocka_unit_test(every_key_of_a_run_is_defined),
        cmocka_unit_test(every_key_of_a_comparison_is_defined),
        cmocka_unit_test(what_is_written_of_a_run_is_in_its_schema),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
