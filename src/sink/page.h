/* page.h: lines of a text report: labels and values aligned, tables, long sentences wrapped at 80
 * columns, colour only when asked for.
 *
 * Every text that comes out of a document passes pt_page_text, which drops control characters, so a
 * document from elsewhere cannot write to the terminal what it likes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_PAGE_H
#define PT_SINK_PAGE_H

#include "base/buf.h"
#include "sink/sink.h"

#define PT_PAGE_COLUMNS 80
#define PT_PAGE_LABEL   30 /* column where values begin */
#define PT_PAGE_CELL    64
#define PT_PAGE_CELLS   9
#define PT_PAGE_ROWS    48

enum pt_ink { PT_INK_PLAIN, PT_INK_BOLD, PT_INK_DIM, PT_INK_RED, PT_INK_YELLOW, PT_INK_GREEN };

struct pt_page {
    struct pt_buf *out;
    const struct pt_sink_style *style;
};

/* Columns: the first is aligned left, the others right. */
struct pt_page_table {
    size_t rows, columns;
    char cell[PT_PAGE_ROWS][PT_PAGE_CELLS][PT_PAGE_CELL];
    enum pt_ink ink[PT_PAGE_ROWS];
};

/* The text in the reader's language. */
const char *pt_page_say(const struct pt_page *p, const char *english);

void pt_page_ink(struct pt_page *p, enum pt_ink ink);
/* Text of unknown origin. */
void pt_page_text(struct pt_page *p, const char *text);
/* An empty line and a bold line. */
void pt_page_heading(struct pt_page *p, const char *english);
/* "  label      value", the label in the reader's language; a long value is wrapped. */
void pt_page_row(struct pt_page *p, enum pt_ink ink, const char *english, const char *value);
/* Where the reports were stored, as far as the style tells. */
void pt_page_files(struct pt_page *p);
/* A sentence behind `lead` ("  - "), wrapped; continued lines are indented by its width. */
void pt_page_sentence(struct pt_page *p, enum pt_ink ink, const char *lead, const char *text);
void pt_page_table(struct pt_page *p, const struct pt_page_table *t);

#endif
