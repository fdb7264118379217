/* echo.c: see echo.h. The listening half, and UDP; the connections of TCP are in echo_conn.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/echo.h"

#include "net/sock.h"
#include "net/udp.h"
#include "os/clock.h"
#include "os/signal.h"
#include "service/echo_conn.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UDP_SLOTS     8192
#define UDP_SLOT_SIZE 65536
#define UDP_RCVBUF    (8 << 20)
#define SPIN_NS       (100 * PT_US)
#define DROPS_EACH    (100 * PT_MS)

struct pt_echo {
    struct pt_echo_spec spec;
    int fd;
    char text[PT_ADDR_TEXT + 8];
    struct pt_addr own[PT_ECHO_ALLOW_MAX];
    unsigned own_count;
    struct pt_loop *loop;
    /* UDP */
    struct pt_impair_queue queue;
    struct pt_impair_record *record;
    struct pt_recv recv;
    struct pt_timer leave, drops;
    int64_t drops_counted;
    int failed; /* 0, or the negative errno that ends the service */
    /* TCP */
    struct pt_op accept;
    struct pt_echo_conn conns[PT_ECHO_CONNS_MAX];
};

int pt_echo_parse(struct pt_echo_spec *spec, const char *text, struct pt_err *e)
{
    bool stream = strncmp(text, "tcp:", 4) == 0;
    if (!stream && strncmp(text, "udp:", 4) != 0)
        return pt_fail(e, -EINVAL, "\"%.80s\" is none of udp:PORT, tcp:PORT, udp:ADDR:PORT", text);
    char at[PT_ADDR_TEXT];
    const char *rest = text + 4;
    bool port_alone = *rest && strspn(rest, "0123456789") == strlen(rest);
    int n = snprintf(at, sizeof(at), "%s%s", port_alone ? "127.0.0.1:" : "", rest);
    if (n < 0 || (size_t)n >= sizeof(at))
        return pt_fail(e, -EINVAL, "\"%.80s…\" is too long for an address", text);
    /* Port 0 is no port to a person who measures; to a server it means any free one. */
    size_t len = strlen(at);
    if (len > 2 && strcmp(at + len - 2, ":0") == 0)
        at[len - 2] = '\0';
    spec->stream = stream;
    int rc = pt_addr_parse(&spec->at, at, 0, e);
    if (!rc && pt_addr_family(&spec->at) == AF_UNIX)
        rc = pt_fail(e, -EINVAL, "echo is for udp and tcp, not for unix sockets");
    return rc;
}

static void list_own_addresses(struct pt_echo *echo)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0)
        return;
    for (struct ifaddrs *i = all; i && echo->own_count < PT_ECHO_ALLOW_MAX; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t len = family == AF_INET    ? sizeof(struct sockaddr_in)
                        : family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                             : 0;
        if (len)
            pt_addr_from(&echo->own[echo->own_count++], i->ifa_addr, len);
    }
    freeifaddrs(all);
}

static bool is_allowed(const struct pt_echo *echo, const struct pt_addr *from)
{
    for (unsigned i = 0; i < echo->spec.allow_count; i++)
        if (pt_cidr_match(&echo->spec.allow[i], from))
            return true;
    if (echo->spec.allow_count)
        return false;
    if (pt_addr_is_loopback(from))
        return true;
    for (unsigned i = 0; i < echo->own_count; i++)
        if (pt_addr_same_ip(&echo->own[i], from))
            return true;
    return false;
}

