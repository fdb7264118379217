/* doctor.c: `pitot doctor`: what on this host would spoil a measurement.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/doctor.h"
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "sink/say.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MOST ((size_t)64 << 10)

struct doctor_opts {
    uint64_t connections;
    bool fix, undo;
    char undo_file[256], interface[16];
};

static const char *const without[] = {"csv", "html", "quiet", NULL};

static const struct pt_opt own_opts[] = {
    {PT_OPT_FIELD(struct doctor_opts, connections, PT_OPT_COUNT), .name = "for", .metavar = "N",
     .fallback = "1000", .min = 1, .max = 1000000000, .group = "What",
     .help = "what a measurement with N connections wants"},
    {PT_OPT_FIELD(struct doctor_opts, interface, PT_OPT_STRING), .name = "if", .metavar = "NAME",
     .help = "looks at this interface only; else at each that is hardware"},
    {PT_OPT_FIELD(struct doctor_opts, fix, PT_OPT_BOOL), .name = "fix",
     .help = "sets the kernel settings that need attention; keeps what they were"},
    {PT_OPT_FIELD(struct doctor_opts, undo, PT_OPT_BOOL), .name = "undo",
     .help = "restores exactly what --fix found"},
    {PT_OPT_FIELD(struct doctor_opts, undo_file, PT_OPT_STRING), .name = "undo-file",
     .metavar = "F", .fallback = PT_DOCTOR_UNDO_FILE, .help = "where --fix keeps it"},
    {0}};

static const struct pt_manual manual = {
    .command = "doctor",
    .summary = "what on this host would spoil a measurement",
    .usage = "[options]",
    .about =
        "Looks at limits, kernel settings and the machine, and says of each whether it is ok, "
        "needs "
        "attention, or is unknown because it cannot be read here; with what is there, what is "
        "wanted, why, and what would set it.\n"
        "\n"
        "A fix sets what needs attention and is a kernel setting (sysctl) in the list, nothing "
        "else. What the settings were is written to the undo file first; a second fix keeps those "
        "first values. An undo restores them and removes the file; a value that somebody changed "
        "meanwhile is reported and left alone.\n"
        "\n"
        "Exit status: 0 when all is ok or was set, also when something is unknown; 1 when "
        "something still needs attention; 2 for a mistake on the command line.",
    .examples = "pitot doctor\tlooks only\n"
                "pitot doctor --for 2M\twhat two million connections want\n"
                "pitot doctor --fix\tas root: sets it until the next start\n"
                "pitot doctor --undo\tand takes it back"};

/* ---- text */

static const char *value(const char *text, char out[PT_DOCTOR_VALUE])
{
    size_t i = 0;
    for (; text[i]; i++)
        out[i] = text[i] == '\t' ? ' ' : text[i];
    out[i] = 0;
    return i ? out : "-";
}

static void print_line(const struct pt_doctor_line *l, const struct pt_output *o,
                       struct pt_buf *out)
{
    static const char *const ink[] = {"\x1b[32m", "\x1b[33m", "\x1b[2m"};
    char current[PT_DOCTOR_VALUE], wanted[PT_DOCTOR_VALUE];
    const char *state = pt_say(o->chinese, pt_doctor_state_name(l->state));
    int pad = 10 - (int)pt_text_columns(state);
    pt_buf_addf(out, "%s%s%s%*s %-32s %s %s, %s %s\n", o->color ? ink[l->state] : "", state,
                o->color ? "\x1b[0m" : "", pad > 0 ? pad : 0, "", l->name,
                pt_say(o->chinese, "current"), value(l->current, current),
                pt_say(o->chinese, "wanted"), value(l->wanted, wanted));
    if (l->note[0])
        pt_buf_addf(out, "           %s\n", l->note);
    if (l->why)
        pt_buf_addf(out, "           %s\n", pt_say(o->chinese, l->why));
    if (l->command[0])
        pt_buf_addf(out, "           %s: %s\n", pt_say(o->chinese, "would fix it"), l->command);
}

static int print(const struct pt_doctor *d, const struct pt_output *o)
{
    struct pt_buf text;
    pt_buf_init(&text, TEXT_MOST);
    for (unsigned i = 0; i < d->n; i++)
        print_line(&d->line[i], o, &text);
    for (int s = PT_DOCTOR_OK; s <= PT_DOCTOR_UNKNOWN; s++)
        pt_buf_addf(&text, "%s%u %s", s ? ", " : "\n", pt_doctor_count(d, (enum pt_doctor_state)s),
                    pt_say(o->chinese, pt_doctor_state_name((enum pt_doctor_state)s)));
    pt_buf_adds(&text, "\n");
    int rc = pt_output_print(o, &text);
    pt_buf_fini(&text);
    return rc;
}

