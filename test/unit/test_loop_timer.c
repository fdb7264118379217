/* test_loop_timer.c: timers and deadlines of the loop, and the start-up probe.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "loop_harness.h"

#include "base/rng.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct probe_timer {
    struct pt_timer timer;
    struct pt_loop *loop;
    unsigned fired;
    pt_ns due;
    struct probe_timer *cancel;
    pt_ns again; /* set itself this much later; 0: no */
};

static pt_ns last_due;
static unsigned fired, disorder;

static void fire(struct pt_timer *t, pt_ns due)
{
    struct probe_timer *p = t->ctx;
    p->fired++;
    fired++;
    disorder += due < last_due;
    last_due = due;
    assert_int_equal(due, p->due);
    assert_true(pt_loop_now(p->loop) >= due);
    assert_false(pt_timer_active(t));
    if (p->cancel)
        pt_timer_cancel(p->loop, &p->cancel->timer);
    if (p->again) {
        p->due = due + p->again;
        assert_int_equal(pt_timer_set(p->loop, t, p->due), 0);
    }
}

static void set(struct probe_timer *p, struct pt_loop *l, pt_ns due)
{
    p->timer.fn = fire;
    p->timer.ctx = p;
    p->loop = l;
    p->due = due;
    assert_int_equal(pt_timer_set(l, &p->timer, due), 0);
    assert_true(pt_timer_active(&p->timer));
}

static void start_over(void)
{
    last_due = 0;
    fired = disorder = 0;
}

/* Random instants, a third moved, a third cancelled: what is left fires once and in order. */
static void many_fire_in_order(void **state)
{
    enum { COUNT = 20000 };
    struct pt_loop *l = loop_of(state, 256, 8);
    struct probe_timer *t = calloc(COUNT, sizeof(*t));
    assert_non_null(t);
    struct pt_rng rng;
    pt_rng_init(&rng, 42);
    start_over();
    pt_ns base = pt_clock_now();
    for (int i = 0; i < COUNT; i++)
        set(&t[i], l, base + (pt_ns)pt_rng_below(&rng, 20 * PT_MS));
    for (int i = 0; i < COUNT; i += 3)
        set(&t[i], l, base + (pt_ns)pt_rng_below(&rng, 20 * PT_MS));
    for (int i = 1; i < COUNT; i += 3) {
        pt_timer_cancel(l, &t[i].timer);
        pt_timer_cancel(l, &t[i].timer);
        assert_false(pt_timer_active(&t[i].timer));
    }
    unsigned expected = 0;
    for (int i = 0; i < COUNT; i++)
        expected += i % 3 != 1;
    UNTIL(l, fired == expected);
    assert_int_equal(disorder, 0);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(t[i].fired, i % 3 != 1);
    assert_true(pt_clock_now() >= last_due);
    free(t);
    pt_loop_free(l);
}

static void cancel_inside_a_callback(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    struct probe_timer a = {0}, b = {0};
    start_over();
    pt_ns past = pt_clock_now() - PT_MS;
    set(&a, l, past);
    set(&b, l, past + 1);
    a.cancel = &b;
    UNTIL(l, a.fired == 1);
    settle(l);
    assert_int_equal(b.fired, 0);
    pt_loop_free(l);
}

static void one_in_the_past_does_not_starve_the_rest(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    int fds[2];
    pair(UDP4, fds);
    struct sink s = {0};
    struct probe_timer late = {.again = 1};
    start_over();
    set(&late, l, pt_clock_now() - PT_S);
    sink_start(&s, l, fds[0], PT_RECV_DGRAM);
    send_now(fds[1], "x", 1);
    UNTIL(l, s.calls == 1);
    assert_true(late.fired > 0);
    pt_timer_cancel(l, &late.timer);
    pt_recv_stop(l, &s.recv);
    close_pair(fds);
    pt_loop_free(l);
}

static void a_timer_ends_an_endless_wait(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    int fds[2];
    pair(UDP4, fds);
    struct sink s = {0};
    for (int with_recv = 0; with_recv < 2; with_recv++) {
        struct probe_timer t = {0};
        start_over();
        if (with_recv)
            sink_start(&s, l, fds[0], PT_RECV_DGRAM);
        set(&t, l, pt_clock_now() + 2 * PT_MS);
        while (t.fired == 0)
            assert_true(pt_loop_step(l, PT_NS_MAX) >= 0);
        assert_true(pt_loop_now(l) >= t.due);
        assert_true(pt_loop_now(l) < t.due + PT_S);
    }
    pt_recv_stop(l, &s.recv);
    close_pair(fds);
    pt_loop_free(l);
}

static void timers_run_beside_constant_traffic(void **state)
{
    struct pt_loop *l = loop_of(state, 256, 8);
    int fds[2];
    pair(UDP4, fds);
    struct sink s = {0};
    struct probe_timer t = {.again = 50 * PT_US};
    start_over();
    sink_start(&s, l, fds[0], PT_RECV_DGRAM);
    set(&t, l, pt_clock_now());
    for (int i = 0; i < 100000 && t.fired < 20; i++) {
        send_now(fds[1], "x", 1);
        assert_true(pt_loop_step(l, PT_NS_MAX) >= 0);
    }
    assert_true(t.fired >= 20);
    pt_timer_cancel(l, &t.timer);
    pt_recv_stop(l, &s.recv);
    close_pair(fds);
    pt_loop_free(l);
}

/* Waking early and polling makes the deadline exact: the best of many is within a few us even on a
 * machine that does other things. */
