/* pps_frame.c: what `--path packet` and `--path xdp` have in common: the way to the peer and whole
 * frames.
 *
 * The flows are opened as ordinary UDP sockets, so the peer knows them and its kernel demultiplexes
 * them; here their addresses and ports are put into frames that go past this host's UDP and IP.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload/pps.h"

#include "net/udp.h"
#include "proto/dgram.h"
#include "proto/udp_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESOLVE_NS (3 * PT_S)

static const char *path_name(const struct pt_plan *p)
{
    return pt_pps_path(p) == PT_PPS_XDP ? "xdp" : "packet";
}

static bool goes_raw(const struct pt_plan *p, enum pt_side side)
{
    enum pt_pps_path path = pt_pps_path(p);
    return path == PT_PPS_XDP || (path == PT_PPS_PACKET && side == PT_ASK);
}

/* The way out to `peer`, which is also taken to be the way its packets come in. */
static int find_way(struct pt_pps_way *way, const struct pt_plan *plan, const struct pt_addr *peer,
                    const struct pt_addr *from, struct pt_err *e)
{
    char text[PT_ADDR_TEXT];
    struct pt_addr to = *peer;
    pt_addr_unmap(&to);
    int rc = pt_route_find(&way->route, &to.sa, from ? &from->sa : NULL, 0, e);
    if (rc == 0 && way->route.local)
        rc = pt_fail(e, -EOPNOTSUPP,
                     "%s is an address of this host, whose packets reach no Ethernet interface; "
                     "try --path plain or gso",
                     pt_addr_print_ip(&to, text));
    if (rc == 0)
        rc = pt_link_read(&way->link, way->route.ifindex, e);
    if (rc == 0 && !way->link.ethernet)
        rc = pt_fail(e, -EOPNOTSUPP,
                     "the way to %s is %s, which is no Ethernet interface; try --path plain or gso",
                     pt_addr_print_ip(&to, text), way->link.name);
    return rc < 0 ? pt_fail_prefix(e, "--path %s", path_name(plan)) : 0;
}

