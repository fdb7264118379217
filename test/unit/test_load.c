/* test_load.c: the text of --load.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "engine/load.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void reads_every_form(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct pt_load l;
    } good[] = {
        {"tcp", {.connections = 1}},
        {"udp", {.udp = true, .connections = 1}},
        {"tcp:4", {.connections = 4}},
        {"tcp@1gbit", {.connections = 1, .rate = {1e9, true}}},
        {"tcp:reverse", {.connections = 1, .reverse = true}},
        {"tcp:4:reverse@10gbit", {.connections = 4, .reverse = true, .rate = {10e9, true}}},
        {"udp:reverse:2@500kbit",
         {.udp = true, .connections = 2, .reverse = true, .rate = {500e3, true}}},
    };
    for (size_t i = 0; i < PT_COUNT(good); i++) {
        struct pt_load l, again;
        struct pt_err e = {0};
        if (pt_load_kind.parse(good[i].text, &l, &e) < 0)
            fail_msg("%s: %s", good[i].text, e.text);
        assert_true(l.given);
        assert_int_equal(l.udp, good[i].l.udp);
        assert_int_equal(l.reverse, good[i].l.reverse);
        assert_int_equal(l.connections, good[i].l.connections);
        assert_true(fabs(l.rate.per_s - good[i].l.rate.per_s) < 1e-6);
        struct pt_buf out;
        pt_buf_init(&out, 128);
        pt_load_kind.print(&l, &out);
        assert_int_equal(pt_load_kind.parse(pt_buf_str(&out), &again, NULL), 0);
        assert_true(again.given && again.udp == l.udp && again.reverse == l.reverse);
        assert_int_equal(again.connections, l.connections);
        assert_true(again.rate.bits == l.rate.bits && fabs(again.rate.per_s - l.rate.per_s) < 1e-6);
        pt_buf_fini(&out);
    }
}

static void refuses_what_means_nothing(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         "sctp",
        "tcp:0",    "tcp:-1",
        "tcp:fast", "tcp@",
        "tcp@1k",   "tcp@0gbit",
        "tcp:4@x",  "4",
        "@1gbit",   "tcp:99999999",
        "tcp:4:8",  "tcp:reverse:reverse",
        "reverse",  "tcp:1:2:3:4:5:6:7:8:9:0:1:2:3:4:5:6:7:8:9:0:1:2:3:4:5:6:7:8:9:reverse"};
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        struct pt_load l;
        struct pt_err e = {0};
        if (pt_load_kind.parse(bad[i], &l, &e) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
        assert_true(strlen(e.text) > 10);
    }
}

static void none_prints_as_nothing(void **state)
{
    (void)state;
    struct pt_load l = {.given = false};
    struct pt_buf out;
    pt_buf_init(&out, 16);
    pt_load_kind.print(&l, &out);
    assert_int_equal(out.len, 0);
    pt_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_form),
        cmocka_unit_test(refuses_what_means_nothing),
        cmocka_unit_test(none_prints_as_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
