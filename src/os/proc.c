/* proc.c: children and their cost, limits; see proc.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/proc.h"

#include "os/clock.h"
#include "os/signal.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- cost */

static pt_ns from_timeval(struct timeval t)
{
    return (pt_ns)t.tv_sec * PT_S + (pt_ns)t.tv_usec * PT_US;
}

static void from_rusage(struct pt_usage *u, const struct rusage *r)
{
    *u = (struct pt_usage){.user_ns = from_timeval(r->ru_utime),
                           .system_ns = from_timeval(r->ru_stime),
                           .max_rss_bytes = (int64_t)r->ru_maxrss * 1024,
                           .minor_faults = r->ru_minflt,
                           .major_faults = r->ru_majflt,
                           .voluntary_switches = r->ru_nvcsw,
                           .involuntary_switches = r->ru_nivcsw};
}

void pt_usage_self(struct pt_usage *u)
{
    struct rusage r = {0};
    getrusage(RUSAGE_SELF, &r);
    from_rusage(u, &r);
}

void pt_usage_children(struct pt_usage *u)
{
    struct rusage r = {0};
    getrusage(RUSAGE_CHILDREN, &r);
    from_rusage(u, &r);
}

/* The whole of a small /proc file, NUL-terminated. */
static int read_proc(pid_t pid, const char *file, char *out, size_t cap)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return -ESRCH;
    size_t n = fread(out, 1, cap - 1, f);
    fclose(f);
    out[n] = 0;
    return n ? 0 : -ESRCH;
}

int pt_usage_process(struct pt_usage *u, pid_t pid)
{
    char text[4096];
    memset(u, 0, sizeof(*u));
    int rc = read_proc(pid, "stat", text, sizeof(text));
    if (rc < 0)
        return rc;
    /* The name may hold anything, ')' too: the fields begin behind the last one (proc(5)). */
    const char *fields = strrchr(text, ')');
    uint64_t user, kernel;
    if (!fields ||
        sscanf(fields + 1,
               " %*c %*d %*d %*d %*d %*d %*u %" SCNd64 " %*u %" SCNd64 " %*u %" SCNu64 " %" SCNu64,
               &u->minor_faults, &u->major_faults, &user, &kernel) != 4)
        return -ESRCH;
    pt_ns tick = PT_S / sysconf(_SC_CLK_TCK);
    u->user_ns = (pt_ns)user * tick;
    u->system_ns = (pt_ns)kernel * tick;
    const char *peak = NULL;
    if (read_proc(pid, "status", text, sizeof(text)) == 0)
        peak = strstr(text, "\nVmHWM:");
    if (peak)
        u->max_rss_bytes = strtoll(peak + 7, NULL, 10) * 1024;
    return 0;
}

void pt_usage_sub(struct pt_usage *out, const struct pt_usage *after, const struct pt_usage *before)
{
    *out = (struct pt_usage){
        .user_ns = after->user_ns - before->user_ns,
        .system_ns = after->system_ns - before->system_ns,
        .max_rss_bytes = after->max_rss_bytes,
        .minor_faults = after->minor_faults - before->minor_faults,
        .major_faults = after->major_faults - before->major_faults,
        .voluntary_switches = after->voluntary_switches - before->voluntary_switches,
        .involuntary_switches = after->involuntary_switches - before->involuntary_switches};
}

/* ---- children */

static _Noreturn void be_child(pid_t parent, const sigset_t *mask, int (*run)(void *ctx), void *ctx)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(128 + SIGKILL); /* it died before the line above */
    pt_signals_forget();
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    _exit(run(ctx) & 255);
}

int pt_child_start(struct pt_child *c, int (*run)(void *ctx), void *ctx, struct pt_err *e)
{
    *c = (struct pt_child){.pid = 0, .pidfd = -1};
    pid_t parent = getpid();
    /* Held back until the child has let go of the descriptor that its parent's handler writes to.
     */
    sigset_t both, before;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    sigprocmask(SIG_BLOCK, &both, &before);
    pid_t pid = fork();
    int failed = pid < 0 ? -errno : 0;
    if (pid != 0)
        sigprocmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return pt_fail(e, failed,
                       "starting a process: %s (see ulimit -u and the pids limit of the "
                       "control group)",
                       strerror(-failed));
    if (pid == 0)
        be_child(parent, &before, run, ctx);
    long pidfd = syscall(SYS_pidfd_open, pid, 0U); /* always CLOEXEC */
    if (pidfd < 0) {
        int rc = -errno;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return pt_fail(e, rc, "pidfd_open: %s", strerror(-rc));
    }
    *c = (struct pt_child){.pid = pid, .pidfd = (int)pidfd};
    return 0;
}

static int reap(struct pt_child *c, struct pt_exit *x)
{
    int status;
    struct rusage r;
    pid_t got;
    while ((got = wait4(c->pid, &status, 0, &r)) < 0 && errno == EINTR)
        continue;
    int rc = got < 0 ? -errno : 0;
    if (rc == 0 && x) {
        x->code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        x->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        from_rusage(&x->usage, &r);
    }
    close(c->pidfd);
    *c = (struct pt_child){.pid = 0, .pidfd = -1};
    return rc;
}

int pt_child_wait(struct pt_child *c, pt_ns deadline, struct pt_exit *x)
{
    if (c->pid <= 0)
        return -ECHILD;
    struct pollfd p = {.fd = c->pidfd, .events = POLLIN};
    pt_ns left = deadline == PT_NS_MAX ? 0 : deadline - pt_clock_now();
    if (left < 0)
        left = 0;
    struct timespec ts = {.tv_sec = (time_t)(left / PT_S), .tv_nsec = (long)(left % PT_S)};
    int n = ppoll(&p, 1, deadline == PT_NS_MAX ? NULL : &ts, NULL);
    if (n < 0)
        return -errno;
    return n == 0 ? -ETIMEDOUT : reap(c, x);
}

int pt_child_signal(const struct pt_child *c, int signal)
{
    if (c->pid <= 0)
        return -ESRCH;
    return syscall(SYS_pidfd_send_signal, c->pidfd, signal, NULL, 0U) == 0 ? 0 : -errno;
}

void pt_child_end(struct pt_child *c, pt_ns grace_ns, struct pt_exit *x)
{
    if (x)
        memset(x, 0, sizeof(*x));
    if (c->pid <= 0)
        return;
    pt_ns deadline = pt_clock_now() + grace_ns;
    /* A stopped process takes SIGTERM only once it goes on. */
    int rc = pt_child_signal(c, SIGTERM);
    if (rc == 0)
        (void)!pt_child_signal(c, SIGCONT);
    do
        rc = pt_child_wait(c, deadline, x);
    while (rc == -EINTR);
    if (rc != -ETIMEDOUT)
        return;
    /* ESRCH: it ended meanwhile; reaping is the same. */
    rc = pt_child_signal(c, SIGKILL);
    (void)rc;
    rc = reap(c, x);
    (void)rc;
}

void pt_proc_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}

/* ---- limits */

int64_t pt_fd_limit_raise(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0)
        return -errno;
    rlim_t before = l.rlim_cur;
    l.rlim_cur = l.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &l) != 0)
        l.rlim_cur = before;
    return l.rlim_cur > INT64_MAX ? INT64_MAX : (int64_t)l.rlim_cur;
}
