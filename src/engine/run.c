/* run.c: the supervisor of the asking side. See run.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/run.h"

#include "base/units.h"
#include "engine/caps.h"
#include "engine/channel.h"
#include "engine/far.h"
#include "engine/hosts.h"
#include "engine/place.h"
#include "engine/sources.h"
#include "net/udp.h"
#include "os/clock.h"
#include "os/signal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_MIN (2 * PT_S)
/* Connections of a worker from which on the probe decides between the back ends. */
#define CROWD      16
#define LEAD_NS    (2 * PT_MS)
#define REPORT_NS  (5 * PT_S)
#define SHOW_NS    (100 * PT_MS)
#define ALIVE_NS   PT_S
#define SILENCE_NS (10 * PT_S)

struct run {
    const struct pt_run_spec *spec;
    struct pt_plan plan; /* the spec's, within what the server allows */
    struct pt_shape shape;
    struct pt_place place;
    struct pt_tuple_plan sources;
    struct pt_far far;
    struct pt_job job;
    struct pt_sampler sampler;
    struct pt_half local;
    struct pt_wire *wire;
    struct pt_host_watch *host;
    bool slowed_down, job_open;
    const struct pt_point *sampled; /* to be shown once the peer's point is there too */
    pt_ns sampled_ns, start_ns;
    char engine_reason[160];
};

static bool is_same(const json_t *a, const json_t *b, const char *key)
{
    const char *x = json_string_value(json_object_get(a, key));
    const char *y = json_string_value(json_object_get(b, key));
    return x && y && *x && strcmp(x, y) == 0;
}

static void choose_backend(struct run *r)
{
    int asked = r->plan.common.engine;
    if (asked != PT_ENGINE_AUTO) {
        r->far.backend = asked == PT_ENGINE_URING ? PT_BACKEND_URING : PT_BACKEND_EPOLL;
        snprintf(r->engine_reason, sizeof(r->engine_reason), "asked for");
        return;
    }
    if (!r->shape.both) {
        r->far.backend = PT_BACKEND_EPOLL;
        snprintf(r->engine_reason, sizeof(r->engine_reason),
                 "one-way transfers make their system calls directly");
        return;
    }
    if (!r->shape.spin && r->shape.flows < CROWD * r->place.workers) {
        r->far.backend = PT_BACKEND_EPOLL;
        snprintf(r->engine_reason, sizeof(r->engine_reason),
                 "few connections per worker: sleeping in recv(2) itself wakes soonest");
        return;
    }
    size_t size = r->plan.common.size ? (size_t)r->plan.common.size : 64;
    r->far.backend = pt_loop_choose(r->shape.spin ? PT_WAIT_SPIN : PT_WAIT_BLOCK, size,
                                    r->engine_reason, sizeof(r->engine_reason));
}

/* How long the peer may be silent: --timeout; unless it was given it may be one of operations only
 * (lat over UDP). */
static pt_ns patience(const struct run *r)
{
    pt_ns timeout = r->plan.common.timeout;
    return pt_plan_given(&r->plan, "timeout") || timeout > SILENCE_NS ? timeout : SILENCE_NS;
}

/* … for one step of the preparation. */
static pt_ns step(const struct run *r)
{
    pt_ns most = patience(r);
    return most < STEP_MIN ? STEP_MIN : most;
}

static int heed_caps(struct run *r, struct pt_err *e)
{
    const struct pt_caps *caps = &r->far.caps;
    r->slowed_down = pt_caps_slow_down(caps, r->spec->wl, &r->plan, &r->shape);
    return pt_caps_check(caps, &r->shape, r->far.name, e);
}

static int call(struct run *r, int (*entry)(struct pt_far *, pt_ns, struct pt_err *),
                struct pt_err *e)
{
    return entry ? entry(&r->far, pt_clock_now() + step(r), e) : 0;
}

static int propose(struct run *r, struct pt_err *e)
{
    const struct pt_run_spec *s = r->spec;
    bool same = is_same(s->identity, r->far.identity, "boot_id");
    json_int_t cpus = json_integer_value(json_object_get(r->far.identity, "cpus"));
    int rc = s->wl->reach ? s->wl->reach(&r->plan, PT_ASK, &r->far.at, &r->shape, e) : 0;
    if (rc == 0)
        rc = pt_place_plan(&r->place, &r->shape, &r->plan.common, same,
                           cpus > 0 && cpus <= PT_CPU_MAX ? (unsigned)cpus : 0, e);
    if (rc < 0)
        return rc;
    choose_backend(r);
    return call(r, r->far.kind->propose, e);
}

