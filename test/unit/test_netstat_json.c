/* test_netstat_json.c: counters survive the way to the peer, and forged ones do not.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "host/netstat_json.h"

#include <errno.h>
#include <string.h>

static struct pt_netstat in, out;

static void what_is_known_travels(void **state)
{
    (void)state;
    pt_netstat_clear(&in);
    in.at = 1234567890123;
    in.counter[PT_NETSTAT_UDP4_RCVBUF_ERRORS] = 77;
    in.counter[PT_NETSTAT_TCP_RETRANS_SEGS] = 0;
    pt_netstat_parse_dev(&in, "lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                              "eth0: 1 9007199254740992 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
    in.dev[0].tx_fifo = -1;
    in.softnet_all = (struct pt_softnet){5, 6, -1};
    json_t *json = pt_netstat_json(&in);
    assert_non_null(json);
    assert_int_equal(pt_netstat_from_json(&out, json, NULL), 0);
    json_decref(json);
    assert_int_equal(out.at, in.at);
    assert_memory_equal(out.counter, in.counter, sizeof(in.counter));
    assert_int_equal(out.devs, 2);
    assert_memory_equal(out.dev, in.dev, sizeof(in.dev));
    assert_memory_equal(&out.softnet_all, &in.softnet_all, sizeof(in.softnet_all));
}

static void strangers_are_passed_over(void **state)
{
    (void)state;
    json_t *json =
        json_loads("{\"elapsed_ns\":0,\"counters\":{\"Sctp.New\":\"x\",\"Udp.NoPorts\":3},"
                   "\"new\":[]}",
                   0, NULL);
    assert_int_equal(pt_netstat_from_json(&out, json, NULL), 0);
    assert_int_equal(out.counter[PT_NETSTAT_UDP4_NO_PORTS], 3);
    assert_int_equal(out.softnet_all.dropped, -1);
    json_decref(json);
}

static void forged_counters_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "[]",
        "{}",
        "{\"elapsed_ns\":1}",
        "{\"counters\":{}}",
        "{\"elapsed_ns\":1,\"counters\":[]}",
        "{\"elapsed_ns\":-1,\"counters\":{}}",
        "{\"elapsed_ns\":1.5,\"counters\":{}}",
        "{\"elapsed_ns\":1,\"counters\":{\"Udp.NoPorts\":-1}}",
        "{\"elapsed_ns\":1,\"counters\":{\"Udp.NoPorts\":\"1\"}}",
        "{\"elapsed_ns\":1,\"counters\":{\"Udp.NoPorts\":null}}",
        "{\"elapsed_ns\":1,\"counters\":{\"Udp.NoPorts\":9007199254740993}}",
        "{\"elapsed_ns\":1,\"counters\":{},\"softnet\":[]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"softnet\":{\"dropped\":true}}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":{}}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[1]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[{}]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[{\"name\":\"\"}]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[{\"name\":\"a b\"}]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[{\"name\":\"a/b\"}]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[{\"name\":\"\\u001b[31m\"}]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[{\"name\":\"a\\u0000b\"}]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[{\"name\":\"sixteen-bytes-16\"}]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[{\"name\":\"a\"},{\"name\":\"a\"}]}",
        "{\"elapsed_ns\":1,\"counters\":{},\"devs\":[{\"name\":\"a\",\"rx_bytes\":-2}]}",
    };
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        json_t *json = json_loads(rows[i], JSON_ALLOW_NUL, NULL);
        assert_non_null(json);
        struct pt_err e = {0};
        if (pt_netstat_from_json(&out, json, &e) != -EPROTO)
            fail_msg("%s was taken", rows[i]);
        assert_non_null(strstr(e.text, "network counters"));
        assert_int_equal(out.devs, 0);
        json_decref(json);
    }
    json_t *json = json_pack("{s:i, s:{}, s:[]}", "elapsed_ns", 1, "counters", "devs");
    for (int i = 0; i <= PT_NETDEV_MAX; i++)
        json_array_append_new(json_object_get(json, "devs"), json_object());
    assert_int_equal(pt_netstat_from_json(&out, json, NULL), -EPROTO);
    json_decref(json);
    assert_int_equal(pt_netstat_from_json(&out, NULL, NULL), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_travels),
        cmocka_unit_test(strangers_are_passed_over),
        cmocka_unit_test(forged_counters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
