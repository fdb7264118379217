/* sample.h: what a host does: CPU, load, memory, network, and some processes of it.
 *
 * One look reads /proc/{stat,loadavg,meminfo}, os/netstat.h's files and /proc/PID/{stat,statm};
 * figures are made from two looks (host/sample_json.h). Names and meanings are those of top(1),
 * free(1), uptime(1) and sar(1), see docs/METHOD.md. A figure that this kernel does not have, or
 * hides, is -1 and later null: never 0. The parsers are pure: text in, figures out; lines they do
 * not understand are skipped.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_HOST_SAMPLE_H
#define PT_HOST_SAMPLE_H

#include "os/cpu.h"
#include "os/netstat.h"

#include <sys/types.h>

/* Clock ticks since boot, proc(5). `user` and `nice` include guests. -1: unknown. */
struct pt_host_ticks {
    int64_t user, nice, system, idle, iowait, irq, softirq, steal;
};

/* Bytes; -1: unknown. */
struct pt_host_memory {
    int64_t total, free, available, buffers, cached, reclaimable, shared, swap_total, swap_free;
};

/* Sums over the processes that were asked for and are there. */
struct pt_host_process {
    unsigned n;
    int64_t virt, res, shr; /* bytes */
    int64_t user, system;   /* clock ticks */
};

struct pt_host_sample {
    pt_ns at;                                  /* CLOCK_MONOTONIC */
    pt_ns cost_ns;                             /* what taking it took */
    unsigned cpus;                             /* online */
    unsigned cpu_end;                          /* highest + 1 */
    struct pt_host_ticks all, cpu[PT_CPU_MAX]; /* -1 throughout: offline */
    double load[3];                            /* 1, 5, 15 minutes; -1: unknown */
    struct pt_host_memory memory;
    struct pt_host_process process;
    struct pt_netstat net;
};

/* About 100 kB: on the heap. `pid`: `pids` of them, of the process's own if they are threads. Fails
 * only when /proc/stat cannot be read. */
int pt_host_look(struct pt_host_sample *s, const pid_t *pid, unsigned pids,
                 struct pt_err *e) PT_MUST_USE;

/* ---- the parsers; NUL-terminated text */

void pt_host_clear(struct pt_host_sample *s); /* everything unknown */
void pt_host_parse_stat(struct pt_host_sample *s, const char *text);
void pt_host_parse_loadavg(struct pt_host_sample *s, const char *text);
void pt_host_parse_meminfo(struct pt_host_memory *m, const char *text);
/* /proc/PID/stat and statm: adds; false when it is not readable as such. */
bool pt_host_parse_process(struct pt_host_process *p, const char *stat, const char *statm);

#endif
