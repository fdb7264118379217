/* compat_iperf3.c: the main process of the iperf3 server: doors, connections that have not shown
 * their cookie yet, and tests. See compat_iperf3.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/compat_iperf3.h"

#include "base/log.h"
#include "net/sock.h"
#include "net/udp_door.h"
#include "os/clock.h"
#include "os/fdpass.h"
#include "os/signal.h"
#include "proto/iperf3.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ENTRIES_MAX 256
#define TESTS_MAX   256
#define COOKIE_NS   (5 * PT_S)
#define AT_ONCE     64

struct door {
    int tcp, udp;
    struct pt_addr at;
};

/* A connection whose cookie is not whole yet. */
struct entry {
    int fd; /* -1: free */
    struct pt_addr peer;
    pt_ns until;
    size_t have;
    char cookie[PT_IPERF3_COOKIE];
};

struct running {
    struct pt_child process; /* pid 0: free */
    int channel;
    char cookie[PT_IPERF3_COOKIE];
    struct pt_addr peer;
    uint32_t wants, waits; /* UDP streams that are to come; … when it is its turn */
};

struct server {
    const struct pt_serve_spec *spec;
    struct door doors[PT_SERVE_LISTEN_MAX];
    unsigned door_count;
    struct entry entries[ENTRIES_MAX];
    struct running tests[TESTS_MAX];
    unsigned tests_max;
};

static bool allows(const struct server *s, const struct pt_addr *peer)
{
    for (unsigned i = 0; i < s->spec->allow_count; i++)
        if (pt_cidr_match(&s->spec->allow[i], peer))
            return true;
    return !s->spec->allow_count;
}

/* ---- tests */

static void end_test(struct running *t)
{
    close(t->channel);
    (void)!pt_child_wait(&t->process, 0, NULL);
    pt_child_end(&t->process, 0, NULL);
    *t = (struct running){.channel = -1};
}

struct birth {
    struct pt_compat_test test;
    const struct server *server;
};

static int live(void *ctx)
{
    struct birth *b = ctx;
    /* What belongs to others ends with them, not with us. */
    for (unsigned i = 0; i < b->server->door_count; i++) {
        close(b->server->doors[i].tcp);
        close(b->server->doors[i].udp);
    }
    for (unsigned i = 0; i < ENTRIES_MAX; i++)
        if (b->server->entries[i].fd >= 0 && b->server->entries[i].fd != b->test.control)
            close(b->server->entries[i].fd);
    for (unsigned i = 0; i < b->server->tests_max; i++)
        if (b->server->tests[i].process.pid && b->server->tests[i].channel >= 0)
            close(b->server->tests[i].channel);
    (void)!pt_signals_install(NULL);
    return pt_compat_iperf3_test(&b->test);
}

static void deny(int fd)
{
    int8_t denied = PT_IPERF3_ACCESS_DENIED;
    ssize_t n = send(fd, &denied, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)n;
    close(fd);
}

static void start_test(struct server *s, struct entry *en)
{
    struct running *t = NULL;
    int pair[2];
    char text[PT_ADDR_TEXT];
    struct pt_err e = {0};
    for (unsigned i = 0; i < s->tests_max && !t; i++)
        if (!s->tests[i].process.pid)
            t = &s->tests[i];
    int rc = t ? pt_fdpass_open(pair) : -EBUSY;
    if (rc < 0) {
        pt_log(PT_LOG_WARN, "iperf3 refused peer=%s error=\"%s\"", pt_addr_print(&en->peer, text),
               t ? pt_strerror(rc) : "as many tests run as are allowed");
        deny(en->fd);
        return;
    }
    struct birth b = {
        .test = {.control = en->fd, .channel = pair[1], .peer = en->peer, .spec = s->spec},
        .server = s};
    rc = pt_child_start(&t->process, live, &b, &e);
    close(pair[1]);
    if (rc < 0) {
        pt_log(PT_LOG_WARN, "iperf3 refused error=\"%s\"", e.text);
        close(pair[0]);
        deny(en->fd);
        *t = (struct running){.channel = -1};
        return;
    }
    close(en->fd);
    t->channel = pair[0];
    t->peer = en->peer;
    memcpy(t->cookie, en->cookie, sizeof(t->cookie));
}

