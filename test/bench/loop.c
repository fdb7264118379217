/* loop.c: what the event loop adds to the bare system calls, as ratios of interleaved short runs.
 *
 * Ping-pong: one end is always a bare process (on CPU 1), the other (CPU 0) is bare, or the loop
 * over each back end; both spin or both block. Bulk and flood: a bare sender, the receiver is
 * varied. Each figure is the median over rounds of a run's own median (ping-pong) or mean, so that
 * what else the machine does weighs little; the quickest round is printed beside it.
 *
 *     bench_loop [ROUNDS [RUN_MS [ROW]]]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/loop.h"
#include "os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE        14
#define BLOCK       ((size_t)1 << 20)
#define SAMPLES_MAX 1000000
#define ROUNDS_MAX  101

enum how { BARE, EPOLL, URING, HOWS };
static const char *const how_names[] = {"bare", "epoll", "io_uring"};

struct samples {
    uint32_t *ns;
    size_t count;
};
static struct samples samples;

static void die(const char *what)
{
    fprintf(stderr, "bench_loop: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0 && cpu == 0)
        die("sched_setaffinity");
}

static void pair(int type, int fds[2])
{
    struct sockaddr_in a[2];
    int l[2], on = 1;
    for (int i = 0; i < 2; i++) {
        socklen_t len = sizeof(a[i]);
        a[i] =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        l[i] = socket(AF_INET, type | SOCK_CLOEXEC, 0);
        if (l[i] < 0 || bind(l[i], (struct sockaddr *)&a[i], len) < 0 ||
            getsockname(l[i], (struct sockaddr *)&a[i], &len) < 0)
            die("socket");
    }
    if (type == SOCK_DGRAM) {
        for (int i = 0; i < 2; i++)
            if (connect(l[i], (struct sockaddr *)&a[1 - i], sizeof(a[0])) < 0)
                die("connect");
        memcpy(fds, l, sizeof(l));
        return;
    }
    if (listen(l[1], 1) < 0 || connect(l[0], (struct sockaddr *)&a[1], sizeof(a[1])) < 0)
        die("connect");
    fds[0] = l[0];
    fds[1] = accept(l[1], NULL, NULL);
    close(l[1]);
    for (int i = 0; i < 2; i++) {
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(fds[i], IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    }
}

/* ---- ping-pong */

/* Receives one message, spinning or blocking; false at the end. */
static bool bare_receive(int fd, char *buf, int flags)
{
    ssize_t n;
    do
        n = recv(fd, buf, SIZE, flags);
    while (n < 0 && errno == EAGAIN);
    return n == SIZE;
}

static void echo(int fd, int flags)
{
    char buf[SIZE];
    while (bare_receive(fd, buf, flags) && send(fd, buf, SIZE, MSG_NOSIGNAL) == SIZE)
        continue;
}

static void record(pt_ns ns)
{
    if (samples.count < SAMPLES_MAX)
        samples.ns[samples.count++] = (uint32_t)ns;
}

static void bare_client(int fd, int flags, pt_ns until)
{
    char buf[SIZE] = "x";
    pt_ns sent = pt_clock_now();
    while (sent < until) {
        if (send(fd, buf, SIZE, 0) != SIZE || !bare_receive(fd, buf, flags))
            die("bare ping-pong");
        pt_ns now = pt_clock_now();
        record(now - sent);
        sent = now;
    }
}

struct client {
    struct pt_loop *loop;
    struct pt_recv recv;
    struct pt_op send;
    char buf[SIZE];
    pt_ns sent, until;
    bool done;
};

static void sent_fn(struct pt_op *op, int res, bool more)
{
    (void)op;
    (void)more;
    if (res < 0) {
        errno = -res;
        die("send");
    }
}

static void ping(struct client *c)
{
    if (pt_op_send(c->loop, &c->send, c->recv.fd, c->buf, SIZE) < 0)
        die("pt_op_send");
}

static void pong(struct pt_recv *r, uint8_t *buf, ssize_t n, const struct pt_recv_meta *meta)
{
    struct client *c = r->ctx;
    (void)buf;
    (void)meta;
    if (n != SIZE)
        die("pong");
    pt_ns now = pt_loop_now(c->loop);
    record(now - c->sent);
    c->sent = now;
    if (now >= c->until)
        c->done = true;
    else
        ping(c);
}

static struct pt_loop *loop_new(enum how how, enum pt_wait wait)
{
    const struct pt_loop_spec spec = {.backend = how == URING ? PT_BACKEND_URING : PT_BACKEND_EPOLL,
                                      .wait = wait};
    struct pt_loop *l;
    struct pt_err e;
    if (pt_loop_new(&l, &spec, &e) < 0) {
        fprintf(stderr, "bench_loop: %s\n", e.text);
        exit(1);
    }
    return l;
}

