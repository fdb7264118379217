/* echo.h: sends back what it gets, over a path with known impairments: a truth for any load tool.
 *
 * No protocol of ours: a datagram or a byte of a stream comes back as it was, when the path lets it
 * go. A bare UDP echo is a reflector, so it answers only addresses it was told to (by default this
 * host's own), and no reply is longer than its request; duplication, when asked for, is the one way
 * to get more out than in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SERVICE_ECHO_H
#define PT_SERVICE_ECHO_H

#include "net/cidr.h"
#include "net/impair_ledger.h"

#define PT_ECHO_ALLOW_MAX 64
#define PT_ECHO_CONNS_MAX 64 /* TCP connections at one time; more are closed at once */

struct pt_echo_spec {
    bool stream; /* TCP, else UDP */
    struct pt_addr at;
    struct pt_cidr allow[PT_ECHO_ALLOW_MAX];
    unsigned allow_count; /* 0: the addresses of this host */
    const struct pt_impairment *impairment;
};

/* "udp:PORT", "tcp:PORT" (on 127.0.0.1), "udp:ADDR:PORT", "tcp:[V6]:PORT". -EINVAL. */
int pt_echo_parse(struct pt_echo_spec *spec, const char *text, struct pt_err *e) PT_MUST_USE;

struct pt_echo;
/* Binds; `spec` is copied, its pointer borrowed. -EINVAL: impairments that a stream cannot have. */
int pt_echo_open(struct pt_echo **out, const struct pt_echo_spec *spec,
                 struct pt_err *e) PT_MUST_USE;
/* "udp 127.0.0.1:7000", with the port that was really bound. Valid until close. */
const char *pt_echo_address(const struct pt_echo *echo);
/* Serves until SIGINT or SIGTERM. 0, or a negative errno. */
int pt_echo_run(struct pt_echo *echo, struct pt_err *e) PT_MUST_USE;
void pt_echo_close(struct pt_echo *echo);

#endif
