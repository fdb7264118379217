/* err.h: the one sentence a person needs when a cold function fails.
 *
 * Cold functions take `struct pt_err *` last, return a negative errno, and say what failed, on
 * which address or line, why, and what to try. Hot functions return codes only and are counted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_BASE_ERR_H
#define PT_BASE_ERR_H

#include "base/types.h"

struct pt_err {
    int code;       /* the negative errno that was returned, 0 when nothing failed */
    char text[480]; /* one sentence in valid UTF-8, without control characters: `?` instead */
};

/* Records the sentence and returns `code` (a negative errno), so that callers write
 * `return pt_fail(e, -errno, "bind %s: %s", …)`. `e` may be NULL. A later call overwrites. */
int pt_fail(struct pt_err *e, int code, const char *fmt, ...) PT_PRINTF(3, 4);

/* Puts "prefix: " before the sentence already there; returns e->code. */
int pt_fail_prefix(struct pt_err *e, const char *fmt, ...) PT_PRINTF(2, 3);

/* The text of a negative errno; valid until the next call in this thread. */
const char *pt_strerror(int code);

#endif
