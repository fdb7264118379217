/* test_cidr.c: prefixes match exactly what they say, also through mapped addresses.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/cidr.h"

#include <errno.h>
#include <string.h>

static void prefixes_match(void **state)
{
    (void)state;
    static const struct {
        const char *cidr, *addr;
        bool match;
    } rows[] = {
        {"10.0.0.0/8", "10.255.255.255", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "::ffff:10.1.2.3", true},
        {"10.1.2.3", "10.1.2.3", true},
        {"10.1.2.3", "10.1.2.2", false},
        {"10.1.2.2/31", "10.1.2.3", true},
        {"10.1.2.2/31", "10.1.2.4", false},
        {"0.0.0.0/0", "255.1.2.3", true},
        {"0.0.0.0/0", "::1", false},
        {"::/0", "2001:db8::1", true},
        {"::/0", "1.2.3.4", false},
        {"::/0", "::ffff:1.2.3.4", false},
        {"fc00::/7", "fdff::1", true},
        {"fd00::/8", "fc00::1", false},
        {"::1", "::1", true},
        {"::1", "::2", false},
        {"2001:db8::/33", "2001:db8:7fff::", true},
        {"2001:db8::/33", "2001:db8:8000::", false},
        {"::ffff:10.0.0.0/104", "10.2.3.4", true},
        {"::ffff:0:0/96", "9.9.9.9", true},
        {"::1", "unix:/x", false},
        {"0.0.0.0/0", "unix:@x", false},
    };
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_cidr c;
        struct pt_addr a;
        struct pt_err e = {0};
        if (pt_cidr_parse(&c, rows[i].cidr, &e) != 0)
            fail_msg("%s: %s", rows[i].cidr, e.text);
        assert_int_equal(pt_addr_parse(&a, rows[i].addr, 1, &e), 0);
        if (pt_cidr_match(&c, &a) != rows[i].match)
            fail_msg("%s against %s", rows[i].cidr, rows[i].addr);
    }
    struct pt_addr none = {.len = 0};
    struct pt_cidr zero = {0};
    assert_false(pt_cidr_match(&zero, &none));
}

static void refuses_what_is_no_prefix(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {{"", "expected an address"},
                {"/8", "expected an address"},
                {"10.0.0.0/", "from 0 to 32"},
                {"10.0.0.0/33", "from 0 to 32"},
                {"10.0.0.0/-1", "from 0 to 32"},
                {"10.0.0.0/8x", "from 0 to 32"},
                {"10.0.0.0/0008", "from 0 to 32"},
                {"::/129", "from 0 to 128"},
                {"10.0.0/8", "expected an address"},
                {"host/8", "expected an address"},
                {"10.0.0.1/8", "10.0.0.0/8"},
                {"fd00::1/64", "fd00::/64"},
                {"fe80::1%lo/64", "expected an address"},
                {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/1",
                 "expected an address"}};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_cidr c;
        struct pt_err e = {0};
        assert_int_equal(pt_cidr_parse(&c, rows[i].text, &e), -EINVAL);
        if (!strstr(e.text, rows[i].why))
            fail_msg("'%s': '%s' lacks '%s'", rows[i].text, e.text, rows[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_match),
        cmocka_unit_test(refuses_what_is_no_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
