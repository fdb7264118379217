/* store.c: bytes to a file, all or nothing; see sink.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const struct pt_buf *bytes)
{
    const char *p = pt_buf_str(bytes);
    size_t left = bytes->len;
    while (left) {
        ssize_t n = write(fd, p, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        left -= (size_t)n;
    }
    return 0;
}

/* A full disk may tell only when the file is closed. */
static int write_and_close(int fd, const struct pt_buf *bytes)
{
    int rc = write_all(fd, bytes);
    if (close(fd) < 0 && !rc)
        rc = -errno;
    return rc;
}

static int complain(const char *path, int rc, struct pt_err *e)
{
    return pt_fail(e, rc, "cannot store the result in %s: %s", path, pt_strerror(rc));
}

/* Devices, pipes and files in a directory that is not ours to write. */
static int store_direct(const char *path, const struct pt_buf *bytes, struct pt_err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    int rc = fd < 0 ? -errno : write_and_close(fd, bytes);
    return rc < 0 ? complain(path, rc, e) : 0;
}

int pt_sink_store(const char *path, const struct pt_buf *bytes, struct pt_err *e)
{
    if (!strcmp(path, "-")) {
        int rc = write_all(STDOUT_FILENO, bytes);
        return rc < 0 ? complain("the standard output", rc, e) : 0;
    }
    struct stat st;
    bool exists = !stat(path, &st);
    if (exists && S_ISDIR(st.st_mode))
        return complain(path, -EISDIR, e);
    if (exists && !S_ISREG(st.st_mode))
        return store_direct(path, bytes, e);
    /* A symbolic link stays one: its target is replaced. */
    char real[PATH_MAX], temporary[PATH_MAX + 32];
    const char *target = exists && realpath(path, real) ? real : path;
    snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", target, (long)getpid());
    mode_t mode = exists ? st.st_mode & 0777 : 0666;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0 && exists && (errno == EACCES || errno == EROFS))
        return store_direct(path, bytes, e);
    if (fd < 0)
        return complain(path, -errno, e);
    int rc = write_and_close(fd, bytes);
    if (!rc && rename(temporary, target) < 0)
        rc = -errno;
    if (rc < 0) {
        unlink(temporary);
        return complain(path, rc, e);
    }
    return 0;
}
