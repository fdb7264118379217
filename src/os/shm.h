/* shm.h: memory that a parent and the children it forks afterwards share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_SHM_H
#define PT_OS_SHM_H

#include "base/err.h"
#include "base/types.h"

struct pt_shm {
    void *base;  /* page aligned; NULL when not open */
    size_t size; /* bytes as asked */
};

/* Anonymous, shared, zeroed, every page present (no fault on the measuring path). Make it before
 * the fork. -EINVAL: size 0; -ENOMEM. */
int pt_shm_open(struct pt_shm *s, size_t size, struct pt_err *e) PT_MUST_USE;
/* Unmaps in this process only; a struct that is not open is fine. */
void pt_shm_close(struct pt_shm *s);

#endif