/* ---- the document: `pitot.doctor/1`, docs/doctor.schema.json */

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

static int write_document(const struct doctor_opts *o, const char *path, const struct pt_doctor *d,
                          struct pt_err *e)
{
    json_t *checks = json_array();
    for (unsigned i = 0; i < d->n; i++) {
        const struct pt_doctor_line *l = &d->line[i];
        json_array_append_new(
            checks,
            json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b}", "name", l->name, "state",
                      pt_doctor_state_name(l->state), "current", text_or_null(l->current), "wanted",
                      text_or_null(l->wanted), "why", text_or_null(l->why), "command",
                      text_or_null(l->command), "note", text_or_null(l->note), "set", l->fixed));
    }
    json_t *doc = json_pack("{s:s, s:s, s:s, s:I, s:o}", "schema", "pitot.doctor/1", "version",
                            PT_VERSION, "action",
                            o->undo  ? "undo"
                            : o->fix ? "fix"
                                     : "look",
                            "connections", (json_int_t)o->connections, "checks", checks);
    char *dumped = doc ? json_dumps(doc, JSON_INDENT(2)) : NULL;
    struct pt_buf text;
    pt_buf_init(&text, PT_SINK_CEILING);
    int rc = dumped && pt_buf_adds(&text, dumped) == 0 && pt_buf_adds(&text, "\n") == 0
                 ? pt_sink_store(path, &text, e)
                 : pt_fail(e, -ENOMEM, "no memory for the document");
    pt_buf_fini(&text);
    free(dumped);
    json_decref(doc);
    return rc;
}

/* ---- the command */

static int examine(const struct doctor_opts *o, const struct pt_reporting *asked, struct pt_err *e)
{
    static struct pt_doctor d;
    struct pt_output out;
    if (o->fix && o->undo)
        return pt_fail(e, -EINVAL, "--fix and --undo are opposites; give one of them");
    if (o->interface[0] && !if_nametoindex(o->interface))
        return pt_fail(e, -EINVAL, "--if %s: there is no such interface here", o->interface);
    snprintf(d.interface, sizeof(d.interface), "%s", o->interface);
    pt_output_init(&out, asked);
    d.connections = o->connections;
    d.pause = PT_S;
    int rc = 0;
    if (o->undo) {
        rc = pt_doctor_undo(&d, o->undo_file, e);
    } else {
        pt_doctor_look(&d);
        if (o->fix)
            rc = pt_doctor_fix(&d, o->undo_file, e);
    }
    if (rc < 0 && d.n == 0)
        return rc;
    int printed = print(&d, &out);
    if (rc >= 0 && asked->json[0])
        rc = write_document(o, asked->json, &d, e);
    if (rc < 0)
        return rc;
    if (printed < 0)
        return pt_fail(e, printed, "not everything could be written");
    return pt_doctor_count(&d, PT_DOCTOR_ATTENTION) ? PT_EXIT_FAILED : PT_EXIT_OK;
}

static int run(int argc, const char *const *argv)
{
    static struct doctor_opts o;
    static struct pt_reporting asked;
    struct pt_opts sets[] = {{.table = own_opts, .values = &o},
                             {.table = pt_reporting_opts, .values = &asked, .without = without}};
    struct pt_args args = {0};
    struct pt_err e = {0};
    int rc = pt_opts_init(&sets[0], &e);
    if (rc == 0)
        rc = pt_opts_init(&sets[1], &e);
    if (pt_cmd_help(&manual, sets, 2, argc, argv))
        return PT_EXIT_OK;
    if (rc == 0)
        rc = pt_opts_parse(sets, 2, argc, argv, &args, &e);
    if (rc == 0)
        rc = pt_reporting_check(&sets[1], &e);
    if (rc == 0 && args.n)
        rc = pt_fail(&e, -EINVAL, "it takes no argument such as \"%s\"; it is about this machine",
                     args.at[0]);
    if (rc == 0)
        rc = pt_output_check(&asked, NULL, &e);
    if (rc == 0)
        rc = examine(&o, &asked, &e);
    if (rc < 0)
        return pt_cmd_complain(&manual, &e, rc == -EINVAL ? PT_EXIT_USAGE : PT_EXIT_FAILED);
    return rc;
}

const struct pt_cmd pt_cmd_doctor = {&manual, run};
