/* proc.h: processes: children that cannot outlive us, what they cost, the descriptor limit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_PROC_H
#define PT_OS_PROC_H

#include "base/err.h"
#include "base/types.h"

/* ---- cost */

struct pt_usage {
    pt_ns user_ns, system_ns;
    int64_t max_rss_bytes;
    int64_t minor_faults, major_faults;
    int64_t voluntary_switches, involuntary_switches;
};

void pt_usage_self(struct pt_usage *u);
/* Of all children that ended and were waited for. */
void pt_usage_children(struct pt_usage *u);
/* Of another process or a child that still runs, by /proc/PID: times (10 ms steps) and the resident
 * peak only. -ESRCH. */
int pt_usage_process(struct pt_usage *u, pid_t pid) PT_MUST_USE;
/* after - before; max_rss_bytes stays that of `after`. */
void pt_usage_sub(struct pt_usage *out, const struct pt_usage *after,
                  const struct pt_usage *before);

/* ---- children */

struct pt_child {
    pid_t pid; /* 0: none */
    int pidfd; /* readable (POLLIN) when it has ended; -1: none */
};

struct pt_exit {
    int code;   /* exit status, when signal is 0 */
    int signal; /* the signal that ended it, or 0 */
    struct pt_usage usage;
};

/* Forks; the child runs `run(ctx)` and leaves with _exit(its result & 255), so nothing of the
 * parent's stdio or atexit is run twice. In the child: SIGKILL when the parent dies, SIGINT ignored
 * (a terminal sends it to the whole group, and the parent decides), SIGTERM back to its default,
 * pt_signal_seen() 0. */
int pt_child_start(struct pt_child *c, int (*run)(void *ctx), void *ctx,
                   struct pt_err *e) PT_MUST_USE;
/* Waits for the end and reaps. 0; -ETIMEDOUT at `deadline` (CLOCK_MONOTONIC; a past one only
 * looks); -EINTR when a signal came. `x` may be NULL. */
int pt_child_wait(struct pt_child *c, pt_ns deadline, struct pt_exit *x) PT_MUST_USE;
/* -ESRCH: it has ended. Never hits a stranger: by pidfd. */
int pt_child_signal(const struct pt_child *c, int signal) PT_MUST_USE;
/* SIGTERM, at most `grace_ns` of patience, SIGKILL; always reaps. Fine with none. */
void pt_child_end(struct pt_child *c, pt_ns grace_ns, struct pt_exit *x);

/* The name in ps and top, 15 bytes at most. */
void pt_proc_name(const char *name);

/* ---- limits */

/* Raises the descriptor limit to the hard one. Returns the limit then in force. */
int64_t pt_fd_limit_raise(void) PT_MUST_USE;

#endif
