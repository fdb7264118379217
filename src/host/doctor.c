/* doctor.c: see doctor.h: the table, and how its kernel settings are judged.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/doctor_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORTS_LOW  1024u
#define PORTS_HIGH 65535u

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

/* Both ends may be here, each with a descriptor per connection. */
static uint64_t want_descriptors(uint64_t n)
{
    return n + 64;
}

static uint64_t want_files(uint64_t n)
{
    return 2 * n + 8192;
}

static uint64_t want_backlog(uint64_t n)
{
    return clamp(n, 1024, 65535);
}

static uint64_t want_tracked(uint64_t n)
{
    return 2 * n + 1024;
}

static uint64_t want_4mib(uint64_t n)
{
    (void)n;
    return 4 << 20;
}

static uint64_t want_netdev_backlog(uint64_t n)
{
    (void)n;
    return 10000;
}

static void look_ports(struct pt_doctor *d, const struct pt_doctor_check *c);
static void look_conntrack(struct pt_doctor *d, const struct pt_doctor_check *c);
static void look_congestion(struct pt_doctor *d, const struct pt_doctor_check *c);

/* The sentences are in sink/say.c, too (test/unit/test_doctor.c holds them to it). */
static const struct pt_doctor_check table[] = {
    {"nofile", "Each connection takes a descriptor of its process.", want_descriptors, 0,
     pt_doctor_look_limits},
    {"memlock", "AF_XDP and BPF lock memory; without privileges this is their limit.", NULL, 0,
     pt_doctor_look_limits},
    {"fs.nr_open", "No process can have more descriptors than this.", want_descriptors, 0, NULL},
    {"fs.file-max", "All processes together cannot open more files than this.", want_files, 0,
     NULL},
    {"net.core.somaxconn", "A shorter accept queue drops connections that arrive at once.",
     want_backlog, 0, NULL},
    {"net.ipv4.tcp_max_syn_backlog", "Half-open connections beyond it are dropped or get cookies.",
     want_backlog, 0, NULL},
    {"net.ipv4.ip_local_port_range",
     "Each connection to one address takes a local port; beyond 64512 more addresses are needed.",
     NULL, 0, look_ports},
    {"net.core.rmem_max", "A small receive buffer loses datagrams in bursts.", want_4mib, 0, NULL},
    {"net.core.wmem_max", "A small send buffer holds a sender back.", want_4mib, 0, NULL},
    {"net.ipv4.tcp_rmem", "The receive window cannot grow beyond the third value.", want_4mib, 2,
     NULL},
    {"net.ipv4.tcp_wmem", "What is in flight cannot grow beyond the third value.", want_4mib, 2,
     NULL},
    {"net.core.netdev_max_backlog", "Packets beyond it are dropped before a protocol sees them.",
     want_netdev_backlog, 0, NULL},
    {"net.netfilter.nf_conntrack_max",
     "Connection tracking costs CPU, and drops new connections when its table is full.",
     want_tracked, 0, look_conntrack},
    {"net.ipv4.tcp_congestion_control",
     "bbr paces, also on loopback, where it measures its own timers.", NULL, 0, look_congestion},
    {"CPU governor", "A CPU that changes its clock makes figures that do not repeat.", NULL, 0,
     pt_doctor_look_governor},
    {"IRQ and RPS", "One CPU that takes all packets of an interface is the first to be full.", NULL,
     0, pt_doctor_look_spread},
    {"offloads", "Without them the kernel handles each packet by itself, which takes CPU.", NULL, 0,
     pt_doctor_look_offloads},
    {"swap in use", "A page that comes back from swap is a pause of milliseconds.", NULL, 0,
     pt_doctor_look_swap},
    {"steal", "Time that the hypervisor takes shows as latency and lost throughput.", NULL, 0,
     pt_doctor_look_steal},
    {"clock source", "Reading a slow clock costs a system call for each time stamp.", NULL, 0,
     pt_doctor_look_clock},
    {"io_uring", "Without it pitot uses epoll, which costs more system calls.", NULL, 0,
     pt_doctor_look_uring},
    {"load per CPU", "What else runs here takes CPU from the measurement.", NULL, 0,
     pt_doctor_look_load},
};

