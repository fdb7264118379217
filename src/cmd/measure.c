/* measure.c: `pitot bw`, `pitot pps`, `pitot lat`: from argv to the report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/measure.h"

#include "cmd/output.h"
#include "cmd/test.h"
#include "os/signal.h"
#include "peer/list.h"
#include "service/serve.h"
#include "workload/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct measure {
    struct pt_test test;
    struct pt_plan plan;
    struct pt_output output;
    struct pt_addr_list to;
    struct pt_secret secret;
    struct pt_serve_child server;
};

static int find_target(struct measure *m, struct pt_err *e)
{
    const struct pt_common *c = &m->plan.common;
    if (!m->plan.target[0]) {
        struct pt_serve_spec serve = {.session = pt_answer_session};
        int rc = pt_serve_child_start(&m->server, &serve, e);
        if (rc < 0)
            return rc;
        m->to = m->server.at;
        m->secret = m->server.secret;
        return 0;
    }
    struct pt_host host;
    int rc = pt_host_parse(&host, m->plan.target, m->test.far->port, e);
    if (rc == 0)
        rc = pt_addr_resolve(&m->to, &host, c->ipv4 ? AF_INET : c->ipv6 ? AF_INET6 : AF_UNSPEC, e);
    if (rc == 0 && c->secret_file[0])
        rc = pt_secret_load(&m->secret, c->secret_file, e);
    return rc;
}

/* argv as the shell had it. */
static void put_argv(struct pt_result *r, const struct measure *m, int argc,
                     const char *const *argv)
{
    const char **whole = calloc((size_t)argc + 2, sizeof(*whole));
    if (!whole)
        return;
    whole[0] = "pitot";
    whole[1] = m->test.wl->form.manual.command;
    for (int i = 0; i < argc; i++)
        whole[i + 2] = argv[i];
    pt_result_argv(r, argc + 2, whole);
    free(whole);
}

/* The report of a document; the exit status. */
static int conclude(struct measure *m, struct pt_result *r, int argc, const char *const *argv)
{
    struct pt_err e = {0};
    put_argv(r, m, argc, argv);
    int rc = pt_test_conclude(&m->test, r, &e);
    int status = pt_result_exit(r);
    if (pt_output_result(&m->output, r) < 0 && status != PT_EXIT_INTERRUPTED)
        status = PT_EXIT_FAILED;
    return rc < 0 ? pt_cmd_complain(&m->test.wl->form.manual, &e, PT_EXIT_FAILED) : status;
}

static int measure_with(struct measure *m, int argc, const char *const *argv)
{
    struct pt_err e = {0};
    const struct pt_manual *manual = &m->test.wl->form.manual;
    if (pt_cmd_help(manual, m->plan.sets, PT_COUNT(m->plan.sets), argc, argv))
        return PT_EXIT_OK;
    int rc = pt_plan_parse(&m->plan, argc, argv, &e);
    if (rc == 0)
        rc = pt_output_check(&m->plan.report, NULL, &e);
    if (rc == 0)
        rc = pt_test_check(&m->test, &e);
    m->test.far = pt_peer_find(m->plan.common.peer);
    if (rc < 0)
        return pt_cmd_complain(manual, &e, PT_EXIT_USAGE);
    pt_output_init(&m->output, &m->plan.report);
    struct pt_result *result = NULL;
    rc = pt_signals_install(&e);
    if (rc == 0)
        rc = find_target(m, &e);
    bool misused = rc == -EINVAL && m->plan.target[0]; /* a name unknown to the resolver is not */
    if (rc == 0) {
        rc = pt_test_check_here(&m->test, &e);
        misused = rc == -EINVAL || rc == -EADDRNOTAVAIL;
    }
    if (rc == 0)
        rc = pt_test_run(&m->test, &result, &e);
    pt_output_quiet_down(&m->output);
    if (rc < 0 && misused)
        return pt_cmd_complain(manual, &e, PT_EXIT_USAGE);
    if (rc < 0)
        return pt_cmd_complain(manual, &e, pt_signal_seen() ? PT_EXIT_INTERRUPTED : PT_EXIT_FAILED);
    int status = conclude(m, result, argc, argv);
    pt_result_free(result);
    return status;
}

static int measure(const struct pt_workload *wl, int argc, const char *const *argv)
{
    struct measure m = {.test = {.wl = wl}};
    struct pt_err e = {0};
    if (pt_plan_init(&m.plan, &wl->form, &e) < 0)
        return pt_cmd_complain(&wl->form.manual, &e, PT_EXIT_FAILED);
    m.test.plan = &m.plan;
    m.test.to = &m.to;
    m.test.secret = &m.secret;
    m.test.output = &m.output;
    int status = measure_with(&m, argc, argv);
    pt_serve_child_end(&m.server);
    pt_plan_fini(&m.plan);
    return status;
}

static int run_bw(int argc, const char *const *argv)
{
    return measure(&pt_bw, argc, argv);
}

static int run_pps(int argc, const char *const *argv)
{
    return measure(&pt_pps, argc, argv);
}

static int run_lat(int argc, const char *const *argv)
{
    return measure(&pt_lat, argc, argv);
}

const struct pt_cmd pt_cmd_bw = {&pt_bw.form.manual, run_bw};
const struct pt_cmd pt_cmd_pps = {&pt_pps.form.manual, run_pps};
const struct pt_cmd pt_cmd_lat = {&pt_lat.form.manual, run_lat};
