/* say.h: the words of the reports in the reader's language, keyed by the English ones.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_SAY_H
#define PT_SINK_SAY_H

#include "base/types.h"

/* The Chinese for a text of the catalogue, else the text itself; never NULL. */
const char *pt_say(bool chinese, const char *english);
/* Whether the catalogue has it. */
bool pt_say_known(const char *english);
/* One entry of the catalogue after the other: the Chinese, NULL behind the last. */
const char *pt_say_entry(size_t i, const char **english);
/* Columns that UTF-8 text takes on a terminal: two for East Asian wide characters. */
size_t pt_text_columns(const char *text);

#endif
