/* test_result.c: the result document: paths, status, histogram blocks, reading, repeated runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "model/plan.h"
#include "model/result.h"
#include "stat/hdr.h"
#include "stat/hist.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double real_at(const struct pt_result *r, const char *path)
{
    double v = (double)NAN;
    if (!pt_result_get_real(r, path, &v))
        fail_msg("no number at %s", path);
    return v;
}

static void begins_with_its_identity(void **state)
{
    (void)state;
    struct pt_result *r = pt_result_new(1700000000 * PT_S), *s = pt_result_new(1700000000 * PT_S);
    assert_string_equal(pt_result_get_str(r, "schema"), "pitot.result/1");
    assert_string_equal(pt_result_get_str(r, "started"), "2023-11-14T22:13:20.000Z");
    assert_int_equal(strncmp(pt_result_get_str(r, "id"), "20231114T221320Z-", 17), 0);
    assert_string_not_equal(pt_result_get_str(r, "id"), pt_result_get_str(s, "id"));
    assert_int_equal(pt_result_exit(r), 0);
    assert_int_equal(pt_result_failed(r), 0);
    pt_result_free(r);
    pt_result_free(s);
}

static void sets_and_gets_by_path(void **state)
{
    (void)state;
    struct pt_result *r = pt_result_new(0);
    pt_result_u64(r, "totals.errors.timeout", 7);
    pt_result_u64(r, "totals.ok", UINT64_MAX);
    pt_result_real(r, "rates.x_per_s", (double)INFINITY);
    pt_result_real(r, "rates.y_per_s", 0.1);
    pt_result_str(r, "local.host", "a\xff\x1b");
    pt_result_str(r, "peer.host", NULL);
    pt_result_append(r, "steps", json_pack("{s:i}", "p99_us", 5));
    uint64_t n = 0;
    assert_true(pt_result_get_u64(r, "totals.errors.timeout", &n));
    assert_int_equal(n, 7);
    assert_true(json_is_null(pt_result_at(r, "totals.ok")));
    assert_true(json_is_null(pt_result_at(r, "rates.x_per_s")));
    assert_true(json_is_null(pt_result_at(r, "peer.host")));
    assert_string_equal(pt_result_get_str(r, "local.host"), "a\\xff\\x1b");
    assert_true(real_at(r, "steps.0.p99_us") > 4.9);
    pt_result_u64(r, "steps.0.rates.x", 9);
    assert_true(real_at(r, "steps.0.rates.x") > 8.9);
    double v;
    assert_false(pt_result_get_real(r, "steps.1.p99_us", &v));
    assert_false(pt_result_get_real(r, "steps.x.p99_us", &v));
    assert_false(pt_result_get_real(r, "totals", &v));
    assert_false(pt_result_get_u64(r, "rates.y_per_s", &n));
    assert_null(pt_result_at(r, "totals..ok"));
    assert_int_equal(pt_result_failed(r), 0);
    pt_result_u64(r, "totals.errors.timeout.deeper", 1);
    assert_int_equal(pt_result_failed(r), -EINVAL);
    pt_result_free(r);
}

static void a_failed_append_sticks(void **state)
{
    (void)state;
    struct pt_result *r = pt_result_new(0);
    pt_result_append(r, "schema", json_true());
    assert_int_equal(pt_result_failed(r), -EINVAL);
    pt_result_free(r);
    r = pt_result_new(0);
    pt_result_take(r, "steps", json_array());
    pt_result_u64(r, "steps.0.p99_us", 1);
    assert_int_equal(pt_result_failed(r), -EINVAL);
    pt_result_free(r);
    r = pt_result_new(0);
    pt_result_take(r, "totals", NULL);
    assert_int_equal(pt_result_failed(r), -ENOMEM);
    pt_result_free(r);
}

static void status_only_gets_worse(void **state)
{
    (void)state;
    struct pt_result *r = pt_result_new(0);
    pt_result_status(r, PT_RESULT_PARTIAL);
    pt_result_i64(r, "exit", 130);
    pt_result_status(r, PT_RESULT_OK);
    pt_result_status(r, PT_RESULT_PARTIAL);
    assert_string_equal(pt_result_get_str(r, "status"), "partial");
    assert_int_equal(pt_result_exit(r), 130);
    pt_result_status(r, PT_RESULT_FAILED);
    assert_int_equal(pt_result_exit(r), 1);
    pt_result_free(r);
}

static void a_histogram_becomes_microseconds(void **state)
{
    (void)state;
    struct pt_hist *h = calloc(1, sizeof(*h)), *back = calloc(1, sizeof(*back));
    for (uint64_t i = 1; i <= 1000; i++)
        pt_hist_record(h, i * 1000);
    struct pt_result *r = pt_result_new(0);
    pt_result_hist(r, "latency", h);
    assert_int_equal(pt_result_failed(r), 0);
    assert_true(fabs(real_at(r, "latency.count") - 1000) < 1e-9);
    assert_true(fabs(real_at(r, "latency.min_us") - 1) < 1e-9);
    assert_true(fabs(real_at(r, "latency.max_us") - 1000) < 1e-9);
    assert_true(fabs(real_at(r, "latency.mean_us") - 500.5) < 1e-6);
    assert_true(fabs(real_at(r, "latency.p50_us") - 500) < 0.5);
    assert_true(fabs(real_at(r, "latency.p99_us") - 990) < 1);
    assert_true(json_is_null(pt_result_at(r, "latency.p99_9_us")));
    const char *hdr = pt_result_get_str(r, "latency.hdr");
    assert_non_null(hdr);
    assert_int_equal(pt_hdr_decode(hdr, strlen(hdr), back, NULL), 0);
    assert_int_equal(pt_hist_count(back), 1000);
    pt_hist_reset(h);
    pt_result_hist(r, "service_time", h);
    assert_true(json_is_null(pt_result_at(r, "service_time.p50_us")));
    assert_true(json_is_null(pt_result_at(r, "service_time.min_us")));
    pt_result_free(r);
    free(h);
    free(back);
}

static void the_books_are_checked(void **state)
{
    (void)state;
    struct pt_result *r = pt_result_new(0);
    struct pt_err e = {0};
    assert_int_equal(pt_result_balance(r, &e), -EINVAL);
    pt_result_u64(r, "totals.operations", 10);
    pt_result_u64(r, "totals.ok", 7);
    pt_result_u64(r, "totals.errors.timeout", 1);
    pt_result_u64(r, "totals.errors.reset", 1);
    pt_result_u64(r, "totals.in_flight_at_end", 1);
    assert_int_equal(pt_result_balance(r, &e), 0);
    pt_result_u64(r, "totals.ok", 6);
    assert_int_equal(pt_result_balance(r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "10 operations, but 6 ok + 2 errors + 1 in flight"));
    pt_result_free(r);
}

static void the_plan_is_in_the_document(void **state)
{
    (void)state;
    static const struct pt_plan_form form = {.manual = {.command = "lat", .summary = "x"}};
    struct pt_plan p;
    assert_int_equal(pt_plan_init(&p, &form, NULL), 0);
    const char *argv[] = {"-r", "1k", "-c", "3", "host"};
    assert_int_equal(pt_plan_parse(&p, 5, argv, NULL), 0);
    struct pt_result *r = pt_result_new(0);
    pt_result_plan(r, &p);
    pt_result_argv(r, 5, argv);
    assert_string_equal(pt_result_get_str(r, "test.workload"), "lat");
    assert_string_equal(pt_result_get_str(r, "test.target"), "host");
    assert_string_equal(pt_result_get_str(r, "test.load.mode"), "open");
    assert_string_equal(pt_result_get_str(r, "test.load.arrivals"), "uniform");
    assert_true(fabs(real_at(r, "test.load.rate") - 1000) < 1e-9);
    assert_true(fabs(real_at(r, "test.params.connections") - 3) < 1e-9);
    assert_true(fabs(real_at(r, "warmup_s") - 1) < 1e-9);
    assert_string_equal(pt_result_get_str(r, "argv.4"), "host");
    assert_int_equal(pt_result_failed(r), 0);
    pt_result_free(r);
    pt_plan_fini(&p);
}

static void reads_only_what_it_knows(void **state)
{
    (void)state;
    static const struct {
        const char *text, *needle;
        int rc;
    } bad[] = {
        {"", "no JSON", -EBADMSG},
        {"[1]", "no JSON object", -EBADMSG},
        {"{\"schema\":", "no JSON: line 1", -EBADMSG},
        {"{}", "no `schema`", -EBADMSG},
        {"{\"schema\":\"pitot.result/2\",\"status\":\"ok\"}", "is not pitot.result/1",
         -EPROTONOSUPPORT},
        {"{\"schema\":\"pitot.result/1\"}", "`status`", -EBADMSG},
        {"{\"schema\":\"pitot.result/1\",\"status\":\"ok\",\"status\":\"ok\"}", "duplicate",
         -EBADMSG},
        {"{\"schema\":\"pitot.result/1\",\"status\":\"ok\",\"totals\":5}", "`totals`", -EBADMSG},
        {"{\"schema\":\"pitot.result/1\",\"status\":\"ok\",\"hosts\":[5]}", "`hosts`", -EBADMSG},
        {"{\"schema\":\"pitot.result/1\",\"status\":\"ok\",\"warnings\":[{}]}", "`warnings`",
         -EBADMSG},
    };
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        struct pt_result *r = (void *)1;
        struct pt_err e = {0};
        assert_int_equal(pt_result_parse(bad[i].text, strlen(bad[i].text), &r, &e), bad[i].rc);
        assert_null(r);
        if (!strstr(e.text, bad[i].needle))
            fail_msg("said \"%s\", not \"%s\"", e.text, bad[i].needle);
    }
    static const char good[] = "{\"schema\":\"pitot.result/1\",\"status\":\"ok\",\"hosts\":null}";
    struct pt_result *r = NULL;
    assert_int_equal(pt_result_parse(good, strlen(good), &r, NULL), 0);
    pt_result_free(r);
    struct pt_err e = {0};
    assert_int_equal(pt_result_load("/nonexistent/x.json", &r, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/x.json"));
}

static struct pt_result *run_of(double rate, double p99)
{
    struct pt_result *r = pt_result_new(0);
    pt_result_real(r, "rates.rx_bits_per_s", rate);
    pt_result_real(r, "latency.p99_us", p99);
    pt_result_headline(r, "received", "rates.rx_bits_per_s", "bit/s");
    pt_result_headline(r, "p99", "latency.p99_us", "us");
    return r;
}

static void repeated_runs_become_their_median(void **state)
{
    (void)state;
    struct pt_result *runs[3] = {run_of(100, 5), run_of(90, (double)NAN), run_of(96, 7)}, *out;
    pt_result_warn(runs[0], "same");
    pt_result_warn(runs[1], "same");
    pt_result_warn(runs[1], "other");
    assert_int_equal(pt_result_repeat(runs, 3, &out, NULL), 0);
    assert_true(fabs(real_at(out, "rates.rx_bits_per_s") - 96) < 1e-9);
    json_t *m = json_object_get(pt_result_at(out, "repeat.metrics"), "rates.rx_bits_per_s");
    assert_true(fabs(json_number_value(json_object_get(m, "median")) - 96) < 1e-9);
    assert_true(fabs(json_number_value(json_object_get(m, "min")) - 90) < 1e-9);
    assert_true(fabs(json_number_value(json_object_get(m, "max")) - 100) < 1e-9);
    assert_true(fabs(json_number_value(json_object_get(m, "spread_pct")) - 100.0 * 10 / 96) < 1e-9);
    assert_true(json_is_false(pt_result_at(out, "repeat.agree"))); /* 10.4 % */
    json_t *p99 = json_object_get(pt_result_at(out, "repeat.metrics"), "latency.p99_us");
    assert_true(fabs(json_number_value(json_object_get(p99, "median")) - 6) < 1e-9);
    assert_true(json_is_null(json_array_get(json_object_get(p99, "values"), 1)));
    assert_int_equal(json_array_size(pt_result_at(out, "warnings")), 2);
    pt_result_free(out);
    pt_result_real(runs[1], "rates.rx_bits_per_s", 95);
    pt_result_status(runs[1], PT_RESULT_PARTIAL);
    assert_int_equal(pt_result_repeat(runs, 3, &out, NULL), 0);
    assert_true(json_is_true(pt_result_at(out, "repeat.agree")));
    assert_string_equal(pt_result_get_str(out, "status"), "partial");
    pt_result_free(out);
    assert_int_equal(pt_result_repeat(runs, 1, &out, NULL), 0);
    assert_true(json_is_true(pt_result_at(out, "repeat.agree")));
    pt_result_free(out);
    assert_int_equal(pt_result_repeat(runs, 0, &out, NULL), -EINVAL);
    for (size_t i = 0; i < 3; i++)
        pt_result_free(runs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_with_its_identity),
        cmocka_unit_test(sets_and_gets_by_path),
        cmocka_unit_test(a_failed_append_sticks),
        cmocka_unit_test(status_only_gets_worse),
        cmocka_unit_test(a_histogram_becomes_microseconds),
        cmocka_unit_test(the_books_are_checked),
        cmocka_unit_test(the_plan_is_in_the_document),
        cmocka_unit_test(reads_only_what_it_knows),
        cmocka_unit_test(repeated_runs_become_their_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
