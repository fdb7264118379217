/* compat_iperf3_test.c: one test of a stock iperf3 client, in a process of its own.
 *
 * The client is led through the states of proto/iperf3.h; the measuring is that of `bw`, whose
 * answering half runs here as it does in `pitot serve`. Every read has a deadline, and what was
 * under way when the test ended is waited for before it is counted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/compat_iperf3.h"

#include "engine/caps.h"
#include "engine/channel.h"
#include "engine/run.h"
#include "net/iperf3_control.h"
#include "os/clock.h"
#include "os/fdpass.h"
#include "os/signal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_NS  (10 * PT_S) /* a client that says nothing for so long is given up */
#define GRACE_NS (30 * PT_S) /* beyond the time it asked for, as iperf3 gives */
#define LONG_S   86400       /* a test without an end of its own */

struct test {
    struct pt_compat_test *spec;
    struct pt_iperf3_control control;
    struct pt_iperf3_params params;
    struct pt_plan plan;
    struct pt_job_spec job_spec;
    struct pt_job job;
    bool plan_open, job_open, running;
    int fds[2 * PT_IPERF3_STREAMS];
    unsigned fd_count;
    struct pt_usage before;
    pt_ns start_ns;
};

static void log_line(struct test *t, const char *fmt, ...) PT_PRINTF(2, 3);
static void log_line(struct test *t, const char *fmt, ...)
{
    struct pt_compat_word w = {.kind = PT_COMPAT_LOG};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w.text, sizeof(w.text), fmt, ap);
    va_end(ap);
    (void)!pt_fdpass_send(t->spec->channel, -1, &w, sizeof(w), pt_clock_now() + PT_S);
}

/* What older clients take for a plain end of the connection. */
static void refuse(struct test *t, int32_t i_errno)
{
    uint8_t word[9] = {(uint8_t)PT_IPERF3_SERVER_ERROR};
    for (int i = 0; i < 4; i++)
        word[1 + i] = (uint8_t)((uint32_t)i_errno >> (24 - 8 * i));
    ssize_t n = write(t->control.fd, word, sizeof(word));
    (void)n;
}

/* ---- what is asked for */

static int set(struct test *t, const char *name, const char *fmt, ...) PT_PRINTF(3, 4);
static int set(struct test *t, const char *name, const char *fmt, ...)
{
    char value[64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof(value), fmt, ap);
    va_end(ap);
    return pt_opt_set(t->plan.sets, PT_COUNT(t->plan.sets), name, value, NULL);
}

/* The parameters as the plan of a `bw`. */
static int make_plan(struct test *t, struct pt_err *e)
{
    const struct pt_iperf3_params *p = &t->params;
    const struct pt_workload *wl = pt_workload_find("bw");
    int rc = pt_plan_init(&t->plan, &wl->form, e);
    if (rc < 0)
        return rc;
    t->plan_open = true;
    /* A test ends when its client says so. */
    rc = set(t, "peer", "iperf3");
    rc |= set(t, "duration", "%us", p->time_s ? p->time_s + 60 : LONG_S);
    rc |= set(t, "warmup", "%us", p->udp ? 0 : p->omit_s);
    rc |= set(t, "udp", "%s", p->udp ? "true" : "false");
    rc |= set(t, "connections", "%u", p->parallel);
    rc |= set(t, p->bidir ? "bidir" : "reverse", "%s", p->bidir || p->reverse ? "true" : "false");
    if (p->udp || p->len <= 4u << 20)
        rc |= set(t, "size", "%u", p->len);
    if (p->tos)
        rc |= set(t, "tos", "%u", p->tos);
    if (p->mss && !p->udp)
        rc |= set(t, "mss", "%u", p->mss);
    if (p->congestion[0])
        rc |= set(t, "cc", "%s", p->congestion);
    if (p->window) {
        rc |= set(t, "sndbuf", "%u", p->window);
        rc |= set(t, "rcvbuf", "%u", p->window);
    }
    if (p->bits_per_s && (p->reverse || p->bidir))
        rc |= set(t, "rate", "%llubit", (unsigned long long)p->bits_per_s * p->parallel);
    if (rc < 0)
        return pt_fail(e, -EPROTO, "its parameters cannot be carried out here");
    t->job_spec = (struct pt_job_spec){.side = PT_ANSWER,
                                       .wl = wl,
                                       .plan = &t->plan,
                                       .workers = 1,
                                       .cpu = {-1},
                                       .backend = PT_BACKEND_EPOLL,
                                       .listener = -1,
                                       .beside = -1,
                                       .listener_at = t->spec->peer};
    rc = wl->shape(&t->plan, &t->job_spec.shape, e);
    if (rc < 0)
        return rc;
    if (p->udp && !p->counters64)
        t->job_spec.shape.dgram = PT_DGRAM_IPERF3;
    return 0;
}

