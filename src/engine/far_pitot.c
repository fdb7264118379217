/* far_pitot.c: `pitot serve` at the other end: the control protocol, docs/formats/control.md.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/far.h"

#include "engine/channel.h"
#include "engine/sources.h"
#include "net/tcp_info.h"
#include "os/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE_NS PT_S

struct own {
    struct pt_control control;
    struct pt_welcome welcome;
    bool open;
};

void pt_far_broke(struct pt_far *f, const char *fmt, ...)
{
    if (f->broken[0])
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->broken, sizeof(f->broken), fmt, ap);
    va_end(ap);
}

/* ---- before the start */

static int reach(struct pt_far *f, pt_ns deadline, struct pt_err *e)
{
    const struct pt_run_spec *s = f->spec;
    struct own *o = calloc(1, sizeof(*o));
    struct pt_addr from;
    if (!o)
        return pt_fail(e, -ENOMEM, "no memory");
    f->own = o;
    int rc = pt_sources_first(&from, &f->plan->common, s->to, e);
    if (rc == 0)
        rc = pt_control_open(&o->control, s->to, &from, s->secret, s->identity, &o->welcome,
                             deadline, e);
    if (rc < 0)
        return rc;
    o->open = true;
    f->at = o->control.peer;
    f->fd = o->control.fd;
    f->identity = o->welcome.identity;
    f->caps = o->welcome.caps;
    snprintf(f->name, sizeof(f->name), "%s", o->control.name);
    struct pt_tcp_info t;
    if (pt_tcp_info_read(&t, o->control.fd) == 0)
        f->rtt_ns = (pt_ns)t.rtt_us * PT_US;
    return 0;
}

static int take_acceptance(struct pt_far *f, const json_t *accepted)
{
    json_int_t workers = json_integer_value(json_object_get(accepted, "workers"));
    if (workers > 0 && workers < (json_int_t)f->place->peer_workers)
        f->place->peer_workers = (unsigned)workers;
    json_int_t port = json_integer_value(json_object_get(accepted, "port"));
    f->listener_port = port > 0 && port < 65536 ? (uint16_t)port : 0;
    return 0;
}

static int propose(struct pt_far *f, pt_ns deadline, struct pt_err *e)
{
    struct own *o = f->own;
    const struct pt_place *p = f->place;
    json_t *cpu = json_array(), *accepted = NULL;
    for (unsigned i = 0; i < p->peer_workers; i++)
        json_array_append_new(cpu, json_integer(p->peer_cpu[i]));
    json_t *test =
        json_pack("{s:s, s:s, s:o?, s:i, s:o, s:b, s:b, s:i, s:s}", "type", "test", "workload",
                  f->spec->wl->form.manual.command, "params", pt_plan_to_peer(f->plan), "workers",
                  (int)p->peer_workers, "cpus", cpu, "same_machine", p->same_machine, "paired",
                  p->paired, "beside", p->joins ? p->cpu[0] : -1, "engine",
                  f->backend == PT_BACKEND_URING ? "uring" : "epoll");
    int rc = pt_control_send_new(&o->control, test, deadline, e);
    if (rc == 0)
        rc = pt_control_expect(&o->control, "accepted", &accepted, deadline, e);
    if (rc == 0)
        rc = take_acceptance(f, accepted);
    json_decref(accepted);
    return rc;
}

static int dial(struct pt_far *f, struct pt_dial *d, pt_ns deadline, struct pt_err *e)
{
    struct own *o = f->own;
    struct pt_sockopts options;
    pt_channel_options(&options, &f->plan->common, f->shape);
    return pt_dial_flows(d, f->shape->flows,
                         f->shape->chan == PT_CHAN_UDP ? SOCK_DGRAM : SOCK_STREAM, &f->at,
                         o->welcome.token, &options, deadline, e);
}

