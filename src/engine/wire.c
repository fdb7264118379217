/* wire.c: see wire.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/wire.h"

#include "engine/fields.h"
#include "host/netstat_json.h"
#include "os/link.h"
#include "os/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pt_field fields[] = {PT_FIELD(struct pt_wire, dev, PT_FIELD_TEXT),
                                         PT_FIELD(struct pt_wire, mtu, PT_FIELD_U32),
                                         {.name = "qdisc_drops_plus_1",
                                          .offset = offsetof(struct pt_wire, qdisc_drops),
                                          .type = PT_FIELD_I64},
                                         {0}};

static void find_interface(struct pt_wire *w, const struct pt_addr *peer)
{
    struct pt_route route;
    struct pt_link link;
    if (pt_route_find(&route, &peer->sa, NULL, 0, NULL) < 0 ||
        pt_link_read(&link, route.ifindex, NULL) < 0)
        return;
    snprintf(w->dev, sizeof(w->dev), "%s", link.name);
    w->ifindex = route.ifindex;
    w->mtu = link.mtu;
}

static int64_t qdisc_drops(const struct pt_wire *w)
{
    struct pt_qdisc_stats q;
    return w->ifindex && pt_qdisc_read(&q, w->ifindex, NULL) == 0 ? (int64_t)q.drops : -1;
}

struct pt_wire *pt_wire_begin(const struct pt_addr *peer)
{
    if (pt_addr_family(peer) != AF_INET && pt_addr_family(peer) != AF_INET6)
        return NULL;
    struct pt_wire *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    find_interface(w, peer);
    w->qdisc_drops = qdisc_drops(w);
    if (pt_netstat_read(&w->net, NULL) == 0)
        return w;
    free(w);
    return NULL;
}

void pt_wire_end(struct pt_wire *w)
{
    struct pt_netstat *now = w ? calloc(1, sizeof(*now)) : NULL;
    struct pt_netstat *difference = now ? calloc(1, sizeof(*difference)) : NULL;
    if (difference && pt_netstat_read(now, NULL) == 0) {
        pt_netstat_sub(difference, now, &w->net);
        w->net = *difference;
        int64_t drops = qdisc_drops(w);
        w->qdisc_drops = drops >= 0 && w->qdisc_drops >= 0 ? drops - w->qdisc_drops : -1;
    } else if (w) {
        pt_netstat_clear(&w->net);
        w->qdisc_drops = -1;
    }
    free(difference);
    free(now);
}

void pt_wire_free(struct pt_wire *w)
{
    free(w);
}

json_t *pt_wire_to_json(const struct pt_wire *w)
{
    struct pt_wire shifted = *w;
    shifted.qdisc_drops++; /* so that 0, "unknown", is left out */
    json_t *o = pt_fields_to_json(fields, &shifted);
    json_object_set_new(o, "net", pt_netstat_json(&w->net));
    return o;
}

struct pt_wire *pt_wire_from_json(const json_t *from)
{
    struct pt_wire *w = from ? calloc(1, sizeof(*w)) : NULL;
    if (!w)
        return NULL;
    if (pt_fields_from_json(fields, w, from) < 0 ||
        pt_netstat_from_json(&w->net, json_object_get(from, "net"), NULL) < 0) {
        free(w);
        return NULL;
    }
    w->qdisc_drops--;
    return w;
}
