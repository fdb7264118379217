/* control.c: see control.h; the handshake is in handshake.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/control.h"

#include "base/log.h"
#include "os/clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A peer that was cut off answers no keepalive: 3 + 3 * 2 s of silence, or 10 s with bytes of ours
 * that it did not acknowledge. Failures do not matter: unix sockets have none of this. */
static void watch_peer(int fd)
{
    static const struct {
        int level, name, value;
    } opts[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},          {IPPROTO_TCP, TCP_KEEPIDLE, 3},
        {IPPROTO_TCP, TCP_KEEPINTVL, 2},        {IPPROTO_TCP, TCP_KEEPCNT, 3},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 10000}, {IPPROTO_TCP, TCP_NODELAY, 1},
    };
    for (size_t i = 0; i < PT_COUNT(opts); i++)
        (void)setsockopt(fd, opts[i].level, opts[i].name, &opts[i].value, sizeof(opts[i].value));
}

void pt_control_init(struct pt_control *c, int fd, const char *role)
{
    *c = (struct pt_control){.fd = fd};
    if (pt_addr_local(&c->local, fd) != 0)
        c->local.len = 0;
    if (pt_addr_peer(&c->peer, fd) != 0)
        c->peer.len = 0;
    char text[PT_ADDR_TEXT];
    bool unnamed = pt_addr_family(&c->peer) == AF_UNIX && c->peer.len <= sizeof(sa_family_t);
    snprintf(c->name, sizeof(c->name), "%s at %s", role,
             pt_addr_print(unnamed ? &c->local : &c->peer, text));
    pt_control_decoder_init(&c->in, PT_CONTROL_MAX_EARLY);
    watch_peer(fd);
}

void pt_control_fini(struct pt_control *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    pt_control_decoder_fini(&c->in);
}

/* Waits for `events` until the deadline. 0, -ETIMEDOUT, -EINTR. */
static int wait_for(int fd, short events, pt_ns deadline)
{
    struct pollfd p = {.fd = fd, .events = events};
    pt_ns left = deadline == PT_NS_MAX ? 0 : deadline - pt_clock_now();
    if (left < 0)
        left = 0;
    struct timespec ts = {.tv_sec = left / PT_S, .tv_nsec = left % PT_S};
    int n = ppoll(&p, 1, deadline == PT_NS_MAX ? NULL : &ts, NULL);
    if (n < 0)
        return -errno;
    return n ? 0 : -ETIMEDOUT;
}

int pt_control_send(struct pt_control *c, const json_t *message, pt_ns deadline, struct pt_err *e)
{
    struct pt_buf out;
    pt_buf_init(&out, 4 + PT_CONTROL_MAX + 4096);
    int rc = pt_control_encode(&out, message);
    if (rc) {
        pt_fail(e, rc, "%s: a message that cannot be sent: %s", c->name, pt_strerror(rc));
        goto out;
    }
    for (size_t at = 0; at < out.len;) {
        ssize_t n = send(c->fd, out.bytes + at, out.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) {
            at += (size_t)n;
            continue;
        }
        rc = errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (rc == 0)
            rc = wait_for(c->fd, POLLOUT, deadline);
        if (rc == -ETIMEDOUT)
            pt_fail(e, rc, "%s takes no more messages", c->name);
        else if (rc)
            pt_fail(e, rc, "sending to the %s: %s", c->name, pt_strerror(rc));
        if (rc)
            goto out;
    }
out:
    pt_buf_fini(&out);
    return rc;
}

int pt_control_send_new(struct pt_control *c, json_t *message, pt_ns deadline, struct pt_err *e)
{
    if (!message)
        return pt_fail(e, -ENOMEM, "%s: no memory for a message", c->name);
    int rc = pt_control_send(c, message, deadline, e);
    json_decref(message);
    return rc;
}

/* Reads what the kernel has, up to the end of one message. 1: a message is whole; 0: not yet;
 * -ECONNRESET: the peer has ended; or a negative errno. */
static int fill(struct pt_control *c)
{
    uint8_t bytes[4096];
    int waiting;
    while ((waiting = pt_control_waiting(&c->in)) == 0) {
        size_t room = pt_control_room(&c->in);
        ssize_t n = recv(c->fd, bytes, room < sizeof(bytes) ? room : sizeof(bytes), MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n <= 0)
            return n == 0 || errno == EPIPE ? -ECONNRESET : -errno;
        int rc = pt_control_feed(&c->in, bytes, (size_t)n);
        if (rc)
            return rc;
    }
    return waiting;
}

int pt_control_pending(struct pt_control *c)
{
    int rc = fill(c);
    return rc == -EINTR ? 0 : rc;
}

/* ---- what the peer's error messages mean */

static const struct {
    int code;
    const char *word;
} words[] = {
    {-EACCES, "auth"},
    {-EBUSY, "busy"},
    {-EPROTONOSUPPORT, "version"},
    {-EPERM, "limit"},
    {-EINVAL, "invalid"},
    {-EPROTO, "protocol"},
    {-ETIMEDOUT, "timeout"},
    {-EOPNOTSUPP, "unsupported"},
    {-EIO, "failed"},
};

static const char *word_of(int code)
{
    for (size_t i = 0; i < PT_COUNT(words); i++)
        if (words[i].code == code)
            return words[i].word;
    return "failed";
}

static int code_of(const char *word)
{
    for (size_t i = 0; word && i < PT_COUNT(words); i++)
        if (strcmp(words[i].word, word) == 0)
            return words[i].code;
    return -EIO;
}

