/* sample.c: see sample.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/sample.h"

#include "os/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_CEILING                                                                               \
    ((size_t)256 << 10) /* 1,024 CPUs and the interrupt line, which is not needed */

/* ---- parsers */

static const struct pt_host_ticks no_ticks = {-1, -1, -1, -1, -1, -1, -1, -1};

void pt_host_clear(struct pt_host_sample *s)
{
    memset(s, 0, sizeof(*s));
    s->all = no_ticks;
    for (unsigned i = 0; i < PT_CPU_MAX; i++)
        s->cpu[i] = no_ticks;
    for (unsigned i = 0; i < 3; i++)
        s->load[i] = -1;
    s->memory = (struct pt_host_memory){-1, -1, -1, -1, -1, -1, -1, -1, -1};
    pt_netstat_clear(&s->net);
}

/* Columns that an old kernel does not have stay unknown. */
static struct pt_host_ticks ticks(const char *at)
{
    struct pt_host_ticks t = no_ticks;
    int64_t *const into[] = {&t.user,   &t.nice, &t.system,  &t.idle,
                             &t.iowait, &t.irq,  &t.softirq, &t.steal};
    for (size_t i = 0; i < PT_COUNT(into); i++) {
        at += strspn(at, " \t");
        if (*at < '0' || *at > '9')
            break;
        char *end;
        errno = 0;
        long long v = strtoll(at, &end, 10);
        if (errno)
            break;
        *into[i] = v;
        at = end;
    }
    return t;
}

void pt_host_parse_stat(struct pt_host_sample *s, const char *text)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "cpu", 3) != 0)
            continue;
        if (line[3] == ' ') {
            s->all = ticks(line + 4);
            continue;
        }
        char *end;
        errno = 0;
        unsigned long i = strtoul(line + 3, &end, 10);
        if (line[3] < '0' || line[3] > '9' || errno || i >= PT_CPU_MAX || *end != ' ')
            continue;
        s->cpu[i] = ticks(end);
        s->cpus++;
        if (i >= s->cpu_end)
            s->cpu_end = (unsigned)i + 1;
    }
}

void pt_host_parse_loadavg(struct pt_host_sample *s, const char *text)
{
    double v[3];
    if (sscanf(text, "%lf %lf %lf", &v[0], &v[1], &v[2]) == 3 && v[0] >= 0)
        memcpy(s->load, v, sizeof(v));
}

void pt_host_parse_meminfo(struct pt_host_memory *m, const char *text)
{
    const struct {
        const char *name;
        int64_t *into;
    } rows[] = {{"MemTotal:", &m->total},         {"MemFree:", &m->free},
                {"MemAvailable:", &m->available}, {"Buffers:", &m->buffers},
                {"Cached:", &m->cached},          {"SReclaimable:", &m->reclaimable},
                {"Shmem:", &m->shared},           {"SwapTotal:", &m->swap_total},
                {"SwapFree:", &m->swap_free}};
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        for (size_t i = 0; i < PT_COUNT(rows); i++) {
            size_t n = strlen(rows[i].name);
            long long kb;
            if (strncmp(line, rows[i].name, n) == 0 && sscanf(line + n, " %lld kB", &kb) == 1 &&
                kb >= 0 && kb < INT64_MAX / 1024)
                *rows[i].into = kb * 1024;
        }
    }
}

bool pt_host_parse_process(struct pt_host_process *p, const char *stat, const char *statm)
{
    /* "pid (comm) state …": comm may hold anything, so from its last parenthesis on. Fields 14 and
     * 15 of proc(5) are utime and stime. */
    const char *rest = strrchr(stat, ')');
    long long user, system, virt, res, shr;
    if (!rest || sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &user,
                        &system) != 2)
        return false;
    if (sscanf(statm, "%lld %lld %lld", &virt, &res, &shr) != 3 || user < 0 || system < 0)
        return false;
    long long page = sysconf(_SC_PAGESIZE);
    p->n++;
    p->user += user;
    p->system += system;
    p->virt += virt * page;
    p->res += res * page;
    p->shr += shr * page;
    return true;
}

/* ---- reading */

/* The file, or as much of it as fits; "" when it cannot be read. */
static int read_text(const char *path, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (ssize_t got; n + 1 < cap && (got = read(fd, out + n, cap - 1 - n)) > 0;)
        n += (size_t)got;
    close(fd);
    out[n] = 0;
    return n ? 0 : -ENODATA;
}

static void look_at_processes(struct pt_host_sample *s, const pid_t *pid, unsigned pids)
{
    for (unsigned i = 0; i < pids; i++) {
        char path[64], stat[1024], statm[256];
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid[i]);
        if (read_text(path, stat, sizeof(stat)) < 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid[i]);
        if (read_text(path, statm, sizeof(statm)) == 0)
            (void)pt_host_parse_process(&s->process, stat, statm);
    }
}

int pt_host_look(struct pt_host_sample *s, const pid_t *pid, unsigned pids, struct pt_err *e)
{
    pt_host_clear(s);
    pt_ns began = pt_clock_now();
    char *text = malloc(STAT_CEILING);
    if (!text)
        return pt_fail(e, -ENOMEM, "no memory to read /proc/stat");
    int rc = read_text("/proc/stat", text, STAT_CEILING);
    s->at = pt_clock_now();
    if (rc == 0) {
        pt_host_parse_stat(s, text);
        if (read_text("/proc/loadavg", text, STAT_CEILING) == 0)
            pt_host_parse_loadavg(s, text);
        if (read_text("/proc/meminfo", text, STAT_CEILING) == 0)
            pt_host_parse_meminfo(&s->memory, text);
        look_at_processes(s, pid, pids);
        struct pt_err hidden = {0};
        if (pt_netstat_read(&s->net, &hidden) < 0)
            pt_netstat_clear(&s->net);
    }
    free(text);
    s->cost_ns = pt_clock_now() - began;
    return rc == 0 ? 0 : pt_fail(e, rc, "/proc/stat: %s", pt_strerror(rc));
}
