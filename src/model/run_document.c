/* run_document.c: see run_document.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/run_document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pt_result *pt_run_new(const char *name, pt_ns realtime)
{
    struct pt_result *r = pt_result_bare(PT_RUN_SCHEMA, realtime);
    static const char *const lists[] = {"tests", "together", "start_skew_us", "sums", "warnings"};
    if (!r)
        return NULL;
    pt_result_str(r, "name", name);
    for (size_t i = 0; i < PT_COUNT(lists); i++)
        pt_result_take(r, lists[i], json_array());
    return r;
}

size_t pt_run_tests(const struct pt_result *run)
{
    return json_array_size(pt_result_at(run, "tests"));
}

struct pt_result pt_run_test(const struct pt_result *run, size_t index)
{
    return (struct pt_result){.root = json_array_get(pt_result_at(run, "tests"), index)};
}

void pt_run_add(struct pt_result *run, struct pt_result *test)
{
    if (test->failed && !run->failed)
        run->failed = test->failed;
    pt_result_append(run, "tests", json_incref(test->root));
    pt_result_free(test);
}

static json_t *indices(size_t first, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer((json_int_t)first + (json_int_t)i));
    return a;
}

void pt_run_together(struct pt_result *run, size_t first, size_t n, pt_ns skew_ns)
{
    pt_result_append(run, "together", indices(first, n));
    pt_result_append(run, "start_skew_us",
                     skew_ns < 0 ? json_null() : json_real((double)skew_ns / 1e3));
}

/* The sum of one figure over the tests; false when one of them does not have it. */
static bool add_up(const struct pt_result *run, size_t first, size_t n, const char *path,
                   double *sum)
{
    *sum = 0;
    for (size_t i = 0; i < n; i++) {
        const struct pt_result test = pt_run_test(run, first + i);
        double v = 0;
        if (!pt_result_get_real(&test, path, &v))
            return false;
        *sum += v;
    }
    return true;
}

void pt_run_sum(struct pt_result *run, const char *name, size_t first, size_t n)
{
    static const char *const rates[] = {"operations_per_s", "tx_bits_per_s", "rx_bits_per_s",
                                        "tx_packets_per_s", "rx_packets_per_s"};
    static const char *const totals[] = {"operations", "ok",         "tx_bytes",    "rx_bytes",
                                         "tx_packets", "rx_packets", "lost_packets"};
    json_t *r = json_object(), *t = json_object();
    char path[64];
    double v = 0, sent = 0;
    for (size_t i = 0; i < PT_COUNT(rates); i++) {
        snprintf(path, sizeof(path), "rates.%s", rates[i]);
        json_object_set_new(r, rates[i],
                            add_up(run, first, n, path, &v) ? json_real(v) : json_null());
    }
    for (size_t i = 0; i < PT_COUNT(totals); i++) {
        snprintf(path, sizeof(path), "totals.%s", totals[i]);
        json_object_set_new(t, totals[i],
                            add_up(run, first, n, path, &v) ? json_integer((json_int_t)v)
                                                            : json_null());
    }
    bool known = add_up(run, first, n, "totals.lost_packets", &v) &&
                 add_up(run, first, n, "totals.tx_packets", &sent) && sent > 0;
    json_object_set_new(r, "loss_pct", known ? json_real(100 * v / sent) : json_null());
    pt_result_append(run, "sums",
                     json_pack("{s:s, s:o, s:o, s:o}", "name", name, "tests", indices(first, n),
                               "rates", r, "totals", t));
}

void pt_run_conclude(struct pt_result *run)
{
    enum pt_result_status worst = PT_RESULT_OK;
    bool missed = false;
    for (size_t i = 0; i < pt_run_tests(run); i++) {
        const struct pt_result test = pt_run_test(run, i);
        enum pt_result_status s = pt_result_get_status(&test);
        worst = s > worst ? s : worst;
        missed |= pt_result_exit(&test) == 3;
    }
    /* A plan of which a part was done is not the failure that its failed test is. */
    if (worst == PT_RESULT_FAILED && pt_run_tests(run) > 1) {
        bool all = true;
        for (size_t i = 0; i < pt_run_tests(run); i++) {
            const struct pt_result test = pt_run_test(run, i);
            all &= pt_result_get_status(&test) == PT_RESULT_FAILED;
        }
        worst = all ? PT_RESULT_FAILED : PT_RESULT_PARTIAL;
    }
    pt_result_status(run, worst);
    if (!pt_result_exit(run) && missed)
        pt_result_i64(run, "exit", 3);
}

/* ---- from a file */

static int check_indices(const struct pt_result *run, const json_t *list, struct pt_err *e)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            (size_t)json_integer_value(v) >= pt_run_tests(run))
            return pt_fail(e, -EBADMSG, "a group names a test that is not there");
    }
    return json_is_array(list) ? 0 : pt_fail(e, -EBADMSG, "a group is no list of tests");
}

static int check_groups(const struct pt_result *run, struct pt_err *e)
{
    const json_t *together = pt_result_at(run, "together"), *sums = pt_result_at(run, "sums");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(together); i++)
        rc = check_indices(run, json_array_get(together, i), e);
    for (size_t i = 0; rc == 0 && i < json_array_size(sums); i++)
        rc = check_indices(run, json_object_get(json_array_get(sums, i), "tests"), e);
    return rc;
}

static int check(const struct pt_result *run, struct pt_err *e)
{
    static const char *const lists[] = {"tests", "together", "start_skew_us", "sums", "warnings"};
    static const char *const texts[] = {"version", "id", "name", "started", "plan"};
    for (size_t i = 0; i < PT_COUNT(lists); i++)
        if (!json_is_array(pt_result_at(run, lists[i])))
            return pt_fail(e, -EBADMSG, "`%s` is no list", lists[i]);
    for (size_t i = 0; i < PT_COUNT(texts); i++) {
        const json_t *v = pt_result_at(run, texts[i]);
        if (v && !json_is_null(v) && !json_is_string(v))
            return pt_fail(e, -EBADMSG, "`%s` is no text", texts[i]);
    }
    for (size_t i = 0; i < pt_run_tests(run); i++) {
        const struct pt_result test = pt_run_test(run, i);
        int rc = json_is_object(test.root) ? pt_result_check(&test, e)
                                           : pt_fail(e, -EBADMSG, "it is no object");
        if (rc < 0)
            return e ? pt_fail_prefix(e, "test %zu", i + 1) : rc;
    }
    return check_groups(run, e);
}

bool pt_run_is(const struct pt_result *document)
{
    const char *schema = pt_result_get_str(document, "schema");
    return schema && !strcmp(schema, PT_RUN_SCHEMA);
}

int pt_document_parse(const char *bytes, size_t n, struct pt_result **out, struct pt_err *e)
{
    int rc = pt_result_read(bytes, n, out, e);
    if (rc == 0)
        rc = pt_run_is(*out) ? check(*out, e) : pt_result_check(*out, e);
    if (rc < 0) {
        pt_result_free(*out);
        *out = NULL;
    }
    return rc;
}
