/* ev_epoll_op.c: send, connect, accept and poll of the epoll back end.
 *
 * A send is tried at once; what does not fit waits in its descriptor's slot, behind earlier ones. A
 * round hands each operation its events once: what callbacks start meanwhile carries the number of
 * the round and waits for the next.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/ev_epoll.h"

#include <errno.h>
#include <sys/ioctl.h>

static struct pt_epoll_loop *self(struct pt_loop *l)
{
    return (struct pt_epoll_loop *)(void *)l;
}

static void attach_op(struct pt_epoll_loop *l, struct pt_op *op)
{
    struct pt_fd_slot *s = &l->slots[op->p.fd];
    op->p.active = true;
    op->p.round = l->round;
    op->p.next = NULL;
    op->p.prev = s->last;
    if (s->last)
        s->last->p.next = op;
    else
        s->first = op;
    s->last = op;
    l->op_count++;
    pt_epoll_mark_dirty(l, op->p.fd);
}

void pt_epoll_detach_op(struct pt_epoll_loop *l, struct pt_op *op)
{
    struct pt_fd_slot *s = &l->slots[op->p.fd];
    if (op->p.prev)
        op->p.prev->p.next = op->p.next;
    else
        s->first = op->p.next;
    if (op->p.next)
        op->p.next->p.prev = op->p.prev;
    else
        s->last = op->p.prev;
    l->op_count--;
    op->p.active = false;
    pt_epoll_slot_shrunk(l, op->p.fd);
}

/* The result is known; the callback comes in the next step. */
static void finish_later(struct pt_epoll_loop *l, struct pt_op *op, int res)
{
    op->p.kind = PT_OP_FINISHED;
    op->p.active = true;
    op->p.res = res;
    op->p.next = l->finished;
    l->finished = op;
    l->finished_count++;
}

static void unlink_finished(struct pt_epoll_loop *l, struct pt_op *op)
{
    struct pt_op **at = &l->finished;
    while (*at != op)
        at = &(*at)->p.next;
    *at = op->p.next;
    l->finished_count--;
    op->p.active = false;
}

int pt_epoll_run_finished(struct pt_epoll_loop *l)
{
    int ran = 0;
    for (size_t most = l->finished_count; most > 0 && l->finished; most--) {
        struct pt_op *op = l->finished;
        unlink_finished(l, op);
        op->fn(op, op->p.res, false);
        ran++;
    }
    return ran;
}

/* A later send must not overtake one that waits. */
static bool send_waits(const struct pt_epoll_loop *l, int fd)
{
    for (const struct pt_op *op = l->slots[fd].first; op; op = op->p.next)
        if (op->p.kind == PT_OP_SEND)
            return true;
    return false;
}

enum sent { SENT_ALL, SENT_SOME, SENT_FAILED };

static enum sent try_send(struct pt_op *op)
{
    ssize_t n;
    do
        n = send(op->p.fd, op->p.buf + op->p.done, op->p.len - op->p.done,
                 MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return SENT_SOME;
    if (n < 0) {
        op->p.res = -errno;
        return SENT_FAILED;
    }
    op->p.done += (size_t)n;
    op->p.res = (int)op->p.len;
    return op->p.done == op->p.len ? SENT_ALL : SENT_SOME;
}

int pt_epoll_op_start(struct pt_loop *base, struct pt_op *op)
{
    struct pt_epoll_loop *l = self(base);
    int rc = pt_epoll_need_slot(l, op->p.fd);
    if (rc < 0)
        return rc;
    if (op->p.kind == PT_OP_SEND && !send_waits(l, op->p.fd) && try_send(op) != SENT_SOME) {
        op->fn(op, op->p.res, false);
        return 0;
    }
    attach_op(l, op);
    return 0;
}

int pt_epoll_connect(struct pt_loop *base, struct pt_op *op, const struct sockaddr *to,
                     socklen_t len)
{
    struct pt_epoll_loop *l = self(base);
    int rc = pt_epoll_need_slot(l, op->p.fd);
    if (rc < 0)
        return rc;
    int on = 1, off = 0;
    if (ioctl(op->p.fd, FIONBIO, &on) < 0)
        return -errno;
    rc = connect(op->p.fd, to, len) < 0 ? -errno : 0;
    if (ioctl(op->p.fd, FIONBIO, &off) < 0 && rc == 0)
        rc = -errno;
    if (rc == -EINPROGRESS)
        attach_op(l, op);
    else
        finish_later(l, op, rc);
    return 0;
}

void pt_epoll_op_cancel(struct pt_loop *base, struct pt_op *op)
{
    struct pt_epoll_loop *l = self(base);
    if (op->p.kind == PT_OP_FINISHED)
        unlink_finished(l, op);
    else
        pt_epoll_detach_op(l, op);
}

static void complete(struct pt_epoll_loop *l, struct pt_op *op, int res)
{
    pt_epoll_detach_op(l, op);
    op->fn(op, res, false);
}

static int send_ready(struct pt_epoll_loop *l, struct pt_op *op)
{
    if (try_send(op) == SENT_SOME)
        return 0;
    complete(l, op, op->p.res);
    return 1;
}

static int connect_ready(struct pt_epoll_loop *l, struct pt_op *op)
{
    int err = 0;
    socklen_t len = sizeof(err);
    if (getsockopt(op->p.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        err = errno;
    complete(l, op, -err);
    return 1;
}

static int accept_ready(struct pt_epoll_loop *l, struct pt_op *op)
{
    int verdict;
    int ran = pt_ev_accept(&l->base, op, &verdict);
    if (verdict < 0) {
        pt_epoll_detach_op(l, op);
        op->p.active = true;
        pt_ev_accept_over(&l->base, op, verdict);
        ran++;
    }
    return ran;
}

/* The first operation that these events concern and that has not had its turn in this round. Sends
 * keep their order: only the first of a slot counts. */
static struct pt_op *next_ready(struct pt_epoll_loop *l, int fd, uint32_t events)
{
    bool send_seen = false;
    for (struct pt_op *op = l->slots[fd].first; op; op = op->p.next) {
        bool concerned = (events & (op->p.events | EPOLLERR | EPOLLHUP)) != 0;
        bool blocked = op->p.kind == PT_OP_SEND && send_seen;
        send_seen |= op->p.kind == PT_OP_SEND;
        if (concerned && !blocked && op->p.round != l->round)
            return op;
    }
    return NULL;
}

int pt_epoll_ops_ready(struct pt_epoll_loop *l, int fd, uint32_t events)
{
    int ran = 0;
    struct pt_op *op;
    while ((op = next_ready(l, fd, events))) {
        op->p.round = l->round;
        switch ((enum pt_op_kind)op->p.kind) {
        case PT_OP_SEND:
            ran += send_ready(l, op);
            break;
        case PT_OP_CONNECT:
            ran += connect_ready(l, op);
            break;
        case PT_OP_ACCEPT:
            ran += accept_ready(l, op);
            break;
        case PT_OP_POLL:
            complete(l, op, (int)(events & (op->p.events | EPOLLERR | EPOLLHUP)));
            ran++;
            break;
        case PT_OP_FINISHED:
            break;
        }
    }
    return ran;
}
