/* csv.c: RFC 4180 tables with headers that do not change: one row per interval, and one row of
 * totals. A figure that the document does not have is an empty field. Columns are only ever added
 * at the end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "model/run_document.h"
#include "sink/run.h"
#include "sink/sink.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_COLUMNS "test,from,to,"

static const char *const series_keys[] = {
    "t_s",
    "operations",
    "ok",
    "errors",
    "tx_bytes",
    "rx_bytes",
    "tx_packets",
    "rx_packets",
    "lost_packets",
    "retransmits",
    "rtt_us",
    "cwnd",
    "connections",
    "p50_us",
    "p99_us",
    "max_us",
    "delivery_rate_bits_per_s",
    "limited_by",
};

/* Header and path of each column of the totals. */
static const char *const summary[][2] = {
    {"id", "id"},
    {"started", "started"},
    {"version", "version"},
    {"workload", "test.workload"},
    {"target", "test.target"},
    {"status", "status"},
    {"exit", "exit"},
    {"connections", "test.load.connections"},
    {"workers", "test.load.workers"},
    {"mode", "test.load.mode"},
    {"rate", "test.load.rate"},
    {"inflight", "test.load.inflight"},
    {"duration_s", "duration_s"},
    {"warmup_s", "warmup_s"},
    {"operations", "totals.operations"},
    {"ok", "totals.ok"},
    {"in_flight_at_end", "totals.in_flight_at_end"},
    {"tx_bytes", "totals.tx_bytes"},
    {"rx_bytes", "totals.rx_bytes"},
    {"tx_packets", "totals.tx_packets"},
    {"rx_packets", "totals.rx_packets"},
    {"lost_packets", "totals.lost_packets"},
    {"late_packets", "totals.late_packets"},
    {"reordered_packets", "totals.reordered_packets"},
    {"duplicate_packets", "totals.duplicate_packets"},
    {"retransmits", "totals.retransmits"},
    {"operations_per_s", "rates.operations_per_s"},
    {"tx_bits_per_s", "rates.tx_bits_per_s"},
    {"rx_bits_per_s", "rates.rx_bits_per_s"},
    {"tx_packets_per_s", "rates.tx_packets_per_s"},
    {"rx_packets_per_s", "rates.rx_packets_per_s"},
    {"loss_pct", "rates.loss_pct"},
    {"latency_count", "latency.count"},
    {"latency_mean_us", "latency.mean_us"},
    {"latency_stddev_us", "latency.stddev_us"},
    {"latency_min_us", "latency.min_us"},
    {"latency_p50_us", "latency.p50_us"},
    {"latency_p75_us", "latency.p75_us"},
    {"latency_p90_us", "latency.p90_us"},
    {"latency_p95_us", "latency.p95_us"},
    {"latency_p99_us", "latency.p99_us"},
    {"latency_p99_9_us", "latency.p99_9_us"},
    {"latency_p99_99_us", "latency.p99_99_us"},
    {"latency_max_us", "latency.max_us"},
    {"cpu_s_per_GB", "cost.cpu_s_per_GB"},
    {"cpu_s_per_million_packets", "cost.cpu_s_per_million_packets"},
    {"cpu_s_per_million_operations", "cost.cpu_s_per_million_operations"},
    {"generator_valid", "generator.valid"},
};

static void add_text(struct pt_buf *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        pt_buf_adds(out, text);
        return;
    }
    pt_buf_adds(out, "\"");
    for (; *text; text++)
        pt_buf_add(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    pt_buf_adds(out, "\"");
}

