/* serve_entry.c: connections that have not said yet what they are.
 *
 * A connection has five seconds in all for 32 bytes, however it spreads them, and is known for a
 * stranger at the first byte that does not fit. When all places are taken the one that has said
 * nothing for the longest makes room: a flood of silence does not keep anybody out who speaks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/serve_private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void leave(struct pt_serve_entry *n)
{
    pt_timer_cancel(n->serve->loop, &n->timer);
    pt_op_cancel(n->serve->loop, &n->readable);
}

static void drop(struct pt_serve_entry *n)
{
    leave(n);
    close(n->fd);
    n->fd = -1;
}

/* A pitot client is told why; main does not wait to hear whether it listens. */
static void refuse(struct pt_serve_entry *n, int code, const char *reason)
{
    struct pt_control c;
    uint8_t scrap[1024];
    char text[PT_ADDR_TEXT];
    pt_serve_log(n->serve, "refused peer=%s why=\"%s\"", pt_addr_print(&n->peer, text), reason);
    leave(n);
    /* The hello that came along is read, so that the close is no reset that overtakes the reason.
     */
    for (int budget = 16; budget > 0; budget--)
        if (recv(n->fd, scrap, sizeof(scrap), MSG_DONTWAIT) != (ssize_t)sizeof(scrap))
            break;
    pt_control_init(&c, n->fd, "client");
    json_t *message = pt_control_error(code, reason);
    int rc = pt_control_send_new(&c, message, 0, NULL);
    (void)rc; /* it may be gone: then nobody is left to tell */
    pt_control_fini(&c);
    n->fd = -1;
}

static void stranger(struct pt_serve_entry *n)
{
    uint8_t bytes[64];
    char quoted[200], text[PT_ADDR_TEXT];
    memcpy(bytes, n->bytes, n->have);
    ssize_t more = recv(n->fd, bytes + n->have, sizeof(bytes) - n->have, MSG_DONTWAIT);
    size_t have = n->have + (more > 0 ? (size_t)more : 0);
    pt_serve_log(n->serve, "not_pitot peer=%s looks_like=%s bytes=\"%s\"",
                 pt_addr_print(&n->peer, text), pt_preamble_guess(bytes, have),
                 pt_log_quote(quoted, sizeof(quoted), bytes, have));
    drop(n);
}

static void begin_session(struct pt_serve_entry *n)
{
    struct pt_err e = {0};
    int rc = pt_serve_slot_start(n->serve, n->fd, &n->peer, &e);
    n->waiting = rc == -EAGAIN;
    if (rc == 0)
        drop(n);
    else if (rc != -EAGAIN)
        refuse(n, rc, e.text);
}

static void pass_stream(struct pt_serve_entry *n, const struct pt_preamble *p)
{
    char text[PT_ADDR_TEXT];
    struct pt_serve_slot *slot = pt_serve_slot_find(n->serve, p->token);
    if (!slot)
        pt_serve_log(n->serve, "refused peer=%s why=\"no session has its token\"",
                     pt_addr_print(&n->peer, text));
    else if (pt_serve_slot_pass(slot, PT_CHANNEL_STREAM, p->flow, n->fd) != 0)
        pt_serve_log(n->serve, "refused peer=%s session=%llu flow=%u why=\"the session is behind\"",
                     pt_addr_print(&n->peer, text), (unsigned long long)slot->id, p->flow);
    drop(n);
}

static void readable(struct pt_op *op, int res, bool more)
{
    (void)res;
    (void)more;
    struct pt_serve_entry *n = op->ctx;
    struct pt_preamble p;
    char text[PT_ADDR_TEXT];
    ssize_t got = recv(n->fd, n->bytes + n->have, sizeof(n->bytes) - n->have, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        pt_serve_log(n->serve, "gone peer=%s bytes=%zu", pt_addr_print(&n->peer, text), n->have);
        drop(n);
        return;
    }
    if (got > 0)
        n->have += (size_t)got;
    int rc = pt_preamble_read(&p, n->bytes, n->have);
    if (rc == 0 && pt_op_poll(n->serve->loop, op, n->fd, POLLIN) != 0)
        drop(n);
    else if (rc == -EPROTO)
        stranger(n);
    else if (rc == -EPROTONOSUPPORT)
        refuse(n, rc, "the server speaks protocol version " PT_PROTO_VERSION_TEXT);
    else if (rc > 0 && p.kind == PT_PREAMBLE_STREAM)
        pass_stream(n, &p);
    else if (rc > 0)
        begin_session(n);
}

static void too_late(struct pt_timer *t, pt_ns due)
{
    (void)due;
    struct pt_serve_entry *n = t->ctx;
    char text[PT_ADDR_TEXT];
    if (n->waiting) {
        refuse(n, -EBUSY, "too many sessions are being opened at once; try again");
        return;
    }
    pt_serve_log(n->serve, "silent peer=%s bytes=%zu", pt_addr_print(&n->peer, text), n->have);
    drop(n);
}

static struct pt_serve_entry *make_room(struct pt_serve *s)
{
    struct pt_serve_entry *oldest = &s->entries[0];
    for (unsigned i = 0; i < s->entry_max; i++) {
        struct pt_serve_entry *n = &s->entries[i];
        if (n->fd < 0)
            return n;
        if (n->waiting != oldest->waiting ? oldest->waiting : n->came < oldest->came)
            oldest = n;
    }
    char text[PT_ADDR_TEXT];
    pt_serve_log(s, "crowded_out peer=%s", pt_addr_print(&oldest->peer, text));
    drop(oldest);
    return oldest;
}

void pt_serve_entry_take(struct pt_serve *s, int fd, const struct pt_addr *peer)
{
    struct pt_serve_entry *n = make_room(s);
    *n = (struct pt_serve_entry){.serve = s,
                                 .fd = fd,
                                 .peer = *peer,
                                 .readable = {.fn = readable, .ctx = n},
                                 .timer = {.fn = too_late, .ctx = n},
                                 .came = pt_loop_now(s->loop)};
    if (pt_timer_set(s->loop, &n->timer, n->came + PT_SERVE_PREAMBLE_TIME) != 0 ||
        pt_op_poll(s->loop, &n->readable, fd, POLLIN) != 0)
        drop(n);
}

void pt_serve_entries_retry(struct pt_serve *s)
{
    for (unsigned i = 0; i < s->entry_max; i++)
        if (s->entries[i].fd >= 0 && s->entries[i].waiting)
            begin_session(&s->entries[i]);
}

void pt_serve_entries_close(struct pt_serve *s)
{
    for (unsigned i = 0; i < s->entry_max; i++) {
        struct pt_serve_entry *n = &s->entries[i];
        if (n->fd >= 0 && n->waiting)
            refuse(n, -EBUSY, "the server ends");
        else if (n->fd >= 0)
            drop(n);
    }
}
