/* serve.c: the main process of `pitot serve`: open, run, end; see serve.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "net/identity.h"
#include "os/clock.h"
#include "os/signal.h"
#include "service/serve_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_LINES_PER_SECOND 100
#define UNWELCOMED_MAX       32

bool pt_serve_allows(const struct pt_serve *s, const struct pt_addr *peer)
{
    if (s->spec.allow_count == 0 || pt_addr_family(peer) == AF_UNIX)
        return true;
    for (unsigned i = 0; i < s->spec.allow_count; i++)
        if (pt_cidr_match(&s->spec.allow[i], peer))
            return true;
    return false;
}

void pt_serve_log(struct pt_serve *s, const char *fmt, ...)
{
    pt_ns second = pt_loop_now(s->loop) / PT_S;
    if (second != s->log_second) {
        if (s->log_dropped)
            pt_log(PT_LOG_WARN, "not_shown lines=%u", s->log_dropped);
        s->log_second = second;
        s->log_lines = s->log_dropped = 0;
    }
    if (s->log_lines++ >= LOG_LINES_PER_SECOND) {
        s->log_dropped++;
        return;
    }
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    pt_log(PT_LOG_WARN, "%s", line);
}

/* Descriptors are shared out so that accept(2) does not run out of them: an entry costs one, a
 * session a pidfd and a channel, and one more while it is forked. */
static int plan_descriptors(struct pt_serve *s, struct pt_err *e)
{
    int64_t limit = pt_fd_limit_raise();
    int64_t left = limit - 16 - 2 * (int64_t)s->door_count;
    if (left < 8)
        return pt_fail(e, -EMFILE,
                       "a limit of %lld file descriptors is too low to serve; raise it "
                       "(ulimit -n)",
                       (long long)limit);
    int64_t entries = left / 4;
    s->entry_max = entries > PT_SERVE_ENTRIES_MAX ? PT_SERVE_ENTRIES_MAX : (unsigned)entries;
    int64_t slots = (left - s->entry_max - 2) / 2;
    unsigned cap = s->spec.caps.max_sessions;
    s->slot_max = cap && cap < PT_SERVE_SLOTS_MAX ? cap : PT_SERVE_SLOTS_MAX;
    if (slots < s->slot_max)
        s->slot_max = slots < 1 ? 1 : (unsigned)slots;
    s->unwelcomed_max = s->slot_max / 2 < UNWELCOMED_MAX ? s->slot_max / 2 : UNWELCOMED_MAX;
    if (s->unwelcomed_max == 0)
        s->unwelcomed_max = 1;
    return 0;
}

