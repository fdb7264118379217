/* fingerprint.h: the circumstances of a measurement at one end that its identity does not tell:
 * kernel settings, interfaces, and which CPUs serve them.
 *
 *     {"platform": "KVM", "congestion_control": "cubic", "default_qdisc": "fq_codel",
 *      "clock_source": "tsc", "governor": "performance", "smt": true,
 *      "sysctl": {"net.core.rmem_max": "212992", …},
 *      "interfaces": [{"if": "eth0", "kind": "", "driver": "virtio_net", "mtu": 1500,
 *                      "speed_mbit": null, "qdisc": "mq", "rx_queues": 2, "tx_queues": 2,
 *                      "offloads": ["rx", "tso"], "xdp": false,
 *                      "irqs": [{"irq": 41, "cpus": "0"}], "rps_mask": "3"}]}
 *
 * What this system does not tell is left out or null. Interfaces are those of the present network
 * namespace that are up, PT_FINGERPRINT_IFS at most.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_HOST_FINGERPRINT_H
#define PT_HOST_FINGERPRINT_H

#include "base/types.h"

#include <jansson.h>

#define PT_FINGERPRINT_IFS  16
#define PT_FINGERPRINT_IRQS 64 /* of one interface */
#define PT_FINGERPRINT_TEXT 128

/* Takes a few milliseconds: not while something is measured. `root`: "" for this system, else a
 * folder that holds proc/ and sys/, whose interfaces are still those of this system. A new
 * reference; NULL: no memory. */
json_t *pt_fingerprint(const char *root);

/* What a peer that is not trusted sent, rebuilt from what is known. A new reference; NULL: nothing
 * of it can be used. */
json_t *pt_fingerprint_clean(const json_t *from);

#endif
