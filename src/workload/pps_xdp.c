/* pps_xdp.c: `pitot pps --path xdp`: AF_XDP sockets at both ends, past both IP stacks.
 *
 * Sending, worker i has queue i of the interface. Receiving, the session's supervisor attaches a
 * program that takes the packets of this test's flows and of nobody else; worker i reads the queues
 * i, i + workers, … A flow's packets all come in by one queue (the interface hashes by flow), so
 * its books still have one writer, though that need not be the worker that the flow lives on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/report.h"
#include "os/clock.h"
#include "os/xdp.h"
#include "os/xsk.h"
#include "proto/udp_frame.h"
#include "workload/pps.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define TX_FRAMES  1024
#define RX_FRAMES  4096 /* of a queue; fewer where all queues together would have more than … */
#define RX_MOST    32768
#define BATCH      64
#define QUEUES_MAX 64
/* A receiver naps when its rings are empty, far shorter than they take to fill. It does not wait
 * for packets in the kernel, because the sending CPU would pay for each waking; and it does not
 * spin, because every look at a ring takes a cache line away from the CPU that fills it. */
#define NAP_NS  (100 * PT_US)
#define IDLE_NS (20 * PT_MS) /* after the last packet; then it does wait in the kernel */
#define WAIT_MS 5
#define FLUSHES 1000

struct pt_pps_door {
    struct pt_xdp program;
    unsigned queues;
    uint32_t by_port[65536]; /* id + 1 of the flow that comes from this port; 0: none */
};

struct pt_pps_rings {
    unsigned n;
    struct pt_xsk xsk[QUEUES_MAX];
    struct pollfd polls[QUEUES_MAX];
    struct pt_flow **flow; /* receiving: by id, all of the test */
    pt_ns seen_ns;         /* when the last packet came */
};

unsigned pt_pps_xdp_frame(size_t packet)
{
    return packet + 256 <= 2048 ? 2048 : 4096;
}

/* ---- the receiving supervisor */

static int sender_of(struct pt_xdp_sender *s, uint16_t *port, int fd, struct pt_err *e)
{
    struct pt_addr peer;
    int rc = pt_addr_peer(&peer, fd);
    if (rc < 0)
        return pt_fail(e, rc, "address of a flow: %s", pt_strerror(rc));
    pt_addr_unmap(&peer);
    *s = (struct pt_xdp_sender){.ipv6 = pt_addr_family(&peer) == AF_INET6};
    if (s->ipv6)
        memcpy(s->address, &peer.v6.sin6_addr, 16);
    else
        memcpy(s->address, &peer.v4.sin_addr, 4);
    *port = pt_addr_port(&peer);
    return 0;
}

