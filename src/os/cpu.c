/* cpu.c: see cpu.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/cpu.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(PT_CPU_MAX <= CPU_SETSIZE, "a list fits the kernel's mask");

int pt_cpu_allowed(struct pt_cpu_list *l, struct pt_err *e)
{
    cpu_set_t set;
    l->n = 0;
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return pt_fail(e, -errno, "reading the CPUs of this process: %s", strerror(errno));
    for (unsigned i = 0; i < PT_CPU_MAX; i++)
        if (CPU_ISSET(i, &set))
            l->cpu[l->n++] = (uint16_t)i;
    return 0;
}

bool pt_cpu_has(const struct pt_cpu_list *l, unsigned cpu)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->cpu[i] == cpu)
            return true;
    return false;
}

/* A number below PT_CPU_MAX at *text, which moves behind it; or -1. */
static int take_number(const char **text)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return -1;
    unsigned long v = strtoul(*text, &end, 10);
    *text = end;
    return v < PT_CPU_MAX ? (int)v : -1;
}

/* The list without a sentence; the caller has the context. */
static int parse(struct pt_cpu_list *l, const char *p)
{
    l->n = 0;
    for (;;) {
        int first = take_number(&p), last = first;
        if (first >= 0 && *p == '-') {
            p++;
            last = take_number(&p);
        }
        if (first < 0 || last < first)
            return -EINVAL;
        for (int i = first; i <= last; i++)
            if (!pt_cpu_has(l, (unsigned)i))
                l->cpu[l->n++] = (uint16_t)i;
        if (*p == 0)
            return 0;
        if (*p++ != ',')
            return -EINVAL;
    }
}

int pt_cpu_parse(struct pt_cpu_list *l, const char *text, struct pt_err *e)
{
    int rc = parse(l, text);
    if (rc < 0) {
        l->n = 0;
        return pt_fail(e, rc,
                       "'%.80s' is no CPU list: expected numbers below %d and ranges, like "
                       "0,2-3",
                       text, PT_CPU_MAX);
    }
    return 0;
}

const char *pt_cpu_print(const struct pt_cpu_list *l, char *out, size_t cap)
{
    size_t used = 0;
    out[0] = 0;
    for (unsigned i = 0; i < l->n;) {
        unsigned j = i;
        while (j + 1 < l->n && l->cpu[j + 1] == l->cpu[j] + 1)
            j++;
        char part[16];
        int n = j == i
                    ? snprintf(part, sizeof(part), "%s%u", i ? "," : "", l->cpu[i])
                    : snprintf(part, sizeof(part), "%s%u-%u", i ? "," : "", l->cpu[i], l->cpu[j]);
        /* The room for "..." is kept until the last part. */
        if (used + (size_t)n + (j + 1 < l->n ? 4 : 1) > cap) {
            snprintf(out + used, cap - used, "...");
            return out;
        }
        memcpy(out + used, part, (size_t)n + 1);
        used += (size_t)n;
        i = j + 1;
    }
    return out;
}

int pt_cpu_pin_list(const struct pt_cpu_list *l, struct pt_err *e)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned i = 0; i < l->n; i++)
        CPU_SET(l->cpu[i], &set);
    if (sched_setaffinity(0, sizeof(set), &set) == 0)
        return 0;
    int rc = -errno;
    struct pt_cpu_list all;
    char asked[64], there[64] = "?";
    pt_cpu_print(l, asked, sizeof(asked));
    if (pt_cpu_allowed(&all, NULL) == 0)
        pt_cpu_print(&all, there, sizeof(there));
    return pt_fail(e, rc, "pinning to CPU %s: %s; this process may use %s", asked,
                   rc == -EINVAL ? "not usable here" : strerror(-rc), there);
}

int pt_cpu_pin(unsigned cpu, struct pt_err *e)
{
    if (cpu >= PT_CPU_MAX)
        return pt_fail(e, -EINVAL, "pinning to CPU %u: CPUs are numbered below %d", cpu,
                       PT_CPU_MAX);
    struct pt_cpu_list one = {.n = 1, .cpu = {(uint16_t)cpu}};
    return pt_cpu_pin_list(&one, e);
}

unsigned pt_cpu_current(void)
{
    int cpu = sched_getcpu();
    return cpu < 0 ? 0 : (unsigned)cpu;
}

int pt_cpu_siblings(struct pt_cpu_list *l, unsigned cpu)
{
    char path[96], text[256];
    l->n = 0;
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
             cpu);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -ENOENT;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return -ENOENT;
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    if (parse(l, text) < 0) {
        l->n = 0;
        return -ENOENT;
    }
    return 0;
}

bool pt_cpu_same_core(unsigned a, unsigned b)
{
    struct pt_cpu_list l;
    return a == b || (pt_cpu_siblings(&l, a) == 0 && pt_cpu_has(&l, b));
}

int pt_cpu_model(char *out, size_t cap)
{
    /* x86, POWER and s390 name it under different keys; arm64 often not at all. */
    static const char *const keys[] = {"model name", "cpu\t", "Model", "Hardware"};
    char line[512];
    out[0] = 0;
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f)
        return -ENOENT;
    while (!out[0] && fgets(line, sizeof(line), f)) {
        char *colon = strchr(line, ':');
        for (size_t i = 0; colon && i < PT_COUNT(keys); i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0) {
                char *value = colon + 1 + strspn(colon + 1, " \t");
                value[strcspn(value, "\n")] = 0;
                snprintf(out, cap, "%s", value);
                break;
            }
    }
    fclose(f);
    return out[0] ? 0 : -ENOENT;
}
