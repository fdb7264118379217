/* serve_slot.c: sessions: the process of each, its channel, its end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "net/identity.h"
#include "os/clock.h"
#include "os/fdpass.h"
#include "service/serve_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- in the session's process */

struct birth {
    struct pt_serve *serve;
    const struct pt_serve_slot *slot;
    int control, channel;
};

/* The child shares main's sockets and its epoll set until it lets go of them. */
static void close_all_but(int a, int b)
{
    unsigned low = (unsigned)(a < b ? a : b), high = (unsigned)(a < b ? b : a);
    if (low > 3)
        (void)close_range(3, low - 1, 0);
    if (high > low + 1)
        (void)close_range(low + 1, high - 1, 0);
    (void)close_range(high + 1, ~0u, 0);
}

static const char *host_of(const json_t *client)
{
    const char *host = json_string_value(json_object_get(client, "host"));
    return host && *host ? host : "-";
}

static int live(void *ctx)
{
    const struct birth *b = ctx;
    const struct pt_serve_spec *spec = &b->serve->spec;
    struct pt_err e = {0};
    struct pt_control control;
    json_t *client;
    close_all_but(b->control, b->channel);
    pt_proc_name("pitot-session");
    pt_control_init(&control, b->control, "client");
    struct pt_welcome w = {.caps = spec->caps, .identity = b->serve->identity};
    memcpy(w.token, b->slot->token, sizeof(w.token));
    int rc = pt_control_accept(&control, &spec->secret, &w, &client,
                               pt_clock_now() + PT_SERVE_HANDSHAKE_TIME, &e);
    if (rc) {
        pt_log(PT_LOG_WARN, "handshake_failed session=%llu error=\"%s\"",
               (unsigned long long)b->slot->id, e.text);
        return 1;
    }
    struct pt_channel_message m = {.kind = PT_CHANNEL_WELCOMED};
    snprintf(m.text, sizeof(m.text), "%s", host_of(client));
    if (pt_fdpass_send(b->channel, -1, &m, sizeof(m), pt_clock_now() + PT_S) != 0)
        return 1;
    struct pt_session session = {.control = &control,
                                 .id = b->slot->id,
                                 .caps = spec->caps,
                                 .client = client,
                                 .impairment = spec->impairment,
                                 .channel = b->channel};
    memcpy(session.token, b->slot->token, sizeof(session.token));
    rc = spec->session(&session);
    json_decref(client);
    pt_control_fini(&control);
    return rc ? 1 : 0;
}

/* ---- in main */

static void log_end(const struct pt_serve_slot *slot, const struct pt_exit *x)
{
    char peer[PT_ADDR_TEXT], how[32];
    if (x->signal)
        snprintf(how, sizeof(how), "signal-%d", x->signal);
    else
        snprintf(how, sizeof(how), "%s", x->code ? "failed" : "ok");
    double cpu_s = (double)(x->usage.user_ns + x->usage.system_ns) / 1e9;
    double seconds = (double)(pt_clock_now() - slot->began) / 1e9;
    pt_log(slot->welcomed ? PT_LOG_INFO : PT_LOG_WARN,
           "session_end session=%llu peer=%s host=%s status=%s%s%s seconds=%.3f cpu_s=%.3f "
           "streams=%llu datagrams=%llu refused=%llu%s%s",
           (unsigned long long)slot->id, pt_addr_print(&slot->peer, peer), slot->host, how,
           slot->reason ? " reason=" : "", slot->reason ? slot->reason : "", seconds, cpu_s,
           (unsigned long long)slot->streams, (unsigned long long)slot->datagrams,
           (unsigned long long)slot->refused, *slot->note ? " " : "", slot->note);
}

static void forget(struct pt_serve_slot *slot)
{
    struct pt_serve *s = slot->serve;
    pt_op_cancel(s->loop, &slot->ended);
    pt_op_cancel(s->loop, &slot->message);
    pt_timer_cancel(s->loop, &slot->timer);
    for (unsigned i = 0; i < s->slot_count; i++)
        if (s->slots[i] == slot)
            s->slots[i] = s->slots[--s->slot_count];
    close(slot->channel);
    free(slot->datagram_ids);
    free(slot);
}

static bool is_last(const struct pt_serve *s)
{
    return s->spec.sessions && s->welcomed >= s->spec.sessions && s->slot_count == 0;
}

