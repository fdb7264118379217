/* test_sinks.c: all reports are projections of one document: from memory and from what was stored
 * they are the same bytes, and every figure in them is the document's.
 *
 * Documents are made at random: magnitudes from nothing to 10^21, missing and null figures, texts
 * with quotes, line ends, markup, control characters and many bytes per character.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/rng.h"
#include "base/units.h"
#include "model/run_document.h"
#include "sink/figure.h"
#include "sink/run.h"
#include "stat/hist.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 300

static struct pt_rng rng;

/* ---- documents */

static const char *some_text(void)
{
    static const char *const parts[] = {
        "eth0",         ",",        "\"", "\r\n", "\n",    "</script>",
        "\u65f6\u5ef6", "<!--",     "\t", "'",    "&amp;", "=1+1",
        "\u2028",       "\x1b[31m", " ",  "\\",   ";",     "\u00b5s"};
    static char text[400];
    text[0] = '\0';
    for (uint64_t n = pt_rng_below(&rng, 7); n; n--)
        strcat(text, parts[pt_rng_below(&rng, PT_COUNT(parts))]);
    return text;
}

/* Every magnitude is equally likely. */
static double some_real(void)
{
    switch (pt_rng_below(&rng, 8)) {
    case 0:
        return 0;
    case 1:
        return round(1e6 * pt_rng_unit(&rng));
    case 2:
        return (double)pt_rng_below(&rng, 1u << 20) / 1e3;
    default:
        return 1e-15 * pow(1e36, pt_rng_unit(&rng));
    }
}

static uint64_t some_count(void)
{
    return pt_rng_u64(&rng) >> (1 + pt_rng_below(&rng, 63));
}

/* A figure that is there, null, or missing. */
static void put_real(struct pt_result *r, const char *path)
{
    switch (pt_rng_below(&rng, 6)) {
    case 0:
        return;
    case 1:
        pt_result_null(r, path);
        return;
    default:
        pt_result_real(r, path, some_real());
    }
}

static void put_count(struct pt_result *r, const char *path)
{
    if (pt_rng_below(&rng, 6))
        pt_result_u64(r, path, some_count());
}

static void put_latency(struct pt_result *r)
{
    struct pt_hist *h = calloc(1, sizeof(*h));
    for (uint64_t n = pt_rng_below(&rng, 3000); n; n--)
        pt_hist_record(h, (uint64_t)(1000 * pow(1e6, pt_rng_unit(&rng))));
    pt_result_hist(r, "latency", h);
    free(h);
}

static json_t *interval(double t)
{
    static const char *const keys[] = {"operations", "tx_bytes", "rx_bytes",
                                       "p50_us",     "max_us",   "delivery_rate_bits_per_s"};
    json_t *o = json_pack("{s:f, s:f}", "t_s", t, "span_s", some_real());
    for (size_t i = 0; i < PT_COUNT(keys); i++)
        if (pt_rng_below(&rng, 5))
            json_object_set_new(o, keys[i],
                                pt_rng_below(&rng, 2) ? json_real(some_real())
                                                      : json_integer((json_int_t)some_count()));
    if (pt_rng_below(&rng, 2))
        json_object_set_new(o, "limited_by", json_string("receiver window"));
    return o;
}

