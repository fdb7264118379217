/* recorder.c: what recording one sample costs, with values that look like latencies.
 *
 * Prints the best and the median of several passes: the machine's noise only ever adds.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "os/clock.h"
#include "stat/hist.h"

#include <stdio.h>
#include <stdlib.h>

#define VALUES (1u << 20)
#define PASSES 21

static uint64_t value[VALUES];
static struct pt_hist hist;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    struct pt_rng rng;
    pt_rng_init(&rng, 1);
    for (size_t i = 0; i < VALUES; i++)
        value[i] = 20000 + (uint64_t)pt_rng_exp(&rng, i % 100 ? 5000 : 2e6);
    double cost[PASSES];
    for (unsigned pass = 0; pass < PASSES; pass++) {
        pt_ns start = pt_clock_now();
        for (size_t i = 0; i < VALUES; i++)
            pt_hist_record(&hist, value[i]);
        cost[pass] = (double)(pt_clock_now() - start) / VALUES;
    }
    qsort(cost, PASSES, sizeof(cost[0]), by_size);
    printf("record: best %.2f ns, median %.2f ns per sample (%llu samples, p99 %llu ns)\n", cost[0],
           cost[PASSES / 2], (unsigned long long)pt_hist_count(&hist),
           (unsigned long long)pt_hist_quantile(&hist, 0.99));
    return 0;
}
