/* answer.c: the supervisor of the answering side: a session of `pitot serve`, test after test.
 *
 * What the client sends is checked by the same tables and the same `shape` that its own side went
 * through; nothing of it is believed beyond that.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "engine/caps.h"
#include "engine/channel.h"
#include "engine/hosts.h"
#include "engine/run.h"
#include "net/session.h"
#include "net/sock.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/proc.h"
#include "os/signal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_NS (15 * PT_S) /* between the messages that prepare a test */
#define IDLE_NS (60 * PT_S) /* between tests */
#define TICK_NS PT_S
#define LOOK_NS (100 * PT_MS) /* at caps, and at workers that hang */
/* A client says every second that it is alive; it may be silent for its --timeout, within these. */
#define PATIENCE_MIN (10 * PT_S)
#define PATIENCE_MAX (30 * PT_S)

struct answer {
    struct pt_session *session;
    const struct pt_workload *wl;
    struct pt_plan plan;
    bool plan_open;
    struct pt_job_spec job_spec;
    struct pt_job job;
    bool job_open;
    struct pt_sampler sampler;
    struct pt_wire *wire;
    struct pt_host_watch *host;
    int *fds;
    /* while it runs */
    bool stopped, sent;       /* the client said stop; it was told that all is sent */
    pt_ns heard_ns, patience; /* the client's last word; how long it may be silent */
    pt_ns tick_ns, interval;  /* the next tick */
};

static int read_placement(struct answer *a, const json_t *test, struct pt_err *e)
{
    struct pt_job_spec *js = &a->job_spec;
    struct pt_cpu_list allowed;
    int rc = pt_cpu_allowed(&allowed, e);
    if (rc < 0)
        return rc;
    json_int_t workers = json_integer_value(json_object_get(test, "workers"));
    unsigned most = allowed.n < PT_WORKERS_MAX ? allowed.n : PT_WORKERS_MAX;
    if (workers < 1 || workers > PT_WORKERS_MAX)
        return pt_fail(e, -EPROTO, "the test asks for %" JSON_INTEGER_FORMAT " workers", workers);
    if (js->shape.workers_most && js->shape.workers_most < most)
        most = js->shape.workers_most;
    js->workers = (unsigned)workers < most ? (unsigned)workers : most;
    const json_t *cpus = json_object_get(test, "cpus");
    for (unsigned i = 0; i < js->workers; i++) {
        const json_t *v = json_array_get(cpus, i);
        json_int_t cpu = json_is_integer(v) ? json_integer_value(v) : -1;
        bool usable = cpu >= 0 && cpu < PT_CPU_MAX && pt_cpu_has(&allowed, (unsigned)cpu);
        js->cpu[i] = usable                             ? (int)cpu
                     : js->workers > 1 || allowed.n > 1 ? (int)allowed.cpu[i]
                                                        : -1;
    }
    const json_t *beside = json_object_get(test, "beside");
    json_int_t cpu = json_is_integer(beside) ? json_integer_value(beside) : -1;
    js->beside =
        cpu >= 0 && cpu < PT_CPU_MAX && pt_cpu_has(&allowed, (unsigned)cpu) ? (int)cpu : -1;
    js->paired = json_is_true(json_object_get(test, "paired"));
    js->same_machine = json_is_true(json_object_get(test, "same_machine"));
    const char *engine = json_string_value(json_object_get(test, "engine"));
    js->backend = engine && strcmp(engine, "uring") == 0 ? PT_BACKEND_URING : PT_BACKEND_EPOLL;
    return 0;
}

static int check_caps(const struct answer *a, struct pt_err *e)
{
    const struct pt_shape *s = &a->job_spec.shape;
    if (s->flows > PT_FLOWS_MAX)
        return pt_fail(e, -EPERM, "a session has at most %u connections, the test has %u",
                       PT_FLOWS_MAX, s->flows);
    return pt_caps_check(&a->session->caps, s, "this server", e);
}

