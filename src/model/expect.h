/* expect.h: thresholds on a result: `p99<5ms`, `rx_bits_per_s>=10gbit`, `lost_packets==0`.
 *
 * `METRIC OP VALUE`, OP one of < <= > >= == !=. METRIC is a short name (p50 p75 p90 p95 p99 p99.9
 * p99.99 mean min max stddev loss errors), a key of latency, rates, totals, cost or generator, or a
 * dotted path of the document. The metric's name fixes the unit: a time needs its unit unless the
 * key names one (`latency.p99_us<5000`), a rate may be written as `10gbit`, a size as `1MiB`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_EXPECT_H
#define PT_MODEL_EXPECT_H

#include "model/opt.h"

struct pt_result;

enum pt_expect_op {
    PT_EXPECT_LT,
    PT_EXPECT_LE,
    PT_EXPECT_GT,
    PT_EXPECT_GE,
    PT_EXPECT_EQ,
    PT_EXPECT_NE,
};

struct pt_expect {
    char text[PT_STRS_LEN]; /* as given */
    char path[PT_STRS_LEN]; /* in the result document */
    enum pt_expect_op op;
    double value; /* in the unit of `path` */
};

int pt_expect_parse(const char *text, struct pt_expect *x, struct pt_err *e) PT_MUST_USE;

/* Compares. A figure that the document does not have, or has as null, fails. */
bool pt_expect_holds(const struct pt_expect *x, const struct pt_result *r, double *value,
                     bool *present);

/* Evaluates each text of `list` (checked before by pt_plan_check), records `expect` in the
 * document and, when one fails and the exit was 0, sets exit to 3. Returns how many failed. */
int pt_expect_record(const struct pt_strs *list, struct pt_result *r, struct pt_err *e) PT_MUST_USE;

#endif
