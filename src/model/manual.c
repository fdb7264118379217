/* manual.c: see manual.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/manual.h"

#include <stdio.h>
#include <string.h>

#define COLUMNS 80
#define HELP_AT 28

static bool shown(const struct pt_opts *o, const struct pt_opt *opt)
{
    return !(opt->flags & PT_OPT_HIDDEN) && !pt_opt_is_without(o, opt->name);
}

/* "N" or "uniform|poisson" or nothing. */
static void add_metavar(const struct pt_opt *opt, struct pt_buf *out)
{
    if (opt->metavar)
        pt_buf_adds(out, opt->metavar);
    for (size_t i = 0; opt->names && opt->names[i]; i++)
        pt_buf_addf(out, "%s%s", i ? "|" : "", opt->names[i]);
}

/* The help with its default; a default that is the zero value goes without saying. */
static void add_text(const struct pt_opts *o, const struct pt_opt *opt, struct pt_buf *out)
{
    const char *fallback = pt_opt_fallback(o, opt);
    pt_buf_adds(out, pt_opt_help(o, opt));
    if (fallback && opt->type != PT_OPT_BOOL)
        pt_buf_addf(out, " (default %s)", fallback);
}

/* Words of `text` from column `at` on, broken before column 80 and continued at `indent`. */
static void wrap(struct pt_buf *out, const char *text, size_t at, size_t indent)
{
    bool first = true;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (!first && at + 1 + n > COLUMNS) {
            pt_buf_addf(out, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        if (!first) {
            pt_buf_adds(out, " ");
            at++;
        }
        pt_buf_add(out, text, n);
        at += n;
        first = false;
        text += n;
        text += strspn(text, " ");
    }
    pt_buf_adds(out, "\n");
}

static void help_row(const struct pt_opts *o, const struct pt_opt *opt, struct pt_buf *out)
{
    struct pt_buf text;
    pt_buf_init(&text, 4096);
    size_t start = out->len;
    if (opt->letter)
        pt_buf_addf(out, "  -%c, --%s", opt->letter, opt->name);
    else
        pt_buf_addf(out, "      --%s", opt->name);
    if (opt->type != PT_OPT_BOOL)
        pt_buf_adds(out, " ");
    add_metavar(opt, out);
    size_t used = out->len - start;
    if (used + 2 > HELP_AT)
        pt_buf_addf(out, "\n%*s", HELP_AT, "");
    else
        pt_buf_addf(out, "%*s", (int)(HELP_AT - used), "");
    add_text(o, opt, &text);
    wrap(out, pt_buf_str(&text), HELP_AT, HELP_AT);
    pt_buf_fini(&text);
}

/* Lines of `text`, each its own paragraph when empty lines part them. */
static void paragraphs(const char *text, struct pt_buf *out)
{
    char paragraph[1024];
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        snprintf(paragraph, sizeof(paragraph), "%.*s", (int)n, text);
        wrap(out, paragraph, 0, 0);
        text += n + (text[n] == '\n');
    }
}

static void help_examples(const char *text, struct pt_buf *out)
{
    if (!text)
        return;
    pt_buf_adds(out, "\nExamples\n");
    while (*text) {
        size_t n = strcspn(text, "\n"), command = strcspn(text, "\t\n");
        pt_buf_addf(out, "  %.*s\n", (int)command, text);
        if (command < n)
            pt_buf_addf(out, "      %.*s\n", (int)(n - command - 1), text + command + 1);
        text += n + (text[n] == '\n');
    }
}

void pt_manual_help(const struct pt_manual *m, const struct pt_opts *sets, size_t n,
                    struct pt_buf *out)
{
    pt_buf_addf(out, "usage: pitot %s%s%s\n\n", m->command, m->usage ? " " : "",
                m->usage ? m->usage : "");
    pt_buf_addf(out, "%s: %s\n", m->command, m->summary);
    if (m->about) {
        pt_buf_adds(out, "\n");
        paragraphs(m->about, out);
    }
    const char *printed = NULL;
    for (size_t s = 0; s < n; s++) {
        const char *group = "Options";
        for (const struct pt_opt *opt = sets[s].table; opt && opt->name; opt++) {
            group = opt->group ? opt->group : group;
            if (!shown(&sets[s], opt))
                continue;
            if (!printed || strcmp(printed, group) != 0)
                pt_buf_addf(out, "\n%s\n", group);
            printed = group;
            help_row(&sets[s], opt, out);
        }
    }
    help_examples(m->examples, out);
}

/* ---- roff */

/* Characters that roff or its UTF-8 output would turn into others. */
static const char *roff_escape(char c)
{
    switch (c) {
    case '\\':
        return "\\e";
    case '-':
        return "\\-";
    case '\'':
        return "\\(aq";
    case '^':
        return "\\(ha";
    case '~':
        return "\\(ti";
    default:
        return NULL;
    }
}

