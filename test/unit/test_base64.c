/* test_base64.c: the vectors of RFC 4648 section 10, all byte values, and what must be refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/base64.h"

#include <errno.h>
#include <string.h>

static void rfc_vectors(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (size_t i = 0; i < PT_COUNT(pairs); i++) {
        struct pt_buf b;
        pt_buf_init(&b, 100);
        assert_int_equal(pt_base64_encode(&b, pairs[i][0], strlen(pairs[i][0])), 0);
        assert_string_equal(pt_buf_str(&b), pairs[i][1]);
        pt_buf_reset(&b);
        assert_int_equal(pt_base64_decode(&b, pairs[i][1], strlen(pairs[i][1])), 0);
        assert_string_equal(pt_buf_str(&b), pairs[i][0]);
        pt_buf_fini(&b);
    }
}

static void every_byte_value(void **state)
{
    (void)state;
    uint8_t all[256];
    for (unsigned i = 0; i < 256; i++)
        all[i] = (uint8_t)(i * 167 + 13);
    for (size_t n = 0; n <= 256; n++) {
        struct pt_buf text, back;
        pt_buf_init(&text, 1000);
        pt_buf_init(&back, 1000);
        assert_int_equal(pt_base64_encode(&text, all, n), 0);
        assert_int_equal(text.len, (n + 2) / 3 * 4);
        assert_int_equal(pt_base64_decode(&back, pt_buf_str(&text), text.len), 0);
        assert_int_equal(back.len, n);
        assert_true(n == 0 || memcmp(back.bytes, all, n) == 0);
        pt_buf_fini(&text);
        pt_buf_fini(&back);
    }
}

static void refuses_other_texts(void **state)
{
    (void)state;
    static const char *const wrong[] = {"Z",    "Zg",   "Zg=",  "====",  "Z===", "Zg==Zg==",
                                        "Zm9=", "Zh==", "Zm9 ", "Z\nm9", "Zm-_", "Zm9vYg=A"};
    for (size_t i = 0; i < PT_COUNT(wrong); i++) {
        struct pt_buf b;
        pt_buf_init(&b, 100);
        assert_int_equal(pt_buf_adds(&b, "before"), 0);
        assert_int_equal(pt_base64_decode(&b, wrong[i], strlen(wrong[i])), -EBADMSG);
        assert_string_equal(pt_buf_str(&b), "before");
        pt_buf_fini(&b);
    }
    struct pt_buf small;
    pt_buf_init(&small, 3);
    assert_int_equal(pt_base64_encode(&small, "a", 1), -EMSGSIZE);
    pt_buf_fini(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_vectors),
        cmocka_unit_test(every_byte_value),
        cmocka_unit_test(refuses_other_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