int pt_serve_open(struct pt_serve **out, const struct pt_serve_spec *spec, struct pt_err *e)
{
    *out = NULL;
    if (spec->listen_count == 0)
        return pt_fail(e, -EINVAL, "no address to listen on; is the loopback interface up?");
    struct pt_serve *s = calloc(1, sizeof(*s));
    if (!s)
        return pt_fail(e, -ENOMEM, "out of memory");
    s->spec = *spec;
    int rc = pt_serve_doors_open(s, e);
    if (!rc)
        rc = plan_descriptors(s, e);
    if (rc) {
        pt_serve_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

const char *pt_serve_addresses(const struct pt_serve *s)
{
    return s->addresses;
}

void pt_serve_close(struct pt_serve *s)
{
    if (!s)
        return;
    pt_serve_doors_close(s);
    pt_loop_free(s->loop);
    json_decref(s->identity);
    free(s->entries);
    free(s->slots);
    pt_wipe(&s->spec.secret, sizeof(s->spec.secret));
    free(s);
}

/* ---- the end */

static void kill_all(struct pt_timer *t, pt_ns due)
{
    (void)due;
    pt_serve_slots_kill(t->ctx);
}

void pt_serve_stop(struct pt_serve *s, const char *reason)
{
    if (s->stopping)
        return;
    s->stopping = true;
    pt_log(PT_LOG_INFO, "stopping reason=\"%s\" sessions=%u", reason, s->slot_count);
    pt_serve_doors_close(s);
    pt_serve_entries_close(s);
    for (unsigned i = 0; i < s->slot_count; i++)
        pt_serve_slot_end(s->slots[i], "server-stops");
    if (pt_timer_set(s->loop, &s->kill_timer, pt_loop_now(s->loop) + PT_SERVE_GRACE) != 0)
        pt_serve_slots_kill(s);
}

static void look_for_signals(struct pt_serve *s)
{
    if (pt_signal_seen())
        pt_serve_stop(s, pt_signal_seen() == SIGINT ? "SIGINT" : "SIGTERM");
    if (pt_signal_count() > 1)
        pt_serve_slots_kill(s);
}

static void signalled(struct pt_op *op, int res, bool more)
{
    (void)res;
    (void)more;
    look_for_signals(op->ctx);
}

/* ---- the run */

static int prepare(struct pt_serve *s, struct pt_err *e)
{
    struct pt_loop_spec spec = {.backend = PT_BACKEND_EPOLL, .recv_size = 4096, .recv_count = 1};
    int rc = pt_random_bytes(s->knock_key, sizeof(s->knock_key));
    if (rc)
        return pt_fail(e, rc, "random bytes: %s", pt_strerror(rc));
    s->identity = pt_identity();
    s->entries = calloc(s->entry_max, sizeof(*s->entries));
    s->slots = calloc(s->slot_max, sizeof(struct pt_serve_slot *));
    if (!s->identity || !s->entries || !s->slots)
        return pt_fail(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < s->entry_max; i++)
        s->entries[i].fd = -1;
    rc = pt_loop_new(&s->loop, &spec, e);
    if (rc)
        return rc;
    s->kill_timer = (struct pt_timer){.fn = kill_all, .ctx = s};
    s->signalled = (struct pt_op){.fn = signalled, .ctx = s};
    if (pt_signal_fd() >= 0)
        rc = pt_op_poll(s->loop, &s->signalled, pt_signal_fd(), POLLIN);
    if (rc)
        return pt_fail(e, rc, "event loop: %s", pt_strerror(rc));
    return pt_serve_doors_start(s, e);
}

int pt_serve_run(struct pt_serve *s, struct pt_err *e)
{
    int rc = prepare(s, e);
    if (rc)
        return rc;
    while (!s->stopping || s->slot_count) {
        rc = pt_loop_step(s->loop, PT_NS_MAX);
        if (rc < 0 && rc != -EINTR) {
            pt_serve_slots_kill(s);
            return pt_fail(e, rc, "event loop: %s", pt_strerror(rc));
        }
        look_for_signals(s);
    }
    return 0;
}

/* ---- a server of one's own */

static int serve_child(void *ctx)
{
    struct pt_serve *s = ctx;
    struct pt_err e = {0};
    pt_proc_name("pitot-serve");
    int rc = pt_signals_install(&e);
    signal(SIGINT, SIG_IGN); /* it is the parent's to hear; ours is SIGTERM */
    if (!rc)
        rc = pt_serve_run(s, &e);
    if (rc)
        pt_log(PT_LOG_ERROR, "serve_failed error=\"%s\"", e.text);
    pt_serve_close(s);
    return rc ? 1 : 0;
}

int pt_serve_child_start(struct pt_serve_child *c, const struct pt_serve_spec *spec,
                         struct pt_err *e)
{
    struct pt_serve *s = NULL;
    struct pt_serve_spec own = *spec;
    *c = (struct pt_serve_child){.process = {.pidfd = -1}};
    if (!own.listen_count)
        pt_serve_listen_loopback(&own, 0);
    own.allow_count = 0;
    int rc = pt_secret_random(&own.secret, e);
    if (!rc)
        rc = pt_serve_open(&s, &own, e);
    if (!s)
        return rc;
    c->secret = own.secret;
    for (unsigned i = 0; i < s->door_count && c->at.n < PT_ADDR_LIST_MAX; i++)
        c->at.addr[c->at.n++] = s->doors[i].at;
    rc = pt_child_start(&c->process, serve_child, s, e);
    pt_serve_close(s);
    pt_wipe(&own.secret, sizeof(own.secret));
    return rc;
}

void pt_serve_child_end(struct pt_serve_child *c)
{
    pt_child_end(&c->process, 2 * PT_SERVE_GRACE, NULL);
    pt_wipe(&c->secret, sizeof(c->secret));
}