/* A timer far away and a deadline, as a worker has them. */
static void never(struct pt_timer *t, pt_ns due)
{
    (void)t;
    (void)due;
}

static void loop_client(enum how how, enum pt_wait wait, int type, int fd, pt_ns until)
{
    struct client c = {.loop = loop_new(how, wait), .until = until};
    struct pt_timer t = {.fn = never};
    c.send = (struct pt_op){.fn = sent_fn, .ctx = &c};
    c.recv = (struct pt_recv){.fd = fd,
                              .kind = type == SOCK_DGRAM ? PT_RECV_DGRAM : PT_RECV_STREAM,
                              .fn = pong,
                              .ctx = &c};
    if (pt_recv_start(c.loop, &c.recv) < 0 || pt_timer_set(c.loop, &t, until + 10 * PT_S) < 0)
        die("start");
    c.sent = pt_clock_now();
    ping(&c);
    while (!c.done)
        if (pt_loop_step(c.loop, until + 10 * PT_S) < 0)
            die("step");
    pt_loop_free(c.loop);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

static pid_t fork_to(int cpu)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(cpu);
    }
    return pid;
}

/* Nanoseconds per round trip: the median of one run. */
static double ping_pong(int type, enum pt_wait wait, enum how how, pt_ns run)
{
    int fds[2], flags = wait == PT_WAIT_SPIN ? MSG_DONTWAIT : 0;
    pair(type, fds);
    pid_t pid = fork_to(1);
    if (pid == 0) {
        close(fds[0]);
        echo(fds[1], flags);
        _exit(0);
    }
    close(fds[1]);
    samples.count = 0;
    pt_ns until = pt_clock_now() + run;
    if (how == BARE)
        bare_client(fds[0], flags, until);
    else
        loop_client(how, wait, type, fds[0], until);
    close(fds[0]);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    qsort(samples.ns, samples.count, sizeof(*samples.ns), by_value);
    return samples.ns[samples.count / 2];
}

/* ---- bulk and flood: nanoseconds per KiB, or per datagram */

struct drain {
    struct pt_loop *loop;
    struct pt_recv recv;
    uint64_t units;
};

static void drained(struct pt_recv *r, uint8_t *buf, ssize_t n, const struct pt_recv_meta *meta)
{
    struct drain *d = r->ctx;
    (void)buf;
    (void)meta;
    if (n > 0)
        d->units += r->kind == PT_RECV_DGRAM ? 1 : (uint64_t)n;
}

static uint64_t bare_drain(int fd, uint8_t *block, bool stream, pt_ns until)
{
    uint64_t units = 0;
    while (pt_clock_now() < until) {
        for (int i = 0; i < 32; i++) {
            ssize_t n = recv(fd, block, stream ? BLOCK : 2048, 0);
            units += n > 0 ? stream ? (uint64_t)n : 1 : 0;
        }
    }
    return units;
}

static double drain(int type, enum how how, pt_ns run)
{
    const bool stream = type == SOCK_STREAM;
    static uint8_t *block;
    int fds[2];
    if (!block && !(block = calloc(1, BLOCK)))
        die("calloc");
    pair(type, fds);
    pid_t pid = fork_to(1);
    if (pid == 0) {
        close(fds[0]);
        for (;;)
            if (send(fds[1], block, stream ? BLOCK : SIZE, 0) < 0 && errno != ECONNREFUSED)
                _exit(0);
    }
    close(fds[1]);
    struct drain d = {0};
    pt_ns start = pt_clock_now(), until = start + run;
    if (how == BARE) {
        d.units = bare_drain(fds[0], block, stream, until);
    } else {
        d.loop = loop_new(how, PT_WAIT_BLOCK);
        d.recv = (struct pt_recv){.fd = fds[0],
                                  .kind = stream ? PT_RECV_STREAM : PT_RECV_DGRAM,
                                  .into = stream ? block : NULL,
                                  .into_size = stream ? BLOCK : 0,
                                  .fn = drained,
                                  .ctx = &d};
        if (pt_recv_start(d.loop, &d.recv) < 0)
            die("start");
        while (pt_loop_now(d.loop) < until)
            if (pt_loop_step(d.loop, until + PT_S) < 0)
                die("step");
        pt_loop_free(d.loop);
    }
    pt_ns took = pt_clock_now() - start;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(fds[0]);
    return (double)took * (stream ? 1024.0 : 1.0) / (double)(d.units ? d.units : 1);
}

/* The sender is varied, the receiver is bare: nanoseconds per KiB. */
struct pump {
    struct pt_loop *loop;
    struct pt_op op;
    const uint8_t *block;
    int fd;
    uint64_t units;
    bool idle;
};

