/* impair.h: a path with known delay, stalls, loss, duplication, reordering, rate and clock.
 *
 * Pure: time is a parameter, nothing here reads a clock, owns a descriptor or allocates. Each
 * packet gets a verdict (which instants it leaves at, or why it does not), and the record keeps
 * exactly what was injected, so that a report made elsewhere can be held against it.
 *
 * A packet passes the stages in this order, and each one counts the packets that reach it:
 *     loss -> rate cap -> delay -> reordering -> stall -> duplication
 * The stall is a gate at the exit: nothing leaves while it is closed, and what would have left
 * leaves at its end, in order. Packets never overtake each other unless reordering or `overtake`
 * asks for it: a packet that drew a short delay behind one with a long delay waits for it, and the
 * recorded delay is the one it got.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_IMPAIR_H
#define PT_NET_IMPAIR_H

#include "base/err.h"
#include "base/rng.h"
#include "base/types.h"
#include "stat/hist.h"

#define PT_DELAY_ROWS 16
/* A packet held back by a number of packets leaves after so long when too few follow. */
#define PT_IMPAIR_HOLD_NS PT_S
/* Drain time of the queue before a rate cap, when none is given. */
#define PT_IMPAIR_QUEUE_NS (50 * PT_MS)

enum pt_delay_kind {
    PT_DELAY_NONE,
    PT_DELAY_FIXED,   /* a */
    PT_DELAY_UNIFORM, /* between a and b */
    PT_DELAY_NORMAL,  /* mean a, standard deviation b, drawn again while negative */
    PT_DELAY_EXP,     /* mean a */
    PT_DELAY_TABLE,   /* one of the rows, by weight */
};

struct pt_delay_row {
    pt_ns delay;
    double weight;
};

struct pt_delay {
    enum pt_delay_kind kind;
    pt_ns a, b;
    unsigned count;
    struct pt_delay_row rows[PT_DELAY_ROWS];
};

/* Nothing leaves during [at + i * every, at + i * every + length), i >= 0; `at` counts from the
 * first packet. every 0: once. length 0: never. */
struct pt_stall {
    pt_ns length, every, at;
};

enum pt_chance_kind {
    PT_CHANCE_NEVER,
    PT_CHANCE_RANDOM, /* each packet with probability p */
    PT_CHANCE_EVERY,  /* packets number every, 2 * every, … */
    PT_CHANCE_BURST,  /* Gilbert: good -> bad with p, bad -> good with r per packet; bad hits.
                         Share p / (p + r), mean run 1 / r (Gilbert 1960; RFC 3357 for the terms) */
};

struct pt_chance {
    enum pt_chance_kind kind;
    double p, r;
    uint64_t every;
};

/* Every Nth packet leaves after `by_packets` later ones have, or `by_ns` later than it would. */
struct pt_reorder {
    uint64_t every; /* 0: never */
    uint32_t by_packets;
    pt_ns by_ns;
};

enum pt_rate_unit { PT_RATE_NONE, PT_RATE_BITS, PT_RATE_PACKETS };

/* A link of that rate, fed from a queue that holds `queue_ns` of its output; what comes when it is
 * full is dropped. Bits are those of the payload handed in. */
struct pt_rate_cap {
    enum pt_rate_unit unit;
    uint64_t per_s;
    pt_ns queue_ns;
};

/* All zero: a perfect path. */
struct pt_impair_spec {
    struct pt_delay delay;
    struct pt_stall stall;
    struct pt_chance loss, dup; /* dup: no BURST */
    struct pt_reorder reorder;
    struct pt_rate_cap rate;
    pt_ns clock_offset;     /* of the answering side's clock: what it shows minus what is true */
    double clock_drift_ppm; /* > 0: it runs fast */
    bool overtake;          /* delays are independent: a packet may pass an earlier one */
    uint64_t seed;
};

/* 0, or -EINVAL with the sentence: values that contradict each other or are out of range. */
int pt_impair_check(const struct pt_impair_spec *spec, struct pt_err *e) PT_MUST_USE;
/* The same for the bytes of a stream (TCP): delay, stall, rate cap and clock only. */
int pt_impair_check_stream(const struct pt_impair_spec *spec, struct pt_err *e) PT_MUST_USE;
/* Whether packets are touched at all (the clock alone does not). */
bool pt_impair_active(const struct pt_impair_spec *spec);