static int check_caps(struct test *t, int32_t *i_errno, struct pt_err *e)
{
    struct pt_shape asked = t->job_spec.shape;
    const struct pt_iperf3_params *p = &t->params;
    asked.duration = (pt_ns)p->time_s * PT_S;
    asked.bits_per_s = p->bits_per_s ? (double)p->bits_per_s * p->parallel : asked.bits_per_s;
    *i_errno = asked.flows > t->spec->spec->caps.max_connections ? 6 : 27;
    if (t->spec->spec->caps.max_duration &&
        (!p->time_s || asked.duration > t->spec->spec->caps.max_duration))
        *i_errno = 37;
    if (!p->time_s && t->spec->spec->caps.max_duration && !p->bytes && !p->blocks)
        return pt_fail(e, -EPERM, "it asks for a test without an end");
    return pt_caps_check(&t->spec->spec->caps, &asked, "this server", e);
}

static int agree(struct test *t, struct pt_err *e)
{
    json_t *params = NULL;
    int32_t i_errno = 114;
    pt_ns deadline = pt_clock_now() + STEP_NS;
    int rc = pt_iperf3_say(&t->control, PT_IPERF3_PARAM_EXCHANGE, deadline, e);
    if (rc == 0)
        rc = pt_iperf3_recv_json(&t->control, PT_IPERF3_PARAMS_MAX, &params, deadline, e);
    if (rc < 0)
        return rc;
    rc = pt_iperf3_params_parse(&t->params, params, &i_errno, e);
    if (rc == 0) {
        i_errno = 114;
        rc = make_plan(t, e);
    }
    if (rc == 0)
        rc = check_caps(t, &i_errno, e);
    t->params.authtoken = NULL;
    json_decref(params);
    if (rc < 0)
        refuse(t, i_errno);
    return rc;
}

/* ---- streams */

static int ask_for_udp(struct test *t, unsigned streams, pt_ns deadline)
{
    struct pt_compat_word w = {.kind = PT_COMPAT_WANTS_UDP, .streams = streams};
    return pt_fdpass_send(t->spec->channel, -1, &w, sizeof(w), deadline);
}

/* A UDP stream does not say to which test it belongs, so tests of one address take turns. */
static int await_turn(struct test *t, pt_ns deadline, struct pt_err *e)
{
    struct pt_compat_word w = {.kind = PT_COMPAT_STREAM};
    int fd = -1;
    int rc = ask_for_udp(t, t->job_spec.shape.flows, deadline);
    ssize_t n = rc < 0 ? rc : pt_fdpass_recv(t->spec->channel, &fd, &w, sizeof(w), deadline);
    if (fd >= 0)
        close(fd);
    if (n != sizeof(w) || w.kind != PT_COMPAT_GO)
        return pt_fail(e, n < 0 ? (int)n : -EPIPE, "it got no turn to open its UDP streams");
    return 0;
}

/* The client opens them one after the other; main brings each. */
static int take_streams(struct test *t, struct pt_err *e)
{
    const struct pt_shape *s = &t->job_spec.shape;
    pt_ns deadline = pt_clock_now() + STEP_NS;
    bool udp = s->chan == PT_CHAN_UDP;
    int rc = udp ? await_turn(t, deadline, e) : 0;
    if (rc == 0)
        rc = pt_iperf3_say(&t->control, PT_IPERF3_CREATE_STREAMS, deadline, e);
    while (rc == 0 && t->fd_count < s->flows) {
        struct pt_compat_word w;
        int fd;
        ssize_t n = pt_fdpass_recv(t->spec->channel, &fd, &w, sizeof(w), deadline);
        if (n == -ETIMEDOUT)
            return pt_fail(e, -ETIMEDOUT, "%u of its %u streams came", t->fd_count, s->flows);
        if (n <= 0)
            return pt_fail(e, n < 0 ? (int)n : -EPIPE, "the server has ended");
        if (fd < 0)
            continue;
        t->fds[t->fd_count++] = fd;
        if (udp && write(fd, pt_iperf3_udp_reply, sizeof(pt_iperf3_udp_reply)) < 0)
            rc = pt_fail(e, -errno, "answering a UDP stream: %s", pt_strerror(-errno));
    }
    return rc;
}

