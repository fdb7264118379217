/* ev_epoll.c: the loop over epoll(7), with as few system calls as each case allows.
 *
 * - Few receives (DIRECT_MOST) while polling: recv(2) on each, epoll is not asked. Then the sockets
 *   are not even registered, which spares the stack a wake-up call per packet.
 * - One receive and nothing else while blocking: recv(2) itself sleeps.
 * - Otherwise epoll. Streams are edge-triggered: a short read has drained the socket, a full one
 *   puts it on the `unread` list. Datagram sockets, listeners and polls are level-triggered, which
 *   is cheaper than asking once more for an EAGAIN.
 *
 * Registration is lazy: `dirty` lists the descriptors whose interest may have changed, and is
 * worked off before epoll_wait, never while events are handed out. Withdrawing is eager, because
 * the caller may close the descriptor next and the number may come back as another socket. So an
 * event whose slot is not registered belongs to a socket that is gone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/ev_epoll.h"

#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define DIRECT_MOST  8
#define DIRECT_ROUND 16 /* direct rounds between two looks at epoll, when other operations wait */
#define DIRECT_LONG  64 /* this many in a row: the registration only costs */
#define FDS_MAX      (1u << 26)
#define BATCH_MAX    1024u

static struct pt_epoll_loop *self(struct pt_loop *l)
{
    return (struct pt_epoll_loop *)(void *)l;
}

/* ---- the table of descriptors */

static int grow_list(struct pt_fd_list *list, size_t count)
{
    int *fds = realloc(list->fds, 2 * count * sizeof(*fds));
    if (!fds)
        return -ENOMEM;
    list->fds = fds;
    return 0;
}

