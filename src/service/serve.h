/* serve.h: the listening half of `pitot serve`: one port, many clients, one process per session.
 *
 * The main process runs one loop and never waits for anybody: a connection has five seconds to
 * deliver its preamble, a session's process does its own handshake, and a channel that is full
 * costs the one connection that did not fit. What is not pitot gets one log line and is closed. UDP
 * is answered only to a valid token, never with more bytes than came, and a flow gets a socket only
 * after its address has sent a challenge back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SERVICE_SERVE_H
#define PT_SERVICE_SERVE_H

#include "net/cidr.h"
#include "net/session.h"
#include "os/proc.h"

#define PT_SERVE_LISTEN_MAX 16
#define PT_SERVE_ALLOW_MAX  64

struct pt_serve_spec {
    struct pt_addr listen[PT_SERVE_LISTEN_MAX]; /* IP: TCP and UDP; or unix */
    unsigned listen_count;
    struct pt_cidr
        allow[PT_SERVE_ALLOW_MAX]; /* sources that may connect; none: all. unix always may */
    unsigned allow_count;
    struct pt_secret secret; /* len 0: none is asked for */
    struct pt_caps caps;
    uint64_t sessions; /* return after so many welcomed sessions have ended; 0: no end */

    /* Runs in the session's own process once the client is welcomed; its result is the exit status
     * (0: good). It may fork workers; it owns nothing that outlives it. */
    int (*session)(struct pt_session *s);
    const void *impairment; /* handed to the session */
};

/* The addresses of a `--listen` value: "ADDR:PORT", "ADDR", ":PORT" (all, IPv4 and IPv6),
 * "unix:/path"; appended to the spec. -EINVAL. */
int pt_serve_listen(struct pt_serve_spec *spec, const char *text, struct pt_err *e) PT_MUST_USE;
/* 127.0.0.1 and, where the machine has it, ::1; port 0: one that is free. */
void pt_serve_listen_loopback(struct pt_serve_spec *spec, uint16_t port);

struct pt_serve;
/* Binds everything; connections are queued from now on. `spec` is copied, its pointers borrowed. */
int pt_serve_open(struct pt_serve **out, const struct pt_serve_spec *spec,
                  struct pt_err *e) PT_MUST_USE;
/* "127.0.0.1:7411, [::1]:7411", with the ports that were really bound. */
const char *pt_serve_addresses(const struct pt_serve *s);
/* Serves until SIGINT, SIGTERM (pt_signals_install first), the end of life_fd, or the last of
 * `sessions`; then ends the sessions: SIGTERM, and SIGKILL a second later. 0, or a negative errno.
 */
int pt_serve_run(struct pt_serve *s, struct pt_err *e) PT_MUST_USE;
void pt_serve_close(struct pt_serve *s);

/* ---- a server of one's own, in a child process */

struct pt_serve_child {
    struct pt_addr_list at;  /* where it listens */
    struct pt_secret secret; /* made for this one server */
    struct pt_child process;
};

/* Forks a server that already listens when this returns: on the addresses of the spec, or, when it
 * has none, on an ephemeral loopback port. It takes `session`, `caps`, `impairment` of the spec,
 * asks for a random secret, and ends with us. */
int pt_serve_child_start(struct pt_serve_child *c, const struct pt_serve_spec *spec,
                         struct pt_err *e) PT_MUST_USE;
/* Ends it and reaps; fine when it never started (zeroed). */
void pt_serve_child_end(struct pt_serve_child *c);

#endif
