/* test_control.c: framing of control messages: what is accepted, what is refused, and how early.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "proto/control.h"

#include <errno.h>
#include <string.h>

/* Feeds bytes as room allows; what pt_control_decode says in the end. */
static int decode(const void *bytes, size_t n, size_t limit, json_t **out)
{
    const uint8_t *p = bytes;
    struct pt_control_decoder d;
    pt_control_decoder_init(&d, limit);
    *out = NULL;
    while (n && pt_control_waiting(&d) == 0) {
        size_t part = pt_control_room(&d);
        part = part < n ? part : n;
        assert_int_equal(pt_control_feed(&d, p, part), 0);
        p += part;
        n -= part;
    }
    int rc = pt_control_decode(&d, out, NULL);
    if (rc < 0) { /* a broken stream stays broken */
        json_t *more;
        assert_int_equal(pt_control_waiting(&d), rc);
        assert_int_equal(pt_control_room(&d), 0);
        assert_int_equal(pt_control_feed(&d, "x", 1), -EMSGSIZE);
        assert_int_equal(pt_control_decode(&d, &more, NULL), rc);
        assert_null(more);
    }
    pt_control_decoder_fini(&d);
    return rc;
}

static int decode_text(const char *json, json_t **out)
{
    uint8_t bytes[512] = {0};
    size_t n = strlen(json);
    assert_true(n < 256);
    bytes[3] = (uint8_t)n;
    memcpy(bytes + 4, json, n);
    return decode(bytes, n + 4, 1000, out);
}

static void encodes_what_it_decodes(void **state)
{
    (void)state;
    struct pt_buf b;
    json_t *m = json_pack("{s:s, s:i}", "type", "x", "n", 7), *back;
    pt_buf_init(&b, 100);
    assert_int_equal(pt_control_encode(&b, m), 0);
    assert_int_equal(b.len, 4 + strlen("{\"type\":\"x\",\"n\":7}"));
    assert_memory_equal(b.bytes, "\0\0\0\x12{\"type\":\"x\",\"n\":7}", b.len);
    assert_int_equal(decode(b.bytes, b.len, 100, &back), 1);
    assert_true(json_equal(m, back));
    assert_string_equal(pt_control_type(back), "x");
    json_decref(m);
    json_decref(back);
    pt_buf_fini(&b);
}

static void refuses_what_is_no_message(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "[]",
        "{}",
        "7",
        "{\"type\":7}",
        "{\"type\":\"a\",\"type\":\"b\"}",
        "{\"type\":\"a\"} x",
        "{",
        "\xff",
        "{\"type\":\"a\",\"b\":NaN}",
        "{\"type\":\"\\u0000\"}",
    };
    json_t *out;
    for (size_t i = 0; i < PT_COUNT(bad); i++)
        assert_int_equal(decode_text(bad[i], &out), -EPROTO);
    assert_int_equal(decode_text("{\"type\":\"a\"}", &out), 1);
    json_decref(out);
}

static void refuses_lengths_before_it_keeps_bytes(void **state)
{
    (void)state;
    json_t *out;
    assert_int_equal(decode("\0\0\0\0", 4, 100, &out), -EMSGSIZE);
    assert_int_equal(decode("\0\0\0\x65", 4, 100, &out), -EMSGSIZE);
    assert_int_equal(decode("\0\0\0\x64", 4, 100, &out), 0);
    assert_int_equal(decode("\xff\xff\xff\xff", 4, PT_CONTROL_MAX, &out), -EMSGSIZE);
    assert_int_equal(decode("HTTP/1.1 400", 12, PT_CONTROL_MAX_EARLY, &out), -EMSGSIZE);
    struct pt_control_decoder d;
    pt_control_decoder_init(&d, 100);
    assert_int_equal(pt_control_feed(&d, "\0\0\0\x02{", 5), -EMSGSIZE);
    assert_int_equal(d.buf.len, 0);
    pt_control_decoder_fini(&d);
}

static void does_not_encode_what_it_would_refuse(void **state)
{
    (void)state;
    struct pt_buf b;
    pt_buf_init(&b, 2 * PT_CONTROL_MAX);
    json_t *list = json_array(), *big = json_object();
    assert_int_equal(pt_control_encode(&b, list), -EINVAL);
    assert_int_equal(pt_control_encode(&b, big), -EINVAL);
    char *text = test_malloc(PT_CONTROL_MAX);
    memset(text, 'a', PT_CONTROL_MAX);
    text[PT_CONTROL_MAX - 1] = '\0';
    assert_int_equal(json_object_set_new(big, "type", json_string(text)), 0);
    assert_int_equal(pt_control_encode(&b, big), -EMSGSIZE);
    assert_int_equal(b.len, 0);
    test_free(text);
    json_decref(list);
    json_decref(big);
    pt_buf_fini(&b);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    char text[9000];
    size_t n = 8000;
    text[0] = 0;
    text[1] = 0;
    text[2] = (char)(n >> 8);
    text[3] = (char)n;
    memset(text + 4, '[', n);
    json_t *out;
    assert_int_equal(decode(text, n + 4, PT_CONTROL_MAX_EARLY, &out), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_what_it_decodes),
        cmocka_unit_test(refuses_what_is_no_message),
        cmocka_unit_test(refuses_lengths_before_it_keeps_bytes),
        cmocka_unit_test(does_not_encode_what_it_would_refuse),
        cmocka_unit_test(deep_nesting_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
