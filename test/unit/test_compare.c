/* test_compare.c: comparisons of documents made by hand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/types.h"
#include "model/compare.h"
#include "model/run_document.h"
#include "sink/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct pt_result *lat(double p50, double max, double retransmits)
{
    struct pt_result *r = pt_result_new(0);
    pt_result_str(r, "test.workload", "lat");
    pt_result_str(r, "test.name", "lat");
    pt_result_real(r, "latency.p50_us", p50);
    pt_result_real(r, "latency.max_us", max);
    pt_result_real(r, "rates.rx_bits_per_s", 1e6); /* not what lat is about */
    pt_result_real(r, "totals.retransmits", retransmits);
    pt_result_str(r, "local.host", "here");
    pt_result_str(r, "local.boot_id", "one");
    pt_result_str(r, "local.kernel", "6.1");
    pt_result_i64(r, "local.pid", (int64_t)p50);
    pt_result_headline(r, "RTT p50", "latency.p50_us", "us");
    return r;
}

static struct pt_result *pool(const double *p50, size_t n)
{
    struct pt_result *runs[16], *r = NULL;
    for (size_t i = 0; i < n; i++)
        runs[i] = lat(p50[i], 10 * p50[i], 0);
    assert_int_equal(pt_result_repeat(runs, n, &r, NULL), 0);
    for (size_t i = 0; i < n; i++)
        pt_result_free(runs[i]);
    return r;
}

static struct pt_result *compare2(struct pt_result *a, struct pt_result *b, int want,
                                  const char *needle)
{
    struct pt_compare_side sides[] = {{"a.json", &a, 1}, {"b.json", &b, 1}};
    struct pt_result *out = NULL;
    struct pt_err e = {0};
    int rc = pt_compare(sides, 2, &out, &e);
    if (rc != want || (needle && !strstr(e.text, needle)))
        fail_msg("%d, \"%s\"", rc, e.text);
    return out;
}

static double real(const struct pt_result *r, const char *path)
{
    double v = (double)NAN;
    return pt_result_get_real(r, path, &v) ? v : (double)NAN;
}

static void a_clear_difference_is_beyond_noise(void **state)
{
    (void)state;
    static const double before[] = {100, 102, 98, 101, 99}, after[] = {50, 51, 49, 50.5, 49.5};
    struct pt_result *a = pool(before, 5), *b = pool(after, 5), *c = compare2(a, b, 0, NULL);
    assert_string_equal(pt_result_get_str(c, "tests.0.figures.0.path"), "latency.p50_us");
    assert_string_equal(pt_result_get_str(c, "tests.0.figures.0.better"), "lower");
    assert_string_equal(pt_result_get_str(c, "tests.0.figures.0.against.0.verdict"), "better");
    double ratio = real(c, "tests.0.figures.0.against.0.ratio"),
           low = real(c, "tests.0.figures.0.against.0.ratio_low"),
           high = real(c, "tests.0.figures.0.against.0.ratio_high");
    assert_true(fabs(ratio - 0.5) < 0.001 && low < ratio && ratio < high);
    assert_true(low > 0.48 && high < 0.52);
    assert_true(fabs(real(c, "tests.0.figures.0.against.0.difference") + 50) < 1e-9);
    assert_true(fabs(real(c, "tests.0.figures.0.sides.1.median") - 50) < 1e-9);
    /* The other way round it is worse, by the reciprocal. */
    struct pt_result *back = compare2(b, a, 0, NULL);
    assert_string_equal(pt_result_get_str(back, "tests.0.figures.0.against.0.verdict"), "worse");
    assert_true(fabs(real(back, "tests.0.figures.0.against.0.ratio") * ratio - 1) < 1e-9);
    assert_true(fabs(real(back, "tests.0.figures.0.against.0.ratio_low") * high - 1) < 1e-9);
    /* A figure that only some documents show in their headline, and was kept for every run. */
    assert_string_equal(pt_result_get_str(c, "tests.0.figures.1.path"), "latency.max_us");
    assert_int_equal(json_array_size(pt_result_at(c, "tests.0.figures.1.sides.0.values")), 5);
    assert_null(pt_result_at(c, "tests.0.figures.2"));
    pt_result_free(a);
    pt_result_free(b);
    pt_result_free(c);
    pt_result_free(back);
}