void pt_manual_roff(struct pt_buf *out, const char *text, size_t n)
{
    bool code = false;
    if (n && text[0] == '.')
        pt_buf_adds(out, "\\&");
    for (size_t i = 0; i < n; i++) {
        const char *escape = roff_escape(text[i]);
        if (text[i] == '`') {
            code = !code;
            pt_buf_adds(out, code ? "\\fB" : "\\fR");
        } else if (escape) {
            pt_buf_adds(out, escape);
        } else {
            pt_buf_add(out, &text[i], 1);
        }
    }
}

static void roff(struct pt_buf *out, const char *text)
{
    pt_manual_roff(out, text, strlen(text));
}

/* A help phrase as a sentence: "flows in all" becomes "Flows in all.". A phrase that begins with a
 * keyword ("gso: …") or a value keeps its letters. */
static void man_sentence(struct pt_buf *out, char *text)
{
    size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    if (word && (text[word] == ' ' || text[word] == ','))
        text[0] = (char)(text[0] - 'a' + 'A');
    roff(out, text);
    pt_buf_adds(out, ".\n");
}

static void man_row(const struct pt_opts *o, const struct pt_opt *opt, struct pt_buf *out)
{
    struct pt_buf text;
    pt_buf_init(&text, 4096);
    pt_buf_adds(out, ".TP\n");
    if (opt->letter)
        pt_buf_addf(out, "\\fB\\-%c\\fR, ", opt->letter);
    pt_buf_adds(out, "\\fB\\-\\-");
    roff(out, opt->name);
    pt_buf_adds(out, "\\fR");
    if (opt->type != PT_OPT_BOOL) {
        add_metavar(opt, &text);
        pt_buf_adds(out, " \\fI");
        roff(out, pt_buf_str(&text));
        pt_buf_adds(out, "\\fR");
        pt_buf_reset(&text);
    }
    pt_buf_adds(out, "\n");
    add_text(o, opt, &text);
    if (text.len)
        man_sentence(out, text.bytes);
    pt_buf_fini(&text);
}

static void man_paragraphs(const char *text, struct pt_buf *out)
{
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        if (n)
            pt_manual_roff(out, text, n);
        else
            pt_buf_adds(out, ".PP");
        pt_buf_adds(out, "\n");
        text += n + (text[n] == '\n');
    }
}

void pt_manual_man_examples(const char *text, struct pt_buf *out)
{
    if (!text)
        return;
    pt_buf_adds(out, ".SH EXAMPLES\n");
    while (*text) {
        size_t n = strcspn(text, "\n"), command = strcspn(text, "\t\n");
        pt_buf_adds(out, ".TP\n\\fB");
        pt_manual_roff(out, text, command);
        pt_buf_adds(out, "\\fR\n");
        if (command < n)
            pt_manual_roff(out, text + command + 1, n - command - 1);
        pt_buf_adds(out, "\n");
        text += n + (text[n] == '\n');
    }
}

/* Without hyphenation and justification: values must stay as they are typed. */
void pt_manual_man_title(const char *name, struct pt_buf *out)
{
    pt_buf_adds(out, ".TH \"");
    roff(out, name);
    pt_buf_addf(out, "\" 1 \"\" \"pitot %s\" \"User commands\"\n.nh\n.ad l\n", PT_VERSION);
}

void pt_manual_man(const struct pt_manual *m, const struct pt_opts *sets, size_t n,
                   struct pt_buf *out)
{
    char name[64];
    snprintf(name, sizeof(name), "pitot-%s", m->command);
    pt_manual_man_title(name, out);
    pt_buf_addf(out, ".SH NAME\npitot\\-%s \\- ", m->command);
    roff(out, m->summary);
    pt_buf_addf(out, "\n.SH SYNOPSIS\n\\fBpitot %s\\fR ", m->command);
    roff(out, m->usage ? m->usage : "");
    pt_buf_adds(out, "\n");
    if (m->about) {
        pt_buf_adds(out, ".SH DESCRIPTION\n");
        man_paragraphs(m->about, out);
    }
    pt_buf_adds(out, ".SH OPTIONS\n");
    const char *printed = NULL;
    for (size_t s = 0; s < n; s++) {
        const char *group = "Options";
        for (const struct pt_opt *opt = sets[s].table; opt && opt->name; opt++) {
            group = opt->group ? opt->group : group;
            if (!shown(&sets[s], opt))
                continue;
            if (!printed || strcmp(printed, group) != 0) {
                pt_buf_adds(out, ".SS ");
                roff(out, group);
                pt_buf_adds(out, "\n");
            }
            printed = group;
            man_row(&sets[s], opt, out);
        }
    }
    pt_manual_man_examples(m->examples, out);
    pt_buf_adds(out,
                ".SH SEE ALSO\n\\fBpitot\\fR(1): how values are written, exit statuses, files, "
                "environment\n");
}
