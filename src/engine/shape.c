/* shape.c: see shape.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/shape.h"

#include <errno.h>
#include <string.h>

int pt_shape_channel(const struct pt_plan *p, bool udp, enum pt_chan_kind *out, struct pt_err *e)
{
    const char *via = p->common.via;
    *out = udp ? PT_CHAN_UDP : PT_CHAN_TCP;
    if (!*via)
        return 0;
    if (strcmp(via, "udp") == 0) {
        *out = PT_CHAN_UDP;
        return 0;
    }
    if (strcmp(via, "tcp") != 0)
        return pt_fail(e, -EINVAL, "--via %s: there is no such channel; there are tcp and udp",
                       via);
    if (udp)
        return pt_fail(e, -EINVAL, "--via tcp and UDP contradict each other");
    return 0;
}