static void noise_is_called_noise(void **state)
{
    (void)state;
    static const double before[] = {100, 140, 80}, after[] = {90, 120, 105};
    struct pt_result *a = pool(before, 3), *b = pool(after, 3), *c = compare2(a, b, 0, NULL);
    assert_string_equal(pt_result_get_str(c, "tests.0.figures.0.against.0.verdict"),
                        "within noise");
    pt_result_free(a);
    pt_result_free(b);
    pt_result_free(c);
}

static void one_run_has_no_interval(void **state)
{
    (void)state;
    struct pt_result *a = lat(100, 1, 0), *b = lat(50, 2, 0), *c = compare2(a, b, 0, NULL);
    assert_string_equal(pt_result_get_str(c, "tests.0.figures.0.against.0.verdict"), "unknown");
    assert_true(fabs(real(c, "tests.0.figures.0.against.0.ratio") - 0.5) < 1e-12);
    assert_true(json_is_null(pt_result_at(c, "tests.0.figures.0.against.0.ratio_low")));
    pt_result_free(a);
    pt_result_free(b);
    pt_result_free(c);
}

static void several_documents_are_the_runs_of_a_side(void **state)
{
    (void)state;
    struct pt_result *a[] = {lat(100, 1, 0), lat(101, 1, 0)},
                     *b[] = {lat(80, 1, 0), lat(81, 1, 0), lat(0, 1, 0)}, *c = NULL;
    struct pt_compare_side sides[] = {{"a", a, 2}, {"b", b, 3}};
    pt_result_status(b[2], PT_RESULT_FAILED);
    assert_int_equal(pt_compare(sides, 2, &c, NULL), 0);
    assert_string_equal(pt_result_get_str(c, "tests.0.figures.0.against.0.verdict"), "better");
    assert_true(real(c, "tests.0.figures.0.sides.1.n") > 1.5 &&
                real(c, "tests.0.figures.0.sides.1.n") < 2.5);
    assert_string_equal(pt_result_get_str(c, "tests.0.sides.1.status"), "failed");
    pt_result_free(c);
    for (size_t i = 0; i < 2; i++)
        pt_result_free(a[i]);
    for (size_t i = 0; i < 3; i++)
        pt_result_free(b[i]);
}

static void zero_has_a_difference_and_no_ratio(void **state)
{
    (void)state;
    struct pt_result *a = lat(0, 1, 0), *b = lat(4, 1, 0), *c = compare2(a, b, 0, NULL);
    assert_true(json_is_null(pt_result_at(c, "tests.0.figures.0.against.0.ratio")));
    assert_true(fabs(real(c, "tests.0.figures.0.against.0.difference") - 4) < 1e-12);
    pt_result_free(a);
    pt_result_free(b);
    pt_result_free(c);
}

static const char *difference(const struct pt_result *c, const char *path, size_t side)
{
    const json_t *all = pt_result_at(c, "tests.0.differences");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *d = json_array_get(all, i);
        if (!strcmp(json_string_value(json_object_get(d, "path")), path)) {
            const char *v = json_string_value(json_array_get(json_object_get(d, "values"), side));
            return v ? v : "none";
        }
    }
    return NULL;
}

