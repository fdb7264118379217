/* test_addr.c: what a person may write as a host, and what is refused with which reason.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static void hosts_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
        unsigned port;
        bool given, is_unix;
    } rows[] = {
        {"name", "name", 7411, false, false},
        {"name:80", "name", 80, true, false},
        {"a-b.c_d.example.", "a-b.c_d.example.", 7411, false, false},
        {"1.2.3.4", "1.2.3.4", 7411, false, false},
        {"1.2.3.4:5", "1.2.3.4", 5, true, false},
        {"::1", "::1", 7411, false, false},
        {"::", "::", 7411, false, false},
        {"[::1]", "::1", 7411, false, false},
        {"[::1]:65535", "::1", 65535, true, false},
        {"fe80::1%eth0", "fe80::1%eth0", 7411, false, false},
        {"[fe80::1%eth0.5]:1", "fe80::1%eth0.5", 1, true, false},
        {"::ffff:1.2.3.4", "::ffff:1.2.3.4", 7411, false, false},
        {"unix:/run/x:y", "/run/x:y", 0, false, true},
        {"unix:@name", "@name", 0, false, true},
    };
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_host h;
        struct pt_err e = {0};
        assert_int_equal(pt_host_parse(&h, rows[i].text, 7411, &e), 0);
        assert_string_equal(h.name, rows[i].name);
        assert_int_equal(h.port, rows[i].port);
        assert_int_equal(h.port_given, rows[i].given);
        assert_int_equal(h.unix_socket, rows[i].is_unix);
    }
}

static void bad_hosts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "host is missing"},
        {":80", "host is missing"},
        {"[]:80", "host is missing"},
        {"name:", "1 to 65535"},
        {"name:0", "1 to 65535"},
        {"name:65536", "1 to 65535"},
        {"name:-1", "1 to 65535"},
        {"name:+1", "1 to 65535"},
        {"name: 1", "1 to 65535"},
        {"name:80x", "1 to 65535"},
        {"name:99999999999999999999", "1 to 65535"},
        {"[::1", "expected [v6]"},
        {"[::1]80", "expected [v6]"},
        {"[name]:80", "no IPv6 address between"},
        {"[1.2.3.4]:80", "no IPv6 address between"},
        {"1:2:3", "IPv6"},
        {"::1::2", "IPv6"},
        {"1.2.3.4:5:6", "IPv6"},
        {"name%eth0", "zone"},
        {"http://name", "1 to 65535"},
        {"na me", "such bytes"},
        {"n\x1b[31m", "\\x1b"},
        {"n\xc3\xa4me", "such bytes"},
        {"fe80::1%", "interface"},
        {"fe80::1%a/b", "interface"},
        {"unix:", "needs a path"},
        {"unix:@", "needs a path"},
    };
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_host h;
        struct pt_addr_list l;
        struct pt_err e = {0};
        int rc = pt_host_parse(&h, rows[i].text, 7411, &e);
        if (rc == 0) /* an empty zone is found out one step later */
            rc = pt_addr_resolve(&l, &h, AF_UNSPEC, &e);
        assert_true(rc == -EINVAL || rc == -ENODEV);
        if (!strstr(e.text, rows[i].why))
            fail_msg("'%s': '%s' lacks '%s'", rows[i].text, e.text, rows[i].why);
    }
    char longname[400];
    memset(longname, 'a', sizeof(longname) - 1);
    longname[sizeof(longname) - 1] = 0;
    struct pt_host h;
    assert_int_equal(pt_host_parse(&h, longname, 1, NULL), -EINVAL);
    memcpy(longname, "unix:/", 6);
    longname[5 + 107] = 0;
    assert_int_equal(pt_host_parse(&h, longname, 1, NULL), 0);
    memcpy(longname + 5 + 107, "a", 2);
    assert_int_equal(pt_host_parse(&h, longname, 1, NULL), -EINVAL);
    longname[5] = '@';
    assert_int_equal(pt_host_parse(&h, longname, 1, NULL), 0);
}

static void printing_gives_what_parsing_takes(void **state)
{
    (void)state;
    static const char *const rows[] = {"1.2.3.4:5",
                                       "0.0.0.0:1",
                                       "255.255.255.255:65535",
                                       "[::1]:7411",
                                       "[2001:db8::]:9",
                                       "[fe80::1%lo]:7411",
                                       "[ff02::1%lo]:1",
                                       "unix:/run/pitot",
                                       "unix:@pitot",
                                       "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_addr a, b;
        char text[PT_ADDR_TEXT];
        struct pt_err e = {0};
        assert_int_equal(pt_addr_parse(&a, rows[i], 1, &e), 0);
        assert_string_equal(pt_addr_print(&a, text), rows[i]);
        pt_addr_from(&b, &a.sa, a.len);
        assert_int_equal(pt_addr_cmp(&a, &b), 0);
        for (size_t j = 0; j < i; j++) {
            assert_int_equal(pt_addr_parse(&b, rows[j], 1, NULL), 0);
            int ab = pt_addr_cmp(&a, &b), ba = pt_addr_cmp(&b, &a);
            assert_true((ab > 0 && ba < 0) || (ab < 0 && ba > 0));
        }
    }
    struct pt_addr none = {.len = 0}, odd;
    char text[PT_ADDR_TEXT];
    assert_string_equal(pt_addr_print(&none, text), "-");
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    pt_addr_from(&odd, (struct sockaddr *)&un, sizeof(sa_family_t));
    assert_string_equal(pt_addr_print(&odd, text), "unix:");
    memset(un.sun_path, 1, sizeof(un.sun_path));
    pt_addr_from(&odd, (struct sockaddr *)&un, sizeof(un));
    assert_true(strlen(pt_addr_print(&odd, text)) == 5 + sizeof(un.sun_path));
    struct sockaddr_in6 cut = {.sin6_family = AF_INET6};
    pt_addr_from(&odd, (struct sockaddr *)&cut, sizeof(cut) - 1);
    assert_int_equal(odd.len, 0);
    pt_addr_from(&odd, (struct sockaddr *)&cut, 4096);
    assert_int_equal(odd.len, 0);
}

