/* fdpass.c: see fdpass.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/fdpass.h"

#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room to receive a few, so that a sender of too many is seen and what came is closed. */
#define FDS_MAX 4

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
};

int pt_fdpass_open(int pair[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 ? 0 : -errno;
}

/* 0 when `events` came, -ETIMEDOUT, or another negative errno. */
static int wait_for(int sock, short events, pt_ns deadline)
{
    struct pollfd p = {.fd = sock, .events = events};
    for (;;) {
        pt_ns left = deadline == PT_NS_MAX ? 0 : deadline - pt_clock_now();
        if (left < 0)
            left = 0;
        struct timespec ts = {.tv_sec = (time_t)(left / PT_S), .tv_nsec = (long)(left % PT_S)};
        int n = ppoll(&p, 1, deadline == PT_NS_MAX ? NULL : &ts, NULL);
        if (n > 0)
            return 0;
        if (n == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
}

int pt_fdpass_send(int sock, int fd, const void *message, size_t n, pt_ns deadline)
{
    if (n == 0)
        return -EINVAL; /* would look like the end to the receiver */
    union control c = {0};
    struct iovec iov = {.iov_len = n};
    memcpy(&iov.iov_base, &message, sizeof(message));
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = c.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &fd, sizeof(fd));
    }
    for (;;) {
        if (sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            return 0;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        int rc = wait_for(sock, POLLOUT, deadline);
        if (rc < 0)
            return rc;
    }
}

/* Keeps a single descriptor in *fd and closes any others; how many there were. */
static unsigned take_fds(struct msghdr *m, int *fd)
{
    unsigned count = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int one;
            memcpy(&one, CMSG_DATA(h) + i * sizeof(int), sizeof(one));
            if (count++ == 0)
                *fd = one;
            else
                close(one);
        }
    }
    return count;
}

ssize_t pt_fdpass_recv(int sock, int *fd, void *message, size_t cap, pt_ns deadline)
{
    *fd = -1;
    for (;;) {
        union control c = {0};
        struct iovec iov = {.iov_base = message, .iov_len = cap};
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = c.bytes,
                           .msg_controllen = sizeof(c.bytes)};
        ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n >= 0) {
            unsigned count = take_fds(&m, fd);
            ssize_t bad = count > 1 || (m.msg_flags & MSG_CTRUNC) ? -EPROTO
                          : m.msg_flags & MSG_TRUNC               ? -EMSGSIZE
                                                                  : 0;
            if (bad && *fd >= 0) {
                close(*fd);
                *fd = -1;
            }
            return bad ? bad : n;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        int rc = wait_for(sock, POLLIN, deadline);
        if (rc < 0)
            return rc;
    }
}