/* What the session still said before it ended. */
static void read_channel(struct pt_serve_slot *slot);

static void ended(struct pt_op *op, int res, bool more)
{
    (void)res;
    (void)more;
    struct pt_serve_slot *slot = op->ctx;
    struct pt_serve *s = slot->serve;
    struct pt_exit x = {0};
    int rc = pt_child_wait(&slot->process, 0, &x);
    if (rc == -ETIMEDOUT || rc == -EINTR) {
        if (pt_op_poll(s->loop, op, slot->process.pidfd, POLLIN) == 0)
            return;
    }
    read_channel(slot);
    log_end(slot, &x);
    forget(slot);
    if (is_last(s))
        pt_serve_stop(s, "last session");
    else
        pt_serve_entries_retry(s);
}

static void out_of_time(struct pt_timer *t, pt_ns due)
{
    (void)due;
    struct pt_serve_slot *slot = t->ctx;
    if (!slot->reason) {
        pt_serve_slot_end(slot, "max-duration");
        return;
    }
    int rc = pt_child_signal(&slot->process, SIGKILL);
    (void)rc; /* it ended meanwhile */
}

void pt_serve_slot_end(struct pt_serve_slot *slot, const char *reason)
{
    if (!slot->reason)
        slot->reason = reason;
    int rc = pt_child_signal(&slot->process, SIGTERM);
    if (rc == 0)
        rc = pt_child_signal(&slot->process, SIGCONT); /* a stopped one would not hear it */
    struct pt_loop *l = slot->serve->loop;
    if (rc == 0 && pt_timer_set(l, &slot->timer, pt_loop_now(l) + PT_SERVE_GRACE) != 0)
        rc = pt_child_signal(&slot->process, SIGKILL);
    (void)rc;
}

void pt_serve_slots_kill(struct pt_serve *s)
{
    for (unsigned i = 0; i < s->slot_count; i++) {
        int rc = pt_child_signal(&s->slots[i]->process, SIGKILL);
        (void)rc;
    }
}

static void welcomed(struct pt_serve_slot *slot, const char *host)
{
    struct pt_serve *s = slot->serve;
    char peer[PT_ADDR_TEXT];
    slot->welcomed = true;
    s->welcomed++;
    pt_log_quote(slot->host, sizeof(slot->host), host, strlen(host));
    pt_log(PT_LOG_INFO, "session_start session=%llu peer=%s host=%s sessions=%u",
           (unsigned long long)slot->id, pt_addr_print(&slot->peer, peer), slot->host,
           s->slot_count);
    /* The session ends its test itself and says so; this is for one that does not. */
    pt_ns most = s->spec.caps.max_duration;
    pt_ns grace = most < PT_SERVE_TEST_GRACE ? most : PT_SERVE_TEST_GRACE;
    if (most && pt_timer_set(s->loop, &slot->timer, slot->began + most + grace) != 0)
        pt_serve_slot_end(slot, "no-timer");
}

static void read_channel(struct pt_serve_slot *slot)
{
    struct pt_channel_message m;
    for (;;) {
        int fd;
        ssize_t n = pt_fdpass_recv(slot->channel, &fd, &m, sizeof(m), 0);
        if (fd >= 0)
            close(fd);
        if (n <= 0)
            return;
        if (n != (ssize_t)sizeof(m))
            continue;
        m.text[sizeof(m.text) - 1] = '\0';
        if (m.kind == PT_CHANNEL_WELCOMED && !slot->welcomed)
            welcomed(slot, m.text);
        else if (m.kind == PT_CHANNEL_NOTE)
            pt_log_quote(slot->note, sizeof(slot->note), m.text, strlen(m.text));
        else if (m.kind == PT_CHANNEL_TAKEN)
            pt_serve_knock_forget(slot);
    }
}

static void message(struct pt_op *op, int res, bool more)
{
    (void)more;
    struct pt_serve_slot *slot = op->ctx;
    struct pt_serve *s = slot->serve;
    read_channel(slot);
    /* After a hang-up the end of the process is what we wait for. */
    if (!(res & (POLLHUP | POLLERR)) &&
        pt_op_poll(s->loop, &slot->message, slot->channel, POLLIN) != 0)
        pt_serve_slot_end(slot, "event loop");
    if (slot->welcomed)
        pt_serve_entries_retry(s);
}