static int plan_sources(struct run *r, struct pt_err *e)
{
    if (r->shape.chan == PT_CHAN_UNIX)
        return 0;
    int rc = pt_sources_plan(&r->sources, &r->plan.common, &r->far.at, e);
    if (rc == 0 && r->sources.capacity)
        rc = pt_tuple_check(&r->sources, r->shape.flows, e);
    return rc;
}

/* Opens every flow; their descriptors in order of id. */
static int dial(struct run *r, int *fds, struct pt_err *e)
{
    struct pt_dial *d = calloc(r->shape.flows, sizeof(*d));
    if (!d)
        return pt_fail(e, -ENOMEM, "no memory for %u flows", r->shape.flows);
    (void)!pt_fd_limit_raise(); /* as far as it goes: what is missing fails with a sentence */
    for (uint32_t i = 0; i < r->shape.flows; i++) {
        struct pt_tuple t = {.from.len = 0};
        if (r->sources.capacity)
            pt_tuple_at(&r->sources, i, &t);
        d[i] = (struct pt_dial){.flow = i, .fd = -1, .from = t.from};
    }
    int rc = r->far.kind->dial(&r->far, d, pt_clock_now() + step(r), e);
    for (uint32_t i = 0; i < r->shape.flows; i++)
        fds[i] = d[i].fd;
    free(d);
    return rc;
}

static int start_job(struct run *r, struct pt_err *e)
{
    struct pt_job_spec js = {
        .side = PT_ASK,
        .wl = r->spec->wl,
        .plan = &r->plan,
        .shape = r->shape,
        .workers = r->place.workers,
        .backend = r->far.backend,
        .same_machine = r->place.same_machine,
        .beside = r->place.joins ? r->place.peer_cpu[0] : -1,
        .paired = r->place.paired,
        .listener = -1,
        .listener_at = r->far.at,
    };
    memcpy(js.cpu, r->place.cpu, sizeof(js.cpu));
    pt_addr_set_port(&js.listener_at, r->far.listener_port);
    int *fds = calloc(r->shape.flows + 1, sizeof(*fds));
    if (!fds)
        return pt_fail(e, -ENOMEM, "no memory for %u flows", r->shape.flows);
    int rc = plan_sources(r, e);
    if (r->sources.capacity)
        js.sources = &r->sources;
    if (rc == 0 && !r->shape.answer_listens) {
        js.fds = fds;
        rc = dial(r, fds, e);
    }
    if (rc == 0) {
        rc = pt_job_start(&r->job, &js, e);
        r->job_open = rc == 0;
    }
    free(fds);
    return rc;
}

static int get_set(struct run *r, struct pt_err *e)
{
    int rc = start_job(r, e);
    if (rc == 0)
        rc = call(r, r->far.kind->prepare, e);
    if (rc == 0)
        rc = pt_job_wait_ready(&r->job, pt_clock_now() + step(r), e);
    return rc;
}

/* How long after the message that says start the warm-up begins. */
static int choose_lead(struct run *r, pt_ns *lead, struct pt_err *e)
{
    const struct pt_gate *gate = r->spec->gate;
    pt_ns window = 0, least = LEAD_NS + r->far.rtt_ns;
    *lead = least;
    if (!gate)
        return 0;
    int rc = gate->pass(gate->ctx, r->shape.warmup, &window, e);
    *lead = window - r->shape.warmup - pt_clock_now();
    if (*lead < least)
        *lead = least; /* too late: `began` tells by how much */
    return rc;
}

static void tell_gate(const struct run *r)
{
    pt_ns first = PT_NS_MAX, last = 0;
    for (unsigned i = 0; i < r->job.spec.workers; i++) {
        pt_ns began = r->job.workers[i].window_ns;
        first = began && began < first ? began : first;
        last = began > last ? began : last;
    }
    if (r->spec->gate && last)
        r->spec->gate->began(r->spec->gate->ctx, first, last);
}

