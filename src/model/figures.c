/* figures.c: see figures.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/figures.h"

#include <string.h>

#define HIGHER .compared = true, .better = PT_BETTER_HIGHER
#define LOWER  .compared = true, .better = PT_BETTER_LOWER

/* clang-format off */
const struct pt_figure pt_figures[] = {
    {"received", "rates.rx_bits_per_s", "bit/s", "bw", HIGHER},
    {"sent", "rates.tx_bits_per_s", "bit/s", "bw"},
    {"delivered", "rates.rx_packets_per_s", "packet/s", "bw pps", HIGHER},
    {"sent", "rates.tx_packets_per_s", "packet/s", "pps"},
    {"received in all", "totals.rx_bytes", "byte", "bw"},
    {"round trips", "rates.operations_per_s", "operation/s", "lat", HIGHER},
    {"RTT mean", "latency.mean_us", "us", "lat", LOWER, .tabled = true},
    {"RTT p50", "latency.p50_us", "us", "lat", LOWER, .tabled = true},
    {"RTT p99", "latency.p99_us", "us", "lat", LOWER, .tabled = true},
    {"RTT p99.9", "latency.p99_9_us", "us", "lat", LOWER, .tabled = true},
    {"RTT max", "latency.max_us", "us", "lat", LOWER, .tabled = true},
    {"RTT p50 without load", "load.idle.p50_us", "us", "lat"},
    {"RTT p99 without load", "load.idle.p99_us", "us", "lat"},
    {"load beside it", "load.rates.rx_bits_per_s", "bit/s", "lat"},
    {"operations", "totals.operations", "", "lat"},
    {"in flight at the end", "totals.in_flight_at_end", "", "lat", .hide_zero = true},
    {"lost", "totals.lost_packets", ""},
    {"loss", "rates.loss_pct", "%", "bw pps", LOWER},
    {"late", "totals.late_packets", "", .hide_zero = true},
    {"reordered", "totals.reordered_packets", "", .hide_zero = true},
    {"duplicates", "totals.duplicate_packets", "", .hide_zero = true},
    {"retransmits", "totals.retransmits", "", "bw", LOWER},
    {"retransmits", "totals.retransmits", "", "lat", .hide_zero = true},
    {"reconnects", "totals.reconnects", "", .hide_zero = true},
    {"TCP round trip", "flows.0.srtt_us", "us", "bw"},
    {"fairness (Jain)", "fairness.jain", "", "bw pps"},
    {"start of the flows within", "fairness.start_skew_us", "us", "bw pps"},
    {"CPU per GB", "cost.cpu_s_per_GB", "CPU s", "bw", LOWER},
    {"CPU per million packets", "cost.cpu_s_per_million_packets", "CPU s", "pps", LOWER},
    {"CPU per million round trips", "cost.cpu_s_per_million_operations", "CPU s", "lat", LOWER},
    {0},
};
/* clang-format on */

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

bool pt_figure_belongs(const struct pt_figure *f, const struct pt_result *r)
{
    const char *workload = pt_result_get_str(r, "test.workload");
    return !f->workloads || !workload || has_word(f->workloads, workload);
}

const struct pt_figure *pt_figure_find(const struct pt_result *r, const char *path)
{
    for (const struct pt_figure *f = pt_figures; f->name; f++)
        if (!strcmp(f->path, path) && pt_figure_belongs(f, r))
            return f;
    return NULL;
}
