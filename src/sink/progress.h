/* progress.h: the live line of each interval, and on a terminal a bar with the time left.
 *
 * Only makes bytes: the command writes them to the terminal.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_PROGRESS_H
#define PT_SINK_PROGRESS_H

#include "base/buf.h"
#include "base/types.h"

struct pt_progress {
    bool terminal; /* lines may be redrawn: a bar follows the last one */
    bool color, chinese;
    bool bar_shown;
};

struct pt_progress_figure {
    const char *name; /* in English: "received"; "" for none */
    double value;     /* NaN: shown as "-" */
    const char *unit; /* as in figure.h */
};

/* One line: the time since the start of the measurement (negative in the warm-up), the figures. */
void pt_progress_line(struct pt_progress *p, pt_ns elapsed,
                      const struct pt_progress_figure *figures, size_t n, struct pt_buf *out);
/* The bar: `elapsed` of `total`, both from the start of the warm-up; `total` 0 when the end is not
 * known. Nothing when not a terminal. */
void pt_progress_bar(struct pt_progress *p, pt_ns elapsed, pt_ns total, struct pt_buf *out);
/* Takes the bar away. */
void pt_progress_end(struct pt_progress *p, struct pt_buf *out);

#endif
