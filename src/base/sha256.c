/* sha256.c: see sha256.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <errno.h>
#include <string.h>

/* FIPS 180-4, 4.2.2. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned n)
{
    return (x >> n) | (x << (32 - n));
}

static uint32_t load(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store(uint8_t *p, uint32_t x)
{
    p[0] = (uint8_t)(x >> 24);
    p[1] = (uint8_t)(x >> 16);
    p[2] = (uint8_t)(x >> 8);
    p[3] = (uint8_t)x;
}

static void compress(uint32_t h[8], const uint8_t block[64])
{
    uint32_t w[64], v[8];
    for (unsigned i = 0; i < 16; i++)
        w[i] = load(block + 4 * i);
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    memcpy(v, h, sizeof(v));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t s1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
        uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
        uint32_t s0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
        uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++)
        h[i] += v[i];
}

void pt_sha256_init(struct pt_sha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, start, sizeof(start));
    s->bytes = 0;
}

void pt_sha256_add(struct pt_sha256 *s, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n) {
        size_t at = (size_t)(s->bytes % 64), part = 64 - at;
        if (part > n)
            part = n;
        memcpy(s->block + at, p, part);
        s->bytes += part;
        p += part;
        n -= part;
        if (at + part == 64)
            compress(s->h, s->block);
    }
}

void pt_sha256_end(struct pt_sha256 *s, uint8_t out[PT_SHA256_SIZE])
{
    static const uint8_t pad[64] = {0x80};
    uint64_t bits = s->bytes * 8;
    uint8_t length[8];
    store(length, (uint32_t)(bits >> 32));
    store(length + 4, (uint32_t)bits);
    pt_sha256_add(s, pad, (size_t)((119 - s->bytes % 64) % 64 + 1));
    pt_sha256_add(s, length, sizeof(length));
    for (unsigned i = 0; i < 8; i++)
        store(out + 4 * i, s->h[i]);
    pt_wipe(s, sizeof(*s));
}

void pt_hmac_init(struct pt_hmac *m, const void *key, size_t n)
{
    uint8_t block[64] = {0};
    if (n > sizeof(block)) {
        pt_sha256_init(&m->inner);
        pt_sha256_add(&m->inner, key, n);
        pt_sha256_end(&m->inner, block);
    } else if (n) {
        memcpy(block, key, n);
    }
    for (unsigned i = 0; i < sizeof(block); i++)
        block[i] ^= 0x36;
    pt_sha256_init(&m->inner);
    pt_sha256_add(&m->inner, block, sizeof(block));
    for (unsigned i = 0; i < sizeof(block); i++)
        block[i] ^= 0x36 ^ 0x5c;
    pt_sha256_init(&m->outer);
    pt_sha256_add(&m->outer, block, sizeof(block));
    pt_wipe(block, sizeof(block));
}

void pt_hmac_add(struct pt_hmac *m, const void *bytes, size_t n)
{
    pt_sha256_add(&m->inner, bytes, n);
}

void pt_hmac_end(struct pt_hmac *m, uint8_t out[PT_SHA256_SIZE])
{
    pt_sha256_end(&m->inner, out);
    pt_sha256_add(&m->outer, out, PT_SHA256_SIZE);
    pt_sha256_end(&m->outer, out);
}

bool pt_equal_secret(const void *a, const void *b, size_t n)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t differ = 0;
    for (size_t i = 0; i < n; i++)
        differ = (uint8_t)(differ | (x[i] ^ y[i]));
    return differ == 0;
}

void pt_wipe(void *bytes, size_t n)
{
    explicit_bzero(bytes, n);
}

void pt_hex(char *out, const void *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++) {
        *out++ = digits[p[i] >> 4];
        *out++ = digits[p[i] & 15];
    }
    *out = '\0';
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int pt_unhex(void *out, size_t n, const char *text)
{
    uint8_t *p = out;
    if (strlen(text) != 2 * n)
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return -EINVAL;
        p[i] = (uint8_t)(high << 4 | low);
    }
    return 0;
}