static void pumped(struct pt_op *op, int res, bool more)
{
    struct pump *p = op->ctx;
    (void)more;
    if (res < 0)
        die("send");
    p->units += (uint64_t)res;
    p->idle = true;
}

static double fill(enum how how, pt_ns run)
{
    static uint8_t *block;
    int fds[2];
    if (!block && !(block = calloc(1, BLOCK)))
        die("calloc");
    pair(SOCK_STREAM, fds);
    pid_t pid = fork_to(1);
    if (pid == 0) {
        close(fds[0]);
        while (recv(fds[1], block, BLOCK, 0) > 0)
            continue;
        _exit(0);
    }
    close(fds[1]);
    struct pump p = {.block = block, .fd = fds[0], .idle = true};
    struct drain idle = {0};
    pt_ns start = pt_clock_now(), until = start + run;
    if (how == BARE) {
        while (pt_clock_now() < until) {
            ssize_t n = send(p.fd, block, BLOCK, 0);
            p.units += n > 0 ? (uint64_t)n : 0;
        }
    } else {
        p.loop = loop_new(how, PT_WAIT_BLOCK);
        p.op = (struct pt_op){.fn = pumped, .ctx = &p};
        /* A worker always listens for the end, too. */
        idle.recv = (struct pt_recv){.fd = p.fd, .fn = drained, .ctx = &idle};
        if (pt_recv_start(p.loop, &idle.recv) < 0)
            die("start");
        while (pt_loop_touch(p.loop) < until) {
            if (p.idle) {
                p.idle = false;
                if (pt_op_send(p.loop, &p.op, p.fd, block, BLOCK) < 0)
                    die("pt_op_send");
            } else if (pt_loop_step(p.loop, until) < 0) {
                die("step");
            }
        }
        pt_loop_free(p.loop);
    }
    pt_ns took = pt_clock_now() - start;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(fds[0]);
    return (double)took * 1024.0 / (double)(p.units ? p.units : 1);
}

/* ---- many connections: CPU nanoseconds of an echo server per request */

#define FLOWS 100

/* Keeps one request outstanding on each connection. */
static void many_clients(const int *fds)
{
    struct epoll_event evs[FLOWS];
    int ep = epoll_create1(EPOLL_CLOEXEC);
    char buf[SIZE] = "x";
    for (int i = 0; i < FLOWS; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fds[i]};
        if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev) < 0 || send(fds[i], buf, SIZE, 0) != SIZE)
            die("clients");
    }
    for (;;) {
        int n = epoll_wait(ep, evs, FLOWS, -1);
        for (int i = 0; i < n; i++)
            if (recv(evs[i].data.fd, buf, SIZE, 0) != SIZE ||
                send(evs[i].data.fd, buf, SIZE, MSG_NOSIGNAL) != SIZE)
                _exit(0);
    }
}

static uint64_t bare_server(const int *fds, pt_ns until)
{
    struct epoll_event evs[FLOWS];
    int ep = epoll_create1(EPOLL_CLOEXEC);
    char buf[4096];
    uint64_t requests = 0;
    for (int i = 0; i < FLOWS; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fds[i]};
        if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev) < 0)
            die("epoll_ctl");
    }
    while (pt_clock_now() < until) {
        int n = epoll_wait(ep, evs, FLOWS, 50);
        for (int i = 0; i < n; i++) {
            ssize_t got = recv(evs[i].data.fd, buf, sizeof(buf), MSG_DONTWAIT);
            if (got <= 0 || send(evs[i].data.fd, buf, (size_t)got, MSG_DONTWAIT) != got)
                die("bare server");
            requests++;
        }
    }
    close(ep);
    return requests;
}

struct server_flow {
    struct pt_loop *loop;
    struct pt_recv recv;
    struct pt_op send;
    uint8_t reply[SIZE];
    uint64_t *requests;
};

static void request(struct pt_recv *r, uint8_t *buf, ssize_t n, const struct pt_recv_meta *meta)
{
    struct server_flow *f = r->ctx;
    (void)meta;
    if (n != SIZE)
        die("request");
    memcpy(f->reply, buf, SIZE);
    ++*f->requests;
    if (pt_op_send(f->loop, &f->send, r->fd, f->reply, SIZE) < 0)
        die("pt_op_send");
}

