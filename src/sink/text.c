/* text.c: the report for people: the answer first, then what it rests on, then what to know.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"
#include "model/figures.h"
#include "sink/figure.h"
#include "sink/page.h"
#include "sink/text_tables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

/* ---- what was done */

static bool is_set(const struct pt_result *r, const char *path)
{
    return json_is_true(pt_result_at(r, path));
}

/* "TCP, the other end sends, ": what went which way. */
static int protocol(const struct pt_page *p, const struct pt_result *r, char *out, size_t cap)
{
    const char *workload = pt_result_get_str(r, "test.workload");
    const char *target = pt_result_get_str(r, "test.target");
    bool udp = is_set(r, "test.params.udp") || (workload && !strcmp(workload, "pps"));
    const char *name = udp ? "UDP" : target && !strncmp(target, "unix:", 5) ? "unix socket" : "TCP";
    const char *way = is_set(r, "test.params.reverse") ? "the other end sends"
                      : is_set(r, "test.params.bidir") ? "both ends send"
                                                       : "";
    return snprintf(out, cap, "%s, %s%s", pt_page_say(p, name), pt_page_say(p, way),
                    *way ? ", " : "");
}

static void load_line(struct pt_page *p, const struct pt_result *r)
{
    char connections[PT_FIGURE_TEXT], t[PT_FIGURE_TEXT], line[400];
    const char *unit = pt_result_get_str(r, "test.load.rate_unit");
    uint64_t n = 0;
    int at = protocol(p, r, line, sizeof(line));
    if (pt_result_get_u64(r, "test.load.connections", &n)) {
        pt_number_show(connections, sizeof(connections), (double)n);
        at += snprintf(line + at, sizeof(line) - (size_t)at, "%s %s, ", connections,
                       pt_page_say(p, n == 1 ? "connection" : "connections"));
    }
    at += snprintf(line + at, sizeof(line) - (size_t)at, "%s",
                   pt_page_say(p, unit ? "open loop" : "closed loop"));
    if (unit && pt_figure_at(r, "test.load.rate", unit, t, sizeof(t)))
        at += snprintf(line + at, sizeof(line) - (size_t)at, " (%s)", t);
    if (pt_figure_at(r, "duration_s", "s", t, sizeof(t)))
        at += snprintf(line + at, sizeof(line) - (size_t)at, ", %s %s", pt_page_say(p, "measured"),
                       t);
    double warmup = 0;
    if (pt_result_get_real(r, "warmup_s", &warmup) && warmup > 0 && warmup < 1e9) {
        pt_time_print(t, sizeof(t), (pt_ns)(warmup * 1e9 + 0.5));
        snprintf(line + at, sizeof(line) - (size_t)at, ", %s %s",
                 pt_page_say(p, "after a warm-up of"), t);
    }
    pt_page_sentence(p, PT_INK_DIM, "", line);
}

static void title(struct pt_page *p, const struct pt_result *r)
{
    const char *workload = pt_result_get_str(r, "test.workload");
    const char *target = pt_result_get_str(r, "test.target");
    const char *host = pt_result_get_str(r, "peer.host");
    char line[700];
    snprintf(line, sizeof(line), "pitot %s  %s%s%s%s", workload ? workload : "",
             target ? target : pt_page_say(p, "this machine, loopback"),
             target && host ? "  (" : "", target && host ? host : "", target && host ? ")" : "");
    pt_page_sentence(p, PT_INK_PLAIN, "", line);
    load_line(p, r);
    enum pt_result_status s = pt_result_get_status(r);
    if (s != PT_RESULT_OK)
        pt_page_row(p, PT_INK_RED, "status",
                    pt_page_say(p, s == PT_RESULT_PARTIAL ? "partial" : "failed"));
}

/* ---- the answer */

