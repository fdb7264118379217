/* flow.c: what a workload may do with its flow: the life of an operation, sending, ending.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/worker_private.h"

#include "os/clock.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

void pt_flow_started(struct pt_flow *f, pt_ns due, pt_ns sent)
{
    struct pt_worker *w = f->w;
    enum pt_phase phase = pt_worker_phase_at(w, due);
    w->st->c[phase].ops++;
    f->st->c[phase].ops++;
    if (!f->st->first_tx_ns)
        f->st->first_tx_ns = sent;
    if (phase == PT_PHASE_MEASURE && f->left != UINT64_MAX)
        f->left--;
    f->outstanding++;
    w->outstanding++;
}

static void settle(struct pt_flow *f)
{
    if (f->outstanding) {
        f->outstanding--;
        f->w->outstanding--;
    }
}

static void record(struct pt_worker *w, pt_ns due, pt_ns sent, pt_ns now)
{
    pt_hist_record(&w->st->hist[PT_HIST_LATENCY], (uint64_t)(now > due ? now - due : 0));
    pt_hist_record(&w->st->hist[PT_HIST_SERVICE], (uint64_t)(now > sent ? now - sent : 0));
}

void pt_flow_done(struct pt_flow *f, pt_ns due, pt_ns sent, pt_ns now)
{
    struct pt_worker *w = f->w;
    enum pt_phase phase = pt_worker_phase_at(w, due);
    w->st->c[phase].ok++;
    f->st->c[phase].ok++;
    settle(f);
    if (phase == PT_PHASE_MEASURE)
        record(w, due, sent, now);
}

void pt_flow_error(struct pt_flow *f, enum pt_op_error error, pt_ns due, pt_ns sent, pt_ns now)
{
    struct pt_worker *w = f->w;
    enum pt_phase phase = pt_worker_phase_at(w, due);
    w->st->c[phase].errors[error]++;
    f->st->c[phase].errors[error]++;
    settle(f);
    /* An operation that ran into its time limit has lasted at least that long. */
    if (phase == PT_PHASE_MEASURE && error == PT_OP_TIMEOUT)
        record(w, due, sent, now);
}

/* It waits for room no more. */
static void stop_waiting(struct pt_flow *f)
{
    if (f->writable.p.active)
        pt_op_cancel(f->w->loop, &f->writable);
    f->w->blocked -= f->blocked;
    f->blocked = false;
}

void pt_flow_stop(struct pt_flow *f)
{
    struct pt_worker *w = f->w;
    if (f->rx.p.active)
        pt_recv_stop(w->loop, &f->rx);
    stop_waiting(f);
    if (f->reply.p.active)
        pt_op_cancel(w->loop, &f->reply);
}

void pt_flow_probe(struct pt_flow *f)
{
    if (f->w->shape->chan == PT_CHAN_TCP && f->fd >= 0)
        f->st->tcp_valid = pt_tcp_info_read(&f->st->tcp_end, f->fd) == 0;
}

static void sender_ends(struct pt_worker *w)
{
    w->senders--;
    atomic_store(&w->st->senders, w->senders);
}

void pt_flow_end(struct pt_flow *f, int code)
{
    struct pt_worker *w = f->w;
    if (f->dead)
        return;
    if ((f->dir & PT_DIR_TX) && !f->finished)
        sender_ends(w);
    if (f->dir & PT_DIR_RX)
        w->receivers--;
    f->dead = f->finished = true;
    f->st->ended = code == 0;
    f->st->error = code;
    pt_flow_stop(f);
    if (w->wl->on_end)
        w->wl->on_end(f, code, pt_loop_now(w->loop));
    w->outstanding -= f->outstanding;
    f->outstanding = 0;
    atomic_fetch_sub(&w->st->flows_open, 1);
}

/* The sending half is over: the receiver sees the end of the stream. */
void pt_flow_finish(struct pt_flow *f)
{
    if (f->finished)
        return;
    f->finished = true;
    sender_ends(f->w);
    stop_waiting(f);
    if (f->w->shape->chan != PT_CHAN_UDP && f->dir == PT_DIR_TX) {
        if (f->w->phase != PT_PHASE_TAIL) /* else the window's end has been looked at */
            pt_flow_probe(f);
        if (!f->w->shape->lingers)
            shutdown(f->fd, SHUT_WR);
    }
}

static void on_writable(struct pt_op *op, int res, bool more)
{
    struct pt_flow *f = op->ctx;
    (void)res;
    (void)more;
    f->blocked = false;
    f->w->blocked--;
    if (f->w->shape->both && !f->w->paced)
        pt_flow_next(f);
}

static void wait_writable(struct pt_flow *f)
{
    f->blocked = true;
    f->w->blocked++;
    f->writable.fn = on_writable;
    f->writable.ctx = f;
    int rc = pt_op_poll(f->w->loop, &f->writable, f->fd, POLLOUT);
    if (rc < 0)
        pt_flow_end(f, rc);
}

/* What could not be sent at once is gathered behind what is on its way. */
static int send_rest(struct pt_flow *f);

static void on_reply_sent(struct pt_op *op, int res, bool more)
{
    struct pt_flow *f = op->ctx;
    (void)more;
    if (res < 0 && (f->w->shape->chan != PT_CHAN_UDP || res == -EBADF)) {
        pt_flow_end(f, res);
        return;
    }
    f->out[f->out_at].len = 0;
    f->out_at = !f->out_at;
    if (f->held) {
        f->held = false;
        int rc = pt_recv_resume(f->w->loop, &f->rx);
        if (rc < 0) {
            pt_flow_end(f, rc);
            return;
        }
    }
    if (f->out[f->out_at].len) {
        int rc = send_rest(f);
        if (rc < 0)
            pt_flow_end(f, rc);
    }
}