static int prepare(struct test *t, struct pt_err *e)
{
    struct pt_sockopts o;
    pt_channel_options(&o, &t->plan.common, &t->job_spec.shape);
    t->job_spec.fds = t->fds;
    int rc = pt_job_start(&t->job, &t->job_spec, e);
    t->fd_count = 0; /* taken over */
    t->job_open = rc == 0;
    if (rc == 0)
        rc = pt_job_wait_ready(&t->job, pt_clock_now() + STEP_NS, e);
    if (rc == 0)
        rc = pt_iperf3_say(&t->control, PT_IPERF3_TEST_START, pt_clock_now() + STEP_NS, e);
    if (rc < 0)
        return rc;
    pt_usage_children(&t->before);
    t->start_ns = pt_clock_now();
    pt_job_release(&t->job, t->start_ns);
    t->running = true;
    return pt_iperf3_say(&t->control, PT_IPERF3_TEST_RUNNING, pt_clock_now() + STEP_NS, e);
}

/* ---- while it runs */

/* Until the client says that it is over. */
static int attend(struct test *t, struct pt_err *e)
{
    const struct pt_iperf3_params *p = &t->params;
    pt_ns end = t->start_ns + (pt_ns)(p->time_s ? p->time_s + p->omit_s : LONG_S) * PT_S + GRACE_NS;
    for (;;) {
        pt_ns now = pt_clock_now();
        struct pollfd f[2] = {{.fd = t->control.fd, .events = POLLIN},
                              {.fd = t->spec->channel, .events = POLLIN}};
        if (poll(f, 2, 100) < 0 && errno != EINTR)
            return pt_fail(e, -errno, "poll: %s", pt_strerror(-errno));
        if (pt_signal_seen() || f[1].revents & (POLLHUP | POLLERR)) {
            (void)!pt_iperf3_say(&t->control, PT_IPERF3_SERVER_TERMINATE, now + PT_S, NULL);
            return pt_fail(e, -EINTR, "this server was stopped");
        }
        if (f[0].revents) {
            int8_t state;
            int rc = pt_iperf3_hear(&t->control, &state, now + STEP_NS, e);
            if (rc < 0 || state == PT_IPERF3_TEST_END)
                return rc;
            return state == PT_IPERF3_CLIENT_TERMINATE
                       ? pt_fail(e, -ECONNRESET, "the client ended the test")
                       : pt_fail(e, -EPROTO, "it said %d in the middle of a test", state);
        }
        int rc = pt_caps_watch(&t->spec->spec->caps, &t->job, now, e);
        if (rc < 0 || now > end) {
            refuse(t, rc < 0 ? 27 : 160);
            return rc < 0 ? rc : pt_fail(e, -ETIMEDOUT, "it did not end in time");
        }
        if (pt_job_is_broken(&t->job)) {
            refuse(t, 206);
            return pt_fail(e, -EIO, "a worker failed");
        }
    }
}

/* What is still under way arrives. */
static void drain(struct test *t)
{
    pt_ns most = pt_clock_now() + 2 * PT_S;
    pt_job_stop(&t->job, PT_STOP_SEND);
    while (!pt_job_done(&t->job) && pt_clock_now() < most) {
        struct pollfd f = {.fd = t->job.news, .events = POLLIN};
        (void)!poll(&f, 1, 10);
    }
}

/* ---- results */

static void stream_result(const struct test *t, uint32_t i, pt_ns end, struct pt_iperf3_stream *out)
{
    const struct pt_flow_stat *st = &t->job.flows[i];
    const struct pt_shape *s = &t->job_spec.shape;
    bool sends = i >= s->forward, udp = s->chan == PT_CHAN_UDP;
    struct pt_counters c = st->c[PT_PHASE_MEASURE];
    pt_counters_add(&c, &st->c[PT_PHASE_TAIL]);
    uint64_t came = st->seq.unique + st->seq.late;
    *out = (struct pt_iperf3_stream){
        .id = pt_iperf3_id(i),
        .bytes = sends ? c.tx_bytes : c.rx_bytes,
        .retransmits = sends && st->tcp_valid ? (int64_t)st->tcp_end.total_retrans : -1,
        .packets = !udp ? 0 : (int64_t)(sends ? c.tx_packets : st->seq_top),
        .errors = udp && !sends && st->seq_top > came ? (int64_t)(st->seq_top - came) : 0,
        .omitted_packets = -1,
        .omitted_errors = -1,
        .jitter_s = sends ? 0 : st->jitter_ns / 1e9,
        .start_s = 0,
        .end_s = (double)(end - t->start_ns - s->warmup) / 1e9,
    };
}