static int peer_gave_up(struct pt_control *c, const json_t *message, struct pt_err *e)
{
    const char *reason = json_string_value(json_object_get(message, "reason"));
    char quoted[320];
    pt_log_quote(quoted, sizeof(quoted), reason ? reason : "", reason ? strlen(reason) : 0);
    int code = code_of(json_string_value(json_object_get(message, "code")));
    if (code == -EPROTONOSUPPORT && c->in.limit == PT_CONTROL_MAX_EARLY)
        return pt_fail(e, code, "%s refused: %s; this pitot speaks version %d", c->name, quoted,
                       PT_PROTO_VERSION);
    return pt_fail(e, code, "%s refused: %s", c->name, *quoted ? quoted : "it gave no reason");
}

/* Puts what came instead of a message into the sentence: people point at the wrong port. */
static int not_pitot(struct pt_control *c, int code, struct pt_err *e)
{
    uint8_t first[64];
    size_t n = c->in.buf.len < sizeof(first) ? c->in.buf.len : sizeof(first);
    if (n)
        memcpy(first, c->in.buf.bytes, n);
    ssize_t more = recv(c->fd, first + n, sizeof(first) - n, MSG_DONTWAIT);
    if (more > 0)
        n += (size_t)more;
    char quoted[160];
    pt_log_quote(quoted, sizeof(quoted), first, n);
    const char *guess = pt_preamble_guess(first, n);
    return pt_fail(e, code, "%s does not speak pitot (it sent: %s%s%s); is the port right?",
                   c->name, quoted, strcmp(guess, "unknown") ? ", which is " : "",
                   strcmp(guess, "unknown") ? guess : "");
}

static int recv_failed(struct pt_control *c, int rc, struct pt_err *e)
{
    if (rc == -EMSGSIZE && !c->spoke)
        return not_pitot(c, -EPROTO, e);
    if (rc == -EMSGSIZE)
        return pt_fail(e, rc, "%s sent a message longer than %zu bytes", c->name, c->in.limit);
    if (rc == -ECONNRESET && !c->spoke)
        return pt_fail(e, rc,
                       "%s closed the connection without a word: it is not pitot, or does not "
                       "serve this address (pitot serve --allow)",
                       c->name);
    if (rc == -ECONNRESET)
        return pt_fail(e, rc, "%s closed the connection", c->name);
    if (rc == -ETIMEDOUT && c->spoke)
        return pt_fail(e, rc, "%s did not answer in time", c->name);
    if (rc == -ETIMEDOUT)
        return pt_fail(e, rc, "%s accepts connections but says nothing; is it pitot?", c->name);
    if (rc == -EINTR)
        return pt_fail(e, rc, "interrupted while waiting for the %s", c->name);
    return pt_fail(e, rc, "receiving from the %s: %s", c->name, pt_strerror(rc));
}

int pt_control_recv(struct pt_control *c, json_t **out, pt_ns deadline, struct pt_err *e)
{
    *out = NULL;
    int rc;
    while ((rc = fill(c)) == 0) {
        rc = wait_for(c->fd, POLLIN, deadline);
        if (rc)
            break;
    }
    if (rc < 0)
        return recv_failed(c, rc, e);
    json_t *message;
    rc = pt_control_decode(&c->in, &message, e);
    if (rc < 0) {
        pt_fail_prefix(e, "%s sent", c->name);
        return rc;
    }
    c->spoke = true;
    if (strcmp(pt_control_type(message), "error") == 0) {
        rc = peer_gave_up(c, message, e);
        json_decref(message);
        return rc;
    }
    *out = message;
    return 0;
}

int pt_control_lost(struct pt_control *c, int rc, struct pt_err *e)
{
    struct pt_err why = {0};
    json_t *message = NULL;
    if (rc != -EPIPE && rc != -ECONNRESET)
        return rc;
    int last = pt_control_recv(c, &message, 0, &why);
    json_decref(message);
    return last == 0 || last == -ETIMEDOUT ? rc : pt_fail(e, last, "%s", why.text);
}

int pt_control_expect(struct pt_control *c, const char *type, json_t **out, pt_ns deadline,
                      struct pt_err *e)
{
    int rc = pt_control_recv(c, out, deadline, e);
    if (rc || strcmp(pt_control_type(*out), type) == 0)
        return rc;
    char quoted[64];
    const char *got = pt_control_type(*out);
    pt_fail(e, -EPROTO, "%s sent \"%s\" where \"%s\" was due", c->name,
            pt_log_quote(quoted, sizeof(quoted), got, strlen(got)), type);
    json_decref(*out);
    *out = NULL;
    return -EPROTO;
}

json_t *pt_control_error(int code, const char *reason)
{
    return json_pack("{s:s, s:s, s:s}", "type", "error", "code", word_of(code), "reason", reason);
}

void pt_control_refuse(struct pt_control *c, int code, const char *reason)
{
    pt_ns deadline = pt_clock_now() + 200 * PT_MS;
    if (c->fd < 0 || pt_control_send_new(c, pt_control_error(code, reason), deadline, NULL) != 0)
        goto out;
    /* Bytes that were not read would turn the close into a reset, which can overtake the reason. */
    shutdown(c->fd, SHUT_WR);
    uint8_t scrap[4096];
    for (size_t total = 0; total < 256 * 1024;) {
        ssize_t n = recv(c->fd, scrap, sizeof(scrap), MSG_DONTWAIT);
        if (n > 0)
            total += (size_t)n;
        else if (n == 0 || errno != EAGAIN || wait_for(c->fd, POLLIN, deadline) != 0)
            break;
    }
out:
    pt_control_fini(c);
}