/* What was injected. offered = passed + lost + rate_dropped + queue_dropped; once the departure
 * queue is empty departed = passed + duplicated - forgotten. All zero bytes are an empty record. */
struct pt_impair_record {
    uint64_t offered, offered_bytes;
    uint64_t passed, passed_bytes; /* will leave, or have */
    uint64_t lost;                 /* by the loss stage */
    uint64_t rate_dropped;         /* the queue before the rate cap was full */
    uint64_t queue_dropped;        /* no room to keep the copy: a limit of ours, not of the spec */
    uint64_t duplicated;           /* extra copies */
    uint64_t held;                 /* picked for reordering */
    uint64_t stalled;              /* would have left during a stall */
    /* By the departure queue. */
    uint64_t departed, departed_bytes;
    uint64_t reordered; /* left after a later packet of its flow (RFC 4737 3.4); copies apart */
    uint64_t forgotten; /* their flow ended first */
    /* By the server around the path. */
    uint64_t unseen;         /* dropped by the receiving socket, before the path */
    uint64_t refused;        /* from an address that is not served, or too long */
    uint64_t unsent;         /* departed, and then refused by the kernel */
    struct pt_hist delay;    /* ns from offer to the due departure, of each departed one */
    struct pt_hist lateness; /* ns from the due departure to the real one: the error of the truth */
};

void pt_impair_record_merge(struct pt_impair_record *into, const struct pt_impair_record *from);

struct pt_impair {
    struct pt_impair_spec spec;
    struct pt_impair_record *record;
    struct pt_rng rng;
    bool started, bad, stream;
    pt_ns origin;                               /* the first packet */
    pt_ns last;                                 /* latest departure of those in order */
    pt_ns busy;                                 /* the capped link is busy until then, */
    uint64_t busy_rest;                         /* and this much, in ns / rate.per_s */
    uint64_t loss_turn, dup_turn, reorder_turn; /* packets that reached the stage */
    uint32_t hold_left;                         /* packets until the held one leaves */
};

enum pt_impair_fate { PT_IMPAIR_PASSED, PT_IMPAIR_LOST, PT_IMPAIR_RATE_DROPPED };

struct pt_verdict {
    enum pt_impair_fate fate;
    unsigned copies; /* 0, 1 or 2 */
    pt_ns at;        /* when they leave */
    bool hold;    /* leaves behind a later packet, whose verdict says so; at `at` when none does */
    bool release; /* the held packet leaves right behind this one */
};

/* `spec` has been checked and is copied; `record` is the caller's, zeroed or going on. `salt` keeps
 * the random numbers of several workers or flows apart. */
void pt_impair_init(struct pt_impair *im, const struct pt_impair_spec *spec,
                    struct pt_impair_record *record, uint64_t salt);
/* The same for chunks of a stream: a full rate queue delays instead of dropping, and
 * pt_impair_room says when to stop reading. */
void pt_impair_init_stream(struct pt_impair *im, const struct pt_impair_spec *spec,
                           struct pt_impair_record *record, uint64_t salt);

/* The verdict on a packet of `len` bytes that arrives at `now`, not before the previous one. */
void pt_impair_packet(struct pt_impair *im, pt_ns now, size_t len, struct pt_verdict *v);

/* Streams: from when on more should be read, so that the rate queue keeps to its ceiling. */
pt_ns pt_impair_room(const struct pt_impair *im, pt_ns now);

/* What the answering side's clock shows at `now` (its drift counts from `since`, a fixed instant).
 */
static inline pt_ns pt_impair_clock(const struct pt_impair_spec *spec, pt_ns since, pt_ns now)
{
    return now + spec->clock_offset + (pt_ns)(spec->clock_drift_ppm * (double)(now - since) / 1e6);
}

/* One draw of the delay. */
pt_ns pt_delay_draw(const struct pt_delay *d, struct pt_rng *rng);

#endif
