/* compare.c: see compare.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/compare.h"

#include "model/compare_circumstances.h"
#include "model/figures.h"
#include "model/run_document.h"
#include "os/clock.h"
#include "stat/welch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tests of one name on one side: views into its documents. */
struct pool {
    struct pt_result test[256];
    size_t n;
};

struct match {
    const char *name, *from;
    struct pool *pool; /* one per side */
    size_t sides;
};

/* ---- which tests belong together */

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static size_t tests_of(const struct pt_result *document)
{
    return pt_run_is(document) ? pt_run_tests(document) : 1;
}

static struct pt_result test_of(const struct pt_result *document, size_t i)
{
    return pt_run_is(document) ? pt_run_test(document, i) : *document;
}

/* Results on their own are the same test whatever their names are. */
static bool is_same(const struct match *m, const struct pt_result *document,
                    const struct pt_result *test)
{
    return !pt_run_is(document) ||
           (!strcmp(or_empty(pt_result_get_str(test, "test.name")), m->name) &&
            !strcmp(or_empty(pt_result_get_str(test, "test.from")), m->from));
}

static int collect_side(const struct match *m, const struct pt_compare_side *side,
                        struct pool *pool, struct pt_err *e)
{
    pool->n = 0;
    for (size_t d = 0; d < side->n; d++) {
        for (size_t i = 0; i < tests_of(side->document[d]); i++) {
            const struct pt_result test = test_of(side->document[d], i);
            if (!is_same(m, side->document[d], &test))
                continue;
            if (pool->n == PT_COUNT(pool->test))
                return pt_fail(e, -E2BIG, "%s: at most %zu documents can be taken together",
                               side->text, PT_COUNT(pool->test));
            pool->test[pool->n++] = test;
        }
    }
    return 0;
}

static const char *workload_of(const struct pt_result *test)
{
    return or_empty(pt_result_get_str(test, "test.workload"));
}

static int check_workloads(const struct match *m, const struct pt_compare_side *sides,
                           struct pt_err *e)
{
    const char *first = workload_of(&m->pool[0].test[0]);
    for (size_t s = 0; s < m->sides; s++)
        for (size_t i = 0; i < m->pool[s].n; i++)
            if (strcmp(workload_of(&m->pool[s].test[i]), first) != 0)
                return pt_fail(e, -EINVAL,
                               "%s holds %s and %s holds %s: different measurements have no "
                               "figures in common",
                               sides[0].text, first, sides[s].text,
                               workload_of(&m->pool[s].test[i]));
    return 0;
}

/* ---- figures */

struct values {
    double *v;
    size_t n;
};

static bool add_value(struct values *into, const json_t *v)
{
    if (!json_is_number(v) || !isfinite(json_number_value(v)))
        return true;
    double *grown = realloc(into->v, (into->n + 1) * sizeof(*grown));
    if (!grown)
        return false;
    into->v = grown;
    into->v[into->n++] = json_number_value(v);
    return true;
}

/* The figure of every run of a pool. False: no memory. */
static bool values_of(const struct pool *pool, const char *path, struct values *out)
{
    *out = (struct values){0};
    for (size_t i = 0; i < pool->n; i++) {
        const json_t *metric =
            json_object_get(pt_result_at(&pool->test[i], "repeat.metrics"), path);
        const json_t *runs = json_object_get(metric, "values");
        if (pt_result_get_status(&pool->test[i]) == PT_RESULT_FAILED)
            continue;
        if (!json_array_size(runs) && !add_value(out, pt_result_at(&pool->test[i], path)))
            return false;
        for (size_t k = 0; k < json_array_size(runs); k++)
            if (!add_value(out, json_array_get(runs, k)))
                return false;
    }
    return true;
}

