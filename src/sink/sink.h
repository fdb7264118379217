/* sink.h: the contract of a report: a projection of the result document, nothing computed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_SINK_H
#define PT_SINK_SINK_H

#include "base/buf.h"
#include "base/err.h"
#include "model/result.h"

/* How text shall look. */
struct pt_sink_style {
    bool color;                    /* the output is a terminal and colour is wanted */
    bool chinese;                  /* else English */
    const char *json, *csv, *html; /* where they were stored, or NULL: shown at the end */
};

struct pt_sink {
    const char *name;
    /* Adds the report to `out`. */
    int (*render)(const struct pt_result *r, const struct pt_sink_style *style, struct pt_buf *out,
                  struct pt_err *e);
};

#define PT_SINK_CEILING ((size_t)512 << 20)

extern const struct pt_sink pt_sink_text, pt_sink_json, pt_sink_csv, pt_sink_csv_series,
    pt_sink_html;

/* Writes bytes to a file through a temporary neighbour and rename(2), so that a reader sees the old
 * content or the new and a full disk never leaves half a file; "-" is stdout. 0, or the errno with
 * a sentence that says what was lost and where it may go instead. */
int pt_sink_store(const char *path, const struct pt_buf *bytes, struct pt_err *e) PT_MUST_USE;

#endif
