/* netns.h: network namespaces without names: a descriptor holds one, and so does each process in
 * it.
 *
 * Nothing is mounted under /run/netns, so the kernel itself frees a namespace, and with it every
 * interface inside, when the last descriptor and the last process are gone, however they went.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_NETNS_H
#define PT_OS_NETNS_H

#include "base/err.h"
#include "base/types.h"

/* The namespace of the calling thread: a descriptor (CLOEXEC) or a negative errno. */
int pt_netns_self(void) PT_MUST_USE;

/* Makes an empty namespace; the caller stays where it is. A descriptor (CLOEXEC), or: -EPERM
 * (CAP_SYS_ADMIN is missing), -ENOSPC (user.max_net_namespaces), -EOPNOTSUPP (a kernel without
 * them), -EMFILE, -ENFILE, -ENOMEM. */
int pt_netns_new(struct pt_err *e) PT_MUST_USE;

/* Moves the calling thread for good. Its open sockets stay where they were made. */
int pt_netns_enter(int netns, struct pt_err *e) PT_MUST_USE;

/* Runs `run(ctx, e)` inside and comes back; its result, or the negative errno of going there. */
int pt_netns_call(int netns, int (*run)(void *ctx, struct pt_err *e), void *ctx,
                  struct pt_err *e) PT_MUST_USE;

#endif
