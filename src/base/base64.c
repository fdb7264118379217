/* base64.c: see base64.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int pt_base64_encode(struct pt_buf *out, const void *bytes, size_t n)
{
    const uint8_t *in = bytes;
    if (n > SIZE_MAX / 4)
        return -EMSGSIZE;
    size_t len = (n + 2) / 3 * 4;
    char *to = pt_buf_reserve(out, len);
    if (!to)
        return out->failed;
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t group = (uint32_t)in[i] << 16;
        if (have > 1)
            group |= (uint32_t)in[i + 1] << 8;
        if (have > 2)
            group |= in[i + 2];
        *to++ = alphabet[group >> 18];
        *to++ = alphabet[group >> 12 & 63];
        *to++ = have > 1 ? alphabet[group >> 6 & 63] : '=';
        *to++ = have > 2 ? alphabet[group & 63] : '=';
    }
    *to = '\0';
    out->len += len;
    return 0;
}

/* The six bits of a character, or 64. */
static uint32_t value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

int pt_base64_decode(struct pt_buf *out, const char *text, size_t len)
{
    if (len % 4)
        return -EBADMSG;
    if (!len)
        return 0;
    size_t pad = text[len - 1] != '=' ? 0 : text[len - 2] != '=' ? 1 : 2;
    char *to = pt_buf_reserve(out, len / 4 * 3);
    if (!to)
        return out->failed;
    for (size_t i = 0; i < len; i += 4) {
        size_t chars = i + 4 < len ? 4 : 4 - pad;
        uint32_t group = 0, bad = 0;
        for (size_t k = 0; k < 4; k++) {
            uint32_t v = k < chars ? value_of(text[i + k]) : 0;
            bad |= v & 64;
            group = group << 6 | (v & 63);
        }
        if (bad || (pad && chars < 4 && group & (pad == 1 ? 0xff : 0xffff)))
            goto malformed;
        for (size_t k = 0; k + 1 < chars; k++)
            *to++ = (char)(uint8_t)(group >> (16 - 8 * k));
    }
    out->len += len / 4 * 3 - pad;
    out->bytes[out->len] = '\0';
    return 0;

malformed:
    out->bytes[out->len] = '\0';
    return -EBADMSG;
}