static json_t *results(struct test *t, pt_ns end)
{
    struct pt_iperf3_results *r = calloc(1, sizeof(*r));
    struct pt_usage u;
    const struct pt_shape *s = &t->job_spec.shape;
    double elapsed = (double)(end - t->start_ns) / 1e9;
    if (!r)
        return NULL;
    pt_job_usage(&t->job, &u);
    if (elapsed > 0) {
        r->cpu_user_pct = (double)u.user_ns / 1e7 / elapsed;
        r->cpu_system_pct = (double)u.system_ns / 1e7 / elapsed;
        r->cpu_total_pct = r->cpu_user_pct + r->cpu_system_pct;
    }
    r->sender_has_retransmits = s->forward < s->flows && s->chan != PT_CHAN_UDP ? 1 : -1;
    snprintf(r->congestion, sizeof(r->congestion), "%.15s", t->params.congestion);
    for (uint32_t i = 0; i < s->flows; i++)
        stream_result(t, i, end, &r->stream[r->n++]);
    json_t *json = pt_iperf3_results_json(r);
    free(r);
    return json;
}

static int report(struct test *t, pt_ns end, struct pt_err *e)
{
    json_t *theirs = NULL;
    int8_t state;
    pt_ns deadline = pt_clock_now() + STEP_NS;
    int rc = pt_iperf3_say(&t->control, PT_IPERF3_EXCHANGE_RESULTS, deadline, e);
    if (rc == 0)
        rc = pt_iperf3_recv_json(&t->control, PT_IPERF3_RESULTS_MAX, &theirs, deadline, e);
    json_decref(theirs);
    if (rc == 0)
        rc = pt_iperf3_send_json(&t->control, results(t, end), deadline, e);
    if (rc == 0)
        rc = pt_iperf3_say(&t->control, PT_IPERF3_DISPLAY_RESULTS, deadline, e);
    if (rc == 0) /* it may end without a word */
        (void)!pt_iperf3_hear(&t->control, &state, deadline, NULL);
    return rc;
}

static void say_how_it_ended(struct test *t, const struct pt_err *e)
{
    char peer[PT_ADDR_TEXT];
    struct pt_counters c = {0}, one;
    for (unsigned p = 0; t->job_open && p < PT_PHASES; p++) {
        pt_job_counters(&t->job, (enum pt_phase)p, &one);
        pt_counters_add(&c, &one);
    }
    pt_addr_print(&t->spec->peer, peer);
    if (e->code)
        log_line(t, "iperf3 peer=%.60s refused error=\"%.120s\"", peer, e->text);
    else
        log_line(t, "iperf3 peer=%.60s flows=%u rx_bytes=%llu tx_bytes=%llu", peer,
                 t->job_spec.shape.flows, (unsigned long long)c.rx_bytes,
                 (unsigned long long)c.tx_bytes);
}

int pt_compat_iperf3_test(struct pt_compat_test *spec)
{
    struct test *t = calloc(1, sizeof(*t));
    struct pt_err e = {0};
    char text[PT_ADDR_TEXT];
    if (!t)
        return 1;
    t->spec = spec;
    t->control.fd = spec->control;
    snprintf(t->control.name, sizeof(t->control.name), "client at %s",
             pt_addr_print(&spec->peer, text));
    /* Its messages are a byte each: Nagle's algorithm would hold every second one back. */
    (void)setsockopt(t->control.fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    int rc = agree(t, &e);
    if (rc == 0)
        rc = take_streams(t, &e);
    if (rc == 0)
        rc = prepare(t, &e);
    if (rc == 0)
        rc = attend(t, &e);
    pt_ns end = pt_clock_now();
    if (rc == 0) {
        drain(t);
        rc = report(t, end, &e);
    }
    say_how_it_ended(t, &e);
    if (t->job_open) {
        pt_job_stop(&t->job, PT_STOP_NOW);
        (void)!pt_job_finish(&t->job, pt_clock_now() + PT_S / 2, NULL);
        pt_job_close(&t->job);
    }
    for (unsigned i = 0; i < t->fd_count; i++)
        close(t->fds[i]);
    if (t->plan_open)
        pt_plan_fini(&t->plan);
    close(spec->control);
    free(t);
    return rc < 0;
}
