/* test_search.c: the search for a rate, against paths that are known.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/rng.h"
#include "engine/search.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* A path that carries `capacity` per second and drops the rest, and a sender that cannot exceed
 * `generator`. `noise`: the capacity of a trial varies by so much. */
struct path {
    double capacity, generator, noise;
    double confirm_capacity; /* 0: as in short trials */
    unsigned hiccup_at;      /* this trial (from 1) loses `hiccup` whatever its rate; 0: none */
    double hiccup;
    unsigned fail_at; /* this trial ends with fail_with; 0: none */
    int fail_with;
    struct pt_rng rng;
    unsigned trials;
};

static int run(void *ctx, struct pt_trial *t, struct pt_err *e)
{
    struct path *p = ctx;
    if (++p->trials == p->fail_at)
        return pt_fail(e, p->fail_with, "the server is gone");
    double asked = t->rate > 0 ? t->rate : (double)INFINITY;
    double capacity =
        t->kind == PT_TRIAL_CONFIRM && p->confirm_capacity > 0 ? p->confirm_capacity : p->capacity;
    if (p->noise > 0)
        capacity *= 1 + p->noise * (2 * pt_rng_unit(&p->rng) - 1);
    t->sent_s = fmin(asked, p->generator);
    t->received_s = fmin(t->sent_s, capacity);
    if (p->trials == p->hiccup_at)
        t->received_s = fmin(t->received_s, t->sent_s * (1 - p->hiccup));
    t->loss_pct = 100 * (t->sent_s - t->received_s) / t->sent_s;
    return 0;
}

static struct pt_search search(struct path *p, double loss_pct)
{
    struct pt_search s;
    struct pt_search_limit l = {.given = true, .loss_pct = loss_pct};
    struct pt_err e = {0};
    int rc = pt_search(&s, &l, run, p, &e);
    if (rc < 0)
        fail_msg("%s", e.text);
    assert_int_equal(s.n, p->trials);
    assert_true(s.n <= PT_SEARCH_TRIALS + PT_SEARCH_CONFIRMS);
    return s;
}

static void assert_within(double found, double truth, double part)
{
    if (fabs(found - truth) > truth * part)
        fail_msg("found %.6g, the truth is %.6g", found, truth);
}

static void finds_a_known_capacity(void **state)
{
    (void)state;
    static const double capacities[] = {3, 100, 12345, 250e3, 999e3, 39e6};
    for (size_t i = 0; i < PT_COUNT(capacities); i++) {
        struct path p = {.capacity = capacities[i], .generator = 40e6};
        struct pt_search s = search(&p, 0.1);
        assert_true(s.found <= capacities[i] * 1.0011);
        assert_within(s.found, capacities[i], 0.012);
        assert_true(s.confirmed);
        assert_false(s.generator_limited);
        assert_int_equal(s.trial[0].kind, PT_TRIAL_FLOOD);
        assert_int_equal(s.trial[s.n - 1].kind, PT_TRIAL_CONFIRM);
        assert_int_equal(s.trial[s.n - 1].verdict, PT_TRIAL_OK);
    }
}

static void a_limit_of_zero_is_kept(void **state)
{
    (void)state;
    struct path p = {.capacity = 77777, .generator = 1e6};
    struct pt_search s = search(&p, 0);
    assert_true(s.found <= 77777);
    assert_within(s.found, 77777, 0.011);
}

/* A receiver that is overrun gets less done than it could. */
static int hurt(void *ctx, struct pt_trial *t, struct pt_err *e)
{
    struct path *p = ctx;
    int rc = run(ctx, t, e);
    if (rc == 0 && t->sent_s > p->capacity) {
        t->received_s = p->capacity * p->capacity / t->sent_s;
        t->loss_pct = 100 * (t->sent_s - t->received_s) / t->sent_s;
    }
    return rc;
}

static void a_flood_that_hurts_is_only_a_bound(void **state)
{
    (void)state;
    struct pt_search s;
    struct pt_search_limit l = {.given = true, .loss_pct = 0.1};
    struct path p = {.capacity = 400e3, .generator = 1e6};
    assert_int_equal(pt_search(&s, &l, hurt, &p, NULL), 0);
    assert_within(s.found, 400e3, 0.011);
    assert_true(s.confirmed && s.trial[0].received_s < 200e3);
}

static void noise_moves_the_answer_by_the_noise(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (unsigned i = 0; i < 200; i++) {
        struct path p = {.capacity = 250e3, .generator = 1e6, .noise = 0.03};
        pt_rng_init(&p.rng, seed + i);
        struct pt_search s = search(&p, 0.1);
        assert_within(s.found, 250e3, 0.06);
        assert_true(s.confirmed);
    }
}

static void one_hiccup_does_not_decide(void **state)
{
    (void)state;
    static const double sizes[] = {0.01, 0.04, 0.3, 0.9};
    for (size_t i = 0; i < PT_COUNT(sizes); i++) {
        for (unsigned at = 3; at < 9; at++) {
            struct path p = {
                .capacity = 250e3, .generator = 1e6, .hiccup_at = at, .hiccup = sizes[i]};
            assert_within(search(&p, 0.1).found, 250e3, 0.035);
        }
    }
}

