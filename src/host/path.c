/* path.c: see path.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/path.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *pt_path_name(enum pt_path_step step)
{
    static const char *const name[PT_PATH_STEPS] = {
        "app_sent", "kernel_sent", "nic_sent", "nic_received", "kernel_delivered", "app_received"};
    return (unsigned)step < PT_PATH_STEPS ? name[step] : "";
}

/* ---- counters */

static int64_t known(int64_t v)
{
    return v > 0 ? v : 0;
}

static int64_t dev_counter(const struct pt_netdev *d, int64_t v)
{
    return d ? known(v) : 0;
}

static const struct pt_netdev *find_dev(const struct pt_netstat *net, const char *name)
{
    return net && name ? pt_netstat_dev(net, name) : NULL;
}

static int64_t sum(const struct pt_netstat *net, enum pt_netstat_counter v4,
                   enum pt_netstat_counter v6)
{
    return net ? known(pt_netstat_sum(net, v4, v6)) : 0;
}

#define BOTH(net, name)    sum(net, PT_NETSTAT_UDP4_##name, PT_NETSTAT_UDP6_##name)
#define BOTH_IP(net, name) sum(net, PT_NETSTAT_IP4_##name, PT_NETSTAT_IP6_##name)

/* What the counters of both hosts can explain, in datagrams, before other traffic is considered. */
struct causes {
    int64_t refused;           /* by send(2) */
    int64_t queue, tx_dropped; /* at the sender's interface */
    int64_t rx_errors;         /* at the receiver's interface: errors, ring overflows */
    int64_t backlog;           /* between it and IP */
    int64_t stack;             /* in IP and UDP: checksum, no port, reassembly, discards */
    int64_t socket;            /* receive buffer full */
};

/* A super-packet that is dropped takes all its datagrams along. */
static int64_t whole(int64_t drops, unsigned per_packet)
{
    if (per_packet <= 1)
        return drops;
    return drops > INT64_MAX / per_packet ? INT64_MAX : drops * per_packet;
}

static void find_causes(struct causes *c, const struct pt_path_sender *s,
                        const struct pt_path_receiver *r)
{
    const struct pt_netdev *tx = find_dev(s->net, s->dev), *rx = find_dev(r->net, r->dev);
    memset(c, 0, sizeof(*c));
    c->refused = s->attempted > s->accepted ? (int64_t)(s->attempted - s->accepted) : 0;
    /* Without IP_RECVERR send(2) says yes to a datagram that the queueing discipline drops at once,
     * and only SndbufErrors knows; it counts the refused sends too. */
    int64_t silent = BOTH(s->net, SNDBUF_ERRORS) - c->refused / (s->gso > 1 ? s->gso : 1);
    if (s->via)
        silent = 0;
    c->queue = whole(s->qdisc_drops >= 0 ? s->qdisc_drops : known(silent), s->gso);
    c->tx_dropped = tx ? whole(known(tx->tx_dropped) + known(tx->tx_errors), s->gso) : 0;
    c->rx_errors = rx ? whole(known(rx->rx_errors) + known(rx->rx_fifo), s->gso) : 0;
    /* A full backlog counts at the interface and at the CPU: the same packets. */
    int64_t softnet = r->net ? known(r->net->softnet_all.dropped) : 0;
    int64_t dropped = dev_counter(rx, rx ? rx->rx_dropped : 0);
    c->backlog = whole(dropped > softnet ? dropped : softnet, s->gso);
    if (!r->via)
        c->stack = BOTH(r->net, IN_CSUM_ERRORS) + BOTH(r->net, NO_PORTS) +
                   BOTH_IP(r->net, IN_DISCARDS) + BOTH_IP(r->net, REASM_FAILS);
    int64_t full = r->via ? 0 : BOTH(r->net, RCVBUF_ERRORS) + BOTH(r->net, MEM_ERRORS);
    c->socket = whole(r->socket_drops >= 0 ? r->socket_drops : full, r->gro ? s->gso : 1);
}

/* Takes at most `want` from what is missing. */
static int64_t claim(int64_t *missing, int64_t want)
{
    int64_t got = want < *missing ? want : *missing;
    *missing -= got;
    return got;
}

/* ---- evidence */