static int go(struct run *r, struct pt_err *e)
{
    pt_ns lead;
    int rc = choose_lead(r, &lead, e);
    if (rc < 0)
        return rc;
    /* Both ends begin one lead after the message is read; ours waits half a round trip longer. */
    pt_ns now = pt_clock_now();
    rc = r->far.kind->start ? r->far.kind->start(&r->far, lead, now + step(r), e) : 0;
    if (rc < 0)
        return rc;
    r->wire = pt_wire_begin(&r->far.at);
    r->start_ns = now + lead;
    r->far.heard_ns = r->far.told_ns = now;
    pt_job_release(&r->job, r->start_ns);
    r->host = pt_hosts_watch(&r->job, r->start_ns + r->shape.warmup);
    return 0;
}

/* ---- while it runs */

/* False when the other end is lost. */
static bool listen_to_peer(struct run *r)
{
    return !r->far.kind->listen || r->far.kind->listen(&r->far);
}

static void say_alive(struct run *r, pt_ns now)
{
    if (r->far.kind->keep_alive)
        r->far.kind->keep_alive(&r->far, now);
}

static bool peer_is_silent(struct run *r, pt_ns now)
{
    if (!r->far.kind->ticks || now - r->far.heard_ns < patience(r) + 2 * PT_S)
        return false;
    pt_far_broke(&r->far, "%s has said nothing for %.0f s (stopped, cut off or hung)", r->far.name,
                 (double)(now - r->far.heard_ns) / 1e9);
    return true;
}

/* Our own figures of an interval are ready at once; the peer's of the same one come a moment later.
 */
static bool waits_for_peer(const struct run *r, pt_ns now)
{
    const struct pt_shape *s = &r->shape;
    pt_ns most = r->plan.common.interval / 4;
    if (s->both || !s->forward || r->far.point_new)
        return false;
    return now - r->sampled_ns < (most < SHOW_NS ? most : SHOW_NS);
}

static void show(struct run *r, pt_ns now)
{
    const struct pt_shape *s = &r->shape;
    if (!r->sampled || waits_for_peer(r, now))
        return;
    pt_ns measure = r->start_ns + s->warmup, at = r->sampled_ns;
    bool counted = s->bytes || s->ops_per_flow;
    struct pt_live l = {
        .phase = at < measure                             ? PT_PHASE_WARMUP
                 : !counted && at > measure + s->duration ? PT_PHASE_TAIL
                                                          : PT_PHASE_MEASURE,
        .elapsed_s = (double)(at - r->start_ns) / 1e9,
        .total_s = counted ? 0 : (double)(s->warmup + s->duration) / 1e9,
        .local = r->sampled,
        .peer = r->far.point_new ? &r->far.point : NULL,
    };
    r->sampled = NULL;
    r->far.point_new = false;
    if (r->spec->live)
        r->spec->live(r->spec->ctx, &l);
}

static void sample(struct run *r, pt_ns now)
{
    r->sampled = pt_sampler_take(&r->sampler, &r->job, now);
    r->sampled_ns = now;
}

static void nap(struct run *r, pt_ns until, bool peer)
{
    struct pollfd p[3] = {{.fd = peer ? r->far.fd : -1, .events = POLLIN},
                          {.fd = r->job.news, .events = POLLIN},
                          {.fd = pt_signal_fd(), .events = POLLIN}};
    pt_ns wait = until - pt_clock_now();
    struct timespec ts = {.tv_sec = (time_t)(wait / PT_S), .tv_nsec = (long)(wait % PT_S)};
    if (wait <= 0)
        return;
    if (pt_signal_count())
        p[2].fd = -1; /* stays readable: it has been seen */
    if (ppoll(p, 3, &ts, NULL) < 0)
        return;
}

/* Receivers of datagrams see no end of them: it is over when all is sent, at both ends. */
static bool all_is_sent(const struct run *r, pt_ns now, pt_ns end)
{
    const struct pt_shape *s = &r->shape;
    bool counted = s->bytes || s->ops_per_flow;
    return !s->both && (counted || now >= end) && (s->forward == s->flows || r->far.sent) &&
           !pt_job_senders(&r->job);
}

