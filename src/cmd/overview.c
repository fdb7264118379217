/* overview.c: see overview.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/overview.h"

#include <string.h>

#define SYNOPSIS                                                                                   \
    "pitot COMMAND [HOST] [options]", "pitot help [COMMAND]", "pitot --man [COMMAND]",             \
        "pitot --version"

/* A row of a section: what, and what it means. */
struct row {
    const char *head, *text;
};

struct section {
    const char *name;
    const char *before; /* a paragraph; NULL: none */
    const struct row *rows;
};

static const char description[] =
    "pitot measures the network between two hosts, or of one machine: bandwidth, packets per "
    "second and latency. `pitot serve` runs on one host and answers; the other commands run on the "
    "other host and name it. Without HOST they start a `serve` of their own on the loopback and "
    "measure this machine. `pitot run` runs a plan of several tests. `pitot truth` injects known "
    "delays and losses, to check the figures of "
    "pitot or of another tool.";

static const struct row values[] = {
    {"HOST", "`name`, `name:port`, `10.0.0.2`, `[fd00::2]:port`, `[fe80::1%eth0]`; port 7411 "
             "unless given, TCP and UDP."},
    {"size", "`1500`, `64k`, `1M` (powers of 1000), `64KiB`, `1MiB`; a bare number is bytes."},
    {"rate", "`1000`, `100k` operations per second; `100mbit`, `10gbit` bits per second."},
    {"time", "`100ns`, `250us`, `10ms`, `1.5s`, `1m`, `2h`; a bare number is seconds."},
    {"share", "`0.1%`."},
    {0}};

static const struct row exits[] = {
    {"0", "Done."},
    {"1", "The test failed or is partial: the peer was lost, no operation succeeded, a file could "
          "not be written. `pitot doctor`: something needs attention."},
    {"2", "Usage: the command line was refused, nothing was measured."},
    {"3", "A threshold given with `--expect` was not held."},
    {"130", "Interrupted. The report of what was done comes all the same."},
    {0}};

static const struct row files[] = {
    {"--secret-file", "One shared secret, the same on both hosts, at most 4096 bytes; a line end "
                      "at its end does not count. A file that others may read is refused: `chmod "
                      "600`."},
    {"$TMPDIR/pitot-ID.json", "The result document, when a file that was asked for cannot be "
                              "written and no `--json` was; without TMPDIR in /tmp."},
    {"plans/", "Ready plans for `pitot run`, in the source tree."},
    {"/run/pitot/doctor-undo.json", "What kernel settings were before `pitot doctor --fix`."},
    {0}};

static const struct row environment[] = {
    {"LC_ALL, LC_MESSAGES, LANG", "The first that is set chooses the language of the report with "
                                  "`--lang auto`: Chinese when it begins with `zh`, else English. "
                                  "Numbers are written the same way in every locale."},
    {"NO_COLOR, TERM", "No colour when NO_COLOR is set, or TERM is `dumb` or not set."},
    {"TMPDIR", "See above."},
    {0}};

static const struct section sections[] = {
    {"VALUES",
     "Options are written `--name=value`, `--name value`, `-n5` or `-n 5`, before or after HOST.",
     values},
    {"EXIT STATUS", NULL, exits},
    {"FILES", NULL, files},
    {"ENVIRONMENT", NULL, environment},
};

static const char examples[] = "pitot lat\tTCP round trips over this machine's loopback\n"
                               "pitot serve --listen :7411\ton one host\n"
                               "pitot bw 10.0.0.2\ton the other: bandwidth to it\n"
                               "pitot lat 10.0.0.2 --expect 'p99<1ms'\texit status 3 when it is "
                               "slower";

void pt_overview_help(const struct pt_cmd *const *commands, size_t n, struct pt_buf *out)
{
    pt_buf_adds(out, "usage: pitot COMMAND [HOST] [options]\n\n");
    for (size_t i = 0; i < n; i++)
        pt_buf_addf(out, "  %-8s %s\n", commands[i]->manual->command, commands[i]->manual->summary);
    pt_buf_adds(out,
                "\n"
                "HOST runs `pitot serve`; without HOST this machine's loopback is measured.\n"
                "pitot COMMAND --help lists the options of a command, pitot --version tells the\n"
                "version, pitot --man [COMMAND] prints a man page.\n");
}

/* ---- the man page */

static void line(struct pt_buf *out, const char *text)
{
    pt_manual_roff(out, text, strlen(text));
    pt_buf_adds(out, "\n");
}

static void heading(struct pt_buf *out, const char *head)
{
    pt_buf_adds(out, ".TP\n\\fB");
    pt_manual_roff(out, head, strlen(head));
    pt_buf_adds(out, "\\fR\n");
}

static void section(struct pt_buf *out, const struct section *s)
{
    pt_buf_addf(out, ".SH %s\n", s->name);
    if (s->before)
        line(out, s->before);
    for (const struct row *r = s->rows; r->head; r++) {
        heading(out, r->head);
        line(out, r->text);
    }
}

static void head(struct pt_buf *out)
{
    static const char *const synopsis[] = {SYNOPSIS};
    pt_manual_man_title("pitot", out);
    pt_buf_adds(out, ".SH NAME\npitot \\- measures networks: bandwidth, packets per second, "
                     "latency\n.SH SYNOPSIS\n");
    for (size_t i = 0; i < PT_COUNT(synopsis); i++) {
        pt_buf_adds(out, i ? ".br\n" : "");
        line(out, synopsis[i]);
    }
    pt_buf_adds(out, ".SH DESCRIPTION\n");
    line(out, description);
}

void pt_overview_man(const struct pt_cmd *const *commands, size_t n, struct pt_buf *out)
{
    head(out);
    pt_buf_adds(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < n; i++) {
        pt_buf_addf(out, ".TP\n\\fBpitot\\-%s\\fR(1)\n", commands[i]->manual->command);
        line(out, commands[i]->manual->summary);
    }
    for (size_t i = 0; i < PT_COUNT(sections); i++)
        section(out, &sections[i]);
    pt_manual_man_examples(examples, out);
    pt_buf_adds(out, ".SH SEE ALSO\n");
    for (size_t i = 0; i < n; i++)
        pt_buf_addf(out, "\\fBpitot\\-%s\\fR(1)%s\n", commands[i]->manual->command,
                    i + 1 < n ? "," : "");
}