static void say(struct pt_path_stage *g, const char *fmt, ...) PT_PRINTF(2, 3);
static void say(struct pt_path_stage *g, const char *fmt, ...)
{
    size_t used = strlen(g->evidence);
    if (used && used + 2 < sizeof(g->evidence)) {
        memcpy(g->evidence + used, "; ", 3);
        used += 2;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(g->evidence + used, sizeof(g->evidence) - used, fmt, ap);
    va_end(ap);
}

static void say_counter(struct pt_path_stage *g, const char *name, int64_t v)
{
    if (v > 0)
        say(g, "%s +%" PRId64, name, v);
}

/* An interface's packet counter beside ours: a bound, not an equation. */
static void say_interface(struct pt_path_stage *g, const char *dev, const char *what, int64_t count,
                          unsigned gso, bool one_net)
{
    if (!dev || count < 0) {
        say(g, "the interface's counters are not known");
        return;
    }
    say(g, "%s %s +%" PRId64, dev, what, count);
    if (gso > 1)
        say(g, "the interface counts super-packets of up to %u datagrams", gso);
    else if (count > g->packets)
        say(g, "%" PRId64 " of them other traffic or fragments", count - g->packets);
    else if (count < g->packets)
        say(g, "%" PRId64 " fewer than passed: counted elsewhere or while the counter was read",
            g->packets - count);
    if (one_net && strcmp(dev, "lo") == 0)
        say(g, "lo counts a packet as sent and received at once");
}

static void explain_sender(struct pt_path *p, const struct pt_path_sender *s, bool one_net)
{
    struct pt_path_stage *kernel = &p->stage[PT_PATH_KERNEL_SENT];
    struct pt_path_stage *nic = &p->stage[PT_PATH_NIC_SENT];
    const char *door = s->via ? s->via : "send(2)";
    const struct pt_netdev *dev = find_dev(s->net, s->dev);
    if (kernel->lost_here)
        say(kernel, "%s refused %" PRId64, door, kernel->lost_here);
    else
        say(kernel, "%s took every datagram", door);
    if (!s->via)
        say_counter(kernel, "Udp.SndbufErrors", BOTH(s->net, SNDBUF_ERRORS));

    say_interface(nic, s->dev, "tx_packets", dev ? dev->tx_packets : -1, s->gso, one_net);
    if (s->qdisc_drops >= 0)
        say(nic, "its queueing discipline dropped %" PRId64 "%s", s->qdisc_drops,
            s->gso > 1 && s->qdisc_drops ? " super-packets" : "");
    say_counter(nic, "tx_dropped", dev_counter(dev, dev ? dev->tx_dropped : 0));
    say_counter(nic, "tx_errors", dev_counter(dev, dev ? dev->tx_errors : 0));
    say_counter(nic, "Ip.FragCreates", BOTH_IP(s->net, FRAG_CREATES));
}

static void say_stack(struct pt_path_stage *g, const struct pt_netstat *net)
{
    say_counter(g, "Udp.NoPorts", BOTH(net, NO_PORTS));
    say_counter(g, "Udp.InCsumErrors", BOTH(net, IN_CSUM_ERRORS));
    say_counter(g, "Udp.MemErrors", BOTH(net, MEM_ERRORS));
    say_counter(g, "Ip.ReasmFails", BOTH_IP(net, REASM_FAILS));
    say_counter(g, "Ip.InDiscards", BOTH_IP(net, IN_DISCARDS));
}

static void explain_receiver(struct pt_path *p, const struct pt_path_sender *s,
                             const struct pt_path_receiver *r, int64_t unexplained, bool one_net)
{
    struct pt_path_stage *nic = &p->stage[PT_PATH_NIC_RECEIVED];
    struct pt_path_stage *kernel = &p->stage[PT_PATH_KERNEL_DELIVERED];
    const struct pt_netdev *dev = find_dev(r->net, r->dev);
    say_interface(nic, r->dev, "rx_packets", dev ? dev->rx_packets : -1, s->gso, one_net);
    say_counter(nic, "rx_errors", dev_counter(dev, dev ? dev->rx_errors : 0));
    say_counter(nic, "rx_fifo", dev_counter(dev, dev ? dev->rx_fifo : 0));
    if (unexplained)
        say(nic, "%" PRId64 " that no counter of either host explains", unexplained);

    const char *unit = r->gro && s->gso > 1 ? " super-packets" : "";
    if (r->socket_drops >= 0)
        say(kernel, "receive buffers full: %" PRId64 "%s", r->socket_drops, unit);
    if (r->via)
        say(kernel, "%s takes the frames before IP and UDP", r->via);
    else
        say_counter(kernel, "Udp.RcvbufErrors", BOTH(r->net, RCVBUF_ERRORS));
    say_counter(kernel, "softnet dropped (whole host)",
                r->net ? known(r->net->softnet_all.dropped) : 0);
    say_counter(kernel, "rx_dropped", dev_counter(dev, dev ? dev->rx_dropped : 0));
    if (!r->via)
        say_stack(kernel, r->net);
    if (!kernel->evidence[0])
        say(kernel, "no counter that is known shows a drop");
}

/* ---- the waterfall */

static void set_stage(struct pt_path *p, enum pt_path_step step, int64_t lost)
{
    p->stage[step].packets = p->stage[step - 1].packets - lost;
    p->stage[step].lost_here = lost;
}

static void set_bytes(struct pt_path *p, const struct pt_path_sender *s,
                      const struct pt_path_receiver *r)
{
    double mean = s->accepted ? (double)s->accepted_bytes / (double)s->accepted : 0;
    for (int i = PT_PATH_NIC_SENT; i < PT_PATH_APP_RECEIVED; i++)
        p->stage[i].bytes = p->stage[i].packets == (int64_t)s->accepted
                                ? (int64_t)s->accepted_bytes
                                : llround(mean * (double)p->stage[i].packets);
    p->stage[PT_PATH_APP_SENT].bytes = (int64_t)s->attempted_bytes;
    p->stage[PT_PATH_KERNEL_SENT].bytes = (int64_t)s->accepted_bytes;
    p->stage[PT_PATH_APP_RECEIVED].bytes = (int64_t)r->received_bytes;
}

void pt_path_build(struct pt_path *p, const struct pt_path_sender *s,
                   const struct pt_path_receiver *r, bool one_net)
{
    struct causes c;
    memset(p, 0, sizeof(*p));
    find_causes(&c, s, r);
    int64_t sent = (int64_t)s->accepted;
    int64_t got = r->received > INT64_MAX ? INT64_MAX : (int64_t)r->received;
    int64_t missing = sent > got ? sent - got : 0;

    /* The surest witness first: each takes what those before it left. */
    int64_t unread = claim(&missing, known(r->unread));
    int64_t delivered = claim(&missing, c.socket);
    int64_t queue = claim(&missing, c.queue);
    queue += claim(&missing, c.tx_dropped);
    delivered += claim(&missing, c.backlog) + claim(&missing, c.stack);
    int64_t wire = claim(&missing, c.rx_errors), unexplained = missing;

    p->stage[PT_PATH_APP_SENT].packets = (int64_t)s->attempted;
    set_stage(p, PT_PATH_KERNEL_SENT, c.refused);
    set_stage(p, PT_PATH_NIC_SENT, queue);
    set_stage(p, PT_PATH_NIC_RECEIVED, wire + unexplained);
    set_stage(p, PT_PATH_KERNEL_DELIVERED, delivered);
    set_stage(p, PT_PATH_APP_RECEIVED, unread);
    p->stage[PT_PATH_APP_RECEIVED].packets = got;
    set_bytes(p, s, r);

    say(&p->stage[PT_PATH_APP_SENT], "counted by the sender%s",
        s->gso > 1 ? ", datagrams within its GSO sends" : "");
    explain_sender(p, s, one_net);
    explain_receiver(p, s, r, unexplained, one_net);
    struct pt_path_stage *last = &p->stage[PT_PATH_APP_RECEIVED];
    say(last, "counted by the receiver");
    if (r->unread > 0)
        say(last, "%" PRId64 " left unread in its sockets", r->unread);
    if (got > sent)
        say(last, "%" PRId64 " more than were sent meanwhile: they were under way when it began",
            got - sent);
}

json_t *pt_path_json(const struct pt_path *p)
{
    json_t *path = json_array();
    int rc = path ? 0 : -1;
    for (int i = 0; i < PT_PATH_STEPS && rc == 0; i++) {
        const struct pt_path_stage *g = &p->stage[i];
        rc = json_array_append_new(
            path,
            json_pack("{s:s, s:I, s:I, s:I, s:s}", "stage", pt_path_name((enum pt_path_step)i),
                      "packets", (json_int_t)g->packets, "bytes", (json_int_t)g->bytes, "lost_here",
                      (json_int_t)g->lost_here, "evidence", g->evidence));
    }
    if (rc == 0)
        return path;
    json_decref(path);
    return NULL;
}
