/* topology.h: hosts on this machine, each with an address of its own, that reach each other.
 *
 * With the rights for it (root, or CAP_SYS_ADMIN and CAP_NET_ADMIN) each host is a network
 * namespace with a loopback and one interface, eth0, and a hub namespace joins them: by a bridge,
 * or by routes where the kernel has no bridge. Without, each host is an address of the loopback,
 * and `text` says so.
 *
 * Nothing has a name outside: descriptors of the owner and the processes inside hold the
 * namespaces, and the kernel frees them with the last. Whatever a killed owner leaves,
 * pt_topo_sweep ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_WAN_TOPOLOGY_H
#define PT_WAN_TOPOLOGY_H

#include "base/err.h"
#include "net/addr.h"

#define PT_TOPO_HOSTS 250

struct pt_topo_host {
    char name[64];
    struct pt_addr v4, v6; /* port 0; v6.len 0: the kernel has no IPv6 */
    int netns;             /* descriptor; -1: the present namespace */
};

struct pt_topo {
    bool namespaces;
    unsigned n;
    struct pt_topo_host *host;
    char text[320]; /* a sentence for reports: what the hosts are, and why */
    /* private */
    int hub;               /* descriptor; -1: none */
    pid_t owner;           /* the process that opened it */
    struct pt_owner *lock; /* NULL: none */
};

/* Makes `n` hosts (1 to PT_TOPO_HOSTS) in the order of `names` (1 to 63 bytes each, all different),
 * and sweeps first. Loopback addresses when this process may not make namespaces; any other failure
 * (-EMFILE, -ENOSPC, -EADDRNOTAVAIL, …) leaves nothing behind. -EINVAL: names or `n`. Close it in
 * every case of 0; after a failure `t` is empty and closing does nothing. */
int pt_topo_open(struct pt_topo *t, const char *const *names, unsigned n,
                 struct pt_err *e) PT_MUST_USE;

/* In a forked child of the owner: moves into the host's namespace (not at all on loopback) and asks
 * the kernel to end this process when its parent ends. The owner may call it too, and then moves.
 */
int pt_topo_enter(const struct pt_topo *t, unsigned host, struct pt_err *e) PT_MUST_USE;

/* Only the owner's close removes the lock; that of a forked child lets go of its copies. End the
 * children first: a namespace lives as long as a process is in it. Twice is fine. */
void pt_topo_close(struct pt_topo *t);

/* Removes what dead owners left: processes in their namespaces, then their lock files. How many
 * topologies, or a negative errno: -EBUSY, -ETIMEDOUT (something does not die). 0 without root. */
int pt_topo_sweep(struct pt_err *e) PT_MUST_USE;

#endif