int pt_echo_open(struct pt_echo **out, const struct pt_echo_spec *spec, struct pt_err *e)
{
    const struct pt_impair_spec *path = &spec->impairment->spec;
    int rc = spec->stream ? pt_impair_check_stream(path, e) : pt_impair_check(path, e);
    if (rc)
        return rc;
    struct pt_echo *echo = calloc(1, sizeof(*echo));
    if (!echo)
        return pt_fail(e, -ENOMEM, "no memory for an echo service");
    echo->spec = *spec;
    struct pt_sockopts opts = {.nodelay = spec->stream, .rcvbuf = spec->stream ? 0 : UDP_RCVBUF};
    struct pt_addr at;
    echo->fd =
        spec->stream ? pt_sock_listen(&spec->at, 0, &opts, e) : pt_sock_bind(&spec->at, &opts, e);
    if (echo->fd < 0) {
        rc = echo->fd;
        free(echo);
        return rc;
    }
    char text[PT_ADDR_TEXT];
    rc = pt_addr_local(&at, echo->fd);
    if (rc < 0) {
        pt_echo_close(echo);
        return pt_fail(e, rc, "the address of an echo service: %s", pt_strerror(rc));
    }
    snprintf(echo->text, sizeof(echo->text), "%s %s", spec->stream ? "tcp" : "udp",
             pt_addr_print(&at, text));
    list_own_addresses(echo);
    int stamps = spec->stream ? 0 : pt_udp_stamp_rx(echo->fd, true);
    (void)stamps; /* without them the instant of the read stands for that of the arrival */
    *out = echo;
    return 0;
}

const char *pt_echo_address(const struct pt_echo *echo)
{
    return echo->text;
}

void pt_echo_close(struct pt_echo *echo)
{
    close(echo->fd);
    free(echo);
}

/* ---- UDP */

static void set_timer(struct pt_echo *echo, struct pt_timer *t, pt_ns due)
{
    int rc = pt_timer_set(echo->loop, t, due);
    if (rc < 0)
        echo->failed = rc;
}

static void send_due(struct pt_echo *echo)
{
    struct pt_departure d;
    while (pt_impair_take(&echo->queue, pt_loop_touch(echo->loop), &d)) {
        /* A reply that the kernel refuses is lost outside the path, and the asker will see that. */
        ssize_t sent = sendto(echo->fd, d.bytes, d.len, MSG_DONTWAIT, d.from, d.from_len);
        echo->record->unsent += sent < 0;
        pt_impair_done(&echo->queue, &d);
    }
    pt_ns next = pt_impair_next(&echo->queue);
    if (next == PT_NS_MAX)
        pt_timer_cancel(echo->loop, &echo->leave);
    else
        set_timer(echo, &echo->leave, next);
}

static void on_leave(struct pt_timer *t, pt_ns due)
{
    (void)due;
    send_due(t->ctx);
}

static void on_datagram(struct pt_recv *r, uint8_t *buf, ssize_t n, const struct pt_recv_meta *meta)
{
    struct pt_echo *echo = r->ctx;
    struct pt_addr from;
    if (n < 0 || !meta || meta->truncated)
        return;
    pt_addr_from(&from, meta->from, meta->from_len);
    if (!is_allowed(echo, &from)) {
        echo->record->refused++;
        return;
    }
    /* When the kernel took it, however late we are to look. */
    pt_ns came = meta->kernel_ns ? pt_clock_of_stamp(meta->kernel_ns) : pt_loop_now(echo->loop);
    if (pt_impair_offer(&echo->queue, came, NULL, meta->from, meta->from_len, buf, (size_t)n) < 0)
        echo->record->refused++;
    send_due(echo);
}

static void on_drops(struct pt_timer *t, pt_ns due)
{
    struct pt_echo *echo = t->ctx;
    int64_t drops = pt_sock_drops(echo->fd);
    if (drops > echo->drops_counted) {
        echo->record->unseen += (uint64_t)(drops - echo->drops_counted);
        echo->drops_counted = drops;
    }
    set_timer(echo, t, due + DROPS_EACH);
}