/* Opening a socket and closing it again is the surest way to learn whether we may. */
static int may_send(const struct pt_plan *plan, struct pt_err *e)
{
    bool xdp = pt_pps_path(plan) == PT_PPS_XDP;
    int fd = socket(xdp ? AF_XDP : AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    int rc = -errno;
    if (rc == -EPERM)
        return pt_fail(e, rc,
                       "--path %s needs root or CAP_NET_RAW on the sending host; "
                       "try --path plain or gso",
                       path_name(plan));
    return pt_fail(e, rc, "--path %s: this kernel opens no such socket: %s", path_name(plan),
                   pt_strerror(rc));
}

static int fits(const struct pt_plan *plan, const struct pt_pps_way *way, struct pt_err *e)
{
    bool xdp = pt_pps_path(plan) == PT_PPS_XDP;
    size_t headers = pt_udp_frame_header_len(way->route.family == AF_INET6);
    size_t most = way->link.mtu + 14 > headers ? way->link.mtu + 14 - headers : 0;
    if (xdp && most > PT_PPS_XDP_PACKET - headers)
        most = PT_PPS_XDP_PACKET - headers;
    if (pt_pps_size(plan) <= most)
        return 0;
    return pt_fail(e, -EMSGSIZE,
                   "--path %s does not fragment: over %s a datagram carries at most %zu bytes, "
                   "not %zu; try --path plain",
                   path_name(plan), way->link.name, most, pt_pps_size(plan));
}

int pt_pps_reach(const struct pt_plan *plan, enum pt_side side, const struct pt_addr *peer,
                 struct pt_shape *s, struct pt_err *e)
{
    struct pt_pps_way way = {.door = NULL};
    if (!goes_raw(plan, side))
        return 0;
    int rc = find_way(&way, plan, peer, NULL, e);
    if (rc == 0)
        rc = fits(plan, &way, e);
    if (rc == 0 && side == PT_ASK)
        rc = may_send(plan, e);
    if (rc == 0 && pt_pps_path(plan) == PT_PPS_XDP) {
        unsigned queues = side == PT_ASK ? way.link.tx_queues : way.link.rx_queues;
        s->workers_most = queues ? queues : 1; /* a queue is one worker's */
    }
    return rc;
}

static int open_way(struct pt_pps_way *way, const struct pt_job_spec *spec, struct pt_err *e)
{
    struct pt_addr here, peer;
    int rc = pt_addr_local(&here, spec->fds[0]);
    if (rc == 0)
        rc = pt_addr_peer(&peer, spec->fds[0]);
    if (rc < 0)
        return pt_fail(e, rc, "address of flow 0: %s", pt_strerror(rc));
    pt_addr_unmap(&here);
    rc = find_way(way, spec->plan, &peer, &here, e);
    if (rc == 0 && spec->side == PT_ASK)
        rc = pt_route_resolve(&way->route, RESOLVE_NS, e);
    if (rc == 0 && spec->side == PT_ANSWER)
        rc = pt_pps_door_open(way, spec, e);
    return rc;
}

int pt_pps_open(struct pt_job_spec *spec, struct pt_err *e)
{
    if (!goes_raw(spec->plan, spec->side))
        return 0;
    struct pt_pps_way *way = calloc(1, sizeof(*way));
    if (!way)
        return pt_fail(e, -ENOMEM, "no memory");
    int rc = open_way(way, spec, e);
    if (rc < 0)
        free(way);
    else
        spec->path = way;
    return rc;
}

void pt_pps_close(struct pt_job_spec *spec)
{
    struct pt_pps_way *way = spec->path;
    if (way->door)
        pt_pps_door_close(way->door);
    free(way);
    spec->path = NULL;
}

/* ---- frames */

static void take_ip(uint8_t out[16], const struct pt_addr *a)
{
    memset(out, 0, 16);
    if (pt_addr_family(a) == AF_INET6)
        memcpy(out, &a->v6.sin6_addr, 16);
    else
        memcpy(out, &a->v4.sin_addr, 4);
}

/* With several source addresses (--bind) a flow may have a route of its own. */
static int route_of(struct pt_route *route, const struct pt_pps_way *way,
                    const struct pt_addr *from, const struct pt_addr *to, struct pt_err *e)
{
    uint8_t ip[16];
    *route = way->route;
    take_ip(ip, from);
    if (memcmp(ip, route->source, sizeof(ip)) == 0)
        return 0;
    int rc = pt_route_find(route, &to->sa, &from->sa, 0, e);
    if (rc == 0)
        rc = pt_route_resolve(route, RESOLVE_NS, e);
    if (rc == 0 && route->ifindex != way->link.ifindex)
        rc = pt_fail(e, -EOPNOTSUPP,
                     "--bind: the source addresses have ways over different interfaces; "
                     "raw frames go over one of them");
    return rc;
}

int pt_pps_frame_init(struct pt_flow *f, struct pt_err *e)
{
    struct pt_pps_flow *p = f->own;
    const struct pt_job_spec *spec = &f->w->job->spec;
    struct pt_addr from, to;
    struct pt_route route;
    int rc = pt_addr_local(&from, f->fd);
    if (rc == 0)
        rc = pt_addr_peer(&to, f->fd);
    if (rc < 0)
        return rc;
    rc = route_of(&route, spec->path, &from, &to, e);
    if (rc < 0)
        return rc;
    struct pt_udp_frame_ends ends = {
        .ipv6 = pt_addr_family(&to) == AF_INET6,
        .source_port = pt_addr_port(&from),
        .destination_port = pt_addr_port(&to),
        .tos = (uint8_t)spec->plan->common.tos,
    };
    memcpy(ends.source_mac, route.source_mac, 6);
    memcpy(ends.destination_mac, route.next_hop_mac, 6);
    take_ip(ends.source, &from);
    take_ip(ends.destination, &to);
    p->header = pt_udp_frame_header_len(ends.ipv6);
    p->bytes = pt_worker_alloc(f->w, pt_pps_frame_len(p));
    if (!p->bytes)
        return pt_fail(e, -ENOMEM, "no memory for frames");
    pt_pps_fill(p, p->bytes + p->header);
    ssize_t n = pt_udp_frame_build(p->bytes, pt_pps_frame_len(p), &ends, p->size);
    return n < 0 ? (int)n : 0;
}

/* All frames are equal behind the number: nothing else is copied. */
void pt_pps_frame_write(struct pt_pps_flow *p, uint8_t *frame, uint64_t number, bool measured)
{
    uint8_t head[PT_DGRAM_HEADER];
    size_t n = p->size >= PT_DGRAM_HEADER  ? PT_DGRAM_HEADER
               : p->size >= PT_DGRAM_SHORT ? PT_DGRAM_SHORT
                                           : 0;
    pt_dgram_write(p->form, head, p->size, number, measured);
    pt_udp_frame_patch(p->bytes, p->header, 0, head, n);
    memcpy(frame, p->bytes, p->header + n);
}
