/* test_netif.c: the bytes of orders on the routing socket: lengths, nesting, refusals.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "os/netif.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

enum { LINK = sizeof(struct ifinfomsg) };

static uint32_t number(const struct rtattr *a)
{
    uint32_t v;
    assert_non_null(a);
    assert_int_equal(RTA_PAYLOAD(a), 4);
    memcpy(&v, pt_nl_value(a), 4);
    return v;
}

static void says(const struct rtattr *a, const char *text)
{
    assert_non_null(a);
    assert_int_equal(RTA_PAYLOAD(a), strlen(text) + 1);
    assert_string_equal(pt_nl_value(a), text);
}

/* The last byte of an outer attribute is the last of the message: nests end where they should. */
static void ends_the_message(const struct pt_nl_request *r, const struct rtattr *a)
{
    assert_ptr_equal((const uint8_t *)a + a->rta_len, r->bytes + r->head.nlmsg_len);
}

static void a_veth_pair_nests_its_peer(void **state)
{
    (void)state;
    struct pt_nl_request r;
    const struct pt_netif_veth v = {.name = "port0", .peer = "eth0", .peer_netns = 7, .mtu = 9000};
    assert_int_equal(pt_netif_veth_request(&r, &v), 0);
    assert_int_equal(r.head.nlmsg_type, RTM_NEWLINK);
    assert_int_equal(r.head.nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    says(pt_nl_find(&r.head, LINK, IFLA_IFNAME, 1), "port0");
    assert_int_equal(number(pt_nl_find(&r.head, LINK, IFLA_MTU, 4)), 9000);
    const struct rtattr *info = pt_nl_find(&r.head, LINK, IFLA_LINKINFO, 1);
    assert_non_null(info);
    says(pt_nl_nested(info, IFLA_INFO_KIND, 1), "veth");
    const struct rtattr *data = pt_nl_nested(info, IFLA_INFO_DATA, 1);
    assert_non_null(data);
    const struct rtattr *peer = pt_nl_nested(data, VETH_INFO_PEER, LINK);
    assert_non_null(peer);
    ends_the_message(&r, info);
    ends_the_message(&r, data);
    ends_the_message(&r, peer);
    /* The peer holds a message of its own: the fixed part, then attributes. */
    struct pt_nl_request inner;
    pt_nl_begin(&inner, 0, 0, pt_nl_value(peer), RTA_PAYLOAD(peer));
    says(pt_nl_find(&inner.head, LINK, IFLA_IFNAME, 1), "eth0");
    assert_int_equal(number(pt_nl_find(&inner.head, LINK, IFLA_MTU, 4)), 9000);
    assert_int_equal(number(pt_nl_find(&inner.head, LINK, IFLA_NET_NS_FD, 4)), 7);
}

static void names_out_of_range_are_refused(void **state)
{
    (void)state;
    struct pt_nl_request r;
    struct pt_netif_veth v = {.name = "123456789012345", .peer = "eth0", .peer_netns = -1};
    assert_int_equal(pt_netif_veth_request(&r, &v), 0);
    v.name = "1234567890123456";
    assert_int_equal(pt_netif_veth_request(&r, &v), -EINVAL);
    v.name = "";
    assert_int_equal(pt_netif_veth_request(&r, &v), -EINVAL);
    v = (struct pt_netif_veth){.name = "a", .peer = NULL};
    assert_int_equal(pt_netif_veth_request(&r, &v), -EINVAL);
    assert_int_equal(pt_netif_bridge_request(&r, "1234567890123456"), -EINVAL);
    assert_int_equal(pt_netif_bridge_request(&r, "br0"), 0);
    ends_the_message(&r, pt_nl_find(&r.head, LINK, IFLA_LINKINFO, 1));
}

static void changes_hold_what_was_asked(void **state)
{
    (void)state;
    struct pt_nl_request r;
    char alias[257];
    memset(alias, 'a', sizeof(alias));
    alias[255] = 0;
    struct pt_netif_change c = {.up = true, .no_autoconf = true, .master = 3, .alias = alias};
    assert_int_equal(pt_netif_change_request(&r, 5, &c), 0); /* the longest there can be */
    assert_true(r.head.nlmsg_len <= sizeof(r.bytes));
    const struct ifinfomsg *fixed = pt_nl_body(&r.head);
    assert_int_equal(fixed->ifi_index, 5);
    assert_int_equal(fixed->ifi_flags & fixed->ifi_change, IFF_UP);
    assert_int_equal(number(pt_nl_find(&r.head, LINK, IFLA_MASTER, 4)), 3);
    const struct rtattr *a = pt_nl_find(&r.head, LINK, IFLA_IFALIAS, 255);
    assert_non_null(a);
    assert_int_equal(RTA_PAYLOAD(a), 255);
    a = pt_nl_find(&r.head, LINK, IFLA_AF_SPEC, 1);
    assert_non_null(a);
    ends_the_message(&r, a);
    a = pt_nl_nested(a, AF_INET6, 1);
    assert_non_null(a);
    a = pt_nl_nested(a, IFLA_INET6_ADDR_GEN_MODE, 1);
    assert_non_null(a);
    assert_int_equal(*(const uint8_t *)pt_nl_value(a), IN6_ADDR_GEN_MODE_NONE);
    alias[255] = 'a';
    alias[256] = 0;
    assert_int_equal(pt_netif_change_request(&r, 5, &c), -EINVAL);
    c.alias = "";
    assert_int_equal(pt_netif_change_request(&r, 5, &c), -EINVAL);
    c.alias = NULL;
    assert_int_equal(pt_netif_change_request(&r, 0, &c), -EINVAL);
}

static void addresses_and_routes(void **state)
{
    (void)state;
    struct pt_nl_request r;
    static const uint8_t ip[16] = {10, 1, 2, 3, 5}, hub[16] = {10, 1, 2, 254};
    assert_int_equal(pt_netif_address_request(&r, 2, AF_INET, ip, 24), 0);
    const struct rtattr *a = pt_nl_find(&r.head, sizeof(struct ifaddrmsg), IFA_LOCAL, 4);
    assert_non_null(a);
    assert_int_equal(RTA_PAYLOAD(a), 4);
    assert_memory_equal(pt_nl_value(a), ip, 4);
    assert_int_equal(pt_netif_address_request(&r, 2, AF_INET6, ip, 64), 0);
    assert_true(((const struct ifaddrmsg *)pt_nl_body(&r.head))->ifa_flags & IFA_F_NODAD);
    assert_int_equal(pt_netif_address_request(&r, 2, AF_INET, ip, 33), -EINVAL);
    assert_int_equal(pt_netif_address_request(&r, 2, AF_INET6, ip, 129), -EINVAL);
    assert_int_equal(pt_netif_address_request(&r, 2, AF_UNIX, ip, 8), -EINVAL);
    assert_int_equal(pt_netif_address_request(&r, 0, AF_INET, ip, 24), -EINVAL);
    assert_int_equal(pt_netif_route_request(&r, 2, AF_INET, NULL, 0, hub), 0);
    assert_null(pt_nl_find(&r.head, sizeof(struct rtmsg), RTA_DST, 0));
    a = pt_nl_find(&r.head, sizeof(struct rtmsg), RTA_GATEWAY, 4);
    assert_non_null(a);
    assert_memory_equal(pt_nl_value(a), hub, 4);
    assert_int_equal(number(pt_nl_find(&r.head, sizeof(struct rtmsg), RTA_OIF, 4)), 2);
    assert_int_equal(pt_netif_route_request(&r, 2, AF_INET, ip, 33, NULL), -EINVAL);
}

static void the_kernel_says_no(void **state)
{
    (void)state;
    struct pt_err e = {0};
    assert_true(pt_netif_delete(0x7ffffff0, &e) < 0);
    assert_non_null(strstr(e.text, "deleting interface"));
    char alias[32] = "x";
    assert_int_equal(pt_netif_alias(0x7ffffff0, alias, sizeof(alias)), -ENODEV);
    assert_string_equal(alias, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_veth_pair_nests_its_peer),
        cmocka_unit_test(names_out_of_range_are_refused),
        cmocka_unit_test(changes_hold_what_was_asked),
        cmocka_unit_test(addresses_and_routes),
        cmocka_unit_test(the_kernel_says_no),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
