/* test_run_document.c: the document of a run: sums, skews, the worst of its tests; what of it is
 * believed when it comes from a file; and its reports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "model/run_document.h"
#include "sink/run.h"

#include <errno.h>
#include <string.h>

static struct pt_result *test_of(const char *name, const char *from, double pps, int64_t sent,
                                 int64_t lost)
{
    struct pt_result *r = pt_result_new(0);
    pt_result_str(r, "test.workload", "pps");
    pt_result_str(r, "test.name", name);
    pt_result_str(r, "test.from", from);
    pt_result_str(r, "test.to", "target");
    pt_result_real(r, "rates.rx_packets_per_s", pps);
    pt_result_i64(r, "totals.tx_packets", sent);
    if (lost >= 0)
        pt_result_i64(r, "totals.lost_packets", lost);
    pt_result_headline(r, "delivered", "rates.rx_packets_per_s", "packet/s");
    return r;
}

static double real_at(const struct pt_result *r, const char *path)
{
    double v = -1;
    if (!pt_result_get_real(r, path, &v))
        fail_msg("no %s", path);
    return v;
}

static void sums_add_up_and_unknown_is_null(void **state)
{
    (void)state;
    struct pt_result *run = pt_run_new("x", 0);
    pt_run_add(run, test_of("a", "s-1", 1000, 4000, 10));
    pt_run_add(run, test_of("a", "s-2", 500, 1000, 40));
    pt_run_add(run, test_of("b", "s-1", 7, 70, 0));
    pt_run_add(run, test_of("b", "s-2", 8, 80, -1));
    pt_run_sum(run, "a", 0, 2);
    pt_run_sum(run, "b", 2, 2);
    assert_int_equal(pt_run_tests(run), 4);
    assert_true(real_at(run, "sums.0.rates.rx_packets_per_s") > 1499.9);
    assert_int_equal(real_at(run, "sums.0.totals.tx_packets"), 5000);
    assert_int_equal(real_at(run, "sums.0.totals.lost_packets"), 50);
    assert_true(real_at(run, "sums.0.rates.loss_pct") > 0.999 &&
                real_at(run, "sums.0.rates.loss_pct") < 1.001);
    assert_true(json_is_null(pt_result_at(run, "sums.0.rates.rx_bits_per_s")));
    assert_int_equal(real_at(run, "sums.1.rates.rx_packets_per_s"), 15);
    assert_true(json_is_null(pt_result_at(run, "sums.1.totals.lost_packets")));
    assert_true(json_is_null(pt_result_at(run, "sums.1.rates.loss_pct")));
    assert_int_equal(json_integer_value(pt_result_at(run, "sums.1.tests.1")), 3);
    pt_run_together(run, 0, 2, 1500);
    pt_run_together(run, 2, 2, -1);
    assert_true(real_at(run, "start_skew_us.0") > 1.49 && real_at(run, "start_skew_us.0") < 1.51);
    assert_true(json_is_null(pt_result_at(run, "start_skew_us.1")));
    assert_int_equal(pt_result_failed(run), 0);
    pt_result_free(run);
}

static int exit_of(const enum pt_result_status *status, const int *missed, size_t n,
                   enum pt_result_status *whole)
{
    struct pt_result *run = pt_run_new("x", 0);
    for (size_t i = 0; i < n; i++) {
        struct pt_result *t = test_of("t", "s", 1, 1, 0);
        pt_result_status(t, status[i]);
        if (missed[i] && !pt_result_exit(t))
            pt_result_i64(t, "exit", 3);
        pt_run_add(run, t);
    }
    pt_run_conclude(run);
    *whole = pt_result_get_status(run);
    int code = pt_result_exit(run);
    pt_result_free(run);
    return code;
}

static void the_worst_test_decides(void **state)
{
    (void)state;
    static const struct {
        enum pt_result_status status[2], whole;
        int missed[2], code;
    } cases[] = {
        {{PT_RESULT_OK, PT_RESULT_OK}, PT_RESULT_OK, {0, 0}, 0},
        {{PT_RESULT_OK, PT_RESULT_OK}, PT_RESULT_OK, {0, 1}, 3},
        {{PT_RESULT_OK, PT_RESULT_PARTIAL}, PT_RESULT_PARTIAL, {1, 0}, 1},
        {{PT_RESULT_FAILED, PT_RESULT_OK}, PT_RESULT_PARTIAL, {0, 1}, 1},
        {{PT_RESULT_FAILED, PT_RESULT_FAILED}, PT_RESULT_FAILED, {0, 0}, 1},
    };
    for (size_t i = 0; i < PT_COUNT(cases); i++) {
        enum pt_result_status whole;
        assert_int_equal(exit_of(cases[i].status, cases[i].missed, 2, &whole), cases[i].code);
        assert_int_equal(whole, cases[i].whole);
    }
}

static void rendered(const struct pt_result *run, const struct pt_sink *sink, struct pt_buf *out)
{
    const struct pt_sink_style style = {.color = false};
    pt_buf_init(out, 1 << 20);
    assert_int_equal(sink->render(run, &style, out, NULL), 0);
}

static void reports_hold_every_test(void **state)
{
    (void)state;
    struct pt_result *run = pt_run_new("my plan", 0);
    struct pt_buf text;
    pt_result_str(run, "topology.text", "two hosts");
    pt_run_add(run, test_of("a, \"b\"", "s-1", 1000, 4000, 10));
    pt_run_add(run, test_of("a, \"b\"", "s-2", 500, 1000, 40));
    pt_run_sum(run, "a, \"b\"", 0, 2);
    pt_run_together(run, 0, 2, 1500);
    pt_result_warn(run, "interrupted: c was not run");
    rendered(run, &pt_sink_run_text, &text);
    static const char *const held[] = {"pitot run my plan", "two hosts",    "s-2 → target",
                                       "500 pps",           "in all",       "1.50 kpps",
                                       "within 1.50 µs",    "c was not run"};
    for (size_t i = 0; i < PT_COUNT(held); i++)
        if (!strstr(pt_buf_str(&text), held[i]))
            fail_msg("no %s in\n%s", held[i], pt_buf_str(&text));
    pt_buf_fini(&text);
    rendered(run, &pt_sink_run_csv, &text);
    assert_true(!strncmp(pt_buf_str(&text), "test,from,to,id,started,", 24));
    assert_non_null(strstr(pt_buf_str(&text), "\r\n\"a, \"\"b\"\"\",s-2,target,"));
    pt_buf_fini(&text);
    pt_result_free(run);
}

/* More tests than one table has rows. */
static void long_runs_have_several_tables(void **state)
{
    (void)state;
    struct pt_result *run = pt_run_new("x", 0);
    struct pt_buf text;
    char name[20];
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "test%u,", i);
        pt_run_add(run, test_of(name, "s", i, 1, 0));
    }
    rendered(run, &pt_sink_run_end, &text);
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "test%u,", i);
        assert_non_null(strstr(pt_buf_str(&text), name));
    }
    pt_buf_fini(&text);
    pt_result_free(run);
}

