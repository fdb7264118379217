/* log.h: lines for an operator: a level, an event, key=value pairs.
 *
 * Library code never prints: it hands lines to the sink that a command installed; without one they
 * are dropped. Never called on the measuring path. Values that come from the wire are passed
 * through pt_log_quote first, so a peer cannot forge a line or send escape sequences to a terminal.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_BASE_LOG_H
#define PT_BASE_LOG_H

#include "base/types.h"

enum pt_log_level { PT_LOG_ERROR, PT_LOG_WARN, PT_LOG_INFO, PT_LOG_DEBUG };

typedef void pt_log_sink(void *ctx, enum pt_log_level level, const char *line);

/* Process-wide; `sink` NULL drops everything. Inherited by forked workers. */
void pt_log_init(pt_log_sink *sink, void *ctx, enum pt_log_level most);
void pt_log(enum pt_log_level level, const char *fmt, ...) PT_PRINTF(2, 3);

/* Copies `n` bytes into `out` (size `cap`, always NUL-terminated), control and non-ASCII bytes as
 * \xNN; ends with "..." when it does not fit. Returns `out`. */
const char *pt_log_quote(char *out, size_t cap, const void *bytes, size_t n);

#endif
