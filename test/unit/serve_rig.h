/* serve_rig.h: a `pitot serve` whose session does next to nothing, in a child process, for tests.
 *
 * Its session answers {"type":"open","count":N} with "go", takes N flows, waits for "began",
 * answers with "standing", then echoes on every flow until the client ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_TEST_SERVE_RIG_H
#define PT_TEST_SERVE_RIG_H

#include "harness.h"

#include "net/dial.h"
#include "net/identity.h"
#include "net/secret.h"
#include "os/clock.h"
#include "os/proc.h"
#include "os/signal.h"
#include "service/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RIG_FLOWS_MAX 4096

struct rig {
    struct pt_serve *serve;
    struct pt_child child;
    struct pt_addr_list at;
};

static pt_ns soon(void)
{
    return pt_clock_now() + 5 * PT_S;
}

static int rig_echo(struct pt_session *s, struct pt_session_flow *flows, unsigned count)
{
    static struct pollfd polls[RIG_FLOWS_MAX + 1];
    uint8_t bytes[2048];
    for (unsigned i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = flows[i].fd, .events = POLLIN};
    polls[count] = (struct pollfd){.fd = s->control->fd, .events = POLLIN};
    for (;;) {
        if (poll(polls, count + 1, 10000) <= 0)
            return -ETIMEDOUT;
        for (unsigned i = 0; i < count; i++) {
            ssize_t n =
                polls[i].revents ? recv(polls[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT) : 0;
            if (n > 0 && send(polls[i].fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
                return -EIO;
        }
        if (polls[count].revents)
            return 0;
    }
}

static int rig_test(struct pt_session *s, const json_t *ask, struct pt_err *e)
{
    static struct pt_session_flow flows[RIG_FLOWS_MAX];
    unsigned count = (unsigned)json_integer_value(json_object_get(ask, "count"));
    unsigned first = (unsigned)json_integer_value(json_object_get(ask, "first"));
    json_t *began;
    int rc = pt_control_send_new(s->control, json_pack("{s:s}", "type", "go"), soon(), e);
    if (!rc)
        rc = pt_session_take_flows(s, flows, first, count, soon(), e);
    if (!rc)
        rc = pt_control_expect(s->control, "began", &began, soon(), e);
    if (rc)
        return rc;
    json_decref(began);
    pt_session_note(s, "flows=%u", count);
    rc = pt_control_send_new(s->control, json_pack("{s:s}", "type", "standing"), soon(), e);
    if (!rc)
        rc = rig_echo(s, flows, count);
    for (unsigned i = 0; i < count; i++)
        close(flows[i].fd);
    return rc;
}

static int rig_session(struct pt_session *s)
{
    for (;;) {
        struct pt_err e = {0};
        json_t *ask;
        int rc = pt_control_expect(s->control, "open", &ask, pt_clock_now() + 20 * PT_S, &e);
        if (rc)
            return rc == -ECONNRESET ? 0 : rc;
        rc = rig_test(s, ask, &e);
        json_decref(ask);
        if (rc == 0)
            continue;
        pt_control_refuse(s->control, rc, e.text);
        return rc;
    }
}

static int rig_main(void *ctx)
{
    struct rig *r = ctx;
    struct pt_err e = {0};
    int rc = pt_signals_install(&e);
    if (!rc)
        rc = pt_serve_run(r->serve, &e);
    if (rc)
        fprintf(stderr, "# serve: %s\n", e.text);
    pt_serve_close(r->serve);
    return rc ? 1 : 0;
}

/* Listens on a free loopback port of IPv4 and IPv6, or on what the spec says. */
static void rig_start(struct rig *r, struct pt_serve_spec *spec)
{
    struct pt_err e = {0};
    if (spec->listen_count == 0)
        pt_serve_listen_loopback(spec, 0);
    spec->session = rig_session;
    int rc = pt_serve_open(&r->serve, spec, &e);
    if (rc)
        fail_msg("%s", e.text);
    char list[PT_SERVE_LISTEN_MAX * PT_ADDR_TEXT], *save = NULL;
    snprintf(list, sizeof(list), "%s", pt_serve_addresses(r->serve));
    r->at.n = 0;
    for (char *at = strtok_r(list, ", ", &save); at; at = strtok_r(NULL, ", ", &save))
        assert_int_equal(pt_addr_parse(&r->at.addr[r->at.n++], at, PT_PORT, &e), 0);
    assert_int_equal(pt_child_start(&r->child, rig_main, r, &e), 0);
    pt_serve_close(r->serve);
}

static void rig_stop(struct rig *r)
{
    struct pt_exit x;
    pt_child_end(&r->child, 5 * PT_S, &x);
    assert_int_equal(x.signal, 0);
    assert_int_equal(x.code, 0);
}

static int rig_open(struct rig *r, struct pt_control *c, struct pt_welcome *w,
                    const struct pt_secret *secret, struct pt_err *e)
{
    json_t *id = pt_identity();
    int rc = pt_control_open(c, &r->at, NULL, secret, id, w, soon(), e);
    json_decref(id);
    return rc;
}

static void rig_must_open(struct rig *r, struct pt_control *c, struct pt_welcome *w,
                          const struct pt_secret *secret)
{
    struct pt_err e = {0};
    if (rig_open(r, c, w, secret, &e) != 0)
        fail_msg("%s", e.text);
}

/* Opens `count` flows with ids from `first` on, and says so. */
static void rig_flows(struct pt_control *c, const struct pt_welcome *w, struct pt_dial *flows,
                      unsigned first, unsigned count, int type)
{
    struct pt_err e = {0};
    json_t *m;
    int rc = pt_control_send_new(
        c, json_pack("{s:s, s:i, s:i}", "type", "open", "count", (int)count, "first", (int)first),
        soon(), &e);
    if (!rc)
        rc = pt_control_expect(c, "go", &m, soon(), &e);
    if (!rc)
        json_decref(m);
    for (unsigned i = 0; i < count; i++)
        flows[i] = (struct pt_dial){.flow = first + i};
    if (!rc)
        rc = pt_dial_flows(flows, count, type, &c->peer, w->token, NULL, soon(), &e);
    if (!rc)
        rc = pt_control_send_new(c, json_pack("{s:s}", "type", "began"), soon(), &e);
    if (!rc)
        rc = pt_control_expect(c, "standing", &m, soon(), &e);
    if (rc)
        fail_msg("%s", e.text);
    json_decref(m);
}

/* Each flow gets its own bytes back. */
static void rig_check_echo(const struct pt_dial *flows, unsigned count)
{
    char text[32], back[32];
    for (unsigned i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "flow %u", flows[i].flow);
        assert_int_equal(send(flows[i].fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    }
    for (unsigned i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "flow %u", flows[i].flow);
        struct pollfd p = {.fd = flows[i].fd, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 5000), 1);
        ssize_t n = recv(flows[i].fd, back, sizeof(back), 0);
        assert_int_equal(n, strlen(text));
        assert_memory_equal(back, text, (size_t)n);
    }
}

static void rig_close(struct pt_dial *flows, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(flows[i].fd);
}

#endif
