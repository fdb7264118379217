/* dial.c: see dial.h. One poll set of at most PT_DIAL_AT_ONCE flows under way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/dial.h"

#include "os/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define FIRST_PAUSE (50 * PT_MS)
#define LAST_PAUSE  (1 * PT_S)
/* Proofs without an answer before the challenge counts as outdated. */
#define PROOFS 4

/* How long the answers to repeated knocks are waited for: as long as the opening took, at least
 * this. */
#define SETTLE_LEAST (100 * PT_MS)

enum stage { CONNECTING, UNANSWERED, HELLO, PROOF, SETTLING };

struct attempt {
    struct pt_dial *dial;
    enum stage stage;
    unsigned sent;       /* knocks of this stage */
    unsigned unanswered; /* knocks of all stages, less the answers that came */
    pt_ns began;
    pt_ns again; /* when to repeat the knock, or to wait no longer; PT_NS_MAX: never */
    pt_ns pause;
    uint8_t nonce[PT_UDP_NONCE_SIZE];
};

struct dialling {
    int type;
    const struct pt_addr *server;
    const uint8_t *token;
    const struct pt_sockopts *opts;
    struct attempt at[PT_DIAL_AT_ONCE];
    struct pollfd polls[PT_DIAL_AT_ONCE];
    unsigned count;
};

static void preamble(const struct dialling *d, const struct attempt *a, enum pt_preamble_kind kind,
                     struct pt_preamble *p)
{
    *p = (struct pt_preamble){
        .version = PT_PROTO_VERSION, .kind = (uint8_t)kind, .flow = a->dial->flow};
    memcpy(p->token, d->token, PT_TOKEN_SIZE);
}

/* ---- streams */

