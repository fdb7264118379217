/* test_range.c: the addresses of a topology: private, free of the machine's routes, all different.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "wan/range.h"

#include <errno.h>
#include <string.h>

static struct pt_cidr cidr(const char *text)
{
    struct pt_cidr c;
    struct pt_err e = {0};
    assert_int_equal(pt_cidr_parse(&c, text, &e), 0);
    return c;
}

static void overlaps(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool yes;
    } cases[] = {
        {"10.0.0.0/8", "10.5.6.0/24", true},
        {"10.5.6.0/24", "10.5.7.0/24", false},
        {"10.5.6.0/23", "10.5.7.0/24", true},
        {"0.0.0.0/0", "10.5.7.0/24", false},
        {"10.5.7.9", "10.5.7.0/24", true},
        {"10.5.8.9", "10.5.7.0/24", false},
        {"fd00::/8", "fd77:7069:746f::/64", true},
        {"fd00::/64", "fd00:0:0:1::/64", false},
        {"::/0", "fd00::/64", false},
        {"172.16.0.0/12", "172.31.0.0/24", true},
        {"172.16.0.0/12", "172.32.0.0/24", false},
    };
    for (size_t i = 0; i < PT_COUNT(cases); i++) {
        struct pt_cidr a = cidr(cases[i].a), b = cidr(cases[i].b);
        assert_int_equal(pt_range_overlaps(&a, &b), cases[i].yes);
        assert_int_equal(pt_range_overlaps(&b, &a), cases[i].yes);
    }
    struct pt_cidr four = cidr("253.0.0.0/8"), six = cidr("fd00::/8");
    assert_false(pt_range_overlaps(&four, &six));
}

static void steps_aside(void **state)
{
    (void)state;
    static const struct {
        const char *taken[4];
        size_t n;
        const char *inside; /* where the range must lie */
    } cases[] = {
        {{0}, 0, "10.0.0.0/8"},
        {{"10.0.0.0/8"}, 1, "172.16.0.0/12"},
        {{"10.0.0.0/8", "172.16.0.0/12"}, 2, "192.168.0.0/16"},
        {{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}, 3, "198.18.0.0/15"},
        {{0}, 0, "fd77:7069:746f::/48"},
        {{"fd00::/8"}, 1, "2001:2::/48"},
    };
    for (size_t i = 0; i < PT_COUNT(cases); i++) {
        struct pt_cidr taken[4], range, inside = cidr(cases[i].inside);
        struct pt_err e = {0};
        for (size_t k = 0; k < cases[i].n; k++)
            taken[k] = cidr(cases[i].taken[k]);
        for (unsigned first = 0; first < 65536; first += 251) {
            assert_int_equal(pt_range_choose(&range, inside.family, taken, cases[i].n, first, &e),
                             0);
            assert_true(pt_range_overlaps(&range, &inside));
            assert_int_equal(range.bits, inside.family == AF_INET ? 24 : 64);
            for (size_t k = 0; k < cases[i].n; k++)
                assert_false(pt_range_overlaps(&range, &taken[k]));
        }
    }
}

static void says_when_none_is_free(void **state)
{
    (void)state;
    const struct pt_cidr taken[] = {cidr("10.0.0.0/8"), cidr("172.16.0.0/12"),
                                    cidr("192.168.0.0/16"), cidr("198.18.0.0/15")};
    struct pt_cidr range;
    struct pt_err e = {0};
    assert_int_equal(pt_range_choose(&range, AF_INET, taken, 4, 9, &e), -EADDRNOTAVAIL);
    assert_non_null(strstr(e.text, "IPv4"));
}

static void the_routes_of_this_machine_are_read(void **state)
{
    (void)state;
    struct pt_cidr range;
    struct pt_err e = {0};
    assert_int_equal(pt_range_free(&range, AF_INET, 1, &e), 0);
    assert_int_equal(range.bits, 24);
}

static void hosts_of_a_range(void **state)
{
    (void)state;
    char text[PT_ADDR_TEXT];
    struct pt_addr a;
    struct pt_cidr four = cidr("10.5.6.0/24"), six = cidr("fd77:7069:746f:9::/64");
    pt_range_host(&a, &four, 250);
    assert_string_equal(pt_addr_print(&a, text), "10.5.6.250:0");
    pt_range_host(&a, &six, 1);
    assert_string_equal(pt_addr_print_ip(&a, text), "fd77:7069:746f:9::1");
}

static void loopback_hosts_are_nobodys_localhost(void **state)
{
    (void)state;
    struct pt_addr a, b;
    for (unsigned seed = 0; seed < 70000; seed += 17) {
        pt_range_loopback(&a, seed, 1);
        pt_range_loopback(&b, seed + 1, 1);
        const uint8_t *ip = (const uint8_t *)&a.v4.sin_addr;
        assert_true(ip[0] == 127 && ip[1] >= 1 && ip[1] <= 254 && ip[3] == 1);
        assert_true(pt_addr_is_loopback(&a));
        assert_false(pt_addr_same_ip(&a, &b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlaps),
        cmocka_unit_test(steps_aside),
        cmocka_unit_test(says_when_none_is_free),
        cmocka_unit_test(the_routes_of_this_machine_are_read),
        cmocka_unit_test(hosts_of_a_range),
        cmocka_unit_test(loopback_hosts_are_nobodys_localhost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
