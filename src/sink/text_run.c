/* text_run.c: the text report of a run: a paragraph per test, at the end a table. See run.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/figure.h"
#include "sink/page.h"
#include "sink/run.h"

#include "model/run_document.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LINE 1200

static const char *text_of(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static void add(char line[LINE], const char *separator, const char *text)
{
    size_t n = strlen(line);
    snprintf(line + n, LINE - n, "%s%s", n ? separator : "", text);
}

static const char *or_none(const struct pt_result *r, const char *path)
{
    const char *text = pt_result_get_str(r, path);
    return text ? text : "";
}

void pt_run_text_title(const struct pt_result *run, const struct pt_sink_style *style,
                       struct pt_buf *out)
{
    struct pt_page p = {.out = out, .style = style};
    char line[LINE] = "";
    snprintf(line, sizeof(line), "pitot run %s", or_none(run, "name"));
    pt_page_sentence(&p, PT_INK_PLAIN, "", line);
    pt_page_sentence(&p, PT_INK_DIM, "", or_none(run, "topology.text"));
}

/* ---- one test */

/* "pps, senders-1 → target", or "pps, this machine, loopback". */
static void head(struct pt_page *p, const struct pt_result *r, char line[LINE])
{
    const char *from = pt_result_get_str(r, "test.from"), *to = pt_result_get_str(r, "test.to");
    snprintf(line, LINE, "%s, %s%s%s", or_none(r, "test.name"),
             from && to ? from : pt_page_say(p, "this machine, loopback"), from && to ? " → " : "",
             from && to ? to : "");
}

static void headline(struct pt_page *p, const struct pt_result *r, char line[LINE])
{
    const json_t *all = pt_result_at(r, "headline");
    line[0] = '\0';
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *h = json_array_get(all, i);
        char value[PT_FIGURE_TEXT];
        pt_figure_of(h, "value", text_of(h, "unit"), value, sizeof(value));
        add(line, ", ", pt_page_say(p, text_of(h, "name")));
        add(line, " ", value);
    }
}

static void verdict(struct pt_page *p, const struct pt_result *r)
{
    const json_t *limit = json_array_get(pt_result_at(r, "limited_by"), 0);
    char line[LINE] = "";
    if (limit) {
        add(line, "", pt_page_say(p, "Limited by"));
        add(line, ": ", pt_page_say(p, text_of(limit, "what")));
        add(line, *text_of(limit, "where") ? ", " : "", text_of(limit, "where"));
        pt_page_sentence(p, PT_INK_PLAIN, "    ", line);
    }
    if (json_is_false(pt_result_at(r, "generator.valid")))
        pt_page_sentence(p, PT_INK_RED, "    ",
                         pt_page_say(p, "The generator was the limit: the figures show this "
                                        "machine, not the target."));
}

static void expectations(struct pt_page *p, const struct pt_result *r)
{
    const json_t *all = pt_result_at(r, "expect");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *x = json_array_get(all, i);
        bool ok = json_is_true(json_object_get(x, "ok"));
        char value[PT_FIGURE_TEXT], line[LINE] = "";
        pt_figure_of(x, "value", pt_figure_unit(text_of(x, "path")), value, sizeof(value));
        add(line, "", text_of(x, "text"));
        add(line, ": ", pt_page_say(p, ok ? "held" : "not held"));
        add(line, ", ", value);
        pt_page_sentence(p, ok ? PT_INK_GREEN : PT_INK_RED, "    ", line);
    }
}

/* A test that is not whole says why: its first warning of that kind, else its first. */
static void trouble(struct pt_page *p, const struct pt_result *r)
{
    const json_t *all = pt_result_at(r, "warnings");
    const char *why = json_string_value(json_array_get(all, 0));
    char line[LINE] = "";
    if (pt_result_get_status(r) == PT_RESULT_OK)
        return;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *w = json_string_value(json_array_get(all, i));
        if (w && !strncmp(w, "partial:", 8)) {
            why = w + 8 + strspn(w + 8, " ");
            break;
        }
    }
    add(line, "",
        pt_page_say(p, pt_result_get_status(r) == PT_RESULT_PARTIAL ? "partial" : "failed"));
    add(line, ": ", why ? why : "");
    pt_page_sentence(p, PT_INK_RED, "    ", line);
}

