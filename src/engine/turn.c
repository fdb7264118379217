/* turn.c: the turns of a worker: phases, what is due, what arrives, when it is over.
 *
 * One turn: move to the phase that the clock says, look at the stop word, start what is due, then
 * let the loop wait for the next thing. Nothing here knows what an operation is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/worker_private.h"

#include "engine/impaired.h"
#include "net/udp.h"
#include "os/clock.h"

#include <malloc.h>
#include <sched.h>

#define TICK_NS     (10 * PT_MS)
#define PROBE_NS    (100 * PT_MS) /* TCP_INFO */
#define PROBE_FLOWS 256
#define WAIT_NS     (55 * PT_MS) /* the stop word is looked at at least so often */
#define QUIET_DGRAM (100 * PT_MS)
#define DRAIN_NS    PT_S
/* Streams whose end is told elsewhere have ended when so long nothing comes. */
#define LINGER_NS (50 * PT_MS)
/* Between two looks of a moderated receiver: some dozen packets of a flow at the rates a stack
 * carries, a small part of what its buffer holds. */
#define MODERATE_NS      (200 * PT_US)
#define MODERATE_IDLE_NS (10 * PT_MS)

/* ---- phases */

/* How long waking up takes is measured in the warm-up, from the kernel's receive timestamps, so
 * that the figures do not pay for it. io_uring's recvmsg(2) is not used for streams: there it is
 * left out. */
static bool times_wakeups(const struct pt_worker *w)
{
    const struct pt_job_spec *s = &w->job->spec;
    return w->shape->wakeups && s->side == PT_ASK && w->shape->warmup > 0 &&
           (s->backend == PT_BACKEND_EPOLL || w->shape->chan == PT_CHAN_UDP);
}

static void cross(struct pt_worker *w, pt_ns now)
{
    struct pt_worker_stat *st = w->st;
    while (now >= w->boundary_ns) {
        if (w->phase == PT_PHASE_WARMUP) {
            w->phase = PT_PHASE_MEASURE;
            st->window_ns = now;
            /* What the warm-up still owes is not carried into the window. */
            while (w->paced && pt_pacer_next(&w->pacer) < w->measure_ns)
                pt_pacer_take(&w->pacer);
            w->boundary_ns = w->end_ns;
            pt_usage_self(&st->usage_begin);
            w->heap_before = mallinfo2().uordblks;
            st->last_rx_ns = now > w->start_ns ? now : w->start_ns; /* silence counts from here */
            w->settle = times_wakeups(w);
            for (uint32_t i = 0; i < w->flow_count; i++) {
                struct pt_flow *f = &w->flows[i];
                pt_flow_probe(f);
                f->st->tcp_begin = f->st->tcp_end;
            }
        } else if (w->phase == PT_PHASE_MEASURE) {
            w->phase = PT_PHASE_TAIL;
            if (w->receivers && !w->shape->bytes && !w->shape->ops_per_flow)
                pt_worker_silent(st, w->end_ns < now ? w->end_ns : now);
            w->boundary_ns = w->tail_ns;
            pt_usage_self(&st->usage_end);
            st->allocated = mallinfo2().uordblks - w->heap_before;
            for (uint32_t i = 0; i < w->flow_count; i++)
                if (!w->flows[i].dead)
                    pt_flow_probe(&w->flows[i]);
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
void pt_worker_close_window(struct pt_worker *w, pt_ns now)
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
    /* First the workload: an answer does not wait for our book-keeping. */
    struct pt_counters *c = w->c, *fc = &f->st->c[w->phase];
    w->wl->on_data(f, bytes, n, meta, now);
    c->rx_bytes += n;
    c->rx_packets += packets;
    c->rx_calls++;
    fc->rx_bytes += n;
    fc->rx_packets += packets;
    pt_worker_heard(w, now);
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
        if (meta && meta->kernel_ns && w->phase == PT_PHASE_WARMUP && !w->impaired) {
            pt_ns woke = pt_clock_realtime() - meta->kernel_ns;
            pt_hist_record(&w->st->hist[PT_HIST_WAKEUP], (uint64_t)(woke > 0 ? woke : 0));
        }
        if (PT_UNLIKELY(w->impaired))
            pt_impaired_offer(w->impaired, f, bytes, (size_t)n, meta, now);
        else
            arrived(f, bytes, (size_t)n, meta, now);
        return;
    }
    if (n == -EAGAIN || n == -EINTR || pt_flow_passing(f, (int)n))
        return;
    if (n == 0 && w->impaired && pt_impaired_end(w->impaired, f))
        return;
    pt_flow_end(f, (int)n);
}

int pt_flow_start_receiving(struct pt_flow *f)
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
        f->rx.into_piece = f->w->recv_piece;
    }
    bool impaired = f->w->job->spec.impairment && s->chan == PT_CHAN_UDP;
    if ((impaired || times_wakeups(f->w)) && pt_udp_stamp_rx(f->fd, true) == 0)
        f->rx.kind = PT_RECV_DGRAM_META;
    return pt_recv_start(f->w->loop, &f->rx);
}

