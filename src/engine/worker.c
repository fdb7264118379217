/* worker.c: a worker process: phases, turns of the loop, what is due, what arrives.
 *
 * One turn: look at the stop word, read the clock, move to the phase that it says, start what is
 * due, then let the loop wait for the next thing. Nothing here knows what an operation is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/worker.h"

#include "engine/impaired.h"
#include "net/udp.h"
#include "os/clock.h"
#include "os/cpu.h"

#include <malloc.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_NS       (10 * PT_MS)
#define PROBE_NS      (100 * PT_MS) /* TCP_INFO */
#define PROBE_FLOWS   256
#define WAIT_NS       (55 * PT_MS) /* the stop word is looked at at least so often */
#define QUIET_DGRAM   (100 * PT_MS)
#define QUIET_STREAM  (2 * PT_S)
#define DRAIN_NS      PT_S
#define SPIN_BEFORE   (100 * PT_US)
#define BLOCK_TIMEOUT (50 * PT_MS)

struct pt_taken {
    struct pt_taken *next;
    uint8_t pad[PT_CACHE_LINE - sizeof(void *)];
};

void *pt_worker_alloc(struct pt_worker *w, size_t size)
{
    size_t whole =
        (sizeof(struct pt_taken) + size + PT_CACHE_LINE - 1) & ~(size_t)(PT_CACHE_LINE - 1);
    size_t align = size >= 65536 ? 4096 : PT_CACHE_LINE;
    whole = (whole + align - 1) & ~(align - 1);
    struct pt_taken *t = aligned_alloc(align, whole);
    if (!t)
        return NULL;
    memset(t, 0, whole);
    t->next = w->taken;
    w->taken = t;
    return t + 1;
}

void pt_worker_note(struct pt_worker *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->st->note, sizeof(w->st->note), fmt, ap);
    va_end(ap);
}

pt_ns pt_worker_clock(const struct pt_worker *w, pt_ns now)
{
    return w->impaired ? pt_impaired_clock(w->impaired, now) : now;
}

static void set_state(struct pt_worker *w, int state)
{
    atomic_store(&w->st->state, state);
    uint64_t one = 1;
    if (write(w->job->news, &one, sizeof(one)) < 0)
        return; /* the counter is full: it has been told often enough */
}

/* ---- flows */

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

static void stop_flow(struct pt_flow *f)
{
    struct pt_worker *w = f->w;
    if (f->rx.p.active)
        pt_recv_stop(w->loop, &f->rx);
    if (f->writable.p.active)
        pt_op_cancel(w->loop, &f->writable);
    if (f->reply.p.active)
        pt_op_cancel(w->loop, &f->reply);
}

static void probe_tcp(struct pt_flow *f)
{
    if (f->w->shape->chan == PT_CHAN_TCP && f->fd >= 0)
        f->st->tcp_valid = pt_tcp_info_read(&f->st->tcp_end, f->fd) == 0;
}

void pt_flow_end(struct pt_flow *f, int code)
{
    struct pt_worker *w = f->w;
    if (f->dead)
        return;
    if (f->dir & PT_DIR_TX)
        w->senders -= !f->finished;
    if (f->dir & PT_DIR_RX)
        w->receivers--;
    f->dead = f->finished = true;
    f->st->ended = code == 0;
    f->st->error = code;
    stop_flow(f);
    if (w->wl->on_end)
        w->wl->on_end(f, code, pt_loop_now(w->loop));
    w->outstanding -= f->outstanding;
    f->outstanding = 0;
    atomic_fetch_sub(&w->st->flows_open, 1);
}

/* The sending half is over: the receiver sees the end of the stream. */
static void finish_sending(struct pt_flow *f)
{
    if (f->finished)
        return;
    f->finished = true;
    f->w->senders--;
    if (f->writable.p.active)
        pt_op_cancel(f->w->loop, &f->writable);
    if (f->w->shape->chan != PT_CHAN_UDP && f->dir == PT_DIR_TX) {
        probe_tcp(f);
        shutdown(f->fd, SHUT_WR);
    }
}

static void on_writable(struct pt_op *op, int res, bool more)
{
    struct pt_flow *f = op->ctx;
    (void)res;
    (void)more;
    f->blocked = false;
    if (f->w->shape->both && !f->w->paced)
        pt_flow_next(f);
}

