/* preamble.c: see preamble.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "proto/preamble.h"

#include <errno.h>
#include <string.h>

static const uint8_t magic[4] = {'P', 'T', 'O', 'T'};

/* Offsets of the fields. */
enum { AT_VERSION = 4, AT_KIND = 5, AT_TOKEN = 8, AT_FLOW = 24 };

void pt_preamble_write(uint8_t out[PT_PREAMBLE_SIZE], const struct pt_preamble *p)
{
    memset(out, 0, PT_PREAMBLE_SIZE);
    memcpy(out, magic, sizeof(magic));
    out[AT_VERSION] = p->version;
    out[AT_KIND] = p->kind;
    memcpy(out + AT_TOKEN, p->token, PT_TOKEN_SIZE);
    for (unsigned i = 0; i < 4; i++)
        out[AT_FLOW + i] = (uint8_t)(p->flow >> (24 - 8 * i));
}

static void fields(struct pt_preamble *p, const uint8_t *b)
{
    p->version = b[AT_VERSION];
    p->kind = b[AT_KIND];
    memcpy(p->token, b + AT_TOKEN, PT_TOKEN_SIZE);
    p->flow = 0;
    for (unsigned i = 0; i < 4; i++)
        p->flow = p->flow << 8 | b[AT_FLOW + i];
}

int pt_preamble_read(struct pt_preamble *p, const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    if (n && memcmp(b, magic, n < sizeof(magic) ? n : sizeof(magic)) != 0)
        return -EPROTO;
    if (n > AT_VERSION && b[AT_VERSION] != PT_PROTO_VERSION) {
        memset(p, 0, sizeof(*p));
        p->version = b[AT_VERSION];
        return -EPROTONOSUPPORT;
    }
    if (n > AT_KIND && b[AT_KIND] != PT_PREAMBLE_CONTROL && b[AT_KIND] != PT_PREAMBLE_STREAM)
        return -EPROTO;
    if (n < PT_PREAMBLE_SIZE)
        return 0;
    fields(p, b);
    return PT_PREAMBLE_SIZE;
}

void pt_knock_write(uint8_t out[PT_KNOCK_SIZE], const struct pt_preamble *p,
                    const uint8_t nonce[PT_UDP_NONCE_SIZE])
{
    pt_preamble_write(out, p);
    memcpy(out + PT_PREAMBLE_SIZE, nonce, PT_UDP_NONCE_SIZE);
}

int pt_knock_read(struct pt_preamble *p, uint8_t nonce[PT_UDP_NONCE_SIZE], const void *bytes,
                  size_t n)
{
    const uint8_t *b = bytes;
    if (n != PT_KNOCK_SIZE || memcmp(b, magic, sizeof(magic)) != 0 ||
        b[AT_VERSION] != PT_PROTO_VERSION || b[AT_KIND] < PT_PREAMBLE_HELLO ||
        b[AT_KIND] > PT_PREAMBLE_CHALLENGE)
        return -EPROTO;
    fields(p, b);
    memcpy(nonce, b + PT_PREAMBLE_SIZE, PT_UDP_NONCE_SIZE);
    return 0;
}

static bool begins(const void *bytes, size_t n, const char *with)
{
    size_t len = strlen(with);
    return n >= len && memcmp(bytes, with, len) == 0;
}

const char *pt_preamble_guess(const void *bytes, size_t n)
{
    static const char *const http[] = {"GET ",     "HEAD ",    "POST ",  "PUT ",   "DELETE ",
                                       "CONNECT ", "OPTIONS ", "TRACE ", "PATCH ", "PRI * HTTP"};
    for (size_t i = 0; i < PT_COUNT(http); i++)
        if (begins(bytes, n, http[i]))
            return "HTTP";
    if (begins(bytes, n, "HTTP/"))
        return "HTTP";
    if (begins(bytes, n, "\x16\x03"))
        return "TLS";
    if (begins(bytes, n, "SSH-"))
        return "SSH";
    return "unknown";
}
