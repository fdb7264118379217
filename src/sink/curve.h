/* curve.h: the shape of a stored histogram, as a page can draw it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_CURVE_H
#define PT_SINK_CURVE_H

#include "model/result.h"

#define PT_CURVE_BINS 80 /* at most */

/* Every histogram of a document by the path of its block ("latency", "one_way.forward"):
 *
 *     {"latency": {"count": 2000,
 *                  "percentiles": [[0.5, 64.496], …],        quantile, µs
 *                  "bins": [[26.624, 28.672, 113], …]}}      from, below (µs), how many
 *
 * Percentiles go as deep as the samples allow (pt_hist_depth_ok) and no further. Bins
 * are equally wide on a logarithmic axis; their borders are borders of the histogram's buckets, so
 * every count is exact; empty ones are left out. A
 * block without a histogram, or with one that cannot be read, is not there. A new reference; NULL:
 * no memory. */
json_t *pt_curves(const struct pt_result *r);

#endif
