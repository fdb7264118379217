/* report.c: `pitot report`: any format from a stored result.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "model/run_document.h"

#include <errno.h>
#include <stdio.h>

static const char *const without[] = {"quiet", NULL};

static const struct pt_manual manual = {
    .command = "report",
    .summary = "any format from a stored result",
    .usage = "FILE [options]",
    .about =
        "Makes the report of a measurement, or of a whole plan, again from the document that was "
        "stored: as text, in either language, as a page for a browser, and as CSV. Nothing is "
        "computed anew, so the figures are the same ones.",
    .examples = "pitot report lat.json\tthe text report\n"
                "pitot report lat.json --lang zh\tthe same in Chinese\n"
                "pitot report lat.json --html lat.html\ta page with charts to hand over\n"
                "pitot report lat.json --csv lat.csv\tas a table"};

static int show(const char *path, const struct pt_reporting *asked, struct pt_err *e)
{
    struct pt_result *r = NULL;
    struct pt_output out;
    int rc = pt_result_load_by(pt_document_parse, path, &r, e);
    if (rc < 0)
        return rc;
    pt_output_init(&out, asked);
    out.kept = true;
    if (pt_run_is(r))
        out.reports = &pt_reports_run;
    rc = pt_output_result(&out, r);
    pt_result_free(r);
    return rc < 0 ? pt_fail(e, rc, "not everything could be written") : 0;
}

static int run(int argc, const char *const *argv)
{
    static struct pt_reporting asked;
    struct pt_opts set = {.table = pt_reporting_opts, .values = &asked, .without = without};
    struct pt_args args = {0};
    struct pt_err e = {0};
    int rc = pt_opts_init(&set, &e);
    if (pt_cmd_help(&manual, &set, 1, argc, argv))
        return PT_EXIT_OK;
    if (rc == 0)
        rc = pt_opts_parse(&set, 1, argc, argv, &args, &e);
    if (rc == 0 && args.n != 1)
        rc = pt_fail(&e, -EINVAL, "expected one FILE, which a measurement wrote with --json");
    if (rc == 0)
        rc = pt_reporting_check(&set, &e);
    if (rc == 0)
        rc = pt_output_check(&asked, args.at[0], &e);
    if (rc < 0)
        return pt_cmd_complain(&manual, &e, PT_EXIT_USAGE);
    rc = show(args.at[0], &asked, &e);
    return rc < 0 ? pt_cmd_complain(&manual, &e, PT_EXIT_FAILED) : PT_EXIT_OK;
}

const struct pt_cmd pt_cmd_report = {&manual, run};
