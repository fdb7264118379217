/* topology_peer.c: drives the topologies of src/wan for test_topology.py.
 *
 *     topology_peer open  KIND N   opens and closes
 *     topology_peer reach KIND N   every host echoes over TCP with every other, on each family
 *     topology_peer hold  KIND N   a worker in each host, and one grandchild in the first that
 * outlives its parent; waits for SIGINT or SIGTERM, closes topology_peer sweep          prints how
 * many dead topologies went
 *
 * KIND: any (pt_topo_open), bridge, routes, loopback. Prints `key value` lines; status 1 and the
 * sentence on stderr after a failure.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"
#include "os/proc.h"
#include "os/signal.h"
#include "wan/owner.h"
#include "wan/topology_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PORT = 27411, LIMIT_S = 10 };

static struct pt_err err;
static struct pt_topo topo;

struct worker {
    unsigned host;
    int ready; /* a pipe's end: a byte says that all listen */
};

static int open_topology(const char *kind, unsigned n)
{
    static char text[300][16];
    const char *names[300];
    for (unsigned i = 0; i < n && i < 300; i++) {
        snprintf(text[i], sizeof(text[i]), "h%u", i);
        names[i] = text[i];
    }
    if (strcmp(kind, "any") == 0)
        return pt_topo_open(&topo, names, n, &err);
    return pt_topo_open_as(&topo, names, n,
                           strcmp(kind, "bridge") == 0   ? PT_TOPO_BRIDGE
                           : strcmp(kind, "routes") == 0 ? PT_TOPO_ROUTES
                                                         : PT_TOPO_LOOPBACK,
                           &err);
}

static void describe(void)
{
    char four[PT_ADDR_TEXT], six[PT_ADDR_TEXT];
    printf("namespaces %d\ntext %s\nmark %s\n", topo.namespaces, topo.text,
           topo.lock ? topo.lock->mark : "-");
    for (unsigned i = 0; i < topo.n; i++)
        printf("host %s %s %s\n", topo.host[i].name, pt_addr_print_ip(&topo.host[i].v4, four),
               pt_addr_print_ip(&topo.host[i].v6, six));
    fflush(stdout);
}

/* A loopback ::1 is everybody's, so the port tells the hosts apart. */
static struct pt_addr address(unsigned host, int family)
{
    struct pt_addr a = family == AF_INET ? topo.host[host].v4 : topo.host[host].v6;
    if (a.len)
        pt_addr_set_port(&a, (uint16_t)(PORT + host));
    return a;
}

static int listen_on(unsigned host, int family)
{
    const int on = 1;
    struct pt_addr a = address(host, family);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, &a.sa, a.len) < 0 || listen(fd, 300) < 0)
        return -errno;
    return fd;
}