void pt_run_text_test(const struct pt_result *test, const struct pt_sink_style *style,
                      struct pt_buf *out)
{
    struct pt_page p = {.out = out, .style = style};
    char line[LINE];
    pt_buf_adds(out, "\n");
    head(&p, test, line);
    pt_page_sentence(&p, PT_INK_BOLD, "  ", line);
    headline(&p, test, line);
    if (line[0])
        pt_page_sentence(&p, PT_INK_PLAIN, "    ", line);
    trouble(&p, test);
    verdict(&p, test);
    expectations(&p, test);
}

/* ---- the table */

static const struct column {
    const char *title, *path, *unit;
} columns[] = {
    {"received", "rates.rx_bits_per_s", "bit/s"},
    {"delivered", "rates.rx_packets_per_s", "packet/s"},
    {"loss", "rates.loss_pct", "%"},
    {"mean", "latency.mean_us", "us"},
    {"p99", "latency.p99_us", "us"},
    {"rate", "rates.operations_per_s", "operation/s"},
};

#define NAME   0
#define STATUS (PT_COUNT(columns) + 1)

/* bw and pps have no round trips, lat moves bits that nobody asks for, TCP counts no packets. */
static bool belongs(const struct pt_result *r, const struct column *c)
{
    const char *w = pt_result_get_str(r, "test.workload");
    bool lat = w && !strcmp(w, "lat"), pps = w && !strcmp(w, "pps");
    if (!strncmp(c->path, "latency.", 8) || !strcmp(c->path, "rates.operations_per_s"))
        return lat;
    if (!strcmp(c->path, "rates.rx_bits_per_s"))
        return !lat && !pps;
    return pps || (!lat && json_is_true(pt_result_at(r, "test.params.udp")));
}

static void begin_table(struct pt_page *p, struct pt_page_table *t)
{
    *t = (struct pt_page_table){.rows = 1, .columns = STATUS + 1, .ink = {PT_INK_DIM}};
    for (size_t c = 0; c < PT_COUNT(columns); c++)
        snprintf(t->cell[0][c + 1], PT_PAGE_CELL, "%s", pt_page_say(p, columns[c].title));
    snprintf(t->cell[0][STATUS], PT_PAGE_CELL, "%s", pt_page_say(p, "status"));
}

static const char *status_of(struct pt_page *p, const struct pt_result *r, enum pt_ink *ink)
{
    enum pt_result_status s = pt_result_get_status(r);
    *ink = s != PT_RESULT_OK || pt_result_exit(r) ? PT_INK_RED : PT_INK_PLAIN;
    return pt_page_say(p, s == PT_RESULT_FAILED    ? "failed"
                          : s == PT_RESULT_PARTIAL ? "partial"
                          : pt_result_exit(r) == 3 ? "not held"
                                                   : "ok");
}

static void test_row(struct pt_page *p, struct pt_page_table *t, const struct pt_result *r,
                     bool with_sender)
{
    const char *from = pt_result_get_str(r, "test.from");
    size_t row = t->rows++;
    snprintf(t->cell[row][NAME], PT_PAGE_CELL, "%.40s%s%.20s", or_none(r, "test.name"),
             with_sender && from ? ", " : "", with_sender && from ? from : "");
    for (size_t c = 0; c < PT_COUNT(columns); c++)
        if (belongs(r, &columns[c]))
            pt_figure_at(r, columns[c].path, columns[c].unit, t->cell[row][c + 1], PT_PAGE_CELL);
    snprintf(t->cell[row][STATUS], PT_PAGE_CELL, "%s", status_of(p, r, &t->ink[row]));
}

static void sum_row(struct pt_page *p, struct pt_page_table *t, const struct pt_result *run,
                    const json_t *sum)
{
    const struct pt_result view = {.root = (json_t *)(uintptr_t)sum};
    const json_int_t first = json_integer_value(json_array_get(json_object_get(sum, "tests"), 0));
    const struct pt_result test = pt_run_test(run, (size_t)first);
    size_t row = t->rows++;
    t->ink[row] = PT_INK_BOLD;
    snprintf(t->cell[row][NAME], PT_PAGE_CELL, "%.40s, %s", text_of(sum, "name"),
             pt_page_say(p, "in all"));
    for (size_t c = 0; c < PT_COUNT(columns); c++)
        if (belongs(&test, &columns[c]) && strncmp(columns[c].path, "latency.", 8) != 0)
            pt_figure_at(&view, columns[c].path, columns[c].unit, t->cell[row][c + 1],
                         PT_PAGE_CELL);
}

