/* test_tuple.c: every flow gets its own tuple, and the capacity is their exact number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/tuple.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct pt_ephemeral ephemeral = {.first = 32768, .last = 60999, .count = 28232};

static struct pt_addr parsed(const char *text)
{
    struct pt_addr a;
    struct pt_err e = {0};
    if (pt_addr_parse(&a, text, 7411, &e) != 0)
        fail_msg("%s", e.text);
    return a;
}

static struct pt_tuple_plan planned(const char *bind, const char *ports, const char *to)
{
    struct pt_addr d = parsed(to);
    struct pt_tuple_plan p;
    struct pt_err e = {0};
    if (pt_tuple_plan(&p, bind, ports, &d, 1, &ephemeral, &e) != 0)
        fail_msg("%s", e.text);
    return p;
}

static const char *source(const struct pt_tuple_plan *p, uint64_t n)
{
    static char text[PT_ADDR_TEXT];
    struct pt_tuple t;
    pt_tuple_at(p, n, &t);
    return pt_addr_print(&t.from, text);
}

static void nothing_asked_binds_nothing(void **state)
{
    (void)state;
    struct pt_tuple_plan p = planned(NULL, NULL, "10.0.0.1");
    assert_int_equal(p.capacity, 28232);
    assert_string_equal(source(&p, 0), "-");
    assert_string_equal(source(&p, 99999), "-");
    assert_int_equal(pt_tuple_check(&p, 28232, NULL), 0);
    struct pt_err e = {0};
    assert_int_equal(pt_tuple_check(&p, 28233, &e), -EADDRNOTAVAIL);
    assert_non_null(strstr(e.text,
                           "28233 connections do not fit: 1 source address x 28232 ephemeral "
                           "ports x 1 destination give 28232; --bind with 2 addresses"));
    p = planned(NULL, NULL, "unix:@x");
    assert_int_equal(pt_tuple_check(&p, 1000000000, NULL), 0);
    assert_string_equal(source(&p, 5), "-");
}

static void addresses_vary_before_ports(void **state)
{
    (void)state;
    struct pt_tuple_plan p = planned("127.0.0.1,127.0.1.254-127.0.2.1", "1000-1001", "127.0.0.1");
    static const char *const expected[] = {
        "127.0.0.1:1000", "127.0.1.254:1000", "127.0.1.255:1000", "127.0.2.0:1000",
        "127.0.2.1:1000", "127.0.0.1:1001",   "127.0.1.254:1001"};
    assert_int_equal(p.capacity, 10);
    for (size_t i = 0; i < PT_COUNT(expected); i++)
        assert_string_equal(source(&p, i), expected[i]);
    assert_string_equal(source(&p, 9), "127.0.2.1:1001");
    assert_string_equal(source(&p, 10), "127.0.0.1:1000");
}

static void without_ports_only_the_address_is_bound(void **state)
{
    (void)state;
    struct pt_tuple_plan p = planned("127.0.0.14/28", NULL, "127.0.0.1");
    assert_int_equal(p.capacity, 2 * 28232);
    assert_string_equal(source(&p, 0), "127.0.0.14:0");
    assert_string_equal(source(&p, 1), "127.0.0.15:0");
    assert_string_equal(source(&p, 2), "127.0.0.14:0");
}

static void without_addresses_only_the_port_is_bound(void **state)
{
    (void)state;
    struct pt_tuple_plan p = planned(NULL, "5000", "127.0.0.1");
    assert_int_equal(p.capacity, 1);
    assert_string_equal(source(&p, 0), "0.0.0.0:5000");
    p = planned(NULL, "65535", "::1");
    assert_string_equal(source(&p, 3), "[::]:65535");
}

static void ipv6_ranges(void **state)
{
    (void)state;
    struct pt_tuple_plan p = planned("fd00::ffff-fd00::1:0,fd00::2:0/127", "7-9", "fd00::99");
    assert_int_equal(p.capacity, 12);
    assert_string_equal(source(&p, 1), "[fd00::1:0]:7");
    assert_string_equal(source(&p, 3), "[fd00::2:1]:7");
    p = planned("fe80::1%lo", NULL, "fe80::2%lo");
    assert_string_equal(source(&p, 0), "[fe80::1%lo]:0");
}

static int order(const void *a, const void *b)
{
    const struct pt_tuple *x = a, *y = b;
    int c = pt_addr_cmp(&x->from, &y->from);
    return c ? c : (int)x->to - (int)y->to;
}

static void all_tuples_differ(void **state)
{
    (void)state;
    struct pt_addr to[3] = {parsed("10.0.0.1:1"), parsed("10.0.0.1:2"), parsed("10.0.0.2:1")};
    struct pt_tuple_plan p;
    assert_int_equal(pt_tuple_plan(&p, "10.9.0.0/29,10.8.0.7", "100-119", to, 3, &ephemeral, NULL),
                     0);
    assert_int_equal(p.capacity, 9 * 20 * 3);
    struct pt_tuple *t = calloc(p.capacity, sizeof(*t));
    assert_non_null(t);
    for (uint64_t i = 0; i < p.capacity; i++)
        pt_tuple_at(&p, i, &t[i]);
    assert_int_equal(t[0].to, 0);
    assert_int_equal(t[2].to, 2);
    assert_int_equal(t[3].to, 0);
    qsort(t, p.capacity, sizeof(*t), order);
    for (uint64_t i = 1; i < p.capacity; i++)
        assert_true(order(&t[i - 1], &t[i]) != 0);
    free(t);
}

static void bad_plans_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bind, *ports, *to, *why;
    } rows[] = {
        {"", NULL, "10.0.0.1", "host is missing"},
        {"10.0.0.5,", NULL, "10.0.0.1", "host is missing"},
        {"host", NULL, "10.0.0.1", "not a name"},
        {"10.0.0.5:80", NULL, "10.0.0.1", "--ports"},
        {"::1", NULL, "10.0.0.1", "destination is IPv4"},
        {"10.0.0.5", NULL, "::1", "destination is IPv6"},
        {"unix:@x", NULL, "10.0.0.1", "destination is IPv4"},
        {"10.0.0.5/33", NULL, "10.0.0.1", "prefix length"},
        {"10.0.0.5/", NULL, "10.0.0.1", "prefix length"},
        {"fd00::/90", NULL, "::1", "prefix length"},
        {"10.0.0.0/7", NULL, "10.0.0.1", "at most"},
        {"10.0.0.9-10.0.0.8", NULL, "10.0.0.1", "not a range"},
        {"10.0.0.9-", NULL, "10.0.0.1", "not a range"},
        {"10.0.0.9-::1", NULL, "10.0.0.1", "not a range"},
        {"fd00::1-fd01::1", NULL, "::1", "not a range"},
        {"10.0.0.0/24,10.0.0.9", NULL, "10.0.0.1", "twice"},
        {NULL, "", "10.0.0.1", "expected A-B"},
        {NULL, "0-5", "10.0.0.1", "expected A-B"},
        {NULL, "5-4", "10.0.0.1", "expected A-B"},
        {NULL, "5-65536", "10.0.0.1", "expected A-B"},
        {NULL, "1-2-3", "10.0.0.1", "expected A-B"},
        {NULL, "1-2,5", "10.0.0.1", "expected A-B"},
        {NULL, "-5", "10.0.0.1", "expected A-B"},
        {NULL, "a-b", "10.0.0.1", "expected A-B"},
        {"127.0.0.0/24", "7000-7500", "127.0.0.1", "127.0.0.1:7411 itself"},
        {"10.0.0.1", NULL, "unix:@x", "unix socket"},
    };
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_addr to = parsed(rows[i].to);
        struct pt_tuple_plan p;
        struct pt_err e = {0};
        assert_int_equal(pt_tuple_plan(&p, rows[i].bind, rows[i].ports, &to, 1, &ephemeral, &e),
                         -EINVAL);
        if (!strstr(e.text, rows[i].why))
            fail_msg("row %zu: '%s' lacks '%s'", i, e.text, rows[i].why);
    }
    struct pt_addr mixed[2] = {parsed("10.0.0.1"), parsed("::1")};
    struct pt_tuple_plan p;
    assert_int_equal(pt_tuple_plan(&p, NULL, NULL, mixed, 2, &ephemeral, NULL), -EINVAL);
}

static void the_system_has_ephemeral_ports(void **state)
{
    (void)state;
    struct pt_ephemeral p;
    pt_ephemeral_read(&p);
    assert_true(p.first >= 1 && p.first <= p.last);
    assert_true(p.count >= 1 && p.count <= (uint32_t)(p.last - p.first) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_asked_binds_nothing),
        cmocka_unit_test(addresses_vary_before_ports),
        cmocka_unit_test(without_ports_only_the_address_is_bound),
        cmocka_unit_test(without_addresses_only_the_port_is_bound),
        cmocka_unit_test(ipv6_ranges),
        cmocka_unit_test(all_tuples_differ),
        cmocka_unit_test(bad_plans_are_refused),
        cmocka_unit_test(the_system_has_ephemeral_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
