/* test_truth.c: the options of `pitot truth` and the document of what was injected.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "service/echo.h"
#include "service/truth.h"

#include <errno.h>
#include <string.h>

static struct pt_impair_record record;

static void options_fill_the_spec(void **state)
{
    (void)state;
    struct pt_impair_spec spec;
    struct pt_opts opts = {.table = pt_truth_path_opts, .values = &spec};
    struct pt_args args;
    struct pt_err e = {0};
    const char *const argv[] = {"--delay",    "uniform:1ms-3ms", "--stall=100ms/1s",
                                "--loss",     "every:100",       "--dup",
                                "2%",         "--reorder",       "every:50:by:3",
                                "--rate-cap", "10mbit",          "--clock-offset=-3ms",
                                "--overtake", "--seed",          "9"};
    memset(&spec, 0, sizeof(spec));
    assert_int_equal(pt_opts_valid(&opts, 1, &e), 0);
    assert_int_equal(pt_opts_init(&opts, &e), 0);
    assert_int_equal(spec.seed, 1);
    assert_false(pt_impair_active(&spec));
    assert_int_equal(pt_opts_parse(&opts, 1, (int)PT_COUNT(argv), argv, &args, &e), 0);
    assert_int_equal(spec.delay.kind, PT_DELAY_UNIFORM);
    assert_int_equal(spec.stall.every, PT_S);
    assert_int_equal(spec.loss.every, 100);
    assert_int_equal(spec.dup.kind, PT_CHANCE_RANDOM);
    assert_int_equal(spec.reorder.by_packets, 3);
    assert_int_equal(spec.rate.per_s, 10000000);
    assert_int_equal(spec.clock_offset, -3 * PT_MS);
    assert_true(spec.overtake);
    assert_int_equal(spec.seed, 9);
    assert_int_equal(pt_impair_check(&spec, &e), 0);
}

static int64_t integer(const json_t *doc, const char *key)
{
    const json_t *v = json_object_get(doc, key);
    if (!json_is_integer(v))
        fail_msg("%s is missing", key);
    return json_integer_value(v);
}

static void the_document_says_what_was_injected(void **state)
{
    (void)state;
    struct pt_impair_spec spec = {.delay = {.kind = PT_DELAY_FIXED, .a = 5 * PT_MS}, .seed = 3};
    memset(&record, 0, sizeof(record));
    record.offered = 20;
    record.passed = 18;
    record.lost = 2;
    record.duplicated = 1;
    record.departed = 19;
    for (int i = 0; i < 19; i++)
        pt_hist_record(&record.delay, 5 * PT_MS);
    json_t *doc = pt_truth_document(&spec, &record, 2);
    assert_non_null(doc);
    assert_string_equal(json_string_value(json_object_get(doc, "schema")), PT_TRUTH_SCHEMA);
    assert_int_equal(integer(doc, "paths"), 2);
    assert_int_equal(integer(doc, "offered"), 20);
    assert_int_equal(integer(doc, "lost"), 2);
    assert_int_equal(integer(doc, "duplicated"), 1);
    assert_int_equal(integer(doc, "departed"), 19);
    const json_t *injected = json_object_get(doc, "injected");
    assert_string_equal(json_string_value(json_object_get(injected, "delay")), "5ms");
    assert_true(json_is_null(json_object_get(injected, "loss")));
    assert_int_equal(integer(injected, "seed"), 3);
    const json_t *delay = json_object_get(doc, "delay");
    double p50 = json_number_value(json_object_get(delay, "p50_us"));
    assert_true(p50 > 4997 && p50 < 5003);
    assert_true(json_is_null(json_object_get(delay, "p99_us"))); /* 19 samples are not so deep */
    json_decref(doc);

    struct pt_buf text;
    pt_buf_init(&text, 16384);
    pt_truth_text(&text, &spec, &record, 2);
    assert_non_null(strstr(pt_buf_str(&text), "injected on 2 paths: delay 5ms\n"));
    assert_non_null(strstr(pt_buf_str(&text), "2 lost\n"));
    assert_null(strstr(pt_buf_str(&text), "unseen"));
    pt_buf_fini(&text);
}

static void echo_addresses(void **state)
{
    (void)state;
    struct pt_echo_spec spec = {0};
    struct pt_err e = {0};
    char text[PT_ADDR_TEXT];
    assert_int_equal(pt_echo_parse(&spec, "udp:7000", &e), 0);
    assert_false(spec.stream);
    assert_string_equal(pt_addr_print(&spec.at, text), "127.0.0.1:7000");
    assert_int_equal(pt_echo_parse(&spec, "tcp:[::1]:7001", &e), 0);
    assert_true(spec.stream);
    assert_string_equal(pt_addr_print(&spec.at, text), "[::1]:7001");
    assert_int_equal(pt_echo_parse(&spec, "udp:0", &e), 0);
    assert_int_equal(pt_addr_port(&spec.at), 0);
    const char *const bad[] = {"7000", "udp:", "udp:99999", "sctp:7", "tcp:unix:/x", "udp:host:7"};
    for (size_t i = 0; i < PT_COUNT(bad); i++)
        if (pt_echo_parse(&spec, bad[i], &e) >= 0)
            fail_msg("\"%s\" was accepted", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_fill_the_spec),
        cmocka_unit_test(the_document_says_what_was_injected),
        cmocka_unit_test(echo_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
