/* run.c: `pitot run`: a plan: several tests, several hosts, one document.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/run.h"
#include "cmd/cmd.h"
#include "cmd/group.h"
#include "cmd/rehearse.h"
#include "model/run_document.h"
#include "os/clock.h"
#include "os/signal.h"
#include "workload/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run_opts {
    struct pt_strs only, set;
    bool print_plan, dry_run;
};

#define OPTION(field, type) PT_OPT_FIELD(struct run_opts, field, type)

static const struct pt_opt own_opts[] = {
    {OPTION(only, PT_OPT_LIST), .name = "only", .metavar = "TEST", .group = "Plan",
     .help = "run this test alone, by its name; several allowed"},
    {OPTION(set, PT_OPT_LIST), .name = "set", .metavar = "KEY=VALUE",
     .help = "override an option in every test whose command has it, such as duration=5s; several "
             "allowed"},
    {OPTION(print_plan, PT_OPT_BOOL), .name = "print-plan",
     .help = "print the whole plan with every default filled in, and run nothing"},
    {OPTION(dry_run, PT_OPT_BOOL), .name = "dry-run",
     .help = "say what would run, on what addresses, for how long, and run nothing"},
    {0}};

static const struct pt_manual manual = {
    .command = "run",
    .summary = "a plan: several tests, several hosts, one document",
    .usage = "PLAN [options]",
    .about =
        "Runs the tests of a plan one after the other, or those under `together` at the same "
        "instant, and writes one document, which `pitot report` reads too. A plan is a YAML file; "
        "the keys of a test are the long options of its command.\n\n"
        "Hosts of a plan are network namespaces that are made for the run and are gone after it; "
        "without the rights for that, addresses of the loopback, and the report says so. A plan "
        "without hosts measures this machine as it is.\n\n"
        "The exit status is that of the worst test. Ctrl-C ends the present test with its report, "
        "and the run with the document of what was done.",
    .examples =
        "pitot run plans/quick.yaml\tthree short tests\n"
        "pitot run plans/ecs-network.yaml --set duration=5s --json ecs.json\tshorter than written\n"
        "pitot run plans/bufferbloat.yaml --only during\tone of its groups' tests\n"
        "pitot run plans/quick.yaml --dry-run\twhat would run"};

struct run {
    struct pt_plan_file plan;
    struct pt_stage stage;
    struct pt_output output;
    struct pt_reporting asked;
    struct pt_result *document;
};

/* ---- the tests */

static void show_test(void *ctx, const struct pt_result *test)
{
    struct run *r = ctx;
    const struct pt_sink_style style = {.color = r->output.color, .chinese = r->output.chinese};
    struct pt_buf text;
    pt_buf_init(&text, (size_t)1 << 20);
    pt_run_text_test(test, &style, &text);
    pt_output_text(&r->output, &text);
    pt_buf_fini(&text);
}

static void show_title(struct run *r)
{
    const struct pt_sink_style style = {.color = r->output.color, .chinese = r->output.chinese};
    struct pt_buf text;
    pt_buf_init(&text, (size_t)1 << 20);
    pt_run_text_title(r->document, &style, &text);
    pt_output_text(&r->output, &text);
    pt_buf_fini(&text);
}

/* "running pps from 3 hosts, lat: 11.0 s" */
static unsigned announce(struct run *r, uint32_t group)
{
    char line[400] = "running", time[PT_UNITS_TEXT];
    unsigned tests = 0;
    for (uint32_t i = 0; i < r->plan.tests; i++) {
        const struct pt_plan_test *t = r->plan.test[i];
        size_t n = strlen(line);
        if (t->group != group || t->left_out)
            continue;
        snprintf(line + n, sizeof(line) - n, "%s %s", tests++ ? "," : "", t->name);
        n = strlen(line);
        if (t->senders > 1)
            snprintf(line + n, sizeof(line) - n, " from %u hosts", t->senders);
    }
    pt_ns all = pt_rehearse_time(&r->plan, group);
    size_t n = strlen(line);
    if (all >= 0)
        snprintf(line + n, sizeof(line) - n, ": %s",
                 pt_time_show(time, sizeof(time), (double)all / 1e9));
    if (tests) {
        pt_output_say(&r->output, "");
        pt_output_say(&r->output, line);
    }
    return tests;
}

static int run_tests(struct run *r, struct pt_err *e)
{
    int rc = 0;
    for (uint32_t g = 0; g < r->plan.groups && rc == 0; g++) {
        if (pt_signal_seen()) {
            for (uint32_t i = 0; i < r->plan.tests; i++)
                if (r->plan.test[i]->group == g && !r->plan.test[i]->left_out)
                    pt_result_warn(r->document, "interrupted: %s was not run",
                                   r->plan.test[i]->name);
        } else if (announce(r, g)) {
            rc = pt_group_run(&r->stage, g, &r->output, r->document, show_test, r, e);
        }
    }
    return rc;
}

/* ---- the document */

static void put_argv(struct pt_result *document, int argc, const char *const *argv)
{
    const char **whole = calloc((size_t)argc + 2, sizeof(*whole));
    if (!whole)
        return;
    whole[0] = "pitot";
    whole[1] = manual.command;
    for (int i = 0; i < argc; i++)
        whole[i + 2] = argv[i];
    pt_result_argv(document, argc + 2, whole);
    free(whole);
}