/* The cookie is whole: it names a test, or begins one. */
static void sort_out(struct server *s, struct entry *en)
{
    struct pt_compat_word w = {.kind = PT_COMPAT_STREAM};
    for (unsigned i = 0; i < s->tests_max; i++) {
        struct running *t = &s->tests[i];
        if (!t->process.pid || memcmp(t->cookie, en->cookie, sizeof(t->cookie)) != 0)
            continue;
        if (pt_fdpass_send(t->channel, en->fd, &w, sizeof(w), 0) < 0)
            deny(en->fd);
        else
            close(en->fd);
        en->fd = -1;
        return;
    }
    start_test(s, en);
    en->fd = -1;
}

static bool same_ip(const struct pt_addr *a, const struct pt_addr *b)
{
    struct pt_addr x = *a, y = *b;
    pt_addr_set_port(&x, 1);
    pt_addr_set_port(&y, 1);
    return pt_addr_cmp(&x, &y) == 0;
}

/* Those that wait and whose address no other test opens streams from. */
static void give_turns(struct server *s)
{
    struct pt_compat_word w = {.kind = PT_COMPAT_GO};
    for (unsigned i = 0; i < s->tests_max; i++) {
        struct running *t = &s->tests[i];
        bool busy = false;
        if (!t->process.pid || !t->waits)
            continue;
        for (unsigned k = 0; k < s->tests_max; k++)
            busy |= s->tests[k].process.pid && s->tests[k].wants &&
                    same_ip(&s->tests[k].peer, &t->peer);
        if (busy || pt_fdpass_send(t->channel, -1, &w, sizeof(w), 0) < 0)
            continue;
        t->wants = t->waits;
        t->waits = 0;
    }
}

static void hear_test(struct running *t)
{
    struct pt_compat_word w;
    int fd = -1;
    ssize_t n = pt_fdpass_recv(t->channel, &fd, &w, sizeof(w), 0);
    if (fd >= 0)
        close(fd);
    if (n == 0 || (n < 0 && n != -ETIMEDOUT)) {
        end_test(t);
        return;
    }
    if (n != sizeof(w))
        return;
    w.text[sizeof(w.text) - 1] = '\0';
    if (w.kind == PT_COMPAT_WANTS_UDP)
        t->waits = w.streams;
    else if (w.kind == PT_COMPAT_LOG)
        pt_log(PT_LOG_INFO, "%s", w.text);
}

/* ---- connections */

static void accept_some(struct server *s, struct door *d)
{
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_storage from;
        socklen_t len = sizeof(from);
        struct entry *en = NULL;
        int fd = accept4(d->tcp, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
        if (fd < 0)
            return;
        for (unsigned k = 0; k < ENTRIES_MAX && !en; k++)
            if (s->entries[k].fd < 0)
                en = &s->entries[k];
        struct pt_addr peer;
        pt_addr_from(&peer, (const struct sockaddr *)&from, len);
        if (!en || !allows(s, &peer)) {
            close(fd);
            continue;
        }
        *en = (struct entry){.fd = fd, .peer = peer, .until = pt_clock_now() + COOKIE_NS};
    }
}

