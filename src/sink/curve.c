/* curve.c: see curve.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/curve.h"

#include "stat/hdr.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const blocks[] = {
    "latency",     "service_time",    "connect_time",     "first_byte_time",
    "wakeup_time", "one_way.forward", "one_way.backward", "load.idle",
};

static json_int_t as_json(uint64_t n)
{
    return n > INT64_MAX ? INT64_MAX : (json_int_t)n;
}

/* ---- percentiles */

static void add_percentile(json_t *to, const struct pt_hist *h, double q)
{
    if (pt_hist_depth_ok(h, q))
        json_array_append_new(to, json_pack("[f, f]", q, (double)pt_hist_quantile(h, q) / 1e3));
}

/* Evenly up to the median, then twenty for each further factor of ten of samples left beyond, 90,
 * 99, 99.9 % … among them. */
static json_t *percentiles(const struct pt_hist *h)
{
    json_t *all = json_array();
    for (int i = 0; i <= 10; i++)
        add_percentile(all, h, 0.05 * i);
    for (int i = 7; i <= 240 && pt_hist_depth_ok(h, 1 - pow(10, -i / 20.0)); i++)
        add_percentile(all, h, 1 - pow(10, -i / 20.0));
    return all;
}

/* ---- bins */

/* Equal widths on a logarithmic axis, each border moved to the next border of a bucket below it.
 * `edge` gets n + 1 bucket numbers; fewer, where bins would be narrower than a bucket. */
static size_t edges(const struct pt_hist *h, uint32_t edge[PT_CURVE_BINS + 1])
{
    double least = (double)pt_hist_min(h), most = (double)pt_hist_max(h);
    size_t n = 0;
    edge[0] = pt_hist_index(pt_hist_min(h));
    least = least > 1 ? least : 1;
    for (int i = 1; i < PT_CURVE_BINS; i++) {
        double border = least * pow(most / least, (double)i / PT_CURVE_BINS);
        uint32_t index = border < most ? pt_hist_index((uint64_t)border) : 0;
        if (index > edge[n])
            edge[++n] = index;
    }
    edge[++n] = pt_hist_index(pt_hist_max(h)) + 1;
    return n;
}

static void add_bin(json_t *to, uint32_t first, uint32_t end, uint64_t count)
{
    double low = (double)pt_hist_low(first);
    double high = (double)pt_hist_low(end - 1) + (double)pt_hist_width(end - 1);
    if (count)
        json_array_append_new(to, json_pack("[f, f, I]", low / 1e3, high / 1e3, as_json(count)));
}

static json_t *bins(const struct pt_hist *h)
{
    json_t *all = json_array();
    struct pt_hist_bucket b = {0};
    uint32_t edge[PT_CURVE_BINS + 1];
    size_t n = edges(h, edge), at = 0;
    uint64_t count = 0;
    while (pt_hist_next(h, &b)) {
        while (at + 1 < n && b.index >= edge[at + 1]) {
            add_bin(all, edge[at], edge[at + 1], count);
            count = 0;
            at++;
        }
        count += b.count;
    }
    add_bin(all, edge[at], edge[at + 1], count);
    return all;
}

static void add_block(json_t *to, const struct pt_result *r, const char *path, struct pt_hist *h)
{
    char key[64];
    snprintf(key, sizeof(key), "%s.hdr", path);
    const char *text = pt_result_get_str(r, key);
    if (!text || pt_hdr_decode(text, strlen(text), h, NULL) < 0 || !pt_hist_count(h))
        return;
    json_object_set_new(to, path,
                        json_pack("{s:I, s:o, s:o}", "count", as_json(pt_hist_count(h)),
                                  "percentiles", percentiles(h), "bins", bins(h)));
}

json_t *pt_curves(const struct pt_result *r)
{
    struct pt_hist *h = calloc(1, sizeof(*h));
    json_t *all = json_object();
    for (size_t i = 0; h && all && i < PT_COUNT(blocks); i++)
        add_block(all, r, blocks[i], h);
    free(h);
    return all;
}
