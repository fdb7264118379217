/* fdpass.h: a descriptor and a small message, from one process to another.
 *
 * Over a pair of unix SOCK_SEQPACKET sockets, so messages keep their borders and the end of the
 * other process is seen as length 0. Never raises SIGPIPE.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_FDPASS_H
#define PT_OS_FDPASS_H

#include "base/types.h"

/* CLOEXEC, blocking. */
int pt_fdpass_open(int pair[2]) PT_MUST_USE;

/* Sends `n` > 0 bytes and, when `fd` >= 0, a copy of that descriptor (the caller still owns its
 * own). Waits for room until `deadline` (0: not at all). 0; -ETIMEDOUT; -EPIPE, -ECONNRESET: the
 * other end is gone; -EMSGSIZE. */
int pt_fdpass_send(int sock, int fd, const void *message, size_t n, pt_ns deadline) PT_MUST_USE;

/* Takes one message: its length, 0 at the end of the other process, or a negative errno
 * (-ETIMEDOUT, -EMSGSIZE: longer than `cap`, consumed). `*fd` becomes the descriptor that came with
 * it (CLOEXEC, the caller's), or -1. More than one descriptor is refused with -EPROTO, and all are
 * closed. */
ssize_t pt_fdpass_recv(int sock, int *fd, void *message, size_t cap, pt_ns deadline) PT_MUST_USE;

#endif
