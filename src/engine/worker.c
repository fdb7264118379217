/* worker.c: the life of a worker process: set up, wait for the start, work (turn.c), tear down.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/worker_private.h"

#include "engine/channel.h"
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
#include <sys/prctl.h>
#include <unistd.h>

#define BLOCK_TIMEOUT (50 * PT_MS)
#define RECV_PIECE    ((size_t)32 << 10) /* of bytes nobody reads: stays in the CPU's cache */
#define LATE_BEGIN    (50 * PT_MS)

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

void pt_worker_join(struct pt_worker *w, bool beside)
{
    const struct pt_job_spec *spec = &w->job->spec;
    int cpu = beside ? spec->beside : spec->cpu[w->index];
    struct pt_err ignored = {0};
    if (cpu >= 0 && pt_cpu_pin((unsigned)cpu, &ignored) == 0)
        w->gives_way = beside;
}

pt_ns pt_worker_clock(const struct pt_worker *w, pt_ns now)
{
    return w->impaired ? pt_impaired_clock(w->impaired, now) : now;
}

void pt_worker_granted(struct pt_worker *w, int fd)
{
    if (!w->st->granted.rcvbuf)
        pt_channel_granted(&w->st->granted, fd, &w->job->spec.plan->common, w->shape,
                           w->receivers > 0);
}

static void set_state(struct pt_worker *w, int state)
{
    atomic_store(&w->st->state, state);
    uint64_t one = 1;
    if (write(w->job->news, &one, sizeof(one)) < 0)
        return; /* the counter is full: it has been told often enough */
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
        int rc = f->fd >= 0 ? pt_channel_equip(f->fd, &spec->plan->common, s, spec->side, e) : 0;
        if (rc < 0)
            return rc;
        w->senders += (f->dir & PT_DIR_TX) != 0;
        w->receivers += (f->dir & PT_DIR_RX) != 0;
    }
    atomic_store(&w->st->flows_open, w->flow_count);
    atomic_store(&w->st->senders, w->senders);
    return 0;
}

