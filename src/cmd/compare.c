/* compare.c: `pitot compare`: results side by side.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/compare.h"

#include "cmd/cmd.h"
#include "cmd/output.h"
#include "model/run_document.h"
#include "sink/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const without[] = {"csv", "html", "quiet", NULL};

static const struct pt_manual manual = {
    .command = "compare",
    .summary = "results side by side: ratio, interval, what differs",
    .usage = "A B [C...] [options]",
    .about =
        "Compares what measurements, or runs of plans, stored with --json. The first is what the "
        "others are compared with. Each side is a file, or several joined by commas, which count "
        "as runs of the same thing: a.json,b.json.\n\n"
        "A ratio is told with its 95 % interval over the runs of both sides; where that excludes "
        "1, the difference is beyond noise. A single run has no interval: measure with --repeat, "
        "and in turns where the machine is noisy. Of some twenty figures that did not change, one "
        "is expected to look as if it had.\n\n"
        "Then comes what is not the same in the circumstances: options, kernel, settings, "
        "interfaces, what was chosen.",
    .examples = "pitot compare before.json after.json\ttwo runs of lat, bw or pps\n"
                "pitot compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json\trepeated by hand\n"
                "pitot compare monday.json tuesday.json --json week.json\tfor a program"};

/* ---- reading the sides */

struct side {
    const struct pt_reporting *asked; /* what must not overwrite a document that is read */
    struct pt_result **document;
    size_t n;
};

static int read_one(struct side *s, const char *path, struct pt_err *e)
{
    int rc = pt_output_check(s->asked, path, e);
    if (rc < 0)
        return rc;
    struct pt_result **grown = realloc(s->document, (s->n + 1) * sizeof(struct pt_result *));
    if (!grown)
        return pt_fail(e, -ENOMEM, "no memory for %s", path);
    s->document = grown;
    rc = pt_result_load_by(pt_document_parse, path, &s->document[s->n], e);
    s->n += rc == 0;
    return rc;
}

/* "a.json,b.json"; a file whose name has a comma is one file. */
static int read_side(struct side *s, const char *text, struct pt_err *e)
{
    char path[PT_PATH_LEN];
    if (!strchr(text, ',') || access(text, F_OK) == 0)
        return read_one(s, text, e);
    while (true) {
        size_t n = strcspn(text, ",");
        if (!n || n >= sizeof(path))
            return pt_fail(e, -EINVAL, "a name between commas is empty or too long");
        memcpy(path, text, n);
        path[n] = '\0';
        int rc = read_one(s, path, e);
        if (rc < 0 || !text[n])
            return rc;
        text += n + 1;
    }
}

static void free_side(struct side *s)
{
    for (size_t i = 0; i < s->n; i++)
        pt_result_free(s->document[i]);
    free(s->document);
}

/* ---- the command */

static int print(const struct pt_result *r, const struct pt_reporting *asked, struct pt_err *e)
{
    static const struct pt_reports reports = {.text = &pt_sink_compare_text};
    struct pt_output out;
    pt_output_init(&out, asked);
    out.reports = &reports;
    out.kept = true;
    return pt_output_result(&out, r) < 0 ? pt_fail(e, -EIO, "not everything could be written") : 0;
}

static int compare(const struct pt_args *args, const struct pt_reporting *asked, struct pt_err *e)
{
    struct side side[PT_COMPARE_SIDES] = {{0}};
    struct pt_compare_side sides[PT_COMPARE_SIDES];
    struct pt_result *r = NULL;
    int rc = 0;
    for (size_t i = 0; i < args->n && rc == 0; i++) {
        side[i].asked = asked;
        rc = read_side(&side[i], args->at[i], e);
        sides[i] = (struct pt_compare_side){args->at[i], side[i].document, side[i].n};
    }
    if (rc == 0)
        rc = pt_compare(sides, args->n, &r, e);
    if (rc == 0)
        rc = print(r, asked, e);
    pt_result_free(r);
    for (size_t i = 0; i < args->n; i++)
        free_side(&side[i]);
    return rc;
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
    if (rc == 0 && (args.n < 2 || args.n > PT_COMPARE_SIDES))
        rc = pt_fail(&e, -EINVAL,
                     "expected two files or more, which measurements wrote with --json; %d at most",
                     PT_COMPARE_SIDES);
    if (rc == 0)
        rc = pt_reporting_check(&set, &e);
    if (rc < 0)
        return pt_cmd_complain(&manual, &e, PT_EXIT_USAGE);
    rc = compare(&args, &asked, &e);
    return rc < 0 ? pt_cmd_complain(&manual, &e, rc == -EINVAL ? PT_EXIT_USAGE : PT_EXIT_FAILED)
                  : PT_EXIT_OK;
}

const struct pt_cmd pt_cmd_compare = {&manual, run};
