/* control.h: a control connection, for either end: messages out and in, each with a deadline.
 *
 * Cold path: calls block until their deadline (CLOCK_MONOTONIC; PT_NS_MAX: for ever) and end with
 * -EINTR when a signal came. Both ends may also poll `fd` for POLLIN, after pt_control_pending said
 * 0: a message may already be here. Sentences name the peer and never hold its bytes unquoted.
 *
 * A peer that gives up sends {"type":"error","code":…,"reason":…}; pt_control_recv turns it into
 * the error that the code stands for, so no caller has to look for it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_CONTROL_H
#define PT_NET_CONTROL_H

#include "net/addr.h"
#include "net/secret.h"
#include "proto/control.h"
#include "proto/preamble.h"

struct pt_control {
    int fd; /* ours; -1: closed */
    struct pt_addr local, peer;
    char name[PT_ADDR_TEXT + 16]; /* "server at 10.0.0.2:7411", for sentences */
    struct pt_control_decoder in;
    bool spoke; /* the peer has sent a well-formed message */
};

/* Takes a connected stream socket, any mode; sets keepalive and user timeout so that a peer that
 * was cut off is noticed in about ten seconds. `role` is what the peer is: "server", "client". */
void pt_control_init(struct pt_control *c, int fd, const char *role);
/* Closes; fine twice. */
void pt_control_fini(struct pt_control *c);

/* Sends a message. -EPIPE, -ECONNRESET, -ETIMEDOUT, -EMSGSIZE, -EINVAL. */
int pt_control_send(struct pt_control *c, const json_t *message, pt_ns deadline,
                    struct pt_err *e) PT_MUST_USE;
/* The same for a message built here, whose reference is taken (json_pack(…), may be NULL: -ENOMEM).
 */
int pt_control_send_new(struct pt_control *c, json_t *message, pt_ns deadline,
                        struct pt_err *e) PT_MUST_USE;

/* A send failed with `rc`: when the peer is gone, what it said last is the better reason, or that
 * it said nothing at all. Returns the code that stands then. What else it had sent is lost. */
int pt_control_lost(struct pt_control *c, int rc, struct pt_err *e);

/* The next message, the caller's reference. -ETIMEDOUT; -ECONNRESET: the peer is gone, with or
 * without an orderly end; -EPROTO: it does not speak pitot; -EMSGSIZE; -EINTR; or the code of its
 * error message, with its reason in the sentence. */
int pt_control_recv(struct pt_control *c, json_t **out, pt_ns deadline,
                    struct pt_err *e) PT_MUST_USE;
/* The same, and its type must be `type`: else -EPROTO. */
int pt_control_expect(struct pt_control *c, const char *type, json_t **out, pt_ns deadline,
                      struct pt_err *e) PT_MUST_USE;

/* 1: a whole message is here, pt_control_recv will not wait; 0: not; negative: it will fail. Never
 * waits: reads what the kernel has. The way to see the end of the peer during a run. */
int pt_control_pending(struct pt_control *c);

/* The message that tells the peer why; `code` as below. The caller's reference, NULL without
 * memory. */
json_t *pt_control_error(int code, const char *reason);
/* Tells the peer why and ends the connection in order, within 200 ms. `code` is a negative errno;
 * those that the wire has no word for arrive as -EIO. */
void pt_control_refuse(struct pt_control *c, int code, const char *reason);

/* ---- opening a session */

/* What a server allows; 0: no limit. Travels in the welcome; the session enforces. */
struct pt_caps {
    double max_rate_bits;     /* bits per second in all, payload, each direction */
    pt_ns max_duration;       /* a session is ended after this long */
    unsigned max_sessions;    /* at once */
    unsigned max_connections; /* flows of one session; flow ids are below it */
};

/* What the client learns of the server. */
struct pt_welcome {
    uint8_t token[PT_TOKEN_SIZE]; /* for the preambles of flows */
    struct pt_caps caps;
    json_t *identity; /* {host, pitot, kernel, boot_id, …}: pt_welcome_fini drops it */
};

void pt_welcome_fini(struct pt_welcome *w);

/* The client's half. Connects to the first address that answers (a sentence names all that did
 * not), sends the preamble, agrees on a version, proves the secret when the server asks for it, and
 * demands the server's proof in turn. `identity` is borrowed; `secret` NULL or empty: none.
 *
 * -ECONNREFUSED, -ETIMEDOUT, …; -EPROTO: not pitot; -EPROTONOSUPPORT: another version, the sentence
 * says both; -EACCES: the secret is missing, wrong, or the server has none though we do; -EBUSY:
 * the server's cap. On failure `c` is closed. */
int pt_control_open(struct pt_control *c, const struct pt_addr_list *to, const struct pt_addr *from,
                    const struct pt_secret *secret, const json_t *identity, struct pt_welcome *w,
                    pt_ns deadline, struct pt_err *e) PT_MUST_USE;

/* The server's half, after the preamble was read. `w` is what to tell; `*client` gets the client's
 * identity. A failure has been told to the client already. */
int pt_control_accept(struct pt_control *c, const struct pt_secret *secret,
                      const struct pt_welcome *w, json_t **client, pt_ns deadline,
                      struct pt_err *e) PT_MUST_USE;

#endif
