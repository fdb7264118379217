/* truth.c: `pitot truth`: a server with known delay, loss and stalls, to check any load tool.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/truth.h"

#include "cmd/serve.h"
#include "engine/run.h"
#include "model/manual.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/signal.h"
#include "service/echo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ECHO_MAX 8

struct truth_opts {
    struct pt_strs echo;
    char json[256];
};

static const struct pt_opt own_opts[] = {
    {PT_OPT_FIELD(struct truth_opts, echo, PT_OPT_LIST), .name = "echo", .metavar = "KIND:PORT",
     .group = "For other tools",
     .help = "sends back what it gets, without a protocol of ours: udp:PORT, tcp:PORT on the "
             "loopback, or udp:ADDR:PORT; several allowed; answers this host's own addresses or "
             "those of --allow; pitot itself is then served only with --listen"},
    {PT_OPT_FIELD(struct truth_opts, json, PT_OPT_STRING), .name = "json", .metavar = "F",
     .flags = PT_OPT_LOCAL, .help = "writes what was injected to F at the end"},
    {0}};

static const struct pt_manual manual = {
    .command = "truth",
    .summary = "a server with known delay, loss and stalls, to check any load tool",
    .usage = "[options]",
    .about =
        "Answers `pitot bw`, `pps` and `lat` as `pitot serve` does, but does known things to the "
        "packets that come to it: what the tool then reports should be just that. With --echo it "
        "sends back what any other tool sends. SIGINT or SIGTERM ends it; it then tells what it "
        "injected, and how exactly.",
    .examples = "pitot truth --stall 100ms/1s\tfor pitot lat HOST\n"
                "pitot truth --echo udp:7000 --delay 5ms --loss every:100\tfor any tool"};

/* One echo service in a process of its own. */
struct echo {
    struct pt_echo *service;
    struct pt_child child;
};

struct truth {
    struct pt_impairment impairment;
    struct truth_opts opts;
    struct pt_serve_opts serve_opts;
    struct pt_serve_spec serve;
    struct echo echoes[ECHO_MAX];
    unsigned echo_count;
};

static int run_echo(void *ctx)
{
    struct pt_err e = {0};
    if (pt_echo_run(ctx, &e) == 0)
        return 0;
    fprintf(stderr, "pitot truth: %s\n", e.text);
    return 1;
}

static int open_echoes(struct truth *t, struct pt_err *e)
{
    for (uint32_t i = 0; i < t->opts.echo.n; i++) {
        struct pt_echo_spec spec = {.impairment = &t->impairment};
        if (t->echo_count == ECHO_MAX)
            return pt_fail(e, -EINVAL, "at most %d --echo", ECHO_MAX);
        int rc = pt_echo_parse(&spec, t->opts.echo.at[i], e);
        _Static_assert(PT_ECHO_ALLOW_MAX >= PT_SERVE_ALLOW_MAX, "every --allow has room");
        memcpy(spec.allow, t->serve.allow, sizeof(t->serve.allow));
        spec.allow_count = t->serve.allow_count;
        if (!rc)
            rc = pt_echo_open(&t->echoes[t->echo_count].service, &spec, e);
        if (rc)
            return rc;
        t->echo_count++;
    }
    return 0;
}

static int start_echoes(struct truth *t, struct pt_err *e)
{
    for (unsigned i = 0; i < t->echo_count; i++) {
        struct echo *echo = &t->echoes[i];
        int rc = pt_child_start(&echo->child, run_echo, echo->service, e);
        if (rc)
            return rc;
        printf("listening on %s\n", pt_echo_address(echo->service));
    }
    fflush(stdout);
    return 0;
}

/* Waits for a signal, or for the first echo to break. */
static int watch_echoes(struct truth *t, struct pt_err *e)
{
    while (!pt_signal_seen()) {
        for (unsigned i = 0; i < t->echo_count; i++) {
            struct pt_exit ended;
            if (pt_child_wait(&t->echoes[i].child, 0, &ended) == 0)
                return pt_fail(e, -ECHILD, "the echo on %s ended",
                               pt_echo_address(t->echoes[i].service));
        }
        int rc = pt_clock_wait_until(pt_clock_now() + 100 * PT_MS);
        if (rc && rc != -EINTR)
            return pt_fail(e, rc, "wait: %s", pt_strerror(rc));
    }
    return 0;
}

static void end_echoes(struct truth *t)
{
    for (unsigned i = 0; i < t->echo_count; i++) {
        pt_child_end(&t->echoes[i].child, PT_S, NULL);
        pt_echo_close(t->echoes[i].service);
    }
}