/* A counted transfer that the other end sends, and does not end by itself. */
static bool has_enough(const struct run *r)
{
    const struct pt_shape *s = &r->shape;
    uint64_t came = 0;
    if (!s->lingers || !s->bytes || s->forward == s->flows || pt_job_senders(&r->job))
        return false;
    for (unsigned p = 0; p < PT_PHASES; p++) {
        struct pt_counters c;
        pt_job_counters(&r->job, (enum pt_phase)p, &c);
        came += c.rx_bytes;
    }
    return came >= s->bytes;
}

/* Until the time is over, everything is done, somebody is lost, or a signal came. */
static void watch(struct run *r)
{
    const struct pt_shape *s = &r->shape;
    bool counted = s->bytes || s->ops_per_flow;
    pt_ns begin = s->bytes ? r->start_ns : r->start_ns + s->warmup;
    pt_ns end = counted ? PT_NS_MAX : begin + s->duration;
    pt_ns late = patience(r) < 2 * PT_S ? patience(r)
                                        : 2 * PT_S; /* what is still to come may take so long */
    pt_ns interval = r->plan.common.interval;
    pt_ns next = r->start_ns + s->warmup % interval;
    if (next <= r->start_ns)
        next += interval;
    for (;;) {
        pt_ns now = pt_clock_now();
        if (now >= next) {
            sample(r, now);
            while (next <= now)
                next += interval;
        }
        (void)pt_host_watch_tick(r->host, now);
        bool heard = listen_to_peer(r);
        show(r, now);
        say_alive(r, now);
        if (!heard || r->far.broken[0] || pt_signal_count() || peer_is_silent(r, now) ||
            r->far.reported)
            return;
        if (pt_job_done(&r->job) || pt_job_is_broken(&r->job) || all_is_sent(r, now, end) ||
            has_enough(r))
            return;
        if (end != PT_NS_MAX && now >= end + s->tail + late)
            return;
        if (end != PT_NS_MAX && now >= end && !s->both && s->forward < s->flows &&
            now >= end + s->tail + 50 * PT_MS)
            return;
        pt_ns until = now + (s->lingers && s->bytes ? PT_MS : 100 * PT_MS);
        if (next < until)
            until = next;
        if (r->sampled && now + 10 * PT_MS < until)
            until = now + 10 * PT_MS;
        if (now < end && end < until)
            until = end;
        nap(r, until, true);
    }
}

/* Until the peer has reported, is lost, or somebody wants no report of it. */
static void await_report(struct run *r)
{
    if (!r->far.kind->stop)
        return;
    pt_ns most = patience(r) < REPORT_NS ? patience(r) + PT_S : REPORT_NS;
    r->far.heard_ns = pt_clock_now();
    while (!r->far.broken[0] && !r->far.reported && listen_to_peer(r) && !r->far.reported) {
        pt_ns now = pt_clock_now();
        say_alive(r, now);
        if (now - r->far.heard_ns > most)
            pt_far_broke(&r->far, "%s gave no report within %.0f s", r->far.name,
                         (double)most / 1e9);
        if (pt_signal_count() > 1)
            pt_far_broke(&r->far, "interrupted while waiting for the peer's report");
        nap(r, now + 100 * PT_MS, true);
    }
}

/* What is still under way arrives, as long as anything does. False: they hang, or somebody will not
 * wait. */
static bool await_workers(struct run *r)
{
    bool counted = r->shape.bytes || r->shape.ops_per_flow;
    pt_ns most = counted ? patience(r) + PT_S : PT_S;
    while (!pt_job_done(&r->job) && pt_signal_count() < 2) {
        pt_ns now = pt_clock_now();
        if (pt_job_is_stuck(&r->job, now, r->far.broken[0] ? PT_S / 2 : most))
            return false;
        nap(r, now + 50 * PT_MS, false);
    }
    return pt_signal_count() < 2;
}

/* Stops both ends and waits for what the peer has to say. */
static void wind_down(struct run *r)
{
    struct pt_err e = {0};
    pt_job_stop(&r->job, r->far.broken[0] ? PT_STOP_NOW : PT_STOP_SEND);
    if (!r->far.broken[0] && !r->far.reported && r->far.kind->stop)
        r->far.kind->stop(&r->far, &r->job);
    await_report(r);
    if (r->far.broken[0])
        pt_job_stop(&r->job, PT_STOP_NOW);
    pt_ns grace = await_workers(r) ? PT_S : 0; /* who has hung already is given no more time */
    if (pt_job_finish(&r->job, pt_clock_now() + grace, &e) < 0)
        pt_far_broke(&r->far, "%s", e.text);
    pt_wire_end(r->wire);
}

