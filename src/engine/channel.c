/* channel.c: see channel.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/channel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A receiver that shares its CPU with the sender sleeps for milliseconds: the default of 208 KiB
 * would lose half of a flood there. All flows together get at most the larger figure. */
#define DGRAM_ROOM     (8 << 20)
#define DGRAM_ROOM_ALL (64 << 20)

static int refuse_ip_options(const struct pt_plan *plan, struct pt_err *e)
{
    static const char *const names[] = {"bind", "ports", "ipv4", "ipv6", "tos", "mss", "cc", "via"};
    for (size_t i = 0; i < PT_COUNT(names); i++)
        if (pt_plan_given(plan, names[i]))
            return pt_fail(e, -EINVAL, "--%s is about IP: it has no effect on a unix socket",
                           names[i]);
    return 0;
}

int pt_channel_choose(struct pt_shape *s, const struct pt_plan *plan, const struct pt_addr *peer,
                      struct pt_err *e)
{
    if (pt_addr_family(peer) != AF_UNIX)
        return 0;
    if (s->chan == PT_CHAN_UDP)
        return pt_fail(e, -EINVAL,
                       "UDP needs an IP address: a unix socket carries streams only (bw and lat "
                       "without --udp)");
    if (s->answer_listens)
        return pt_fail(e, -EINVAL, "--crr is about TCP connections, not unix sockets");
    s->chan = PT_CHAN_UNIX;
    return refuse_ip_options(plan, e);
}

void pt_channel_options(struct pt_sockopts *o, const struct pt_common *c, const struct pt_shape *s)
{
    *o = (struct pt_sockopts){.tos = (int)c->tos,
                              .mss = (int)c->mss,
                              .sndbuf = (int)c->sndbuf,
                              .rcvbuf = (int)c->rcvbuf,
                              .nodelay = s->both};
    snprintf(o->cc, sizeof(o->cc), "%.15s", c->cc);
}

static int dgram_room(const struct pt_shape *s)
{
    int each = DGRAM_ROOM_ALL / (s->flows ? (int)s->flows : 1);
    return each < DGRAM_ROOM ? each : DGRAM_ROOM;
}

int pt_channel_equip(int fd, const struct pt_common *c, const struct pt_shape *s, enum pt_side side,
                     struct pt_err *e)
{
    struct pt_sockopts o;
    pt_channel_options(&o, c, s);
    o.mss = 0; /* agreed when the connection was made */
    if (!o.cc[0] && s->chan == PT_CHAN_TCP)
        pt_sock_cc_default(o.cc); /* what it inherited is the listener's */
    int rc = side == PT_ANSWER ? pt_sockopts_apply(fd, &o, e) : 0;
    if (rc == 0 && s->chan == PT_CHAN_UDP && !c->rcvbuf)
        pt_sock_room(fd, dgram_room(s));
    return rc;
}

void pt_channel_granted(struct pt_sock_granted *g, int fd, const struct pt_common *c,
                        const struct pt_shape *s, bool receives)
{
    struct pt_sockopts o;
    pt_channel_options(&o, c, s);
    if (pt_sock_granted(g, fd, &o) < 0)
        *g = (struct pt_sock_granted){0};
    int wanted = dgram_room(s), granted = g->rcvbuf / 2;
    if (s->chan != PT_CHAN_UDP || s->both || !receives || c->rcvbuf || g->note[0])
        return;
    if (granted >= wanted)
        snprintf(g->note, sizeof(g->note), "UDP receive buffers of %d KiB", granted / 1024);
    else
        snprintf(g->note, sizeof(g->note),
                 "UDP receive buffers of %d KiB where %d KiB were wanted; raise net.core.rmem_max",
                 granted / 1024, wanted / 1024);
}
