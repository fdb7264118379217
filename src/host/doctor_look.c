/* doctor_look.c: the checks of the doctor that are more than a number of /proc/sys.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/doctor_private.h"
#include "os/link.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CPUS         1024
#define SWAP_MOST    ((uint64_t)64 << 10) /* KiB: what lies there unused harms nobody */
#define STEAL_MOST   1.0                  /* per cent */
#define LOAD_MOST    0.5
#define MEMLOCK_WANT ((uint64_t)64 << 20)

static void judge(struct pt_doctor_line *l, bool ok, const char *command)
{
    l->state = ok ? PT_DOCTOR_OK : PT_DOCTOR_ATTENTION;
    if (!ok)
        snprintf(l->command, sizeof(l->command), "%s", command);
}

static void look_limit(struct pt_doctor *d, const char *name, const char *why, const char *word,
                       uint64_t want, const char *command)
{
    struct pt_doctor_line *l = pt_doctor_add(d, name, why);
    snprintf(l->wanted, sizeof(l->wanted), ">= %" PRIu64, want);
    if (strcmp(word, "unlimited") != 0 && (*word < '0' || *word > '9'))
        return;
    snprintf(l->current, sizeof(l->current), "%s", word);
    judge(l, *word == 'u' || strtoull(word, NULL, 10) >= want, command);
}

void pt_doctor_look_limits(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    bool memlock = !strcmp(c->name, "memlock");
    const char *label = memlock ? "Max locked memory" : "Max open files";
    char text[4096], soft[24] = "", hard[24] = "", command[96];
    const char *row =
        pt_doctor_read(d, "proc/self/limits", text, sizeof(text)) == 0 ? strstr(text, label) : NULL;
    if (!row || sscanf(row + strlen(label), "%23s %23s", soft, hard) != 2)
        soft[0] = hard[0] = 0;
    if (memlock) {
        snprintf(command, sizeof(command), "ulimit -l %" PRIu64, MEMLOCK_WANT >> 10);
        look_limit(d, "memlock", c->why, soft, MEMLOCK_WANT, command);
        return;
    }
    uint64_t want = c->want(d->connections);
    snprintf(command, sizeof(command), "ulimit -Sn %" PRIu64, want);
    look_limit(d, "nofile soft", c->why, soft, want, command);
    snprintf(command, sizeof(command), "prlimit --nofile=%" PRIu64 ":%" PRIu64 " --pid $$", want,
             want);
    look_limit(d, "nofile hard", c->why, hard, want, command);
}

void pt_doctor_look_governor(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    snprintf(l->wanted, sizeof(l->wanted), "performance");
    bool ok = true, any = false;
    for (unsigned cpu = 0; cpu < CPUS; cpu++) {
        char path[96], text[32];
        snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu);
        if (pt_doctor_read(d, path, text, sizeof(text)) < 0 || !text[0])
            continue;
        if (ok) /* of several the first that is not as wanted */
            snprintf(l->current, sizeof(l->current), "%s", text);
        ok = ok && !strcmp(text, "performance");
        any = true;
    }
    if (any)
        judge(l, ok, "cpupower frequency-set -g performance");
}

/* ---- which CPUs take an interface's packets */

/* "0,2-3" */
static void add_list(bool cpu[CPUS], const char *text)
{
    for (const char *p = text; *p;) {
        char *end;
        unsigned long first = strtoul(p, &end, 10), last = first;
        if (end == p)
            return;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < CPUS; i++)
            cpu[i] = true;
        p = *end == ',' ? end + 1 : end;
        if (p == end && *p)
            return;
    }
}

/* "00000000,00000005": the last digit holds the CPUs 0 to 3. */
static void add_mask(bool cpu[CPUS], const char *text)
{
    unsigned at = 0;
    for (size_t i = strlen(text); i-- && at + 4 <= CPUS;) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, text[i]);
        if (!digit)
            continue;
        for (unsigned bit = 0; bit < 4; bit++)
            cpu[at + bit] = cpu[at + bit] || ((digit - digits) >> bit & 1);
        at += 4;
    }
}

static DIR *open_folder(const struct pt_doctor *d, const char *path)
{
    char full[512];
    if ((size_t)snprintf(full, sizeof(full), "%s/%s", d->root, path) >= sizeof(full))
        return NULL;
    return opendir(full);
}

