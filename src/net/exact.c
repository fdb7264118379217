/* exact.c: see exact.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/exact.h"

#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

static int wait_for(int fd, short events, pt_ns deadline)
{
    struct pollfd p = {.fd = fd, .events = events};
    pt_ns left = deadline - pt_clock_now();
    if (left < 0)
        left = 0;
    struct timespec ts = {.tv_sec = left / PT_S, .tv_nsec = left % PT_S};
    int n = ppoll(&p, 1, &ts, NULL);
    if (n < 0)
        return -errno;
    return n ? 0 : -ETIMEDOUT;
}

int pt_exact_read(int fd, void *out, size_t n, pt_ns deadline)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = recv(fd, (char *)out + at, n - at, MSG_DONTWAIT);
        if (got > 0) {
            at += (size_t)got;
            continue;
        }
        if (got == 0)
            return -ECONNRESET;
        int rc = errno == EAGAIN || errno == EINTR ? wait_for(fd, POLLIN, deadline) : -errno;
        if (rc < 0)
            return rc;
    }
    return 0;
}

int pt_exact_write(int fd, const void *bytes, size_t n, pt_ns deadline)
{
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, (const char *)bytes + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) {
            at += (size_t)sent;
            continue;
        }
        int rc = errno == EAGAIN || errno == EINTR ? wait_for(fd, POLLOUT, deadline) : -errno;
        if (rc < 0)
            return rc;
    }
    return 0;
}

int pt_exact_look(int fd, uint8_t *byte)
{
    ssize_t got = recv(fd, byte, 1, MSG_DONTWAIT);
    if (got == 1)
        return 1;
    if (got == 0)
        return -ECONNRESET;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}
