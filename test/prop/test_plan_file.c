/* test_plan_file.c: random plans: what is printed parses to the same plan and prints the same text
 * again; and a plan that is damaged anywhere is taken whole or refused with a place.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/rng.h"
#include "model/plan_file.h"
#include "model/yaml.h"
#include "workload/list.h"

#include <string.h>

#define PLANS   400
#define DAMAGES 20

static const struct pt_plan_form *forms[8];
static struct pt_rng rng;
static struct pt_plan_file plan, again;

static unsigned below(unsigned n)
{
    return (unsigned)pt_rng_below(&rng, n);
}

static const char *one_of(const char *const *words, unsigned n)
{
    return words[below(n)];
}

#define ONE_OF(...)                                                                                \
    one_of((const char *const[]){__VA_ARGS__}, PT_COUNT(((const char *const[]){__VA_ARGS__})))

static void add_options(struct pt_buf *b)
{
    if (below(2))
        pt_buf_addf(b, ", connections: %u", 1 + below(5000));
    if (below(2))
        pt_buf_addf(b, ", duration: %u%s", 1 + below(900), ONE_OF("s", "ms", "m"));
    if (below(3) == 0)
        pt_buf_addf(b, ", warmup: %ums", below(5000));
    if (below(3) == 0)
        pt_buf_addf(b, ", size: %u%s", 1 + below(60), ONE_OF("", "k", "KiB"));
    if (below(3) == 0)
        pt_buf_addf(b, ", rate: %s", ONE_OF("5", "1.5M", "100k/s", "10gbit", "0.25"));
    if (below(4) == 0)
        pt_buf_addf(b, ", engine: %s", ONE_OF("epoll", "uring", "auto"));
    if (below(4) == 0)
        pt_buf_addf(b, ", expect: %s",
                    ONE_OF("errors==0", "['loss<=0.1%']", "[\"p99<5ms\", 'p50 < 1ms']",
                           "rx_bits_per_s>=1gbit"));
    if (below(4) == 0)
        pt_buf_addf(b, ", bind: %s", ONE_OF("[127.0.0.1, 127.0.0.2]", "\"::1\"", "10.0.0.1"));
    if (below(5) == 0)
        pt_buf_addf(b, ", ports: %u-%u", 1000 + below(100), 2000 + below(100));
    if (below(5) == 0)
        pt_buf_addf(b, ", %s: %s", ONE_OF("ipv4", "ipv6"), ONE_OF("true", "no", "on"));
    if (below(5) == 0)
        pt_buf_addf(b, ", cpus: \"%u,%u-%u\"", below(3), 4 + below(3), 8 + below(3));
    if (below(6) == 0)
        pt_buf_adds(b, ", boost: \"conns:10,every:2s,until:p99>5ms|flat\"");
    if (below(6) == 0)
        pt_buf_addf(b, ", timeout: %us", 1 + below(20));
}

static void add_test(struct pt_buf *b, const char *indent, unsigned number)
{
    pt_buf_addf(b, "%s- %s: {from: %s, to: %s", indent, pt_workloads[below(3)]->form.manual.command,
                ONE_OF("a", "b", "b-1", "b-2"), ONE_OF("a", "b-2"));
    if (below(2))
        pt_buf_addf(b, ", name: %s%u", ONE_OF("x", "\"it's: #\\\"\\\\\"y ", "'测试 '", "n-"),
                    number);
    add_options(b);
    pt_buf_adds(b, "}\n");
}

/* YAML takes `'测试 '7` for two scalars: such names are refused, and the plan is made anew. */
static void make(struct pt_buf *b)
{
    pt_buf_reset(b);
    if (below(2))
        pt_buf_addf(b, "name: %s\n", ONE_OF("x", "'a: b'", "\"# \\\\ \\\"\"", "带宽"));
    pt_buf_addf(b, "hosts: {a: {}, b: {count: %u}}\ntests:\n", 2 + below(5));
    for (unsigned i = 0, n = 1 + below(5); i < n; i++) {
        if (below(4)) {
            add_test(b, "  ", i);
            continue;
        }
        pt_buf_adds(b, "  - together:\n");
        for (unsigned k = 0; k <= below(3); k++)
            add_test(b, "      ", 100 + 10 * i + k);
    }
}

