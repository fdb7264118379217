/* test_fields.c: structs to JSON and back, and what a hostile peer may send.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "engine/fields.h"

#include <errno.h>
#include <string.h>

struct sample {
    uint64_t big;
    uint32_t small;
    int64_t signed_one;
    int error;
    double real;
    bool yes;
    char text[8];
};

static const struct pt_field table[] = {
    PT_FIELD(struct sample, big, PT_FIELD_U64),        PT_FIELD(struct sample, small, PT_FIELD_U32),
    PT_FIELD(struct sample, signed_one, PT_FIELD_I64), PT_FIELD(struct sample, error, PT_FIELD_INT),
    PT_FIELD(struct sample, real, PT_FIELD_REAL),      PT_FIELD(struct sample, yes, PT_FIELD_BOOL),
    PT_FIELD(struct sample, text, PT_FIELD_TEXT),      {0}};

static void goes_there_and_back(void **state)
{
    (void)state;
    struct sample a = {.big = INT64_MAX,
                       .small = UINT32_MAX,
                       .signed_one = -5,
                       .error = -104,
                       .real = 0.25,
                       .yes = true,
                       .text = "seven77"};
    struct sample b = {0};
    json_t *o = pt_fields_to_json(table, &a);
    assert_int_equal(pt_fields_from_json(table, &b, o), 0);
    json_decref(o);
    assert_int_equal(b.big, a.big);
    assert_int_equal(b.small, a.small);
    assert_int_equal(b.signed_one, -5);
    assert_int_equal(b.error, -104);
    assert_true(b.real == 0.25 && b.yes);
    assert_string_equal(b.text, "seven77");
}

static void refuses(const char *text)
{
    struct sample s = {0};
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    assert_int_equal(pt_fields_from_json(table, &s, o), -EPROTO);
    json_decref(o);
}

static void refuses_wrong_types_and_ranges(void **state)
{
    (void)state;
    refuses("[]");
    refuses("{\"big\": -1}");
    refuses("{\"big\": 1.5}");
    refuses("{\"big\": \"1\"}");
    refuses("{\"small\": 4294967296}");
    refuses("{\"error\": 2147483648}");
    refuses("{\"real\": \"0.5\"}");
    refuses("{\"yes\": 1}");
    refuses("{\"text\": \"eight888\"}");
    refuses("{\"text\": \"a\\nb\"}");
    refuses("{\"text\": 3}");
    refuses("{\"big\": null}");
}

static void passes_over_what_it_does_not_know(void **state)
{
    (void)state;
    struct sample s = {0};
    json_t *o = json_loads("{\"future\": [1, {\"x\": 2}], \"small\": 3}", 0, NULL);
    assert_int_equal(pt_fields_from_json(table, &s, o), 0);
    assert_int_equal(s.small, 3);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_there_and_back),
        cmocka_unit_test(refuses_wrong_types_and_ranges),
        cmocka_unit_test(passes_over_what_it_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