/* What is too small or too large to be spread out has an exponent, as in the document. */
static void add_real(struct pt_buf *out, double v)
{
    char number[PT_UNITS_TEXT];
    double magnitude = fabs(v);
    if (!(magnitude > 0) || (magnitude >= 1e-9 && magnitude <= 1e18)) {
        pt_buf_adds(out, pt_real_print(number, sizeof(number), v));
        return;
    }
    json_t *real = json_real(v);
    char *text = json_dumps(real, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    pt_buf_adds(out, text ? text : "");
    free(text);
    json_decref(real);
}

static void add_field(struct pt_buf *out, const json_t *v, bool first)
{
    if (!first)
        pt_buf_adds(out, ",");
    if (json_is_string(v))
        add_text(out, json_string_value(v));
    else if (json_is_integer(v))
        pt_buf_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        add_real(out, pt_real_stored(json_real_value(v)));
    else if (json_is_boolean(v))
        pt_buf_adds(out, json_is_true(v) ? "true" : "false");
}

static int finish(struct pt_buf *out, struct pt_err *e)
{
    return out->failed ? pt_fail(e, out->failed, "the table is too large") : 0;
}

static void series_rows(const struct pt_result *r, const char *lead, struct pt_buf *out)
{
    const json_t *series = pt_result_at(r, "series");
    for (size_t i = 0; i < json_array_size(series); i++) {
        const json_t *row = json_array_get(series, i);
        pt_buf_adds(out, lead);
        for (size_t c = 0; c < PT_COUNT(series_keys); c++)
            add_field(out, json_object_get(row, series_keys[c]), !c);
        pt_buf_adds(out, "\r\n");
    }
}

static void summary_row(const struct pt_result *r, const char *lead, struct pt_buf *out)
{
    pt_buf_adds(out, lead);
    for (size_t c = 0; c < PT_COUNT(summary); c++)
        add_field(out, pt_result_at(r, summary[c][1]), !c);
    pt_buf_adds(out, "\r\n");
}

static void series_header(const char *lead, struct pt_buf *out)
{
    pt_buf_adds(out, lead);
    for (size_t c = 0; c < PT_COUNT(series_keys); c++)
        pt_buf_addf(out, "%s%s", c ? "," : "", series_keys[c]);
    pt_buf_adds(out, "\r\n");
}

static void summary_header(const char *lead, struct pt_buf *out)
{
    pt_buf_adds(out, lead);
    for (size_t c = 0; c < PT_COUNT(summary); c++)
        pt_buf_addf(out, "%s%s", c ? "," : "", summary[c][0]);
    pt_buf_adds(out, "\r\n");
}

static int render_series(const struct pt_result *r, const struct pt_sink_style *style,
                         struct pt_buf *out, struct pt_err *e)
{
    (void)style;
    series_header("", out);
    series_rows(r, "", out);
    return finish(out, e);
}

static int render_summary(const struct pt_result *r, const struct pt_sink_style *style,
                          struct pt_buf *out, struct pt_err *e)
{
    (void)style;
    summary_header("", out);
    summary_row(r, "", out);
    return finish(out, e);
}

/* ---- a run: the same tables, the test and its ends before the other columns */

static void each_test(const struct pt_result *run, struct pt_buf *out,
                      void (*rows)(const struct pt_result *, const char *, struct pt_buf *))
{
    static const char *const paths[] = {"test.name", "test.from", "test.to"};
    for (size_t i = 0; i < pt_run_tests(run); i++) {
        const struct pt_result test = pt_run_test(run, i);
        struct pt_buf lead;
        pt_buf_init(&lead, 4096);
        for (size_t c = 0; c < PT_COUNT(paths); c++) {
            add_field(&lead, pt_result_at(&test, paths[c]), true);
            pt_buf_adds(&lead, ",");
        }
        rows(&test, pt_buf_str(&lead), out);
        pt_buf_fini(&lead);
    }
}

static int render_run_series(const struct pt_result *r, const struct pt_sink_style *style,
                             struct pt_buf *out, struct pt_err *e)
{
    (void)style;
    series_header(RUN_COLUMNS, out);
    each_test(r, out, series_rows);
    return finish(out, e);
}

static int render_run_summary(const struct pt_result *r, const struct pt_sink_style *style,
                              struct pt_buf *out, struct pt_err *e)
{
    (void)style;
    summary_header(RUN_COLUMNS, out);
    each_test(r, out, summary_row);
    return finish(out, e);
}

const struct pt_sink pt_sink_csv = {.name = "csv", .render = render_summary};
const struct pt_sink pt_sink_csv_series = {.name = "csv-series", .render = render_series};
const struct pt_sink pt_sink_run_csv = {.name = "run-csv", .render = render_run_summary};
const struct pt_sink pt_sink_run_csv_series = {.name = "run-csv-series",
                                               .render = render_run_series};