static void wait_writable(struct pt_flow *f)
{
    f->blocked = true;
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

static int send_stream(struct pt_flow *f, const uint8_t *bytes, size_t n)
{
    if (f->reply.p.active)
        return gather(f, &f->out[!f->out_at], bytes, n);
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
}

/* What a failed attempt to start operations means for the flow. */
static void failed_to_start(struct pt_flow *f, int rc)
{
    if (rc == -EAGAIN)
        wait_writable(f);
    else if (rc != -ENOBUFS && rc != -EINTR)
        pt_flow_end(f, rc);
}

void pt_flow_next(struct pt_flow *f)
{
    struct pt_worker *w = f->w;
    while (!w->finishing && !f->finished && !f->blocked && f->outstanding < w->shape->inflight) {
        if (!f->left) {
            finish_sending(f);
            return;
        }
        int rc = w->wl->on_due(f, pt_loop_touch(w->loop), 1);
        if (rc < 0) {
            failed_to_start(f, rc);
            return;
        }
        if (rc == 0)
            return;
    }
}

/* ---- phases */

static void cross(struct pt_worker *w, pt_ns now)
{
    struct pt_worker_stat *st = w->st;
    while (now >= w->boundary_ns) {
        if (w->phase == PT_PHASE_WARMUP) {
            w->phase = PT_PHASE_MEASURE;
            w->boundary_ns = w->end_ns;
            pt_usage_self(&st->usage_begin);
            w->heap_before = mallinfo2().uordblks;
            st->last_rx_ns = 0;
            for (uint32_t i = 0; i < w->flow_count; i++) {
                struct pt_flow *f = &w->flows[i];
                probe_tcp(f);
                f->st->tcp_begin = f->st->tcp_end;
            }
        } else if (w->phase == PT_PHASE_MEASURE) {
            w->phase = PT_PHASE_TAIL;
            w->boundary_ns = w->tail_ns;
            pt_usage_self(&st->usage_end);
            st->allocated = mallinfo2().uordblks - w->heap_before;
            for (uint32_t i = 0; i < w->flow_count; i++)
                if (!w->flows[i].dead)
                    probe_tcp(&w->flows[i]);
        } else {
            w->boundary_ns = PT_NS_MAX;
            w->finishing = true;
            return;
        }
        w->c = &st->c[w->phase];
        if (w->wl->on_phase)
            w->wl->on_phase(w, w->phase, now);
    }
}

/* The window closes before its time: stopped, or nothing is left to measure. */
static void close_window(struct pt_worker *w, pt_ns now)
{
    if (w->end_ns == PT_NS_MAX || now < w->end_ns) {
        if (w->phase == PT_PHASE_MEASURE || w->phase == PT_PHASE_WARMUP)
            w->st->stopped_ns = now;
        w->end_ns = now < w->end_ns ? now : w->end_ns;
        w->tail_ns = w->end_ns;
        w->measure_ns = w->measure_ns < now ? w->measure_ns : now;
        w->boundary_ns = w->phase == PT_PHASE_WARMUP ? w->measure_ns : w->end_ns;
        cross(w, now);
    }
}

/* ---- arrivals */

static void arrived(struct pt_flow *f, uint8_t *bytes, size_t n, const struct pt_recv_meta *meta,
                    pt_ns now)
{
    struct pt_worker *w = f->w;
    uint64_t packets = w->shape->chan != PT_CHAN_UDP        ? 0
                       : meta && meta->seg && meta->seg < n ? (n + meta->seg - 1) / meta->seg
                                                            : 1;
    struct pt_counters *c = w->c, *fc = &f->st->c[w->phase];
    c->rx_bytes += n;
    c->rx_packets += packets;
    c->rx_calls++;
    fc->rx_bytes += n;
    fc->rx_packets += packets;
    if (w->phase == PT_PHASE_MEASURE) {
        struct pt_worker_stat *st = w->st;
        pt_ns before = st->last_rx_ns ? st->last_rx_ns : now;
        if (now - before > st->gap_ns) {
            st->gap_ns = now - before;
            st->gap_at_ns = before;
        }
        if (!st->first_rx_ns)
            st->first_rx_ns = now;
    }
    w->st->last_rx_ns = now;
    w->wl->on_data(f, bytes, n, meta, now);
}

void pt_worker_deliver(struct pt_flow *f, uint8_t *bytes, size_t n, const struct pt_recv_meta *meta,
                       pt_ns now)
{
    if (!f->dead)
        arrived(f, bytes, n, meta, now);
}

static void on_recv(struct pt_recv *r, uint8_t *bytes, ssize_t n, const struct pt_recv_meta *meta)
{
    struct pt_flow *f = r->ctx;
    struct pt_worker *w = f->w;
    bool datagram = w->shape->chan == PT_CHAN_UDP;
    pt_ns now = pt_loop_now(w->loop);
    if (PT_LIKELY(n > 0 || (n == 0 && datagram))) {
        if (PT_UNLIKELY(now >= w->boundary_ns))
            cross(w, now);
        if (PT_UNLIKELY(w->impaired))
            pt_impaired_offer(w->impaired, f, bytes, (size_t)n, meta, now);
        else
            arrived(f, bytes, (size_t)n, meta, now);
        return;
    }
    if (n == -EAGAIN || n == -EINTR)
        return;
    if (n == 0 && w->impaired)
        pt_impaired_flush(w->impaired, f, now);
    pt_flow_end(f, (int)n);
}

static int start_receiving(struct pt_flow *f)
{
    const struct pt_shape *s = f->w->shape;
    f->rx.fd = f->fd;
    f->rx.kind = s->recv_kind;
    f->rx.batch = s->recv_batch;
    f->rx.fn = on_recv;
    f->rx.ctx = f;
    if (f->w->recv_block && s->recv_kind == PT_RECV_STREAM) {
        f->rx.into = f->w->recv_block;
        f->rx.into_size = s->recv_size;
    }
    return pt_recv_start(f->w->loop, &f->rx);
}

int pt_flow_receive_as(struct pt_flow *f, enum pt_recv_kind kind)
{
    pt_recv_stop(f->w->loop, &f->rx);
    f->rx.kind = kind;
    return pt_recv_start(f->w->loop, &f->rx);
}

/* ---- turns */

/* Operations that the schedule says are due. Returns whether more may be due at once. */
static bool drive_paced(struct pt_worker *w, pt_ns now)
{
    unsigned budget = 64;
    const struct pt_shape *s = w->shape;
    while (budget--) {
        pt_ns due = pt_pacer_next(&w->pacer);
        if (due > now) {
            now = pt_loop_touch(w->loop);
            if (due > now)
                return false;
        }
        if (due >= (s->both ? w->end_ns : w->tail_ns)) {
            w->finishing = true;
            return false;
        }
        struct pt_flow *f = NULL;
        for (uint32_t i = 0; i < w->flow_count && !f; i++) {
            struct pt_flow *g = &w->flows[w->turn++ % w->flow_count];
            if ((g->dir & PT_DIR_TX) && !g->finished && !g->blocked)
                f = g;
        }
        if (!f)
            return false; /* all wait for room: what is due stays due */
        unsigned n = s->burst > 1 ? pt_pacer_due(&w->pacer, now, s->burst) : 1;
        if (f->left != UINT64_MAX && n > f->left)
            n = (unsigned)f->left;
        int rc = n ? w->wl->on_due(f, due, n) : 0;
        if (rc > 0) {
            pt_hist_record(&w->st->hist[PT_HIST_LATE], (uint64_t)(now - due));
            for (int k = 0; k < rc; k++)
                pt_pacer_take(&w->pacer);
        } else if (rc < 0) {
            failed_to_start(f, rc);
            if (rc == -ENOBUFS)
                return false;
        }
        if (!f->left || !f->bytes_left)
            finish_sending(f);
    }
    return true;
}

/* As much as the sockets take. Returns whether any could take more. */
static bool drive_bulk(struct pt_worker *w, pt_ns now)
{
    bool more = false;
    for (uint32_t i = 0; i < w->flow_count; i++) {
        struct pt_flow *f = &w->flows[i];
        if (f->finished || f->blocked || !(f->dir & PT_DIR_TX))
            continue;
        unsigned n = w->shape->burst;
        if (f->left < n && w->phase == PT_PHASE_MEASURE)
            n = (unsigned)f->left;
        int rc = n ? w->wl->on_due(f, now, n) : 0;
        if (rc < 0)
            failed_to_start(f, rc);
        if (!f->finished && (!f->left || !f->bytes_left))
            finish_sending(f);
        more |= !f->finished && !f->blocked;
    }
    return more;
}

static void tick(struct pt_worker *w, pt_ns now)
{
    w->ticked_ns = now;
    if (w->wl->on_tick)
        for (uint32_t i = 0; i < w->flow_count; i++)
            if (!w->flows[i].dead)
                w->wl->on_tick(&w->flows[i], now);
    if (now - w->probed_ns < PROBE_NS || w->flow_count > PROBE_FLOWS || w->phase == PT_PHASE_TAIL)
        return;
    w->probed_ns = now;
    for (uint32_t i = 0; i < w->flow_count; i++)
        if (!w->flows[i].finished && !w->flows[i].dead)
            probe_tcp(&w->flows[i]);
}

static void look_at_stop(struct pt_worker *w, pt_ns now)
{
    if (w->stop_ns ||
        atomic_load_explicit(&w->job->shared->stop, memory_order_relaxed) == PT_STOP_NO)
        return;
    w->stop_ns = now;
    w->finishing = true;
    if (w->measure_ns)
        close_window(w, now);
}

static bool work_is_over(struct pt_worker *w, pt_ns now)
{
    const struct pt_shape *s = w->shape;
    if (w->stop_ns &&
        atomic_load_explicit(&w->job->shared->stop, memory_order_relaxed) == PT_STOP_NOW)
        return true;
    if (s->both) {
        if (w->job->spec.side == PT_ANSWER)
            return w->stop_ns || !w->receivers;
        if (!w->senders && !w->outstanding)
            return true;
        if (!w->finishing)
            return false;
        pt_ns since = w->stop_ns ? w->stop_ns : w->end_ns;
        pt_ns patience = w->job->spec.plan->common.timeout;
        return !w->outstanding || now - since > (patience < DRAIN_NS ? patience : DRAIN_NS);
    }
    if (w->senders)
        return false;
    if (!w->receivers)
        return true;
    if (!w->stop_ns)
        return false;
    pt_ns last = w->st->last_rx_ns > w->stop_ns ? w->st->last_rx_ns : w->stop_ns;
    return now - last > (s->chan == PT_CHAN_UDP ? QUIET_DGRAM : QUIET_STREAM) &&
           !(w->impaired && pt_impaired_next(w->impaired) != PT_NS_MAX);
}

static void end_senders(struct pt_worker *w)
{
    for (uint32_t i = 0; i < w->flow_count; i++)
        if ((w->flows[i].dir & PT_DIR_TX) && !w->flows[i].finished)
            finish_sending(&w->flows[i]);
}

static int turn_until_over(struct pt_worker *w)
{
    bool asks = w->job->spec.side == PT_ASK;
    bool drives = w->senders && (asks || !w->shape->both);
    bool waits = w->receivers || w->shape->both; /* something may arrive */
    if (drives && w->shape->both && !w->paced)
        for (uint32_t i = 0; i < w->flow_count; i++)
            pt_flow_next(&w->flows[i]);
    pt_ns now = pt_loop_touch(w->loop);
    for (;;) {
        if (now >= w->boundary_ns)
            cross(w, now);
        look_at_stop(w, now);
        bool more = false;
        if (w->finishing && drives && !w->shape->both)
            end_senders(w);
        else if (drives && !w->finishing && w->paced)
            more = drive_paced(w, now);
        else if (drives && !w->finishing && !w->shape->both)
            more = drive_bulk(w, now);
        if (w->wl->on_poll)
            more |= w->wl->on_poll(w, now) > 0;
        if (now - w->ticked_ns >= TICK_NS)
            tick(w, now);
        if (work_is_over(w, now))
            return 0;
        if (more && !waits) {
            now = pt_loop_touch(w->loop);
            continue;
        }
        pt_ns until = more ? 0 : now + WAIT_NS;
        if (!more && w->paced && !w->finishing && pt_pacer_next(&w->pacer) < until)
            until = pt_pacer_next(&w->pacer);
        if (w->impaired && pt_impaired_next(w->impaired) < until)
            until = pt_impaired_next(w->impaired);
        int rc = pt_loop_step(w->loop, until);
        if (rc < 0 && rc != -EINTR)
            return rc;
        now = rc > 0 ? pt_loop_now(w->loop) : pt_loop_touch(w->loop);
        if (w->impaired)
            pt_impaired_deliver(w->impaired, now);
    }
}

/* ---- life */

static void name_flow(struct pt_flow *f)
{
    struct pt_addr a;
    char text[PT_ADDR_TEXT];
    if (f->fd < 0)
        return;
    if (pt_addr_local(&a, f->fd) == 0)
        snprintf(f->st->local, sizeof(f->st->local), "%.63s", pt_addr_print(&a, text));
    if (pt_addr_peer(&a, f->fd) == 0)
        snprintf(f->st->remote, sizeof(f->st->remote), "%.63s", pt_addr_print(&a, text));
}

static int open_flows(struct pt_worker *w, struct pt_err *e)
{
    const struct pt_job_spec *spec = &w->job->spec;
    const struct pt_shape *s = w->shape;
    for (uint32_t id = 0; id < s->flows; id++)
        w->flow_count += pt_shape_worker(s, id, spec->workers) == w->index;
    w->flows = calloc(w->flow_count ? w->flow_count : 1, sizeof(*w->flows));
    size_t own = (w->wl->flow_size + 63) & ~(size_t)63;
    uint8_t *owns = pt_worker_alloc(w, own * w->flow_count + 64);
    if (!w->flows || !owns)
        return pt_fail(e, -ENOMEM, "worker %u: no memory for %u flows", w->index, w->flow_count);
    uint32_t at = 0;
    for (uint32_t id = 0; id < s->flows; id++) {
        if (pt_shape_worker(s, id, spec->workers) != w->index) {
            if (spec->fds && spec->fds[id] >= 0)
                close(spec->fds[id]); /* another worker's */
            continue;
        }
        struct pt_flow *f = &w->flows[at];
        *f = (struct pt_flow){.w = w, .st = &w->job->flows[id], .id = id, .index = at};
        f->own = owns + own * at++;
        f->fd = spec->fds ? spec->fds[id] : -1;
        f->dir = pt_shape_dir(s, id, spec->side);
        f->left = spec->side == PT_ASK || !s->both ? s->ops_per_flow : 0;
        if (!s->ops_per_flow || (spec->side == PT_ANSWER && s->both))
            f->left = UINT64_MAX;
        f->bytes_left = UINT64_MAX;
        f->send_flags = MSG_DONTWAIT;
        name_flow(f);
        w->senders += (f->dir & PT_DIR_TX) != 0;
        w->receivers += (f->dir & PT_DIR_RX) != 0;
    }
    atomic_store(&w->st->flows_open, w->flow_count);
    return 0;
}

/* The one bulk flow of a worker may sleep in the kernel: cheaper than waiting for room. */
static void let_block(struct pt_worker *w)
{
    struct pt_flow *f = w->flows;
    if (w->flow_count != 1 || f->dir != PT_DIR_TX || f->fd < 0 || w->paced || w->wl->on_poll)
        return;
    struct timeval tv = {.tv_usec = BLOCK_TIMEOUT / PT_US};
    if (setsockopt(f->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == 0)
        f->send_flags = 0;
}

static int set_up(struct pt_worker *w, struct pt_err *e)
{
    const struct pt_job_spec *spec = &w->job->spec;
    const struct pt_shape *s = w->shape;
    if (spec->cpu[w->index] >= 0) {
        int rc = pt_cpu_pin((unsigned)spec->cpu[w->index], e);
        if (rc < 0)
            return rc;
    }
    bool sends = spec->side == PT_ASK ? s->forward || s->both : s->flows > s->forward;
    w->paced = s->ops_per_s > 0 && sends && !(s->both && spec->side == PT_ANSWER);
    struct pt_loop_spec loop = {
        .backend = spec->backend,
        .wait = s->spin ? PT_WAIT_SPIN : PT_WAIT_BLOCK,
        .recv_size = s->recv_size,
        .ops = 2 * s->flows / spec->workers + 64,
        .spin_before_ns = w->paced || spec->impairment ? SPIN_BEFORE : 0,
    };
    int rc = open_flows(w, e);
    if (rc == 0)
        rc = pt_loop_new(&w->loop, &loop, e);
    if (rc < 0)
        return rc;
    pt_loop_touch(w->loop);
    w->own = pt_worker_alloc(w, w->wl->worker_size + 64);
    if (s->chan != PT_CHAN_UDP && s->recv_size >= 128 * 1024)
        w->recv_block = pt_worker_alloc(w, s->recv_size);
    if (!w->own)
        return pt_fail(e, -ENOMEM, "worker %u: no memory", w->index);
    if (spec->impairment) {
        rc = pt_impaired_new(&w->impaired, w, spec->impairment, e);
        if (rc < 0)
            return rc;
    }
    const struct pt_common *c = &spec->plan->common;
    w->out_size = (size_t)c->size * (c->inflight < 64 ? c->inflight + 1 : 64) + 65536;
    let_block(w);
    if (w->wl->worker_init)
        rc = w->wl->worker_init(w, e);
    for (uint32_t i = 0; rc == 0 && i < w->flow_count; i++) {
        struct pt_flow *f = &w->flows[i];
        if (w->wl->flow_init)
            rc = w->wl->flow_init(f, e);
        if (rc == 0 && (f->dir & PT_DIR_RX) && f->fd >= 0 && !w->wl->on_poll)
            rc = start_receiving(f);
        if (rc < 0 && e->code == 0)
            pt_fail(e, rc, "flow %u: %s", f->id, pt_strerror(rc));
    }
    if (rc == 0 && w->paced) {
        /* Reverse flows are numbered from 0 again, from the last worker on (pt_shape_worker). */
        bool forward = spec->side == PT_ASK;
        struct pt_pacer_spec pace = {
            .mode = spec->plan->common.arrivals == PT_ARRIVALS_POISSON ? PT_PACER_POISSON
                                                                       : PT_PACER_UNIFORM,
            .rate_ops = s->ops_per_s,
            .flows = forward ? s->forward : s->flows - s->forward,
            .seed = spec->plan->common.requests + w->index + 1,
        };
        rc = pt_pacer_init(&w->pacer, &pace, forward ? w->index : spec->workers - 1 - w->index,
                           spec->workers, e);
    }
    return rc;
}

/* Sleeps until the supervisor names the instant. False: it went away or wants no start. */
static bool wait_for_start(struct pt_worker *w)
{
    struct pollfd p = {.fd = w->job->start_pipe[0], .events = POLLIN};
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        continue;
    pt_ns start = atomic_load(&w->job->shared->start_ns);
    if (!start)
        return false;
    const struct pt_shape *s = w->shape;
    bool counted = s->bytes || s->ops_per_flow;
    w->start_ns = start;
    w->measure_ns = s->bytes ? 0 : start + s->warmup;
    w->end_ns = counted ? PT_NS_MAX : w->measure_ns + s->duration;
    w->tail_ns = counted ? PT_NS_MAX : w->end_ns + s->tail;
    w->boundary_ns = w->measure_ns;
    w->c = &w->st->c[PT_PHASE_WARMUP];
    if (w->paced)
        pt_pacer_start(&w->pacer, start);
    if (w->senders && !(w->shape->both && w->job->spec.side == PT_ANSWER)) {
        pt_clock_sleep_until(start - SPIN_BEFORE);
        while (pt_loop_touch(w->loop) < start)
            continue;
    }
    return true;
}

static void tear_down(struct pt_worker *w)
{
    if (w->wl->worker_fini && w->own)
        w->wl->worker_fini(w);
    for (uint32_t i = 0; i < w->flow_count && w->flows; i++) {
        struct pt_flow *f = &w->flows[i];
        if (w->loop)
            stop_flow(f);
        if (f->fd >= 0) {
            if (w->shape->chan == PT_CHAN_UDP)
                f->st->drops = (uint64_t)(pt_sock_drops(f->fd) > 0 ? pt_sock_drops(f->fd) : 0);
            close(f->fd);
        }
    }
    pt_impaired_free(w->impaired);
    pt_loop_free(w->loop);
    while (w->taken) {
        struct pt_taken *t = w->taken;
        w->taken = t->next;
        free(t);
    }
    free(w->flows);
}

int pt_worker_main(struct pt_job *job, unsigned index)
{
    struct pt_worker w = {.job = job,
                          .wl = job->spec.wl,
                          .shape = &job->spec.shape,
                          .st = &job->workers[index],
                          .index = index};
    struct pt_err e = {0};
    close(job->start_pipe[1]);
    int rc = set_up(&w, &e);
    if (rc == 0) {
        set_state(&w, PT_WORKER_READY);
        if (wait_for_start(&w)) {
            atomic_store(&w.st->state, PT_WORKER_RUNNING);
            w.st->begun_ns = w.start_ns;
            rc = turn_until_over(&w);
            if (rc < 0)
                pt_fail(&e, rc, "worker %u: event loop: %s", index, pt_strerror(rc));
            close_window(&w, pt_loop_touch(w.loop));
        }
    }
    tear_down(&w);
    if (rc < 0) {
        w.st->error = rc;
        snprintf(w.st->error_text, sizeof(w.st->error_text), "%.250s", e.text);
    }
    set_state(&w, rc < 0 ? PT_WORKER_FAILED : PT_WORKER_DONE);
    return rc < 0;
}
