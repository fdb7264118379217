/* exact.h: whole reads and writes on a stream, each until a deadline; for protocols whose messages
 * tell their length.
 *
 * Cold path. The descriptor may be of either mode. Deadlines are of CLOCK_MONOTONIC.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_EXACT_H
#define PT_NET_EXACT_H

#include "base/types.h"

/* 0 when all `n` bytes are there; -ETIMEDOUT; -ECONNRESET: the peer ended before; -EINTR when a
 * signal came; or another errno. */
int pt_exact_read(int fd, void *out, size_t n, pt_ns deadline) PT_MUST_USE;
int pt_exact_write(int fd, const void *bytes, size_t n, pt_ns deadline) PT_MUST_USE;
/* One byte if it is there: 1; 0: not yet; -ECONNRESET: the peer has ended; or another errno. */
int pt_exact_look(int fd, uint8_t *byte) PT_MUST_USE;

#endif