/* The one bulk flow of a worker may sleep in the kernel: cheaper than waiting for room. */
static void let_block(struct pt_worker *w)
{
    struct pt_flow *f = w->flows;
    if (w->flow_count != 1 || f->dir != PT_DIR_TX || f->fd < 0 || w->paced || w->shape->polls)
        return;
    struct timeval tv = {.tv_usec = BLOCK_TIMEOUT / PT_US};
    if (setsockopt(f->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == 0)
        f->send_flags = 0;
}

/* A receiver that each packet wakes costs its sender several times what the packet costs. So where
 * datagrams stream one way the receiver is not woken: it looks, and sleeps a little when there is
 * nothing, as an interface with interrupt moderation does (turn.c). */
static void moderate(struct pt_worker *w)
{
    const struct pt_shape *s = w->shape;
    w->moderated = w->receivers && !w->senders && !s->both && !s->spin && !s->polls &&
                   s->chan == PT_CHAN_UDP && s->moderate && !w->job->spec.impairment;
    if (w->moderated)
        prctl(PR_SET_TIMERSLACK, 1);
}

/* Whether the loop need not sleep: asked for; a moderated receiver sleeps by itself; and operations
 * due so close to each other that the loop would never sleep between them. */
static bool polls_anyway(const struct pt_worker *w)
{
    const struct pt_shape *s = w->shape;
    double gap_s = w->paced ? w->job->spec.workers / s->ops_per_s : 1;
    return s->spin || (w->moderated && w->flow_count <= 8) ||
           (s->both && gap_s * 1e9 < 2 * (double)PT_SPIN_BEFORE);
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
    int rc = open_flows(w, e);
    if (rc < 0)
        return rc;
    w->gives_way = spec->paired;
    moderate(w);
    struct pt_loop_spec loop = {
        .backend = spec->backend,
        .wait = polls_anyway(w) ? PT_WAIT_SPIN : PT_WAIT_BLOCK,
        .recv_size = s->recv_size,
        .ops = 2 * s->flows / spec->workers + 64,
        .spin_before_ns = w->paced || spec->impairment ? PT_SPIN_BEFORE : 0,
    };
    rc = pt_loop_new(&w->loop, &loop, e);
    if (rc < 0)
        return rc;
    pt_loop_touch(w->loop);
    w->own = pt_worker_alloc(w, w->wl->worker_size + 64);
    if (s->chan != PT_CHAN_UDP && s->recv_size >= 128 * 1024) {
        w->recv_piece = s->unread && !spec->impairment ? RECV_PIECE : 0;
        w->recv_block = pt_worker_alloc(w, w->recv_piece ? w->recv_piece : s->recv_size);
    }
    if (!w->own)
        return pt_fail(e, -ENOMEM, "worker %u: no memory", w->index);
    if (spec->impairment) {
        rc = pt_impaired_new(&w->impaired, w, spec->impairment, e);
        if (rc < 0)
            return rc;
    }
    const struct pt_common *c = &spec->plan->common;
    /* Requests may be this many; answers wait up to PT_OUT_HELD and what one receive adds. */
    w->out_size = (size_t)c->size * (c->inflight < 64 ? c->inflight + 1 : 64) + PT_OUT_HELD +
                  s->recv_size + 65536;
    let_block(w);
    if (w->wl->worker_init)
        rc = w->wl->worker_init(w, e);
    for (uint32_t i = 0; rc == 0 && i < w->flow_count; i++) {
        struct pt_flow *f = &w->flows[i];
        if (w->wl->flow_init)
            rc = w->wl->flow_init(f, e);
        if (rc == 0 && (f->dir & PT_DIR_RX) && f->fd >= 0 && !s->polls)
            rc = pt_flow_start_receiving(f);
        if (rc < 0 && e->code == 0)
            pt_fail(e, rc, "flow %u: %s", f->id, pt_strerror(rc));
    }
    if (rc == 0 && w->flow_count && w->flows[0].fd >= 0)
        pt_worker_granted(w, w->flows[0].fd);
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
    /* Every arrival of a counted transfer counts, and the first may come before the instant at
     * which this end believes that the other begins. */
    bool at_once = s->bytes || (s->ops_per_flow && !s->warmup && !w->senders);
    w->measure_ns = at_once ? 0 : start + s->warmup;
    w->end_ns = counted ? PT_NS_MAX : w->measure_ns + s->duration;
    /* Round trips that are due at the very end may still begin a little late. */
    pt_ns tail = w->paced && s->both ? LATE_BEGIN : s->tail;
    w->tail_ns = counted ? PT_NS_MAX : w->end_ns + tail;
    w->boundary_ns = w->measure_ns;
    w->c = &w->st->c[PT_PHASE_WARMUP];
    if (w->paced)
        pt_pacer_start(&w->pacer, start);
    if (w->senders && !(w->shape->both && w->job->spec.side == PT_ANSWER)) {
        pt_clock_sleep_until(start - PT_SPIN_BEFORE);
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
            pt_flow_stop(f);
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

/* An open loop that was stopped owes the operations that were due and never begun. */
static void count_never_started(struct pt_worker *w)
{
    if (!w->paced || !w->shape->both || w->shape->ops_per_flow)
        return;
    uint64_t owed = pt_pacer_due(&w->pacer, w->end_ns - 1, UINT32_MAX);
    w->st->c[PT_PHASE_MEASURE].ops += owed;
    w->st->c[PT_PHASE_MEASURE].errors[PT_OP_BACKLOG] += owed;
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
            rc = pt_worker_turn(&w);
            count_never_started(&w);
            if (rc < 0)
                pt_fail(&e, rc, "worker %u: event loop: %s", index, pt_strerror(rc));
            pt_worker_close_window(&w, pt_loop_touch(w.loop));
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