static int make_document(struct run *r, struct pt_result **out, struct pt_err *e)
{
    int rc = pt_half_read(&r->local, &r->job);
    if (rc < 0)
        return pt_fail(e, rc, "no memory for the report");
    r->local.wire = r->wire;
    r->wire = NULL;
    r->local.host = pt_hosts_json(r->host);
    r->local.series = r->sampler.series;
    r->sampler.series = (struct pt_series){0};
    struct pt_result *res = pt_result_new(pt_clock_realtime() - (pt_clock_now() - r->start_ns));
    if (!res)
        return pt_fail(e, -ENOMEM, "no memory for the report");
    if (r->far.kind->conclude)
        r->far.kind->conclude(&r->far, &r->local, res);
    struct pt_report rep = {
        .plan = &r->plan,
        .wl = r->spec->wl,
        .shape = &r->shape,
        .place = &r->place,
        .local = &r->local,
        .peer = r->far.reported ? &r->far.half : NULL,
        .engine_reason = r->engine_reason,
        .broken = r->far.broken[0] ? r->far.broken : NULL,
        .one_net = is_same(r->spec->identity, r->far.identity, "boot_id") &&
                   is_same(r->spec->identity, r->far.identity, "netns"),
        .interrupted = pt_signal_count() > 0,
    };
    if (rep.peer && rep.peer->error[0] && !rep.broken)
        rep.broken = rep.peer->error;
    pt_result_take(res, "local", json_deep_copy(r->spec->identity));
    pt_result_take(res, "peer", json_deep_copy(r->far.identity));
    pt_report_make(&rep, res);
    if (r->slowed_down) {
        char allowed[PT_UNITS_TEXT];
        pt_si_show(allowed, sizeof(allowed), r->far.caps.max_rate_bits, "bit/s");
        pt_result_warn(res, "%s allows %s: the transfer was paced at that", r->far.name, allowed);
    }
    *out = res;
    return 0;
}

static void release(struct run *r)
{
    if (r->job_open)
        pt_job_close(&r->job);
    pt_sampler_close(&r->sampler);
    if (r->far.kind->close)
        r->far.kind->close(&r->far);
    pt_wire_free(r->wire);
    pt_host_watch_free(r->host);
    pt_half_fini(&r->local);
    pt_half_fini(&r->far.half);
    pt_plan_fini(&r->plan);
    free(r);
}

int pt_run(const struct pt_run_spec *spec, struct pt_result **out, struct pt_err *e)
{
    struct run *r = calloc(1, sizeof(*r));
    if (!r)
        return pt_fail(e, -ENOMEM, "no memory");
    r->spec = spec;
    int rc = pt_plan_copy(&r->plan, spec->plan, e);
    if (rc < 0) {
        free(r);
        return rc;
    }
    r->far = (struct pt_far){.kind = spec->far ? spec->far : &pt_far_pitot,
                             .spec = spec,
                             .plan = &r->plan,
                             .shape = &r->shape,
                             .place = &r->place,
                             .fd = -1};
    rc = spec->wl->shape(&r->plan, &r->shape, e);
    if (rc == 0)
        rc = call(r, r->far.kind->reach, e);
    if (rc == 0)
        rc = pt_channel_choose(&r->shape, &r->plan, &r->far.at, e);
    if (rc == 0)
        rc = heed_caps(r, e);
    if (rc == 0)
        rc = propose(r, e);
    if (rc == 0)
        rc = pt_sampler_open(&r->sampler, e);
    if (rc == 0)
        rc = get_set(r, e);
    if (rc == 0)
        rc = go(r, e);
    if (rc == 0) {
        watch(r);
        pt_host_watch_end(r->host);
        pt_sampler_last(&r->sampler, &r->job, pt_clock_now());
        wind_down(r);
        tell_gate(r);
        rc = make_document(r, out, e);
    } else if (r->far.kind->explain) {
        rc = r->far.kind->explain(&r->far, rc, e);
    }
    release(r);
    return rc;
}
