/* test_preamble.c: the fixed bytes of docs/formats/control.md, written and read.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "proto/preamble.h"

#include <errno.h>
#include <string.h>

static struct pt_preamble sample(enum pt_preamble_kind kind)
{
    struct pt_preamble p = {.version = PT_PROTO_VERSION, .kind = (uint8_t)kind, .flow = 0x01020304};
    memcpy(p.token, "0123456789abcdef", PT_TOKEN_SIZE);
    return p;
}

static void assert_same(const struct pt_preamble *a, const struct pt_preamble *b)
{
    assert_int_equal(a->version, b->version);
    assert_int_equal(a->kind, b->kind);
    assert_memory_equal(a->token, b->token, sizeof(a->token));
    assert_int_equal(a->flow, b->flow);
}

static void bytes_are_as_documented(void **state)
{
    (void)state;
    static const uint8_t expect[PT_KNOCK_SIZE] = "PTOT\x01\x02\x00\x00"
                                                 "0123456789abcdef"
                                                 "\x01\x02\x03\x04\x00\x00\x00\x00"
                                                 "NNNNnnnnNNNNnnn";
    uint8_t out[PT_PREAMBLE_SIZE];
    struct pt_preamble p = sample(PT_PREAMBLE_STREAM), back;
    pt_preamble_write(out, &p);
    assert_memory_equal(out, expect, sizeof(out));
    assert_int_equal(pt_preamble_read(&back, out, sizeof(out)), PT_PREAMBLE_SIZE);
    assert_same(&back, &p);
}

static void a_beginning_is_told_from_a_stranger_at_once(void **state)
{
    (void)state;
    uint8_t bytes[PT_PREAMBLE_SIZE];
    struct pt_preamble p = sample(PT_PREAMBLE_CONTROL);
    pt_preamble_write(bytes, &p);
    for (size_t n = 0; n < sizeof(bytes); n++)
        assert_int_equal(pt_preamble_read(&p, bytes, n), 0);
    for (size_t i = 0; i < 4; i++) {
        uint8_t wrong[PT_PREAMBLE_SIZE];
        memcpy(wrong, bytes, sizeof(wrong));
        wrong[i] ^= 0x20;
        assert_int_equal(pt_preamble_read(&p, wrong, i), 0);
        assert_int_equal(pt_preamble_read(&p, wrong, i + 1), -EPROTO);
        assert_int_equal(pt_preamble_read(&p, wrong, sizeof(wrong)), -EPROTO);
    }
}

static void other_versions_and_kinds_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[PT_PREAMBLE_SIZE];
    struct pt_preamble p = sample(PT_PREAMBLE_CONTROL);
    p.version = 9;
    pt_preamble_write(bytes, &p);
    assert_int_equal(pt_preamble_read(&p, bytes, sizeof(bytes)), -EPROTONOSUPPORT);
    assert_int_equal(p.version, 9);
    static const uint8_t kinds[] = {0, PT_PREAMBLE_HELLO, PT_PREAMBLE_CHALLENGE, 255};
    for (size_t i = 0; i < sizeof(kinds); i++) {
        p = sample(PT_PREAMBLE_CONTROL);
        p.kind = kinds[i];
        pt_preamble_write(bytes, &p);
        assert_int_equal(pt_preamble_read(&p, bytes, sizeof(bytes)), -EPROTO);
    }
}

static void knocks(void **state)
{
    (void)state;
    uint8_t bytes[PT_KNOCK_SIZE + 1] = {0}, nonce[PT_UDP_NONCE_SIZE];
    for (unsigned kind = 0; kind < 256; kind++) {
        struct pt_preamble p = sample((enum pt_preamble_kind)kind), back;
        pt_knock_write(bytes, &p, (const uint8_t *)"0123456789ABCDEF");
        bool good = kind >= PT_PREAMBLE_HELLO && kind <= PT_PREAMBLE_CHALLENGE;
        assert_int_equal(pt_knock_read(&back, nonce, bytes, PT_KNOCK_SIZE), good ? 0 : -EPROTO);
        if (!good)
            continue;
        assert_same(&back, &p);
        assert_memory_equal(nonce, "0123456789ABCDEF", sizeof(nonce));
        assert_int_equal(pt_knock_read(&back, nonce, bytes, PT_KNOCK_SIZE - 1), -EPROTO);
        assert_int_equal(pt_knock_read(&back, nonce, bytes, PT_KNOCK_SIZE + 1), -EPROTO);
        bytes[4]++;
        assert_int_equal(pt_knock_read(&back, nonce, bytes, PT_KNOCK_SIZE), -EPROTO);
    }
}

static void strangers_get_a_name(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *name;
    } seen[] = {
        {"GET / HTTP/1.1\r\n", "HTTP"},
        {"POST /x HTTP/1.0", "HTTP"},
        {"HTTP/1.1 400 Bad Request", "HTTP"},
        {"PRI * HTTP/2.0", "HTTP"},
        {"\x16\x03\x01\x02", "TLS"},
        {"SSH-2.0-OpenSSH_9", "SSH"},
        {"hello", "unknown"},
        {"", "unknown"},
        {"GET", "unknown"},
    };
    for (size_t i = 0; i < PT_COUNT(seen); i++)
        assert_string_equal(pt_preamble_guess(seen[i].bytes, strlen(seen[i].bytes)), seen[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_as_documented),
        cmocka_unit_test(a_beginning_is_told_from_a_stranger_at_once),
        cmocka_unit_test(other_versions_and_kinds_are_refused),
        cmocka_unit_test(knocks),
        cmocka_unit_test(strangers_get_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
