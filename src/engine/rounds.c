/* rounds.c: see rounds.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/rounds.h"

#include "os/signal.h"

#include <errno.h>
#include <stdlib.h>

static void say(const struct pt_rounds *r, const char *fmt, ...) PT_PRINTF(2, 3);
static void say(const struct pt_rounds *r, const char *fmt, ...)
{
    char line[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (r->say)
        r->say(r->run.ctx, line);
}

static int repeat(const struct pt_rounds *r, uint32_t times, struct pt_result **out,
                  struct pt_err *e)
{
    struct pt_result **runs = calloc(times, sizeof(struct pt_result *));
    if (!runs)
        return pt_fail(e, -ENOMEM, "no memory for %u runs", times);
    uint32_t n = 0;
    int rc = 0;
    while (n < times && rc == 0 && !pt_signal_seen()) {
        say(r, "run %u of %u", n + 1, times);
        rc = pt_run(&r->run, &runs[n], e);
        n += rc == 0;
    }
    /* What was measured before a run failed is not thrown away. */
    if (n) {
        int failed = rc;
        char why[sizeof(e->text)];
        snprintf(why, sizeof(why), "%s", failed ? e->text : "");
        rc = pt_result_repeat(runs, n, out, e);
        if (rc == 0 && n < times) {
            pt_result_warn(*out, "partial: %u of %u runs were done%s%s", n, times,
                           failed ? ": " : "", why);
            pt_result_status(*out, PT_RESULT_PARTIAL);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        pt_result_free(runs[i]);
    free(runs);
    return rc;
}

int pt_rounds(const struct pt_rounds *r, struct pt_result **out, struct pt_err *e)
{
    uint32_t times = r->run.plan->common.repeat;
    return times > 1 ? repeat(r, times, out, e) : pt_run(&r->run, out, e);
}