/* The sum whose last test this is, or NULL; `inside`: whether it is part of any. */
static const json_t *sum_at(const struct pt_result *run, size_t index, bool *inside)
{
    const json_t *sums = pt_result_at(run, "sums"), *found = NULL;
    *inside = false;
    for (size_t i = 0; i < json_array_size(sums); i++) {
        const json_t *tests = json_object_get(json_array_get(sums, i), "tests");
        size_t n = json_array_size(tests);
        for (size_t k = 0; k < n; k++) {
            if (json_integer_value(json_array_get(tests, k)) != (json_int_t)index)
                continue;
            *inside = true;
            found = k + 1 == n ? json_array_get(sums, i) : found;
        }
    }
    return found;
}

static void table(struct pt_page *p, const struct pt_result *run)
{
    static struct pt_page_table t; /* 28 KB */
    begin_table(p, &t);
    for (size_t i = 0; i < pt_run_tests(run); i++) {
        const struct pt_result test = pt_run_test(run, i);
        bool inside;
        const json_t *sum = sum_at(run, i, &inside);
        if (t.rows + 2 > PT_PAGE_ROWS) {
            pt_page_table(p, &t);
            begin_table(p, &t);
        }
        test_row(p, &t, &test, inside);
        if (sum)
            sum_row(p, &t, run, sum);
    }
    if (t.rows > 1)
        pt_page_table(p, &t);
}

static void groups(struct pt_page *p, const struct pt_result *run)
{
    const json_t *all = pt_result_at(run, "together"), *skews = pt_result_at(run, "start_skew_us");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *tests = json_array_get(all, i), *skew = json_array_get(skews, i);
        const struct pt_result first =
            pt_run_test(run, (size_t)json_integer_value(json_array_get(tests, 0)));
        char line[LINE], value[PT_FIGURE_TEXT];
        if (!json_is_number(skew))
            continue;
        pt_figure_show(value, sizeof(value), json_number_value(skew), "us");
        snprintf(line, sizeof(line), "%s %s (%s, %zu %s)",
                 pt_page_say(p, "began at one instant, within"), value,
                 or_none(&first, "test.name"), json_array_size(tests), pt_page_say(p, "tests"));
        pt_page_sentence(p, PT_INK_DIM, "  ", line);
    }
}

static void end(struct pt_page *p, const struct pt_result *run)
{
    const json_t *warnings = pt_result_at(run, "warnings");
    pt_page_heading(p, "All tests");
    table(p, run);
    groups(p, run);
    if (json_array_size(warnings))
        pt_page_heading(p, "Warnings");
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        const char *text = json_string_value(json_array_get(warnings, i));
        pt_page_sentence(p, PT_INK_YELLOW, "  - ", text ? text : "");
    }
    pt_page_files(p);
}

static int finish(struct pt_buf *out, struct pt_err *e)
{
    return out->failed ? pt_fail(e, out->failed, "the report is too long to print") : 0;
}

static int render_end(const struct pt_result *run, const struct pt_sink_style *style,
                      struct pt_buf *out, struct pt_err *e)
{
    struct pt_page p = {.out = out, .style = style};
    end(&p, run);
    return finish(out, e);
}

static int render(const struct pt_result *run, const struct pt_sink_style *style,
                  struct pt_buf *out, struct pt_err *e)
{
    pt_run_text_title(run, style, out);
    for (size_t i = 0; i < pt_run_tests(run); i++) {
        const struct pt_result test = pt_run_test(run, i);
        pt_run_text_test(&test, style, out);
    }
    return render_end(run, style, out, e);
}

const struct pt_sink pt_sink_run_text = {.name = "run-text", .render = render};
const struct pt_sink pt_sink_run_end = {.name = "run-end", .render = render_end};
