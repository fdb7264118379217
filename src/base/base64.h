/* base64.h: base64 with the standard alphabet and padding (RFC 4648 section 4).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_BASE_BASE64_H
#define PT_BASE_BASE64_H

#include "base/buf.h"

/* Appends the text of `n` bytes. 0, or what pt_buf_add returns. */
int pt_base64_encode(struct pt_buf *out, const void *bytes, size_t n) PT_MUST_USE;
/* Appends the bytes of `len` characters of text: no line breaks, padding required, unused bits
 * zero, so that every byte string has one text. -EBADMSG otherwise, with `out` as it was. */
int pt_base64_decode(struct pt_buf *out, const char *text, size_t len) PT_MUST_USE;

#endif
