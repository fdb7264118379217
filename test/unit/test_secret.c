/* test_secret.c: the secret file: what is part of the secret, and which files are refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/pitot-secret-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static int load(const void *bytes, size_t n, mode_t mode, struct pt_secret *s, struct pt_err *e)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return pt_secret_load(s, path, e);
}

static void one_line_end_is_not_part_of_it(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        size_t n;
    } files[] = {{"key", 3}, {"key\n", 3}, {"key\r\n", 3}, {"key\n\n", 4}, {" key \n", 5}};
    struct pt_secret s;
    struct pt_err e = {0};
    for (size_t i = 0; i < PT_COUNT(files); i++) {
        assert_int_equal(load(files[i].file, strlen(files[i].file), 0600, &s, &e), 0);
        assert_int_equal(s.len, files[i].n);
        assert_memory_equal(s.bytes, files[i].file, s.len);
    }
}

static void files_that_are_refused(void **state)
{
    (void)state;
    struct pt_secret s;
    struct pt_err e = {0};
    static char big[PT_SECRET_MAX + 3];
    memset(big, 'x', sizeof(big));
    assert_int_equal(load("key", 3, 0604, &s, &e), -EPERM);
    assert_non_null(strstr(e.text, "chmod"));
    assert_null(strstr(e.text, "key"));
    assert_int_equal(load("key", 3, 0620, &s, &e), -EPERM);
    assert_int_equal(load("key", 3, 0640, &s, &e), 0);
    assert_int_equal(load("", 0, 0600, &s, &e), -EINVAL);
    assert_int_equal(load("\n", 1, 0600, &s, &e), -EINVAL);
    big[PT_SECRET_MAX] = '\n';
    assert_int_equal(load(big, PT_SECRET_MAX + 1, 0600, &s, &e), 0);
    assert_int_equal(s.len, PT_SECRET_MAX);
    big[PT_SECRET_MAX] = 'x';
    assert_int_equal(load(big, PT_SECRET_MAX + 1, 0600, &s, &e), -EFBIG);
    assert_int_equal(load(big, PT_SECRET_MAX + 3, 0600, &s, &e), -EFBIG);
    assert_int_equal(s.len, 0);
    assert_int_equal(pt_secret_load(&s, "/tmp", &e), -EINVAL);
    assert_int_equal(pt_secret_load(&s, "/nonexistent/secret", &e), -ENOENT);
}

/* Each part of a proof matters; RFC 4231 tests the digest itself. */
static void proofs_differ_in_every_part(void **state)
{
    (void)state;
    struct pt_secret s = {.len = 3, .bytes = "abc"}, other = {.len = 3, .bytes = "abd"};
    uint8_t one[PT_NONCE_SIZE] = {1}, two[PT_NONCE_SIZE] = {2}, proofs[5][PT_SHA256_SIZE];
    pt_secret_prove(&s, one, two, "client", proofs[0]);
    pt_secret_prove(&s, one, two, "server", proofs[1]);
    pt_secret_prove(&s, two, one, "client", proofs[2]);
    pt_secret_prove(&s, one, one, "client", proofs[3]);
    pt_secret_prove(&other, one, two, "client", proofs[4]);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(proofs[i], proofs[j], PT_SHA256_SIZE);
    uint8_t again[PT_SHA256_SIZE], message[2 * PT_NONCE_SIZE + 6];
    memcpy(message, one, sizeof(one));
    memcpy(message + sizeof(one), two, sizeof(two));
    memcpy(message + sizeof(one) + sizeof(two), "client", 6);
    struct pt_hmac m;
    pt_hmac_init(&m, "abc", 3);
    pt_hmac_add(&m, message, sizeof(message));
    pt_hmac_end(&m, again);
    assert_memory_equal(again, proofs[0], sizeof(again));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_end_is_not_part_of_it),
        cmocka_unit_test(files_that_are_refused),
        cmocka_unit_test(proofs_differ_in_every_part),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
