/* bulk.h: ways to hand a large block to a TCP or unix stream socket.
 *
 * Which one is fastest depends on the path, so a sender may try them all (workload/bw.c). What is
 * sent is always the same 4 MiB of random bytes, so that no compressing middlebox flatters the
 * figure. Between two ends of one machine there is no such box: there a write takes the same few
 * KiB (`reuse`) over and over, which stay in the CPU's cache as a small application buffer would.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_BULK_H
#define PT_NET_BULK_H

#include "base/err.h"
#include "base/types.h"

#define PT_BULK_BYTES ((size_t)4 << 20)
#define PT_BULK_REUSE ((size_t)32 << 10)

enum pt_bulk_method {
    PT_BULK_WRITE,    /* send(2): one copy into the socket */
    PT_BULK_SENDFILE, /* sendfile(2) from a memory file: pages by reference */
    PT_BULK_SPLICE,   /* vmsplice(2) and splice(2) through a pipe: user pages by reference */
    PT_BULK_ZEROCOPY, /* send(2) with MSG_ZEROCOPY: user pages by reference, completions to reap */
    PT_BULK_METHODS,
};

extern const char *const pt_bulk_names[PT_BULK_METHODS + 1]; /* NULL-terminated */

struct pt_bulk {
    uint8_t *bytes; /* PT_BULK_BYTES, mapped from `file` */
    int file;       /* memfd */
    bool reuse;     /* WRITE: every block is the first PT_BULK_REUSE bytes, again and again */
    int pipe[2];
    size_t piped; /* bytes waiting in the pipe: they must go first, and to the same socket */
    int piped_to;
    uint64_t copied;    /* ZEROCOPY sends that the kernel copied after all */
    uint64_t completed; /* ZEROCOPY sends completed */
};

int pt_bulk_open(struct pt_bulk *b, struct pt_err *e) PT_MUST_USE;
void pt_bulk_close(struct pt_bulk *b);
/* Before the first ZEROCOPY send on a socket. */
int pt_bulk_allow_zerocopy(int fd) PT_MUST_USE;

/* Sends up to `n` <= PT_BULK_BYTES bytes. `flags`: MSG_DONTWAIT or 0. Bytes taken by the socket, or
 * a negative errno. */
ssize_t pt_bulk_send(struct pt_bulk *b, enum pt_bulk_method how, int fd, size_t n,
                     int flags) PT_MUST_USE;

#endif
