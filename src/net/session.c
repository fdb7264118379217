/* session.c: see session.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/session.h"

#include "os/clock.h"
#include "os/fdpass.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* What an epoll event is about; flows are AT_FLOW + their index. */
enum { AT_CHANNEL, AT_CONTROL, AT_FLOW };

struct taking {
    struct pt_session *session;
    struct pt_session_flow *out;
    uint32_t first;
    unsigned count, have;
    int epoll;
};

static int watch(const struct taking *t, int fd, uint64_t what)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = what};
    return epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

static int tell_ready(const struct taking *t, int fd, uint32_t flow, bool datagram)
{
    static const uint8_t none[PT_UDP_NONCE_SIZE];
    uint8_t bytes[PT_KNOCK_SIZE] = {PT_STREAM_ACCEPTED};
    size_t n = 1;
    if (datagram) {
        struct pt_preamble p = {
            .version = PT_PROTO_VERSION, .kind = PT_PREAMBLE_READY, .flow = flow};
        memcpy(p.token, t->session->token, PT_TOKEN_SIZE);
        pt_knock_write(bytes, &p, none);
        n = sizeof(bytes);
    }
    return send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The client repeats itself until it hears that the flow stands; what else comes is not due yet. */
static void answer_again(const struct taking *t, unsigned index)
{
    uint8_t bytes[PT_KNOCK_SIZE + 1], nonce[PT_UDP_NONCE_SIZE];
    struct pt_preamble p;
    int fd = t->out[index].fd;
    for (int budget = 64; budget > 0; budget--) {
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 || pt_knock_read(&p, nonce, bytes, (size_t)n) != 0)
            continue;
        if ((p.kind == PT_PREAMBLE_HELLO || p.kind == PT_PREAMBLE_PROOF) &&
            p.flow == t->first + index &&
            pt_equal_secret(p.token, t->session->token, PT_TOKEN_SIZE))
            (void)tell_ready(t, fd, p.flow, true);
    }
}

/* What the client repeated before it heard that the flow stands must not be measured. */
static void settle(const struct taking *t)
{
    uint8_t scrap[PT_KNOCK_SIZE];
    for (unsigned i = 0; i < t->count; i++)
        for (int budget = t->out[i].datagram ? 64 : 0; budget > 0; budget--)
            if (recv(t->out[i].fd, scrap, sizeof(scrap), MSG_DONTWAIT) < 0 && errno == EAGAIN)
                break;
}

static int take(struct taking *t, int fd, const struct pt_channel_message *m)
{
    bool datagram = m->kind == PT_CHANNEL_DATAGRAM;
    uint32_t index = m->flow - t->first;
    if ((!datagram && m->kind != PT_CHANNEL_STREAM) || index >= t->count || t->out[index].fd >= 0 ||
        tell_ready(t, fd, m->flow, datagram) != 0) {
        close(fd);
        return 0;
    }
    t->out[index] = (struct pt_session_flow){.fd = fd, .datagram = datagram};
    t->have++;
    return datagram ? watch(t, fd, AT_FLOW + index) : 0;
}

static int take_queued(struct taking *t, struct pt_err *e)
{
    struct pt_channel_message m;
    for (;;) {
        int fd;
        ssize_t n = pt_fdpass_recv(t->session->channel, &fd, &m, sizeof(m), 0);
        if (n == -ETIMEDOUT)
            return 0;
        if (n == 0 || n == -ECONNRESET)
            return pt_fail(e, -EPIPE, "the server's main process is gone");
        if (n < 0 && n != -EPROTO && n != -EMSGSIZE)
            return pt_fail(e, (int)n, "taking a flow: %s", pt_strerror((int)n));
        if (fd < 0)
            continue;
        int rc = n == (ssize_t)sizeof(m) ? take(t, fd, &m) : (close(fd), 0);
        if (rc)
            return pt_fail(e, rc, "taking a flow: %s", pt_strerror(rc));
    }
}

/* Until the client goes on. */
static int take_all(struct taking *t, pt_ns deadline, struct pt_err *e)
{
    struct pt_session *s = t->session;
    struct epoll_event events[64];
    int rc = watch(t, s->channel, AT_CHANNEL);
    if (!rc)
        rc = watch(t, s->control->fd, AT_CONTROL);
    if (rc)
        return pt_fail(e, rc, "taking flows: %s", pt_strerror(rc));
    while ((rc = pt_control_pending(s->control)) == 0) {
        pt_ns left = deadline - pt_clock_now();
        if (left <= 0)
            return pt_fail(e, -ETIMEDOUT, "%s opened %u of %u flows in time", s->control->name,
                           t->have, t->count);
        int wait_ms = left / PT_MS < 1000 ? (int)(left / PT_MS) + 1 : 1000;
        int n = epoll_wait(t->epoll, events, PT_COUNT(events), wait_ms);
        if (n < 0 && errno != EINTR)
            return pt_fail(e, -errno, "epoll: %s", pt_strerror(-errno));
        for (int i = 0; i < n; i++) {
            uint64_t what = events[i].data.u64;
            if (what >= AT_FLOW)
                answer_again(t, (unsigned)(what - AT_FLOW));
            else if (what == AT_CHANNEL && (rc = take_queued(t, e)) != 0)
                return rc;
        }
    }
    if (rc < 0)
        return pt_fail(e, rc == -EMSGSIZE ? rc : -ECONNRESET, "%s went away", s->control->name);
    if (t->have < t->count)
        return pt_fail(e, -EPROTO, "%s goes on though only %u of %u flows stand", s->control->name,
                       t->have, t->count);
    return 0;
}

/* What main is told is worth no waiting: a log line, or ids that a client seldom uses again. */
static void tell_main(struct pt_session *s, const struct pt_channel_message *m)
{
    int rc = pt_fdpass_send(s->channel, -1, m, sizeof(*m), 0);
    (void)rc;
}

int pt_session_take_flows(struct pt_session *s, struct pt_session_flow *out, uint32_t first,
                          unsigned count, pt_ns deadline, struct pt_err *e)
{
    struct taking t = {.session = s, .out = out, .first = first, .count = count};
    for (unsigned i = 0; i < count; i++)
        out[i].fd = -1;
    if (s->caps.max_connections && count > s->caps.max_connections)
        return pt_fail(e, -EPERM, "%u flows, the server's limit is %u", count,
                       s->caps.max_connections);
    t.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (t.epoll < 0)
        return pt_fail(e, -errno, "epoll: %s", pt_strerror(-errno));
    int rc = take_all(&t, deadline, e);
    close(t.epoll);
    if (rc == 0)
        settle(&t);
    if (rc == 0)
        tell_main(s, &(struct pt_channel_message){.kind = PT_CHANNEL_TAKEN});
    for (unsigned i = 0; rc && i < count; i++) {
        if (out[i].fd >= 0)
            close(out[i].fd);
        out[i].fd = -1;
    }
    return rc;
}

void pt_session_note(struct pt_session *s, const char *fmt, ...)
{
    struct pt_channel_message m = {.kind = PT_CHANNEL_NOTE};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(m.text, sizeof(m.text), fmt, ap);
    va_end(ap);
    tell_main(s, &m);
}
