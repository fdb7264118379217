/* pps_choose.c: --path auto: how datagrams reach this peer such that they are packets on the way.
 *
 * Segmentation offload hands the kernel many datagrams at once. A real interface (or the stack,
 * just before it) cuts them into packets: there it is the fastest way and an honest one. Interfaces
 * that only exist in this kernel never cut them: what arrives there are super-packets, so datagrams
 * go out one by one unless --path gso asks for more.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload/pps.h"

#include "engine/sources.h"
#include "net/udp.h"
#include "os/link.h"
#include "os/route.h"

#include <stdio.h>
#include <string.h>

/* Whether frames that leave by it are on a wire in the end, as far as this kernel can tell. */
static bool is_wired(const struct pt_link *l)
{
    static const char *const carriers[] = {"", "bond", "team", "vlan"};
    for (size_t i = 0; i < PT_COUNT(carriers) && !l->loopback; i++)
        if (!strcmp(l->kind, carriers[i]))
            return true;
    return false;
}

static int find_link(const struct pt_plan *plan, const struct pt_addr_list *to, struct pt_link *l,
                     struct pt_err *e)
{
    struct pt_addr from;
    struct pt_route route;
    int rc = pt_sources_first(&from, &plan->common, to, e);
    for (unsigned i = 0; i < to->n && rc == 0; i++) {
        rc = pt_route_find(&route, &to->addr[i].sa, from.len ? &from.sa : NULL, 0, e);
        if (rc == 0)
            return pt_link_read(l, route.ifindex, e);
        rc = i + 1 < to->n ? 0 : rc; /* the next address may have a route */
    }
    return rc;
}

int pt_pps_choose(struct pt_plan *plan, const struct pt_addr_list *to, json_t *chosen,
                  struct pt_err *e)
{
    struct pt_pps_opts *o = plan->params;
    struct pt_link link = {.name = ""};
    if (o->path != PT_PPS_AUTO)
        return 0;
    o->path = PT_PPS_PLAIN;
    if (pt_addr_family(&to->addr[0]) == AF_UNIX)
        return 0;
    int rc = find_link(plan, to, &link, e);
    if (rc < 0)
        return rc;
    size_t size = pt_pps_size(plan);
    if (!is_wired(&link)) {
        pt_choice_add(chosen, "path", "plain",
                      "%s is not a wire: super-packets are never cut there, and would count as "
                      "packets that no interface has seen",
                      link.name);
    } else if (pt_udp_gso_bytes(pt_udp_gso_segments(), (unsigned)size) < 2 * size ||
               size > link.mtu) {
        pt_choice_add(chosen, "path", "plain",
                      "this kernel has no segmentation offload for datagrams of %zu bytes", size);
    } else {
        o->path = PT_PPS_GSO;
        pt_choice_add(chosen, "path", "gso", "many datagrams per send, cut before they leave %s",
                      link.name);
    }
    return 0;
}
