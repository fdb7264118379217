/* reporting.c: see reporting.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/reporting.h"

#include <errno.h>
#include <string.h>

static const char *const lang_names[] = {"auto", "en", "zh", NULL};

#define FIELD(field, type) PT_OPT_FIELD(struct pt_reporting, field, type)

/* clang-format off */
const struct pt_opt pt_reporting_opts[] = {
    {FIELD(json, PT_OPT_STRING), .name = "json", .metavar = "F", .flags = PT_OPT_LOCAL,
     .group = "Report",
     .help = "write the document to F; - is stdout, the text then goes to stderr"},
    {FIELD(csv, PT_OPT_STRING), .name = "csv", .metavar = "F", .flags = PT_OPT_LOCAL,
     .help = "write one row per interval to F and the totals, a row per test, to F with .summary "
             "before its ending; - is stdout: both, one after the other"},
    {FIELD(html, PT_OPT_STRING), .name = "html", .metavar = "F", .flags = PT_OPT_LOCAL,
     .help = "write the report as one page for a browser to F, which needs nothing else; - is "
             "stdout, the text then goes to stderr"},
    {FIELD(quiet, PT_OPT_BOOL), .name = "quiet", .letter = 'q', .flags = PT_OPT_LOCAL,
     .help = "no live lines"},
    {FIELD(no_color, PT_OPT_BOOL), .name = "no-color", .flags = PT_OPT_LOCAL,
     .help = "no colour, even on a terminal (also: NO_COLOR in the environment)"},
    {FIELD(lang, PT_OPT_ENUM), .name = "lang", .names = lang_names, .fallback = "auto",
     .flags = PT_OPT_LOCAL, .help = "language of the report; auto follows LC_ALL, LC_MESSAGES, LANG"},
    {FIELD(help, PT_OPT_BOOL), .name = "help", .letter = 'h', .flags = PT_OPT_LOCAL,
     .help = "this text"},
    {FIELD(man, PT_OPT_BOOL), .name = "man", .flags = PT_OPT_HIDDEN, .help = "this text as a man page"},
    {0},
};
/* clang-format on */

int pt_reporting_check(const struct pt_opts *set, struct pt_err *e)
{
    const struct pt_reporting *r = set->values;
    const struct {
        const char *name, *path;
    } file[] = {{"json", r->json}, {"csv", r->csv}, {"html", r->html}};
    for (size_t i = 0; i < PT_COUNT(file); i++) {
        if (!file[i].path[0] && pt_opt_given(set, 1, file[i].name))
            return pt_fail(e, -EINVAL, "--%s needs the name of a file, or - for stdout",
                           file[i].name);
        for (size_t k = i + 1; k < PT_COUNT(file); k++) {
            if (!file[i].path[0] || strcmp(file[i].path, file[k].path) != 0)
                continue;
            if (!strcmp(file[i].path, "-"))
                return pt_fail(e, -EINVAL,
                               "--%s and --%s cannot both go to stdout: give one a file",
                               file[i].name, file[k].name);
            return pt_fail(e, -EINVAL, "--%s and --%s name the same file: give one another name",
                           file[i].name, file[k].name);
        }
    }
    return 0;
}