int pt_doctor_read(const struct pt_doctor *d, const char *path, char *out, size_t cap)
{
    char full[512];
    out[0] = 0;
    if ((size_t)snprintf(full, sizeof(full), "%s/%s", d->root, path) >= sizeof(full))
        return -ENAMETOOLONG;
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t have = 0;
    int rc = 0;
    for (ssize_t n = 1; n > 0;) {
        n = have < cap ? read(fd, out + have, cap - have) : 0;
        rc = n < 0 ? -errno : rc;
        have += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (rc == 0 && have == cap)
        rc = -EMSGSIZE;
    out[rc == 0 ? have : 0] = 0;
    if (rc == 0 && have && out[have - 1] == '\n')
        out[have - 1] = 0;
    return rc;
}

const char *pt_doctor_path(char *out, size_t cap, const char *name)
{
    size_t skip = (size_t)snprintf(out, cap, "proc/sys/%s", name) - strlen(name);
    for (char *p = out + skip; *p; p++)
        *p = *p == '.' ? '/' : *p;
    return out;
}

bool pt_doctor_may_set(const char *name)
{
    for (size_t i = 0; i < PT_COUNT(table); i++)
        if (!strcmp(table[i].name, name))
            return strchr(name, '.') != NULL;
    return false;
}

struct pt_doctor_line *pt_doctor_add(struct pt_doctor *d, const char *name, const char *why)
{
    if (d->n < PT_DOCTOR_LINES)
        d->n++;
    struct pt_doctor_line *l = &d->line[d->n - 1];
    *l = (struct pt_doctor_line){.why = why, .state = PT_DOCTOR_UNKNOWN};
    snprintf(l->name, sizeof(l->name), "%s", name);
    return l;
}

unsigned pt_doctor_cpus(const struct pt_doctor *d)
{
    static char text[(size_t)256 << 10];
    unsigned n = 0;
    if (pt_doctor_read(d, "proc/stat", text, sizeof(text)) < 0)
        return 0;
    for (const char *p = strstr(text, "\ncpu"); p; p = strstr(p + 1, "\ncpu"))
        n++;
    return n;
}

/* Reads the setting `name` into the line: numbers, at most three. How many, or 0. */
static unsigned read_setting(const struct pt_doctor *d, struct pt_doctor_line *l, uint64_t v[3])
{
    char path[128];
    unsigned n = 0;
    if (pt_doctor_read(d, pt_doctor_path(path, sizeof(path), l->name), l->current,
                       sizeof(l->current)) < 0)
        return 0;
    for (char *p = l->current, *end; n < 3; p = end) {
        errno = 0;
        v[n] = strtoull(p, &end, 10);
        if (end == p || errno)
            break;
        n++;
    }
    return n;
}

static void judged(struct pt_doctor_line *l, bool ok)
{
    l->state = ok ? PT_DOCTOR_OK : PT_DOCTOR_ATTENTION;
    if (ok)
        l->set[0] = 0;
    else if (l->set[0])
        snprintf(l->command, sizeof(l->command), "sysctl -w %s='%s'", l->name, l->set);
}

static void look_setting(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    uint64_t v[3], want = c->want(d->connections);
    snprintf(l->wanted, sizeof(l->wanted), ">= %" PRIu64, want);
    unsigned n = read_setting(d, l, v);
    if (n <= c->column)
        return;
    bool ok = v[c->column] >= want;
    v[c->column] = want;
    size_t at = 0;
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(l->set + at, sizeof(l->set) - at, "%s%" PRIu64, i ? "\t" : "", v[i]);
    judged(l, ok);
}

static void look_ports(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    uint64_t v[3], want = clamp(d->connections, 16384, PORTS_HIGH - PORTS_LOW + 1);
    snprintf(l->wanted, sizeof(l->wanted), ">= %" PRIu64 " ports", want);
    if (read_setting(d, l, v) != 2)
        return;
    snprintf(l->set, sizeof(l->set), "%u\t%u", PORTS_LOW, PORTS_HIGH);
    judged(l, v[1] >= v[0] && v[1] - v[0] + 1 >= want);
}

static void look_conntrack(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    char path[128], text[64];
    if (pt_doctor_read(d, pt_doctor_path(path, sizeof(path), c->name), text, sizeof(text)) !=
        -ENOENT) {
        look_setting(d, c);
        return;
    }
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    /* A kernel without /proc/sys/net says nothing about its modules. */
    if (pt_doctor_read(d, "proc/sys/net/ipv4/ip_local_port_range", text, sizeof(text)) == 0) {
        snprintf(l->current, sizeof(l->current), "not loaded");
        l->state = PT_DOCTOR_OK;
    }
    snprintf(l->wanted, sizeof(l->wanted), ">= %" PRIu64, c->want(d->connections));
}

static void look_congestion(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    char path[128], offered[256];
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    snprintf(l->wanted, sizeof(l->wanted), "cubic");
    if (pt_doctor_read(d, pt_doctor_path(path, sizeof(path), c->name), l->current,
                       sizeof(l->current)) < 0 ||
        !l->current[0])
        return;
    bool ok = strncmp(l->current, "bbr", 3) != 0;
    if (ok)
        snprintf(l->wanted, sizeof(l->wanted), "not bbr");
    else if (pt_doctor_read(d, "proc/sys/net/ipv4/tcp_available_congestion_control", offered,
                            sizeof(offered)) == 0 &&
             strstr(offered, "cubic"))
        snprintf(l->set, sizeof(l->set), "cubic");
    judged(l, ok);
}

void pt_doctor_look(struct pt_doctor *d)
{
    d->n = 0;
    for (size_t i = 0; i < PT_COUNT(table); i++)
        (table[i].look ? table[i].look : look_setting)(d, &table[i]);
}

unsigned pt_doctor_count(const struct pt_doctor *d, enum pt_doctor_state state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < d->n; i++)
        n += d->line[i].state == state;
    return n;
}

const char *pt_doctor_state_name(enum pt_doctor_state state)
{
    static const char *const names[] = {"ok", "attention", "unknown"};
    return names[state];
}
