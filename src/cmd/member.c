/* member.c: see member.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/member.h"

#include "cmd/test.h"
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
#include <sys/socket.h>
#include <unistd.h>

#define EARLY_NS (50 * PT_MS) /* the start is said so long before the warm-up begins */

struct birth {
    const struct pt_member *m, *all;
    struct pt_stage *stage;
    struct pt_output *output;
    int parcel, gate; /* the child's ends */
    bool gated, quiet;
    json_t *windows;
};

/* ---- the child, at the gate */

/* Until `fd` is readable or the time has come: 0; -EINTR after a signal. */
static int wait_for(int fd, pt_ns until)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = fd, .events = POLLIN},
                              {.fd = pt_signal_fd(), .events = POLLIN}};
        pt_ns left = until == PT_NS_MAX ? PT_S : until - pt_clock_now();
        if (left <= 0)
            return 0;
        int n = poll(p, 2, (int)((left + PT_MS - 1) / PT_MS));
        if (pt_signal_seen())
            return -EINTR;
        if (n > 0 && p[0].revents)
            return 0;
    }
}

static int pass(void *ctx, pt_ns warmup, pt_ns *window, struct pt_err *e)
{
    const struct birth *b = ctx;
    ssize_t n = -1;
    if (send(b->gate, &warmup, sizeof(warmup), MSG_NOSIGNAL) == (ssize_t)sizeof(warmup) &&
        wait_for(b->gate, PT_NS_MAX) == 0)
        n = recv(b->gate, window, sizeof(*window), MSG_WAITALL);
    if (n == (ssize_t)sizeof(*window) && wait_for(-1, *window - warmup - EARLY_NS) == 0)
        return 0;
    return pt_signal_seen()
               ? pt_fail(e, -EINTR, "interrupted before it began")
               : pt_fail(e, -ECANCELED, "it was to run together with a test that did not begin");
}

static void began(void *ctx, pt_ns first, pt_ns last)
{
    const struct birth *b = ctx;
    json_array_append_new(b->windows, json_pack("[I, I]", (json_int_t)first, (json_int_t)last));
}

/* ---- the child's test */

static int measure(struct birth *b, struct pt_plan *plan, struct pt_result **out, struct pt_err *e)
{
    const struct pt_plan_test *t = b->m->test;
    const struct pt_gate gate = {.pass = pass, .began = began, .ctx = b};
    struct pt_reporting said = *b->output->asked;
    struct pt_output output = *b->output;
    struct pt_addr_list to;
    struct pt_test test = {.wl = pt_workload_find(plan->form->manual.command),
                           .plan = plan,
                           .to = &to,
                           .secret = pt_stage_secret(b->stage, t),
                           .output = &output,
                           .gate = b->gated ? &gate : NULL};
    said.quiet |= b->quiet;
    output.asked = &said;
    pt_plan_settle(plan);
    if (t->senders)
        snprintf(plan->target, sizeof(plan->target), "%s", t->to);
    int rc = pt_stage_enter(b->stage, b->m->sender, e);
    if (rc == 0)
        rc = pt_stage_ends(b->stage, t, b->m->sender, plan, &to, e);
    if (rc == 0)
        rc = pt_test_check(&test, e);
    if (rc == 0)
        rc = pt_test_check_here(&test, e);
    if (rc == 0)
        rc = pt_test_run(&test, out, e);
    pt_output_quiet_down(&output);
    return rc < 0 ? rc : pt_test_conclude(&test, *out, e);
}

static int live(void *ctx)
{
    struct birth *b = ctx;
    struct pt_err e = {0};
    struct pt_plan plan;
    struct pt_result *r = NULL;
    /* Or a gate would stay open when the parent closes it. */
    for (const struct pt_member *o = b->all; o <= b->m; o++) {
        if (o->parcel >= 0)
            close(o->parcel);
        if (o->gate >= 0)
            close(o->gate);
    }
    pt_proc_name("pitot-test");
    int rc = pt_signals_install(&e);
    signal(SIGINT, SIG_IGN); /* the terminal's; our parent ends us */
    b->windows = json_array();
    if (rc == 0)
        rc = pt_plan_copy(&plan, &b->m->test->plan, &e);
    if (rc == 0)
        rc = measure(b, &plan, &r, &e);
    json_t *said = rc < 0 || !r ? json_pack("{s:s}", "error", e.text)
                                : json_pack("{s:O, s:O}", "result", r->root, "windows", b->windows);
    return pt_parcel_send_new(b->parcel, said) < 0;
}

/* ---- the parent */

int pt_member_start(struct pt_member *m, const struct pt_member *all, struct pt_stage *s,
                    struct pt_output *output, bool gated, bool quiet, struct pt_err *e)
{
    int parcel[2], gate[2];
    m->child = (struct pt_child){.pidfd = -1};
    m->parcel = m->gate = -1;
    m->warmup = -1;
    pt_buf_init(&m->text, PT_RESULT_CEILING);
    if (pipe2(parcel, O_CLOEXEC) < 0)
        return pt_fail(e, -errno, "a pipe to a test: %s", pt_strerror(-errno));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) < 0) {
        int rc = -errno;
        close(parcel[0]);
        close(parcel[1]);
        return pt_fail(e, rc, "a pipe to a test: %s", pt_strerror(rc));
    }
    m->parcel = parcel[0];
    m->gate = gate[0];
    struct birth b = {.m = m,
                      .all = all,
                      .stage = s,
                      .output = output,
                      .parcel = parcel[1],
                      .gate = gate[1],
                      .gated = gated,
                      .quiet = quiet};
    int rc = pt_child_start(&m->child, live, &b, e);
    close(parcel[1]);
    close(gate[1]);
    return rc;
}

void pt_member_read(struct pt_member *m)
{
    char *room = pt_buf_reserve(&m->text, 64 << 10);
    ssize_t n = room ? read(m->parcel, room, 64 << 10) : 0;
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0) {
        m->text.len += (size_t)n;
        return;
    }
    close(m->parcel);
    m->parcel = -1;
}

void pt_member_arrived(struct pt_member *m)
{
    pt_ns warmup = 0;
    if (recv(m->gate, &warmup, sizeof(warmup), MSG_WAITALL) == (ssize_t)sizeof(warmup))
        m->warmup = warmup;
    else
        pt_member_close_gate(m);
}

void pt_member_pass(struct pt_member *m, pt_ns window)
{
    m->warmup = -1;
    if (send(m->gate, &window, sizeof(window), MSG_NOSIGNAL) != (ssize_t)sizeof(window))
        pt_member_close_gate(m);
}

void pt_member_close_gate(struct pt_member *m)
{
    if (m->gate >= 0)
        close(m->gate);
    m->gate = -1;
    m->warmup = -1;
}

void pt_member_end(struct pt_member *m)
{
    pt_member_close_gate(m);
    if (m->parcel >= 0)
        close(m->parcel);
    m->parcel = -1;
    pt_child_end(&m->child, PT_S, NULL);
    pt_buf_fini(&m->text);
}

json_t *pt_member_parcel(const struct pt_member *m)
{
    json_t *o = json_loadb(pt_buf_str(&m->text), m->text.len, 0, NULL);
    if (json_is_object(o))
        return o;
    json_decref(o);
    return NULL;
}