static int run_udp(struct pt_echo *echo, struct pt_err *e)
{
    uint64_t salt;
    echo->record = pt_impair_claim(echo->spec.impairment->ledger, &salt);
    if (!echo->record)
        return pt_fail(e, -EMFILE, "more than %d impaired paths", PT_IMPAIR_PATHS);
    int rc = pt_impair_queue_init(&echo->queue, &echo->spec.impairment->spec, echo->record, salt,
                                  false, UDP_SLOTS, UDP_SLOT_SIZE, e);
    if (rc)
        return rc;
    echo->leave = (struct pt_timer){.fn = on_leave, .ctx = echo};
    echo->drops = (struct pt_timer){.fn = on_drops, .ctx = echo};
    echo->recv = (struct pt_recv){
        .fd = echo->fd, .kind = PT_RECV_DGRAM_META, .batch = 16, .fn = on_datagram, .ctx = echo};
    rc = pt_recv_start(echo->loop, &echo->recv);
    set_timer(echo, &echo->drops, pt_loop_touch(echo->loop) + DROPS_EACH);
    return rc ? pt_fail(e, rc, "receive on %s: %s", echo->text, pt_strerror(rc)) : 0;
}

static void end_udp(struct pt_echo *echo)
{
    on_drops(&echo->drops, pt_loop_now(echo->loop));
    pt_timer_cancel(echo->loop, &echo->leave);
    pt_timer_cancel(echo->loop, &echo->drops);
    pt_recv_stop(echo->loop, &echo->recv);
    pt_impair_queue_fini(&echo->queue);
    pt_impair_give_back(echo->spec.impairment->ledger, echo->record);
}

/* ---- TCP */

static void on_accept(struct pt_op *op, int fd, bool more)
{
    struct pt_echo *echo = op->ctx;
    struct pt_addr from;
    (void)more;
    if (fd < 0)
        return;
    if (pt_addr_peer(&from, fd) == 0 && is_allowed(echo, &from))
        for (size_t i = 0; i < PT_ECHO_CONNS_MAX; i++)
            if (echo->conns[i].fd < 0 &&
                pt_echo_conn_open(&echo->conns[i], echo->loop, echo->spec.impairment, fd) == 0)
                return;
    close(fd);
}

static int run_tcp(struct pt_echo *echo, struct pt_err *e)
{
    for (size_t i = 0; i < PT_ECHO_CONNS_MAX; i++)
        echo->conns[i].fd = -1;
    echo->accept = (struct pt_op){.fn = on_accept, .ctx = echo};
    int rc = pt_op_accept(echo->loop, &echo->accept, echo->fd);
    return rc ? pt_fail(e, rc, "accept on %s: %s", echo->text, pt_strerror(rc)) : 0;
}

static void sweep_tcp(struct pt_echo *echo, bool all)
{
    for (size_t i = 0; i < PT_ECHO_CONNS_MAX; i++)
        if (echo->conns[i].fd >= 0 && (all || echo->conns[i].ended))
            pt_echo_conn_close(&echo->conns[i]);
}

int pt_echo_run(struct pt_echo *echo, struct pt_err *e)
{
    /* epoll: a buffer handed to a send is free again when the send has been cancelled. */
    struct pt_loop_spec how = {.backend = PT_BACKEND_EPOLL, .spin_before_ns = SPIN_NS};
    int rc = pt_signals_install(e);
    if (!rc)
        rc = pt_loop_new(&echo->loop, &how, e);
    if (rc)
        return rc;
    rc = echo->spec.stream ? run_tcp(echo, e) : run_udp(echo, e);
    while (rc >= 0 && !pt_signal_seen()) {
        rc = pt_loop_step(echo->loop, PT_NS_MAX);
        if (echo->failed)
            rc = echo->failed;
        if (rc < 0)
            rc = pt_fail(e, rc, "wait on %s: %s", echo->text, pt_strerror(rc));
        if (echo->spec.stream)
            sweep_tcp(echo, false);
    }
    if (echo->spec.stream)
        sweep_tcp(echo, true);
    else if (echo->record)
        end_udp(echo);
    pt_loop_free(echo->loop);
    echo->loop = NULL;
    return rc < 0 ? rc : 0;
}