static struct pt_result *some_result(void)
{
    static const char *const workloads[] = {"bw", "pps", "lat"};
    static const char *const reals[] = {"duration_s",
                                        "warmup_s",
                                        "rates.operations_per_s",
                                        "rates.tx_bits_per_s",
                                        "rates.rx_bits_per_s",
                                        "rates.tx_packets_per_s",
                                        "rates.rx_packets_per_s",
                                        "rates.loss_pct",
                                        "cost.cpu_s_per_GB",
                                        "cost.cpu_s_per_million_packets",
                                        "fairness.jain",
                                        "half_rtt_p50_us"};
    static const char *const counts[] = {
        "totals.operations",   "totals.ok",          "totals.tx_bytes",
        "totals.rx_bytes",     "totals.tx_packets",  "totals.rx_packets",
        "totals.lost_packets", "totals.retransmits", "totals.errors.timeout"};
    struct pt_result *r = pt_result_new((pt_ns)(pt_rng_below(&rng, 1u << 30)) * PT_S);
    pt_result_str(r, "test.workload", workloads[pt_rng_below(&rng, 3)]);
    pt_result_str(r, "test.name", some_text());
    pt_result_str(r, "test.target", some_text());
    pt_result_str(r, "peer.host", some_text());
    pt_result_str(r, "local.host", some_text());
    pt_result_bool(r, "generator.valid", pt_rng_below(&rng, 2));
    for (size_t i = 0; i < PT_COUNT(reals); i++)
        put_real(r, reals[i]);
    for (size_t i = 0; i < PT_COUNT(counts); i++)
        put_count(r, counts[i]);
    if (pt_rng_below(&rng, 2))
        put_latency(r);
    for (uint64_t i = 0, n = pt_rng_below(&rng, 9); i < n; i++)
        pt_result_append(r, "series", interval((double)i + pt_rng_unit(&rng)));
    pt_result_headline(r, "received", "rates.rx_bits_per_s", "bit/s");
    pt_result_headline(r, "RTT p50", "latency.p50_us", "us");
    pt_result_warn(r, "%s", some_text());
    pt_result_note(r, "%s", some_text());
    pt_result_append(r, "limited_by",
                     json_pack("{s:s, s:s, s:s, s:s}", "what", "link rate", "where", some_text(),
                               "evidence", some_text(), "advice", some_text()));
    return r;
}

static struct pt_result *some_run(void)
{
    struct pt_result *run = pt_run_new(some_text(), 0);
    size_t n = 1 + pt_rng_below(&rng, 4);
    pt_result_str(run, "plan", some_text());
    pt_result_str(run, "topology.text", some_text());
    for (size_t i = 0; i < n; i++) {
        struct pt_result *t = some_result();
        pt_result_str(t, "test.from", some_text());
        pt_result_str(t, "test.to", some_text());
        pt_run_add(run, t);
    }
    if (n > 1) {
        pt_run_together(run, 0, n, (pt_ns)pt_rng_below(&rng, PT_S));
        pt_run_sum(run, some_text(), 0, n);
    }
    pt_run_conclude(run);
    return run;
}

/* ---- rendering */

static char *render(const struct pt_sink *sink, const struct pt_result *r, bool chinese)
{
    struct pt_sink_style style = {.chinese = chinese};
    struct pt_buf out;
    pt_buf_init(&out, (size_t)64 << 20);
    assert_int_equal(sink->render(r, &style, &out, NULL), 0);
    char *text = strdup(pt_buf_str(&out));
    pt_buf_fini(&out);
    return text;
}

/* As another program reads it, and pitot itself later. */
static struct pt_result *stored(const struct pt_result *r)
{
    struct pt_result *back = NULL;
    struct pt_err e = {0};
    char *text = render(&pt_sink_json, r, false);
    if (pt_document_parse(text, strlen(text), &back, &e) < 0)
        fail_msg("%s in\n%s", e.text, text);
    free(text);
    return back;
}

static void same_from_store(const struct pt_result *r, const struct pt_sink *const *sinks, size_t n)
{
    struct pt_result *back = stored(r);
    for (size_t i = 0; i < n; i++)
        for (int zh = 0; zh < 2; zh++) {
            char *a = render(sinks[i], r, zh), *b = render(sinks[i], back, zh);
            if (strcmp(a, b) != 0)
                fail_msg("%s differs:\n%s\n----\n%s", sinks[i]->name, a, b);
            free(a);
            free(b);
        }
    pt_result_free(back);
}

/* ---- CSV, read as RFC 4180 says */

struct table {
    char cell[64][80][1200];
    size_t rows, columns[64];
};

static struct table table;

static void read_csv(const char *p)
{
    memset(&table, 0, sizeof(table));
    while (*p) {
        size_t c = table.columns[table.rows]++, n = 0;
        char *into = table.cell[table.rows][c];
        assert_true(c < 80 && table.rows < 64);
        if (*p == '"') {
            for (p++; *p && (*p != '"' || p[1] == '"'); p++) {
                p += *p == '"';
                into[n++] = *p;
            }
            assert_int_equal(*p++, '"');
        } else {
            while (*p && *p != ',' && *p != '\r')
                into[n++] = *p++;
        }
        assert_true(n < sizeof(table.cell[0][0]));
        if (*p == ',') {
            p++;
            continue;
        }
        assert_int_equal(*p++, '\r');
        assert_int_equal(*p++, '\n');
        table.rows++;
    }
}

