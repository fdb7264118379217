/* shape.c: see shape.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/shape.h"

#include <errno.h>
#include <string.h>

static int only_tcp(const struct pt_plan *p, struct pt_err *e)
{
    static const char *const names[] = {"cc", "mss"};
    for (size_t i = 0; i < PT_COUNT(names); i++) {
        if (pt_plan_given(p, names[i]))
            return pt_fail(e, -EINVAL, "--%s is about TCP: it has no effect on UDP", names[i]);
    }
    return 0;
}

int pt_shape_channel(const struct pt_plan *p, bool udp, enum pt_chan_kind *out, struct pt_err *e)
{
    const char *via = p->common.via;
    udp = udp || strcmp(via, "udp") == 0;
    *out = udp ? PT_CHAN_UDP : PT_CHAN_TCP;
    if (udp && only_tcp(p, e) < 0)
        return -EINVAL;
    if (!*via || strcmp(via, "udp") == 0)
        return 0;
    if (strcmp(via, "tcp") != 0)
        return pt_fail(e, -EINVAL, "--via %s: there is no such channel; there are tcp and udp",
                       via);
    if (udp)
        return pt_fail(e, -EINVAL, "--via tcp and UDP contradict each other");
    return 0;
}

void pt_shape_peer(const struct pt_plan *p, struct pt_shape *s)
{
    if (strcmp(p->common.peer, "sockperf") == 0)
        s->dgram = PT_DGRAM_SOCKPERF;
    if (strcmp(p->common.peer, "iperf3") != 0)
        return;
    s->lingers = true;
    s->joins = false;
    if (s->chan != PT_CHAN_UDP)
        return;
    s->dgram = PT_DGRAM_IPERF3_64;
    s->whole = true;
    s->warmup = s->tail = 0;
}
