/* text_tables.h: the tables of the text report; each prints nothing when the document has no such
 * block. Used by text.c only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_TEXT_TABLES_H
#define PT_SINK_TEXT_TABLES_H

#include "sink/page.h"

void pt_text_latency(struct pt_page *p, const struct pt_result *r);
void pt_text_directions(struct pt_page *p, const struct pt_result *r);
/* The way of the packets from stage to stage, with the counter that proves each loss. */
void pt_text_path(struct pt_page *p, const struct pt_result *r);
void pt_text_steps(struct pt_page *p, const struct pt_result *r);
void pt_text_hosts(struct pt_page *p, const struct pt_result *r);
void pt_text_repeat(struct pt_page *p, const struct pt_result *r);

#endif
