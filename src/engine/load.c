/* load.c: see load.h. The child writes one byte when the load is there, and at the end one JSON
 * object to the same pipe: the block of the document, or {"error": sentence}.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/load.h"

#include "engine/parcel.h"
#include "os/clock.h"
#include "os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WARMUP       "300ms"
#define INTERVAL     "100ms"
#define SPARE_NS     (2 * PT_S)    /* it goes on for so long when nobody ends it */
#define UNCOUNTED_NS (3600 * PT_S) /* beside a test that ends by a count */
#define THERE_NS     (15 * PT_S)
#define REPORT_NS    (10 * PT_S)
#define TEXT_CEILING ((size_t)1 << 20)
#define THERE        'g'

/* ---- the text */

static int parse_word(const char *word, struct pt_load *l, struct pt_err *e)
{
    uint64_t n = 0;
    if (!strcmp(word, "reverse") && !l->reverse) {
        l->reverse = true;
        return 0;
    }
    if (l->connections)
        return pt_fail(e, -EINVAL, "'%s' is one too many; expected e.g. tcp:4:reverse", word);
    if (pt_count_parse(word, &n, NULL) < 0 || !n || n > PT_FLOWS_MAX)
        return pt_fail(e, -EINVAL,
                       "'%s' is no number of connections; expected e.g. tcp:4, "
                       "tcp:reverse, udp:2@1gbit",
                       word);
    l->connections = (uint32_t)n;
    return 0;
}

static int parse_load(const char *text, void *field, struct pt_err *e)
{
    struct pt_load l = {.given = true};
    char words[64];
    size_t n = strcspn(text, "@");
    if (n >= sizeof(words))
        return pt_fail(e, -EINVAL, "too long; expected e.g. tcp:4:reverse@10gbit");
    memcpy(words, text, n);
    words[n] = '\0';
    char *rest = NULL, *word = strtok_r(words, ":", &rest);
    l.udp = word && !strcmp(word, "udp");
    if (!word || (!l.udp && strcmp(word, "tcp") != 0))
        return pt_fail(e, -EINVAL,
                       "expected tcp or udp, then :CONNECTIONS, :reverse, @RATE as "
                       "needed, e.g. tcp:4@1gbit");
    while ((word = strtok_r(NULL, ":", &rest))) {
        int rc = parse_word(word, &l, e);
        if (rc < 0)
            return rc;
    }
    if (text[n]) {
        int rc = pt_rate_parse(text + n + 1, &l.rate, e);
        if (rc < 0)
            return rc;
        if (!l.rate.bits || !(l.rate.per_s > 0))
            return pt_fail(e, -EINVAL, "expected bits per second behind @, e.g. tcp@1gbit");
    }
    if (!l.connections)
        l.connections = 1;
    memcpy(field, &l, sizeof(l));
    return 0;
}

static void print_load(const void *field, struct pt_buf *out)
{
    const struct pt_load *l = field;
    char t[PT_UNITS_TEXT];
    if (!l->given)
        return;
    pt_buf_adds(out, l->udp ? "udp" : "tcp");
    if (l->connections != 1)
        pt_buf_addf(out, ":%u", l->connections);
    if (l->reverse)
        pt_buf_adds(out, ":reverse");
    if (l->rate.per_s > 0)
        pt_buf_addf(out, "@%s", pt_rate_print(t, sizeof(t), l->rate));
}

const struct pt_opt_kind pt_load_kind = {parse_load, print_load};

/* ---- the child */

struct child {
    const struct pt_load *load;
    const struct pt_run_spec *beside;
    int pipe[2];
    bool told;
};

static void live(void *ctx, const struct pt_live *l)
{
    struct child *c = ctx;
    if (c->told || l->phase == PT_PHASE_WARMUP)
        return;
    c->told = write(c->pipe[1], (const char[]){THERE}, 1) == 1;
}