static int read_test(struct answer *a, const json_t *test, struct pt_err *e)
{
    const char *name = json_string_value(json_object_get(test, "workload"));
    a->wl = name ? pt_workload_find(name) : NULL;
    if (!a->wl)
        return pt_fail(e, -EPROTONOSUPPORT, "this server knows no such workload; it may be older");
    int rc = pt_plan_init(&a->plan, &a->wl->form, e);
    if (rc < 0)
        return rc;
    a->plan_open = true;
    rc = pt_plan_from_peer(&a->plan, json_object_get(test, "params"), e);
    a->job_spec = (struct pt_job_spec){.side = PT_ANSWER,
                                       .wl = a->wl,
                                       .plan = &a->plan,
                                       .listener = -1,
                                       .beside = -1,
                                       .listener_at = a->session->control->peer,
                                       .impairment = a->session->impairment};
    if (rc == 0)
        rc = a->wl->shape(&a->plan, &a->job_spec.shape, e);
    if (rc == 0)
        rc = pt_channel_choose(&a->job_spec.shape, &a->plan, &a->session->control->peer, e);
    if (rc == 0)
        rc = check_caps(a, e);
    if (rc == 0 && a->wl->reach)
        rc = a->wl->reach(&a->plan, PT_ANSWER, &a->session->control->peer, &a->job_spec.shape, e);
    if (rc == 0)
        rc = read_placement(a, test, e);
    /* One worker has one path, so a rate cap is that of the session. A full path stops reading, and
     * only epoll leaves what it has not read in the socket. */
    if (a->session->impairment) {
        a->job_spec.workers = 1;
        if (a->job_spec.shape.chan != PT_CHAN_UDP)
            a->job_spec.backend = PT_BACKEND_EPOLL;
    }
    return rc;
}

/* --crr: the workers accept on a port of their own, at the address the client reached us by. */
static int open_listener(struct answer *a, uint16_t *port, struct pt_err *e)
{
    struct pt_addr at = a->session->control->local;
    struct pt_sockopts o; /* what is accepted inherits them */
    pt_channel_options(&o, &a->plan.common, &a->job_spec.shape);
    pt_addr_set_port(&at, 0);
    int fd = pt_sock_listen(&at, 0, &o, e);
    if (fd < 0)
        return fd;
    int rc = pt_addr_local(&at, fd);
    *port = pt_addr_port(&at);
    a->job_spec.listener = fd;
    return rc;
}

static int take_flows(struct answer *a, struct pt_err *e)
{
    uint32_t n = a->job_spec.shape.flows;
    struct pt_session_flow *flows = calloc(n + 1, sizeof(*flows));
    a->fds = calloc(n + 1, sizeof(*a->fds));
    if (!flows || !a->fds) {
        free(flows);
        return pt_fail(e, -ENOMEM, "no memory for %u flows", n);
    }
    int rc = pt_session_take_flows(a->session, flows, 0, n, pt_clock_now() + STEP_NS, e);
    if (rc == 0) {
        for (uint32_t i = 0; i < n; i++)
            a->fds[i] = flows[i].fd;
        a->job_spec.fds = a->fds;
        bool udp = a->job_spec.shape.chan == PT_CHAN_UDP;
        for (uint32_t i = 0; i < n; i++)
            if (flows[i].datagram != udp)
                rc = -EPROTO;
        if (rc < 0) {
            for (uint32_t i = 0; i < n; i++)
                close(a->fds[i]);
            pt_fail(e, rc, "flow of the wrong kind");
        }
    }
    free(flows);
    return rc;
}

static int prepare(struct answer *a, struct pt_err *e)
{
    struct pt_control *c = a->session->control;
    uint16_t port = 0;
    int rc = a->job_spec.shape.answer_listens ? open_listener(a, &port, e) : 0;
    if (rc == 0)
        rc = pt_control_send_new(c,
                                 json_pack("{s:s, s:i, s:i}", "type", "accepted", "workers",
                                           (int)a->job_spec.workers, "port", (int)port),
                                 pt_clock_now() + STEP_NS, e);
    if (rc == 0 && !a->job_spec.shape.answer_listens)
        rc = take_flows(a, e);
    json_t *m = NULL;
    if (rc == 0)
        rc = pt_control_expect(c, "prepare", &m, pt_clock_now() + STEP_NS, e);
    json_decref(m);
    if (rc == 0)
        rc = pt_sampler_open(&a->sampler, e);
    if (rc == 0) {
        rc = pt_job_start(&a->job, &a->job_spec, e);
        a->job_open = rc == 0;
    }
    if (rc == 0)
        rc = pt_job_wait_ready(&a->job, pt_clock_now() + STEP_NS, e);
    if (rc == 0)
        rc = pt_control_send_new(c, json_pack("{s:s}", "type", "ready"), pt_clock_now() + STEP_NS,
                                 e);
    return rc;
}

