/* session.h: one client's session, as the process that serves it sees it.
 *
 * The main process of `pitot serve` accepts every connection on the port, forks one process per
 * session, and passes it the descriptors of the flows that carry the session's token. The session
 * ends when its process does: on the end of the client, on SIGTERM (main's way to say so; one
 * second later SIGKILL), or with its main process.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_SESSION_H
#define PT_NET_SESSION_H

#include "net/control.h"

struct pt_session {
    struct pt_control *control; /* authenticated; messages up to PT_CONTROL_MAX */
    uint64_t id;                /* counts the sessions of this server, for log lines */
    uint8_t token[PT_TOKEN_SIZE];
    struct pt_caps caps;    /* to be enforced */
    const json_t *client;   /* the client's identity, as it says */
    const void *impairment; /* what `pitot truth` injects (the spec's pointer), or NULL */
    int channel;            /* from main; use the calls below */
};

struct pt_session_flow {
    int fd;        /* connected, blocking mode, CLOEXEC; the caller's; -1: none */
    bool datagram; /* UDP */
};

/* Collects the flows with ids first … first+count-1 into out[id - first], tells the client of each
 * that it stands, and answers repeated hellos until the client's next control message is there: the
 * client sends one once pt_dial_flows has returned. That message stays to be received. Flows with
 * other ids are closed. Once it has returned ids may be used again, for the next test.
 *
 * -ETIMEDOUT with how many were missing; -ECONNRESET: the client is gone; -EPIPE: main is gone;
 * -EPROTO: the client goes on though flows are missing. On failure all of `out` are closed. */
int pt_session_take_flows(struct pt_session *s, struct pt_session_flow *out, uint32_t first,
                          unsigned count, pt_ns deadline, struct pt_err *e) PT_MUST_USE;

/* A few key=value figures that main puts on the log line of the session's end; the last note wins,
 * at most 200 bytes. */
void pt_session_note(struct pt_session *s, const char *fmt, ...) PT_PRINTF(2, 3);

/* ---- main's side of the channel (service/serve.c) */

#define PT_SESSION_NOTE_MAX 200

enum pt_channel_kind {
    PT_CHANNEL_STREAM = 1, /* main → session, with a descriptor: a stream flow */
    PT_CHANNEL_DATAGRAM,   /* main → session, with a descriptor: a UDP flow */
    PT_CHANNEL_WELCOMED,   /* session → main: the handshake succeeded; text: the client's name */
    PT_CHANNEL_NOTE,       /* session → main: text for the log */
    PT_CHANNEL_TAKEN,      /* session → main: the flows stand, their ids are free again */
};

struct pt_channel_message {
    uint32_t kind;
    uint32_t flow;
    char text[PT_SESSION_NOTE_MAX];
};

#endif