static int parse(struct pt_plan_file *f, const struct pt_buf *b, struct pt_err *e)
{
    return pt_plan_file_parse(f, "p", pt_buf_str(b), b->len, forms, e);
}

static void the_same(const struct pt_plan_file *a, const struct pt_plan_file *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->hosts, b->hosts);
    assert_int_equal(a->tests, b->tests);
    assert_int_equal(a->groups, b->groups);
    for (uint32_t i = 0; i < a->tests; i++) {
        const struct pt_plan_test *x = a->test[i], *y = b->test[i];
        assert_ptr_equal(x->plan.form, y->plan.form);
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->group, y->group);
        assert_int_equal(x->sender, y->sender);
        assert_int_equal(x->senders, y->senders);
        assert_int_equal(x->target, y->target);
        for (size_t s = 0; s < PT_COUNT(x->plan.sets); s++)
            assert_int_equal(x->plan.sets[s].given, y->plan.sets[s].given);
        json_t *p = pt_plan_params(&x->plan), *q = pt_plan_params(&y->plan);
        assert_true(json_equal(p, q));
        json_decref(p);
        json_decref(q);
    }
}

static void round_trip(void)
{
    struct pt_buf first, second;
    struct pt_err e = {0};
    pt_buf_init(&first, 1 << 20);
    pt_buf_init(&second, 1 << 20);
    pt_plan_file_print(&plan, &first);
    if (parse(&again, &first, &e) < 0)
        fail_msg("%s\n%s", e.text, pt_buf_str(&first));
    the_same(&plan, &again);
    assert_int_equal(pt_plan_file_check(&plan, NULL), pt_plan_file_check(&again, NULL));
    pt_plan_file_print(&again, &second);
    assert_string_equal(pt_buf_str(&first), pt_buf_str(&second));
    pt_plan_file_fini(&again);
    pt_buf_fini(&first);
    pt_buf_fini(&second);
}

static void printed_plans_parse_to_the_same(void **state)
{
    (void)state;
    struct pt_buf text;
    unsigned taken = 0;
    pt_buf_init(&text, 1 << 20);
    for (unsigned i = 0; i < PLANS; i++) {
        struct pt_err e = {0};
        make(&text);
        if (parse(&plan, &text, &e) < 0) {
            assert_non_null(strchr(e.text, ':'));
            continue;
        }
        taken++;
        round_trip();
        pt_plan_file_fini(&plan);
    }
    pt_buf_fini(&text);
    assert_true(taken > PLANS / 4);
}

static void damaged_plans_are_refused_with_a_place(void **state)
{
    (void)state;
    struct pt_buf text;
    pt_buf_init(&text, 1 << 20);
    for (unsigned i = 0; i < PLANS; i++) {
        make(&text);
        for (unsigned k = 0; k < DAMAGES; k++) {
            unsigned line = 0, column = 0;
            struct pt_err e = {0};
            text.bytes[below((unsigned)text.len)] = (char)below(256);
            if (parse(&plan, &text, &e) == 0) {
                round_trip();
                pt_plan_file_fini(&plan);
            } else if (sscanf(e.text, "p:%u:%u: ", &line, &column) != 2 || !line || !column) {
                fail_msg("%s", e.text);
            }
        }
    }
    pt_buf_fini(&text);
}

static int seed(void **state)
{
    (void)state;
    pt_rng_init(&rng, test_seed());
    for (size_t i = 0; pt_workloads[i]; i++)
        forms[i] = &pt_workloads[i]->form;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printed_plans_parse_to_the_same),
        cmocka_unit_test(damaged_plans_are_refused_with_a_place),
    };
    return cmocka_run_group_tests(tests, seed, NULL);
}