static int send_rest(struct pt_flow *f)
{
    struct pt_flow_out *o = &f->out[f->out_at];
    f->reply.fn = on_reply_sent;
    f->reply.ctx = f;
    return pt_op_send(f->w->loop, &f->reply, f->fd, o->bytes, o->len);
}

static int gather(struct pt_flow *f, struct pt_flow_out *o, const uint8_t *bytes, size_t n)
{
    if (!o->bytes && !(o->bytes = pt_worker_alloc(f->w, f->w->out_size)))
        return -ENOMEM;
    if (n > f->w->out_size - o->len)
        return -EAGAIN;
    memcpy(o->bytes + o->len, bytes, n);
    o->len += n;
    return 0;
}

/* The answering end reads no further requests while so many bytes of answers wait to be sent: TCP
 * then tells the asking end. What one receive may still bring fits (worker.c, out_size). */
static void hold_back(struct pt_flow *f)
{
    if (f->w->job->spec.side != PT_ANSWER || f->held || f->out[!f->out_at].len < PT_OUT_HELD)
        return;
    pt_recv_pause(f->w->loop, &f->rx);
    f->held = true;
}

static int send_stream(struct pt_flow *f, const uint8_t *bytes, size_t n)
{
    if (f->reply.p.active) {
        int rc = gather(f, &f->out[!f->out_at], bytes, n);
        hold_back(f);
        return rc;
    }
    ssize_t sent = 0;
    if (f->w->job->spec.backend == PT_BACKEND_EPOLL) {
        sent = send(f->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if ((size_t)sent == n)
            return 0;
        if (sent < 0 && errno != EAGAIN)
            return -errno;
        if (sent < 0)
            sent = 0;
    }
    int rc = gather(f, &f->out[f->out_at], bytes + sent, n - (size_t)sent);
    return rc < 0 ? rc : send_rest(f);
}

static int send_datagram(struct pt_flow *f, const uint8_t *bytes, size_t n)
{
    if (f->w->job->spec.backend == PT_BACKEND_EPOLL || f->reply.p.active) {
        ssize_t sent = send(f->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        return sent < 0 ? -errno : 0;
    }
    int rc = gather(f, &f->out[f->out_at], bytes, n);
    return rc < 0 ? rc : send_rest(f);
}

int pt_flow_send(struct pt_flow *f, const void *bytes, size_t n)
{
    int rc =
        f->w->shape->chan == PT_CHAN_UDP ? send_datagram(f, bytes, n) : send_stream(f, bytes, n);
    if (rc == 0)
        pt_flow_sent(f, n, f->w->shape->chan == PT_CHAN_UDP);
    return rc;
}

void pt_flow_received(struct pt_flow *f, size_t n)
{
    struct pt_counters *c = f->w->c, *fc = &f->st->c[f->w->phase];
    c->rx_bytes += n;
    c->rx_calls++;
    fc->rx_bytes += n;
    fc->rx_calls++;
    pt_worker_heard(f->w, pt_loop_now(f->w->loop));
}

/* What a datagram may meet on its way out without an end to its flow: a full queue, a link that is
 * down, a route that is missing for a while, what ICMP said of an earlier one. */
bool pt_flow_passing(const struct pt_flow *f, int rc)
{
    static const int passing[] = {ENOBUFS, ENOMEM,      ENETDOWN,     ENETUNREACH, EHOSTUNREACH,
                                  ENONET,  EHOSTDOWN,   ECONNREFUSED, EPERM,       EACCES,
                                  EPROTO,  ENOPROTOOPT, EOPNOTSUPP};
    for (size_t i = 0; f->w->shape->chan == PT_CHAN_UDP && i < PT_COUNT(passing); i++)
        if (rc == -passing[i])
            return true;
    return false;
}

/* Until the next tick. */
static void pause_flow(struct pt_flow *f)
{
    f->w->blocked += !f->blocked;
    f->blocked = f->paused = true;
}

void pt_flow_resume(struct pt_flow *f)
{
    f->w->blocked -= f->blocked;
    f->blocked = f->paused = false;
    if (f->w->shape->both && !f->w->paced)
        pt_flow_next(f);
}

void pt_flow_refused(struct pt_flow *f, pt_ns due, pt_ns now)
{
    pt_flow_started(f, due, now);
    pt_flow_error(f, PT_OP_SEND, due, now, now);
    if (!f->w->paced)
        pause_flow(f);
}

/* What a failed attempt to start operations means for the flow. */
void pt_flow_stuck(struct pt_flow *f, int rc)
{
    if (rc == -EAGAIN) {
        wait_writable(f);
    } else if (pt_flow_passing(f, rc)) {
        if (rc != -ENOBUFS)
            pt_flow_refused(f, pt_loop_now(f->w->loop), pt_loop_now(f->w->loop));
    } else if (rc != -EINTR) {
        pt_flow_end(f, rc);
    }
}

void pt_flow_next(struct pt_flow *f)
{
    struct pt_worker *w = f->w;
    while (!w->finishing && !f->finished && !f->blocked && f->outstanding < w->shape->inflight) {
        if (!f->left) {
            pt_flow_finish(f);
            return;
        }
        int rc = w->wl->on_due(f, pt_loop_touch(w->loop), 1);
        if (rc < 0) {
            pt_flow_stuck(f, rc);
            return;
        }
        if (rc == 0)
            return;
    }
}
