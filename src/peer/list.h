/* list.h: the stock servers that pitot measures against: --peer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_PEER_LIST_H
#define PT_PEER_LIST_H

#include "engine/far.h"

extern const struct pt_far_kind pt_peer_iperf3, pt_peer_sockperf;

/* NULL: there is none of that name. "" is pitot's own. */
const struct pt_far_kind *pt_peer_find(const char *name);

#endif
