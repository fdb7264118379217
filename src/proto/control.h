/* control.h: framing of control messages: a length, then one JSON object that has a "type".
 *
 * Bytes in, messages out; any split of the stream gives the same messages. A length beyond the
 * limit is refused before a byte of it is kept, so the memory that a peer can make us hold is the
 * limit. The format is in docs/formats/control.md.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_PROTO_CONTROL_H
#define PT_PROTO_CONTROL_H

#include "base/buf.h"
#include "base/err.h"

#include <jansson.h>

#define PT_CONTROL_MAX       (1024 * 1024) /* bytes of one JSON text */
#define PT_CONTROL_MAX_EARLY (8 * 1024)    /* … until the peer is authenticated */

struct pt_control_decoder {
    size_t limit; /* bytes of one message; may be raised between messages */
    struct pt_buf buf;
    int failed; /* 0, or what pt_control_decode said: the stream cannot be read on */
};

void pt_control_decoder_init(struct pt_control_decoder *d, size_t limit);
void pt_control_decoder_fini(struct pt_control_decoder *d);

/* 1: a whole message waits; 0: more bytes are needed; -EMSGSIZE: its length is 0 or beyond the
 * limit; or what failed before. */
int pt_control_waiting(const struct pt_control_decoder *d) PT_MUST_USE;
/* Bytes that may be fed now: up to the end of the message at the front. 0 when pt_control_waiting
 * is not 0. */
size_t pt_control_room(const struct pt_control_decoder *d);
/* Takes at most pt_control_room bytes. 0, -EMSGSIZE, -ENOMEM. */
int pt_control_feed(struct pt_control_decoder *d, const void *bytes, size_t n) PT_MUST_USE;

/* 1: `*out` is the next message, the caller's reference, an object whose "type" is a string; 0:
 * more bytes are needed; -EMSGSIZE: length 0 or beyond the limit; -EPROTO: not such an object. */
int pt_control_decode(struct pt_control_decoder *d, json_t **out, struct pt_err *e) PT_MUST_USE;

/* Appends length and text. -EMSGSIZE: longer than PT_CONTROL_MAX; -EINVAL: no object with a
 * "type", or not encodable. */
int pt_control_encode(struct pt_buf *out, const json_t *message) PT_MUST_USE;

/* The message's type, valid as long as the message. */
const char *pt_control_type(const json_t *message);

#endif
