/* ev_epoll.h: the epoll back end's own structs, shared by its two files; private to ev/.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_EV_EPOLL_H
#define PT_EV_EPOLL_H

#include "ev/backend.h"

#include <sys/epoll.h>

#define PT_EV_EVENTS 256

struct pt_fd_slot {
    struct pt_recv *recv;
    struct pt_op *first, *last;
    uint32_t events;    /* as registered; 0: not */
    bool dirty, unread; /* on the list of that name */
    bool hangup;        /* the end of the stream has been announced: a short read is not the last */
};

/* Descriptors to look at. Room for twice the table: the list is refilled while it is worked off. */
struct pt_fd_list {
    int *fds;
    size_t count;
};

/* What recvmmsg(2) needs for `count` datagrams. A larger one may be made while a callback holds a
 * buffer of the older, so that one stays until the loop ends. */
struct pt_recv_batch {
    struct pt_recv_batch *older;
    unsigned count;
    size_t stride; /* bytes from one buffer to the next */
    uint8_t *bytes;
    struct mmsghdr *msgs;
    struct iovec *iov;
    struct sockaddr_storage *names;
    uint8_t (*control)[PT_EV_CONTROL_SIZE];
};

struct pt_epoll_loop {
    struct pt_loop base;
    int ep;
    bool no_pwait2; /* Linux < 5.11 */
    struct pt_fd_slot *slots;
    size_t slot_count;
    struct pt_fd_list dirty, unread;
    struct pt_recv *receives, *cursor; /* cursor: next of the direct round under way */
    size_t receive_count, op_count;    /* op_count: in slots */
    struct pt_op *finished;            /* done at once, callback due in the next step */
    size_t finished_count;
    uint32_t round;
    unsigned direct_rounds, direct_streak;
    struct pt_recv_batch *batch;
    struct epoll_event events[PT_EV_EVENTS];
};

/* ---- ev_epoll_recv.c */

struct pt_recv_batch *pt_recv_batch_new(unsigned count, size_t size, struct pt_recv_batch *older);
void pt_recv_batch_free(struct pt_recv_batch *b);

/* One attempt, `flags` MSG_DONTWAIT or 0 (may sleep); `read_clock`: set `now` after each call that
 * brought something. Returns callbacks run, 0 when nothing was there, or -EINTR. */
int pt_epoll_receive(struct pt_epoll_loop *l, struct pt_recv *r, int flags, bool read_clock);

/* ---- ev_epoll_op.c */

int pt_epoll_op_start(struct pt_loop *base, struct pt_op *op);
int pt_epoll_connect(struct pt_loop *base, struct pt_op *op, const struct sockaddr *to,
                     socklen_t len);
void pt_epoll_op_cancel(struct pt_loop *base, struct pt_op *op);
/* Ends `op` without a callback. */
void pt_epoll_detach_op(struct pt_epoll_loop *l, struct pt_op *op);
/* Runs what was finished when it was started; returns the callbacks run. */
int pt_epoll_run_finished(struct pt_epoll_loop *l);
/* Hands these events to the operations of the descriptor; returns the callbacks run. */
int pt_epoll_ops_ready(struct pt_epoll_loop *l, int fd, uint32_t events);

/* ---- ev_epoll.c */

/* Room in the table for this descriptor. May move the table. */
int pt_epoll_need_slot(struct pt_epoll_loop *l, int fd);
/* The interest in this descriptor may have changed. */
void pt_epoll_mark_dirty(struct pt_epoll_loop *l, int fd);
/* To be called whenever a slot has lost a receive or an operation. */
void pt_epoll_slot_shrunk(struct pt_epoll_loop *l, int fd);

/* Ends `r` without a callback. */
void pt_epoll_detach_recv(struct pt_epoll_loop *l, struct pt_recv *r);
/* The last read of this edge-triggered stream was full: read again in the next step. */
void pt_epoll_mark_unread(struct pt_epoll_loop *l, int fd);

#endif