/* The cell is the figure, to all the digits that are stored. */
static void holds(const char *cell, const json_t *v)
{
    if (!v || json_is_null(v)) {
        assert_string_equal(cell, "");
    } else if (json_is_string(v)) {
        assert_string_equal(cell, json_string_value(v));
    } else if (json_is_boolean(v)) {
        assert_string_equal(cell, json_is_true(v) ? "true" : "false");
    } else if (json_is_integer(v)) {
        char text[40];
        snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        assert_string_equal(cell, text);
    } else {
        double back = strtod(cell, NULL), want = json_real_value(v);
        if (back < want || back > want)
            fail_msg("%s is not %.17g", cell, want);
    }
}

static const char *path_of(const char *column)
{
    static const char *const paths[][2] = {
        {"id", "id"},
        {"target", "test.target"},
        {"workload", "test.workload"},
        {"status", "status"},
        {"duration_s", "duration_s"},
        {"operations", "totals.operations"},
        {"tx_bytes", "totals.tx_bytes"},
        {"lost_packets", "totals.lost_packets"},
        {"rx_bits_per_s", "rates.rx_bits_per_s"},
        {"loss_pct", "rates.loss_pct"},
        {"latency_p50_us", "latency.p50_us"},
        {"latency_stddev_us", "latency.stddev_us"},
        {"cpu_s_per_GB", "cost.cpu_s_per_GB"},
        {"generator_valid", "generator.valid"},
    };
    for (size_t i = 0; i < PT_COUNT(paths); i++)
        if (strcmp(paths[i][0], column) == 0)
            return paths[i][1];
    return NULL;
}

static void check_totals(const struct pt_result *r, size_t row)
{
    size_t checked = 0;
    assert_int_equal(table.columns[row], table.columns[0]);
    for (size_t c = 0; c < table.columns[0]; c++) {
        const char *path = path_of(table.cell[0][c]);
        if (path)
            holds(table.cell[row][c], pt_result_at(r, path));
        checked += path != NULL;
    }
    assert_int_equal(checked, 14);
}

static void check_series(const struct pt_result *r, size_t first, size_t lead)
{
    const json_t *series = pt_result_at(r, "series");
    for (size_t i = 0; i < json_array_size(series); i++) {
        assert_int_equal(table.columns[first + i], table.columns[0]);
        for (size_t c = lead; c < table.columns[0]; c++)
            holds(table.cell[first + i][c],
                  json_object_get(json_array_get(series, i), table.cell[0][c]));
    }
}

static void results_are_the_same_in_every_report(void **state)
{
    (void)state;
    static const struct pt_sink *const sinks[] = {&pt_sink_text, &pt_sink_csv, &pt_sink_csv_series,
                                                  &pt_sink_json, &pt_sink_html};
    for (int i = 0; i < ROUNDS; i++) {
        struct pt_result *r = some_result();
        pt_result_round(r);
        same_from_store(r, sinks, PT_COUNT(sinks));
        char *t = render(&pt_sink_csv, r, false);
        read_csv(t);
        free(t);
        assert_int_equal(table.rows, 2);
        check_totals(r, 1);
        t = render(&pt_sink_csv_series, r, false);
        read_csv(t);
        free(t);
        assert_int_equal(table.rows, 1 + json_array_size(pt_result_at(r, "series")));
        check_series(r, 1, 0);
        pt_result_free(r);
    }
}

static void runs_are_the_same_in_every_report(void **state)
{
    (void)state;
    static const struct pt_sink *const sinks[] = {
        &pt_sink_run_text, &pt_sink_run_csv, &pt_sink_run_csv_series, &pt_sink_json, &pt_sink_html};
    for (int i = 0; i < ROUNDS / 3; i++) {
        struct pt_result *run = some_run();
        pt_result_round(run);
        same_from_store(run, sinks, PT_COUNT(sinks));
        char *t = render(&pt_sink_run_csv, run, false);
        read_csv(t);
        free(t);
        assert_int_equal(table.rows, 1 + pt_run_tests(run));
        for (size_t k = 0; k < pt_run_tests(run); k++) {
            const struct pt_result test = pt_run_test(run, k);
            holds(table.cell[1 + k][0], pt_result_at(&test, "test.name"));
            holds(table.cell[1 + k][1], pt_result_at(&test, "test.from"));
            check_totals(&test, 1 + k);
        }
        t = render(&pt_sink_run_csv_series, run, false);
        read_csv(t);
        free(t);
        size_t row = 1;
        for (size_t k = 0; k < pt_run_tests(run); k++) {
            const struct pt_result test = pt_run_test(run, k);
            check_series(&test, row, 3);
            row += json_array_size(pt_result_at(&test, "series"));
        }
        assert_int_equal(table.rows, row);
        pt_result_free(run);
    }
}

