/* lat_crr.c: a TCP connection per request: `pitot lat --crr`.
 *
 * One operation: connect, send the request, receive the answer, close. The connection time counts
 * from the instant connect(2) is called to the handshake's end; the latency from the instant the
 * operation was due to the last byte of the answer. The answering worker has a listener of its own,
 * at the address the client used, and takes connections only from the session's client.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload/lat.h"

#include "engine/channel.h"
#include "net/tuple.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 1024

/* ---- asking */

struct crr {
    struct pt_flow *f;
    struct pt_op connect, send;
    struct pt_recv recv;
    uint8_t *message;
    size_t size, got;
    int fd;
    pt_ns due, sent;
    uint64_t made; /* connections so far */
    bool busy;
};

int pt_lat_crr_flow_init(struct pt_flow *f, struct pt_err *e)
{
    _Static_assert(sizeof(struct crr) <= 512, "lat.c flow_size");
    struct crr *c = f->own;
    *c = (struct crr){.f = f, .fd = -1, .size = pt_lat_size(f->w->job->spec.plan)};
    c->message = pt_worker_alloc(f->w, c->size);
    return c->message ? 0 : pt_fail(e, -ENOMEM, "no memory for a request");
}

static void close_it(struct crr *c)
{
    struct pt_loop *l = c->f->w->loop;
    if (c->connect.p.active)
        pt_op_cancel(l, &c->connect);
    if (c->send.p.active)
        pt_op_cancel(l, &c->send);
    if (c->recv.p.active)
        pt_recv_stop(l, &c->recv);
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->busy = false;
}

static void ended(struct crr *c, int code)
{
    struct pt_flow *f = c->f;
    pt_ns now = pt_loop_now(f->w->loop);
    bool connecting = code < 0 && c->connect.p.active;
    close_it(c);
    if (code == 0)
        pt_flow_done(f, c->due, c->sent, now);
    else
        pt_flow_error(f,
                      code == -ETIMEDOUT  ? PT_OP_TIMEOUT
                      : connecting        ? PT_OP_CONNECT
                      : code == -ENOTCONN ? PT_OP_CLOSED
                                          : PT_OP_RESET,
                      c->due, c->sent, now);
    if (!f->w->paced)
        pt_flow_next(f);
}

static void on_answer(struct pt_recv *r, uint8_t *bytes, ssize_t n, const struct pt_recv_meta *meta)
{
    struct crr *c = r->ctx;
    (void)bytes;
    (void)meta;
    if (n <= 0) {
        ended(c, n == 0 ? -ENOTCONN : (int)n);
        return;
    }
    pt_flow_received(c->f, (size_t)n);
    c->got += (size_t)n;
    if (c->got >= c->size)
        ended(c, c->got == c->size ? 0 : -EPROTO);
}

static void on_sent(struct pt_op *op, int res, bool more)
{
    (void)more;
    if (res < 0)
        ended(op->ctx, res);
}

static void fail_connect(struct crr *c, int code)
{
    struct pt_flow *f = c->f;
    pt_ns now = pt_loop_now(f->w->loop);
    close_it(c);
    pt_flow_error(f, code == -ETIMEDOUT ? PT_OP_TIMEOUT : PT_OP_CONNECT, c->due, c->sent, now);
    f->st->error = code;
}

static void on_connected(struct pt_op *op, int res, bool more)
{
    struct crr *c = op->ctx;
    struct pt_flow *f = c->f;
    (void)more;
    if (res < 0) {
        fail_connect(c, res);
        return; /* the next one starts on the next tick: a refused port is not hammered */
    }
    pt_worker_granted(f->w, c->fd);
    pt_ns now = pt_loop_touch(f->w->loop);
    if (pt_worker_phase_at(f->w, c->due) == PT_PHASE_MEASURE)
        pt_hist_record(&f->w->st->hist[PT_HIST_CONNECT], (uint64_t)(now - c->sent));
    c->recv = (struct pt_recv){
        .fd = c->fd, .kind = PT_RECV_STREAM, .batch = 1, .fn = on_answer, .ctx = c};
    c->send = (struct pt_op){.fn = on_sent, .ctx = c};
    int rc = pt_recv_start(f->w->loop, &c->recv);
    if (rc == 0)
        rc = pt_op_send(f->w->loop, &c->send, c->fd, c->message, c->size);
    if (rc < 0)
        ended(c, rc);
    else
        pt_flow_sent(f, c->size, 0);
}

/* No socket, or not from that port: an operation that failed. The next is tried on the next tick.
 */
static int refused(struct pt_flow *f, int code, pt_ns due)
{
    pt_ns now = pt_loop_now(f->w->loop);
    pt_flow_started(f, due, now);
    pt_flow_error(f, PT_OP_CONNECT, due, now, now);
    f->st->error = code;
    return f->w->paced ? 1 : 0;
}

