/* bare.h: what the bare loops share: two ends, each a process with a counter, watched from outside.
 *
 * The loops themselves hold no clock and no exit: the parent opens all sockets (each in its
 * namespace), forks the ends, reads their counters and CPU clocks at both edges of the window and
 * kills them. So a loop costs what the kernel charges and nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BARE_H
#define BARE_H

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BARE_ENDS_MAX 512

/* One process of the experiment. Its counters are written by that process only, read by the parent.
 */
struct bare_end {
    _Alignas(128) _Atomic uint64_t units; /* packets or calls */
    _Atomic uint64_t bytes;
    pid_t pid; /* written by the parent */
};

/* What happened inside the window, summed over the senders [0] and the receivers [1]. */
struct bare_sum {
    double seconds, units[2], bytes[2], cpu_s[2];
};

static inline _Noreturn __attribute__((format(printf, 1, 2))) void bare_die(const char *format, ...)
{
    int why = errno;
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, why ? ": %s\n" : "\n", strerror(why));
    exit(1);
}

static inline uint64_t bare_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void bare_sleep(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

/* "64", "128K", "1M": powers of 1024. */
static inline size_t bare_size(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    errno = 0;
    if (end == text || end[shift ? 1 : 0] || n == 0 || n > (1u << 30))
        bare_die("%s: a size such as 64, 128K or 1M expected", text);
    return (size_t)(n << shift);
}

static inline void bare_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (cpu >= 0 && sched_setaffinity(0, sizeof set, &set))
        bare_die("cannot run on CPU %d", cpu);
}

/* Sockets opened from here on belong to the namespace `name` of `ip netns`; "" stays. */
static inline void bare_enter(const char *name)
{
    if (!*name)
        return;
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET))
        bare_die("namespace %s", name);
    close(fd);
}

/* "A,B" into its halves; one word is meant for both ends. */
static inline void bare_pair(char *text, const char **sender, const char **receiver)
{
    char *comma = strchr(text, ',');
    *sender = *receiver = text;
    if (comma) {
        *comma = 0;
        *receiver = comma + 1;
    }
}

static inline socklen_t bare_address(const char *host, int type, struct sockaddr_storage *out)
{
    struct addrinfo hints = {.ai_socktype = type, .ai_flags = AI_NUMERICHOST}, *found;
    errno = 0;
    if (getaddrinfo(host, "0", &hints, &found))
        bare_die("%s: a numeric address expected", host);
    socklen_t size = found->ai_addrlen;
    memcpy(out, found->ai_addr, size);
    freeaddrinfo(found);
    return size;
}

/* A bound socket on a port of the kernel's choice; `out` becomes its full address. */
static inline int bare_bound(int type, struct sockaddr_storage *out, socklen_t size)
{
    int fd = socket(out->ss_family, type | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)out, size) ||
        getsockname(fd, (struct sockaddr *)out, &size))
        bare_die("cannot bind");
    return fd;
}

static inline struct bare_end *bare_ends(void)
{
    void *at = mmap(NULL, sizeof(struct bare_end) * BARE_ENDS_MAX, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        bare_die("no memory");
    return at;
}

/* Publishes the counter of an end; a plain store. */
static inline void bare_count(struct bare_end *me, uint64_t units, uint64_t bytes)
{
    atomic_store_explicit(&me->units, units, memory_order_relaxed);
    atomic_store_explicit(&me->bytes, bytes, memory_order_relaxed);
}

/* Forks an end that runs `loop` until the parent kills it (or dies); cpu -1 is wherever the kernel
 * puts it. */
static inline void bare_start(struct bare_end *end, int cpu, void (*loop)(struct bare_end *, int),
                              int fd)
{
    fflush(NULL);
    const pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        bare_die("fork");
    if (pid > 0) {
        end->pid = pid;
    } else {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* it died before the line above */
            _exit(1);
        signal(SIGPIPE, SIG_IGN);
        bare_pin(cpu);
        loop(end, fd);
        _exit(0);
    }
}

static inline double bare_cpu_s(pid_t pid)
{
    clockid_t id;
    struct timespec t;
    if (clock_getcpuclockid(pid, &id) || clock_gettime(id, &t))
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void bare_read(struct bare_end *ends, int n, double sign, struct bare_sum *sum)
{
    sum->seconds += sign * (double)bare_now_ns() / 1e9;
    for (int i = 0; i < n; i++) {
        sum->units[i & 1] +=
            sign * (double)atomic_load_explicit(&ends[i].units, memory_order_relaxed);
        sum->bytes[i & 1] +=
            sign * (double)atomic_load_explicit(&ends[i].bytes, memory_order_relaxed);
        sum->cpu_s[i & 1] += sign * bare_cpu_s(ends[i].pid);
    }
}

static inline void bare_kill(struct bare_end *ends, int n)
{
    for (int i = 0; i < n; i++)
        kill(ends[i].pid, SIGKILL);
    for (int i = 0; i < n; i++)
        waitpid(ends[i].pid, NULL, 0);
}

/* ends[0, 2, 4, …] send, ends[1, 3, 5, …] receive. Lets them run through the warm-up, measures one
 * window and kills them. An end that stopped by itself is an error. */
static inline struct bare_sum bare_measure(struct bare_end *ends, int n, double warmup_s,
                                           double window_s)
{
    struct bare_sum sum = {0};
    bare_sleep(warmup_s);
    bare_read(ends, n, -1, &sum);
    bare_sleep(window_s);
    bare_read(ends, n, 1, &sum);
    int gone = 0;
    for (int i = 0; i < n; i++)
        gone += waitpid(ends[i].pid, NULL, WNOHANG) != 0;
    bare_kill(ends, n);
    errno = 0;
    if (gone)
        bare_die("%d of %d processes ended before the window did", gone, n);
    return sum;
}

#endif