static void names_resolve_with_their_family(void **state)
{
    (void)state;
    struct pt_host h;
    struct pt_addr_list l;
    struct pt_err e = {0};
    assert_int_equal(pt_host_parse(&h, "127.0.0.1:9", 1, &e), 0);
    assert_int_equal(pt_addr_resolve(&l, &h, AF_INET, &e), 0);
    assert_int_equal(l.n, 1);
    assert_int_equal(pt_addr_port(&l.addr[0]), 9);
    assert_int_equal(pt_addr_resolve(&l, &h, AF_INET6, &e), -EINVAL);
    assert_non_null(strstr(e.text, "IPv6 (-6) was asked for"));
    assert_int_equal(pt_host_parse(&h, "localhost", 77, &e), 0);
    assert_int_equal(pt_addr_resolve(&l, &h, AF_INET, &e), 0);
    assert_true(l.n >= 1);
    for (unsigned i = 0; i < l.n; i++) {
        assert_true(pt_addr_is_loopback(&l.addr[i]));
        assert_int_equal(pt_addr_port(&l.addr[i]), 77);
        assert_int_equal(pt_addr_family(&l.addr[i]), AF_INET);
    }
    assert_int_equal(pt_host_parse(&h, "unix:/x", 1, &e), 0);
    assert_int_equal(pt_addr_resolve(&l, &h, AF_INET, &e), -EINVAL);
    assert_int_equal(pt_addr_resolve(&l, &h, AF_UNSPEC, &e), 0);
    assert_int_equal(pt_addr_family(&l.addr[0]), AF_UNIX);
}

static void zones_are_checked(void **state)
{
    (void)state;
    struct pt_addr a;
    struct pt_err e = {0};
    assert_int_equal(pt_addr_parse(&a, "fe80::1", 1, &e), -EINVAL);
    assert_non_null(strstr(e.text, "needs its interface"));
    assert_int_equal(pt_addr_parse(&a, "fe80::1%no-such-if", 1, &e), -ENODEV);
    assert_non_null(strstr(e.text, "no-such-if"));
    assert_int_equal(pt_addr_parse(&a, "fe80::1%99999999", 1, &e), -ENODEV);
    assert_int_equal(pt_addr_parse(&a, "::1%lo", 1, &e), -EINVAL);
    assert_int_equal(pt_addr_parse(&a, "fe80::1%1", 1, &e), 0);
    assert_int_equal(a.v6.sin6_scope_id, 1);
    assert_int_equal(pt_addr_parse(&a, "name", 1, &e), -EINVAL);
    assert_non_null(strstr(e.text, "not a name"));
}

static struct pt_addr parsed(const char *text)
{
    struct pt_addr a;
    assert_int_equal(pt_addr_parse(&a, text, 1, NULL), 0);
    return a;
}

static void kinds_of_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool loopback, any, multicast;
    } rows[] = {{"127.0.0.1", true, false, false},
                {"127.255.0.9", true, false, false},
                {"128.0.0.1", false, false, false},
                {"::1", true, false, false},
                {"::ffff:127.0.0.5", true, false, false},
                {"0.0.0.0", false, true, false},
                {"::", false, true, false},
                {"::ffff:0.0.0.0", false, true, false},
                {"224.0.0.1", false, false, true},
                {"255.255.255.255", false, false, true},
                {"ff05::2", false, false, true},
                {"unix:/x", true, false, false},
                {"2001:db8::1", false, false, false}};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_addr a = parsed(rows[i].text);
        assert_int_equal(pt_addr_is_loopback(&a), rows[i].loopback);
        assert_int_equal(pt_addr_is_any(&a), rows[i].any);
        assert_int_equal(pt_addr_is_multicast(&a), rows[i].multicast);
    }
    struct pt_addr a = parsed("[::ffff:1.2.3.4]:9"), b = parsed("1.2.3.4:8"),
                   c = parsed("1.2.3.5:8");
    assert_true(pt_addr_same_ip(&a, &b));
    assert_false(pt_addr_same_ip(&b, &c));
    assert_true(pt_addr_cmp(&a, &b) != 0);
    pt_addr_unmap(&a);
    pt_addr_set_port(&a, 8);
    assert_int_equal(pt_addr_cmp(&a, &b), 0);
    pt_addr_any(&a, AF_INET6, 5);
    char text[PT_ADDR_TEXT];
    assert_string_equal(pt_addr_print(&a, text), "[::]:5");
    assert_string_equal(pt_addr_print_ip(&b, text), "1.2.3.4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_taken_apart),
        cmocka_unit_test(bad_hosts_are_refused),
        cmocka_unit_test(printing_gives_what_parsing_takes),
        cmocka_unit_test(names_resolve_with_their_family),
        cmocka_unit_test(zones_are_checked),
        cmocka_unit_test(kinds_of_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