static void stop_timing_wakeups(struct pt_worker *w)
{
    for (uint32_t i = 0; i < w->flow_count; i++) {
        struct pt_flow *f = &w->flows[i];
        if (f->dead || !f->rx.p.active || f->rx.kind == w->shape->recv_kind)
            continue;
        int rc = pt_udp_stamp_rx(f->fd, false);
        pt_recv_pause(w->loop, &f->rx);
        f->rx.kind = w->shape->recv_kind;
        if (rc == 0)
            rc = pt_recv_resume(w->loop, &f->rx);
        if (rc < 0)
            pt_flow_end(f, rc);
    }
}

/* ---- turns */

/* Operations that the schedule says are due. Returns whether more may be due at once. */
static bool drive_paced(struct pt_worker *w)
{
    unsigned budget = 64;
    const struct pt_shape *s = w->shape;
    while (budget--) {
        pt_ns due = pt_pacer_next(&w->pacer), now = pt_loop_touch(w->loop);
        if (due > now)
            return false;
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
            if (PT_UNLIKELY(!f->st->first_tx_ns))
                f->st->first_tx_ns = now;
            pt_hist_record(&w->st->hist[PT_HIST_LATE], (uint64_t)(now - due));
            for (int k = 0; k < rc; k++)
                pt_pacer_take(&w->pacer);
        } else if (rc < 0) {
            pt_flow_stuck(f, rc);
            if (rc == -ENOBUFS)
                return false;
            if (pt_flow_passing(f, rc)) /* its time has passed unused */
                pt_pacer_take(&w->pacer);
        }
        if (!f->left || !f->bytes_left)
            pt_flow_finish(f);
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
        /* The first round is one operation each, so that all flows start together. */
        bool first = !f->st->first_tx_ns;
        unsigned n = first ? 1 : w->shape->burst;
        if (f->left < n && w->phase == PT_PHASE_MEASURE)
            n = (unsigned)f->left;
        if (PT_UNLIKELY(first))
            f->st->first_tx_ns = pt_loop_touch(w->loop);
        int rc = n ? w->wl->on_due(f, now, n) : 0;
        if (rc < 0)
            pt_flow_stuck(f, rc);
        if (!f->finished && (!f->left || !f->bytes_left))
            pt_flow_finish(f);
        more |= !f->finished && !f->blocked;
        /* The receiver shares this CPU: let it read while the block is still in the cache. */
        if (w->gives_way && w->shape->chan != PT_CHAN_UDP && !first)
            sched_yield();
    }
    return more;
}

static void tick(struct pt_worker *w, pt_ns now)
{
    w->ticked_ns = now;
    for (uint32_t i = 0; i < w->flow_count; i++)
        if (w->flows[i].paused && !w->flows[i].dead)
            pt_flow_resume(&w->flows[i]);
    if (w->wl->on_tick)
        for (uint32_t i = 0; i < w->flow_count; i++)
            if (!w->flows[i].dead)
                w->wl->on_tick(&w->flows[i], now);
    if (now - w->probed_ns < PROBE_NS || w->flow_count > PROBE_FLOWS || w->phase == PT_PHASE_TAIL)
        return;
    w->probed_ns = now;
    for (uint32_t i = 0; i < w->flow_count; i++)
        if (!w->flows[i].finished && !w->flows[i].dead)
            pt_flow_probe(&w->flows[i]);
}

