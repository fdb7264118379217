/* identity.h: what one end tells the other about itself when a session opens.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_IDENTITY_H
#define PT_NET_IDENTITY_H

#include <jansson.h>

/* {host, pitot, kernel, machine, cpu_model, virtualised, boot_id, netns, cpus, pid}: two ends with
 * the same boot_id share one kernel, with the same netns too one network stack. Keys that this
 * system does not tell are left out. The caller's reference; NULL when there is no memory. */
json_t *pt_identity(void);

#endif