static int write_document(const char *path, json_t *doc, struct pt_err *e)
{
    int rc = doc ? 0 : -ENOMEM;
    FILE *to = NULL;
    if (!rc && strcmp(path, "-") != 0 && !(to = fopen(path, "w")))
        rc = -errno;
    if (!rc && json_dumpf(doc, to ? to : stdout, JSON_INDENT(2)) < 0)
        rc = -EIO;
    if (!rc && fputc('\n', to ? to : stdout) == EOF)
        rc = -EIO;
    if (to && fclose(to) == EOF && !rc)
        rc = -errno;
    return rc ? pt_fail(e, rc, "write %s: %s", path, pt_strerror(rc)) : 0;
}

static int report(const struct truth *t, struct pt_err *e)
{
    struct pt_impair_record *total = calloc(1, sizeof(*total));
    if (!total)
        return pt_fail(e, -ENOMEM, "no memory to add up what was injected");
    uint64_t paths = pt_impair_ledger_total(t->impairment.ledger, total);
    struct pt_buf text;
    pt_buf_init(&text, 16384);
    pt_truth_text(&text, &t->impairment.spec, total, paths);
    fputs(pt_buf_str(&text), strcmp(t->opts.json, "-") == 0 ? stderr : stdout);
    pt_buf_fini(&text);
    int rc = 0;
    if (t->opts.json[0]) {
        json_t *doc = pt_truth_document(&t->impairment.spec, total, paths);
        rc = write_document(t->opts.json, doc, e);
        json_decref(doc);
    }
    free(total);
    return rc;
}

/* Sessions of pitot itself, and echoes beside them; or echoes alone. */
static int serve(struct truth *t)
{
    struct pt_err e = {0};
    int status = PT_EXIT_OK;
    int rc = start_echoes(t, &e);
    if (!rc && t->serve.listen_count)
        status = pt_serve_command(&manual, &t->serve_opts, &t->serve);
    else if (!rc)
        rc = watch_echoes(t, &e);
    end_echoes(t);
    return rc ? pt_cmd_complain(&manual, &e, PT_EXIT_FAILED) : status;
}

/* Everything that can be wrong with what was asked for. */
static int prepare(struct truth *t, struct pt_opts *sets, size_t n, int argc,
                   const char *const *argv, struct pt_err *e)
{
    struct pt_args args = {0};
    int rc = pt_opts_parse(sets, n, argc, argv, &args, e);
    if (!rc && args.n)
        rc = pt_fail(e, -EINVAL, "it takes no argument such as \"%s\"", args.at[0]);
    if (!rc)
        rc = pt_impair_check(&t->impairment.spec, e);
    if (!rc)
        rc = pt_serve_spec_fill(&t->serve, &t->serve_opts, e);
    if (!rc && t->opts.echo.n && !t->serve_opts.listen.n)
        t->serve.listen_count = 0;
    t->serve.session = pt_answer_session;
    t->serve.impairment = &t->impairment;
    t->impairment.since = pt_clock_now();
    if (!rc)
        rc = pt_signals_install(e);
    if (!rc)
        rc = pt_impair_ledger_open(&t->impairment.ledger, e);
    return rc ? rc : open_echoes(t, e);
}

static const char *const without[] = {"compat", "iperf3-port", NULL};

static int run(int argc, const char *const *argv)
{
    static struct truth t;
    struct pt_opts sets[] = {{.table = pt_truth_path_opts, .values = &t.impairment.spec},
                             {.table = own_opts, .values = &t.opts},
                             {.table = pt_serve_opts, .values = &t.serve_opts, .without = without}};
    struct pt_err e = {0};
    int rc = 0;
    for (size_t i = 0; i < PT_COUNT(sets) && !rc; i++)
        rc = pt_opts_init(&sets[i], &e);
    if (pt_cmd_help(&manual, sets, PT_COUNT(sets), argc, argv))
        return PT_EXIT_OK;
    if (!rc)
        rc = prepare(&t, sets, PT_COUNT(sets), argc, argv, &e);
    if (rc) {
        end_echoes(&t);
        return pt_cmd_complain(&manual, &e, rc == -EINVAL ? PT_EXIT_USAGE : PT_EXIT_FAILED);
    }
    int status = serve(&t);
    pt_wipe(&t.serve.secret, sizeof(t.serve.secret));
    rc = report(&t, &e);
    pt_impair_ledger_close(t.impairment.ledger);
    return rc ? pt_cmd_complain(&manual, &e, PT_EXIT_FAILED) : status;
}

const struct pt_cmd pt_cmd_truth = {&manual, run};
