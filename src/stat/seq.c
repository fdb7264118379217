/* seq.c: see seq.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "stat/seq.h"

#include <string.h>

static void jump_ahead(struct pt_seq *s, uint64_t number)
{
    uint64_t first = (s->next + 63) >> 6; /* the first word that no number below `next` is in */
    uint64_t last = number >> 6;
    if (number - s->next >= PT_SEQ_WINDOW) {
        memset(s->bits, 0, sizeof(s->bits));
    } else {
        for (uint64_t w = first; w <= last; w++)
            s->bits[w & (PT_SEQ_WORDS - 1)] = 0;
    }
    s->bits[last & (PT_SEQ_WORDS - 1)] |= (uint64_t)1 << (number & 63);
    s->next = number + 1;
}

void pt_seq_see_odd(struct pt_seq *s, uint64_t number, struct pt_seq_books *books)
{
    if (number >= s->next) {
        jump_ahead(s, number);
        books->unique++;
        return;
    }
    /* The word that holds the oldest numbers is shared with the newest: a whole word is not known.
     */
    if (s->next - number > PT_SEQ_WINDOW - 64) {
        books->late++;
        return;
    }
    uint64_t *word = &s->bits[(number >> 6) & (PT_SEQ_WORDS - 1)];
    uint64_t bit = (uint64_t)1 << (number & 63);
    if (*word & bit) {
        books->duplicate++;
        return;
    }
    *word |= bit;
    books->unique++;
    books->reordered++;
}
