/* rounds.h: a test as a person asks for it: one run, or the several of --repeat, --search, --boost.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_ROUNDS_H
#define PT_ENGINE_ROUNDS_H

#include "engine/run.h"

struct pt_rounds {
    struct pt_run_spec
        run; /* its plan is the whole test's; each of several runs has its own copy */
    void (*say)(void *ctx, const char *line); /* one line per run of several; ctx is run.ctx */
};

/* As pt_run: one document on 0. A signal ends the present run and those that would follow; the
 * document tells what was done. */
int pt_rounds(const struct pt_rounds *r, struct pt_result **out, struct pt_err *e) PT_MUST_USE;

/* ---- what rounds.c, search_run.c and boost_run.c share */

void pt_rounds_say(const struct pt_rounds *r, const char *fmt, ...) PT_PRINTF(2, 3);
/* One run, with its --load beside it when the plan has one. */
int pt_rounds_run(const struct pt_run_spec *spec, struct pt_result **out,
                  struct pt_err *e) PT_MUST_USE;
/* "rates.rx_packets_per_s": what arrived, of the rate that counts (or "rates.operations_per_s"). */
void pt_rounds_yield_path(const struct pt_workload *wl, char *out, size_t cap);
int pt_rounds_search(const struct pt_rounds *r, const struct pt_search_limit *limit,
                     struct pt_result **out, struct pt_err *e) PT_MUST_USE;
int pt_rounds_boost(const struct pt_rounds *r, struct pt_result **out,
                    struct pt_err *e) PT_MUST_USE;

#endif
