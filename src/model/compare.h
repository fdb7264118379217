/* compare.h: `pitot.compare/1`, docs/compare.schema.json: results of the same test side by side.
 *
 * The first side is what the others are compared with. A figure has as many values as its side has
 * runs: those of a repeated test and of several documents. Of figures that are above zero the ratio
 * of the geometric means is told with its 95 % interval (Welch's t on logarithms, stat/welch.h), of
 * all the difference of the means with its own. docs/METHOD.md defines every key.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_COMPARE_H
#define PT_MODEL_COMPARE_H

#include "model/result.h"

#define PT_COMPARE_SCHEMA     "pitot.compare/1"
#define PT_COMPARE_CONFIDENCE 0.95
#define PT_COMPARE_SIDES      8

/* One side: documents of the same thing, all of them results or all of them runs of plans. */
struct pt_compare_side {
    const char *text;                  /* as it was asked for */
    struct pt_result *const *document; /* n of them, each read by pt_document_parse */
    size_t n;
};

/* Tests of runs are matched by their name and sender. -EINVAL with a sentence when there is nothing
 * to compare: a run with a result, different workloads, no test in common. Caller frees. */
int pt_compare(const struct pt_compare_side *sides, size_t n, struct pt_result **out,
               struct pt_err *e) PT_MUST_USE;

#endif
