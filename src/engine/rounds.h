/* rounds.h: a test as a person asks for it: one run, or the several of --repeat.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_ROUNDS_H
#define PT_ENGINE_ROUNDS_H

#include "engine/run.h"

struct pt_rounds {
    struct pt_run_spec run; /* its plan is the whole test's; every run has a copy of its own */
    void (*say)(void *ctx, const char *line); /* one line per run of several; ctx is run.ctx */
};

/* As pt_run: one document on 0. A signal ends the present run and those that would follow; the
 * document tells what was done. */
int pt_rounds(const struct pt_rounds *r, struct pt_result **out, struct pt_err *e) PT_MUST_USE;

#endif
