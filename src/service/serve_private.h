/* serve_private.h: the main process of `pitot serve`, as its files share it.
 *
 * serve.c runs the loop and its end; serve_door.c listens; serve_entry.c holds connections that
 * have not said yet what they are; serve_slot.c holds sessions; serve_knock.c opens UDP flows.
 * One thread, no waiting: every call of these files returns at once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SERVICE_SERVE_PRIVATE_H
#define PT_SERVICE_SERVE_PRIVATE_H

#include "base/log.h"
#include "ev/loop.h"
#include "os/proc.h"
#include "service/serve.h"

#define PT_SERVE_PREAMBLE_TIME  (5 * PT_S)
#define PT_SERVE_HANDSHAKE_TIME (5 * PT_S)
#define PT_SERVE_GRACE          (1 * PT_S) /* between SIGTERM and SIGKILL */
/* Beside --max-duration, at most: to prepare the test and to report. */
#define PT_SERVE_TEST_GRACE   (10 * PT_S)
#define PT_SERVE_DOORS_MAX    (PT_SERVE_LISTEN_MAX)
#define PT_SERVE_ENTRIES_MAX  256
#define PT_SERVE_SLOTS_MAX    4096
#define PT_SERVE_FLOW_IDS_MAX 65536u /* UDP flow ids of a session without --max-connections */

struct pt_serve_door {
    struct pt_serve *serve;
    struct pt_addr at;
    int fd, udp; /* udp -1: a unix door */
    struct pt_op accept, knock;
};

struct pt_serve_entry {
    struct pt_serve *serve;
    int fd; /* -1: free */
    struct pt_addr peer;
    struct pt_op readable;
    struct pt_timer timer;
    pt_ns came;
    bool waiting; /* a control connection that waits for its turn */
    size_t have;
    uint8_t bytes[PT_PREAMBLE_SIZE];
};

struct pt_serve_slot {
    struct pt_serve *serve;
    uint64_t id;
    uint8_t token[PT_TOKEN_SIZE];
    struct pt_addr peer;
    struct pt_child process;
    int channel;
    struct pt_op ended, message;
    struct pt_timer timer;
    pt_ns began;
    bool welcomed;
    const char *reason; /* why we ended it, or NULL */
    uint64_t streams, datagrams, refused;
    uint8_t *datagram_ids; /* one bit each, made at the first UDP flow */
    char host[64], note[PT_SESSION_NOTE_MAX * 4];
};

struct pt_serve {
    struct pt_serve_spec spec;
    struct pt_loop *loop;
    json_t *identity;
    struct pt_serve_door doors[PT_SERVE_DOORS_MAX];
    unsigned door_count;
    struct pt_serve_entry *entries;
    unsigned entry_max;
    struct pt_serve_slot **slots;
    unsigned slot_count, slot_max;
    unsigned unwelcomed_max; /* sessions in their handshake, per source address */
    uint64_t next_id, welcomed;
    uint8_t knock_key[PT_SHA256_SIZE];
    struct pt_op signalled;
    struct pt_timer kill_timer;
    bool stopping;
    pt_ns log_second; /* lines about strangers are counted per second */
    unsigned log_lines, log_dropped;
    char addresses[PT_SERVE_DOORS_MAX * PT_ADDR_TEXT];
};

/* Whether the allow list lets this address in. */
bool pt_serve_allows(const struct pt_serve *s, const struct pt_addr *peer);
/* A line that strangers can cause: at most 100 a second, the rest is counted. */
void pt_serve_log(struct pt_serve *s, const char *fmt, ...) PT_PRINTF(2, 3);
/* No new sessions; those there are end now. */
void pt_serve_stop(struct pt_serve *s, const char *reason);

int pt_serve_doors_open(struct pt_serve *s, struct pt_err *e) PT_MUST_USE;
int pt_serve_doors_start(struct pt_serve *s, struct pt_err *e) PT_MUST_USE;
void pt_serve_doors_close(struct pt_serve *s);

/* Takes a connection that was accepted. */
void pt_serve_entry_take(struct pt_serve *s, int fd, const struct pt_addr *peer);
/* A session has begun, ended or been welcomed: those that wait may have their turn. */
void pt_serve_entries_retry(struct pt_serve *s);
void pt_serve_entries_close(struct pt_serve *s);

/* Starts a session for a control connection whose preamble was read; the caller still closes its
 * own descriptor. 0; -EAGAIN: it depends on how handshakes under way turn out; -EBUSY, …: with the
 * sentence. */
int pt_serve_slot_start(struct pt_serve *s, int fd, const struct pt_addr *peer,
                        struct pt_err *e) PT_MUST_USE;
/* The session that a token names, or NULL; only who was welcomed knows a token. */
struct pt_serve_slot *pt_serve_slot_find(struct pt_serve *s, const uint8_t token[PT_TOKEN_SIZE]);
/* Hands a flow to the session; the caller still closes its own descriptor. */
int pt_serve_slot_pass(struct pt_serve_slot *slot, enum pt_channel_kind kind, uint32_t flow,
                       int fd) PT_MUST_USE;
/* Asks it to end; it is killed when it has not in time. */
void pt_serve_slot_end(struct pt_serve_slot *slot, const char *reason);
void pt_serve_slots_kill(struct pt_serve *s);

/* Datagrams at a door. */
void pt_serve_knock(struct pt_serve_door *door);
/* The session has its UDP flows: their ids may be used again. */
void pt_serve_knock_forget(struct pt_serve_slot *slot);

#endif
