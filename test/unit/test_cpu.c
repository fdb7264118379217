/* test_cpu.c: CPU lists read and print the same; pinning does what it says.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "os/cpu.h"

#include <errno.h>
#include <string.h>

static void lists_go_both_ways(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
        unsigned n;
    } rows[] = {{"0", "0", 1},           {"0,2-3", "0,2-3", 3},     {"2-3,0", "2-3,0", 3},
                {"1,1,0-1", "1,0", 2},   {"5-5", "5", 1},           {"1023", "1023", 1},
                {"0,1,2,4", "0-2,4", 4}, {"0-1023", "0-1023", 1024}};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_cpu_list l;
        char out[64];
        assert_int_equal(pt_cpu_parse(&l, rows[i].in, NULL), 0);
        assert_int_equal(l.n, rows[i].n);
        assert_string_equal(pt_cpu_print(&l, out, sizeof(out)), rows[i].out);
    }
}

static void refuses_what_is_no_list(void **state)
{
    (void)state;
    static const char *const rows[] = {"",   ",",      "0,",   "3-2",  "-1",
                                       "a",  "0-",     " 1",   "1024", "0--1",
                                       "1 ", "0-1024", "0x10", "1.5",  "99999999999999999999"};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_cpu_list l;
        struct pt_err e = {0};
        assert_int_equal(pt_cpu_parse(&l, rows[i], &e), -EINVAL);
        assert_int_equal(l.n, 0);
        assert_non_null(strstr(e.text, "CPU list"));
    }
}

static void print_keeps_its_bounds(void **state)
{
    (void)state;
    struct pt_cpu_list l;
    assert_int_equal(pt_cpu_parse(&l, "0,2,4,6,8,10,12,14", NULL), 0);
    for (size_t cap = 4; cap < 32; cap++) {
        char out[40];
        memset(out, 'x', sizeof(out));
        pt_cpu_print(&l, out, cap);
        assert_true(strlen(out) < cap);
        assert_int_equal(out[cap], 'x');
        if (strcmp(out, "0,2,4,6,8,10,12,14") != 0)
            assert_string_equal(out + strlen(out) - 3, "...");
    }
}

static void pins_to_what_is_allowed(void **state)
{
    (void)state;
    struct pt_cpu_list all, now;
    struct pt_err e = {0};
    assert_int_equal(pt_cpu_allowed(&all, &e), 0);
    assert_true(all.n >= 1);
    unsigned last = all.cpu[all.n - 1];
    assert_int_equal(pt_cpu_pin(last, &e), 0);
    assert_int_equal(pt_cpu_current(), last);
    assert_int_equal(pt_cpu_allowed(&now, &e), 0);
    assert_int_equal(now.n, 1);
    assert_int_equal(pt_cpu_pin_list(&all, &e), 0);
    assert_int_equal(pt_cpu_allowed(&now, &e), 0);
    assert_int_equal(now.n, all.n);
    assert_int_equal(pt_cpu_pin(PT_CPU_MAX - 1, &e), -EINVAL);
    assert_non_null(strstr(e.text, "1023"));
    assert_int_equal(pt_cpu_pin(PT_CPU_MAX, &e), -EINVAL);
}

static void a_cpu_shares_its_own_core(void **state)
{
    (void)state;
    struct pt_cpu_list all, siblings;
    assert_int_equal(pt_cpu_allowed(&all, NULL), 0);
    assert_true(pt_cpu_same_core(all.cpu[0], all.cpu[0]));
    if (pt_cpu_siblings(&siblings, all.cpu[0]) == 0)
        assert_true(pt_cpu_has(&siblings, all.cpu[0]));
    assert_int_equal(pt_cpu_siblings(&siblings, PT_CPU_MAX), -ENOENT);
    assert_int_equal(siblings.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_go_both_ways),        cmocka_unit_test(refuses_what_is_no_list),
        cmocka_unit_test(print_keeps_its_bounds),    cmocka_unit_test(pins_to_what_is_allowed),
        cmocka_unit_test(a_cpu_shares_its_own_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
