/* result_hist.c: a histogram of nanoseconds as the block of figures that the document prints.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/result.h"

#include "base/buf.h"
#include "stat/hdr.h"
#include "stat/hist.h"

#include <stdio.h>

static const struct {
    const char *key;
    double q;
} percentiles[] = {
    {"p50_us", 0.50}, {"p75_us", 0.75},    {"p90_us", 0.90},      {"p95_us", 0.95},
    {"p99_us", 0.99}, {"p99_9_us", 0.999}, {"p99_99_us", 0.9999},
};

static double us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static json_t *real_or_null(bool known, double v)
{
    return known ? json_real(v) : json_null();
}

json_t *pt_hist_json(const struct pt_hist *h)
{
    bool any = pt_hist_count(h) > 0;
    json_t *o = json_object();
    int rc = o ? 0 : -1;
    rc |= json_object_set_new(o, "count", json_integer((json_int_t)pt_hist_count(h)));
    rc |= json_object_set_new(o, "mean_us", real_or_null(any, pt_hist_mean(h) / 1e3));
    rc |= json_object_set_new(o, "stddev_us", real_or_null(any, pt_hist_stddev(h) / 1e3));
    rc |= json_object_set_new(o, "min_us", real_or_null(any, us(pt_hist_min(h))));
    rc |= json_object_set_new(o, "max_us", real_or_null(any, us(pt_hist_max(h))));
    for (size_t i = 0; i < PT_COUNT(percentiles); i++) {
        double q = percentiles[i].q;
        bool deep = any && pt_hist_depth_ok(h, q);
        rc |= json_object_set_new(o, percentiles[i].key,
                                  real_or_null(deep, us(pt_hist_quantile(h, q))));
    }
    rc |= json_object_set_new(o, "within_1_stddev_pct",
                              real_or_null(any, pt_hist_within_1_stddev_pct(h)));
    if (rc < 0) {
        json_decref(o);
        return NULL;
    }
    return o;
}

void pt_result_hist(struct pt_result *r, const char *path, const struct pt_hist *h)
{
    char key[96];
    struct pt_buf text;
    pt_result_take(r, path, pt_hist_json(h));
    pt_buf_init(&text, PT_HDR_TEXT_MAX);
    int rc = pt_hdr_encode(h, &text);
    snprintf(key, sizeof(key), "%s.hdr", path);
    if (rc < 0 && !r->failed)
        r->failed = rc;
    pt_result_str(r, key, rc < 0 ? NULL : pt_buf_str(&text));
    pt_buf_fini(&text);
}
