/* iperf3_control.h: the control connection of an iperf3 test, for either end (proto/iperf3.h).
 *
 * Cold path: calls wait until their deadline. Sentences name the peer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_IPERF3_CONTROL_H
#define PT_NET_IPERF3_CONTROL_H

#include "net/addr.h"
#include "proto/iperf3.h"

struct pt_iperf3_control {
    int fd;                       /* -1: none */
    char name[PT_ADDR_TEXT + 24]; /* "iperf3 server at 10.0.0.2:5201" */
};

int pt_iperf3_say(struct pt_iperf3_control *c, int8_t state, pt_ns deadline,
                  struct pt_err *e) PT_MUST_USE;
/* The next state. 0, or -ECONNRESET, -ETIMEDOUT, … with the sentence. */
int pt_iperf3_hear(struct pt_iperf3_control *c, int8_t *state, pt_ns deadline,
                   struct pt_err *e) PT_MUST_USE;
/* The same, and it must be `want`: else what the state means is the failure. -EBUSY; -EACCES: user
 * or password; -EREMOTEIO: the server's own error; -EPROTO. */
int pt_iperf3_expect(struct pt_iperf3_control *c, int8_t want, pt_ns deadline,
                     struct pt_err *e) PT_MUST_USE;
int pt_iperf3_unexpected(struct pt_iperf3_control *c, int8_t state, pt_ns deadline,
                         struct pt_err *e);

/* Takes the reference; NULL counts as out of memory. */
int pt_iperf3_send_json(struct pt_iperf3_control *c, json_t *value, pt_ns deadline,
                        struct pt_err *e) PT_MUST_USE;
/* At most `most` bytes of text. -EPROTO. */
int pt_iperf3_recv_json(struct pt_iperf3_control *c, size_t most, json_t **out, pt_ns deadline,
                        struct pt_err *e) PT_MUST_USE;

/* The sentence for a failed read or write; returns `rc`. */
int pt_iperf3_lost(const struct pt_iperf3_control *c, int rc, struct pt_err *e);

#endif
