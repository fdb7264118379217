/* impair_ledger.h: the records of all impaired paths of a server, kept where its processes end.
 *
 * Made before the server forks; shared by everything it forks. A path claims a record, adds to it
 * while it lives, and gives it back; the next path goes on with it. Nothing is copied at the end,
 * so a process that is killed loses nothing of what it injected, and the totals can be read at any
 * time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_IMPAIR_LEDGER_H
#define PT_NET_IMPAIR_LEDGER_H

#include "net/impair.h"

/* Paths that exist at one time. Untouched records cost no memory. */
#define PT_IMPAIR_PATHS 256

struct pt_impair_ledger;

/* What a server hands to its sessions (pt_serve_spec.impairment). */
struct pt_impairment {
    struct pt_impair_spec spec;
    struct pt_impair_ledger *ledger;
    pt_ns since; /* the drift of the answering side's clock counts from here */
};

int pt_impair_ledger_open(struct pt_impair_ledger **out, struct pt_err *e) PT_MUST_USE;
/* Unmaps in this process only; NULL is fine. */
void pt_impair_ledger_close(struct pt_impair_ledger *l);

/* A record for one path of the calling process; `salt` (for pt_impair_init) tells the paths of this
 * ledger apart: 0 for the first ever claimed. NULL: PT_IMPAIR_PATHS are in use. */
struct pt_impair_record *pt_impair_claim(struct pt_impair_ledger *l, uint64_t *salt) PT_MUST_USE;
void pt_impair_give_back(struct pt_impair_ledger *l, const struct pt_impair_record *record);

/* Adds up all records, those in use included. `total` is zeroed first; it is large: not for the
 * stack. Returns how many paths there have been. */
uint64_t pt_impair_ledger_total(struct pt_impair_ledger *l, struct pt_impair_record *total);

#endif