static int begin(struct answer *a, struct pt_err *e)
{
    json_t *m = NULL;
    int rc = pt_control_expect(a->session->control, "start", &m, pt_clock_now() + STEP_NS, e);
    if (rc < 0)
        return rc;
    json_int_t lead = json_integer_value(json_object_get(m, "lead_ns"));
    json_decref(m);
    if (lead < 0 || lead > 10 * PT_S)
        return pt_fail(e, -EPROTO, "start: lead_ns out of range");
    pt_ns start = pt_clock_now() + lead;
    pt_job_release(&a->job, start);
    a->wire = pt_wire_begin(&a->session->control->peer);
    return 0;
}

static int tell(struct answer *a, json_t *message, struct pt_err *e)
{
    return pt_control_send_new(a->session->control, message, pt_clock_now() + 2 * PT_S, e);
}

static int tick(struct answer *a, pt_ns now, struct pt_err *e)
{
    const struct pt_point *p = pt_sampler_take(&a->sampler, &a->job, now);
    return tell(a, json_pack("{s:s, s:o?}", "type", "tick", "point", pt_point_to_json(p)), e);
}

/* Whether the senders of this side have sent all. */
static bool all_sent(struct answer *a)
{
    const struct pt_shape *s = &a->job_spec.shape;
    return !s->both && s->forward < s->flows && !pt_job_senders(&a->job);
}

/* What the client says while its test runs: that it is alive, or stop. */
static int listen_to_client(struct answer *a, pt_ns now, struct pt_err *e)
{
    struct pt_control *c = a->session->control;
    int pending = pt_control_pending(c);
    if (!pending && now - a->heard_ns > a->patience)
        return pt_fail(e, -ETIMEDOUT, "%s has said nothing for %.0f s (stopped, cut off or hung)",
                       c->name, (double)(now - a->heard_ns) / 1e9);
    if (!pending)
        return 0;
    json_t *m = NULL;
    int rc = pt_control_recv(c, &m, now, e);
    if (rc < 0)
        return rc;
    a->heard_ns = now;
    if (strcmp(pt_control_type(m), "stop") == 0) {
        a->stopped = true;
        pt_job_stop(&a->job, PT_STOP_SEND);
    }
    json_decref(m);
    return 1;
}

/* Ticks, and that all is sent. */
static int keep_client_posted(struct answer *a, pt_ns now, struct pt_err *e)
{
    int rc = 0;
    if (now >= a->tick_ns) {
        rc = tick(a, now, e);
        while (a->tick_ns <= now)
            a->tick_ns += a->interval;
    }
    if (rc == 0 && !a->sent && all_sent(a)) {
        a->sent = true;
        rc = tell(a, json_pack("{s:s}", "type", "sent"), e);
    }
    return rc;
}

/* Whether there is nothing more to measure: everything is drained, or a worker broke or hangs. */
static bool is_over(struct answer *a, pt_ns now)
{
    if (pt_job_is_broken(&a->job))
        return true;
    return a->stopped && (pt_job_done(&a->job) ||
                          pt_job_is_stuck(&a->job, now, a->plan.common.timeout + 2 * PT_S));
}

/* Runs until the client says stop and everything is drained. */
static int attend(struct answer *a, struct pt_err *e)
{
    pt_ns timeout = a->plan.common.timeout;
    a->patience = timeout < PATIENCE_MIN   ? PATIENCE_MIN
                  : timeout < PATIENCE_MAX ? timeout
                                           : PATIENCE_MAX;
    a->interval = a->plan.common.interval < TICK_NS ? a->plan.common.interval : TICK_NS;
    /* Points end where the warm-up does, as the client's. */
    pt_ns start = atomic_load(&a->job.shared->start_ns);
    a->tick_ns = start + a->job_spec.shape.warmup % a->interval;
    if (a->tick_ns <= start)
        a->tick_ns += a->interval;
    a->heard_ns = pt_clock_now();
    a->host = pt_hosts_watch(&a->job, start + a->job_spec.shape.warmup);
    for (;;) {
        pt_ns now = pt_clock_now();
        (void)pt_host_watch_tick(a->host, now);
        int rc = keep_client_posted(a, now, e);
        while (rc == 0 && (rc = listen_to_client(a, now, e)) > 0)
            rc = 0;
        if (rc == 0)
            rc = pt_caps_watch(&a->session->caps, &a->job, now, e);
        if (rc < 0)
            return rc;
        if (is_over(a, now))
            return 0;
        struct pollfd p[2] = {{.fd = a->session->control->fd, .events = POLLIN},
                              {.fd = a->job.news, .events = POLLIN}};
        pt_ns wait = a->tick_ns - now < LOOK_NS ? a->tick_ns - now : LOOK_NS;
        if (poll(p, 2, (int)(wait / PT_MS) + 1) < 0 && errno != EINTR)
            return -errno;
    }
}