static int begin_document(struct run *r, int argc, const char *const *argv, struct pt_err *e)
{
    struct pt_buf text;
    r->document = pt_run_new(r->plan.name, pt_clock_realtime());
    if (!r->document)
        return pt_fail(e, -ENOMEM, "no memory for the report");
    pt_buf_init(&text, (size_t)8 << 20);
    pt_plan_file_print(&r->plan, &text);
    pt_result_str(r->document, "plan", pt_buf_str(&text));
    pt_buf_fini(&text);
    pt_stage_document(&r->stage, r->document);
    put_argv(r->document, argc, argv);
    return 0;
}

/* The end of the report, and the files. The exit status. */
static int conclude(struct run *r)
{
    static const struct pt_reports reports = {&pt_sink_run_end, &pt_sink_run_csv_series,
                                              &pt_sink_run_csv};
    pt_run_conclude(r->document);
    if (pt_signal_seen()) {
        pt_result_status(r->document, PT_RESULT_PARTIAL);
        pt_result_i64(r->document, "exit", PT_EXIT_INTERRUPTED);
    }
    pt_result_round(r->document);
    int status = pt_result_exit(r->document);
    r->output.reports = &reports;
    bool failed = pt_output_result(&r->output, r->document) < 0;
    if (pt_result_failed(r->document)) {
        fprintf(stderr, "pitot run: no memory for the whole report\n");
        failed = true;
    }
    return failed && status != PT_EXIT_INTERRUPTED ? PT_EXIT_FAILED : status;
}

static int measure(struct run *r, int argc, const char *const *argv)
{
    struct pt_err e = {0};
    int rc = begin_document(r, argc, argv, &e);
    if (rc == 0) {
        show_title(r);
        rc = run_tests(r, &e);
    }
    if (!r->document || (rc < 0 && !pt_run_tests(r->document)))
        return pt_cmd_complain(&manual, &e, PT_EXIT_FAILED);
    /* What was measured before something failed is not thrown away. */
    if (rc < 0) {
        pt_result_warn(r->document, "partial: %s", e.text);
        pt_result_status(r->document, PT_RESULT_PARTIAL);
    }
    return conclude(r);
}

/* ---- the command */

static void print(const struct pt_buf *text)
{
    fputs(pt_buf_str(text), stdout);
    fflush(stdout);
}

static int print_plan(const struct pt_plan_file *plan)
{
    struct pt_buf text;
    pt_buf_init(&text, (size_t)8 << 20);
    pt_plan_file_print(plan, &text);
    print(&text);
    pt_buf_fini(&text);
    return PT_EXIT_OK;
}

static int dry_run(const struct pt_stage *stage)
{
    struct pt_buf text;
    pt_buf_init(&text, (size_t)8 << 20);
    pt_rehearse_print(stage, &text);
    print(&text);
    pt_buf_fini(&text);
    return PT_EXIT_OK;
}

static int check_options(const struct run_opts *o, const struct pt_reporting *asked,
                         struct pt_err *e)
{
    if (o->print_plan && o->dry_run)
        return pt_fail(e, -EINVAL, "--print-plan and --dry-run: one at a time");
    if ((o->print_plan || o->dry_run) && (asked->json[0] || asked->csv[0] || asked->html[0]))
        return pt_fail(e, -EINVAL,
                       "--print-plan and --dry-run measure nothing that --json, --csv or --html "
                       "could keep");
    if (o->print_plan && o->only.n)
        return pt_fail(e, -EINVAL, "--print-plan prints the whole plan: leave out --only");
    return 0;
}

static int load(struct run *r, const struct run_opts *o, const char *path, struct pt_err *e)
{
    const struct pt_plan_form *forms[8] = {0};
    for (size_t i = 0; i < PT_COUNT(forms) - 1 && pt_workloads[i]; i++)
        forms[i] = &pt_workloads[i]->form;
    int rc = pt_plan_file_load(&r->plan, path, forms, e);
    for (uint32_t i = 0; i < o->set.n && rc == 0; i++)
        rc = pt_plan_file_set(&r->plan, o->set.at[i], e);
    if (rc == 0)
        rc = pt_plan_file_check(&r->plan, e);
    if (rc == 0)
        rc = pt_rehearse_check(&r->plan, e);
    return rc < 0 ? rc : pt_plan_file_only(&r->plan, &o->only, e);
}

static int run_plan(struct run *r, const struct run_opts *o, int argc, const char *const *argv)
{
    struct pt_err e = {0};
    if (o->print_plan)
        return print_plan(&r->plan);
    int rc = pt_signals_install(&e);
    if (rc == 0)
        rc = pt_stage_open(&r->stage, &r->plan, &e);
    if (rc < 0)
        return pt_cmd_complain(&manual, &e, PT_EXIT_FAILED);
    pt_output_init(&r->output, &r->asked);
    int status = o->dry_run ? dry_run(&r->stage) : measure(r, argc, argv);
    pt_stage_close(&r->stage);
    pt_result_free(r->document);
    return status;
}

static int run(int argc, const char *const *argv)
{
    static struct run_opts o;
    static struct run r;
    struct pt_opts sets[] = {{.table = own_opts, .values = &o},
                             {.table = pt_reporting_opts, .values = &r.asked}};
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
    if (rc == 0 && args.n != 1)
        rc = pt_fail(&e, -EINVAL, "expected one PLAN, a YAML file such as plans/quick.yaml");
    if (rc == 0)
        rc = check_options(&o, &r.asked, &e);
    if (rc == 0)
        rc = pt_output_check(&r.asked, args.at[0], &e);
    if (rc == 0)
        rc = load(&r, &o, args.at[0], &e);
    int status =
        rc < 0 ? pt_cmd_complain(&manual, &e, PT_EXIT_USAGE) : run_plan(&r, &o, argc, argv);
    pt_plan_file_fini(&r.plan);
    return status;
}

const struct pt_cmd pt_cmd_run = {&manual, run};