static void what_differs_is_said(void **state)
{
    (void)state;
    struct pt_result *a = lat(1, 1, 0), *b = lat(2, 1, 0);
    pt_result_str(b, "local.kernel", "6.2");
    pt_result_str(b, "local.boot_id", "two");
    pt_result_str(a, "test.params.cc", "bbr");
    pt_result_append(
        a, "environment.local.interfaces",
        json_pack("{s:s, s:i, s:[s, s]}", "if", "eth0", "mtu", 1500, "offloads", "gso", "gro"));
    pt_result_append(b, "environment.local.interfaces",
                     json_pack("{s:s, s:i, s:[s]}", "if", "eth0", "mtu", 9000, "offloads", "gso"));
    pt_result_append(b, "chosen", json_pack("{s:s, s:i}", "what", "block size", "value", 9));
    struct pt_result *c = compare2(a, b, 0, NULL);
    assert_string_equal(difference(c, "local.kernel", 1), "6.2");
    assert_string_equal(difference(c, "local.boot_id", 0), "one");
    assert_string_equal(difference(c, "test.params.cc", 0), "bbr");
    assert_string_equal(difference(c, "test.params.cc", 1), "none");
    assert_string_equal(difference(c, "environment.local.interfaces.eth0.mtu", 1), "9000");
    assert_string_equal(difference(c, "environment.local.interfaces.eth0.offloads", 0), "gso gro");
    assert_string_equal(difference(c, "chosen.block size", 1), "9");
    assert_null(difference(c, "local.pid", 0));
    pt_result_free(c);
    /* Another machine was of course started at another time. */
    pt_result_str(b, "local.host", "there");
    c = compare2(a, b, 0, NULL);
    assert_null(difference(c, "local.boot_id", 0));
    assert_string_equal(difference(c, "local.host", 1), "there");
    pt_result_free(a);
    pt_result_free(b);
    pt_result_free(c);
}

static struct pt_result *plan_run(const char *first, const char *second)
{
    struct pt_result *run = pt_run_new("plan", 0), *x = lat(10, 1, 0), *y = lat(20, 1, 0);
    pt_result_str(x, "test.name", first);
    pt_result_str(y, "test.name", second);
    pt_run_add(run, x);
    pt_run_add(run, y);
    return run;
}

static void tests_of_runs_are_matched_by_name(void **state)
{
    (void)state;
    struct pt_result *a = plan_run("x", "y"), *b = plan_run("z", "x"), *c = compare2(a, b, 0, NULL);
    assert_int_equal(json_array_size(pt_result_at(c, "tests")), 1);
    assert_string_equal(pt_result_get_str(c, "tests.0.name"), "x");
    assert_true(fabs(real(c, "tests.0.figures.0.against.0.ratio") - 2) < 1e-12);
    assert_string_equal(pt_result_get_str(c, "warnings.0"), "y is not in b.json");
    pt_result_free(b);
    pt_result_free(c);
    b = plan_run("u", "v");
    assert_null(compare2(a, b, -EINVAL, "no test of the same name"));
    pt_result_free(b);
    b = lat(1, 1, 0);
    assert_null(compare2(a, b, -EINVAL, "like with like"));
    assert_null(compare2(b, a, -EINVAL, "like with like"));
    pt_result_str(b, "test.workload", "bw");
    struct pt_result *d = lat(1, 1, 0);
    assert_null(compare2(d, b, -EINVAL, "no figures in common"));
    pt_result_free(a);
    pt_result_free(b);
    pt_result_free(d);
}

static void the_text_has_every_figure(void **state)
{
    (void)state;
    static const double before[] = {100, 102, 98}, after[] = {50, 51, 49};
    static const char *const needles[] = {"pitot compare", "a.json: 3 runs, here", "RTT p50",
                                          "100 \u00b5s",   "50.0 \u00b5s",         "0.500",
                                          "better",        "What differs"};
    struct pt_result *a = pool(before, 3), *b = pool(after, 3), *c = compare2(a, b, 0, NULL);
    struct pt_sink_style style = {0};
    struct pt_buf out;
    pt_buf_init(&out, 1 << 20);
    assert_int_equal(pt_sink_compare_text.render(c, &style, &out, NULL), 0);
    for (size_t i = 0; i < PT_COUNT(needles); i++)
        if (!strstr(pt_buf_str(&out), needles[i]))
            fail_msg("no \"%s\" in:\n%s", needles[i], pt_buf_str(&out));
    pt_buf_fini(&out);
    pt_result_free(a);
    pt_result_free(b);
    pt_result_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clear_difference_is_beyond_noise),
        cmocka_unit_test(noise_is_called_noise),
        cmocka_unit_test(one_run_has_no_interval),
        cmocka_unit_test(several_documents_are_the_runs_of_a_side),
        cmocka_unit_test(zero_has_a_difference_and_no_ratio),
        cmocka_unit_test(what_differs_is_said),
        cmocka_unit_test(tests_of_runs_are_matched_by_name),
        cmocka_unit_test(the_text_has_every_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