int pt_epoll_need_slot(struct pt_epoll_loop *l, int fd)
{
    size_t count = l->slot_count;
    if ((size_t)fd < count)
        return 0;
    if ((unsigned)fd >= FDS_MAX)
        return -EBADF;
    while (count <= (size_t)fd)
        count *= 2;
    if (grow_list(&l->dirty, count) < 0 || grow_list(&l->unread, count) < 0)
        return -ENOMEM;
    struct pt_fd_slot *slots = realloc(l->slots, count * sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    memset(slots + l->slot_count, 0, (count - l->slot_count) * sizeof(*slots));
    l->slots = slots;
    l->slot_count = count;
    return 0;
}

void pt_epoll_mark_dirty(struct pt_epoll_loop *l, int fd)
{
    if (l->slots[fd].dirty)
        return;
    l->slots[fd].dirty = true;
    l->dirty.fds[l->dirty.count++] = fd;
}

void pt_epoll_mark_unread(struct pt_epoll_loop *l, int fd)
{
    if (l->slots[fd].unread)
        return;
    l->slots[fd].unread = true;
    l->unread.fds[l->unread.count++] = fd;
}

static void unregister(struct pt_epoll_loop *l, int fd)
{
    struct pt_fd_slot *s = &l->slots[fd];
    if (s->events == 0)
        return;
    epoll_ctl(l->ep, EPOLL_CTL_DEL, fd, NULL);
    s->events = 0;
    s->hangup = false;
}

void pt_epoll_slot_shrunk(struct pt_epoll_loop *l, int fd)
{
    struct pt_fd_slot *s = &l->slots[fd];
    if (!s->recv && !s->first)
        unregister(l, fd);
    else
        pt_epoll_mark_dirty(l, fd);
}

static bool receives_are_direct(const struct pt_epoll_loop *l)
{
    return l->base.spec.wait == PT_WAIT_SPIN && l->receive_count <= DIRECT_MOST;
}

static uint32_t wanted(const struct pt_epoll_loop *l, const struct pt_fd_slot *s)
{
    uint32_t want = 0;
    bool level = false;
    if (s->recv && !receives_are_direct(l)) {
        want |= EPOLLIN;
        if (pt_ev_is_stream(s->recv))
            want |= EPOLLRDHUP;
        else
            level = true;
    }
    for (const struct pt_op *op = s->first; op; op = op->p.next) {
        want |= op->p.events;
        if (op->p.kind == PT_OP_ACCEPT || op->p.kind == PT_OP_POLL)
            level = true;
    }
    return want && !level ? want | (uint32_t)EPOLLET : want;
}

/* An edge-triggered registration may ask for more than is wanted: it costs nothing. */
static bool registered_enough(uint32_t have, uint32_t want)
{
    return have == want || (want && (have & want & (uint32_t)EPOLLET) && !(want & ~have));
}

/* epoll refused the descriptor (a plain file, no memory): everything on it ends with that error. */
static int refuse(struct pt_epoll_loop *l, int fd, int err)
{
    int ran = 0;
    struct pt_recv *r = l->slots[fd].recv;
    if (r) {
        pt_epoll_detach_recv(l, r);
        r->fn(r, NULL, err, NULL);
        ran++;
    }
    struct pt_op *op;
    while ((op = l->slots[fd].first) && l->slots[fd].events == 0) {
        pt_epoll_detach_op(l, op);
        op->fn(op, err, false);
        ran++;
    }
    return ran;
}

static int flush_dirty(struct pt_epoll_loop *l)
{
    int ran = 0;
    size_t count = l->dirty.count;
    for (size_t i = 0; i < count; i++) {
        int fd = l->dirty.fds[i];
        struct pt_fd_slot *s = &l->slots[fd];
        s->dirty = false;
        uint32_t want = wanted(l, s);
        if (registered_enough(s->events, want))
            continue;
        if (want == 0) {
            unregister(l, fd);
            continue;
        }
        bool add = s->events == 0;
        struct epoll_event ev = {.events = want, .data.fd = fd};
        if (epoll_ctl(l->ep, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &ev) == 0)
            s->events = want;
        else
            ran += refuse(l, fd, -errno);
    }
    l->dirty.count -= count;
    memmove(l->dirty.fds, l->dirty.fds + count, l->dirty.count * sizeof(int));
    return ran;
}

/* ---- receive */

void pt_epoll_detach_recv(struct pt_epoll_loop *l, struct pt_recv *r)
{
    if (l->cursor == r)
        l->cursor = r->p.next;
    if (r->p.prev)
        r->p.prev->p.next = r->p.next;
    else
        l->receives = r->p.next;
    if (r->p.next)
        r->p.next->p.prev = r->p.prev;
    l->receive_count--;
    r->p.active = false;
    l->slots[r->fd].recv = NULL;
    pt_epoll_slot_shrunk(l, r->fd);
}

static int epoll_recv_start(struct pt_loop *base, struct pt_recv *r)
{
    struct pt_epoll_loop *l = self(base);
    int rc = pt_epoll_need_slot(l, r->fd);
    if (rc < 0)
        return rc;
    struct pt_fd_slot *s = &l->slots[r->fd];
    if (s->recv)
        return -EBUSY;
    unsigned batch = r->batch < BATCH_MAX ? r->batch : BATCH_MAX;
    if (batch > l->batch->count && !pt_ev_is_stream(r)) {
        struct pt_recv_batch *b = pt_recv_batch_new(batch, base->spec.recv_size, l->batch);
        if (!b)
            return -ENOMEM;
        l->batch = b;
    }
    s->recv = r;
    r->p.active = true;
    r->p.prev = NULL;
    r->p.next = l->receives;
    if (l->receives)
        l->receives->p.prev = r;
    l->receives = r;
    /* The edge for what lies there already may be gone. */
    if (s->events & EPOLLIN)
        pt_epoll_mark_unread(l, r->fd);
    pt_epoll_mark_dirty(l, r->fd);
    if (++l->receive_count == DIRECT_MOST + 1 && base->spec.wait == PT_WAIT_SPIN)
        for (struct pt_recv *other = l->receives; other; other = other->p.next)
            pt_epoll_mark_dirty(l, other->fd);
    return 0;
}

/* The bytes wait in the socket: resuming is starting again. */
static void epoll_recv_pause(struct pt_loop *base, struct pt_recv *r)
{
    pt_epoll_detach_recv(self(base), r);
}

static void epoll_recv_stop(struct pt_loop *base, struct pt_recv *r)
{
    if (!r->p.paused)
        pt_epoll_detach_recv(self(base), r);
    if (r->p.primed)
        setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0}, sizeof(struct timeval));
}

