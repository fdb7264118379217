/* test_buf.c: pt_buf keeps its ceiling and its NUL.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/buf.h"

#include <errno.h>
#include <string.h>

static void appends_and_terminates(void **state)
{
    (void)state;
    struct pt_buf b;
    pt_buf_init(&b, 1000);
    assert_string_equal(pt_buf_str(&b), "");
    assert_int_equal(pt_buf_adds(&b, "ab"), 0);
    assert_int_equal(pt_buf_addf(&b, "%d-%s", 7, "x"), 0);
    assert_string_equal(pt_buf_str(&b), "ab7-x");
    pt_buf_drop(&b, 2);
    assert_string_equal(pt_buf_str(&b), "7-x");
    pt_buf_fini(&b);
}

static void keeps_its_ceiling(void **state)
{
    (void)state;
    struct pt_buf b;
    pt_buf_init(&b, 4);
    assert_int_equal(pt_buf_adds(&b, "abcd"), 0);
    assert_int_equal(pt_buf_adds(&b, "e"), -EMSGSIZE);
    assert_int_equal(b.failed, -EMSGSIZE);
    assert_string_equal(pt_buf_str(&b), "abcd");
    pt_buf_reset(&b);
    assert_int_equal(b.failed, 0);
    assert_int_equal(pt_buf_addf(&b, "%s", "12345"), -EMSGSIZE);
    assert_int_equal(b.len, 0);
    pt_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_and_terminates),
        cmocka_unit_test(keeps_its_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
