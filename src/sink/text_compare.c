/* text_compare.c: the text of a comparison, `pitot.compare/1`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/compare.h"

#include "base/units.h"
#include "sink/figure.h"
#include "sink/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LINE 1200

static const char *text_of(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static double real_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static void add(char line[LINE], const char *separator, const char *text)
{
    size_t n = strlen(line);
    if (*text)
        snprintf(line + n, LINE - n, "%s%s", n ? separator : "", text);
}

/* ---- the sides */

/* "before.json: 5 runs, vm, 2026-12-01 06:20 UTC, limited by sender CPU" */
static void side(struct pt_page *p, const char *name, const char *what, const json_t *about)
{
    char line[LINE] = "", part[200];
    json_int_t runs = json_integer_value(json_object_get(about, "runs"));
    const char *started = text_of(about, "started");
    add(line, "", what);
    snprintf(part, sizeof(part), "%" JSON_INTEGER_FORMAT " %s", runs,
             p->style->chinese || runs == 1 ? pt_page_say(p, "run") : "runs");
    add(line, ": ", part);
    add(line, ", ", text_of(about, "host"));
    if (strlen(started) >= 16) {
        snprintf(part, sizeof(part), "%.10s %.5s UTC", started, started + 11);
        add(line, ", ", part);
    }
    if (strcmp(text_of(about, "status"), "ok") != 0)
        add(line, ", ", pt_page_say(p, text_of(about, "status")));
    if (*text_of(about, "limited_by")) {
        snprintf(part, sizeof(part), "%s %.150s", pt_page_say(p, "limited by"),
                 pt_page_say(p, text_of(about, "limited_by")));
        add(line, ", ", part);
    }
    snprintf(part, sizeof(part), "  %s  ", name);
    pt_page_sentence(p, PT_INK_PLAIN, part, line);
    if (json_is_false(json_object_get(about, "generator_valid")))
        pt_page_sentence(p, PT_INK_RED, "     ",
                         pt_page_say(p, "The generator was the limit: the figures show this "
                                        "machine, not the target."));
}

/* ---- figures */

/* "1.043", "0.00120" */
static void show_ratio(char *out, size_t cap, double v)
{
    if (!isfinite(v))
        snprintf(out, cap, "-");
    else if (fabs(v) >= 99.95 || (fabs(v) > 0 && fabs(v) < 0.0995))
        pt_number_show(out, cap, v);
    else
        pt_fixed_show(out, cap, v, fabs(v) >= 9.995 ? 2 : 3);
}

static void show_change(char *out, size_t cap, const json_t *against, const char *which,
                        const char *unit)
{
    char key[40], value[PT_FIGURE_TEXT];
    snprintf(key, sizeof(key), "ratio%s", which);
    double ratio = real_of(against, key), v;
    if (isfinite(real_of(against, "ratio"))) {
        show_ratio(out, cap, ratio);
        return;
    }
    snprintf(key, sizeof(key), "difference%s", which);
    v = real_of(against, key);
    if (!isfinite(v)) {
        snprintf(out, cap, "-");
        return;
    }
    pt_figure_show(value, sizeof(value), fabs(v), unit);
    snprintf(out, cap, "%s%.24s", v < 0 ? "-" : "+", value);
}

static enum pt_ink ink_of(const char *verdict)
{
    return !strcmp(verdict, "better")  ? PT_INK_GREEN
           : !strcmp(verdict, "worse") ? PT_INK_RED
                                       : PT_INK_PLAIN;
}

static void row(struct pt_page *p, struct pt_page_table *t, const json_t *figure, size_t b)
{
    const json_t *sides = json_object_get(figure, "sides"),
                 *against = json_array_get(json_object_get(figure, "against"), b - 1);
    const char *unit = text_of(figure, "unit"), *verdict = text_of(against, "verdict");
    char low[PT_FIGURE_TEXT], high[PT_FIGURE_TEXT];
    char(*cell)[PT_PAGE_CELL] = t->cell[t->rows];
    snprintf(cell[0], PT_PAGE_CELL, "%s", pt_page_say(p, text_of(figure, "name")));
    pt_figure_of(json_array_get(sides, 0), "median", unit, cell[1], PT_PAGE_CELL);
    pt_figure_of(json_array_get(sides, b), "median", unit, cell[2], PT_PAGE_CELL);
    show_change(cell[3], PT_PAGE_CELL, against, "", unit);
    show_change(low, sizeof(low), against, "_low", unit);
    show_change(high, sizeof(high), against, "_high", unit);
    if (strcmp(low, "-") != 0)
        snprintf(cell[4], PT_PAGE_CELL, "%.25s\u2026%.25s", low, high);
    snprintf(cell[5], PT_PAGE_CELL, "%s", pt_page_say(p, verdict));
    t->ink[t->rows++] = ink_of(verdict);
}