static int prepare(struct pt_far *f, pt_ns deadline, struct pt_err *e)
{
    struct own *o = f->own;
    json_t *ready = NULL;
    int rc = pt_control_send_new(&o->control, json_pack("{s:s}", "type", "prepare"), deadline, e);
    if (rc == 0)
        rc = pt_control_expect(&o->control, "ready", &ready, deadline, e);
    json_decref(ready);
    return rc;
}

static int start(struct pt_far *f, pt_ns lead, pt_ns deadline, struct pt_err *e)
{
    struct own *o = f->own;
    return pt_control_send_new(
        &o->control,
        json_pack("{s:s, s:I}", "type", "start", "lead_ns", (json_int_t)(lead - f->rtt_ns / 2)),
        deadline, e);
}

/* ---- while it runs */

static void take_message(struct pt_far *f, const json_t *m)
{
    const char *type = pt_control_type(m);
    f->heard_ns = pt_clock_now();
    if (strcmp(type, "tick") == 0) {
        f->point_new = pt_point_from_json(&f->point, json_object_get(m, "point")) == 0;
    } else if (strcmp(type, "sent") == 0) {
        f->sent = true;
    } else if (strcmp(type, "report") == 0) {
        struct pt_err e = {0};
        if (f->reported)
            return;
        f->reported = pt_half_from_json(&f->half, json_object_get(m, "half"), &e) == 0;
        if (!f->reported)
            pt_far_broke(f, "%s", e.text);
    }
}

static bool listen_to(struct pt_far *f)
{
    struct own *o = f->own;
    int rc = 0;
    while (!f->reported && (rc = pt_control_pending(&o->control)) > 0) {
        json_t *m = NULL;
        struct pt_err e = {0};
        if (pt_control_recv(&o->control, &m, 0, &e) < 0) {
            pt_far_broke(f, "%s", e.text);
            return false;
        }
        take_message(f, m);
        json_decref(m);
    }
    if (rc < 0 && !f->reported) {
        json_t *m = NULL;
        struct pt_err e = {0};
        if (pt_control_recv(&o->control, &m, 0, &e) == 0)
            take_message(f, m);
        json_decref(m);
        pt_far_broke(f, "peer lost: %s", e.code ? e.text : "the control connection broke");
        return false;
    }
    return true;
}

/* A client that was stopped or cut off must not hold its server's session for ever. */
static void keep_alive(struct pt_far *f, pt_ns now)
{
    struct own *o = f->own;
    struct pt_err e = {0};
    if (now - f->told_ns < ALIVE_NS)
        return;
    f->told_ns = now;
    if (pt_control_send_new(&o->control, json_pack("{s:s}", "type", "alive"), now, &e) < 0 &&
        listen_to(f) && !f->reported)
        pt_far_broke(f, "%s", e.text);
}

static void stop(struct pt_far *f, const struct pt_job *job)
{
    struct own *o = f->own;
    struct pt_err e = {0};
    (void)job;
    if (pt_control_send_new(&o->control, json_pack("{s:s}", "type", "stop"), pt_clock_now() + PT_S,
                            &e) < 0 &&
        listen_to(f) && !f->reported)
        pt_far_broke(f, "%s", e.text);
}

static int explain(struct pt_far *f, int rc, struct pt_err *e)
{
    struct own *o = f->own;
    return o && o->open ? pt_control_lost(&o->control, rc, e) : rc;
}

static void close_far(struct pt_far *f)
{
    struct own *o = f->own;
    if (!o)
        return;
    if (o->open)
        pt_control_fini(&o->control);
    pt_welcome_fini(&o->welcome);
    free(o);
}

const struct pt_far_kind pt_far_pitot = {
    .port = PT_PORT,
    .ticks = true,
    .reach = reach,
    .propose = propose,
    .dial = dial,
    .prepare = prepare,
    .start = start,
    .listen = listen_to,
    .keep_alive = keep_alive,
    .stop = stop,
    .explain = explain,
    .close = close_far,
};