static void add_interrupts(const struct pt_doctor *d, const char *folder, bool cpu[CPUS])
{
    DIR *irqs = open_folder(d, folder);
    for (const struct dirent *f; irqs && (f = readdir(irqs));) {
        char path[96], list[256];
        unsigned long irq = strtoul(f->d_name, NULL, 10);
        if (f->d_name[0] < '0' || f->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "proc/irq/%lu/effective_affinity_list", irq);
        if (pt_doctor_read(d, path, list, sizeof(list)) == 0)
            add_list(cpu, list);
    }
    if (irqs)
        closedir(irqs);
}

static void look_one_spread(struct pt_doctor *d, const struct pt_doctor_check *c, const char *dev)
{
    static bool cpu[CPUS];
    char folder[128], path[448], mask[512];
    memset(cpu, 0, sizeof(cpu));
    snprintf(folder, sizeof(folder), "sys/class/net/%.32s/device/msi_irqs", dev);
    add_interrupts(d, folder, cpu);
    /* A virtio device has its interrupts at the PCI device above. */
    snprintf(folder, sizeof(folder), "sys/class/net/%.32s/device/../msi_irqs", dev);
    add_interrupts(d, folder, cpu);
    snprintf(folder, sizeof(folder), "sys/class/net/%.32s/queues", dev);
    DIR *queues = open_folder(d, folder);
    for (const struct dirent *f; queues && (f = readdir(queues));) {
        snprintf(path, sizeof(path), "%s/%s/rps_cpus", folder, f->d_name);
        if (!strncmp(f->d_name, "rx-", 3) && pt_doctor_read(d, path, mask, sizeof(mask)) == 0)
            add_mask(cpu, mask);
    }
    if (queues)
        closedir(queues);
    unsigned n = 0, cpus = pt_doctor_cpus(d);
    for (unsigned i = 0; i < CPUS; i++)
        n += cpu[i];
    char name[64], command[192];
    snprintf(name, sizeof(name), "%s %.32s", c->name, dev);
    struct pt_doctor_line *l = pt_doctor_add(d, name, c->why);
    snprintf(l->wanted, sizeof(l->wanted), cpus > 1 ? ">= 2 CPUs" : ">= 1 CPU");
    if (!n || !cpus)
        return;
    snprintf(l->current, sizeof(l->current), "%u CPU%s", n, n > 1 ? "s" : "");
    snprintf(command, sizeof(command), "echo %x > /sys/class/net/%.32s/queues/rx-0/rps_cpus",
             cpus >= 32 ? ~0u : (1u << cpus) - 1, dev);
    judge(l, n > 1 || cpus == 1, command);
}

static void look_one_offloads(struct pt_doctor *d, const struct pt_doctor_check *c, const char *dev)
{
    struct pt_offloads o;
    char name[64], command[192];
    snprintf(name, sizeof(name), "%s %.32s", c->name, dev);
    struct pt_doctor_line *l = pt_doctor_add(d, name, c->why);
    snprintf(l->wanted, sizeof(l->wanted), "tso on, gso on, gro on");
    /* Only this kernel can be asked; another root is another host. */
    if (d->root[0] || pt_offloads_read(&o, dev) < 0)
        return;
    snprintf(l->current, sizeof(l->current), "tso %s, gso %s, gro %s", o.tso ? "on" : "off",
             o.gso ? "on" : "off", o.gro ? "on" : "off");
    snprintf(command, sizeof(command), "ethtool -K %.32s%s%s%s", dev, o.tso ? "" : " tso on",
             o.gso ? "" : " gso on", o.gro ? "" : " gro on");
    judge(l, o.tso && o.gso && o.gro, command);
}

static void each_interface(struct pt_doctor *d, const struct pt_doctor_check *c,
                           void (*look)(struct pt_doctor *, const struct pt_doctor_check *,
                                        const char *))
{
    if (d->interface[0]) {
        look(d, c, d->interface);
        return;
    }
    DIR *all = open_folder(d, "sys/class/net");
    unsigned shown = 0;
    for (const struct dirent *f; all && shown < 16 && (f = readdir(all));) {
        char full[512];
        /* Only hardware has a device, and interrupts. */
        snprintf(full, sizeof(full), "%s/sys/class/net/%s/device", d->root, f->d_name);
        if (f->d_name[0] == '.' || access(full, F_OK) < 0)
            continue;
        look(d, c, f->d_name);
        shown++;
    }
    if (all)
        closedir(all);
}