static const char *side_name(const struct pt_result *r, size_t s)
{
    return text_of(json_array_get(pt_result_at(r, "sides"), s), "name");
}

/* Side `b` against the first: the ratio, or where there is none, with a sign, the difference. */
static void figures(struct pt_page *p, const struct pt_result *r, const json_t *test, size_t b)
{
    static struct pt_page_table t; /* 28 KB */
    const json_t *all = json_object_get(test, "figures");
    char interval[40];
    memset(&t, 0, sizeof(t));
    t.columns = 6;
    t.rows = 1;
    t.ink[0] = PT_INK_DIM;
    snprintf(t.cell[0][1], PT_PAGE_CELL, "%s", side_name(r, 0));
    snprintf(t.cell[0][2], PT_PAGE_CELL, "%s", side_name(r, b));
    snprintf(t.cell[0][3], PT_PAGE_CELL, "%s/%s", side_name(r, b), side_name(r, 0));
    pt_figure_at(r, "confidence_pct", "%", interval, sizeof(interval));
    snprintf(t.cell[0][4], PT_PAGE_CELL, "%s", interval);
    for (size_t i = 0; i < json_array_size(all) && t.rows < PT_PAGE_ROWS; i++)
        row(p, &t, json_array_get(all, i), b);
    pt_buf_adds(p->out, "\n");
    pt_page_table(p, &t);
}

/* One run on a side tells nothing of its noise. */
static void alone(struct pt_page *p, const json_t *test)
{
    const json_t *sides = json_object_get(test, "sides");
    for (size_t s = 0; s < json_array_size(sides); s++) {
        if (json_integer_value(json_object_get(json_array_get(sides, s), "runs")) >= 2)
            continue;
        pt_buf_adds(p->out, "\n");
        pt_page_sentence(p, PT_INK_YELLOW, "  ",
                         pt_page_say(p,
                                     "One run tells nothing of the noise: --repeat 5, or several "
                                     "files joined by commas, give an interval."));
        return;
    }
}

/* ---- circumstances */

static void differences(struct pt_page *p, const struct pt_result *r, const json_t *test)
{
    const json_t *all = json_object_get(test, "differences");
    pt_page_heading(p, "What differs");
    if (!json_array_size(all))
        pt_page_sentence(p, PT_INK_PLAIN, "  ",
                         pt_page_say(p, "Nothing that the documents know of."));
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *d = json_array_get(all, i), *values = json_object_get(d, "values");
        char line[LINE] = "";
        for (size_t s = 0; s < json_array_size(values); s++) {
            const char *v = json_string_value(json_array_get(values, s));
            char part[400];
            snprintf(part, sizeof(part), "%s: %.300s", side_name(r, s), v ? v : "-");
            add(line, "; ", part);
        }
        pt_page_row(p, PT_INK_PLAIN, text_of(d, "path"), line);
    }
}

static void test(struct pt_page *p, const struct pt_result *r, const json_t *t, bool several)
{
    const json_t *sides = pt_result_at(r, "sides"), *about = json_object_get(t, "sides");
    char line[LINE] = "";
    if (several) {
        pt_buf_adds(p->out, "\n");
        add(line, "", text_of(t, "name"));
        add(line, ", ", text_of(t, "from"));
        pt_page_sentence(p, PT_INK_BOLD, "", line);
    }
    pt_buf_adds(p->out, "\n");
    for (size_t s = 0; s < json_array_size(sides); s++)
        side(p, side_name(r, s), text_of(json_array_get(sides, s), "text"),
             json_array_get(about, s));
    for (size_t s = 1; s < json_array_size(sides); s++)
        figures(p, r, t, s);
    alone(p, t);
    differences(p, r, t);
}

static int render(const struct pt_result *r, const struct pt_sink_style *style, struct pt_buf *out,
                  struct pt_err *e)
{
    struct pt_page p = {.out = out, .style = style};
    const json_t *tests = pt_result_at(r, "tests"), *warnings = pt_result_at(r, "warnings");
    pt_page_sentence(&p, PT_INK_BOLD, "", "pitot compare");
    for (size_t i = 0; i < json_array_size(tests); i++)
        test(&p, r, json_array_get(tests, i), json_array_size(tests) > 1);
    if (json_array_size(warnings))
        pt_page_heading(&p, "Warnings");
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        const char *text = json_string_value(json_array_get(warnings, i));
        pt_page_sentence(&p, PT_INK_YELLOW, "  - ", text ? text : "");
    }
    pt_page_files(&p);
    return out->failed ? pt_fail(e, out->failed, "the report is too long to print") : 0;
}

const struct pt_sink pt_sink_compare_text = {.name = "compare-text", .render = render};
