/* serve.c: `pitot serve`: answers every measurement.
 *
 * Nothing listens beyond the loopback without being asked, and a server that is open to the network
 * without a secret or an allow list says so.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve.h"

#include "base/log.h"
#include "engine/run.h"
#include "os/clock.h"
#include "os/signal.h"
#include "service/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OPTION(field, type) PT_OPT_FIELD(struct pt_serve_opts, field, type)

const struct pt_opt pt_serve_opts[] = {
    {OPTION(listen, PT_OPT_LIST), .name = "listen", .metavar = "ADDR:PORT", .flags = PT_OPT_COMMAS,
     .group = "Server",
     .help = "where to listen, TCP and UDP on one port; several allowed: 0.0.0.0 and [::] are all "
             "IPv4 and all IPv6 addresses, :PORT is both, unix:PATH a socket file; without it "
             "127.0.0.1:7411 and [::1]:7411"},
    {OPTION(secret_file, PT_OPT_STRING), .name = "secret-file", .metavar = "F",
     .flags = PT_OPT_LOCAL,
     .help = "serve only clients that prove the secret in F; it never crosses the network"},
    {OPTION(allow, PT_OPT_LIST), .name = "allow", .metavar = "CIDR", .flags = PT_OPT_COMMAS,
     .help = "serve only clients from these prefixes, such as 10.0.0.0/8; several allowed "
             "(default: all)"},
    {OPTION(compat, PT_OPT_LIST), .name = "compat", .metavar = "TOOL[,...]", .flags = PT_OPT_COMMAS,
     .help = "also serve the clients of other tools, at the same addresses, on ports of their own: "
             "iperf3 (5201)"},
    {OPTION(iperf3_port, PT_OPT_U32), .name = "iperf3-port", .metavar = "N", .min = 1, .max = 65535,
     .help = "another port for them (default 5201)"},
    {OPTION(connections, PT_OPT_COUNT), .name = "connections", .metavar = "N", .min = 1,
     .help = "serve N sessions, then exit (default: go on)"},
    {OPTION(max_sessions, PT_OPT_U32), .name = "max-sessions", .metavar = "N", .group = "Limits",
     .min = 1, .max = 4096, .help = "sessions at once (default: no limit)"},
    {OPTION(max_connections, PT_OPT_U32), .name = "max-connections", .metavar = "N", .min = 1,
     .help = "connections of one session (default: no limit)"},
    {OPTION(max_rate, PT_OPT_RATE), .name = "max-rate", .metavar = "R",
     .help = "bits per second that a session may move, such as 1gbit; transfers are paced to it "
             "(default: no limit)"},
    {OPTION(max_duration, PT_OPT_TIME), .name = "max-duration", .metavar = "T", .min = PT_MS,
     .help = "a session is ended after T (default: no limit)"},
    {0}};

static int fill_lists(struct pt_serve_spec *spec, const struct pt_serve_opts *o, struct pt_err *e)
{
    if (o->listen.n == 0)
        pt_serve_listen_loopback(spec, PT_PORT);
    for (uint32_t i = 0; i < o->listen.n; i++) {
        int rc = pt_serve_listen(spec, o->listen.at[i], e);
        if (rc) {
            pt_fail_prefix(e, "--listen");
            return rc;
        }
    }
    if (spec->listen_count == 0)
        return pt_fail(e, -EADDRNOTAVAIL, "the loopback interface has no address; is it up?");
    for (uint32_t i = 0; i < o->allow.n; i++) {
        int rc = pt_cidr_parse(&spec->allow[spec->allow_count++], o->allow.at[i], e);
        if (rc) {
            pt_fail_prefix(e, "--allow");
            return rc;
        }
    }
    return 0;
}

static int check_compat(const struct pt_serve_opts *o, struct pt_err *e)
{
    bool iperf3 = false;
    if (o->compat.n > PT_COMPAT_MAX)
        return pt_fail(e, -EINVAL, "--compat: a tool was named twice");
    for (uint32_t i = 0; i < o->compat.n; i++) {
        if (!pt_compat_find(o->compat.at[i]))
            return pt_fail(e, -EINVAL, "--compat %s: known are iperf3", o->compat.at[i]);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(o->compat.at[i], o->compat.at[k]) == 0)
                return pt_fail(e, -EINVAL, "--compat: %s was named twice", o->compat.at[i]);
        iperf3 |= strcmp(o->compat.at[i], "iperf3") == 0;
    }
    if (o->iperf3_port && !iperf3)
        return pt_fail(e, -EINVAL, "--iperf3-port goes with --compat iperf3");
    return 0;
}

int pt_serve_spec_fill(struct pt_serve_spec *spec, const struct pt_serve_opts *o, struct pt_err *e)
{
    _Static_assert(PT_SERVE_ALLOW_MAX >= PT_STRS_MAX, "every --allow has room");
    if (o->max_rate.per_s > 0 && !o->max_rate.bits)
        return pt_fail(e, -EINVAL, "--max-rate is in bits per second, such as 1gbit");
    spec->caps = (struct pt_caps){.max_rate_bits = o->max_rate.per_s,
                                  .max_duration = o->max_duration,
                                  .max_sessions = o->max_sessions,
                                  .max_connections = o->max_connections};
    spec->sessions = o->connections;
    int rc = check_compat(o, e);
    if (!rc)
        rc = fill_lists(spec, o, e);
    if (!rc && o->secret_file[0])
        rc = pt_secret_load(&spec->secret, o->secret_file, e);
    return rc;
}

/* One write(2) per line: sessions share stderr with main. */
static void to_stderr(void *ctx, enum pt_log_level level, const char *line)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    (void)ctx;
    char when[32], text[1200];
    pt_clock_rfc3339(pt_clock_realtime(), when);
    int n = snprintf(text, sizeof(text), "%s %s %s\n", when, names[level], line);
    if (n >= (int)sizeof(text)) {
        n = (int)sizeof(text);
        text[n - 1] = '\n';
    }
    ssize_t written = write(STDERR_FILENO, text, (size_t)n);
    (void)written; /* a log that nobody reads is no reason to stop */
}

