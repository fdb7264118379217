/* job.c: see job.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/job.h"

#include "engine/worker.h"
#include "os/clock.h"
#include "os/signal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

const char *const pt_op_error_names[PT_OP_ERRORS] = {"connect",  "timeout", "reset",  "closed",
                                                     "protocol", "send",    "backlog"};

void pt_counters_add(struct pt_counters *into, const struct pt_counters *c)
{
    uint64_t *to = (uint64_t *)into;
    const uint64_t *from = (const uint64_t *)c;
    for (size_t i = 0; i < sizeof(*c) / sizeof(*to); i++)
        to[i] += from[i];
}

void pt_counters_sub(struct pt_counters *out, const struct pt_counters *after,
                     const struct pt_counters *before)
{
    uint64_t *to = (uint64_t *)out;
    const uint64_t *a = (const uint64_t *)after, *b = (const uint64_t *)before;
    for (size_t i = 0; i < sizeof(*out) / sizeof(*to); i++)
        to[i] = a[i] > b[i] ? a[i] - b[i] : 0;
}

uint64_t pt_counters_errors(const struct pt_counters *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < PT_OP_ERRORS; i++)
        sum += c->errors[i];
    return sum;
}

unsigned pt_shape_worker(const struct pt_shape *s, uint32_t flow, unsigned workers)
{
    return flow < s->forward ? flow % workers : workers - 1 - (flow - s->forward) % workers;
}

unsigned pt_shape_dir(const struct pt_shape *s, uint32_t flow, enum pt_side side)
{
    if (s->both)
        return PT_DIR_BOTH;
    return (flow < s->forward) == (side == PT_ASK) ? PT_DIR_TX : PT_DIR_RX;
}

struct start {
    struct pt_job *job;
    unsigned index;
};

static int run_worker(void *ctx)
{
    struct start *s = ctx;
    return pt_worker_main(s->job, s->index);
}

static void close_flows(struct pt_job *job)
{
    for (uint32_t i = 0; job->spec.fds && i < job->spec.shape.flows; i++)
        if (job->spec.fds[i] >= 0)
            close(job->spec.fds[i]);
    job->spec.fds = NULL;
}

static int map(struct pt_job *job, struct pt_err *e)
{
    size_t head = (sizeof(struct pt_shared) + 63) & ~(size_t)63;
    size_t workers = job->spec.workers * sizeof(struct pt_worker_stat);
    size_t flows = job->spec.shape.flows * sizeof(struct pt_flow_stat);
    int rc = pt_shm_open(&job->memory, head + workers + flows, e);
    if (rc < 0)
        return rc;
    char *base = job->memory.base;
    job->shared = (void *)base;
    job->workers = (void *)(base + head);
    job->flows = (void *)(base + head + workers);
    return 0;
}

int pt_job_start(struct pt_job *job, const struct pt_job_spec *spec, struct pt_err *e)
{
    *job = (struct pt_job){.spec = *spec, .start_pipe = {-1, -1}, .news = -1};
    int rc = map(job, e);
    if (rc == 0 && spec->wl->open)
        rc = spec->wl->open(&job->spec, e);
    if (rc == 0 && pipe2(job->start_pipe, O_CLOEXEC) < 0)
        rc = pt_fail(e, -errno, "pipe: %s", pt_strerror(errno));
    if (rc == 0 && (job->news = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
        rc = pt_fail(e, -errno, "eventfd: %s", pt_strerror(errno));
    for (unsigned i = 0; rc == 0 && i < spec->workers; i++) {
        struct start s = {job, i};
        rc = pt_child_start(&job->child[i], run_worker, &s, e);
    }
    close_flows(job);
    if (rc < 0)
        pt_job_close(job);
    else {
        close(job->start_pipe[0]);
        job->start_pipe[0] = -1;
    }
    return rc;
}

static void drain_news(struct pt_job *job)
{
    uint64_t n;
    if (read(job->news, &n, sizeof(n)) < 0)
        return; /* nothing new */
}

static int failure(const struct pt_job *job, struct pt_err *e)
{
    for (unsigned i = 0; i < job->spec.workers; i++)
        if (atomic_load(&job->workers[i].state) == PT_WORKER_FAILED)
            return pt_fail(e, job->workers[i].error, "%s", job->workers[i].error_text);
    return 0;
}

/* A worker that ended without a last word was killed. */
static int killed(struct pt_job *job, struct pt_err *e)
{
    for (unsigned i = 0; i < job->spec.workers; i++) {
        struct pt_exit x;
        int state = atomic_load(&job->workers[i].state);
        if (state == PT_WORKER_DONE || state == PT_WORKER_FAILED || !job->child[i].pid)
            continue;
        if (pt_child_wait(&job->child[i], 0, &x) == 0) {
            state = atomic_load(&job->workers[i].state);
            if (state == PT_WORKER_DONE || state == PT_WORKER_FAILED)
                continue;
            job->workers[i].error = -ECHILD;
            atomic_store(&job->workers[i].state, PT_WORKER_FAILED);
            snprintf(job->workers[i].error_text, sizeof(job->workers[i].error_text),
                     "worker %u was killed by signal %d", i, x.signal);
            return pt_fail(e, -ECHILD, "%s", job->workers[i].error_text);
        }
    }
    return 0;
}

