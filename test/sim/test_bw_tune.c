/* test_bw_tune.c: the block size is found by measurement, in virtual time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "workload/bw.h"

#include <string.h>

/* A path that carries each block size and method at a known rate, in bytes per ns. */
struct path {
    size_t best_block;
    enum pt_bulk_method best_how;
    bool slow_start; /* the first 100 ms carry a tenth */
    bool joins;      /* the sender may share the receiver's CPU, */
    double beside;   /* which carries so much then */
};

static double carries(const struct path *p, const struct pt_bw_tuner *t, pt_ns now)
{
    double rate = 5;
    if (t->block == p->best_block && t->how == p->best_how)
        rate = 10;
    if (t->beside)
        rate = p->beside;
    return p->slow_start && now < 100 * PT_MS ? rate / 10 : rate;
}

static void run(const struct path *p, struct pt_bw_tuner *t, pt_ns warmup)
{
    struct pt_bw_opts o = {.zerocopy = PT_BW_AUTO};
    pt_bw_tune_init(t, &o, 0, p->joins, warmup);
    pt_ns now = 1;
    while (!t->settled && now < warmup) {
        pt_ns took = (pt_ns)((double)t->block / carries(p, t, now));
        now += took > 0 ? took : 1;
        (void)pt_bw_tune(t, now, t->block);
    }
}

static void finds_the_best_block(void **state)
{
    (void)state;
    static const size_t blocks[] = {64 << 10, 128 << 10, 256 << 10, 512 << 10,
                                    1 << 20,  2 << 20,   4 << 20};
    for (size_t i = 0; i < PT_COUNT(blocks); i++) {
        struct pt_bw_tuner t;
        run(&(struct path){.best_block = blocks[i], .slow_start = true}, &t, PT_S);
        assert_true(t.settled);
        assert_int_equal(t.block, blocks[i]);
        assert_int_equal(t.how, PT_BULK_WRITE);
    }
}

static void finds_the_best_method(void **state)
{
    (void)state;
    struct pt_bw_tuner t;
    run(&(struct path){.best_block = 1 << 20, .best_how = PT_BULK_SENDFILE}, &t, PT_S);
    assert_true(t.settled);
    assert_int_equal(t.how, PT_BULK_SENDFILE);
    char text[PT_WORKER_NOTE];
    pt_bw_tune_text(&t, text, sizeof(text));
    assert_non_null(strstr(text, "sendfile"));
}

static void goes_over_to_the_receivers_cpu_where_that_carries_more(void **state)
{
    (void)state;
    struct pt_bw_tuner t;
    run(&(struct path){.best_block = 1 << 20, .joins = true, .beside = 11}, &t, PT_S);
    assert_true(t.settled && t.beside);
    run(&(struct path){.best_block = 1 << 20, .joins = true, .beside = 9}, &t, PT_S);
    assert_true(t.settled && !t.beside);
    assert_int_equal(t.block, 1 << 20);
    run(&(struct path){.best_block = 1 << 20, .beside = 11}, &t, PT_S);
    assert_true(t.settled && !t.beside);
}

static void a_short_warm_up_measures_nothing(void **state)
{
    (void)state;
    struct pt_bw_opts o = {.zerocopy = PT_BW_AUTO};
    struct pt_bw_tuner t;
    pt_bw_tune_init(&t, &o, 0, false, 10 * PT_MS);
    assert_true(t.settled);
    pt_bw_tune_init(&t, &o, 0, false, 0);
    assert_true(t.settled);
    assert_true(t.block > 0);
}

static void what_was_asked_for_is_used(void **state)
{
    (void)state;
    struct pt_bw_opts o = {.zerocopy = PT_BW_SPLICE};
    struct pt_bw_tuner t;
    pt_bw_tune_init(&t, &o, 12345, false, PT_S);
    assert_true(t.settled);
    assert_int_equal(t.block, 12345);
    assert_int_equal(t.how, PT_BULK_SPLICE);
    o.zerocopy = PT_BW_OFF;
    pt_bw_tune_init(&t, &o, 0, false, PT_S);
    for (unsigned i = 0; i < t.n; i++)
        assert_int_equal(t.c[i].how, PT_BULK_WRITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_best_block),
        cmocka_unit_test(finds_the_best_method),
        cmocka_unit_test(goes_over_to_the_receivers_cpu_where_that_carries_more),
        cmocka_unit_test(a_short_warm_up_measures_nothing),
        cmocka_unit_test(what_was_asked_for_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