static json_t *real_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static json_t *side_json(const struct values *all)
{
    json_t *list = json_array();
    double *sorted = calloc(all->n + 1, sizeof(*sorted));
    for (size_t i = 0; i < all->n; i++)
        json_array_append_new(list, json_real(all->v[i]));
    if (!sorted || !all->n) {
        free(sorted);
        return json_pack("{s:i, s:o, s:n, s:n, s:n}", "n", 0, "values", list, "median", "min",
                         "max");
    }
    memcpy(sorted, all->v, all->n * sizeof(*sorted));
    qsort(sorted, all->n, sizeof(*sorted), by_value);
    double median = (sorted[(all->n - 1) / 2] + sorted[all->n / 2]) / 2;
    json_t *o = json_pack("{s:I, s:o, s:f, s:f, s:f}", "n", (json_int_t)all->n, "values", list,
                          "median", median, "min", sorted[0], "max", sorted[all->n - 1]);
    free(sorted);
    return o;
}

static bool logarithms(const struct values *of, struct values *out)
{
    *out = (struct values){.v = calloc(of->n + 1, sizeof(double)), .n = of->n};
    if (!out->v)
        return false;
    for (size_t i = 0; i < of->n; i++) {
        if (!(of->v[i] > 0))
            return false;
        out->v[i] = log(of->v[i]);
    }
    return true;
}

static const char *verdict_of(enum pt_better better, double low, double high, double same)
{
    if (!isfinite(low) || !isfinite(high))
        return "unknown";
    if (low <= same && high >= same)
        return "within noise";
    if (better == PT_BETTER_NEITHER)
        return "changed";
    return (low > same) == (better == PT_BETTER_HIGHER) ? "better" : "worse";
}

/* Side `b` against the first. */
static json_t *against_json(const struct values *a, const struct values *b, enum pt_better better)
{
    struct pt_interval ratio = {.low = (double)NAN, .middle = (double)NAN, .high = (double)NAN},
                       difference = ratio;
    struct values la = {0}, lb = {0};
    const char *verdict = "unknown";
    if (a->n && b->n) {
        bool noise = pt_welch(a->v, a->n, b->v, b->n, PT_COMPARE_CONFIDENCE, &difference);
        bool positive = logarithms(a, &la) && logarithms(b, &lb);
        if (positive) {
            noise = pt_welch(la.v, la.n, lb.v, lb.n, PT_COMPARE_CONFIDENCE, &ratio);
            ratio = (struct pt_interval){exp(ratio.low), exp(ratio.middle), exp(ratio.high)};
        }
        if (noise && positive)
            verdict = verdict_of(better, ratio.low, ratio.high, 1);
        else if (noise)
            verdict = verdict_of(better, difference.low, difference.high, 0);
    }
    free(la.v);
    free(lb.v);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "ratio", real_or_null(ratio.middle),
                     "ratio_low", real_or_null(ratio.low), "ratio_high", real_or_null(ratio.high),
                     "difference", real_or_null(difference.middle), "difference_low",
                     real_or_null(difference.low), "difference_high", real_or_null(difference.high),
                     "verdict", verdict);
}

static int add_figure(json_t *into, const struct match *m, const char *name, const char *path,
                      const char *unit, enum pt_better better)
{
    static const char *const words[] = {NULL, "higher", "lower"};
    struct values all[PT_COMPARE_SIDES] = {{0}};
    json_t *sides = json_array(), *against = json_array();
    size_t have = 0;
    int rc = 0;
    for (size_t s = 0; s < m->sides; s++) {
        if (!values_of(&m->pool[s], path, &all[s]))
            rc = -ENOMEM;
        have += all[s].n > 0;
        json_array_append_new(sides, side_json(&all[s]));
    }
    for (size_t s = 1; s < m->sides; s++)
        json_array_append_new(against, against_json(&all[0], &all[s], better));
    for (size_t s = 0; s < m->sides; s++)
        free(all[s].v);
    json_t *o = json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o}", "name", name, "path", path, "unit",
                          unit, "better", words[better], "sides", sides, "against", against);
    if (have < 2) {
        json_decref(o);
        return rc;
    }
    return json_array_append_new(into, o) < 0 ? -ENOMEM : rc;
}