static void the_generator_is_told_from_the_path(void **state)
{
    (void)state;
    struct path p = {.capacity = 1e9, .generator = 300e3};
    struct pt_search s = search(&p, 0.1);
    assert_within(s.found, 300e3, 0.001);
    assert_true(s.generator_limited && s.confirmed);
    assert_int_equal(s.n, 2);
}

/* Paced, this sender reaches only half of what it floods with. */
static int slow_pacer(void *ctx, struct pt_trial *t, struct pt_err *e)
{
    struct path *p = ctx;
    p->generator = t->rate > 0 ? 100e3 : 200e3;
    return run(ctx, t, e);
}

static void a_sender_that_is_slower_when_paced_is_marked(void **state)
{
    (void)state;
    struct path p = {.capacity = 190e3};
    struct pt_search_limit l = {.given = true, .loss_pct = 0.1};
    struct pt_search s;
    assert_int_equal(pt_search(&s, &l, slow_pacer, &p, NULL), 0);
    assert_within(s.found, 100e3, 0.02);
    assert_true(s.generator_limited && s.confirmed);
}

static void a_dead_path_gives_nothing(void **state)
{
    (void)state;
    struct path p = {.capacity = 0, .generator = 1e6};
    struct pt_search s = search(&p, 1);
    assert_true(!(s.found > 0) && !s.confirmed);
    assert_true(s.n <= PT_SEARCH_TRIALS);
}

static void a_confirmation_that_fails_steps_down(void **state)
{
    (void)state;
    struct path p = {.capacity = 250e3, .generator = 1e6, .confirm_capacity = 242e3};
    struct pt_search s = search(&p, 0.1);
    assert_true(s.confirmed && s.found <= 242e3 * 1.0011);
    assert_within(s.found, 242e3, 0.025);
    p = (struct path){.capacity = 250e3, .generator = 1e6, .confirm_capacity = 100e3};
    s = search(&p, 0.1);
    assert_false(s.confirmed);
    assert_within(s.found, 250e3, 0.011);
    unsigned confirms = 0;
    for (unsigned i = 0; i < s.n; i++)
        confirms += s.trial[i].kind == PT_TRIAL_CONFIRM;
    assert_int_equal(confirms, PT_SEARCH_CONFIRMS);
}

static void an_end_in_the_middle_keeps_what_is_known(void **state)
{
    (void)state;
    struct path p = {.capacity = 250e3, .generator = 1e6, .fail_at = 5, .fail_with = -EINTR};
    struct pt_search_limit l = {.given = true, .loss_pct = 0.1};
    struct pt_search s;
    struct pt_err e = {0};
    assert_int_equal(pt_search(&s, &l, run, &p, &e), -EINTR);
    assert_int_equal(s.n, 4);
    assert_true(s.found > 0 && !s.confirmed);
    p = (struct path){.capacity = 1, .generator = 2, .fail_at = 1, .fail_with = -EPIPE};
    assert_int_equal(pt_search(&s, &l, run, &p, &e), -EPIPE);
    assert_int_equal(s.n, 0);
    assert_string_equal(e.text, "the server is gone");
}

static void reads_and_prints_the_limit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double pct;
    } good[] = {{"loss<=0.1%", 0.1}, {"loss<=0", 0}, {"loss<=99.9%", 99.9}, {"loss<=2", 2}};
    for (size_t i = 0; i < PT_COUNT(good); i++) {
        struct pt_search_limit l, again;
        struct pt_buf out;
        assert_int_equal(pt_search_kind.parse(good[i].text, &l, NULL), 0);
        assert_true(l.given && fabs(l.loss_pct - good[i].pct) < 1e-12);
        pt_buf_init(&out, 64);
        pt_search_kind.print(&l, &out);
        assert_int_equal(pt_search_kind.parse(pt_buf_str(&out), &again, NULL), 0);
        assert_true(fabs(again.loss_pct - l.loss_pct) < 1e-12);
        pt_buf_fini(&out);
    }
    static const char *const bad[] = {
        "",         "0.1%",        "loss",     "loss<=",    "loss<0.1%",   "loss<=-1", "loss<=100",
        "loss<=x%", "loss<=0.1%x", "p99<=5ms", "loss<=nan", "loss<=0.1%%", " loss<=1"};
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        struct pt_search_limit l;
        struct pt_err e = {0};
        assert_int_equal(pt_search_kind.parse(bad[i], &l, &e), -EINVAL);
        assert_true(strstr(e.text, "expected") != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_a_known_capacity),
        cmocka_unit_test(a_limit_of_zero_is_kept),
        cmocka_unit_test(a_flood_that_hurts_is_only_a_bound),
        cmocka_unit_test(noise_moves_the_answer_by_the_noise),
        cmocka_unit_test(one_hiccup_does_not_decide),
        cmocka_unit_test(the_generator_is_told_from_the_path),
        cmocka_unit_test(a_sender_that_is_slower_when_paced_is_marked),
        cmocka_unit_test(a_dead_path_gives_nothing),
        cmocka_unit_test(a_confirmation_that_fails_steps_down),
        cmocka_unit_test(an_end_in_the_middle_keeps_what_is_known),
        cmocka_unit_test(reads_and_prints_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
