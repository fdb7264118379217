/* test_boost.c: a load that grows by steps, against servers that are known.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "engine/boost.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define STEPS 1024

/* A server that does `per_connection` per connection or all of the rate, up to `capacity`; p99 is
 * 1 ms and grows without bound as the load passes the capacity. */
struct server {
    double per_connection, capacity;
    unsigned break_at, fail_at; /* steps from 1; 0: none */
    unsigned n, best;           /* steps judged; which is the best, from 0 */
    struct pt_step step[STEPS];
};

static int run(void *ctx, struct pt_step *s, struct pt_err *e)
{
    struct server *v = ctx;
    if (v->n + 1 == v->fail_at)
        return pt_fail(e, -EINTR, "interrupted");
    double offered = s->rate > 0 ? s->rate : s->connections * v->per_connection;
    s->yield_s = fmin(offered, v->capacity);
    s->p99_us = offered > v->capacity ? 1000 * offered / v->capacity * 10 : 1000;
    s->broken = v->n + 1 == v->break_at;
    return 0;
}

static void judged(void *ctx, const struct pt_step *s, bool best)
{
    struct server *v = ctx;
    assert_true(v->n < STEPS);
    if (best)
        v->best = v->n;
    v->step[v->n++] = *s;
}

static void boost(struct server *v, const struct pt_boost_spec *b)
{
    struct pt_err e = {0};
    if (pt_boost(b, run, judged, v, &e) < 0)
        fail_msg("%s", e.text);
}

static struct pt_boost_spec by_connections(uint32_t n)
{
    return (struct pt_boost_spec){.by = {.connections = n, .every = PT_S, .until_flat = true},
                                  .connections = n,
                                  .connections_max = 60000};
}

static void connections_grow_until_flat(void **state)
{
    (void)state;
    struct server v = {.per_connection = 10, .capacity = 4500};
    struct pt_boost_spec b = by_connections(100);
    boost(&v, &b);
    /* 1000 … 4000, 4500, 4500 */
    assert_int_equal(v.n, 6);
    assert_int_equal(v.best, 4);
    assert_int_equal(v.step[4].connections, 500);
    assert_int_equal(v.step[4].verdict, PT_STEP_PAYS);
    assert_int_equal(v.step[5].verdict, PT_STEP_FLAT);
}

/* Late steps add less than 5 % of the load: they pay as long as the server follows. */
static void small_steps_of_a_large_load_still_pay(void **state)
{
    (void)state;
    struct server v = {.per_connection = 1, .capacity = 50.5e3};
    struct pt_boost_spec b = {.by = {.rate = {.per_s = 1000}, .every = PT_S, .until_flat = true},
                              .connections = 8,
                              .rate = 1000,
                              .connections_max = 100};
    boost(&v, &b);
    assert_int_equal(v.step[v.best].verdict, PT_STEP_PAYS);
    assert_true(v.step[v.best].rate > 49.9e3 && v.step[v.best].rate < 52e3);
    assert_int_equal(v.step[v.n - 1].verdict, PT_STEP_FLAT);
    assert_int_equal(v.step[v.n - 1].connections, 8);
}

static void p99_ends_it_and_is_not_the_best(void **state)
{
    (void)state;
    struct server v = {.capacity = 95e3};
    struct pt_boost_spec b = {
        .by = {.rate = {.per_s = 10e3}, .every = PT_S, .until_p99 = 5 * PT_MS},
        .connections = 1,
        .rate = 10e3,
        .connections_max = 1};
    boost(&v, &b);
    assert_int_equal(v.n, 10);
    assert_int_equal(v.step[9].verdict, PT_STEP_P99);
    assert_int_equal(v.best, 8);
}

static void without_flat_little_gain_goes_on(void **state)
{
    (void)state;
    struct server v = {.per_connection = 10, .capacity = 1000};
    struct pt_boost_spec b = by_connections(50);
    b.by.until_flat = false;
    b.by.until_p99 = 30 * PT_MS;
    boost(&v, &b);
    /* 500, 1000 (p99 1 ms), then 1000 with p99 15, 20, 25, 30, 35 ms */
    assert_int_equal(v.n, 7);
    assert_int_equal(v.best, 1);
    assert_int_equal(v.step[2].verdict, PT_STEP_HOLDS);
    assert_int_equal(v.step[6].verdict, PT_STEP_P99);
}