static int send_report(struct answer *a, struct pt_err *e)
{
    struct pt_err worker = {0};
    pt_host_watch_end(a->host);
    pt_sampler_last(&a->sampler, &a->job, pt_clock_now());
    pt_job_stop(&a->job, PT_STOP_NOW);
    /* What a worker said when it broke is in the half. */
    int broken = pt_job_finish(&a->job, pt_clock_now() + PT_S, &worker);
    struct pt_half half;
    int rc = pt_half_read(&half, &a->job);
    if (rc < 0)
        return pt_fail(e, rc, "no memory for the report");
    pt_wire_end(a->wire);
    half.wire = a->wire;
    a->wire = NULL;
    half.host = pt_hosts_json(a->host);
    half.series = a->sampler.series;
    a->sampler.series = (struct pt_series){0};
    rc = tell(a, json_pack("{s:s, s:o?}", "type", "report", "half", pt_half_to_json(&half)), e);
    const struct pt_counters *c = &half.c[PT_PHASE_MEASURE];
    pt_session_note(a->session, "test=%s flows=%u rx_bytes=%llu tx_bytes=%llu",
                    a->wl->form.manual.command, a->job_spec.shape.flows,
                    (unsigned long long)c->rx_bytes, (unsigned long long)c->tx_bytes);
    pt_half_fini(&half);
    if (broken < 0)
        pt_log(PT_LOG_WARN, "worker failed: %s", worker.text);
    return rc;
}

static void clean_up(struct answer *a)
{
    if (a->job_open)
        pt_job_close(&a->job);
    pt_sampler_close(&a->sampler);
    pt_wire_free(a->wire);
    pt_host_watch_free(a->host);
    if (a->job_spec.listener >= 0)
        close(a->job_spec.listener);
    if (a->plan_open)
        pt_plan_fini(&a->plan);
    free(a->fds);
}

static int one_test(struct pt_session *s, const json_t *test, struct pt_err *e)
{
    struct answer *a = calloc(1, sizeof(*a));
    if (!a)
        return pt_fail(e, -ENOMEM, "no memory");
    a->session = s;
    a->job_spec.listener = -1;
    int rc = read_test(a, test, e);
    if (rc == 0)
        rc = prepare(a, e);
    if (rc == 0)
        rc = begin(a, e);
    if (rc == 0)
        rc = attend(a, e);
    if (rc == 0)
        rc = send_report(a, e);
    clean_up(a);
    free(a);
    return rc;
}

/* The next test; what the client said of the one before, when it crossed with our report, is late.
 */
static int next_test(struct pt_session *s, json_t **out, struct pt_err *e)
{
    pt_ns deadline = pt_clock_now() + IDLE_NS;
    for (;;) {
        int rc = pt_control_recv(s->control, out, deadline, e);
        const char *type = rc == 0 ? pt_control_type(*out) : "test";
        if (strcmp(type, "test") == 0)
            return rc;
        bool late = strcmp(type, "alive") == 0 || strcmp(type, "stop") == 0;
        json_decref(*out);
        *out = NULL;
        if (!late)
            return pt_fail(e, -EPROTO, "a test was due");
    }
}

int pt_answer_session(struct pt_session *s)
{
    for (;;) {
        struct pt_err e = {0};
        json_t *m = NULL;
        int rc = next_test(s, &m, &e);
        if (rc == -ECONNRESET)
            return 0; /* the client is done */
        if (rc == 0)
            rc = one_test(s, m, &e);
        json_decref(m);
        if (rc < 0) {
            char text[sizeof(e.text)];
            snprintf(text, sizeof(text), "%s", e.text);
            if (rc != -ECONNRESET && rc != -EPIPE)
                pt_control_refuse(s->control, rc, text);
            return 1;
        }
    }
}
