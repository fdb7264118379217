/* list.c: see list.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "peer/list.h"

#include <string.h>

static const struct pt_far_kind *const peers[] = {&pt_peer_iperf3, &pt_peer_sockperf};

const struct pt_far_kind *pt_peer_find(const char *name)
{
    if (!*name)
        return &pt_far_pitot;
    for (size_t i = 0; i < PT_COUNT(peers); i++)
        if (strcmp(peers[i]->name, name) == 0)
            return peers[i];
    return NULL;
}