static int serve(void *ctx)
{
    const struct worker *w = ctx;
    alarm(LIMIT_S);
    if (pt_topo_enter(&topo, w->host, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct pollfd p[2] = {{.fd = listen_on(w->host, AF_INET), .events = POLLIN},
                          {.fd = -1, .events = POLLIN}};
    if (topo.host[w->host].v6.len)
        p[1].fd = listen_on(w->host, AF_INET6);
    if (p[0].fd < 0 || (topo.host[w->host].v6.len && p[1].fd < 0) || write(w->ready, "r", 1) != 1)
        return 1;
    for (;;) {
        if (poll(p, 2, -1) < 0)
            return 1;
        for (int i = 0; i < 2; i++) {
            char byte;
            int fd = p[i].revents ? accept(p[i].fd, NULL, NULL) : -1;
            if (fd >= 0 && read(fd, &byte, 1) == 1)
                (void)!write(fd, &byte, 1);
            if (fd >= 0)
                close(fd);
        }
    }
}

/* Connects once, without retries: a topology that was opened works at once. */
static int echo(unsigned to, int family)
{
    struct pt_addr a = address(to, family);
    char sent = (char)('a' + to % 26), got = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int code = fd < 0 || connect(fd, &a.sa, a.len) < 0 || write(fd, &sent, 1) != 1 ||
                       read(fd, &got, 1) != 1 || got != sent
                   ? 1
                   : 0;
    if (code)
        fprintf(stderr, "host %u, family %d: %s\n", to, family, strerror(errno));
    if (fd >= 0)
        close(fd);
    return code;
}

static int visit_all(void *ctx)
{
    const struct worker *w = ctx;
    int failed = 0;
    alarm(LIMIT_S);
    if (pt_topo_enter(&topo, w->host, &err) < 0)
        return 1;
    for (unsigned to = 0; to < topo.n; to++) {
        if (to == w->host)
            continue;
        failed += echo(to, AF_INET);
        if (topo.host[to].v6.len)
            failed += echo(to, AF_INET6);
    }
    return failed ? 1 : 0;
}

static int reach(void)
{
    struct pt_child *server = calloc(topo.n, sizeof(*server));
    int pipe_ends[2], failed = 0;
    if (!server || pipe(pipe_ends) < 0)
        return 1;
    struct worker w = {.ready = pipe_ends[1]};
    for (w.host = 0; w.host < topo.n; w.host++)
        failed |= pt_child_start(&server[w.host], serve, &w, &err) < 0;
    close(pipe_ends[1]);
    char byte;
    for (unsigned i = 0; i < topo.n; i++)
        failed |= read(pipe_ends[0], &byte, 1) != 1;
    for (w.host = 0; !failed && w.host < topo.n; w.host++) {
        struct pt_child c;
        struct pt_exit x = {0};
        failed |= pt_child_start(&c, visit_all, &w, &err) < 0 ||
                  pt_child_wait(&c, PT_NS_MAX, &x) < 0 || x.code || x.signal;
    }
    for (unsigned i = 0; i < topo.n; i++)
        pt_child_end(&server[i], 0, NULL);
    free(server);
    printf("reached %d\n", !failed);
    return failed;
}

static int stay(void *ctx)
{
    const struct worker *w = ctx;
    if (pt_topo_enter(&topo, w->host, &err) < 0)
        return 1;
    printf("worker %d\n", (int)getpid());
    fflush(stdout);
    pid_t pid = w->host == 0 ? fork() : -1;
    if (pid == 0) { /* what a careless program leaves: in no parent's hand */
        prctl(PR_SET_PDEATHSIG, 0);
        printf("stray %d\n", (int)getpid());
        fflush(stdout);
        signal(SIGTERM, SIG_IGN);
        alarm(60);
    }
    for (;;)
        pause();
}

static int hold(void)
{
    struct pt_child *child = calloc(topo.n, sizeof(*child));
    struct worker w = {0};
    if (!child || pt_signals_install(&err) < 0)
        return 1;
    int failed = 0;
    for (w.host = 0; w.host < topo.n; w.host++)
        failed |= pt_child_start(&child[w.host], stay, &w, &err) < 0;
    printf("holding %d\n", !failed);
    fflush(stdout);
    struct pollfd p = {.fd = pt_signal_fd(), .events = POLLIN};
    while (!failed && !pt_signal_seen())
        (void)!poll(&p, 1, -1);
    for (unsigned i = 0; i < topo.n; i++)
        pt_child_end(&child[i], 0, NULL);
    free(child);
    return failed;
}

int main(int argc, char **argv)
{
    int code = 2;
    if (argc == 2 && strcmp(argv[1], "sweep") == 0) {
        code = pt_topo_sweep(&err);
        printf("swept %d\n", code);
    } else if (argc == 4) {
        code = open_topology(argv[2], (unsigned)strtoul(argv[3], NULL, 10));
        if (code == 0) {
            describe();
            if (strcmp(argv[1], "reach") == 0)
                code = reach();
            else if (strcmp(argv[1], "hold") == 0)
                code = hold();
            pt_topo_close(&topo);
            pt_topo_close(&topo);
        }
    }
    if (code < 0)
        fprintf(stderr, "%d %s\n", code, err.text);
    return code < 0 ? 1 : argc == 2 ? 0 : code;
}
