/* shm.c: see shm.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int pt_shm_open(struct pt_shm *s, size_t size, struct pt_err *e)
{
    s->base = NULL;
    s->size = 0;
    if (size == 0)
        return pt_fail(e, -EINVAL, "shared memory of no bytes");
    void *base =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (base == MAP_FAILED)
        return pt_fail(e, -errno, "shared memory of %zu bytes: %s; fewer workers need less of it",
                       size, strerror(errno));
    s->base = base;
    s->size = size;
    return 0;
}

void pt_shm_close(struct pt_shm *s)
{
    if (s->base)
        munmap(s->base, s->size);
    s->base = NULL;
    s->size = 0;
}
