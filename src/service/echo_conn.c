/* echo_conn.c: see echo_conn.h. Reads as long as the path takes chunks, so TCP's own flow control
 * carries a full path back to the sender; one send is under way at a time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/echo_conn.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS 256
#define CHUNK 65536

static void go_on(struct pt_echo_conn *c);

static void on_readable(struct pt_op *op, int res, bool more)
{
    struct pt_echo_conn *c = op->ctx;
    (void)more;
    c->polling = false;
    if (res < 0)
        c->ended = true;
    go_on(c);
}

static void on_sent(struct pt_op *op, int res, bool more)
{
    struct pt_echo_conn *c = op->ctx;
    (void)more;
    c->sending = false;
    pt_impair_done(&c->queue, &c->departure);
    if (res < 0)
        c->ended = true;
    go_on(c);
}

static void on_due(struct pt_timer *t, pt_ns due)
{
    (void)due;
    go_on(t->ctx);
}

static void send_due(struct pt_echo_conn *c)
{
    while (!c->ended && !c->sending &&
           pt_impair_take(&c->queue, pt_loop_touch(c->loop), &c->departure)) {
        c->sending = true;
        int rc = pt_op_send(c->loop, &c->send, c->fd, c->departure.bytes, c->departure.len);
        if (rc < 0)
            c->ended = true;
    }
}

static void read_more(struct pt_echo_conn *c)
{
    uint8_t chunk[CHUNK];
    while (!c->ended && !c->eof && !c->polling &&
           pt_impair_reads(&c->queue, pt_loop_touch(c->loop), CHUNK)) {
        ssize_t n = recv(c->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
        if (n > 0) {
            /* There is room: pt_impair_reads said so. */
            if (pt_impair_offer(&c->queue, pt_loop_touch(c->loop), NULL, NULL, 0, chunk,
                                (size_t)n) < 0)
                c->ended = true;
        } else if (n == 0) {
            c->eof = true;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            c->polling = true;
            if (pt_op_poll(c->loop, &c->poll, c->fd, POLLIN) < 0)
                c->ended = true;
        } else if (errno != EINTR) {
            c->ended = true;
        }
    }
}

/* Everything that can be done now; then a timer for what comes next. The epoll back end may call
 * on_sent inside pt_op_send: that one only takes notes. */
static void go_on(struct pt_echo_conn *c)
{
    if (c->leaving)
        return;
    c->leaving = true;
    read_more(c);
    send_due(c);
    read_more(c);
    c->leaving = false;
    pt_ns now = pt_loop_now(c->loop);
    pt_ns next = c->sending ? PT_NS_MAX : pt_impair_next(&c->queue);
    pt_ns room = pt_impair_room(&c->queue.path, now);
    if (!c->polling && !c->eof && room > now && room < next)
        next = room;
    if (c->eof && !c->sending && pt_impair_queued(&c->queue) == 0)
        c->ended = true;
    if (c->ended || next == PT_NS_MAX)
        pt_timer_cancel(c->loop, &c->timer);
    else if (pt_timer_set(c->loop, &c->timer, next) < 0)
        c->ended = true;
}

int pt_echo_conn_open(struct pt_echo_conn *c, struct pt_loop *loop,
                      const struct pt_impairment *impairment, int fd)
{
    uint64_t salt;
    struct pt_impair_record *record = pt_impair_claim(impairment->ledger, &salt);
    if (!record)
        return -EMFILE;
    *c = (struct pt_echo_conn){
        .fd = -1, .loop = loop, .ledger = impairment->ledger, .record = record};
    int rc =
        pt_impair_queue_init(&c->queue, &impairment->spec, record, salt, true, SLOTS, CHUNK, NULL);
    if (rc < 0) {
        pt_impair_give_back(c->ledger, record);
        return rc;
    }
    c->fd = fd;
    c->poll = (struct pt_op){.fn = on_readable, .ctx = c};
    c->send = (struct pt_op){.fn = on_sent, .ctx = c};
    c->timer = (struct pt_timer){.fn = on_due, .ctx = c};
    go_on(c);
    return 0;
}

void pt_echo_conn_close(struct pt_echo_conn *c)
{
    pt_timer_cancel(c->loop, &c->timer);
    pt_op_cancel(c->loop, &c->poll);
    pt_op_cancel(c->loop, &c->send);
    c->record->forgotten += pt_impair_queued(&c->queue);
    pt_impair_queue_fini(&c->queue);
    pt_impair_give_back(c->ledger, c->record);
    close(c->fd);
    c->fd = -1;
}
