/* netstat_json.h: counters of the network as JSON: how the peer's half of them travels.
 *
 *     {"elapsed_ns": 1000000000,
 *      "counters": {"Udp.RcvbufErrors": 0, …},
 *      "devs": [{"name": "eth0", "rx_bytes": 0, …}],
 *      "softnet": {"processed": 0, "dropped": 0, "squeezed": 0}}
 *
 * What is unknown (-1) is left out. The softnet counters of single CPUs do not travel.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_HOST_NETSTAT_JSON_H
#define PT_HOST_NETSTAT_JSON_H

#include "os/netstat.h"

#include <jansson.h>

/* Of a difference. A new reference; NULL: no memory. */
json_t *pt_netstat_json(const struct pt_netstat *d);

/* From a peer that nobody vouches for. Counters are integers from 0 to 2^53; counters and keys that
 * this version does not know are passed over. -EPROTO with the key that is wrong. */
int pt_netstat_from_json(struct pt_netstat *d, const json_t *from, struct pt_err *e) PT_MUST_USE;

#endif
