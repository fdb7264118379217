/* meta.c: receiving with recvmsg(2): into a piece again and again; control messages of datagrams.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/backend.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <time.h>

#ifndef UDP_GRO
#define UDP_GRO 104 /* Linux 5.0 */
#endif

#define PIECES_MOST 64

ssize_t pt_ev_recv_into(const struct pt_recv *r, size_t size, int flags)
{
    if (!r->into_piece || r->into_piece >= size)
        return recv(r->fd, r->into, size, flags);
    struct iovec v[PIECES_MOST];
    struct msghdr m = {.msg_iov = v};
    for (size_t left = size; left && m.msg_iovlen < PIECES_MOST;) {
        size_t piece = left < r->into_piece ? left : r->into_piece;
        v[m.msg_iovlen++] = (struct iovec){.iov_base = r->into, .iov_len = piece};
        left -= piece;
    }
    return recvmsg(r->fd, &m, flags);
}

static void one(struct pt_recv_meta *meta, const struct cmsghdr *c)
{
    const void *value = CMSG_DATA(c);
    size_t size = c->cmsg_len - CMSG_LEN(0);
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO && size >= sizeof(int)) {
        int seg;
        memcpy(&seg, value, sizeof(seg));
        meta->seg = seg > 0 ? (uint32_t)seg : 0;
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL &&
               size >= sizeof(uint32_t)) {
        memcpy(&meta->drops, value, sizeof(meta->drops));
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS &&
               size >= sizeof(struct timespec)) {
        struct timespec ts;
        memcpy(&ts, value, sizeof(ts));
        meta->kernel_ns = (pt_ns)ts.tv_sec * PT_S + ts.tv_nsec;
    }
}

void pt_ev_meta(struct pt_recv_meta *meta, struct msghdr *msg)
{
    *meta = (struct pt_recv_meta){.from = msg->msg_namelen ? msg->msg_name : NULL,
                                  .from_len = msg->msg_namelen,
                                  .truncated = (msg->msg_flags & MSG_TRUNC) != 0};
    if (msg->msg_controllen < sizeof(struct cmsghdr))
        return;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
        if (c->cmsg_len >= CMSG_LEN(0))
            one(meta, c);
}

bool pt_ev_fatal(int err)
{
    switch (err) {
    case EBADF:
    case ENOTSOCK:
    case EFAULT:
    case EINVAL:
    case EOPNOTSUPP:
        return true;
    default:
        return false;
    }
}
