/* measure.c: `pitot bw`, `pitot pps`, `pitot lat`: from argv to the report.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/measure.h"

#include "engine/run.h"
#include "net/identity.h"
#include "os/clock.h"
#include "os/signal.h"
#include "service/serve.h"
#include "sink/sink.h"
#include "workload/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct measure {
    const struct pt_workload *wl;
    struct pt_plan plan;
    struct pt_addr_list to;
    struct pt_secret secret;
    struct pt_serve_child server;
    bool own_server;
    json_t *identity;
};

static int find_target(struct measure *m, struct pt_err *e)
{
    const struct pt_common *c = &m->plan.common;
    if (!m->plan.target[0]) {
        struct pt_serve_spec serve = {.session = pt_answer_session};
        int rc = pt_serve_child_start(&m->server, &serve, e);
        if (rc < 0)
            return rc;
        m->own_server = true;
        m->to = m->server.at;
        m->secret = m->server.secret;
        return 0;
    }
    struct pt_host host;
    int rc = pt_host_parse(&host, m->plan.target, PT_PORT, e);
    if (rc == 0)
        rc = pt_addr_resolve(&m->to, &host, c->ipv4 ? AF_INET : c->ipv6 ? AF_INET6 : AF_UNSPEC, e);
    if (rc == 0 && c->secret_file[0])
        rc = pt_secret_load(&m->secret, c->secret_file, e);
    return rc;
}

static int run_once(struct measure *m, struct pt_result **out, struct pt_err *e)
{
    struct pt_run_spec spec = {
        .plan = &m->plan,
        .wl = m->wl,
        .to = &m->to,
        .secret = &m->secret,
        .identity = m->identity,
    };
    return pt_run(&spec, out, e);
}

static int measure(const struct pt_workload *wl, int argc, const char *const *argv)
{
    struct measure m = {.wl = wl};
    struct pt_err e = {0};
    const struct pt_manual *manual = &wl->form.manual;
    int rc = pt_plan_init(&m.plan, &wl->form, &e);
    if (rc < 0)
        return pt_cmd_complain(manual, &e, PT_EXIT_FAILED);
    int status = PT_EXIT_OK;
    struct pt_result *result = NULL;
    if (pt_cmd_help(manual, m.plan.sets, PT_COUNT(m.plan.sets), argc, argv))
        goto out;
    rc = pt_plan_parse(&m.plan, argc, argv, &e);
    if (rc < 0) {
        status = pt_cmd_complain(manual, &e, PT_EXIT_USAGE);
        goto out;
    }
    rc = pt_signals_install(&e);
    if (rc == 0)
        rc = find_target(&m, &e);
    m.identity = pt_identity();
    if (rc == 0)
        rc = run_once(&m, &result, &e);
    if (rc < 0) {
        status = pt_cmd_complain(manual, &e, PT_EXIT_FAILED);
        goto out;
    }
    pt_result_argv(result, argc, argv);
    status = pt_result_exit(result);
    struct pt_buf text;
    pt_buf_init(&text, PT_SINK_CEILING);
    char *dump = json_dumps(result->root, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    puts(dump ? dump : "no memory");
    free(dump);
    pt_buf_fini(&text);
out:
    pt_result_free(result);
    if (m.own_server)
        pt_serve_child_end(&m.server);
    json_decref(m.identity);
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
