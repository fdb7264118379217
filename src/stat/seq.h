/* seq.h: the books of a sequenced datagram flow at its receiver: distinct, duplicate, reordered,
 * late.
 *
 * A window of the last PT_SEQ_WINDOW numbers remembers which have come. A datagram is reordered
 * when it comes after one with a higher number (RFC 4737, 3.4), a duplicate when its number has
 * come before (RFC 5560), late when it is older than the window: whether it came before can then
 * not be told, and it counts neither as lost nor as received twice. Sequence numbers have 63 bits;
 * shorter ones on the wire are extended first. All zero bytes are a fresh flow that expects number
 * 0.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_STAT_SEQ_H
#define PT_STAT_SEQ_H

#include "base/types.h"

#define PT_SEQ_WINDOW 8192u
#define PT_SEQ_WORDS  (PT_SEQ_WINDOW / 64)

struct pt_seq_books {
    uint64_t unique;    /* distinct datagrams, late ones not among them */
    uint64_t duplicate; /* copies of datagrams that had come before */
    uint64_t reordered; /* came after a later one; they are unique too */
    uint64_t late;      /* older than the window */
};

struct pt_seq {
    uint64_t next; /* one above the highest number seen */
    uint64_t bits[PT_SEQ_WORDS];
};

/* What is not the next number in line. */
void pt_seq_see_odd(struct pt_seq *s, uint64_t number, struct pt_seq_books *books);

/* Enters one datagram into `books` (those of the phase that its sender marked in it). */
static inline void pt_seq_see(struct pt_seq *s, uint64_t number, struct pt_seq_books *books)
{
    if (PT_UNLIKELY(number != s->next)) {
        pt_seq_see_odd(s, number, books);
        return;
    }
    uint64_t *word = &s->bits[(number >> 6) & (PT_SEQ_WORDS - 1)];
    uint64_t bit = (uint64_t)1 << (number & 63);
    *word = (number & 63) ? *word | bit : bit;
    s->next = number + 1;
    books->unique++;
}

/* The full number of which `low` are the lowest `bits` (1 to 63): the one nearest to what is
 * expected. */
static inline uint64_t pt_seq_extend(const struct pt_seq *s, uint64_t low, unsigned bits)
{
    uint64_t range = (uint64_t)1 << bits, half = range >> 1;
    uint64_t number = (s->next & ~(range - 1)) | low;
    if (number > s->next + half && number >= range)
        number -= range;
    else if (number + half < s->next)
        number += range;
    return number;
}

static inline void pt_seq_books_add(struct pt_seq_books *into, const struct pt_seq_books *b)
{
    into->unique += b->unique;
    into->duplicate += b->duplicate;
    into->reordered += b->reordered;
    into->late += b->late;
}

/* Sent minus what came, never negative. */
static inline uint64_t pt_seq_lost(const struct pt_seq_books *b, uint64_t sent)
{
    uint64_t came = b->unique + b->late;
    return sent > came ? sent - came : 0;
}

#endif
