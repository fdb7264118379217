/* sha256.h: SHA-256 and HMAC-SHA-256, for proving a shared secret and for stateless challenges.
 *
 * FIPS 180-4 and RFC 2104; checked against their vectors and RFC 4231's. For short messages on cold
 * paths: no attempt at speed.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_BASE_SHA256_H
#define PT_BASE_SHA256_H

#include "base/types.h"

#define PT_SHA256_SIZE 32

struct pt_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
};

void pt_sha256_init(struct pt_sha256 *s);
void pt_sha256_add(struct pt_sha256 *s, const void *bytes, size_t n);
void pt_sha256_end(struct pt_sha256 *s, uint8_t out[PT_SHA256_SIZE]);

struct pt_hmac {
    struct pt_sha256 inner, outer;
};

void pt_hmac_init(struct pt_hmac *m, const void *key, size_t n);
void pt_hmac_add(struct pt_hmac *m, const void *bytes, size_t n);
void pt_hmac_end(struct pt_hmac *m, uint8_t out[PT_SHA256_SIZE]);

/* Equality in time that does not depend on where they differ. */
bool pt_equal_secret(const void *a, const void *b, size_t n);
/* Zeroes, and is not optimised away. */
void pt_wipe(void *bytes, size_t n);
/* `n` bytes as 2n lower-case digits and NUL. */
void pt_hex(char *out, const void *bytes, size_t n);
/* Exactly 2n hexadecimal digits into `n` bytes; -EINVAL. */
int pt_unhex(void *out, size_t n, const char *text) PT_MUST_USE;

#endif
