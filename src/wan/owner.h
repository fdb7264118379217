/* owner.h: the proof that the maker of a topology lives: a locked file in /run/pitot.
 *
 * The lock is a record lock (F_SETLK), which belongs to one process: the kernel drops it when that
 * process ends, however it ends, and a forked worker does not inherit it, so a worker that outlives
 * its owner proves nothing. The file's name is also the mark that each namespace of the topology
 * carries, as the alias of its loopback; it holds 64 random bits, so no foreign namespace has it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_WAN_OWNER_H
#define PT_WAN_OWNER_H

#include "base/err.h"
#include "base/types.h"

#define PT_OWNER_DIR  "/run/pitot"
#define PT_OWNER_MARK 32 /* "topo-0123456789abcdef" and NUL */

struct pt_owner {
    char mark[PT_OWNER_MARK];
    int lock;  /* the file, -1: none */
    pid_t pid; /* whose */
    struct pt_owner *next;
};

/* Makes and locks a file. -EPERM, -EACCES, -EROFS: this process may not write below /run. */
int pt_owner_take(struct pt_owner *o, struct pt_err *e) PT_MUST_USE;
/* Removes the file, when this is the process that took it. Fine with none. */
void pt_owner_release(struct pt_owner *o);

/* Calls `remove(mark, e)` for every owner that died. When it returns 0 the file goes too; when it
 * fails, the file stays for the next attempt, and the first failure is the result. How many went.
 */
int pt_owner_each_dead(int (*remove)(const char *mark, struct pt_err *e),
                       struct pt_err *e) PT_MUST_USE;

#endif