static void spinning_before_a_deadline_is_exact(void **state)
{
    const struct setting *set_ = *state;
    const struct pt_loop_spec spec = {
        .backend = set_->backend, .wait = set_->wait, .spin_before_ns = 100 * PT_US};
    struct pt_loop *l;
    assert_int_equal(pt_loop_new(&l, &spec, NULL), 0);
    int fds[2];
    pair(UDP4, fds);
    struct sink s = {0};
    sink_start(&s, l, fds[0], PT_RECV_DGRAM);
    pt_ns best = PT_S;
    for (int i = 0; i < 2000 && best >= 5 * PT_US; i++) {
        pt_ns deadline = pt_clock_now() + 500 * PT_US;
        assert_int_equal(pt_loop_step(l, deadline), 0);
        pt_ns late = pt_loop_now(l) - deadline;
        assert_true(late >= 0);
        best = late < best ? late : best;
    }
    assert_true(best < 5 * PT_US);
    /* What arrives while it polls is delivered. */
    send_now(fds[1], "x", 1);
    assert_int_equal(pt_loop_step(l, pt_clock_now() + 50 * PT_US), 1);
    assert_int_equal(s.calls, 1);
    pt_recv_stop(l, &s.recv);
    close_pair(fds);
    pt_loop_free(l);
}

static void probe_is_quick_and_gives_its_reason(void **state)
{
    const struct setting *s = *state;
    pt_ns best = PT_S;
    for (int i = 0; i < 3 || (i < 50 && best >= 30 * PT_MS); i++) {
        char reason[160] = "";
        pt_ns start = pt_clock_now();
        enum pt_backend b = pt_loop_choose(s->wait, 64, reason, sizeof(reason));
        pt_ns took = pt_clock_now() - start;
        best = took < best ? took : best;
        assert_true(b == PT_BACKEND_EPOLL || b == PT_BACKEND_URING);
        if (i == 0)
            print_message("# %s (took %.1f ms)\n", reason, (double)took / 1e6);
        assert_non_null(strstr(reason, "us"));
        assert_ptr_equal(strstr(reason, b == PT_BACKEND_URING ? "io_uring:" : "epoll:"), reason);
    }
    assert_true(best < 30 * PT_MS);
    /* A large size, no room for the reason. */
    pt_loop_choose(s->wait, (size_t)1 << 30, NULL, 0);
    pt_loop_choose(s->wait, 0, NULL, 0);
}

static void auto_makes_a_loop(void **state)
{
    const struct setting *s = *state;
    const struct pt_loop_spec spec = {.wait = s->wait};
    struct pt_loop *l;
    struct pt_err e = {0};
    assert_int_equal(pt_loop_new(&l, &spec, &e), 0);
    assert_true(!strcmp(pt_loop_name(l), "epoll") || !strcmp(pt_loop_name(l), "io_uring"));
    pt_loop_free(l);
    const struct pt_loop_spec odd = {.recv_count = 3}, huge = {.ops = 1u << 30};
    assert_int_equal(pt_loop_new(&l, &odd, &e), -EINVAL);
    assert_non_null(strstr(e.text, "power of two"));
    assert_int_equal(pt_loop_new(&l, &huge, &e), -EINVAL);
}

/* Makes io_uring_setup fail in this process from now on. */
static int forbid_io_uring(int err)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)err),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog prog = {.len = PT_COUNT(code), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* Exit status of a process in which io_uring is forbidden; 0: everything as it should be. */
static int forbidden_life(int err, const char *word, enum pt_wait wait)
{
    struct pt_loop *l;
    struct pt_err e = {0};
    char reason[200] = "";
    const struct pt_loop_spec asked = {.backend = PT_BACKEND_URING, .wait = wait};
    const struct pt_loop_spec any = {.wait = wait};
    if (forbid_io_uring(err) < 0)
        return 1;
    if (pt_loop_new(&l, &asked, &e) != -err || !strstr(e.text, word))
        return 2;
    if (pt_loop_choose(wait, 64, reason, sizeof(reason)) != PT_BACKEND_EPOLL)
        return 3;
    if (strncmp(reason, "epoll: io_uring: ", 17) != 0 || !strstr(reason, word))
        return 4;
    if (pt_loop_new(&l, &any, &e) < 0 || strcmp(pt_loop_name(l), "epoll") != 0)
        return 5;
    pt_loop_free(l);
    return 0;
}

static void falls_back_where_io_uring_is_forbidden(void **state)
{
    const struct setting *s = *state;
    const struct {
        int err;
        const char *word;
    } cases[] = {{EPERM, "not permitted"}, {ENOSYS, "does not offer"}};
    for (size_t i = 0; i < PT_COUNT(cases); i++) {
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(forbidden_life(cases[i].err, cases[i].word, s->wait));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void)
{
    static const struct loop_test tests[] = {
        LOOP_TEST(many_fire_in_order),
        LOOP_TEST(cancel_inside_a_callback),
        LOOP_TEST(one_in_the_past_does_not_starve_the_rest),
        LOOP_TEST(a_timer_ends_an_endless_wait),
        LOOP_TEST(timers_run_beside_constant_traffic),
        LOOP_TEST(spinning_before_a_deadline_is_exact),
        LOOP_TEST(probe_is_quick_and_gives_its_reason),
        LOOP_TEST(auto_makes_a_loop),
        LOOP_TEST(falls_back_where_io_uring_is_forbidden),
    };
    return run_loop_tests(tests, PT_COUNT(tests));
}