void pt_doctor_look_spread(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    each_interface(d, c, look_one_spread);
}

void pt_doctor_look_offloads(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    each_interface(d, c, look_one_offloads);
}

/* ---- the machine */

static bool meminfo(const char *text, const char *key, uint64_t *kib)
{
    const char *at = strstr(text, key);
    return at && sscanf(at + strlen(key), ": %" SCNu64, kib) == 1;
}

void pt_doctor_look_swap(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    char text[8192];
    uint64_t total, left;
    snprintf(l->wanted, sizeof(l->wanted), "<= %" PRIu64 " MiB", SWAP_MOST >> 10);
    if (pt_doctor_read(d, "proc/meminfo", text, sizeof(text)) < 0 ||
        !meminfo(text, "SwapTotal", &total) || !meminfo(text, "SwapFree", &left) || left > total)
        return;
    snprintf(l->current, sizeof(l->current), "%" PRIu64 " MiB", (total - left) >> 10);
    judge(l, total - left <= SWAP_MOST, "swapoff -a && swapon -a");
}

/* Ticks of all CPUs: stolen, and all. */
static bool ticks(const struct pt_doctor *d, uint64_t *stolen, uint64_t *all)
{
    static char text[(size_t)256 << 10];
    uint64_t v[8] = {0};
    if (pt_doctor_read(d, "proc/stat", text, sizeof(text)) < 0 ||
        sscanf(text,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
        return false;
    *stolen = v[7];
    *all = 0;
    for (size_t i = 0; i < PT_COUNT(v); i++)
        *all += v[i];
    return true;
}

void pt_doctor_look_steal(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    uint64_t stolen[2], all[2];
    struct timespec ts = {.tv_sec = (time_t)(d->pause / PT_S), .tv_nsec = (long)(d->pause % PT_S)};
    snprintf(l->wanted, sizeof(l->wanted), "<= %.1f %%", STEAL_MOST);
    if (!ticks(d, &stolen[0], &all[0]))
        return;
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
    if (!ticks(d, &stolen[1], &all[1]) || all[1] <= all[0] || stolen[1] < stolen[0])
        return;
    double pct = 100.0 * (double)(stolen[1] - stolen[0]) / (double)(all[1] - all[0]);
    snprintf(l->current, sizeof(l->current), "%.1f %%", pct);
    judge(l, pct <= STEAL_MOST, "");
}

void pt_doctor_look_clock(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    static const char *const slow[] = {"hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"};
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    snprintf(l->wanted, sizeof(l->wanted), "tsc, or the hypervisor's");
    if (pt_doctor_read(d, "sys/devices/system/clocksource/clocksource0/current_clocksource",
                       l->current, sizeof(l->current)) < 0 ||
        !l->current[0])
        return;
    bool ok = true;
    for (size_t i = 0; i < PT_COUNT(slow); i++)
        ok = ok && strcmp(l->current, slow[i]) != 0;
    judge(l, ok, "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource");
}

void pt_doctor_look_uring(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    char text[16];
    int rc = pt_doctor_read(d, "proc/sys/kernel/io_uring_disabled", text, sizeof(text));
    bool off = rc == 0 && strcmp(text, "0") != 0;
    snprintf(l->wanted, sizeof(l->wanted), "permitted");
    /* The kernel's own answer counts, when it is this kernel: a filter may refuse it, too. */
    if (!d->root[0])
        off = syscall(SYS_io_uring_setup, 0, NULL) < 0 && (errno == EPERM || errno == ENOSYS);
    else if (rc < 0)
        return;
    snprintf(l->current, sizeof(l->current), off ? "refused" : "permitted");
    judge(l, !off, "sysctl -w kernel.io_uring_disabled=0");
}

void pt_doctor_look_load(struct pt_doctor *d, const struct pt_doctor_check *c)
{
    struct pt_doctor_line *l = pt_doctor_add(d, c->name, c->why);
    char text[128];
    double load;
    unsigned cpus = pt_doctor_cpus(d);
    snprintf(l->wanted, sizeof(l->wanted), "<= %.2f", LOAD_MOST);
    if (!cpus || pt_doctor_read(d, "proc/loadavg", text, sizeof(text)) < 0 ||
        sscanf(text, "%lf", &load) != 1)
        return;
    snprintf(l->current, sizeof(l->current), "%.2f", load / cpus);
    judge(l, load / cpus <= LOAD_MOST, "");
}