/* Sets options of the bw test by their names: this layer does not know its parameters. */
static int fill_plan(struct pt_plan *p, const struct child *c, struct pt_err *e)
{
    const struct pt_load *l = c->load;
    const struct pt_common *from = &c->beside->plan->common;
    char connections[16], rate[PT_UNITS_TEXT];
    snprintf(connections, sizeof(connections), "%u", l->connections);
    pt_rate_print(rate, sizeof(rate), l->rate);
    const char *const values[][2] = {
        {"udp", l->udp ? "true" : "false"},
        {"reverse", l->reverse ? "true" : "false"},
        {"connections", connections},
        {"rate", rate},
        {"warmup", WARMUP},
        {"interval", INTERVAL},
    };
    for (size_t i = 0; i < PT_COUNT(values); i++) {
        if (!(l->rate.per_s > 0) && !strcmp(values[i][0], "rate"))
            continue;
        int rc = pt_opt_set(p->sets, PT_COUNT(p->sets), values[i][0], values[i][1], e);
        if (rc < 0)
            return rc;
    }
    p->common.duration = from->requests ? UNCOUNTED_NS : from->warmup + from->duration + SPARE_NS;
    p->common.ipv4 = from->ipv4;
    p->common.ipv6 = from->ipv6;
    p->common.bind = from->bind;
    p->common.tos = from->tos;
    p->common.timeout = from->timeout;
    p->common.cpus = from->cpus;
    if (l->udp)
        return 0;
    p->common.mss = from->mss;
    memcpy(p->common.cc, from->cc, sizeof(p->common.cc));
    return 0;
}

static void keep(json_t *into, const json_t *doc, const char *key)
{
    json_t *v = json_object_get(doc, key);
    if (v)
        json_object_set(into, key, v);
}

/* What the document of the test beside it keeps of the load's own. */
static json_t *summary(const struct child *c, const struct pt_result *r)
{
    struct pt_buf text;
    pt_buf_init(&text, 128);
    print_load(c->load, &text);
    json_t *o = json_pack("{s:s, s:b, s:b, s:i}", "spec", pt_buf_str(&text), "udp", c->load->udp,
                          "reverse", c->load->reverse, "connections", (int)c->load->connections);
    pt_buf_fini(&text);
    static const char *const keys[] = {"duration_s", "totals", "rates", "congestion_control"};
    for (size_t i = 0; i < PT_COUNT(keys); i++)
        keep(o, r->root, keys[i]);
    const json_t *warnings = pt_result_at(r, "warnings");
    bool broken = false;
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        const char *w = json_string_value(json_array_get(warnings, i));
        broken |= w && strncmp(w, "partial:", 8) == 0;
    }
    /* That we end it before its time is not a fault. */
    bool whole = pt_result_get_status(r) == PT_RESULT_OK ||
                 (pt_result_get_status(r) == PT_RESULT_PARTIAL && !broken && pt_signal_seen());
    json_object_set_new(o, "status", json_string(whole ? "ok" : "partial"));
    if (!whole)
        json_object_set(o, "warnings", pt_result_at(r, "warnings"));
    return o;
}

static int run_child(void *ctx)
{
    struct child *c = ctx;
    struct pt_err e = {0};
    struct pt_plan plan;
    struct pt_result *r = NULL;
    struct pt_run_spec spec = *c->beside;
    pt_proc_name("pitot-load");
    close(c->pipe[0]);
    spec.wl = pt_workload_find("bw");
    spec.plan = &plan;
    spec.live = live;
    spec.ctx = c;
    int rc = pt_signals_install(&e);
    signal(SIGINT, SIG_IGN); /* the terminal's; our parent ends us */
    if (rc == 0)
        rc = pt_plan_init(&plan, &spec.wl->form, &e);
    if (rc == 0)
        rc = fill_plan(&plan, c, &e);
    if (rc == 0 && spec.wl->choose)
        rc = spec.wl->choose(&plan, spec.to, NULL, &e);
    if (rc == 0)
        rc = pt_run(&spec, &r, &e);
    json_t *said = rc < 0 || !r ? json_pack("{s:s}", "error", e.text) : summary(c, r);
    return pt_parcel_send_new(c->pipe[1], said) < 0;
}

/* ---- the parent */