/* The JSON of an element of the page, as a browser hands it to a script. */
static json_t *element(const char *page, const char *id)
{
    char begin[80];
    snprintf(begin, sizeof(begin), "<script type=\"application/json\" id=\"%s\">", id);
    const char *from = strstr(page, begin);
    assert_non_null(from);
    from += strlen(begin);
    json_t *value =
        json_loadb(from, (size_t)(strstr(from, "</script>") - from), JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    return value;
}

static void a_page_holds_the_document(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS / 3; i++) {
        struct pt_result *r = i % 2 ? some_run() : some_result();
        pt_result_round(r);
        struct pt_result *back = stored(r);
        char *page = render(&pt_sink_html, r, false);
        json_t *in_page = element(page, "document");
        assert_true(json_equal(in_page, back->root));
        json_decref(in_page);
        free(page);
        pt_result_free(back);
        pt_result_free(r);
    }
}

static void the_text_shows_the_headline(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct pt_result *r = some_result();
        pt_result_round(r);
        char *text = render(&pt_sink_text, r, false), value[PT_FIGURE_TEXT];
        const json_t *all = pt_result_at(r, "headline");
        for (size_t k = 0; k < json_array_size(all); k++) {
            const json_t *h = json_array_get(all, k);
            pt_figure_of(h, "value", json_string_value(json_object_get(h, "unit")), value,
                         sizeof(value));
            if (!strstr(text, value))
                fail_msg("no %s in\n%s", value, text);
        }
        free(text);
        pt_result_free(r);
    }
}

/* Scripts of users read these files by name and by place: columns keep their names and order, new
 * ones come at the end. */
static void columns_stay(void **state)
{
    (void)state;
    static const char series[] =
        "t_s,operations,ok,errors,tx_bytes,rx_bytes,tx_packets,rx_packets,lost_packets,retransmits,"
        "rtt_us,cwnd,connections,p50_us,p99_us,max_us,delivery_rate_bits_per_s,limited_by";
    static const char totals[] =
        "id,started,version,workload,target,status,exit,connections,workers,mode,rate,inflight,"
        "duration_s,warmup_s,operations,ok,in_flight_at_end,tx_bytes,rx_bytes,tx_packets,"
        "rx_packets,lost_packets,late_packets,reordered_packets,duplicate_packets,retransmits,"
        "operations_per_s,tx_bits_per_s,rx_bits_per_s,tx_packets_per_s,rx_packets_per_s,loss_pct,"
        "latency_count,latency_mean_us,latency_stddev_us,latency_min_us,latency_p50_us,"
        "latency_p75_us,latency_p90_us,latency_p95_us,latency_p99_us,latency_p99_9_us,"
        "latency_p99_99_us,latency_max_us,cpu_s_per_GB,cpu_s_per_million_packets,"
        "cpu_s_per_million_operations,generator_valid";
    struct pt_result *r = some_result(), *run = some_run();
    const struct {
        const struct pt_sink *sink;
        const struct pt_result *of;
        const char *lead, *columns;
    } files[] = {
        {&pt_sink_csv_series, r, "", series},
        {&pt_sink_csv, r, "", totals},
        {&pt_sink_run_csv_series, run, "test,from,to,", series},
        {&pt_sink_run_csv, run, "test,from,to,", totals},
    };
    for (size_t i = 0; i < PT_COUNT(files); i++) {
        char want[2000], *text = render(files[i].sink, files[i].of, false);
        snprintf(want, sizeof(want), "%s%s\r\n", files[i].lead, files[i].columns);
        if (strncmp(text, want, strlen(want)) != 0)
            fail_msg("%s begins with\n%.1200s", files[i].sink->name, text);
        free(text);
    }
    pt_result_free(r);
    pt_result_free(run);
}

int main(void)
{
    pt_rng_init(&rng, 20261201);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_the_same_in_every_report),
        cmocka_unit_test(runs_are_the_same_in_every_report),
        cmocka_unit_test(a_page_holds_the_document),
        cmocka_unit_test(the_text_shows_the_headline),
        cmocka_unit_test(columns_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
