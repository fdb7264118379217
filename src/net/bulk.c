/* bulk.c: see bulk.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/bulk.h"

#include "base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PIPE_BYTES (1 << 20)

const char *const pt_bulk_names[PT_BULK_METHODS + 1] = {"write", "sendfile", "splice",
                                                        "msg_zerocopy", NULL};

int pt_bulk_open(struct pt_bulk *b, struct pt_err *e)
{
    *b = (struct pt_bulk){.file = -1, .pipe = {-1, -1}, .piped_to = -1};
    b->file = memfd_create("pitot", MFD_CLOEXEC);
    if (b->file < 0 || ftruncate(b->file, (off_t)PT_BULK_BYTES) < 0)
        return pt_fail(e, -errno, "no memory file for the bytes to send: %s", pt_strerror(errno));
    void *m = mmap(NULL, PT_BULK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, b->file, 0);
    if (m == MAP_FAILED)
        return pt_fail(e, -errno, "mmap: %s", pt_strerror(errno));
    b->bytes = m;
    struct pt_rng rng;
    pt_rng_init(&rng, 7411);
    for (size_t i = 0; i < PT_BULK_BYTES; i += 8) {
        uint64_t v = pt_rng_u64(&rng);
        memcpy(b->bytes + i, &v, sizeof(v));
    }
    return 0;
}

void pt_bulk_close(struct pt_bulk *b)
{
    if (b->bytes)
        munmap(b->bytes, PT_BULK_BYTES);
    if (b->file >= 0)
        close(b->file);
    for (int i = 0; i < 2; i++)
        if (b->pipe[i] >= 0)
            close(b->pipe[i]);
    *b = (struct pt_bulk){.file = -1, .pipe = {-1, -1}, .piped_to = -1};
}

int pt_bulk_allow_zerocopy(int fd)
{
    int one = 1;
    return setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)) < 0 ? -errno : 0;
}

static ssize_t by_splice(struct pt_bulk *b, int fd, size_t n, int flags)
{
    unsigned how = SPLICE_F_MOVE | SPLICE_F_MORE;
    if (b->pipe[0] < 0) {
        if (pipe2(b->pipe, O_CLOEXEC) < 0)
            return -errno;
        (void)fcntl(b->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
    }
    if (b->piped && b->piped_to != fd)
        return -EAGAIN; /* another flow's bytes are in the pipe: they go first */
    if (!b->piped) {
        struct iovec v = {.iov_base = b->bytes, .iov_len = n < PIPE_BYTES ? n : PIPE_BYTES};
        ssize_t in = vmsplice(b->pipe[1], &v, 1, SPLICE_F_NONBLOCK);
        if (in < 0)
            return -errno;
        b->piped = (size_t)in;
        b->piped_to = fd;
    }
    if (flags & MSG_DONTWAIT)
        how |= SPLICE_F_NONBLOCK;
    ssize_t out = splice(b->pipe[0], NULL, fd, NULL, b->piped, how);
    if (out < 0)
        return -errno;
    b->piped -= (size_t)out;
    return out;
}

/* Completions tell which sends are done and whether the kernel copied them after all. */
static void reap(struct pt_bulk *b, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[128];
    } control;
    for (;;) {
        struct msghdr m = {.msg_control = &control, .msg_controllen = sizeof(control)};
        if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
            struct sock_extended_err err;
            if (c->cmsg_len < CMSG_LEN(sizeof(err)))
                continue;
            memcpy(&err, CMSG_DATA(c), sizeof(err));
            if (err.ee_origin != SO_EE_ORIGIN_ZEROCOPY)
                continue;
            uint64_t sends = (uint64_t)(err.ee_data - err.ee_info) + 1;
            b->completed += sends;
            if (err.ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
                b->copied += sends;
        }
    }
}

/* One copy into the socket, of a block gathered from the same piece. */
static ssize_t by_write(const struct pt_bulk *b, int fd, size_t n, int flags)
{
    if (!b->reuse || n <= PT_BULK_REUSE)
        return send(fd, b->bytes, n, flags | MSG_NOSIGNAL);
    struct iovec v[PT_BULK_BYTES / PT_BULK_REUSE];
    struct msghdr m = {.msg_iov = v};
    for (size_t left = n < PT_BULK_BYTES ? n : PT_BULK_BYTES; left;) {
        size_t piece = left < PT_BULK_REUSE ? left : PT_BULK_REUSE;
        v[m.msg_iovlen++] = (struct iovec){.iov_base = b->bytes, .iov_len = piece};
        left -= piece;
    }
    return sendmsg(fd, &m, flags | MSG_NOSIGNAL);
}

ssize_t pt_bulk_send(struct pt_bulk *b, enum pt_bulk_method how, int fd, size_t n, int flags)
{
    ssize_t sent;
    if (how == PT_BULK_SPLICE || (b->piped && b->piped_to == fd))
        return by_splice(b, fd, n, flags);
    if (how == PT_BULK_SENDFILE) {
        off_t at = 0;
        if (flags & MSG_DONTWAIT) {
            /* sendfile(2) has no such flag; the socket's own mode decides */
            int mode = fcntl(fd, F_GETFL);
            if (mode >= 0 && !(mode & O_NONBLOCK))
                (void)fcntl(fd, F_SETFL, mode | O_NONBLOCK);
        }
        sent = sendfile(fd, b->file, &at, n);
        return sent < 0 ? -errno : sent;
    }
    if (how == PT_BULK_ZEROCOPY) {
        reap(b, fd);
        sent = send(fd, b->bytes, n, flags | MSG_NOSIGNAL | MSG_ZEROCOPY);
        if (sent < 0 && errno == ENOBUFS)
            sent = send(fd, b->bytes, n, flags | MSG_NOSIGNAL); /* too many are not reaped yet */
    } else {
        sent = by_write(b, fd, n, flags);
    }
    return sent < 0 ? -errno : sent;
}
