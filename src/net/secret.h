/* secret.h: the shared secret of `--secret-file`, and the proofs that both ends know it.
 *
 * A proof is HMAC-SHA-256(secret, server nonce || client nonce || role): a nonce of each side, so a
 * recorded proof is worth nothing later, and the role, so that one side's proof cannot be sent back
 * as the other's. The secret itself never crosses the wire and is never logged.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_SECRET_H
#define PT_NET_SECRET_H

#include "base/err.h"
#include "base/sha256.h"

#define PT_SECRET_MAX 4096
#define PT_NONCE_SIZE 32

struct pt_secret {
    size_t len; /* 0: none */
    uint8_t bytes[PT_SECRET_MAX];
};

/* Reads a file: one trailing line end is not part of the secret. -EPERM: others may read or change
 * it; -EINVAL: empty, not a file; -EFBIG: longer than PT_SECRET_MAX; or what open(2) said. */
int pt_secret_load(struct pt_secret *s, const char *path, struct pt_err *e) PT_MUST_USE;
/* 32 random bytes, for a server that is started for one client. */
int pt_secret_random(struct pt_secret *s, struct pt_err *e) PT_MUST_USE;

/* `role` is "client" or "server": who proves. */
void pt_secret_prove(const struct pt_secret *s, const uint8_t server_nonce[PT_NONCE_SIZE],
                     const uint8_t client_nonce[PT_NONCE_SIZE], const char *role,
                     uint8_t proof[PT_SHA256_SIZE]);

#endif