static void read_entry(struct server *s, struct entry *en)
{
    char text[PT_ADDR_TEXT];
    ssize_t n = recv(en->fd, en->cookie + en->have, sizeof(en->cookie) - en->have, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    en->have += n > 0 ? (size_t)n : 0;
    /* iperf3's own ends with a NUL; HTTP, TLS and the like do not. */
    bool whole = en->have == sizeof(en->cookie);
    if (n > 0 && !whole)
        return;
    if (n > 0 && !en->cookie[sizeof(en->cookie) - 1]) {
        sort_out(s, en);
        return;
    }
    if (n > 0)
        pt_log(PT_LOG_WARN, "iperf3 refused peer=%s error=\"it does not speak iperf3\"",
               pt_addr_print(&en->peer, text));
    close(en->fd);
    en->fd = -1;
}

/* ---- UDP streams */

static void hear_door(struct server *s, struct door *d)
{
    for (int i = 0; i < AT_ONCE; i++) {
        uint8_t bytes[8];
        struct pt_addr peer, local;
        struct pt_compat_word w = {.kind = PT_COMPAT_STREAM};
        ssize_t n = pt_udp_door_hear(d->udp, &d->at, bytes, sizeof(bytes), &peer, &local);
        if (n == -EAGAIN)
            return;
        if (n != sizeof(pt_iperf3_udp_hello) || !allows(s, &peer) || !pt_addr_port(&peer))
            continue;
        for (unsigned k = 0; k < s->tests_max; k++) {
            struct running *t = &s->tests[k];
            if (!t->process.pid || !t->wants || !same_ip(&t->peer, &peer))
                continue;
            int fd = pt_udp_door_flow(&local, &peer);
            if (fd >= 0 && pt_fdpass_send(t->channel, fd, &w, sizeof(w), 0) == 0)
                t->wants--;
            if (fd >= 0)
                close(fd);
            break;
        }
    }
}

/* ---- the loop */

static int open_doors(struct server *s, uint16_t port, struct pt_err *e)
{
    for (unsigned i = 0; i < s->spec->listen_count; i++) {
        struct door *d = &s->doors[s->door_count];
        d->at = s->spec->listen[i];
        if (pt_addr_family(&d->at) == AF_UNIX)
            continue;
        pt_addr_set_port(&d->at, port);
        struct pt_sockopts o = {.v6only = pt_addr_family(&d->at) == AF_INET6, .cc = "reno"};
        d->tcp = pt_sock_listen(&d->at, 0, &o, e);
        if (d->tcp < 0)
            return d->tcp;
        d->udp = pt_udp_door_open(&d->at, e);
        if (d->udp < 0)
            return d->udp;
        (void)!pt_sock_set_nonblock(d->tcp, true);
        s->door_count++;
    }
    return s->door_count ? 0
                         : pt_fail(e, -EINVAL, "--compat iperf3 needs an IP address to listen on");
}

static void turn(struct server *s)
{
    struct pollfd f[2 * PT_SERVE_LISTEN_MAX + ENTRIES_MAX + TESTS_MAX + 1];
    void *who[PT_COUNT(f)];
    nfds_t n = 0, doors, entries, tests;
    f[n++] = (struct pollfd){.fd = pt_signal_fd(), .events = POLLIN};
    for (unsigned i = 0; i < s->door_count; i++) {
        f[n++] = (struct pollfd){.fd = s->doors[i].tcp, .events = POLLIN};
        f[n++] = (struct pollfd){.fd = s->doors[i].udp, .events = POLLIN};
    }
    doors = n;
    for (unsigned i = 0; i < ENTRIES_MAX; i++)
        if (s->entries[i].fd >= 0) {
            who[n] = &s->entries[i];
            f[n++] = (struct pollfd){.fd = s->entries[i].fd, .events = POLLIN};
        }
    entries = n;
    for (unsigned i = 0; i < s->tests_max; i++)
        if (s->tests[i].process.pid) {
            who[n] = &s->tests[i];
            f[n++] = (struct pollfd){.fd = s->tests[i].channel, .events = POLLIN};
        }
    tests = n;
    if (poll(f, n, entries > doors ? 500 : -1) < 0)
        return;
    for (nfds_t i = entries; i < tests; i++)
        if (f[i].revents)
            hear_test(who[i]);
    give_turns(s);
    pt_ns now = pt_clock_now();
    for (nfds_t i = doors; i < entries; i++) {
        struct entry *en = who[i];
        if (f[i].revents)
            read_entry(s, en);
        else if (now > en->until) {
            close(en->fd);
            en->fd = -1;
        }
    }
    for (unsigned i = 0; i < s->door_count; i++) {
        if (f[1 + 2 * i].revents)
            accept_some(s, &s->doors[i]);
        if (f[2 + 2 * i].revents)
            hear_door(s, &s->doors[i]);
    }
}

static int serve(const struct pt_serve_spec *spec, uint16_t port, void (*ready)(void *ctx),
                 void *ctx, struct pt_err *e)
{
    struct server *s = calloc(1, sizeof(*s));
    if (!s)
        return pt_fail(e, -ENOMEM, "no memory");
    s->spec = spec;
    unsigned cap = spec->caps.max_sessions;
    s->tests_max = cap && cap < TESTS_MAX ? cap : TESTS_MAX;
    for (unsigned i = 0; i < ENTRIES_MAX; i++)
        s->entries[i].fd = -1;
    for (unsigned i = 0; i < TESTS_MAX; i++)
        s->tests[i].channel = -1;
    (void)!pt_fd_limit_raise();
    int rc = open_doors(s, port, e);
    if (rc == 0)
        ready(ctx);
    while (rc == 0 && !pt_signal_seen())
        turn(s);
    for (unsigned i = 0; i < s->tests_max; i++)
        if (s->tests[i].process.pid) {
            close(s->tests[i].channel);
            pt_child_end(&s->tests[i].process, PT_S, NULL);
        }
    for (unsigned i = 0; i < s->door_count; i++) {
        close(s->doors[i].tcp);
        close(s->doors[i].udp);
    }
    free(s);
    return rc;
}

const struct pt_compat pt_compat_iperf3 = {
    .name = "iperf3", .port = PT_IPERF3_PORT, .serve = serve};
