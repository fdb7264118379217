/* ev_epoll_recv.c: the receive calls of the epoll back end and the buffers they fill.
 *
 * One attempt is one system call (streams: up to `batch` of them) and the callbacks for what it
 * brought. Whether it may sleep is the caller's choice.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/ev_epoll.h"

#include "os/clock.h"

#include <errno.h>
#include <stdlib.h>

/* ---- buffers */

void pt_recv_batch_free(struct pt_recv_batch *b)
{
    while (b) {
        struct pt_recv_batch *older = b->older;
        free(b->bytes);
        free(b->msgs);
        free(b->iov);
        free(b->names);
        free(b->control);
        free(b);
        b = older;
    }
}

static void reset(struct pt_recv_batch *b, unsigned used)
{
    for (unsigned i = 0; i < used; i++) {
        struct msghdr *m = &b->msgs[i].msg_hdr;
        m->msg_namelen = sizeof(b->names[i]);
        m->msg_controllen = PT_EV_CONTROL_SIZE;
        m->msg_flags = 0;
    }
}

struct pt_recv_batch *pt_recv_batch_new(unsigned count, size_t size, struct pt_recv_batch *older)
{
    struct pt_recv_batch *b = calloc(1, sizeof(*b));
    if (!b)
        return NULL;
    b->count = count;
    b->stride = pt_ev_stride(size);
    b->bytes = aligned_alloc(PT_CACHE_LINE, count * b->stride);
    b->msgs = calloc(count, sizeof(*b->msgs));
    b->iov = calloc(count, sizeof(*b->iov));
    b->names = calloc(count, sizeof(*b->names));
    b->control = calloc(count, sizeof(*b->control));
    if (!b->bytes || !b->msgs || !b->iov || !b->names || !b->control) {
        pt_recv_batch_free(b);
        return NULL;
    }
    for (unsigned i = 0; i < count; i++) {
        b->iov[i] = (struct iovec){.iov_base = b->bytes + i * b->stride, .iov_len = size};
        b->msgs[i].msg_hdr = (struct msghdr){.msg_name = &b->names[i],
                                             .msg_iov = &b->iov[i],
                                             .msg_iovlen = 1,
                                             .msg_control = b->control[i]};
    }
    reset(b, count);
    b->older = older;
    return b;
}

/* ---- streams */

struct target {
    uint8_t *buf;
    size_t size;
    int flags;
};

static struct target target_of(const struct pt_epoll_loop *l, const struct pt_recv *r)
{
    if (r->kind == PT_RECV_DISCARD)
        return (struct target){.size = r->into_size ? r->into_size : PT_EV_DISCARD_SIZE,
                               .flags = MSG_TRUNC};
    if (r->into)
        return (struct target){.buf = r->into, .size = r->into_size};
    return (struct target){.buf = l->batch->bytes, .size = l->base.spec.recv_size};
}

static int stream_receive(struct pt_epoll_loop *l, struct pt_recv *r, int flags, bool read_clock)
{
    const struct target to = target_of(l, r);
    int calls = r->batch ? (int)r->batch : 1;
    for (int ran = 0;; flags |= MSG_DONTWAIT) {
        ssize_t n = to.buf && to.buf == r->into ? pt_ev_recv_into(r, to.size, flags)
                                                : recv(r->fd, to.buf, to.size, flags | to.flags);
        if (n < 0 && errno == EAGAIN)
            return ran;
        if (n < 0 && errno == EINTR)
            return ran ? ran : -EINTR;
        if (read_clock)
            l->base.now = pt_clock_now();
        ran++;
        if (n <= 0) {
            int err = n < 0 ? -errno : 0;
            pt_epoll_detach_recv(l, r);
            r->fn(r, NULL, err, NULL);
            return ran;
        }
        l->base.running = r;
        r->fn(r, to.buf, n, NULL);
        if (l->base.running != r)
            return ran;
        const struct pt_fd_slot *s = &l->slots[r->fd];
        if ((size_t)n < to.size && !s->hangup)
            return ran;
        if (ran == calls) {
            if (s->events & (uint32_t)EPOLLET)
                pt_epoll_mark_unread(l, r->fd);
            return ran;
        }
    }
}

/* ---- datagrams */

static int failed(struct pt_epoll_loop *l, struct pt_recv *r, int err, bool read_clock)
{
    if (err == EAGAIN)
        return 0;
    if (err == EINTR)
        return -EINTR;
    if (read_clock)
        l->base.now = pt_clock_now();
    if (pt_ev_fatal(err))
        pt_epoll_detach_recv(l, r);
    r->fn(r, NULL, -err, NULL);
    return 1;
}

static int datagram_receive(struct pt_epoll_loop *l, struct pt_recv *r, int flags, bool read_clock)
{
    const struct target to = target_of(l, r);
    ssize_t n = recv(r->fd, to.buf, to.size, flags);
    if (n < 0)
        return failed(l, r, errno, read_clock);
    if (read_clock)
        l->base.now = pt_clock_now();
    r->fn(r, to.buf, n, NULL);
    return 1;
}

static int meta_receive(struct pt_epoll_loop *l, struct pt_recv *r, int flags, bool read_clock)
{
    struct pt_recv_batch *b = l->batch;
    ssize_t n = recvmsg(r->fd, &b->msgs[0].msg_hdr, flags);
    if (n < 0)
        return failed(l, r, errno, read_clock);
    if (read_clock)
        l->base.now = pt_clock_now();
    struct pt_recv_meta meta;
    pt_ev_meta(&meta, &b->msgs[0].msg_hdr);
    reset(b, 1);
    r->fn(r, b->bytes, n, &meta);
    return 1;
}

static int batch_receive(struct pt_epoll_loop *l, struct pt_recv *r, int flags, bool read_clock)
{
    struct pt_recv_batch *b = l->batch;
    const bool with_meta = r->kind == PT_RECV_DGRAM_META;
    unsigned most = r->batch < b->count ? r->batch : b->count;
    int n = recvmmsg(r->fd, b->msgs, most, flags ? flags : MSG_WAITFORONE, NULL);
    if (n < 0)
        return failed(l, r, errno, read_clock);
    if (read_clock)
        l->base.now = pt_clock_now();
    int ran = 0;
    l->base.running = r;
    while (ran < n && l->base.running == r) {
        struct mmsghdr *m = &b->msgs[ran++];
        struct pt_recv_meta meta;
        if (with_meta)
            pt_ev_meta(&meta, &m->msg_hdr);
        r->fn(r, m->msg_hdr.msg_iov->iov_base, m->msg_len, with_meta ? &meta : NULL);
    }
    reset(b, (unsigned)n);
    return ran;
}

int pt_epoll_receive(struct pt_epoll_loop *l, struct pt_recv *r, int flags, bool read_clock)
{
    if (pt_ev_is_stream(r))
        return stream_receive(l, r, flags, read_clock);
    if (r->batch > 1 && (r->kind == PT_RECV_DGRAM_META || !r->into))
        return batch_receive(l, r, flags, read_clock);
    if (r->kind == PT_RECV_DGRAM)
        return datagram_receive(l, r, flags, read_clock);
    return meta_receive(l, r, flags, read_clock);
}
