/* result_repeat.c: several runs of one test as one document; see result.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const double *sorted, size_t n)
{
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Collects a figure of every run into `sorted`; returns how many runs have it. */
static size_t collect(struct pt_result *const *runs, size_t n, const char *path, double *sorted)
{
    size_t have = 0;
    for (size_t i = 0; i < n; i++)
        have += pt_result_get_real(runs[i], path, &sorted[have]) ? 1 : 0;
    qsort(sorted, have, sizeof(*sorted), by_value);
    return have;
}

static double spread_pct(const double *sorted, size_t n)
{
    double median = median_of(sorted, n), range = sorted[n - 1] - sorted[0];
    if (!(range > 0))
        return 0;
    return fabs(median) > 0 ? range / fabs(median) * 100 : (double)INFINITY;
}

static json_t *real_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

/* {values in the order of the runs, median, min, max, spread_pct} */
static json_t *metric_json(struct pt_result *const *runs, size_t n, const char *path,
                           double *sorted)
{
    size_t have = collect(runs, n, path, sorted);
    json_t *values = json_array();
    for (size_t i = 0; values && i < n; i++) {
        double v = 0;
        bool known = pt_result_get_real(runs[i], path, &v);
        json_array_append_new(values, known ? json_real(v) : json_null());
    }
    if (!have)
        return json_pack("{s:o, s:n, s:n, s:n, s:n}", "values", values, "median", "min", "max",
                         "spread_pct");
    return json_pack("{s:o, s:f, s:f, s:f, s:o}", "values", values, "median",
                     median_of(sorted, have), "min", sorted[0], "max", sorted[have - 1],
                     "spread_pct", real_or_null(spread_pct(sorted, have)));
}

/* Headline first, then what else is compared and some run has. NULL: no memory. */
static json_t *metrics_json(struct pt_result *const *runs, size_t n, double *sorted)
{
    json_t *metrics = json_object(), *headline = pt_result_at(runs[0], "headline");
    int rc = metrics ? 0 : -1;
    for (size_t i = 0; i < json_array_size(headline); i++) {
        const char *path = json_string_value(json_object_get(json_array_get(headline, i), "path"));
        if (path)
            rc |= json_object_set_new(metrics, path, metric_json(runs, n, path, sorted));
    }
    for (const struct pt_figure *f = pt_figures; f->name; f++)
        if (f->compared && pt_figure_belongs(f, runs[0]) && !json_object_get(metrics, f->path) &&
            collect(runs, n, f->path, sorted))
            rc |= json_object_set_new(metrics, f->path, metric_json(runs, n, f->path, sorted));
    if (rc < 0) {
        json_decref(metrics);
        return NULL;
    }
    return metrics;
}

/* The run whose figure is nearest to the median; the first when no run has it. */
static size_t median_run(struct pt_result *const *runs, size_t n, const char *path, double *sorted)
{
    size_t have = path ? collect(runs, n, path, sorted) : 0;
    if (!have)
        return 0;
    double median = median_of(sorted, have), nearest = (double)INFINITY;
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        double v = 0;
        if (pt_result_get_real(runs[i], path, &v) && fabs(v - median) < nearest) {
            nearest = fabs(v - median);
            best = i;
        }
    }
    return best;
}

static bool has_text(json_t *array, const char *text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *s = json_string_value(json_array_get(array, i));
        if (s && !strcmp(s, text))
            return true;
    }
    return false;
}

static void keep_worst(struct pt_result *const *runs, size_t n, struct pt_result *out)
{
    for (size_t i = 0; i < n; i++) {
        if (pt_result_get_status(runs[i]) > pt_result_get_status(out)) {
            pt_result_status(out, pt_result_get_status(runs[i]));
            pt_result_i64(out, "exit", pt_result_exit(runs[i]));
        }
        json_t *warnings = pt_result_at(runs[i], "warnings");
        for (size_t j = 0; j < json_array_size(warnings); j++) {
            const char *text = json_string_value(json_array_get(warnings, j));
            if (text && !has_text(pt_result_at(out, "warnings"), text))
                pt_result_warn(out, "%s", text);
        }
    }
}

int pt_result_repeat(struct pt_result *const *runs, size_t n, struct pt_result **out,
                     struct pt_err *e)
{
    *out = NULL;
    if (!n)
        return pt_fail(e, -EINVAL, "no runs to take the median of");
    double *sorted = calloc(n, sizeof(*sorted));
    struct pt_result *r = calloc(1, sizeof(*r));
    const char *first = pt_result_get_str(runs[0], "headline.0.path");
    if (sorted && r)
        r->root = json_deep_copy(runs[median_run(runs, n, first, sorted)]->root);
    if (!r || !r->root) {
        free(sorted);
        free(r);
        return pt_fail(e, -ENOMEM, "no memory for the document of %zu runs", n);
    }
    json_t *metrics = metrics_json(runs, n, sorted);
    if (!metrics)
        r->failed = -ENOMEM;
    size_t have = first ? collect(runs, n, first, sorted) : 0;
    bool agree = have == n && spread_pct(sorted, n) <= PT_RESULT_AGREE_PCT;
    pt_result_take(
        r, "repeat",
        json_pack("{s:I, s:o, s:b}", "n", (json_int_t)n, "metrics", metrics, "agree", agree));
    keep_worst(runs, n, r);
    free(sorted);
    if (r->failed) {
        int rc = r->failed;
        pt_result_free(r);
        return pt_fail(e, rc, "no memory for the document of %zu runs", n);
    }
    *out = r;
    return 0;
}