static void look_at_stop(struct pt_worker *w, pt_ns now)
{
    if (w->stop_ns ||
        atomic_load_explicit(&w->job->shared->stop, memory_order_relaxed) == PT_STOP_NO)
        return;
    w->stop_ns = now;
    w->finishing = true;
    /* A counted transfer ends with its last arrival, not with its last departure. */
    bool rest_to_come = w->shape->ops_per_flow && !w->shape->both && !w->senders;
    if (w->measure_ns && !rest_to_come)
        pt_worker_close_window(w, now);
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
    if (w->impaired && pt_impaired_next(w->impaired) != PT_NS_MAX)
        return false;
    pt_ns last = w->st->last_rx_ns > w->stop_ns ? w->st->last_rx_ns : w->stop_ns;
    if (s->chan == PT_CHAN_UDP) /* the window's last ones are under way */
        return now - last > QUIET_DGRAM || now - w->stop_ns > w->job->spec.plan->common.timeout;
    if (s->lingers)
        return now - last > LINGER_NS || now - w->stop_ns > DRAIN_NS;
    /* A counted transfer is there when its last byte is; else what comes is no longer measured. */
    return s->bytes ? now - last > w->job->spec.plan->common.timeout : now - w->stop_ns > DRAIN_NS;
}

static void end_senders(struct pt_worker *w)
{
    for (uint32_t i = 0; i < w->flow_count; i++)
        if ((w->flows[i].dir & PT_DIR_TX) && !w->flows[i].finished)
            pt_flow_finish(&w->flows[i]);
}

/* Takes what has arrived; when nothing has, sleeps a little. Returns what pt_loop_step does. */
static int look_and_sleep(struct pt_worker *w)
{
    int rc = pt_loop_step(w->loop, 0);
    if (rc != 0)
        return rc;
    pt_ns now = pt_loop_touch(w->loop);
    bool idle = now - w->st->last_rx_ns > MODERATE_IDLE_NS;
    (void)pt_clock_wait_until(now + (idle ? 10 * MODERATE_NS : MODERATE_NS));
    return 0;
}

int pt_worker_turn(struct pt_worker *w)
{
    bool asks = w->job->spec.side == PT_ASK;
    bool drives = w->senders && (asks || !w->shape->both);
    bool waits = w->receivers || w->shape->both; /* something may arrive */
    bool polls = w->receivers && w->shape->polls;
    if (drives && w->shape->both && !w->paced)
        for (uint32_t i = 0; i < w->flow_count; i++)
            pt_flow_next(&w->flows[i]);
    pt_ns now = pt_loop_touch(w->loop);
    for (;;) {
        if (now >= w->boundary_ns)
            cross(w, now);
        if (w->settle) {
            w->settle = false;
            stop_timing_wakeups(w);
        }
        look_at_stop(w, now);
        bool more = false;
        if (w->finishing && drives && !w->shape->both)
            end_senders(w);
        else if (drives && !w->finishing && w->paced)
            more = drive_paced(w);
        else if (drives && !w->finishing && !w->shape->both)
            more = drive_bulk(w, now);
        if (polls)
            w->wl->on_poll(w, now);
        if (now - w->ticked_ns >= TICK_NS)
            tick(w, now);
        if (work_is_over(w, now))
            return 0;
        if (polls || (more && !waits && !w->blocked)) {
            now = pt_loop_touch(w->loop);
            continue;
        }
        /* Nothing can be sent before a socket has room again, however long it has been due. */
        bool stuck = w->blocked && w->blocked >= w->senders;
        pt_ns until = more ? 0 : now + (stuck ? TICK_NS : WAIT_NS);
        if (!more && w->paced && !w->finishing && !stuck && pt_pacer_next(&w->pacer) < until)
            until = pt_pacer_next(&w->pacer);
        if (w->impaired && pt_impaired_next(w->impaired) < until)
            until = pt_impaired_next(w->impaired);
        int rc = w->moderated ? look_and_sleep(w) : pt_loop_step(w->loop, until);
        if (rc < 0 && rc != -EINTR)
            return rc;
        now = rc > 0 ? pt_loop_now(w->loop) : pt_loop_touch(w->loop);
        if (w->impaired)
            pt_impaired_deliver(w->impaired, now);
    }
}