static int admit(struct pt_pps_door *door, const struct pt_job_spec *spec,
                 const struct pt_xdp_sender *first, struct pt_err *e)
{
    for (uint32_t id = 0; id < spec->shape.flows; id++) {
        struct pt_xdp_sender s;
        uint16_t port = 0;
        int rc = sender_of(&s, &port, spec->fds[id], e);
        if (rc < 0)
            return rc;
        if (memcmp(s.address, first->address, sizeof(s.address)) != 0)
            return pt_fail(e, -EOPNOTSUPP,
                           "--path xdp takes one source address; give --bind no more than one");
        door->by_port[port] = id + 1;
        rc = pt_xdp_admit(&door->program, port, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int attach(struct pt_pps_door *door, const struct pt_link *link,
                  const struct pt_job_spec *spec, const struct pt_xdp_sender *sender,
                  struct pt_err *e)
{
    struct pt_addr here;
    int rc = pt_addr_local(&here, spec->fds[0]);
    if (rc < 0)
        return pt_fail(e, rc, "address of flow 0: %s", pt_strerror(rc));
    const struct pt_xdp_spec program = {
        .ifindex = link->ifindex,
        .port_first = pt_addr_port(&here),
        .port_last = pt_addr_port(&here),
        .queues = door->queues,
        .sender = sender,
    };
    rc = pt_xdp_attach(&door->program, &program, e);
    if (rc == -EBUSY)
        return pt_fail(e, rc,
                       "%s has an XDP program already, of another session or another program: "
                       "wait for its end, or try --path packet or plain",
                       link->name);
    if (rc < 0) {
        pt_fail_prefix(e, "the server cannot receive by XDP on %s; try --path packet or plain",
                       link->name);
        return rc == -EPERM ? pt_fail(e, rc,
                                      "receiving by XDP needs a server that runs as root (CAP_BPF, "
                                      "CAP_NET_ADMIN); try --path packet or plain")
                            : rc;
    }
    return 0;
}

int pt_pps_door_open(struct pt_pps_way *way, const struct pt_job_spec *spec, struct pt_err *e)
{
    struct pt_xdp_sender sender;
    uint16_t port;
    struct pt_pps_door *door = calloc(1, sizeof(*door));
    if (!door)
        return pt_fail(e, -ENOMEM, "no memory");
    door->program = (struct pt_xdp){.map_fd = -1, .senders_fd = -1, .prog_fd = -1, .link_fd = -1};
    door->queues = way->link.rx_queues ? way->link.rx_queues : 1;
    int rc = sender_of(&sender, &port, spec->fds[0], e);
    if (rc == 0)
        rc = attach(door, &way->link, spec, &sender, e);
    if (rc == 0)
        rc = admit(door, spec, &sender, e);
    if (rc < 0)
        pt_pps_door_close(door);
    else
        way->door = door;
    return rc;
}

void pt_pps_door_close(struct pt_pps_door *door)
{
    pt_xdp_detach(&door->program);
    free(door);
}

/* ---- workers */

static unsigned rx_frames(unsigned queues)
{
    unsigned n = RX_FRAMES;
    while (n > 256 && n * queues > RX_MOST)
        n /= 2;
    return n;
}

static int open_rings(struct pt_worker *w, unsigned queue, bool sends, struct pt_err *e)
{
    struct pt_pps_rings *r = ((struct pt_pps_worker *)w->own)->rings;
    const struct pt_pps_way *way = w->job->spec.path;
    const struct pt_xsk_spec spec = {
        .ifindex = way->link.ifindex,
        .queue = queue,
        .tx_frames = sends ? TX_FRAMES : 0,
        .rx_frames = sends ? 0 : rx_frames(way->door->queues),
        .frame_bytes = pt_pps_xdp_frame(pt_pps_size(w->job->spec.plan) + 64),
    };
    if (r->n == QUEUES_MAX)
        return pt_fail(e, -EOPNOTSUPP,
                       "%s has %u queues, a worker reads at most %d: give the server more CPUs",
                       way->link.name, way->door->queues, QUEUES_MAX);
    struct pt_xsk *x = &r->xsk[r->n];
    int rc = pt_xsk_open(x, &spec, e);
    if (rc < 0)
        return rc;
    r->polls[r->n++] = (struct pollfd){.fd = x->fd, .events = POLLIN};
    if (sends) {
        pt_worker_note(w, "AF_XDP on %s, %u queue%s, %s", way->link.name,
                       w->job->spec.shape.workers_most,
                       w->job->spec.shape.workers_most == 1 ? "" : "s",
                       x->zero_copy ? "zero copy" : "copying");
        return 0;
    }
    pt_worker_note(w, "AF_XDP on %s, %u queue%s, %s, %s program", way->link.name, way->door->queues,
                   way->door->queues == 1 ? "" : "s", x->zero_copy ? "zero copy" : "copying",
                   way->door->program.native ? "native" : "generic");
    return pt_xdp_join(&way->door->program, queue, x->fd, e);
}

/* The flows that live on other workers: their packets may come in by a queue of ours. */
static int adopt_flows(struct pt_worker *w, struct pt_pps_rings *r, struct pt_err *e)
{
    uint32_t flows = w->shape->flows, others = flows - w->flow_count, at = 0;
    r->flow = pt_worker_alloc(w, flows * sizeof(void *));
    struct pt_flow *extra = pt_worker_alloc(w, others * sizeof(*extra) + 1);
    struct pt_pps_flow *owns = pt_worker_alloc(w, others * sizeof(*owns) + 1);
    if (!r->flow || !extra || !owns)
        return pt_fail(e, -ENOMEM, "worker %u: no memory for %u flows", w->index, flows);
    for (uint32_t i = 0; i < w->flow_count; i++)
        r->flow[w->flows[i].id] = &w->flows[i];
    for (uint32_t id = 0; id < flows; id++) {
        if (r->flow[id])
            continue;
        owns[at].size = pt_pps_size(w->job->spec.plan);
        extra[at] = (struct pt_flow){.w = w,
                                     .st = &w->job->flows[id],
                                     .id = id,
                                     .fd = -1,
                                     .dir = PT_DIR_RX,
                                     .own = &owns[at]};
        r->flow[id] = &extra[at++];
    }
    return 0;
}

int pt_pps_xdp_init(struct pt_worker *w, struct pt_err *e)
{
    struct pt_pps_worker *own = w->own;
    const struct pt_pps_way *way = w->job->spec.path;
    struct pt_pps_rings *r = own->rings = pt_worker_alloc(w, sizeof(*r));
    if (!r)
        return pt_fail(e, -ENOMEM, "worker %u: no memory", w->index);
    if (w->senders)
        return open_rings(w, w->index, true, e);
    int rc = adopt_flows(w, r, e);
    for (unsigned q = w->index; rc == 0 && q < way->door->queues; q += w->job->spec.workers)
        rc = open_rings(w, q, false, e);
    return rc;
}

/* What was submitted is counted as sent: the kernel has to take it. */
static void flush(struct pt_xsk *x)
{
    for (int i = 0; i < FLUSHES && x->tx_frames; i++)
        if (pt_xsk_tx_kick(x) <= 0)
            return;
}

static void take_stats(struct pt_worker_stat *st, struct pt_xsk *x)
{
    struct pt_xsk_stats s;
    if (pt_xsk_stats(x, &s) < 0)
        return;
    st->extra[PT_PPS_RING_FULL] += s.rx_ring_full;
    st->extra[PT_PPS_FILL_EMPTY] += s.rx_fill_ring_empty;
    st->extra[PT_PPS_RX_DROPPED] += s.rx_dropped;
    st->ring_drops += s.rx_ring_full + s.rx_dropped;
}

void pt_pps_xdp_fini(struct pt_worker *w)
{
    struct pt_pps_rings *r = ((struct pt_pps_worker *)w->own)->rings;
    for (unsigned i = 0; r && i < r->n; i++) {
        flush(&r->xsk[i]);
        take_stats(w->st, &r->xsk[i]);
        pt_xsk_close(&r->xsk[i]);
    }
}

int pt_pps_xdp_send(struct pt_flow *f, unsigned n, bool measured)
{
    struct pt_pps_flow *p = f->own;
    struct pt_xsk *x = ((struct pt_pps_worker *)f->w->own)->rings->xsk;
    uint8_t *frames[BATCH];
    unsigned got = pt_xsk_tx_reserve(x, n < BATCH ? n : BATCH, frames);
    for (unsigned i = 0; i < got; i++)
        pt_pps_frame_write(p, frames[i], p->number++, measured);
    pt_xsk_tx_submit(x, got, (uint32_t)pt_pps_frame_len(p));
    uint64_t dropped = x->tx_dropped;
    int rc = pt_xsk_tx_kick(x);
    if (PT_UNLIKELY(rc < 0))
        return rc;
    dropped = x->tx_dropped - dropped;
    f->w->st->tx_refused += dropped;
    unsigned sent = got > dropped ? got - (unsigned)dropped : 0;
    if (sent)
        pt_flow_sent(f, (uint64_t)sent * p->size, sent);
    return (int)sent;
}

static void take(struct pt_worker *w, struct pt_xsk *x, const struct pt_xsk_packet *packet,
                 pt_ns now)
{
    const struct pt_pps_way *way = w->job->spec.path;
    struct pt_pps_rings *r = ((struct pt_pps_worker *)w->own)->rings;
    struct pt_udp_frame_view v;
    uint32_t flow = pt_udp_frame_parse(packet->bytes, packet->len, &v) == 0
                        ? way->door->by_port[v.ends.source_port]
                        : 0;
    if (PT_UNLIKELY(!flow)) {
        w->st->extra[PT_PPS_STRANGE]++;
        return;
    }
    pt_worker_deliver(r->flow[flow - 1], x->area + (v.payload - x->area), v.payload_len, NULL, now);
}

/* Looks at every ring; sleeps when nothing has come for a while. */
int pt_pps_xdp_poll(struct pt_worker *w, pt_ns now)
{
    struct pt_pps_rings *r = ((struct pt_pps_worker *)w->own)->rings;
    struct pt_xsk_packet packets[BATCH];
    unsigned moved = 0;
    for (unsigned i = 0; i < r->n; i++) {
        struct pt_xsk *x = &r->xsk[i];
        unsigned n = pt_xsk_rx_peek(x, packets, BATCH);
        for (unsigned k = 0; k < n; k++)
            take(w, x, &packets[k], now);
        if (n)
            pt_xsk_rx_release(x, n);
        moved += n;
    }
    if (moved)
        r->seen_ns = now;
    if (moved >= BATCH)
        return (int)moved; /* more is waiting */
    if (now - r->seen_ns < IDLE_NS)
        pt_clock_sleep_until(now + NAP_NS);
    else
        (void)!poll(r->polls, r->n, WAIT_MS); /* whatever ends it: the next turn looks again */
    return (int)moved;
}

static const struct {
    unsigned which;
    const char *text;
} ring_notes[] = {
    {PT_PPS_RING_FULL, "frames were lost because its AF_XDP ring was full: it reads too slowly"},
    {PT_PPS_RX_DROPPED, "frames were lost because no free frame was left in its AF_XDP memory"},
    {PT_PPS_STRANGE, "frames reached its AF_XDP sockets that are no datagrams of this test"},
};

void pt_pps_xdp_report(const struct pt_report *rep, struct pt_result *r)
{
    for (size_t i = 0; rep->peer && i < PT_COUNT(ring_notes); i++)
        if (rep->peer->extra[ring_notes[i].which])
            pt_result_note(r, "peer: %llu %s",
                           (unsigned long long)rep->peer->extra[ring_notes[i].which],
                           ring_notes[i].text);
}
