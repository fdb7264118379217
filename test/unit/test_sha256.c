/* test_sha256.c: SHA-256 and HMAC against FIPS 180-4's and RFC 4231's vectors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/sha256.h"

#include <errno.h>
#include <string.h>

static void digest(const void *bytes, size_t n, char hex[65])
{
    struct pt_sha256 s;
    uint8_t out[PT_SHA256_SIZE];
    pt_sha256_init(&s);
    pt_sha256_add(&s, bytes, n);
    pt_sha256_end(&s, out);
    pt_hex(hex, out, sizeof(out));
}

static void fips_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *digest;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
         "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65];
    for (size_t i = 0; i < PT_COUNT(vectors); i++) {
        digest(vectors[i].text, strlen(vectors[i].text), hex);
        assert_string_equal(hex, vectors[i].digest);
    }
}

static void a_million_a_in_odd_pieces(void **state)
{
    (void)state;
    struct pt_sha256 s;
    uint8_t out[PT_SHA256_SIZE], a[1000];
    char hex[65];
    memset(a, 'a', sizeof(a));
    pt_sha256_init(&s);
    for (size_t left = 1000000, n = 1; left; left -= n, n = n % 997 + 1) {
        n = n < left ? n : left;
        pt_sha256_add(&s, a, n);
    }
    pt_sha256_end(&s, out);
    pt_hex(hex, out, sizeof(out));
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every length around the padding's edges: one call and byte by byte agree. */
static void padding_edges(void **state)
{
    (void)state;
    uint8_t bytes[200];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        char whole[65], pieces[65];
        uint8_t out[PT_SHA256_SIZE];
        struct pt_sha256 s;
        digest(bytes, n, whole);
        pt_sha256_init(&s);
        for (size_t i = 0; i < n; i++)
            pt_sha256_add(&s, bytes + i, 1);
        pt_sha256_end(&s, out);
        pt_hex(pieces, out, sizeof(out));
        assert_string_equal(whole, pieces);
    }
}

static void mac(const void *key, size_t key_len, const void *bytes, size_t n, char hex[65])
{
    struct pt_hmac m;
    uint8_t out[PT_SHA256_SIZE];
    pt_hmac_init(&m, key, key_len);
    pt_hmac_add(&m, bytes, n);
    pt_hmac_end(&m, out);
    pt_hex(hex, out, sizeof(out));
}

static void rfc4231_vectors(void **state)
{
    (void)state;
    uint8_t key[131], bytes[50];
    char hex[65];
    memset(key, 0x0b, 20);
    mac(key, 20, "Hi There", 8, hex);
    assert_string_equal(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    mac("Jefe", 4, "what do ya want for nothing?", 28, hex);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    memset(bytes, 0xdd, sizeof(bytes));
    mac(key, 20, bytes, 50, hex);
    assert_string_equal(hex, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    mac(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54, hex);
    assert_string_equal(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void secrets_compare_by_content(void **state)
{
    (void)state;
    assert_true(pt_equal_secret("abc", "abc", 3));
    assert_false(pt_equal_secret("abc", "abd", 3));
    assert_false(pt_equal_secret("xbc", "abc", 3));
    assert_true(pt_equal_secret("abc", "abd", 2));
}

static void hex_goes_both_ways(void **state)
{
    (void)state;
    char text[7];
    uint8_t bytes[3];
    pt_hex(text, "\x00\x9f\xff", 3);
    assert_string_equal(text, "009fff");
    assert_int_equal(pt_unhex(bytes, 3, "009FfF"), 0);
    assert_memory_equal(bytes, "\x00\x9f\xff", 3);
    assert_int_equal(pt_unhex(bytes, 3, "009ff"), -EINVAL);
    assert_int_equal(pt_unhex(bytes, 3, "009fff0"), -EINVAL);
    assert_int_equal(pt_unhex(bytes, 3, "009fg0"), -EINVAL);
    assert_int_equal(pt_unhex(bytes, 3, "+09f10"), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fips_vectors),
        cmocka_unit_test(a_million_a_in_odd_pieces),
        cmocka_unit_test(padding_edges),
        cmocka_unit_test(rfc4231_vectors),
        cmocka_unit_test(secrets_compare_by_content),
        cmocka_unit_test(hex_goes_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