static bool has_figure(const json_t *figures, const char *path)
{
    for (size_t i = 0; i < json_array_size(figures); i++) {
        const char *have = json_string_value(json_object_get(json_array_get(figures, i), "path"));
        if (have && !strcmp(have, path))
            return true;
    }
    return false;
}

/* The headline first, then what else is compared. NULL: no memory. */
static json_t *figures_json(const struct match *m)
{
    const struct pt_result *first = &m->pool[0].test[0];
    json_t *all = json_array(), *headline = pt_result_at(first, "headline");
    int rc = all ? 0 : -ENOMEM;
    for (size_t i = 0; i < json_array_size(headline); i++) {
        const json_t *h = json_array_get(headline, i);
        const char *path = json_string_value(json_object_get(h, "path")),
                   *name = json_string_value(json_object_get(h, "name")),
                   *unit = json_string_value(json_object_get(h, "unit"));
        const struct pt_figure *f = path ? pt_figure_find(first, path) : NULL;
        if (path && name && unit)
            rc |= add_figure(all, m, name, path, unit, f ? f->better : PT_BETTER_NEITHER);
    }
    for (const struct pt_figure *f = pt_figures; f->name; f++)
        if (f->compared && pt_figure_belongs(f, first) && !has_figure(all, f->path))
            rc |= add_figure(all, m, f->name, f->path, f->unit, f->better);
    if (rc < 0) {
        json_decref(all);
        return NULL;
    }
    return all;
}

/* ---- a test */

static json_t *about_json(const struct pool *pool)
{
    const struct pt_result *first = &pool->test[0];
    static const char *const words[] = {"ok", "partial", "failed"};
    enum pt_result_status worst = PT_RESULT_OK;
    bool valid = true;
    json_int_t runs = 0;
    for (size_t i = 0; i < pool->n; i++) {
        uint64_t n = 1;
        enum pt_result_status s = pt_result_get_status(&pool->test[i]);
        worst = s > worst ? s : worst;
        valid &= !json_is_false(pt_result_at(&pool->test[i], "generator.valid"));
        if (!pt_result_get_u64(&pool->test[i], "repeat.n", &n))
            n = 1;
        runs += (json_int_t)n;
    }
    return json_pack("{s:I, s:s, s:s?, s:s?, s:s?, s:s?, s:b}", "runs", runs, "status",
                     words[worst], "host", pt_result_get_str(first, "local.host"), "target",
                     pt_result_get_str(first, "test.target"), "started",
                     pt_result_get_str(first, "started"), "limited_by",
                     pt_result_get_str(first, "limited_by.0.what"), "generator_valid", valid);
}

static json_t *differences_json(const struct match *m)
{
    json_t *sides[PT_COMPARE_SIDES] = {0}, *all = NULL;
    bool complete = true;
    for (size_t s = 0; s < m->sides; s++) {
        sides[s] = pt_circumstances(&m->pool[s].test[0]);
        complete &= sides[s] != NULL;
    }
    if (complete)
        all = pt_circumstances_differ(sides, m->sides);
    for (size_t s = 0; s < m->sides; s++)
        json_decref(sides[s]);
    return all;
}

static int add_test(struct pt_result *r, const struct match *m, const struct pt_compare_side *sides,
                    struct pt_err *e)
{
    int rc = check_workloads(m, sides, e);
    if (rc < 0)
        return rc;
    json_t *about = json_array(), *figures = figures_json(m);
    for (size_t s = 0; s < m->sides; s++)
        json_array_append_new(about, about_json(&m->pool[s]));
    if (figures && !json_array_size(figures))
        pt_result_warn(r, "%s: no figure of it is known on two sides", m->name);
    pt_result_append(r, "tests",
                     json_pack("{s:s, s:s?, s:s, s:o, s:o, s:o}", "name", m->name, "from",
                               *m->from ? m->from : NULL, "workload",
                               workload_of(&m->pool[0].test[0]), "sides", about, "figures", figures,
                               "differences", differences_json(m)));
    return 0;
}

