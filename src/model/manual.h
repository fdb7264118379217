/* manual.h: what `pitot COMMAND --help` prints and the man page, from the option tables.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_MANUAL_H
#define PT_MODEL_MANUAL_H

#include "model/opt.h"

struct pt_manual {
    const char *command;  /* "bw" */
    const char *summary;  /* one phrase: "bandwidth, TCP or UDP" */
    const char *usage;    /* after the command: "[HOST] [options]" */
    const char *about;    /* paragraphs, separated by an empty line; NULL: none */
    const char *examples; /* one per line, "command line\tremark"; NULL: none */
};

/* 80 columns, options grouped, defaults shown. */
void pt_manual_help(const struct pt_manual *m, const struct pt_opts *sets, size_t n,
                    struct pt_buf *out);
/* A page for section 1 in roff, man(7) macros. */
void pt_manual_man(const struct pt_manual *m, const struct pt_opts *sets, size_t n,
                   struct pt_buf *out);

/* For pages written elsewhere: what a page begins with; one line of plain text, `code` in bold, as
 * roff; a section EXAMPLES from text like pt_manual's `examples`. */
void pt_manual_man_title(const char *name, struct pt_buf *out);
void pt_manual_roff(struct pt_buf *out, const char *text, size_t n);
void pt_manual_man_examples(const char *text, struct pt_buf *out);

#endif
