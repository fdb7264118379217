/* overview.h: what `pitot --help` and `pitot --man` print: the program as a whole.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_OVERVIEW_H
#define PT_CMD_OVERVIEW_H

#include "cmd/cmd.h"

void pt_overview_help(const struct pt_cmd *const *commands, size_t n, struct pt_buf *out);
/* The page pitot(1), in roff. */
void pt_overview_man(const struct pt_cmd *const *commands, size_t n, struct pt_buf *out);

#endif
