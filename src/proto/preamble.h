/* preamble.h: the fixed bytes that say what a connection or datagram on the port is about.
 *
 * 32 bytes at the start of every stream, 48 bytes per datagram while a UDP flow is opened; the
 * layout is in docs/formats/control.md. Big endian. Pure: no descriptor, no clock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_PROTO_PREAMBLE_H
#define PT_PROTO_PREAMBLE_H

#include "base/types.h"

#define PT_PORT               7411
#define PT_PROTO_VERSION      1
#define PT_PROTO_VERSION_TEXT "1"
#define PT_TOKEN_SIZE         16
#define PT_UDP_NONCE_SIZE     16
#define PT_PREAMBLE_SIZE      32   /* stream */
#define PT_KNOCK_SIZE         48   /* datagram: a preamble and a nonce */
#define PT_STREAM_ACCEPTED    0x06 /* the one byte that answers a data preamble: ASCII ACK */

enum pt_preamble_kind {
    PT_PREAMBLE_CONTROL = 1,   /* stream: control messages follow */
    PT_PREAMBLE_STREAM = 2,    /* stream: a flow of the session that the token names */
    PT_PREAMBLE_HELLO = 3,     /* datagram, client: I want this flow; nonce 0 */
    PT_PREAMBLE_PROOF = 4,     /* datagram, client: the challenge's nonce, sent back */
    PT_PREAMBLE_READY = 5,     /* datagram, server: the flow has its socket */
    PT_PREAMBLE_CHALLENGE = 6, /* datagram, server: send this nonce back */
};

struct pt_preamble {
    uint8_t version;
    uint8_t kind; /* enum pt_preamble_kind, or what a newer version sent */
    uint8_t token[PT_TOKEN_SIZE];
    uint32_t flow;
};

void pt_preamble_write(uint8_t out[PT_PREAMBLE_SIZE], const struct pt_preamble *p);

/* Reads the first `n` bytes of a stream. PT_PREAMBLE_SIZE: read; 0: a beginning, more is needed;
 * -EPROTO: not pitot (said as soon as the first wrong byte is there); -EPROTONOSUPPORT: pitot, but
 * of another version, in p->version. */
int pt_preamble_read(struct pt_preamble *p, const void *bytes, size_t n) PT_MUST_USE;

void pt_knock_write(uint8_t out[PT_KNOCK_SIZE], const struct pt_preamble *p,
                    const uint8_t nonce[PT_UDP_NONCE_SIZE]);
/* A datagram of exactly PT_KNOCK_SIZE bytes of this version and of kind HELLO to CHALLENGE: 0; else
 * -EPROTO. */
int pt_knock_read(struct pt_preamble *p, uint8_t nonce[PT_UDP_NONCE_SIZE], const void *bytes,
                  size_t n) PT_MUST_USE;

/* What bytes that are no preamble look like, for a log line: "HTTP", "TLS", "SSH", "unknown". */
const char *pt_preamble_guess(const void *bytes, size_t n);

#endif