#define RUN  "{\"schema\":\"pitot.run/1\",\"status\":\"ok\",\"start_skew_us\":[],\"warnings\":[],"
#define TEST "{\"schema\":\"pitot.result/1\",\"status\":\"ok\"}"

static void files_are_checked_before_they_are_believed(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {RUN "\"tests\":[],\"together\":[]}", "`sums`"},
        {RUN "\"tests\":5,\"together\":[],\"sums\":[]}", "`tests`"},
        {RUN "\"tests\":[5],\"together\":[],\"sums\":[]}", "test 1: it is no object"},
        {RUN "\"tests\":[" TEST ",{}],\"together\":[],\"sums\":[]}", "test 2: no pitot result"},
        {RUN "\"tests\":[" TEST "],\"together\":[[1]],\"sums\":[]}", "not there"},
        {RUN "\"tests\":[" TEST "],\"together\":[[-1]],\"sums\":[]}", "not there"},
        {RUN "\"tests\":[" TEST "],\"together\":[0],\"sums\":[]}", "no list"},
        {RUN "\"tests\":[" TEST "],\"together\":[],\"sums\":[{}]}", "no list"},
        {"{\"schema\":\"pitot.run/2\"}", "is not pitot.result/1"},
        {"[]", "no JSON object"},
    };
    for (size_t i = 0; i < PT_COUNT(wrong); i++) {
        struct pt_result *r = NULL;
        struct pt_err e = {0};
        assert_true(pt_document_parse(wrong[i][0], strlen(wrong[i][0]), &r, &e) < 0);
        assert_null(r);
        if (!strstr(e.text, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], e.text);
    }
    static const char *const good[] = {RUN "\"tests\":[" TEST "],\"together\":[[0]],\"sums\":[]}",
                                       TEST};
    for (size_t i = 0; i < PT_COUNT(good); i++) {
        struct pt_result *r = NULL;
        assert_int_equal(pt_document_parse(good[i], strlen(good[i]), &r, NULL), 0);
        assert_int_equal(pt_run_is(r), i == 0);
        pt_result_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_add_up_and_unknown_is_null),
        cmocka_unit_test(the_worst_test_decides),
        cmocka_unit_test(reports_hold_every_test),
        cmocka_unit_test(long_runs_have_several_tables),
        cmocka_unit_test(files_are_checked_before_they_are_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
