/* sysctl.c: see sysctl.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int pt_sysctl_text(const char *name, char *out, size_t cap)
{
    char path[160];
    out[0] = 0;
    if ((size_t)snprintf(path, sizeof(path), "/proc/sys/%s", name) >= sizeof(path))
        return -ENAMETOOLONG;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, out, cap);
    int rc = n < 0 ? -errno : (size_t)n == cap ? -EMSGSIZE : 0;
    close(fd);
    out[rc == 0 ? n : 0] = 0;
    out[strcspn(out, "\n")] = 0;
    return rc;
}

int pt_sysctl_numbers(const char *name, int64_t *out, size_t cap)
{
    char text[512];
    int rc = pt_sysctl_text(name, text, sizeof(text));
    if (rc < 0)
        return rc;
    int n = 0;
    for (char *p = text, *end; (size_t)n < cap; p = end) {
        p += strspn(p, " \t");
        if (!*p)
            break;
        errno = 0;
        long long v = strtoll(p, &end, 10);
        if (end == p || errno || (*end && !strchr(" \t", *end)))
            return -EINVAL;
        out[n++] = v;
    }
    return n;
}

int64_t pt_sysctl_number(const char *name, int64_t otherwise)
{
    int64_t v;
    return pt_sysctl_numbers(name, &v, 1) == 1 ? v : otherwise;
}
