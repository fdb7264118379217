/* identity.h: which machine, kernel and network namespace this is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_IDENTITY_H
#define PT_OS_IDENTITY_H

#include "base/types.h"

/* What cannot be found out is an empty text or 0. */
struct pt_identity {
    char host[65];
    char boot_id[37]; /* of this boot; the same on two ends: one machine */
    char kernel[65];  /* release */
    char arch[65];    /* "x86_64", … */
    char cpu_model[128];
    unsigned cpus;    /* online */
    uint64_t net_ns;  /* inode of the network namespace; with boot_id it names it */
    bool virtualised; /* a hypervisor is underneath: CPU flag, or DMI names one */
};

void pt_identity_read(struct pt_identity *id);
/* The same boot of the same machine (never true when a boot id is unknown). */
bool pt_identity_same_host(const struct pt_identity *a, const struct pt_identity *b);
/* And the same network namespace: interface counters are shared. */
bool pt_identity_same_net(const struct pt_identity *a, const struct pt_identity *b);

#endif
