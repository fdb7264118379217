/* secret.c: see secret.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/secret.h"

#include "base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads up to `cap` bytes; the count, or a negative errno. */
static ssize_t read_all(int fd, uint8_t *out, size_t cap)
{
    size_t at = 0;
    while (at < cap) {
        ssize_t n = read(fd, out + at, cap - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        at += (size_t)n;
    }
    return (ssize_t)at;
}

static int check_file(int fd, const char *path, struct pt_err *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return pt_fail(e, -errno, "secret file %s: %s", path, pt_strerror(-errno));
    if (!S_ISREG(st.st_mode))
        return pt_fail(e, -EINVAL, "secret file %s: not a file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return pt_fail(e, -EPERM, "secret file %s: belongs to another user", path);
    if (st.st_mode & (S_IRWXO | S_IWGRP))
        return pt_fail(e, -EPERM,
                       "secret file %s: others may read or change it (mode %03o); chmod 600 %s",
                       path, (unsigned)st.st_mode & 0777u, path);
    return 0;
}

int pt_secret_load(struct pt_secret *s, const char *path, struct pt_err *e)
{
    s->len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return pt_fail(e, -errno, "secret file %s: %s", path, pt_strerror(-errno));
    int rc = check_file(fd, path, e);
    /* Two more than fit: a line end that is no part of it. */
    uint8_t bytes[PT_SECRET_MAX + 2];
    ssize_t n = rc ? rc : read_all(fd, bytes, sizeof(bytes));
    close(fd);
    if (rc)
        return rc;
    if (n < 0)
        return pt_fail(e, (int)n, "secret file %s: %s", path, pt_strerror((int)n));
    size_t len = (size_t)n;
    if (len && bytes[len - 1] == '\n')
        len--;
    if (len && len < (size_t)n && bytes[len - 1] == '\r')
        len--;
    if (len == 0)
        rc = pt_fail(e, -EINVAL, "secret file %s: it is empty", path);
    else if (len > PT_SECRET_MAX)
        rc = pt_fail(e, -EFBIG, "secret file %s: longer than %d bytes", path, PT_SECRET_MAX);
    if (!rc) {
        memcpy(s->bytes, bytes, len);
        s->len = len;
    }
    pt_wipe(bytes, sizeof(bytes));
    return rc;
}

int pt_secret_random(struct pt_secret *s, struct pt_err *e)
{
    s->len = 0;
    int rc = pt_random_bytes(s->bytes, 32);
    if (rc)
        return pt_fail(e, rc, "random bytes: %s", pt_strerror(rc));
    s->len = 32;
    return 0;
}

void pt_secret_prove(const struct pt_secret *s, const uint8_t server_nonce[PT_NONCE_SIZE],
                     const uint8_t client_nonce[PT_NONCE_SIZE], const char *role,
                     uint8_t proof[PT_SHA256_SIZE])
{
    struct pt_hmac m;
    pt_hmac_init(&m, s->bytes, s->len);
    pt_hmac_add(&m, server_nonce, PT_NONCE_SIZE);
    pt_hmac_add(&m, client_nonce, PT_NONCE_SIZE);
    pt_hmac_add(&m, role, strlen(role));
    pt_hmac_end(&m, proof);
}