static void say_who_can_connect(const struct pt_manual *m, const struct pt_serve_spec *spec)
{
    bool local = true;
    for (unsigned i = 0; i < spec->listen_count; i++)
        local = local && pt_addr_is_loopback(&spec->listen[i]);
    if (local)
        printf("pitot %s: only this host can connect; --listen :%d opens it to the network\n",
               m->command, PT_PORT);
    else if (spec->secret.len == 0 && spec->allow_count == 0)
        printf(
            "pitot %s: anybody who reaches it can use it; --secret-file and --allow limit that\n",
            m->command);
    fflush(stdout);
}

/* They end with us. */
static int start_compat(const struct pt_serve_opts *o, const struct pt_serve_spec *spec,
                        struct pt_child children[PT_COMPAT_MAX], struct pt_err *e)
{
    for (uint32_t i = 0; i < o->compat.n; i++) {
        const struct pt_compat *c = pt_compat_find(o->compat.at[i]);
        uint16_t port = (uint16_t)o->iperf3_port;
        int rc = pt_compat_start(&children[i], c, spec, port, e);
        if (rc < 0)
            return rc;
        printf("pitot serve: listening for clients of %s on port %u\n", c->name,
               (unsigned)(port ? port : c->port));
    }
    if (o->compat.n && spec->secret.len)
        printf("pitot serve: clients of other tools prove no secret; --allow limits them\n");
    fflush(stdout);
    return 0;
}

int pt_serve_command(const struct pt_manual *m, const struct pt_serve_opts *o,
                     const struct pt_serve_spec *spec)
{
    struct pt_child children[PT_COMPAT_MAX] = {{0}};
    struct pt_err e = {0};
    struct pt_serve *s = NULL;
    pt_log_init(to_stderr, NULL, PT_LOG_INFO);
    int rc = pt_signals_install(&e);
    if (!rc)
        rc = pt_serve_open(&s, spec, &e);
    if (!rc) {
        printf("pitot %s: listening on %s\n", m->command, pt_serve_addresses(s));
        say_who_can_connect(m, spec);
        rc = start_compat(o, spec, children, &e);
    }
    if (!rc)
        rc = pt_serve_run(s, &e);
    for (size_t i = 0; i < PT_COMPAT_MAX; i++)
        pt_child_end(&children[i], PT_S, NULL);
    pt_serve_close(s);
    return rc ? pt_cmd_complain(m, &e, PT_EXIT_FAILED) : PT_EXIT_OK;
}

/* ---- the command */

static const struct pt_manual manual = {
    .command = "serve",
    .summary = "answers every measurement",
    .usage = "[options]",
    .about =
        "Serves many clients at once, each in a process of its own. SIGINT or SIGTERM ends it.",
    .examples = "pitot serve --listen :7411 --allow 10.0.0.0/8\tfor one network\n"
                "pitot serve --listen 10.0.0.2 --secret-file key\tfor those who have the key"};

static int run(int argc, const char *const *argv)
{
    static struct pt_serve_opts opts;
    static struct pt_serve_spec spec;
    struct pt_opts set = {.table = pt_serve_opts, .values = &opts};
    struct pt_args args = {0};
    struct pt_err e = {0};
    int rc = pt_opts_init(&set, &e);
    if (pt_cmd_help(&manual, &set, 1, argc, argv))
        return PT_EXIT_OK;
    if (!rc)
        rc = pt_opts_parse(&set, 1, argc, argv, &args, &e);
    if (!rc && args.n)
        rc = pt_fail(&e, -EINVAL, "it takes no argument such as \"%s\"; --listen says where",
                     args.at[0]);
    if (!rc)
        rc = pt_serve_spec_fill(&spec, &opts, &e);
    if (rc)
        return pt_cmd_complain(&manual, &e, rc == -EINVAL ? PT_EXIT_USAGE : PT_EXIT_FAILED);
    spec.session = pt_answer_session;
    rc = pt_serve_command(&manual, &opts, &spec);
    pt_wipe(&spec.secret, sizeof(spec.secret));
    return rc;
}

const struct pt_cmd pt_cmd_serve = {&manual, run};
