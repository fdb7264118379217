/* pacer.h: when operations are due.
 *
 * Pure: time is a parameter, nothing here reads a clock or sleeps. An operation that the caller was
 * too busy to start stays due at its original instant, so latency counted from there has no
 * coordinated omission; a stall of 100 ms at 1,000/s leaves 100 operations due at once.
 *
 * The schedule is one for the whole test: operation k is due k / rate after the start and belongs
 * to flow k mod flows, which lives on worker (flow mod workers). Each worker walks its own part of
 * that one schedule, so the parts add up to it exactly for any rate, number of flows and of
 * workers, and every flow gets exactly its share. A uniform schedule is integer arithmetic:
 * operation k is due at floor(k * period) with an exact rational period, so there is no drift
 * however long it runs.
 *
 * A rate is a double in operations per second. The simplest fraction that rounds to the same double
 * is meant by it: 1.0/3 is one operation every 3 s, 33.3 is 333 in 10 s. Denominators end at 2^36
 * s; what that leaves out is below one operation in 2,000 years.
 *
 * Poisson: each worker is an independent Poisson process at its flows' share of the rate, which
 * together are a Poisson process at the whole rate; its flows take turns.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_PACER_H
#define PT_ENGINE_PACER_H

#include "base/err.h"
#include "base/rng.h"
#include "base/types.h"

#define PT_PACER_RATE_MIN  1e-6
#define PT_PACER_RATE_MAX  1e10
#define PT_PACER_FLOWS_MAX (1u << 20)

enum pt_pacer_mode {
    PT_PACER_CLOSED,  /* no schedule: an operation follows a reply; nothing is ever due here */
    PT_PACER_UNIFORM, /* evenly spaced */
    PT_PACER_POISSON, /* exponential gaps */
};

struct pt_pacer_step {
    double rate_ops;   /* operations per second of the whole test */
    pt_ns duration_ns; /* > 0; in the last step 0 means without end */
};

struct pt_pacer_spec {
    enum pt_pacer_mode mode;
    double rate_ops; /* operations per second of the whole test; unused when there are steps */
    /* Steps follow each other without losing phase: an operation that is three quarters due at the
     * end of a step needs one quarter of the next step's period. After the last one nothing is due.
     * Borrowed, must outlive the pacer. */
    const struct pt_pacer_step *steps;
    unsigned step_count;
    unsigned flows; /* of the whole test; 0 means one per worker */
    uint64_t seed;  /* Poisson only */
};

/* A rate as a fraction in lowest terms: `ops` operations every `per_s` seconds; ops 0 is "never
 * again". */
struct pt_pacer_rate {
    uint64_t ops;
    uint64_t per_s;
};

/* A distance between two operations of this worker: `ns` + `rest` / rate.ops nanoseconds. */
struct pt_pacer_stride {
    pt_ns ns;
    uint64_t rest;
};

/* Caller's storage, no pointers to free. Fields are private, but for reading `taken`. */
struct pt_pacer {
    enum pt_pacer_mode mode;
    unsigned worker, workers, flows;
    unsigned flow;      /* whose operation comes next */
    uint64_t taken;     /* operations consumed */
    pt_ns next;         /* due instant of the next one, rounded down */
    uint64_t next_rest; /* uniform: the part rounded off, in 1 / rate.ops ns */
    double next_part;   /* Poisson: the part rounded off, in ns */
    pt_ns last;         /* due instant of the latest one taken */
    struct pt_pacer_rate rate;
    struct pt_pacer_stride near, wrap; /* to the worker's next flow; from its last to its first */
    double mean_ns;                    /* Poisson: mean gap of this worker */
    pt_ns change_at;                   /* PT_NS_MAX: no change of rate is pending */
    struct pt_pacer_rate change_to;
    const struct pt_pacer_step *steps;
    unsigned step, step_count; /* `step` is the next one to begin */
    struct pt_rng rng;
};

/* Worker `worker` of `workers`, counted from 0. -EINVAL when a rate, a duration or a number is out
 * of range. Nothing is due before pt_pacer_start. */
int pt_pacer_init(struct pt_pacer *p, const struct pt_pacer_spec *spec, unsigned worker,
                  unsigned workers, struct pt_err *e) PT_MUST_USE;

/* The schedule begins at `now` >= 0, the same instant in every worker. Uniform: operation 0 is due
 * then. Once per init. */
void pt_pacer_start(struct pt_pacer *p, pt_ns now);

/* The instant the next operation of this worker is due; PT_NS_MAX when there is none (closed mode,
 * not started, steps over, no flow on this worker, or more than 292 years ahead). */
static inline pt_ns pt_pacer_next(const struct pt_pacer *p)
{
    return p->next;
}

/* The flow, counted over the whole test, that the next operation belongs to. */
static inline unsigned pt_pacer_flow(const struct pt_pacer *p)
{
    return p->flow;
}

/* Consumes the next operation and returns the instant it was due; PT_NS_MAX when there is none. */
pt_ns pt_pacer_take(struct pt_pacer *p);

/* How many operations are due at `now`, at most `max`. Consumes nothing. */
unsigned pt_pacer_due(const struct pt_pacer *p, pt_ns now, unsigned max);

/* Consumes all that are due at `now`, at most `max`, and writes their due instants, in order. */
unsigned pt_pacer_take_due(struct pt_pacer *p, pt_ns now, pt_ns *due, unsigned max);

/* From the instant `at` on the test runs at `rate_ops`, without losing phase; 0 ends the schedule
 * there. Every worker must be given the same instant, ahead of now. -EBUSY while an earlier change
 * or a step is still to come, -EINVAL when the rate is out of range, when an operation due after
 * `at` was already taken, in closed mode and before the start. */
int pt_pacer_change(struct pt_pacer *p, double rate_ops, pt_ns at) PT_MUST_USE;

/* The fraction meant by a double; -EINVAL outside PT_PACER_RATE_MIN..MAX. */
int pt_pacer_rate_from(struct pt_pacer_rate *r, double rate_ops) PT_MUST_USE;

#endif
