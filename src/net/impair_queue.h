/* impair_queue.h: packets on an impaired path: copied in, taken out when they are due.
 *
 * An answering worker offers what it received and, when pt_impair_next is due, takes it out again
 * and counts, answers or forwards it:
 *
 *     pt_impair_offer(&q, now, &flow->path, from, from_len, bytes, len);
 *     …
 *     while (pt_impair_take(&q, pt_clock_now(), &d)) {
 *         answer(d.flow->ctx, d.bytes, d.len);
 *         pt_impair_done(&q, &d);
 *     }
 *     pt_loop_step(loop, pt_impair_next(&q));
 *
 * Pure like impair.h. All storage is made at init: `slots` packets of up to `slot_size` bytes, of
 * which only pages that packets were copied into cost memory. Packets that leave at one instant do
 * so in the order they came.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_IMPAIR_QUEUE_H
#define PT_NET_IMPAIR_QUEUE_H

#include "net/impair.h"

#include <sys/socket.h>

#define PT_IMPAIR_SLOTS_MAX (1u << 20)

/* What the queue knows of one flow; part of the caller's, zeroed but for `ctx`. Must stay until
 * pt_impair_forget when packets of it may still be queued. */
struct pt_impair_flow {
    void *ctx;
    uint64_t offered; /* packets so far: numbers them */
    uint64_t high;    /* the highest number that left */
};

/* A packet that leaves. `bytes` and `from` are good until pt_impair_done. */
struct pt_departure {
    pt_ns due, offered;
    struct pt_impair_flow *flow;
    uint8_t *bytes;
    size_t len;
    const struct sockaddr *from; /* as offered; from_len 0: none */
    socklen_t from_len;
    bool copy; /* the extra one of a duplicated packet */
    uint32_t slot;
};

struct pt_impair_queue {
    struct pt_impair path;
    struct pt_impair_flow whole; /* stands for the flow when none was given */
    uint32_t slots, slot_size;
    uint32_t free_count;
    uint32_t *free_slots;
    struct pt_impair_waiting *packets; /* by slot */
    uint8_t *bytes;                    /* slots * slot_size */
    struct pt_impair_leave *heap;
    uint32_t heap_len;
    uint32_t held[2];
    uint32_t held_count;
    uint64_t order;
};

/* `stream`: chunks of a TCP stream (see pt_impair_init_stream). `record` and `salt` as there.
 * -ENOMEM, or -EINVAL when slots or slot_size is 0 or too large. */
int pt_impair_queue_init(struct pt_impair_queue *q, const struct pt_impair_spec *spec,
                         struct pt_impair_record *record, uint64_t salt, bool stream,
                         uint32_t slots, uint32_t slot_size, struct pt_err *e) PT_MUST_USE;
void pt_impair_queue_fini(struct pt_impair_queue *q);

/* Copies the packet in, unless the path drops it. `flow` and `from` may be NULL, and `bytes` where
 * only the length matters (they are then undefined when they leave). Returns how many
 * copies will leave (0 to 2), or -EMSGSIZE when it is longer than a slot. Datagrams that find no
 * slot are dropped and counted; of a stream nothing may be lost: -ENOBUFS, and the caller keeps
 * the chunk (pt_impair_reads tells beforehand). */
int pt_impair_offer(struct pt_impair_queue *q, pt_ns now, struct pt_impair_flow *flow,
                    const struct sockaddr *from, socklen_t from_len, const void *bytes,
                    size_t len) PT_MUST_USE;

/* Streams: whether up to `len` more bytes, cut into chunks of the slot size, should be read at
 * `now`. When not, ask again after the next departure. */
bool pt_impair_reads(const struct pt_impair_queue *q, pt_ns now, size_t len);

/* The next departure; PT_NS_MAX when none is queued. */
pt_ns pt_impair_next(const struct pt_impair_queue *q);

/* Takes a packet that is due at `now`, the true time just before it is sent: how late that is, is
 * recorded. False when none is due. The slot stays the caller's until pt_impair_done. */
bool pt_impair_take(struct pt_impair_queue *q, pt_ns now, struct pt_departure *d) PT_MUST_USE;
void pt_impair_done(struct pt_impair_queue *q, const struct pt_departure *d);

/* Drops what is queued of a flow that ends. */
void pt_impair_forget(struct pt_impair_queue *q, const struct pt_impair_flow *flow);

/* Packets queued. */
static inline uint32_t pt_impair_queued(const struct pt_impair_queue *q)
{
    return q->heap_len + q->held_count;
}

#endif
