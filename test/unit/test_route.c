/* test_route.c: routes and links of the loopback, and attribute walks over bytes that lie.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "os/link.h"
#include "os/netlink.h"
#include "os/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static void loopback_is_local(void **state)
{
    (void)state;
    struct pt_err e = {0};
    struct pt_route r;
    const struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000005)}};
    assert_int_equal(pt_route_find(&r, (const struct sockaddr *)&to, NULL, 0, &e), 0);
    assert_true(r.local);
    assert_false(r.gatewayed);
    assert_int_equal(r.ifindex, if_nametoindex("lo"));
    assert_memory_equal(r.next_hop, &to.sin_addr, 4);
    assert_memory_equal(r.source, &to.sin_addr, 1); /* 127… */
    assert_int_equal(pt_route_resolve(&r, 0, &e), -EOPNOTSUPP);
    assert_non_null(strstr(e.text, "127.0.0.5"));
}

static void a_source_that_was_asked_for_is_kept(void **state)
{
    (void)state;
    struct pt_err e = {0};
    struct pt_route r;
    const struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000005)}};
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000009)}};
    const struct sockaddr_in6 other = {.sin6_family = AF_INET6};
    assert_int_equal(
        pt_route_find(&r, (const struct sockaddr *)&to, (const struct sockaddr *)&from, 0, &e), 0);
    assert_memory_equal(r.source, &from.sin_addr, 4);
    assert_int_equal(
        pt_route_find(&r, (const struct sockaddr *)&to, (const struct sockaddr *)&other, 0, &e),
        -EAFNOSUPPORT);
}

static void says_why_there_is_no_route(void **state)
{
    (void)state;
    struct pt_err e = {0};
    struct pt_route r;
    const struct sockaddr unix_family = {.sa_family = AF_UNIX};
    assert_int_equal(pt_route_find(&r, &unix_family, NULL, 0, &e), -EAFNOSUPPORT);
    /* Multicast has no single next hop, on any host. */
    const struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr = {htonl(0xe0000001)}};
    assert_true(pt_route_find(&r, (const struct sockaddr *)&group, NULL, 0, &e) < 0);
    assert_non_null(strstr(e.text, "224.0.0.1"));
}

static void reads_the_loopback(void **state)
{
    (void)state;
    struct pt_err e = {0};
    struct pt_link l;
    struct pt_qdisc_stats q;
    assert_int_equal(pt_link_read(&l, if_nametoindex("lo"), &e), 0);
    assert_string_equal(l.name, "lo");
    assert_int_equal(l.arp_type, ARPHRD_LOOPBACK);
    assert_true(l.loopback && !l.ethernet);
    assert_true(l.mtu >= 1280);
    assert_int_equal(l.speed_mbit, 0);
    assert_int_equal(pt_qdisc_read(&q, l.ifindex, &e), 0);
    assert_int_equal(pt_link_read(&l, 0x7ffffff0, &e), -ENODEV);
    assert_int_equal(e.code, -ENODEV);
}

/* A message whose attribute claims `claim` bytes while `n` bytes of it are there. */
static struct nlmsghdr *message(size_t n, uint16_t claim)
{
    struct nlmsghdr *m = calloc(1, NLMSG_HDRLEN + n);
    assert_non_null(m);
    m->nlmsg_len = (uint32_t)(NLMSG_HDRLEN + n);
    if (n >= sizeof(struct rtattr)) {
        const struct rtattr a = {.rta_len = claim, .rta_type = 5};
        memcpy(NLMSG_DATA(m), &a, sizeof(a));
    }
    return m;
}

static void attributes_that_lie_are_not_found(void **state)
{
    (void)state;
    for (size_t n = 0; n < 12; n++)
        for (uint16_t claim = 0; claim < 20; claim++) {
            struct nlmsghdr *m = message(n, claim);
            const struct rtattr *a = pt_nl_find(m, 0, 5, 0);
            assert_int_equal(a != NULL, n >= 4 && claim >= 4 && claim <= n);
            assert_null(pt_nl_find(m, 0, 6, 0));
            if (a)
                assert_null(pt_nl_find(m, 0, 5, (size_t)claim - 3));
            assert_null(pt_nl_find(m, 64, 5, 0));
            free(m);
        }
}

static void finds_nested_attributes(void **state)
{
    (void)state;
    struct pt_nl_request r, inner;
    const uint32_t value = 0xdeadbeef, fixed = 1;
    pt_nl_begin(&inner, 0, 0, &fixed, 0);
    pt_nl_add(&inner, 3, "abc", 3);
    pt_nl_add(&inner, 9, &value, sizeof(value));
    pt_nl_begin(&r, 0, 0, &fixed, sizeof(fixed));
    pt_nl_add(&r, 1, "x", 1);
    pt_nl_add(&r, NLA_F_NESTED | 2, inner.bytes + NLMSG_HDRLEN,
              inner.head.nlmsg_len - NLMSG_HDRLEN);
    const struct rtattr *outer = pt_nl_find(&r.head, sizeof(fixed), 2, 8);
    assert_non_null(outer);
    const struct rtattr *found = pt_nl_nested(outer, 9, 4);
    assert_non_null(found);
    assert_memory_equal(pt_nl_value(found), &value, 4);
    assert_null(pt_nl_nested(outer, 9, 5));
    assert_null(pt_nl_nested(outer, 4, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loopback_is_local),
        cmocka_unit_test(a_source_that_was_asked_for_is_kept),
        cmocka_unit_test(says_why_there_is_no_route),
        cmocka_unit_test(reads_the_loopback),
        cmocka_unit_test(attributes_that_lie_are_not_found),
        cmocka_unit_test(finds_nested_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