/* ---- all of it */

static int check_kinds(const struct pt_compare_side *sides, size_t n, struct pt_err *e)
{
    bool run = pt_run_is(sides[0].document[0]);
    for (size_t s = 0; s < n; s++)
        for (size_t d = 0; d < sides[s].n; d++)
            if (pt_run_is(sides[s].document[d]) != run)
                return pt_fail(e, -EINVAL, "%s is %s, but %s is %s: compare like with like",
                               sides[0].text, run ? "the run of a plan" : "one measurement",
                               sides[s].text, run ? "one measurement" : "the run of a plan");
    return 0;
}

/* Every test of the first side's first document; what another side does not have is said. */
static int compare_tests(struct pt_result *r, struct match *m, const struct pt_compare_side *sides,
                         struct pt_err *e)
{
    const struct pt_result *model = sides[0].document[0];
    size_t made = 0;
    for (size_t i = 0; i < tests_of(model); i++) {
        const struct pt_result test = test_of(model, i);
        bool everywhere = true;
        m->name = or_empty(pt_result_get_str(&test, "test.name"));
        m->from = or_empty(pt_result_get_str(&test, "test.from"));
        for (size_t s = 0; s < m->sides; s++) {
            int rc = collect_side(m, &sides[s], &m->pool[s], e);
            if (rc < 0)
                return rc;
            if (!m->pool[s].n)
                pt_result_warn(r, "%s is not in %s", m->name, sides[s].text);
            everywhere &= m->pool[s].n > 0;
        }
        int rc = everywhere ? add_test(r, m, sides, e) : 0;
        if (rc < 0)
            return rc;
        made += everywhere;
    }
    return made ? 0
                : pt_fail(e, -EINVAL, "%s and the others have no test of the same name in common",
                          sides[0].text);
}

static void add_sides(struct pt_result *r, const struct pt_compare_side *sides, size_t n)
{
    for (size_t s = 0; s < n; s++) {
        const char name[] = {(char)('A' + s), '\0'};
        pt_result_append(r, "sides",
                         json_pack("{s:s, s:s, s:I}", "name", name, "text", sides[s].text,
                                   "documents", (json_int_t)sides[s].n));
    }
}

int pt_compare(const struct pt_compare_side *sides, size_t n, struct pt_result **out,
               struct pt_err *e)
{
    *out = NULL;
    if (n < 2 || n > PT_COMPARE_SIDES)
        return pt_fail(e, -EINVAL, "a comparison has 2 to %d sides", PT_COMPARE_SIDES);
    int rc = check_kinds(sides, n, e);
    if (rc < 0)
        return rc;
    struct match m = {.pool = calloc(n, sizeof(*m.pool)), .sides = n};
    struct pt_result *r = pt_result_bare(PT_COMPARE_SCHEMA, pt_clock_realtime());
    if (!m.pool || !r) {
        free(m.pool);
        pt_result_free(r);
        return pt_fail(e, -ENOMEM, "no memory for the comparison");
    }
    pt_result_real(r, "confidence_pct", PT_COMPARE_CONFIDENCE * 100);
    add_sides(r, sides, n);
    pt_result_take(r, "tests", json_array());
    pt_result_take(r, "warnings", json_array());
    rc = compare_tests(r, &m, sides, e);
    free(m.pool);
    if (rc == 0 && pt_result_failed(r))
        rc = pt_fail(e, pt_result_failed(r), "no memory for the comparison");
    if (rc < 0) {
        pt_result_free(r);
        return rc;
    }
    pt_result_round(r);
    *out = r;
    return 0;
}
