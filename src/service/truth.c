/* truth.c: see truth.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/truth.h"

#include "model/result.h"
#include "net/impair_text.h"

#include <string.h>

static const struct pt_opt_kind delay = {pt_delay_parse, pt_delay_print};
static const struct pt_opt_kind stall = {pt_stall_parse, pt_stall_print};
static const struct pt_opt_kind chance = {pt_chance_parse, pt_chance_print};
static const struct pt_opt_kind reorder = {pt_reorder_parse, pt_reorder_print};
static const struct pt_opt_kind rate_cap = {pt_rate_cap_parse, pt_rate_cap_print};
static const struct pt_opt_kind clock_offset = {pt_clock_offset_parse, pt_clock_offset_print};
static const struct pt_opt_kind clock_drift = {pt_clock_drift_parse, pt_clock_drift_print};

const struct pt_opt pt_truth_path_opts[] = {
    {PT_OPT_FIELD(struct pt_impair_spec, delay, PT_OPT_CUSTOM), .name = "delay", .metavar = "D",
     .kind = &delay, .group = "What is injected",
     .help = "each packet waits: 5ms, uniform:1ms-3ms, normal:MEAN:SD, exp:MEAN, "
             "table:1ms=90,10ms=10"},
    {PT_OPT_FIELD(struct pt_impair_spec, stall, PT_OPT_CUSTOM), .name = "stall", .metavar = "S",
     .kind = &stall,
     .help = "nothing leaves for a while: 100ms/1s (in each second), 100ms/1s@250ms (the first at "
             "250 ms), 2s@3s (once, 3 s after the first packet)"},
    {PT_OPT_FIELD(struct pt_impair_spec, loss, PT_OPT_CUSTOM), .name = "loss", .metavar = "L",
     .kind = &chance,
     .help = "packets disappear: 1%, every:100, burst:1%:25% (a burst begins with 1 %, and ends "
             "with 25 % per packet)"},
    {PT_OPT_FIELD(struct pt_impair_spec, dup, PT_OPT_CUSTOM), .name = "dup", .metavar = "L",
     .kind = &chance, .help = "packets leave twice: 1%, every:100"},
    {PT_OPT_FIELD(struct pt_impair_spec, reorder, PT_OPT_CUSTOM), .name = "reorder", .metavar = "R",
     .kind = &reorder,
     .help = "every Nth packet is held back, by packets or a time: every:50:by:3, "
             "every:50:by:2ms"},
    {PT_OPT_FIELD(struct pt_impair_spec, overtake, PT_OPT_BOOL), .name = "overtake",
     .help = "delays are independent: a packet may pass an earlier one"},
    {PT_OPT_FIELD(struct pt_impair_spec, rate, PT_OPT_CUSTOM), .name = "rate-cap", .metavar = "R",
     .kind = &rate_cap,
     .help = "a bottleneck and its queue, 50 ms deep: 100mbit (of payload), 10k (packets/s), "
             "100mbit:queue:20ms"},
    {PT_OPT_FIELD(struct pt_impair_spec, clock_offset, PT_OPT_CUSTOM), .name = "clock-offset",
     .metavar = "T", .kind = &clock_offset,
     .help = "this server's clock is ahead by T, or behind by T with -T (lat --one-way)"},
    {PT_OPT_FIELD(struct pt_impair_spec, clock_drift_ppm, PT_OPT_CUSTOM), .name = "clock-drift",
     .metavar = "D", .kind = &clock_drift,
     .help = "this server's clock runs fast: 50ppm, or slow: -50ppm"},
    {PT_OPT_FIELD(struct pt_impair_spec, seed, PT_OPT_COUNT), .name = "seed", .metavar = "N",
     .fallback = "1", .help = "seed of the random numbers: the same one injects the same"},
    {0}};

static const struct {
    const char *key, *says;
    size_t offset;
} counters[] = {
#define COUNTER(field, says)                                                                       \
    {                                                                                              \
#field, says, offsetof(struct pt_impair_record, field)                                     \
    }
    COUNTER(offered, "packets or chunks that came"),
    COUNTER(offered_bytes, NULL),
    COUNTER(passed, "passed"),
    COUNTER(passed_bytes, NULL),
    COUNTER(lost, "lost"),
    COUNTER(rate_dropped, "dropped before the rate cap"),
    COUNTER(queue_dropped, "dropped: this server could not keep more"),
    COUNTER(duplicated, "duplicated"),
    COUNTER(held, "held back"),
    COUNTER(reordered, "left behind a later one"),
    COUNTER(stalled, "left at the end of a stall"),
    COUNTER(departed, "left"),
    COUNTER(departed_bytes, NULL),
    COUNTER(forgotten, "their flow ended first"),
    COUNTER(unseen, "dropped by the socket before they were seen"),
    COUNTER(refused, "refused: not allowed, or too long"),
    COUNTER(unsent, "refused by the kernel when they left"),
#undef COUNTER
};

static uint64_t counter(const struct pt_impair_record *record, size_t i)
{
    uint64_t n;
    memcpy(&n, (const char *)record + counters[i].offset, sizeof(n));
    return n;
}

static json_t *spec_json(const struct pt_impair_spec *spec)
{
    struct pt_impair_spec values = *spec;
    struct pt_opts opts = {.table = pt_truth_path_opts, .values = &values};
    json_t *into = json_object();
    if (into && pt_opts_to_json(&opts, 0, into) < 0) {
        json_decref(into);
        return NULL;
    }
    return into;
}

json_t *pt_truth_document(const struct pt_impair_spec *spec, const struct pt_impair_record *record,
                          uint64_t paths)
{
    json_t *doc = json_pack("{ss ss so sI}", "schema", PT_TRUTH_SCHEMA, "version", PT_VERSION,
                            "injected", spec_json(spec), "paths", (json_int_t)paths);
    if (!doc)
        return NULL;
    int failed = 0;
    for (size_t i = 0; i < PT_COUNT(counters); i++)
        failed |=
            json_object_set_new(doc, counters[i].key, json_integer((json_int_t)counter(record, i)));
    failed |= json_object_set_new(doc, "delay", pt_hist_json(&record->delay));
    failed |= json_object_set_new(doc, "lateness", pt_hist_json(&record->lateness));
    if (failed) {
        json_decref(doc);
        return NULL;
    }
    return doc;
}

static void add_times(struct pt_buf *out, const char *name, const struct pt_hist *h)
{
    static const double quantiles[] = {0.5, 0.95, 0.99};
    static const char *const names[] = {"p50", "p95", "p99"};
    char text[PT_UNITS_TEXT];
    if (pt_hist_count(h) == 0)
        return;
    pt_buf_addf(out, "%-12s", name);
    for (size_t i = 0; i < PT_COUNT(quantiles); i++)
        if (pt_hist_depth_ok(h, quantiles[i]))
            pt_buf_addf(
                out, " %s %s ", names[i],
                pt_time_show(text, sizeof(text), (double)pt_hist_quantile(h, quantiles[i]) / 1e9));
    pt_buf_addf(out, " max %s\n", pt_time_show(text, sizeof(text), (double)pt_hist_max(h) / 1e9));
}

void pt_truth_text(struct pt_buf *out, const struct pt_impair_spec *spec,
                   const struct pt_impair_record *record, uint64_t paths)
{
    pt_buf_addf(out, "injected on %llu %s:", (unsigned long long)paths,
                paths == 1 ? "path" : "paths");
    size_t before = out->len;
    for (const struct pt_opt *o = pt_truth_path_opts; o->name; o++) {
        struct pt_buf value;
        pt_buf_init(&value, 4096);
        pt_opt_print(o, spec, &value);
        bool shown = value.len && o->type == PT_OPT_CUSTOM;
        if (shown || (o->type == PT_OPT_BOOL && spec->overtake))
            pt_buf_addf(out, " %s%s%s", o->name, shown ? " " : "", shown ? pt_buf_str(&value) : "");
        pt_buf_fini(&value);
    }
    pt_buf_adds(out, out->len == before ? " nothing\n" : "\n");
    for (size_t i = 0; i < PT_COUNT(counters); i++) {
        uint64_t n = counter(record, i);
        if (counters[i].says && (n || i == 0))
            pt_buf_addf(out, "%12llu %s\n", (unsigned long long)n, counters[i].says);
    }
    add_times(out, "delay", &record->delay);
    add_times(out, "lateness", &record->lateness);
}