/* ---- waiting */

static int event_ready(struct pt_epoll_loop *l, const struct epoll_event *ev)
{
    const int fd = ev->data.fd;
    struct pt_fd_slot *s = &l->slots[fd];
    if (s->events == 0)
        return 0;
    int ran = 0;
    const uint32_t ends = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
    if (ev->events & ends)
        s->hangup = true;
    if (s->recv && (ev->events & (EPOLLIN | ends))) {
        int n = pt_epoll_receive(l, s->recv, MSG_DONTWAIT, false);
        ran += n > 0 ? n : 0;
    }
    return ran + pt_epoll_ops_ready(l, fd, ev->events);
}

/* Streams whose last read was full: the edge is spent, bytes may be left. */
static int read_on(struct pt_epoll_loop *l, size_t count)
{
    int ran = 0;
    for (size_t i = 0; i < count; i++) {
        int fd = l->unread.fds[i];
        struct pt_fd_slot *s = &l->slots[fd];
        s->unread = false;
        if (!s->recv)
            continue;
        int n = pt_epoll_receive(l, s->recv, MSG_DONTWAIT, false);
        ran += n > 0 ? n : 0;
    }
    l->unread.count -= count;
    memmove(l->unread.fds, l->unread.fds + count, l->unread.count * sizeof(int));
    return ran;
}

static struct timespec to_timespec(pt_ns t)
{
    return (struct timespec){.tv_sec = (time_t)(t / PT_S), .tv_nsec = (long)(t % PT_S)};
}

static int wait_events(struct pt_epoll_loop *l, pt_ns timeout)
{
    if (timeout == 0)
        return epoll_wait(l->ep, l->events, PT_EV_EVENTS, 0);
    struct timespec ts = to_timespec(timeout);
    if (!l->no_pwait2) {
        int n = epoll_pwait2(l->ep, l->events, PT_EV_EVENTS, &ts, NULL);
        if (n >= 0 || errno != ENOSYS)
            return n;
        l->no_pwait2 = true;
    }
    struct pollfd p = {.fd = l->ep, .events = POLLIN};
    int n = ppoll(&p, 1, &ts, NULL);
    return n <= 0 ? n : epoll_wait(l->ep, l->events, PT_EV_EVENTS, 0);
}

static int harvest(struct pt_epoll_loop *l, pt_ns timeout)
{
    l->round++;
    int ran = flush_dirty(l);
    if (ran > 0 || l->unread.count > 0)
        timeout = 0;
    int n = wait_events(l, timeout);
    if (n < 0 && errno != EINTR)
        return -errno;
    if (n < 0 && ran == 0 && l->unread.count == 0)
        return -EINTR;
    if (n > 0 || timeout > 0)
        l->base.now = pt_clock_now();
    size_t before = l->unread.count;
    for (int i = 0; i < n; i++)
        ran += event_ready(l, &l->events[i]);
    return ran + (before > 0 ? read_on(l, before) : 0);
}

/* The registrations of directly polled sockets only slow the sender down. */
static void unregister_receives(struct pt_epoll_loop *l)
{
    for (struct pt_recv *r = l->receives; r; r = r->p.next) {
        if (l->slots[r->fd].first || l->slots[r->fd].events == 0)
            continue;
        unregister(l, r->fd);
        pt_epoll_mark_dirty(l, r->fd);
    }
}

static int direct(struct pt_epoll_loop *l)
{
    int ran = 0;
    for (struct pt_recv *r = l->receives; r; r = l->cursor) {
        l->cursor = r->p.next;
        int n = pt_epoll_receive(l, r, MSG_DONTWAIT, true);
        ran += n > 0 ? n : 0;
    }
    if (ran > 0 && ++l->direct_streak == DIRECT_LONG)
        unregister_receives(l);
    return ran;
}