static uint64_t loop_server(enum how how, const int *fds, pt_ns until)
{
    static struct server_flow flows[FLOWS];
    uint64_t requests = 0;
    struct pt_loop *l = loop_new(how, PT_WAIT_BLOCK);
    for (int i = 0; i < FLOWS; i++) {
        struct server_flow *f = &flows[i];
        *f = (struct server_flow){.loop = l, .requests = &requests};
        f->recv = (struct pt_recv){.fd = fds[i], .fn = request, .ctx = f};
        f->send = (struct pt_op){.fn = sent_fn, .ctx = f};
        if (pt_recv_start(l, &f->recv) < 0)
            die("start");
    }
    while (pt_loop_now(l) < until)
        if (pt_loop_step(l, until) < 0)
            die("step");
    pt_loop_free(l);
    return requests;
}

static double serve_many(enum how how, pt_ns run)
{
    int near[FLOWS], far[FLOWS];
    for (int i = 0; i < FLOWS; i++) {
        int fds[2];
        pair(SOCK_STREAM, fds);
        near[i] = fds[0];
        far[i] = fds[1];
    }
    pid_t pid = fork_to(1);
    if (pid == 0)
        many_clients(far);
    pt_ns until = pt_clock_now() + run, cpu = pt_clock_cpu();
    uint64_t requests = how == BARE ? bare_server(near, until) : loop_server(how, near, until);
    cpu = pt_clock_cpu() - cpu;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < FLOWS; i++) {
        close(near[i]);
        close(far[i]);
    }
    return (double)cpu / (double)(requests ? requests : 1);
}

/* ---- a table */

enum what {
    UDP_SPIN,
    TCP_SPIN,
    UDP_BLOCK,
    TCP_BLOCK,
    TCP_RECEIVE,
    TCP_SEND,
    UDP_RECEIVE,
    TCP_SERVE,
    WHATS
};
static const char *const what_names[] = {"ping-pong UDP spin, ns",  "ping-pong TCP spin, ns",
                                         "ping-pong UDP block, ns", "ping-pong TCP block, ns",
                                         "TCP receive, ns/KiB",     "TCP send, ns/KiB",
                                         "UDP receive, ns each",    "100 TCP echo, CPU ns"};

static double run_once(enum what what, enum how how, pt_ns run)
{
    switch (what) {
    case UDP_SPIN:
        return ping_pong(SOCK_DGRAM, PT_WAIT_SPIN, how, run);
    case TCP_SPIN:
        return ping_pong(SOCK_STREAM, PT_WAIT_SPIN, how, run);
    case UDP_BLOCK:
        return ping_pong(SOCK_DGRAM, PT_WAIT_BLOCK, how, run);
    case TCP_BLOCK:
        return ping_pong(SOCK_STREAM, PT_WAIT_BLOCK, how, run);
    case TCP_RECEIVE:
        return drain(SOCK_STREAM, how, run);
    case TCP_SEND:
        return fill(how, run);
    case TCP_SERVE:
        return serve_many(how, run);
    default:
        return drain(SOCK_DGRAM, how, run);
    }
}

static int by_double(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

static void compare(enum what what, unsigned rounds, pt_ns run)
{
    static double t[HOWS][ROUNDS_MAX], ratio[HOWS][ROUNDS_MAX];
    for (unsigned r = 0; r < rounds; r++) {
        for (enum how how = 0; how < HOWS; how++) {
            t[how][r] = run_once(what, how, run);
            ratio[how][r] = t[how][r] / t[BARE][r];
        }
    }
    printf("%-24s", what_names[what]);
    for (enum how how = 0; how < HOWS; how++) {
        qsort(t[how], rounds, sizeof(double), by_double);
        qsort(ratio[how], rounds, sizeof(double), by_double);
        printf(" %9.*f %9.*f", t[how][0] < 1000 ? 1 : 0, t[how][0], t[how][0] < 1000 ? 1 : 0,
               t[how][rounds / 2]);
        if (how != BARE)
            printf("  x%.3f x%.3f", t[how][0] / t[BARE][0], ratio[how][rounds / 2]);
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 9;
    pt_ns run = (argc > 2 ? atoi(argv[2]) : 60) * PT_MS;
    if (rounds < 1 || rounds > ROUNDS_MAX || run < PT_MS || run > 10 * PT_S) {
        fprintf(stderr, "usage: bench_loop [ROUNDS [RUN_MS [ROW]]]\n");
        return 2;
    }
    samples.ns = calloc(SAMPLES_MAX, sizeof(*samples.ns));
    if (!samples.ns)
        die("calloc");
    signal(SIGPIPE, SIG_IGN);
    pin(0);
    printf("%-24s", "best, median; ratios");
    for (enum how how = 0; how < HOWS; how++)
        printf(" %9s %9s%s", how_names[how], "", how == BARE ? "" : "               ");
    printf("\n");
    for (enum what what = 0; what < WHATS; what++)
        if (argc < 4 || atoi(argv[3]) == (int)what)
            compare(what, rounds, run);
    return 0;
}