/* Waits until something is there to be read: 1; 0 at the deadline; -EINTR after a signal. */
static int wait_for(int fd, pt_ns deadline, bool heed_signals)
{
    for (;;) {
        pt_ns left = deadline - pt_clock_now();
        struct pollfd p[2] = {{.fd = fd, .events = POLLIN},
                              {.fd = heed_signals ? pt_signal_fd() : -1, .events = POLLIN}};
        if (left <= 0)
            return 0;
        int n = poll(p, 2, (int)(left / PT_MS) + 1);
        if (heed_signals && pt_signal_seen())
            return -EINTR;
        if (n > 0 && p[0].revents)
            return 1;
        if (n < 0 && errno != EINTR)
            return -errno;
    }
}

/* The rest of what the child says, up to the end of the pipe. */
static int read_rest(int fd, struct pt_buf *into)
{
    pt_ns deadline = pt_clock_now() + REPORT_NS;
    int rc;
    while ((rc = wait_for(fd, deadline, false)) > 0) {
        char *room = pt_buf_reserve(into, 4096);
        if (!room)
            return into->failed;
        ssize_t n = read(fd, room, 4096);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        into->len += (size_t)n;
    }
    return rc < 0 ? rc : -ETIMEDOUT;
}

static int take_summary(struct pt_load_run *l, json_t **out, struct pt_err *e)
{
    struct pt_buf text;
    pt_buf_init(&text, TEXT_CEILING);
    int rc = read_rest(l->pipe, &text);
    json_t *o = rc == 0 ? json_loadb(pt_buf_str(&text), text.len, 0, NULL) : NULL;
    pt_buf_fini(&text);
    const char *error = json_string_value(json_object_get(o, "error"));
    if (!o)
        rc = pt_fail(e, rc < 0 ? rc : -EPIPE, "the load gave no report: %s",
                     rc < 0 ? pt_strerror(rc) : "its process ended");
    else if (error)
        rc = pt_fail(e, -EIO, "the load: %s", error);
    if (rc < 0)
        json_decref(o);
    else
        *out = o;
    return rc;
}

static void release(struct pt_load_run *l)
{
    close(l->pipe);
    l->pipe = -1;
    pt_child_end(&l->child, PT_S, NULL);
}

static int await_load(struct pt_load_run *l, struct pt_err *e)
{
    char first = 0;
    int rc = wait_for(l->pipe, pt_clock_now() + THERE_NS, true);
    if (rc == -EINTR)
        return pt_fail(e, rc, "interrupted while the load started");
    if (rc <= 0)
        return pt_fail(e, rc < 0 ? rc : -ETIMEDOUT, "the load did not start within %d s",
                       (int)(THERE_NS / PT_S));
    if (read(l->pipe, &first, 1) == 1 && first == THERE)
        return 0;
    /* The opening brace of {"error": …} has been read. */
    struct pt_buf text;
    pt_buf_init(&text, TEXT_CEILING);
    pt_buf_add(&text, &first, 1);
    rc = read_rest(l->pipe, &text);
    json_t *o = rc == 0 ? json_loadb(pt_buf_str(&text), text.len, 0, NULL) : NULL;
    const char *why = json_string_value(json_object_get(o, "error"));
    rc = pt_fail(e, -EIO, "the load: %s", why ? why : "its process ended before it began");
    json_decref(o);
    pt_buf_fini(&text);
    return rc;
}

int pt_load_start(struct pt_load_run *l, const struct pt_load *load,
                  const struct pt_run_spec *beside, struct pt_err *e)
{
    struct child c = {.load = load, .beside = beside};
    *l = (struct pt_load_run){.pipe = -1, .child = {.pidfd = -1}};
    if (pipe2(c.pipe, O_CLOEXEC) < 0)
        return pt_fail(e, -errno, "a pipe to the load: %s", pt_strerror(-errno));
    int rc = pt_child_start(&l->child, run_child, &c, e);
    close(c.pipe[1]);
    l->pipe = c.pipe[0];
    if (rc == 0)
        rc = await_load(l, e);
    if (rc < 0)
        release(l);
    return rc;
}

int pt_load_end(struct pt_load_run *l, json_t **out, struct pt_err *e)
{
    *out = NULL;
    int rc = pt_child_signal(&l->child, SIGTERM);
    rc = rc == 0 || rc == -ESRCH ? take_summary(l, out, e)
                                 : pt_fail(e, rc, "ending the load: %s", pt_strerror(rc));
    release(l);
    return rc;
}
