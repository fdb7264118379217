/* test_formats.c: every key that two ends exchange during a test is on a page in docs/formats/.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "engine/half.h"
#include "model/plan.h"
#include "workload/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *slurp(const char *name)
{
    char path[4096];
    const char *root = getenv("PITOT_SOURCE");
    snprintf(path, sizeof(path), "%s/docs/formats/%s", root ? root : ".", name);
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("cannot open %s", path);
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    assert_true(n > 0);
    fclose(f);
    return text;
}

static unsigned keys_seen;

/* Every key below `at` stands in backticks on the page; what is below `elsewhere` is not looked at,
 * another page has it. */
static void check_keys(json_t *at, const char *page, const char *elsewhere)
{
    const char *key;
    json_t *value;
    size_t i;
    json_array_foreach(at, i, value) check_keys(value, page, elsewhere);
    json_object_foreach(at, key, value)
    {
        char quoted[100];
        snprintf(quoted, sizeof(quoted), "`%s`", key);
        keys_seen++;
        if (!strstr(page, quoted))
            fail_msg("the page does not say what %s is", quoted);
        if (strcmp(key, elsewhere) != 0)
            check_keys(value, page, elsewhere);
    }
}

/* Nothing zero, so that nothing is left out. */
static json_t *full_half(void)
{
    static struct pt_half h;
    static struct pt_half_flow flow;
    static struct pt_point point;
    static struct pt_wire wire;
    static struct pt_hist hist;
    memset(&h, 1, sizeof(h));
    memset(&flow, 1, sizeof(flow));
    memset(&point, 1, sizeof(point));
    flow.limited_by = pt_half_limits[0];
    strcpy(flow.local, "a");
    strcpy(flow.remote, "b");
    strcpy(h.backend, "epoll");
    strcpy(h.error, "broke");
    strcpy(h.socket.cc, "cubic");
    strcpy(wire.dev, "lo");
    wire.mtu = 1500;
    pt_hist_record(&hist, 1000);
    h.flows = &flow;
    h.flow_count = 1;
    h.series = (struct pt_series){.n = 1, .at = &point};
    h.note_count = 0;
    h.wire = &wire;
    h.host = json_object(); /* what is in it docs/METHOD.md says */
    for (unsigned i = 0; i < PT_HISTS; i++)
        h.hist[i] = &hist;
    json_t *half = pt_half_to_json(&h);
    json_decref(h.host);
    return half;
}

static void a_half_is_described(void **state)
{
    (void)state;
    char *page = slurp("half.md");
    json_t *half = full_half();
    assert_non_null(half);
    keys_seen = 0;
    check_keys(half, page, "net");
    assert_true(keys_seen > 90);
    json_decref(half);
    free(page);
}

static void the_parameters_of_a_test_are_listed(void **state)
{
    (void)state;
    char *page = slurp("control.md");
    for (size_t i = 0; pt_workloads[i]; i++) {
        struct pt_plan plan;
        struct pt_err e = {0};
        assert_int_equal(pt_plan_init(&plan, &pt_workloads[i]->form, &e), 0);
        json_t *params = pt_plan_to_peer(&plan);
        keys_seen = 0;
        check_keys(params, page, "rate");
        assert_true(keys_seen > 10);
        json_decref(params);
        pt_plan_fini(&plan);
    }
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_half_is_described),
        cmocka_unit_test(the_parameters_of_a_test_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