static int stream_greet(const struct dialling *d, struct attempt *a)
{
    struct pt_preamble p;
    uint8_t bytes[PT_PREAMBLE_SIZE];
    preamble(d, a, PT_PREAMBLE_STREAM, &p);
    pt_preamble_write(bytes, &p);
    ssize_t n = send(a->dial->fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
    if (n != (ssize_t)sizeof(bytes))
        return n < 0 ? -errno : -EPIPE;
    a->stage = UNANSWERED;
    return 0;
}

static int stream_connected(const struct dialling *d, struct attempt *a)
{
    int error = 0;
    socklen_t len = sizeof(error);
    if (getsockopt(a->dial->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        return -errno;
    return error ? -error : stream_greet(d, a);
}

/* 1: the flow stands. */
static int stream_answered(struct attempt *a)
{
    uint8_t byte;
    ssize_t n = recv(a->dial->fd, &byte, 1, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ECONNRESET;
    return byte == PT_STREAM_ACCEPTED ? 1 : -EPROTO;
}

/* ---- datagrams */

static int knock(const struct dialling *d, struct attempt *a, pt_ns now)
{
    struct pt_preamble p;
    uint8_t bytes[PT_KNOCK_SIZE];
    static const uint8_t none[PT_UDP_NONCE_SIZE];
    preamble(d, a, a->stage == PROOF ? PT_PREAMBLE_PROOF : PT_PREAMBLE_HELLO, &p);
    pt_knock_write(bytes, &p, a->stage == PROOF ? a->nonce : none);
    a->sent++;
    a->unanswered++;
    a->again = now + a->pause;
    a->pause = a->pause < LAST_PAUSE / 2 ? 2 * a->pause : LAST_PAUSE;
    if (send(a->dial->fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        return 0;
    /* A full queue is a lost datagram: repeated like one. */
    return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? 0 : -errno;
}

static int knock_as(const struct dialling *d, struct attempt *a, enum stage stage, pt_ns now)
{
    if (a->stage == CONNECTING)
        a->began = now;
    a->stage = stage;
    a->sent = 0;
    a->pause = FIRST_PAUSE;
    return knock(d, a, now);
}

/* 1: the flow stands. */
static int knock_again(const struct dialling *d, struct attempt *a, pt_ns now)
{
    if (a->stage == SETTLING)
        return 1;
    if (a->stage == PROOF && a->sent >= PROOFS)
        return knock_as(d, a, HELLO, now);
    return knock(d, a, now);
}

/* 1: the flow stands. */
static int knock_answered(const struct dialling *d, struct attempt *a, pt_ns now)
{
    uint8_t bytes[PT_KNOCK_SIZE + 1], nonce[PT_UDP_NONCE_SIZE];
    struct pt_preamble p;
    for (;;) {
        ssize_t n = recv(a->dial->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (pt_knock_read(&p, nonce, bytes, (size_t)n) != 0 || p.flow != a->dial->flow ||
            memcmp(p.token, d->token, PT_TOKEN_SIZE) != 0)
            continue;
        if (a->unanswered)
            a->unanswered--;
        if (p.kind == PT_PREAMBLE_READY && a->stage != SETTLING) {
            pt_ns took = now - a->began;
            a->stage = SETTLING;
            a->again = now + (took > SETTLE_LEAST ? took : SETTLE_LEAST);
        }
        if (a->stage == SETTLING && a->unanswered == 0)
            return 1;
        if (p.kind != PT_PREAMBLE_CHALLENGE || a->stage != HELLO)
            continue;
        memcpy(a->nonce, nonce, sizeof(nonce));
        int rc = knock_as(d, a, PROOF, now);
        if (rc)
            return rc;
    }
}

/* ---- all of them */

static int start(struct dialling *d, struct attempt *a, struct pt_dial *dial, pt_ns now,
                 struct pt_err *e)
{
    *a = (struct attempt){.dial = dial, .again = PT_NS_MAX};
    int fd = pt_sock_open(d->type, d->server, dial->from.len ? &dial->from : NULL, d->opts, e);
    if (fd == -EMFILE)
        return pt_fail(e, fd, "out of file descriptors; raise the limit (ulimit -n)");
    if (fd < 0)
        return fd;
    dial->fd = fd;
    int rc = 0;
    if (d->type == SOCK_STREAM)
        rc = pt_sock_set_nonblock(fd, true);
    if (rc == 0 && connect(fd, &d->server->sa, d->server->len) != 0)
        rc = -errno;
    if (d->type == SOCK_STREAM && rc == -EINPROGRESS)
        rc = 0; /* the first POLLOUT says how it went */
    else if (rc == 0)
        rc = d->type == SOCK_STREAM ? stream_greet(d, a) : knock_as(d, a, HELLO, now);
    if (rc)
        pt_fail(e, rc, "connect: %s", pt_strerror(rc));
    return rc;
}

static const char *why(const struct dialling *d, const struct attempt *a, int rc)
{
    bool datagram = d->type == SOCK_DGRAM;
    if (rc == -ETIMEDOUT && datagram)
        return "no answer by UDP; does a firewall let UDP to this port pass?";
    if (rc == -ETIMEDOUT && a->stage == CONNECTING)
        return "the connection was not made in time";
    if (rc == -ETIMEDOUT)
        return "the server's session did not take it in time";
    if (rc == -ECONNREFUSED && datagram)
        return "nothing listens there on UDP";
    if ((rc == -ECONNRESET || rc == -EPIPE) && !datagram)
        return "the server closed it: its session has ended, or it is out of file descriptors";
    if (rc == -EPROTO)
        return "the server's answer was not pitot's";
    if (rc == -EINTR)
        return "interrupted";
    return pt_strerror(rc);
}

/* Waits for the next thing to do. 0, -ETIMEDOUT, -EINTR. */
static int wait_any(struct dialling *d, pt_ns deadline)
{
    pt_ns until = deadline;
    for (unsigned i = 0; i < d->count; i++) {
        const struct attempt *a = &d->at[i];
        d->polls[i] =
            (struct pollfd){.fd = a->dial->fd, .events = a->stage == CONNECTING ? POLLOUT : POLLIN};
        if (a->again < until)
            until = a->again;
    }
    pt_ns now = pt_clock_now(), left = until > now ? until - now : 0;
    struct timespec ts = {.tv_sec = left / PT_S, .tv_nsec = left % PT_S};
    if (ppoll(d->polls, d->count, until == PT_NS_MAX ? NULL : &ts, NULL) < 0)
        return -errno;
    return pt_clock_now() >= deadline ? -ETIMEDOUT : 0;
}

static int advance(struct dialling *d, unsigned i, pt_ns now)
{
    struct attempt *a = &d->at[i];
    int rc = 0;
    if (d->polls[i].revents && d->type == SOCK_DGRAM)
        rc = knock_answered(d, a, now);
    else if (d->polls[i].revents)
        rc = a->stage == CONNECTING ? stream_connected(d, a) : stream_answered(a);
    if (rc == 0 && now >= a->again)
        rc = knock_again(d, a, now);
    return rc == 1 && d->type == SOCK_STREAM && pt_sock_set_nonblock(a->dial->fd, false) != 0
               ? -EBADF
               : rc;
}

static int fail(const struct dialling *d, const struct attempt *a, int rc, struct pt_err *e)
{
    char text[PT_ADDR_TEXT];
    return pt_fail(e, rc, "flow %u to %s: %s", a->dial->flow, pt_addr_print(d->server, text),
                   why(d, a, rc));
}

static int dial_all(struct dialling *d, struct pt_dial *flows, unsigned count, pt_ns deadline,
                    struct pt_err *e)
{
    for (unsigned next = 0; next < count || d->count;) {
        while (next < count && d->count < PT_DIAL_AT_ONCE) {
            struct attempt *a = &d->at[d->count];
            struct pt_dial *dial = &flows[next++];
            int rc = start(d, a, dial, pt_clock_now(), e);
            if (rc) {
                char text[PT_ADDR_TEXT];
                pt_fail_prefix(e, "flow %u to %s", dial->flow, pt_addr_print(d->server, text));
                return rc;
            }
            d->count++;
        }
        int rc = wait_any(d, deadline);
        if (rc)
            return fail(d, &d->at[0], rc, e);
        pt_ns now = pt_clock_now();
        for (unsigned i = d->count; i-- > 0;) {
            rc = advance(d, i, now);
            if (rc < 0)
                return fail(d, &d->at[i], rc, e);
            if (rc == 1)
                d->at[i] = d->at[--d->count];
        }
    }
    return 0;
}

int pt_dial_flows(struct pt_dial *flows, unsigned count, int type, const struct pt_addr *server,
                  const uint8_t token[PT_TOKEN_SIZE], const struct pt_sockopts *o, pt_ns deadline,
                  struct pt_err *e)
{
    struct dialling d = {.type = type, .server = server, .token = token, .opts = o};
    for (unsigned i = 0; i < count; i++)
        flows[i].fd = -1;
    int rc = dial_all(&d, flows, count, deadline, e);
    for (unsigned i = 0; rc && i < count; i++) {
        if (flows[i].fd >= 0)
            close(flows[i].fd);
        flows[i].fd = -1;
    }
    return rc;
}