static int check_room(const struct pt_serve *s, const struct pt_addr *peer, struct pt_err *e)
{
    unsigned unwelcomed = 0, of_peer = 0;
    if (s->stopping || (s->spec.sessions && s->welcomed >= s->spec.sessions))
        return pt_fail(e, -EBUSY, "the server takes no more sessions");
    for (unsigned i = 0; i < s->slot_count; i++) {
        const struct pt_serve_slot *slot = s->slots[i];
        unwelcomed += !slot->welcomed;
        of_peer += !slot->welcomed && pt_addr_same_ip(&slot->peer, peer);
    }
    if (of_peer >= s->unwelcomed_max ||
        (s->spec.sessions && s->welcomed + unwelcomed >= s->spec.sessions))
        return -EAGAIN;
    if (s->slot_count >= s->slot_max)
        return pt_fail(e, -EBUSY, "all %u sessions of the server are taken; try later",
                       s->slot_max);
    return 0;
}

static int fork_session(struct pt_serve_slot *slot, int fd, struct pt_err *e)
{
    struct pt_serve *s = slot->serve;
    int pair[2], size = 4 * 1024 * 1024;
    int rc = pt_fdpass_open(pair);
    if (rc)
        return pt_fail(e, rc, "out of resources: %s", pt_strerror(rc));
    /* Room for flows that arrive while the session is busy. */
    if (setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0)
        (void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    struct birth b = {.serve = s, .slot = slot, .control = fd, .channel = pair[1]};
    rc = pt_child_start(&slot->process, live, &b, e);
    close(pair[1]);
    slot->channel = pair[0];
    if (rc) {
        close(pair[0]);
        return rc;
    }
    rc = pt_op_poll(s->loop, &slot->ended, slot->process.pidfd, POLLIN);
    if (!rc)
        rc = pt_op_poll(s->loop, &slot->message, slot->channel, POLLIN);
    if (rc) {
        pt_op_cancel(s->loop, &slot->ended);
        pt_child_end(&slot->process, 0, NULL);
        close(pair[0]);
        return pt_fail(e, rc, "event loop: %s", pt_strerror(rc));
    }
    return 0;
}

int pt_serve_slot_start(struct pt_serve *s, int fd, const struct pt_addr *peer, struct pt_err *e)
{
    int rc = check_room(s, peer, e);
    if (rc)
        return rc;
    struct pt_serve_slot *slot = calloc(1, sizeof(*slot));
    if (!slot)
        return pt_fail(e, -ENOMEM, "the server is out of memory");
    slot->serve = s;
    slot->id = s->next_id + 1;
    slot->peer = *peer;
    slot->began = pt_loop_now(s->loop);
    slot->ended = (struct pt_op){.fn = ended, .ctx = slot};
    slot->message = (struct pt_op){.fn = message, .ctx = slot};
    slot->timer = (struct pt_timer){.fn = out_of_time, .ctx = slot};
    memcpy(slot->host, "-", 2);
    rc = pt_random_bytes(slot->token, sizeof(slot->token));
    if (rc)
        pt_fail(e, rc, "random bytes: %s", pt_strerror(rc));
    else
        rc = fork_session(slot, fd, e);
    if (rc) {
        free(slot);
        return rc;
    }
    s->next_id++;
    s->slots[s->slot_count++] = slot;
    return 0;
}

struct pt_serve_slot *pt_serve_slot_find(struct pt_serve *s, const uint8_t token[PT_TOKEN_SIZE])
{
    for (unsigned i = 0; i < s->slot_count; i++)
        if (pt_equal_secret(s->slots[i]->token, token, PT_TOKEN_SIZE))
            return s->slots[i];
    return NULL;
}

int pt_serve_slot_pass(struct pt_serve_slot *slot, enum pt_channel_kind kind, uint32_t flow, int fd)
{
    struct pt_channel_message m = {.kind = kind, .flow = flow};
    int rc = pt_fdpass_send(slot->channel, fd, &m, sizeof(m), 0);
    if (rc)
        slot->refused++;
    else if (kind == PT_CHANNEL_STREAM)
        slot->streams++;
    else
        slot->datagrams++;
    return rc;
}