int pt_job_wait_ready(struct pt_job *job, pt_ns deadline, struct pt_err *e)
{
    for (;;) {
        drain_news(job);
        unsigned ready = 0;
        for (unsigned i = 0; i < job->spec.workers; i++)
            ready += atomic_load(&job->workers[i].state) >= PT_WORKER_READY;
        int rc = failure(job, e);
        if (rc < 0 || ready == job->spec.workers)
            return rc;
        rc = killed(job, e);
        if (rc < 0)
            return rc;
        pt_ns now = pt_clock_now();
        if (now >= deadline)
            return pt_fail(e, -ETIMEDOUT, "%u of %u workers were not ready in time",
                           job->spec.workers - ready, job->spec.workers);
        struct pollfd p = {.fd = job->news, .events = POLLIN};
        if ((poll(&p, 1, 50) < 0 && errno != EINTR) || pt_signal_seen())
            return pt_fail(e, -EINTR, "interrupted");
    }
}

void pt_job_release(struct pt_job *job, pt_ns start_ns)
{
    atomic_store(&job->shared->start_ns, start_ns);
    close(job->start_pipe[1]);
    job->start_pipe[1] = -1;
}

void pt_job_stop(struct pt_job *job, enum pt_stop how)
{
    if (job->shared && (int)how > atomic_load(&job->shared->stop))
        atomic_store(&job->shared->stop, how);
}

bool pt_job_done(struct pt_job *job)
{
    drain_news(job);
    (void)killed(job, NULL);
    for (unsigned i = 0; i < job->spec.workers; i++)
        if (atomic_load(&job->workers[i].state) < PT_WORKER_DONE)
            return false;
    return true;
}

uint32_t pt_job_senders(const struct pt_job *job)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < job->spec.workers; i++)
        if (atomic_load(&job->workers[i].state) < PT_WORKER_DONE)
            n += atomic_load(&job->workers[i].senders);
    return n;
}

bool pt_job_is_broken(struct pt_job *job)
{
    return killed(job, NULL) < 0 || failure(job, NULL) < 0;
}

bool pt_job_is_stuck(struct pt_job *job, pt_ns now, pt_ns patience)
{
    uint64_t moved = 0;
    for (unsigned i = 0; i < job->spec.workers; i++)
        for (unsigned p = 0; p < PT_PHASES; p++)
            moved += job->workers[i].c[p].tx_calls + job->workers[i].c[p].rx_calls;
    if (moved != job->moved || !job->moved_ns) {
        job->moved = moved;
        job->moved_ns = now;
    }
    return now - job->moved_ns > patience;
}

int pt_job_finish(struct pt_job *job, pt_ns deadline, struct pt_err *e)
{
    if (job->start_pipe[1] >= 0) {
        close(job->start_pipe[1]); /* never released: they go home */
        job->start_pipe[1] = -1;
    }
    for (unsigned i = 0; i < job->spec.workers; i++) {
        if (!job->child[i].pid)
            continue;
        int rc;
        while ((rc = pt_child_wait(&job->child[i], deadline, NULL)) == -EINTR)
            continue;
        if (rc < 0)
            pt_child_end(&job->child[i], 0, NULL);
        if (atomic_load(&job->workers[i].state) < PT_WORKER_DONE) {
            job->workers[i].error = -ETIMEDOUT;
            snprintf(job->workers[i].error_text, sizeof(job->workers[i].error_text),
                     "worker %u did not end in time", i);
            atomic_store(&job->workers[i].state, PT_WORKER_FAILED);
        }
    }
    return failure(job, e);
}

void pt_job_close(struct pt_job *job)
{
    for (unsigned i = 0; i < job->spec.workers; i++)
        if (job->child[i].pid)
            pt_child_end(&job->child[i], 0, NULL);
    for (int i = 0; i < 2; i++)
        if (job->start_pipe[i] >= 0)
            close(job->start_pipe[i]);
    if (job->news >= 0)
        close(job->news);
    if (job->spec.path)
        job->spec.wl->close(&job->spec);
    pt_shm_close(&job->memory);
    *job = (struct pt_job){.start_pipe = {-1, -1}, .news = -1};
}

void pt_job_counters(const struct pt_job *job, enum pt_phase phase, struct pt_counters *out)
{
    *out = (struct pt_counters){0};
    for (unsigned i = 0; i < job->spec.workers; i++)
        pt_counters_add(out, &job->workers[i].c[phase]);
}

void pt_job_hist(const struct pt_job *job, unsigned which, struct pt_hist *into)
{
    for (unsigned i = 0; i < job->spec.workers; i++)
        pt_hist_merge(into, &job->workers[i].hist[which]);
}

void pt_job_usage(const struct pt_job *job, struct pt_usage *out)
{
    *out = (struct pt_usage){0};
    for (unsigned i = 0; i < job->spec.workers; i++) {
        struct pt_usage d;
        const struct pt_usage *end = &job->workers[i].usage_end;
        if (!end->user_ns && !end->system_ns)
            continue; /* it did not come to the end of its window */
        pt_usage_sub(&d, end, &job->workers[i].usage_begin);
        out->user_ns += d.user_ns;
        out->system_ns += d.system_ns;
        out->voluntary_switches += d.voluntary_switches;
        out->involuntary_switches += d.involuntary_switches;
        if (d.max_rss_bytes > out->max_rss_bytes)
            out->max_rss_bytes = d.max_rss_bytes;
    }
}
