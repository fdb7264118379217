/* buf.h: a growing byte buffer that cannot be made without a ceiling.
 *
 * The bytes are always followed by a NUL that does not count, so text can be handed to C functions.
 * An append that would pass the ceiling changes nothing and returns -EMSGSIZE; -ENOMEM likewise.
 * The first failure sticks in `failed`, so a writer may append many times and look once at the end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_BASE_BUF_H
#define PT_BASE_BUF_H

#include "base/types.h"

#include <stdarg.h>

struct pt_buf {
    char *bytes;    /* NULL until the first append; else NUL-terminated */
    size_t len;     /* bytes in use, without the NUL */
    size_t cap;     /* bytes allocated */
    size_t ceiling; /* len never passes this */
    int failed;     /* 0, or the first negative errno */
};

void pt_buf_init(struct pt_buf *b, size_t ceiling);
void pt_buf_fini(struct pt_buf *b);
/* Forgets the content and `failed`, keeps the storage. */
void pt_buf_reset(struct pt_buf *b);
/* The text, never NULL. */
const char *pt_buf_str(const struct pt_buf *b);

int pt_buf_add(struct pt_buf *b, const void *bytes, size_t n);
int pt_buf_adds(struct pt_buf *b, const char *text);
int pt_buf_addf(struct pt_buf *b, const char *fmt, ...) PT_PRINTF(2, 3);
int pt_buf_vaddf(struct pt_buf *b, const char *fmt, va_list ap) PT_PRINTF(2, 0);
/* Room for `n` more bytes; returns where they go, or NULL. The caller adds to `len` what it wrote.
 */
char *pt_buf_reserve(struct pt_buf *b, size_t n);
/* Drops the first `n` bytes, n <= len. */
void pt_buf_drop(struct pt_buf *b, size_t n);

#endif
