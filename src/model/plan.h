/* plan.h: what was asked for: the command, its target, the options every measurement has, and the
 * options of the one workload.
 *
 * Immutable once a run starts. Nothing here is resolved or measured: names of hosts are text,
 * `size` 0 means the workload's own. `workers` 0 means one per CPU when nobody gave it, and one
 * worker inside this process when somebody did (pt_plan_given tells).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_PLAN_H
#define PT_MODEL_PLAN_H

#include "model/manual.h"
#include "model/opt.h"
#include "model/reporting.h"
#include "os/cpu.h"

enum pt_arrivals { PT_ARRIVALS_UNIFORM, PT_ARRIVALS_POISSON };
enum pt_engine { PT_ENGINE_AUTO, PT_ENGINE_URING, PT_ENGINE_EPOLL };

/* `conns:100,rate:50k,every:30s,until:p99>50ms|flat`: each step adds connections, rate or both. */
struct pt_boost {
    uint32_t connections; /* added per step; 0: none */
    struct pt_rate rate;  /* added per step; 0: none */
    pt_ns every;          /* length of a step; 0: no boost asked for */
    pt_ns until_p99;      /* stop when p99 passes it; 0: not a condition */
    bool until_flat;      /* stop when a step brings no more operations per second */
};

/* Source ports to plan tuples from; both 0: any. */
struct pt_ports {
    uint16_t first, last;
};

struct pt_common {
    /* load */
    uint32_t connections, workers, inflight;
    pt_ns duration;    /* 0 when `requests` ends the run */
    uint64_t requests; /* per connection; 0: the duration ends the run */
    pt_ns warmup, timeout;
    struct pt_rate rate; /* in all; 0: closed loop */
    int arrivals;        /* enum pt_arrivals */
    struct pt_boost boost;
    uint64_t size; /* bytes; 0: the workload's own */
    uint32_t repeat;
    /* path */
    char via[PT_PATH_LEN];
    char peer[16]; /* what stock server the target is; "": `pitot serve` */
    struct pt_strs bind;
    struct pt_ports ports;
    bool ipv4, ipv6;
    uint32_t tos, mss;
    char cc[32];
    uint64_t sndbuf, rcvbuf;
    char secret_file[PT_PATH_LEN];
    /* machine */
    struct pt_cpu_list cpus; /* to pin workers to, in order of use; n 0: no pinning asked for */
    int engine;              /* enum pt_engine */
    /* report */
    pt_ns interval;
    struct pt_strs expect;
};

extern const struct pt_opt pt_common_opts[];

struct pt_plan;

/* The option tables of a plan: the form's own, the common ones, those of the report. */
enum pt_plan_set { PT_PLAN_OWN, PT_PLAN_COMMON, PT_PLAN_REPORT, PT_PLAN_SETS };

/* What a measuring command tells the plan about itself; constant, part of its workload. */
struct pt_plan_form {
    struct pt_manual manual;               /* its command is the plan's name */
    const char *const *peers;              /* of --peer; NULL: none */
    const struct pt_opt *opts;             /* NULL: none of its own */
    size_t params_size;                    /* of the struct that `opts` fills */
    const struct pt_opt_default *defaults; /* of common options, for this command; NULL: none */
    const char *const *without; /* common options this command does not have, NULL-terminated */
    int (*check)(const struct pt_plan *, struct pt_err *); /* after the common checks; NULL: none */
};

struct pt_plan {
    const struct pt_plan_form *form;
    char target[PT_PATH_LEN]; /* "" : a serve of our own on the loopback */
    struct pt_common common;
    void *params; /* form->params_size bytes, zeroed, then the defaults; owned */
    struct pt_reporting report;
    struct pt_opts sets[PT_PLAN_SETS]; /* point into this plan */
};

/* Every value at its default. A plan must not be moved in memory after this. */
int pt_plan_init(struct pt_plan *p, const struct pt_plan_form *form, struct pt_err *e) PT_MUST_USE;
void pt_plan_fini(struct pt_plan *p);
/* `to` (not initialised) gets every value of `from`: one plan per run where a test has several. */
int pt_plan_copy(struct pt_plan *to, const struct pt_plan *from, struct pt_err *e) PT_MUST_USE;

/* Reads arguments (argv without the command's name) and checks the plan, unless --help or --man was
 * given. At most one positional argument, the target. */
int pt_plan_parse(struct pt_plan *p, int argc, const char *const *argv,
                  struct pt_err *e) PT_MUST_USE;

/* Options that contradict each other, and every --expect. Called by pt_plan_parse. */
int pt_plan_check(const struct pt_plan *p, struct pt_err *e) PT_MUST_USE;

/* After the check, before it runs: a test that ends by a count has no duration. */
void pt_plan_settle(struct pt_plan *p);
bool pt_plan_given(const struct pt_plan *p, const char *name);

/* All values, own and common, as one object (new reference), NULL when out of memory. */
json_t *pt_plan_params(const struct pt_plan *p);
/* The subset that the peer needs, and its reader on the other side. */
json_t *pt_plan_to_peer(const struct pt_plan *p);
int pt_plan_from_peer(struct pt_plan *p, const json_t *from, struct pt_err *e) PT_MUST_USE;

#endif