int pt_lat_crr_due(struct pt_flow *f, pt_ns due)
{
    struct crr *c = f->own;
    if (c->busy)
        return -EAGAIN;
    const struct pt_addr *to = &f->w->job->spec.listener_at;
    struct pt_sockopts o;
    pt_channel_options(&o, &f->w->job->spec.plan->common, f->w->shape);
    struct pt_tuple source = {.from.len = 0};
    if (f->w->job->spec.sources) /* flow after flow, so that no two have one source at once */
        pt_tuple_at(f->w->job->spec.sources, f->id + c->made * f->w->shape->flows, &source);
    int fd = pt_sock_open(SOCK_STREAM, to, &source.from, &o, NULL);
    c->made++;
    if (fd < 0)
        return refused(f, fd, due);
    c->fd = fd;
    c->busy = true;
    c->got = 0;
    c->due = due;
    c->sent = pt_loop_touch(f->w->loop);
    pt_flow_started(f, due, c->sent);
    c->connect = (struct pt_op){.fn = on_connected, .ctx = c};
    int rc = pt_op_connect(f->w->loop, &c->connect, fd, &to->sa, to->len);
    if (rc < 0)
        fail_connect(c, rc);
    return 1;
}

void pt_lat_crr_tick(struct pt_flow *f, pt_ns now)
{
    struct crr *c = f->own;
    if (c->busy && now - c->due > f->w->job->spec.plan->common.timeout)
        ended(c, -ETIMEDOUT);
    else if (!c->busy && !f->w->paced)
        pt_flow_next(f);
}

/* ---- answering */

struct answering;

struct connection {
    struct answering *a;
    struct pt_recv recv;
    struct pt_op send;
    int fd;
    size_t got;
    uint8_t *message;
    struct connection *next_free;
};

struct answering {
    struct pt_worker *w;
    struct pt_op accept;
    size_t size;
    struct connection *all, *free;
};

static void drop(struct connection *c)
{
    struct pt_loop *l = c->a->w->loop;
    if (c->recv.p.active)
        pt_recv_stop(l, &c->recv);
    if (c->send.p.active)
        pt_op_cancel(l, &c->send);
    close(c->fd);
    c->fd = -1;
    c->next_free = c->a->free;
    c->a->free = c;
}

static void on_answer_sent(struct pt_op *op, int res, bool more)
{
    (void)more;
    if (res < 0)
        drop(op->ctx);
}

static void on_request(struct pt_recv *r, uint8_t *bytes, ssize_t n,
                       const struct pt_recv_meta *meta)
{
    struct connection *c = r->ctx;
    struct answering *a = c->a;
    (void)meta;
    if (n <= 0 || (size_t)n > a->size - c->got) {
        drop(c); /* closed by the client, broken, or more than a request */
        return;
    }
    memcpy(c->message + c->got, bytes, (size_t)n);
    c->got += (size_t)n;
    if (c->got < a->size || c->send.p.active)
        return;
    c->got = 0;
    c->send = (struct pt_op){.fn = on_answer_sent, .ctx = c};
    if (pt_op_send(a->w->loop, &c->send, c->fd, c->message, a->size) < 0)
        drop(c);
}

static void on_accept(struct pt_op *op, int res, bool more)
{
    struct answering *a = op->ctx;
    (void)more;
    if (res < 0)
        return;
    struct pt_addr peer;
    struct connection *c = a->free;
    const struct pt_addr *client = &a->w->job->spec.listener_at;
    if (!c || pt_addr_peer(&peer, res) < 0 || !pt_addr_same_ip(&peer, client)) {
        close(res);
        return;
    }
    a->free = c->next_free;
    c->fd = res;
    c->got = 0;
    c->recv =
        (struct pt_recv){.fd = res, .kind = PT_RECV_STREAM, .batch = 1, .fn = on_request, .ctx = c};
    c->send = (struct pt_op){0};
    if (pt_recv_start(a->w->loop, &c->recv) < 0)
        drop(c);
}

int pt_lat_crr_worker_init(struct pt_worker *w, struct pt_err *e)
{
    if (w->job->spec.side != PT_ANSWER)
        return 0;
    struct answering *a = w->own;
    *a = (struct answering){.w = w, .size = pt_lat_size(w->job->spec.plan)};
    size_t each = (a->size + 63) & ~(size_t)63;
    a->all = pt_worker_alloc(w, CONNECTIONS * sizeof(*a->all));
    uint8_t *messages = pt_worker_alloc(w, CONNECTIONS * each);
    if (!a->all || !messages)
        return pt_fail(e, -ENOMEM, "no memory for %d connections", CONNECTIONS);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        a->all[i] = (struct connection){
            .a = a, .fd = -1, .message = messages + i * each, .next_free = a->free};
        a->free = &a->all[i];
    }
    a->accept = (struct pt_op){.fn = on_accept, .ctx = a};
    int rc = pt_op_accept(w->loop, &a->accept, w->job->spec.listener);
    return rc < 0 ? pt_fail(e, rc, "accept: %s", pt_strerror(rc)) : 0;
}

void pt_lat_crr_fini(struct pt_worker *w)
{
    if (w->job->spec.side == PT_ASK) {
        for (uint32_t i = 0; i < w->flow_count; i++)
            close_it(w->flows[i].own);
        return;
    }
    struct answering *a = w->own;
    if (a->accept.p.active)
        pt_op_cancel(w->loop, &a->accept);
    for (size_t i = 0; a->all && i < CONNECTIONS; i++)
        if (a->all[i].fd >= 0)
            drop(&a->all[i]);
}
