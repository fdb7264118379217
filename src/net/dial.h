/* dial.h: opens the flows of a session from the client's side, one or ten thousand.
 *
 * A stream is connected, sends its preamble and has one byte in answer: its far end is then in the
 * hands of the session. A UDP flow shows, from its connected socket, that its address is its own
 * (hello, challenge, proof) and is ready when the server says so; lost datagrams are repeated, 50
 * ms and doubling. Flows are opened at most PT_DIAL_AT_ONCE at a time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_DIAL_H
#define PT_NET_DIAL_H

#include "net/sock.h"
#include "proto/preamble.h"

#define PT_DIAL_AT_ONCE 64

struct pt_dial {
    struct pt_addr from; /* source address and port; len 0: any */
    uint32_t flow;       /* its id, unique in the session */
    int fd;              /* out: the open flow, blocking mode, CLOEXEC; the caller's */
};

/* Opens `count` flows of `type` (SOCK_STREAM, SOCK_DGRAM) to `server`, the control connection's
 * peer address. All or nothing: on failure every `fd` is -1 and the sentence names the flow that
 * failed. -ETIMEDOUT; -ECONNREFUSED; -ECONNRESET: the server did not want the flow; -EMFILE: with
 * the limit to raise; -EINTR. `o` may be NULL. */
int pt_dial_flows(struct pt_dial *flows, unsigned count, int type, const struct pt_addr *server,
                  const uint8_t token[PT_TOKEN_SIZE], const struct pt_sockopts *o, pt_ns deadline,
                  struct pt_err *e) PT_MUST_USE;

#endif
