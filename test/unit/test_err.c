/* test_err.c: a sentence is one line of valid UTF-8, whatever it quotes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/err.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

static void what_is_quoted_cannot_drive_a_terminal(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"plain 中文 µs ✓ 😀", "plain 中文 µs ✓ 😀"},
        {"a\x1b[31m\r\nb\tc\x7f", "a?[31m??b?c?"},
        {"c1 \xc2\x9b"
         "31m",
         "c1 ??31m"},
        {"no UTF-8 \xff\xfe", "no UTF-8 ??"},
        {"overlong \xc0\xaf \xe0\x80\xaf", "overlong ?? ???"},
        {"half of a pair \xed\xa0\x80", "half of a pair ???"},
        {"too high \xf4\x90\x80\x80", "too high ????"},
        {"cut \xe4\xb8", "cut ??"},
    };
    for (size_t i = 0; i < PT_COUNT(pairs); i++) {
        struct pt_err e = {0};
        assert_int_equal(pt_fail(&e, -EINVAL, "%s", pairs[i][0]), -EINVAL);
        assert_string_equal(e.text, pairs[i][1]);
        assert_int_equal(pt_fail_prefix(&e, "%s", "\x1b"), -EINVAL);
        assert_true(!strncmp(e.text, "?: ", 3) && !strcmp(e.text + 3, pairs[i][1]));
    }
}

static void a_long_one_ends_with_a_whole_character(void **state)
{
    (void)state;
    for (int lead = 0; lead < 3; lead++) {
        struct pt_err e = {0};
        char text[1000] = "";
        memset(text, 'x', (size_t)lead);
        for (int i = 0; i < 300; i++)
            memcpy(text + lead + 3 * (size_t)i, "中", 4);
        (void)pt_fail(&e, -EINVAL, "%s", text);
        json_t *said = json_string(e.text); /* refuses what is no UTF-8 */
        assert_non_null(said);
        json_decref(said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_quoted_cannot_drive_a_terminal),
        cmocka_unit_test(a_long_one_ends_with_a_whole_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
