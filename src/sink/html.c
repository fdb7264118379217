/* html.c: the report as one page that needs nothing else: style, document and script in one file.
 *
 * The page holds the document as it is, and what takes a decoder to see (the histograms), worked
 * out here once; web/report draws both. Nothing in the page can leave it or fetch anything: the
 * content security policy forbids all but its own inline style and script, and texts of the
 * document are data that the script puts into text nodes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/figures.h"
#include "model/run_document.h"
#include "sink/curve.h"
#include "sink/say.h"
#include "sink/sink.h"
#include "sink/web.h"

#include <errno.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"%s\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; script-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta name=\"generator\" content=\"pitot " PT_VERSION "\">\n"
    "<title>pitot</title>\n"
    "<style>\n";

/* JSON inside a script element. With JSON_ENSURE_ASCII all that is left to escape is what could
 * end the element or begin a comment, and jansson leaves those characters in strings alone. */
static int add_json(const char *bytes, size_t n, void *ctx)
{
    struct pt_buf *out = ctx;
    while (n) {
        size_t plain = 0;
        while (plain < n && bytes[plain] != '<' && bytes[plain] != '>' && bytes[plain] != '&')
            plain++;
        if (pt_buf_add(out, bytes, plain) < 0)
            return -1;
        if (plain < n && pt_buf_addf(out, "\\u%04x", (unsigned char)bytes[plain]) < 0)
            return -1;
        plain += plain < n;
        bytes += plain;
        n -= plain;
    }
    return 0;
}

static int add_element(struct pt_buf *out, const char *id, const json_t *value)
{
    pt_buf_addf(out, "<script type=\"application/json\" id=\"%s\">", id);
    /* 15 digits, as json.c: the page shows the figures that the stored document holds. */
    size_t flags = JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15);
    int rc = value ? json_dump_callback(value, add_json, out, flags) : -1;
    pt_buf_adds(out, "</script>\n");
    return rc;
}

/* What the histograms hold, one entry per test of a run, or the one of a result. */
static json_t *all_curves(const struct pt_result *r)
{
    json_t *all = json_array();
    if (!pt_run_is(r))
        json_array_append_new(all, pt_curves(r));
    else
        for (size_t i = 0; i < pt_run_tests(r); i++) {
            const struct pt_result test = pt_run_test(r, i);
            json_array_append_new(all, pt_curves(&test));
        }
    return all;
}

static json_t *words(void)
{
    const char *english, *chinese;
    json_t *all = json_object();
    for (size_t i = 0; (chinese = pt_say_entry(i, &english)); i++)
        json_object_set_new(all, english, json_string(chinese));
    return all;
}

static json_t *figures(void)
{
    json_t *all = json_array();
    for (const struct pt_figure *f = pt_figures; f->name; f++)
        json_array_append_new(all,
                              json_pack("{s:s, s:s, s:s, s:s?, s:b, s:b}", "name", f->name, "path",
                                        f->path, "unit", f->unit, "workloads", f->workloads,
                                        "tabled", f->tabled, "hide_zero", f->hide_zero));
    return all;
}

static int add_and_drop(struct pt_buf *out, const char *id, json_t *value)
{
    int rc = add_element(out, id, value);
    json_decref(value);
    return rc;
}

static int render(const struct pt_result *r, const struct pt_sink_style *style, struct pt_buf *out,
                  struct pt_err *e)
{
    pt_buf_addf(out, head, style->chinese ? "zh" : "en");
    pt_buf_add(out, pt_web_style, pt_web_style_size);
    pt_buf_adds(out, "</style>\n</head>\n<body>\n"
                     "<noscript>The report is drawn by the script in this file; allow it to run, "
                     "or use `pitot report` for text.</noscript>\n");
    int rc = add_element(out, "document", r->root);
    rc |= add_and_drop(out, "curves", all_curves(r));
    rc |= add_and_drop(out, "words", words());
    rc |= add_and_drop(out, "figures", figures());
    pt_buf_adds(out, "<script>\n");
    pt_buf_add(out, pt_web_script, pt_web_script_size);
    pt_buf_adds(out, "</script>\n</body>\n</html>\n");
    if (rc < 0 || out->failed)
        return pt_fail(e, out->failed ? out->failed : -ENOMEM,
                       "the page cannot be written: it is too large or memory ran out");
    return 0;
}

const struct pt_sink pt_sink_html = {.name = "html", .render = render};
