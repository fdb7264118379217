/* test_proc.c: children end, are reaped, cost something, and share what they should.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "os/clock.h"
#include "os/proc.h"
#include "os/shm.h"
#include "os/signal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int add_one(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
    return 7;
}

static int burn_20_ms(void *ctx)
{
    (void)ctx;
    while (pt_clock_cpu() < 20 * PT_MS)
        continue;
    return 0;
}

static int wait_for_ever(void *ctx)
{
    (void)ctx;
    while (getppid() > 0)
        pause();
    return 1;
}

static int shrug_off_sigterm(void *ctx)
{
    signal(SIGTERM, SIG_IGN);
    atomic_store((atomic_int *)ctx, 1);
    return wait_for_ever(NULL);
}

/* What the child's signals look like from inside. */
static int look_at_signals(void *ctx)
{
    (void)ctx;
    struct sigaction term, intr;
    sigaction(SIGTERM, NULL, &term);
    sigaction(SIGINT, NULL, &intr);
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    return (pt_signal_seen() == 0 && pt_signal_fd() == -1 ? 1 : 0) |
           (term.sa_handler == SIG_DFL && intr.sa_handler == SIG_IGN ? 2 : 0) |
           (!sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGINT) ? 4 : 0);
}

static void a_child_shares_memory_and_gives_its_status(void **state)
{
    (void)state;
    struct pt_shm s;
    struct pt_child c;
    struct pt_exit x;
    struct pt_err e = {0};
    assert_int_equal(pt_shm_open(&s, 0, &e), -EINVAL);
    assert_int_equal(pt_shm_open(&s, 10000, &e), 0);
    for (size_t i = 0; i < s.size; i++)
        assert_int_equal(((char *)s.base)[i], 0);
    assert_int_equal(pt_child_start(&c, add_one, s.base, &e), 0);
    assert_int_equal(pt_child_wait(&c, pt_clock_now() + 5 * PT_S, &x), 0);
    assert_int_equal(x.code, 7);
    assert_int_equal(x.signal, 0);
    assert_int_equal(*(int *)s.base, 1);
    assert_int_equal(c.pid, 0);
    assert_int_equal(pt_child_wait(&c, 0, &x), -ECHILD);
    assert_int_equal(pt_child_signal(&c, SIGTERM), -ESRCH);
    pt_shm_close(&s);
    assert_null(s.base);
    pt_shm_close(&s);
}

static void a_child_is_billed(void **state)
{
    (void)state;
    struct pt_child c;
    struct pt_exit x;
    struct pt_usage before, after, d;
    pt_usage_children(&before);
    assert_int_equal(pt_child_start(&c, burn_20_ms, NULL, NULL), 0);
    assert_int_equal(pt_child_wait(&c, pt_clock_now() + 20 * PT_S, &x), 0);
    pt_usage_children(&after);
    pt_usage_sub(&d, &after, &before);
    assert_true(x.usage.user_ns + x.usage.system_ns >= 15 * PT_MS);
    assert_true(d.user_ns + d.system_ns >= 15 * PT_MS);
    assert_true(x.usage.max_rss_bytes > 0);
    pt_usage_self(&after);
    assert_true(after.max_rss_bytes > 0);
}

static void a_running_child_is_seen_and_ended(void **state)
{
    (void)state;
    struct pt_child c;
    struct pt_exit x;
    struct pt_usage u;
    assert_int_equal(pt_child_start(&c, wait_for_ever, NULL, NULL), 0);
    assert_int_equal(pt_child_wait(&c, pt_clock_now(), &x), -ETIMEDOUT);
    assert_int_equal(pt_usage_process(&u, c.pid), 0);
    assert_true(u.max_rss_bytes > 0);
    pid_t pid = c.pid;
    pt_child_end(&c, 5 * PT_S, &x);
    assert_int_equal(x.signal, SIGTERM);
    assert_int_equal(c.pid, 0);
    assert_int_equal(pt_usage_process(&u, pid), -ESRCH);
    pt_child_end(&c, PT_S, NULL);
}

static void a_stubborn_child_is_killed(void **state)
{
    (void)state;
    struct pt_shm s;
    struct pt_child c;
    struct pt_exit x;
    assert_int_equal(pt_shm_open(&s, sizeof(atomic_int), NULL), 0);
    assert_int_equal(pt_child_start(&c, shrug_off_sigterm, s.base, NULL), 0);
    pt_ns until = pt_clock_now() + 5 * PT_S;
    while (!atomic_load((atomic_int *)s.base) && pt_clock_now() < until)
        assert_int_equal(pt_child_wait(&c, pt_clock_now() + PT_MS, &x), -ETIMEDOUT);
    pt_child_end(&c, 2 * PT_MS, &x);
    assert_int_equal(x.signal, SIGKILL);
    pt_shm_close(&s);
}

static void a_child_begins_without_our_signals(void **state)
{
    (void)state;
    struct pt_child c;
    struct pt_exit x;
    assert_int_equal(pt_signals_install(NULL), 0);
    pt_signal_note(SIGINT);
    assert_int_equal(pt_child_start(&c, look_at_signals, NULL, NULL), 0);
    assert_int_equal(pt_child_wait(&c, pt_clock_now() + 5 * PT_S, &x), 0);
    assert_int_equal(x.code, 7);
    assert_int_equal(pt_signal_seen(), SIGINT);
    pt_signals_forget();
}

static void signals_are_noted_and_interrupt(void **state)
{
    (void)state;
    assert_int_equal(pt_signals_install(NULL), 0);
    struct pollfd p = {.fd = pt_signal_fd(), .events = POLLIN};
    assert_true(p.fd >= 0);
    assert_int_equal(pt_signal_seen(), 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(pt_signal_seen(), SIGTERM);
    assert_int_equal(raise(SIGINT), 0);
    assert_int_equal(pt_signal_seen(), SIGINT);
    assert_int_equal(pt_signal_count(), 2);
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_int_equal(raise(SIGPIPE), 0);
    struct sigaction a;
    assert_int_equal(sigaction(SIGINT, NULL, &a), 0);
    assert_int_equal(a.sa_flags & SA_RESTART, 0);
    assert_int_equal(pt_signals_install(NULL), 0);
    assert_int_equal(pt_signal_seen(), 0);
    assert_int_equal(pt_signal_count(), 0);
    p.fd = pt_signal_fd();
    assert_int_equal(poll(&p, 1, 0), 0);
    pt_signals_forget();
}

static void the_descriptor_limit_goes_to_the_hard_one(void **state)
{
    (void)state;
    struct rlimit l;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
    l.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &l), 0);
    assert_int_equal(pt_fd_limit_raise(), (int64_t)l.rlim_max);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &l), 0);
    assert_int_equal(l.rlim_cur, l.rlim_max);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_shares_memory_and_gives_its_status),
        cmocka_unit_test(a_child_is_billed),
        cmocka_unit_test(a_running_child_is_seen_and_ended),
        cmocka_unit_test(a_stubborn_child_is_killed),
        cmocka_unit_test(a_child_begins_without_our_signals),
        cmocka_unit_test(signals_are_noted_and_interrupt),
        cmocka_unit_test(the_descriptor_limit_goes_to_the_hard_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