static void the_first_step_is_the_best_there_is(void **state)
{
    (void)state;
    struct server v = {.per_connection = 10, .capacity = 100};
    struct pt_boost_spec b = by_connections(100);
    b.by.until_p99 = 2 * PT_MS;
    boost(&v, &b);
    assert_int_equal(v.n, 1);
    assert_int_equal(v.best, 0);
    assert_int_equal(v.step[0].verdict, PT_STEP_P99);
}

static void the_connections_there_are_end_it(void **state)
{
    (void)state;
    struct server v = {.per_connection = 10, .capacity = 1e9};
    struct pt_boost_spec b = by_connections(100);
    b.connections_max = 450;
    boost(&v, &b);
    assert_int_equal(v.n, 4);
    assert_int_equal(v.step[3].connections, 400);
    assert_int_equal(v.best, 3);
}

static void it_ends_at_all(void **state)
{
    (void)state;
    struct server v = {.per_connection = 1, .capacity = 1e18};
    struct pt_boost_spec b = {.by = {.rate = {.per_s = 1}, .every = PT_S, .until_p99 = PT_S},
                              .connections = 1,
                              .rate = 1,
                              .connections_max = 1};
    boost(&v, &b);
    assert_int_equal(v.n, PT_BOOST_STEPS_MAX);
}

static void a_broken_step_ends_it(void **state)
{
    (void)state;
    struct server v = {.per_connection = 10, .capacity = 1e9, .break_at = 3};
    struct pt_boost_spec b = by_connections(100);
    boost(&v, &b);
    assert_int_equal(v.n, 3);
    assert_int_equal(v.best, 1);
    assert_int_equal(v.step[2].verdict, PT_STEP_BROKEN);
    v = (struct server){.per_connection = 10, .capacity = 1e9, .fail_at = 3};
    struct pt_err e = {0};
    assert_int_equal(pt_boost(&b, run, judged, &v, &e), -EINTR);
    assert_int_equal(v.n, 2);
}

/* ---- the first step */

static const struct pt_plan_form probe = {
    .manual = {.command = "probe", .summary = "a probe", .usage = "[HOST]"}};

static struct pt_boost_spec begin(int argc, const char *const *argv)
{
    struct pt_plan p;
    struct pt_boost_spec b;
    struct pt_err e = {0};
    assert_int_equal(pt_plan_init(&p, &probe, NULL), 0);
    if (pt_plan_parse(&p, argc, argv, &e) < 0)
        fail_msg("%s", e.text);
    pt_boost_begin(&b, &p, 5000);
    pt_plan_fini(&p);
    return b;
}

#define BEGIN(...)                                                                                 \
    begin((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                           \
          (const char *[]){__VA_ARGS__})

static void the_first_step_is_what_was_given_or_one_step(void **state)
{
    (void)state;
    struct pt_boost_spec b = BEGIN("--boost=conns:100");
    assert_int_equal(b.connections, 100);
    assert_true(!(b.rate > 0) && b.by.until_flat);
    b = BEGIN("--boost=conns:100", "-c7");
    assert_int_equal(b.connections, 7);
    b = BEGIN("--boost=rate:50k", "-c7");
    assert_int_equal(b.connections, 7);
    assert_true(fabs(b.rate - 50e3) < 1e-6);
    b = BEGIN("--boost=rate:50k,conns:3", "-r", "20k");
    assert_true(fabs(b.rate - 20e3) < 1e-6);
    assert_int_equal(b.connections, 3);
    b = BEGIN("--boost=conns:100000");
    assert_int_equal(b.connections, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_grow_until_flat),
        cmocka_unit_test(small_steps_of_a_large_load_still_pay),
        cmocka_unit_test(p99_ends_it_and_is_not_the_best),
        cmocka_unit_test(without_flat_little_gain_goes_on),
        cmocka_unit_test(the_first_step_is_the_best_there_is),
        cmocka_unit_test(the_connections_there_are_end_it),
        cmocka_unit_test(it_ends_at_all),
        cmocka_unit_test(a_broken_step_ends_it),
        cmocka_unit_test(the_first_step_is_what_was_given_or_one_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