static void headline(struct pt_page *p, const struct pt_result *r)
{
    const json_t *all = pt_result_at(r, "headline");
    pt_buf_adds(p->out, "\n");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *h = json_array_get(all, i);
        char value[PT_FIGURE_TEXT];
        pt_figure_of(h, "value", text_of(h, "unit"), value, sizeof(value));
        pt_page_row(p, i ? PT_INK_PLAIN : PT_INK_BOLD, text_of(h, "name"), value);
    }
}

static bool in_headline(const struct pt_result *r, const char *path)
{
    const json_t *all = pt_result_at(r, "headline");
    for (size_t i = 0; i < json_array_size(all); i++) {
        if (!strcmp(text_of(json_array_get(all, i), "path"), path))
            return true;
    }
    return false;
}

/* ---- what it rests on */

/* The sum of two directions is in no headline and in neither of their rows. */
static bool is_told_by_direction(const struct pt_result *r, const char *path)
{
    return !strncmp(path, "rates.", 6) && json_array_size(pt_result_at(r, "directions")) > 0;
}

static void details(struct pt_page *p, const struct pt_result *r)
{
    for (const struct pt_figure *f = pt_figures; f->name; f++) {
        char value[PT_FIGURE_TEXT];
        double v = 0;
        if (f->tabled || !pt_figure_belongs(f, r) || in_headline(r, f->path) ||
            !pt_result_get_real(r, f->path, &v))
            continue;
        if (is_told_by_direction(r, f->path) || (f->hide_zero && !(v > 0)))
            continue;
        pt_page_row(p, PT_INK_PLAIN, f->name, pt_figure_show(value, sizeof(value), v, f->unit));
    }
}

static void errors(struct pt_page *p, const struct pt_result *r)
{
    const char *kind;
    json_t *count, *all = pt_result_at(r, "totals.errors");
    json_object_foreach(all, kind, count)
    {
        char value[PT_FIGURE_TEXT], line[200];
        if (!(json_number_value(count) > 0))
            continue;
        pt_number_show(value, sizeof(value), json_number_value(count));
        snprintf(line, sizeof(line), "%s %s", value, kind);
        pt_page_row(p, PT_INK_YELLOW, "errors", line);
    }
}

/* ---- what pitot chose, what limited it, what to know */

/* What the kernels made of the socket options that were asked for. */
static void granted(struct pt_page *p, const struct pt_result *r)
{
    static const struct {
        const char *name, *asked, *key, *unit;
    } rows[] = {{"--mss", "test.params.mss", "mss", " bytes"},
                {"--tos", "test.params.tos", "tos", ""},
                {"--sndbuf", "test.params.sndbuf", "sndbuf_bytes", " bytes"},
                {"--rcvbuf", "test.params.rcvbuf", "rcvbuf_bytes", " bytes"}};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        const json_t *here = json_object_get(pt_result_at(r, "sockets.local"), rows[i].key);
        const json_t *there = json_object_get(pt_result_at(r, "sockets.peer"), rows[i].key);
        uint64_t asked = 0;
        if (!pt_result_get_u64(r, rows[i].asked, &asked) || !asked ||
            !(json_is_integer(here) || json_is_integer(there)))
            continue;
        const json_t *one = json_is_integer(here) ? here : there;
        char line[160], other[80] = "";
        if (json_is_integer(there) && !json_equal(one, there))
            snprintf(other, sizeof(other), ", %" JSON_INTEGER_FORMAT "%s there",
                     json_integer_value(there), rows[i].unit);
        snprintf(line, sizeof(line), "%s %" JSON_INTEGER_FORMAT "%s%s", rows[i].name,
                 json_integer_value(one), rows[i].unit, other);
        pt_page_row(p, PT_INK_PLAIN, "granted", line);
    }
}

