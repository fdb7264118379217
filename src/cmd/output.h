/* output.h: where the text, the live lines and the files of a measuring command go.
 *
 * Text goes to stdout, or to stderr when --json -, --csv - or --html - takes stdout. Live lines go
 * where the text goes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_OUTPUT_H
#define PT_CMD_OUTPUT_H

#include "model/reporting.h"
#include "model/result.h"
#include "sink/progress.h"
#include "sink/sink.h"

/* How a kind of document is reported. */
struct pt_reports {
    const struct pt_sink *text, *series, *totals; /* the last two: --csv */
};

extern const struct pt_reports pt_reports_test, pt_reports_run;

struct pt_output {
    const struct pt_reporting *asked;
    const struct pt_reports *reports; /* pt_output_init: of a test */
    int fd;                           /* of text and live lines */
    bool color, chinese;
    bool kept; /* set by the caller: the document is a file already */
    struct pt_progress progress;
};

/* -EINVAL when a file would overwrite another one, or `input`, which the command reads (NULL: it
 * reads none), and when it is plain before anything runs that it cannot be written. */
int pt_output_check(const struct pt_reporting *c, const char *input, struct pt_err *e) PT_MUST_USE;

void pt_output_init(struct pt_output *o, const struct pt_reporting *asked);

/* One live line and, on a terminal, the bar; nothing with --quiet. Times as in progress.h. */
void pt_output_live(struct pt_output *o, pt_ns elapsed, const struct pt_progress_figure *figures,
                    size_t n, pt_ns since_start, pt_ns total);
/* A line of its own, e.g. one trial of a search; nothing with --quiet. */
void pt_output_say(struct pt_output *o, const char *line);
/* A part of the report that is known before the rest. */
void pt_output_text(struct pt_output *o, const struct pt_buf *text);
/* A report that is nowhere else: when it cannot be written this says so, and returns why. A reader
 * who closed the pipe has seen enough, and is none. */
int pt_output_print(const struct pt_output *o, const struct pt_buf *text) PT_MUST_USE;
/* Whether `fd` is a pipe that nobody reads any more: who closed it has seen enough. */
bool pt_output_reader_left(int fd);
/* Takes the bar away; also before an error is printed. */
void pt_output_quiet_down(struct pt_output *o);

/* Prints the report and writes every file that was asked for. A file that cannot be written does
 * not lose the measurement: the document is stored in $TMPDIR or /tmp instead, and as the last
 * resort printed on stderr; each is said there. 0, or the first negative errno. */
int pt_output_result(struct pt_output *o, const struct pt_result *r) PT_MUST_USE;

#endif