/* One receive is all there is: it sleeps in the system call that brings the bytes. */
static int block_in_recv(struct pt_epoll_loop *l, struct pt_recv *r)
{
    if (!r->p.primed) {
        struct timeval most = {.tv_usec = PT_EV_WAIT_MOST / PT_US};
        int off = 0;
        if (setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) < 0 ||
            ioctl(r->fd, FIONBIO, &off) < 0)
            return harvest(l, PT_EV_WAIT_MOST);
        r->p.primed = true;
    }
    int n = pt_epoll_receive(l, r, 0, true);
    if (n > 0 && ++l->direct_streak == DIRECT_LONG)
        unregister_receives(l);
    if (n <= 0)
        l->base.now = pt_clock_now();
    return n;
}

static int poll_then_recv(struct pt_epoll_loop *l, struct pt_recv *r, pt_ns timeout)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    struct timespec ts = to_timespec(timeout);
    int n = ppoll(&p, 1, &ts, NULL);
    int err = errno;
    l->base.now = pt_clock_now();
    if (n < 0)
        return -err;
    return n == 0 ? 0 : pt_epoll_receive(l, r, MSG_DONTWAIT, false);
}

static int epoll_loop_wait(struct pt_loop *base, pt_ns timeout)
{
    struct pt_epoll_loop *l = self(base);
    int ran = 0;
    if (PT_UNLIKELY(l->finished)) {
        ran = pt_epoll_run_finished(l);
        timeout = 0;
    }
    bool few = l->receive_count - 1 < DIRECT_MOST;
    if (timeout == 0 && few && (l->op_count == 0 || base->spec.wait == PT_WAIT_SPIN)) {
        ran += direct(l);
        if (l->op_count == 0 || ++l->direct_rounds < DIRECT_ROUND)
            return ran;
        l->direct_rounds = 0;
        int n = harvest(l, 0);
        return n < 0 && ran > 0 ? ran : ran + n;
    }
    if (timeout > 0 && l->receive_count == 1 && l->op_count == 0)
        return timeout >= PT_EV_WAIT_MOST ? block_in_recv(l, l->receives)
                                          : poll_then_recv(l, l->receives, timeout);
    l->direct_streak = 0;
    int n = harvest(l, timeout);
    return n < 0 && ran > 0 ? ran : ran + n;
}

/* ---- life */

static int epoll_open(struct pt_loop *base, struct pt_err *e)
{
    struct pt_epoll_loop *l = self(base);
    l->ep = epoll_create1(EPOLL_CLOEXEC);
    if (l->ep < 0)
        return pt_fail(e, -errno, "event loop: epoll_create1: %s", pt_strerror(-errno));
    l->slot_count = 64;
    l->slots = calloc(l->slot_count, sizeof(*l->slots));
    l->batch = pt_recv_batch_new(1, base->spec.recv_size, NULL);
    if (!l->slots || !l->batch || pt_epoll_need_slot(l, 255) < 0) {
        base->calls->close(base);
        return pt_fail(e, -ENOMEM, "event loop: out of memory");
    }
    return 0;
}

static void epoll_close(struct pt_loop *base)
{
    struct pt_epoll_loop *l = self(base);
    close(l->ep);
    free(l->slots);
    free(l->dirty.fds);
    free(l->unread.fds);
    pt_recv_batch_free(l->batch);
}

const struct pt_backend_calls pt_backend_epoll = {
    .name = "epoll",
    .size = sizeof(struct pt_epoll_loop),
    .open = epoll_open,
    .close = epoll_close,
    .wait = epoll_loop_wait,
    .recv_start = epoll_recv_start,
    .recv_stop = epoll_recv_stop,
    .recv_pause = epoll_recv_pause,
    .recv_resume = epoll_recv_start,
    .connect = pt_epoll_connect,
    .op_start = pt_epoll_op_start,
    .op_cancel = pt_epoll_op_cancel,
};
