/* search.h: the highest rate whose loss stays within a limit, found by trials (RFC 2544, 26.1).
 *
 * First a flood: what it sent bounds the rate from above. The first trial is at what the flood
 * delivered, the next go away from it in growing strides, and once the answer lies between two
 * rates that were tried the others halve what is left. A trial that fails by a little, or by more
 * than overload explains, is repeated before it counts (loss verification, ETSI GS NFV-TST 009,
 * 12.3.3): one hiccup of a shared machine must not decide. A trial whose sender did not reach the
 * rate, twice, tells nothing about the path: there the generator is the limit, and the search says
 * so. What was found is confirmed by a run of the full length, stepping down when that fails.
 *
 * Knows no clock and no sockets: a function runs the trials.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_SEARCH_H
#define PT_ENGINE_SEARCH_H

#include "model/plan.h"

#define PT_SEARCH_RESOLUTION 0.01 /* of the rate: the search ends here */
#define PT_SEARCH_TRIALS     20   /* at most, the flood among them */
#define PT_SEARCH_CONFIRMS   6    /* at most; each PT_SEARCH_STEP_DOWN below the one before */
#define PT_SEARCH_STRIDE     0.04 /* of the rate: the first away from what the flood delivered */
#define PT_SEARCH_STEP_DOWN  0.02
#define PT_SEARCH_REACHED    0.99 /* of its rate: what a sender must reach for a trial to count */
#define PT_SEARCH_SURE_PCT   5.0  /* a loss above the limit by less than this is looked at twice */

/* `loss<=0.1%` */
struct pt_search_limit {
    bool given;
    double loss_pct; /* 0 to below 100 */
};

/* For option tables (PT_OPT_CUSTOM). */
extern const struct pt_opt_kind pt_search_kind;

enum pt_trial_kind { PT_TRIAL_FLOOD, PT_TRIAL_STEP, PT_TRIAL_CONFIRM };

enum pt_trial_verdict {
    PT_TRIAL_OK,
    PT_TRIAL_LOSS,      /* more than the limit */
    PT_TRIAL_GENERATOR, /* the sender did not reach the rate */
};

struct pt_trial {
    enum pt_trial_kind kind;
    double rate;               /* asked for; 0: as fast as it goes */
    double sent_s, received_s; /* per second, as measured */
    double loss_pct;
    enum pt_trial_verdict verdict; /* filled by the search */
};

struct pt_search {
    struct pt_search_limit limit;
    struct pt_trial trial[PT_SEARCH_TRIALS + PT_SEARCH_CONFIRMS];
    unsigned n;
    double found;           /* the highest rate that held; 0: none did */
    bool confirmed;         /* by a run of the full length */
    bool generator_limited; /* the path might carry more than `found` */
};

/* Options that a search excludes: -EINVAL. Fine when none was asked for. */
int pt_search_check(const struct pt_search_limit *l, const struct pt_plan *p,
                    struct pt_err *e) PT_MUST_USE;

/* Runs one trial: kind and rate are given, the rest is to be filled. 0; -EINTR ends the search in
 * order, with what is known; any other negative errno ends it as failed. */
typedef int (*pt_trial_run)(void *ctx, struct pt_trial *t, struct pt_err *e);

enum pt_trial_verdict pt_trial_judge(const struct pt_search_limit *l, const struct pt_trial *t);

/* 0, -EINTR, or what `run` failed with; `s` tells how far it came in any case. */
int pt_search(struct pt_search *s, const struct pt_search_limit *limit, pt_trial_run run, void *ctx,
              struct pt_err *e) PT_MUST_USE;

/* "flood", "step", "confirm" and "ok", "loss", "generator". */
const char *pt_trial_kind_name(enum pt_trial_kind kind);
const char *pt_trial_verdict_name(enum pt_trial_verdict verdict);

#endif