static void chosen(struct pt_page *p, const struct pt_result *r)
{
    const json_t *all = pt_result_at(r, "chosen");
    const char *engine = pt_result_get_str(r, "generator.engine");
    const char *placement = pt_result_get_str(r, "placement.text");
    if (!json_array_size(all) && !engine && !placement)
        return;
    pt_page_heading(p, "Chosen");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *c = json_array_get(all, i), *value = json_object_get(c, "value");
        const char *why = text_of(c, "why");
        char shown[PT_FIGURE_TEXT], line[512];
        if (json_is_number(value))
            pt_figure_of(c, "value", text_of(c, "unit"), shown, sizeof(shown));
        else
            snprintf(shown, sizeof(shown), "%s", text_of(c, "value"));
        snprintf(line, sizeof(line), "%s%s%s%s", shown, *why ? " (" : "", why, *why ? ")" : "");
        pt_page_row(p, PT_INK_PLAIN, text_of(c, "what"), line);
    }
    if (engine)
        pt_page_row(p, PT_INK_PLAIN, "event loop", engine);
    if (placement)
        pt_page_row(p, PT_INK_PLAIN, "placement", placement);
    granted(p, r);
}

static void limits(struct pt_page *p, const struct pt_result *r)
{
    const json_t *all = pt_result_at(r, "limited_by");
    if (json_array_size(all))
        pt_page_heading(p, "Limited by");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *l = json_array_get(all, i);
        const char *where = text_of(l, "where"), *evidence = text_of(l, "evidence");
        char line[900];
        snprintf(line, sizeof(line), "%s%s%s%s%s", pt_page_say(p, text_of(l, "what")),
                 *where ? ", " : "", where, *evidence ? ": " : "", evidence);
        pt_page_sentence(p, PT_INK_PLAIN, "  - ", line);
        if (*text_of(l, "advice")) {
            snprintf(line, sizeof(line), "%s: %s", pt_page_say(p, "try"), text_of(l, "advice"));
            pt_page_sentence(p, PT_INK_DIM, "    ", line);
        }
    }
    if (json_is_false(pt_result_at(r, "generator.valid"))) {
        pt_buf_adds(p->out, "\n");
        pt_page_sentence(p, PT_INK_RED, "",
                         pt_page_say(p, "The generator was the limit: the figures show this "
                                        "machine, not the target."));
    }
}

static void expectations(struct pt_page *p, const struct pt_result *r)
{
    const json_t *all = pt_result_at(r, "expect");
    if (json_array_size(all))
        pt_page_heading(p, "Expected");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *x = json_array_get(all, i);
        bool ok = json_is_true(json_object_get(x, "ok"));
        char value[PT_FIGURE_TEXT], line[256];
        pt_figure_of(x, "value", pt_figure_unit(text_of(x, "path")), value, sizeof(value));
        snprintf(line, sizeof(line), "%s (%s = %s)", pt_page_say(p, ok ? "held" : "not held"),
                 text_of(x, "path"), value);
        pt_page_row(p, ok ? PT_INK_GREEN : PT_INK_RED, text_of(x, "text"), line);
    }
}

static void sentences(struct pt_page *p, const struct pt_result *r, const char *path,
                      const char *heading, enum pt_ink ink)
{
    const json_t *all = pt_result_at(r, path);
    if (json_array_size(all))
        pt_page_heading(p, heading);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *text = json_string_value(json_array_get(all, i));
        pt_page_sentence(p, ink, "  - ", text ? text : "");
    }
}

static int render(const struct pt_result *r, const struct pt_sink_style *style, struct pt_buf *out,
                  struct pt_err *e)
{
    struct pt_page p = {.out = out, .style = style};
    title(&p, r);
    headline(&p, r);
    details(&p, r);
    errors(&p, r);
    pt_text_latency(&p, r);
    pt_text_directions(&p, r);
    pt_text_path(&p, r);
    pt_text_steps(&p, r);
    pt_text_hosts(&p, r);
    pt_text_repeat(&p, r);
    chosen(&p, r);
    limits(&p, r);
    expectations(&p, r);
    sentences(&p, r, "warnings", "Warnings", PT_INK_YELLOW);
    sentences(&p, r, "notes", "Notes", PT_INK_PLAIN);
    pt_page_files(&p);
    return out->failed ? pt_fail(e, out->failed, "the report is too long to print") : 0;
}

const struct pt_sink pt_sink_text = {.name = "text", .render = render};
