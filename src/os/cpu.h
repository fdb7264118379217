/* cpu.h: which CPUs this process may use, which share a core, and pinning to them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_CPU_H
#define PT_OS_CPU_H

#include "base/err.h"
#include "base/types.h"

#define PT_CPU_MAX 1024

struct pt_cpu_list {
    unsigned n;
    uint16_t cpu[PT_CPU_MAX]; /* no duplicates, each < PT_CPU_MAX; parse keeps the written order */
};

/* The CPUs the scheduler may use for this process (its affinity mask), ascending; at least one. */
int pt_cpu_allowed(struct pt_cpu_list *l, struct pt_err *e) PT_MUST_USE;

/* "0,2-3". -EINVAL with what is wrong; it does not look whether the CPUs exist. */
int pt_cpu_parse(struct pt_cpu_list *l, const char *text, struct pt_err *e) PT_MUST_USE;
/* "0,2-3" into `out`; returns `out`. Ends with "..." when it does not fit. */
const char *pt_cpu_print(const struct pt_cpu_list *l, char *out, size_t cap);
bool pt_cpu_has(const struct pt_cpu_list *l, unsigned cpu);

/* Pins the calling process. -EINVAL: none of them is usable here. */
int pt_cpu_pin(unsigned cpu, struct pt_err *e) PT_MUST_USE;
int pt_cpu_pin_list(const struct pt_cpu_list *l, struct pt_err *e) PT_MUST_USE;

/* The CPU this runs on now. */
unsigned pt_cpu_current(void);
/* The hardware threads of the same core, `cpu` included, ascending. -ENOENT: sysfs does not say. */
int pt_cpu_siblings(struct pt_cpu_list *l, unsigned cpu) PT_MUST_USE;
/* Two hardware threads of one core; a CPU is on its own core. false when sysfs does not say. */
bool pt_cpu_same_core(unsigned a, unsigned b);
/* "AMD EPYC 9R14" into `out`; -ENOENT when /proc/cpuinfo does not name it (`out` is then empty). */
int pt_cpu_model(char *out, size_t cap) PT_MUST_USE;

#endif
