/* buf.c: see buf.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pt_buf_init(struct pt_buf *b, size_t ceiling)
{
    *b = (struct pt_buf){.ceiling = ceiling};
}

void pt_buf_fini(struct pt_buf *b)
{
    free(b->bytes);
    b->bytes = NULL;
    b->len = b->cap = 0;
}

void pt_buf_reset(struct pt_buf *b)
{
    b->len = 0;
    b->failed = 0;
    if (b->bytes)
        b->bytes[0] = '\0';
}

const char *pt_buf_str(const struct pt_buf *b)
{
    return b->bytes ? b->bytes : "";
}

char *pt_buf_reserve(struct pt_buf *b, size_t n)
{
    if (n > b->ceiling - b->len) {
        if (!b->failed)
            b->failed = -EMSGSIZE;
        return NULL;
    }
    size_t need = b->len + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap : 128;
        while (cap < need)
            cap += cap;
        char *bytes = realloc(b->bytes, cap);
        if (!bytes) {
            if (!b->failed)
                b->failed = -ENOMEM;
            return NULL;
        }
        b->bytes = bytes;
        b->cap = cap;
    }
    return b->bytes + b->len;
}

int pt_buf_add(struct pt_buf *b, const void *bytes, size_t n)
{
    char *at = pt_buf_reserve(b, n);
    if (!at)
        return b->failed;
    if (n)
        memcpy(at, bytes, n);
    b->len += n;
    b->bytes[b->len] = '\0';
    return 0;
}

int pt_buf_adds(struct pt_buf *b, const char *text)
{
    return pt_buf_add(b, text, strlen(text));
}

int pt_buf_vaddf(struct pt_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        return b->failed = -EINVAL;
    char *at = pt_buf_reserve(b, (size_t)n);
    if (!at)
        return b->failed;
    vsnprintf(at, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
    return 0;
}

int pt_buf_addf(struct pt_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int rc = pt_buf_vaddf(b, fmt, ap);
    va_end(ap);
    return rc;
}

void pt_buf_drop(struct pt_buf *b, size_t n)
{
    if (!n)
        return;
    memmove(b->bytes, b->bytes + n, b->len - n + 1);
    b->len -= n;
}
