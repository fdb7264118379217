/* impair_ledger.c: see impair_ledger.h. A record belongs to the process whose id stands beside it;
 * one whose process is gone is free again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/impair_ledger.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pt_impair_ledger {
    _Atomic uint64_t claimed;
    _Atomic pid_t owner[PT_IMPAIR_PATHS];
    struct pt_impair_record records[PT_IMPAIR_PATHS];
};

int pt_impair_ledger_open(struct pt_impair_ledger **out, struct pt_err *e)
{
    /* Not pt_shm_open, which makes every page present: of these 220 MiB few are ever touched. */
    void *base = mmap(NULL, sizeof(**out), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return pt_fail(e, -errno, "map the record of what is injected: %s", pt_strerror(-errno));
    *out = base;
    return 0;
}

void pt_impair_ledger_close(struct pt_impair_ledger *l)
{
    if (l)
        munmap(l, sizeof(*l));
}

static bool is_free(pid_t owner)
{
    return owner == 0 || (kill(owner, 0) < 0 && errno == ESRCH);
}

struct pt_impair_record *pt_impair_claim(struct pt_impair_ledger *l, uint64_t *salt)
{
    pid_t self = getpid();
    for (size_t i = 0; i < PT_IMPAIR_PATHS; i++) {
        pid_t owner = atomic_load(&l->owner[i]);
        if (is_free(owner) && atomic_compare_exchange_strong(&l->owner[i], &owner, self)) {
            *salt = atomic_fetch_add(&l->claimed, 1);
            return &l->records[i];
        }
    }
    return NULL;
}

void pt_impair_give_back(struct pt_impair_ledger *l, const struct pt_impair_record *record)
{
    atomic_store(&l->owner[record - l->records], 0);
}

uint64_t pt_impair_ledger_total(struct pt_impair_ledger *l, struct pt_impair_record *total)
{
    memset(total, 0, sizeof(*total));
    uint64_t claimed = atomic_load(&l->claimed);
    size_t used = claimed < PT_IMPAIR_PATHS ? (size_t)claimed : PT_IMPAIR_PATHS;
    for (size_t i = 0; i < used; i++)
        pt_impair_record_merge(total, &l->records[i]);
    return claimed;
}
