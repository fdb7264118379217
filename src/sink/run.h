/* run.h: the reports of a run, `pitot.run/1`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_RUN_H
#define PT_SINK_RUN_H

#include "sink/sink.h"

/* The parts of the text, for a command that prints each as soon as it is known: what runs and on
 * what; one test: its headline, its verdict; and the end, a table of all tests. */
void pt_run_text_title(const struct pt_result *run, const struct pt_sink_style *style,
                       struct pt_buf *out);
void pt_run_text_test(const struct pt_result *test, const struct pt_sink_style *style,
                      struct pt_buf *out);

/* The whole text; its end only; one row per interval of every test; one row per test. */
extern const struct pt_sink pt_sink_run_text, pt_sink_run_end, pt_sink_run_csv_series,
    pt_sink_run_csv;

#endif
