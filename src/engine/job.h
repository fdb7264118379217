/* job.h: one end of one test: shared memory, worker processes, and their life.
 *
 * The client's run and the server's session both drive one: make it, start it (forks; every worker
 * builds its flows), release it at an instant, watch it, stop it, read it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_JOB_H
#define PT_ENGINE_JOB_H

#include "engine/workload.h"
#include "net/addr.h"
#include "os/proc.h"
#include "os/shm.h"

#define PT_WORKERS_MAX 256
#define PT_FLOWS_MAX   65536

struct pt_impairment;
struct pt_tuple_plan;

struct pt_job_spec {
    enum pt_side side;
    const struct pt_workload *wl;
    const struct pt_plan *plan;
    struct pt_shape shape;
    unsigned workers;
    int cpu[PT_WORKERS_MAX];    /* -1: not pinned */
    bool same_machine;          /* both ends run under one kernel */
    int beside;                 /* the peer's CPU, where a shape that `joins` may move; -1 */
    bool paired;                /* the peer's worker shares our CPU: give way to it */
    enum pt_backend backend;    /* never AUTO here */
    int *fds;                   /* shape.flows descriptors by flow id; taken over; NULL: none */
    int listener;               /* shape.answer_listens: the answering side's; -1 */
    struct pt_addr listener_at; /* asking: where that listens; answering: who may connect */
    const struct pt_tuple_plan *sources; /* asking: of connections that workers make; NULL: any */
    const struct pt_impairment *impairment; /* `pitot truth`; NULL */
    void *path; /* what the workload's `open` made, inherited by the workers */
};

struct pt_job {
    struct pt_job_spec spec;
    struct pt_shm memory;
    struct pt_shared *shared;
    struct pt_worker_stat *workers; /* spec.workers */
    struct pt_flow_stat *flows;     /* spec.shape.flows */
    struct pt_child child[PT_WORKERS_MAX];
    int start_pipe[2]; /* the parent's closing of [1] says: start_ns is set */
    int news;          /* eventfd: a worker changed its state */
    uint64_t moved; /* pt_job_is_stuck: calls that moved bytes, and when their number last grew */
    pt_ns moved_ns;
};

/* Takes the descriptors over, also on failure. */
int pt_job_start(struct pt_job *job, const struct pt_job_spec *spec, struct pt_err *e) PT_MUST_USE;
/* 0 when all workers are ready; -ETIMEDOUT; or the first worker's failure. `fd` may be polled too.
 */
int pt_job_wait_ready(struct pt_job *job, pt_ns deadline, struct pt_err *e) PT_MUST_USE;
void pt_job_release(struct pt_job *job, pt_ns start_ns);
void pt_job_stop(struct pt_job *job, enum pt_stop how);
/* Whether every worker has ended its work. Clears `news`. */
bool pt_job_done(struct pt_job *job);
/* One-way flows of this side that have not sent all yet. */
uint32_t pt_job_senders(const struct pt_job *job);
/* Whether a worker has failed or was killed: what is left of the test is not the test. */
bool pt_job_is_broken(struct pt_job *job);
/* Whether nothing has moved for so long, in any flow. To be asked again and again. */
bool pt_job_is_stuck(struct pt_job *job, pt_ns now, pt_ns patience);
/* Waits for all to end until `deadline`, then kills. 0, or what the first broken worker said. */
int pt_job_finish(struct pt_job *job, pt_ns deadline, struct pt_err *e) PT_MUST_USE;
void pt_job_close(struct pt_job *job);

/* Sums over workers, now. */
void pt_job_counters(const struct pt_job *job, enum pt_phase phase, struct pt_counters *out);
void pt_job_hist(const struct pt_job *job, unsigned which, struct pt_hist *into);
/* CPU time of the workers that have ended. */
void pt_job_usage(const struct pt_job *job, struct pt_usage *out);

/* Which worker a flow lives on, and whether this side sends or receives on it. */
unsigned pt_shape_worker(const struct pt_shape *s, uint32_t flow, unsigned workers);
unsigned pt_shape_dir(const struct pt_shape *s, uint32_t flow, enum pt_side side);

#endif
