/* rawpath_peer.c: one end of a raw packet path, for test_rawpath.py.
 *
 *     rawpath_peer xdp-send  IF ADDRESS PORT COUNT SIZE [QUEUE]          numbered datagrams through
 * AF_XDP rawpath_peer packet-send IF ADDRESS PORT COUNT SIZE                … through a packet
 * socket rawpath_peer xdp-recv  IF PORT COUNT [native|generic|auto [QUEUE]] reads them from an
 * AF_XDP socket rawpath_peer udp-recv  ADDRESS PORT COUNT             … from an ordinary UDP socket
 *     rawpath_peer xdp-count IF PORT COUNT                  counts and drops them in XDP
 *     rawpath_peer hold      IF PORT                        attaches and waits to be killed
 *     rawpath_peer route     ADDRESS                        prints what pt_route found
 *     rawpath_peer link      IF                             prints what pt_link found
 *
 * The last line of a sender or receiver is one JSON object. Status 77: not possible here, and why.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"
#include "os/link.h"
#include "os/packet_tx.h"
#include "os/route.h"
#include "os/xdp.h"
#include "os/xsk.h"
#include "proto/udp_frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 64, SOURCE_PORT = 40000, PATIENCE_S = 5, IDLE_MS = 700 };

static struct pt_err err;

static int give_up(int code)
{
    fprintf(stderr, "%s\n", err.code ? err.text : pt_strerror(code));
    return code == -EPERM || code == -EOPNOTSUPP || code == -ENOSYS || code == -EAFNOSUPPORT ? 77
                                                                                             : 1;
}

struct tally {
    uint64_t received, next, disordered, damaged;
    uint64_t want;
    pt_ns first, last;
};

static void tally_add(struct tally *t, const uint8_t *payload, size_t n, bool intact)
{
    uint64_t seq;
    if (n < 8 || !intact) {
        t->damaged++;
        return;
    }
    memcpy(&seq, payload, 8);
    for (size_t i = 8; i < n; i++)
        if (payload[i] != (uint8_t)i) {
            t->damaged++;
            return;
        }
    if (seq != t->next)
        t->disordered++;
    t->next = seq + 1;
    t->received++;
    t->last = pt_clock_now();
    if (!t->first)
        t->first = t->last;
}

static bool tally_open(const struct tally *t, pt_ns start)
{
    pt_ns now = pt_clock_now();
    return t->received + t->damaged < t->want &&
           now < (t->last ? t->last + IDLE_MS * PT_MS : start + PATIENCE_S * PT_S);
}

static int tally_print(const struct tally *t, const char *extra)
{
    printf("{\"received\": %llu, \"disordered\": %llu, \"damaged\": %llu, \"seconds\": %.6f%s}\n",
           (unsigned long long)t->received, (unsigned long long)t->disordered,
           (unsigned long long)t->damaged, (double)(t->last - t->first) / 1e9, extra);
    return 0;
}

struct sender {
    unsigned ifindex;
    struct pt_udp_frame_ends ends;
    size_t header, size;
    uint64_t count, next;
};

static int look_up(const char *text, struct sockaddr_storage *out)
{
    struct addrinfo *found, hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM};
    int r = getaddrinfo(text, NULL, &hints, &found);
    if (r != 0)
        return pt_fail(&err, -EINVAL, "%s: %s", text, gai_strerror(r));
    memcpy(out, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

static int prepare(struct sender *s, char **argv)
{
    struct sockaddr_storage to;
    struct pt_route route;
    int r = look_up(argv[3], &to);
    if (r == 0)
        r = pt_route_find(&route, (const struct sockaddr *)&to, NULL, if_nametoindex(argv[2]),
                          &err);
    if (r == 0)
        r = pt_route_resolve(&route, 3 * PT_S, &err);
    if (r < 0)
        return r;
    *s = (struct sender){.ifindex = route.ifindex,
                         .count = strtoull(argv[5], NULL, 10),
                         .size = strtoul(argv[6], NULL, 10)};
    s->ends.ipv6 = route.family == AF_INET6;
    memcpy(s->ends.source_mac, route.source_mac, 6);
    memcpy(s->ends.destination_mac, route.next_hop_mac, 6);
    memcpy(s->ends.source, route.source, 16);
    memcpy(s->ends.destination, route.destination, 16);
    s->ends.source_port = SOURCE_PORT;
    s->ends.destination_port = (uint16_t)atoi(argv[4]);
    s->header = pt_udp_frame_header_len(s->ends.ipv6);
    return s->size >= 8 && s->size <= 1472 ? 0 : -EINVAL;
}

static int build(const struct sender *s, uint8_t *frame)
{
    for (size_t i = 0; i < s->size; i++)
        frame[s->header + i] = i < 8 ? 0 : (uint8_t)i;
    ssize_t n = pt_udp_frame_build(frame, 2048, &s->ends, s->size);
    return n < 0 ? (int)n : 0;
}

static unsigned burst(const struct sender *s)
{
    return s->count - s->next < BATCH ? (unsigned)(s->count - s->next) : BATCH;
}

/* Waits after each burst until the kernel is done with it, so that nothing can overflow. */
static int xsk_drain(struct pt_xsk *x)
{
    const pt_ns until = pt_clock_now() + PATIENCE_S * PT_S;
    while (pt_xsk_tx_pending(x)) {
        int r = pt_xsk_tx_kick(x);
        if (r < 0)
            return r;
        if (pt_clock_now() > until)
            return -ETIMEDOUT;
    }
    return 0;
}

static int xsk_send_all(struct pt_xsk *x, struct sender *s)
{
    uint8_t *frames[BATCH];
    int r = 0;
    for (unsigned i = 0; i < x->tx_frames && r == 0; i++)
        r = build(s, x->area + (size_t)i * x->frame_bytes);
    while (r == 0 && s->next < s->count) {
        unsigned n = pt_xsk_tx_reserve(x, burst(s), frames);
        for (unsigned i = 0; i < n; i++, s->next++)
            pt_udp_frame_patch(frames[i], s->header, 0, &s->next, 8);
        pt_xsk_tx_submit(x, n, (uint32_t)(s->header + s->size));
        r = xsk_drain(x);
    }
    return r;
}

static int xdp_send(int argc, char **argv)
{
    struct sender s;
    struct pt_xsk x;
    struct pt_xsk_stats stats = {0};
    int r = prepare(&s, argv);
    const struct pt_xsk_spec spec = {
        .ifindex = s.ifindex, .queue = argc > 7 ? (unsigned)atoi(argv[7]) : 0, .tx_frames = 256};
    if (r == 0)
        r = pt_xsk_open(&x, &spec, &err);
    if (r < 0)
        return give_up(r);
    r = xsk_send_all(&x, &s);
    if (r == 0)
        r = pt_xsk_stats(&x, &stats);
    pt_xsk_close(&x);
    if (r < 0)
        return give_up(r);
    printf("{\"sent\": %llu, \"dropped\": %llu, \"invalid\": %llu}\n", (unsigned long long)s.next,
           (unsigned long long)stats.tx_dropped, (unsigned long long)stats.tx_invalid);
    return 0;
}

static int packet_send(char **argv)
{
    struct sender s;
    struct pt_packet_tx *p = NULL;
    int r = prepare(&s, argv);
    const struct pt_packet_tx_spec spec = {
        .ifindex = s.ifindex, .frames = BATCH, .frame_bytes = 2048, .qdisc_bypass = true};
    if (r == 0)
        r = pt_packet_tx_open(&p, &spec, &err);
    for (unsigned i = 0; r == 0 && i < BATCH; i++)
        r = build(&s, pt_packet_tx_frame(p, i));
    while (r == 0 && s.next < s.count) {
        unsigned n = burst(&s), sent = 0;
        for (unsigned i = 0; i < n; i++, s.next++)
            pt_udp_frame_patch(pt_packet_tx_frame(p, i), s.header, 0, &s.next, 8);
        while (r == 0 && sent < n) {
            int k = pt_packet_tx_send(p, sent, n - sent, (uint32_t)(s.header + s.size));
            if (k < 0)
                r = k;
            else
                sent += (unsigned)k;
        }
    }
    pt_packet_tx_close(p);
    if (r < 0)
        return give_up(r);
    printf("{\"sent\": %llu}\n", (unsigned long long)s.next);
    return 0;
}

static int attach(struct pt_xdp *x, char **argv, enum pt_xdp_verdict verdict, const char *mode,
                  unsigned queues)
{
    const uint16_t port = (uint16_t)atoi(argv[3]);
    const struct pt_xdp_spec spec = {.ifindex = if_nametoindex(argv[2]),
                                     .port_first = port,
                                     .port_last = port,
                                     .verdict = verdict,
                                     .queues = queues,
                                     .mode = strcmp(mode, "native") == 0    ? PT_XDP_NATIVE
                                             : strcmp(mode, "generic") == 0 ? PT_XDP_GENERIC
                                                                            : PT_XDP_AUTO};
    return pt_xdp_attach(x, &spec, &err);
}

static void ready(const struct pt_xdp *x, const char *more)
{
    printf("ready %s%s\n", x->native ? "native" : "generic", more);
    fflush(stdout);
}

static int xdp_recv(int argc, char **argv)
{
    struct pt_xdp xdp;
    struct pt_xsk x;
    struct pt_xsk_stats stats;
    struct tally t = {.want = strtoull(argv[4], NULL, 10)};
    const unsigned queue = argc > 6 ? (unsigned)atoi(argv[6]) : 0;
    const struct pt_xsk_spec spec = {
        .ifindex = if_nametoindex(argv[2]), .queue = queue, .rx_frames = 4096};
    int r = attach(&xdp, argv, PT_XDP_REDIRECT, argc > 5 ? argv[5] : "auto", queue + 1);
    if (r == 0)
        r = pt_xsk_open(&x, &spec, &err);
    if (r == 0)
        r = pt_xdp_join(&xdp, queue, x.fd, &err);
    if (r < 0)
        return give_up(r);
    ready(&xdp, x.zero_copy ? " zero-copy" : " copy");

    const pt_ns start = pt_clock_now();
    while (tally_open(&t, start)) {
        struct pt_xsk_packet packets[BATCH];
        r = pt_xsk_rx_wait(&x, 100 * PT_MS);
        if (r < 0)
            return give_up(r);
        unsigned n = pt_xsk_rx_peek(&x, packets, BATCH);
        for (unsigned i = 0; i < n; i++) {
            struct pt_udp_frame_view view = {0};
            bool intact = pt_udp_frame_parse(packets[i].bytes, packets[i].len, &view) == 0 &&
                          pt_udp_frame_checksum_ok(packets[i].bytes, packets[i].len);
            tally_add(&t, view.payload, view.payload_len, intact);
        }
        pt_xsk_rx_release(&x, n);
    }
    r = pt_xsk_stats(&x, &stats);
    pt_xsk_close(&x);
    pt_xdp_detach(&xdp);
    if (r < 0)
        return give_up(r);
    char extra[160];
    snprintf(extra, sizeof(extra),
             ", \"rx_dropped\": %llu, \"ring_full\": %llu, \"fill_empty\": %llu",
             (unsigned long long)stats.rx_dropped, (unsigned long long)stats.rx_ring_full,
             (unsigned long long)stats.rx_fill_ring_empty);
    return tally_print(&t, extra);
}

static int udp_recv(char **argv)
{
    struct sockaddr_storage at;
    struct tally t = {.want = strtoull(argv[4], NULL, 10)};
    const int room = 8 << 20;
    const struct timeval step = {.tv_usec = 100000};
    int r = look_up(argv[2], &at);
    if (r < 0)
        return give_up(r);
    ((struct sockaddr_in *)&at)->sin_port =
        htons((uint16_t)atoi(argv[3])); /* the same place in v6 */
    int fd = socket(at.ss_family, SOCK_DGRAM, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof(step)) < 0 ||
        bind(fd, (const struct sockaddr *)&at,
             at.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) <
            0)
        return give_up(-errno);
    puts("ready");
    fflush(stdout);
    const pt_ns start = pt_clock_now();
    while (tally_open(&t, start)) {
        uint8_t payload[2048];
        ssize_t n = recv(fd, payload, sizeof(payload), 0);
        if (n >= 0)
            tally_add(&t, payload, (size_t)n, true);
        else if (errno != EAGAIN && errno != EINTR)
            return give_up(-errno);
    }
    close(fd);
    return tally_print(&t, "");
}

static int xdp_count(char **argv)
{
    struct pt_xdp xdp;
    uint64_t packets = 0, bytes = 0;
    const uint64_t want = strtoull(argv[4], NULL, 10);
    int r = attach(&xdp, argv, PT_XDP_COUNT, "auto", 1);
    if (r < 0)
        return give_up(r);
    ready(&xdp, "");
    const pt_ns until = pt_clock_now() + PATIENCE_S * PT_S;
    while (r == 0 && packets < want && pt_clock_now() < until) {
        pt_clock_sleep_until(pt_clock_now() + 10 * PT_MS);
        r = pt_xdp_counted(&xdp, &packets, &bytes);
    }
    pt_xdp_detach(&xdp);
    if (r < 0)
        return give_up(r);
    printf("{\"packets\": %llu, \"bytes\": %llu}\n", (unsigned long long)packets,
           (unsigned long long)bytes);
    return 0;
}

static int hold(char **argv)
{
    struct pt_xdp xdp;
    int r = attach(&xdp, argv, PT_XDP_REDIRECT, "native", 1);
    if (r < 0)
        return give_up(r);
    ready(&xdp, "");
    pause();
    return 0;
}

static void print_mac(const char *name, const uint8_t m[6])
{
    printf(", \"%s\": \"%02x:%02x:%02x:%02x:%02x:%02x\"", name, m[0], m[1], m[2], m[3], m[4], m[5]);
}

static int show_route(char **argv)
{
    struct sockaddr_storage to;
    struct pt_route route;
    char source[INET6_ADDRSTRLEN], hop[INET6_ADDRSTRLEN];
    int r = look_up(argv[2], &to);
    if (r == 0)
        r = pt_route_find(&route, (const struct sockaddr *)&to, NULL, 0, &err);
    if (r == 0 && !route.local)
        r = pt_route_resolve(&route, PT_S / 2, &err);
    if (r < 0)
        return give_up(r);
    printf("{\"source\": \"%s\", \"next_hop\": \"%s\", \"gatewayed\": %s, \"local\": %s",
           inet_ntop(route.family, route.source, source, sizeof(source)),
           inet_ntop(route.next_hop_family, route.next_hop, hop, sizeof(hop)),
           route.gatewayed ? "true" : "false", route.local ? "true" : "false");
    print_mac("source_mac", route.source_mac);
    print_mac("next_hop_mac", route.next_hop_mac);
    printf(", \"ifindex\": %u}\n", route.ifindex);
    return 0;
}

static int show_link(char **argv)
{
    struct pt_link l;
    struct pt_qdisc_stats q;
    int r = pt_link_read(&l, if_nametoindex(argv[2]), &err);
    if (r == 0)
        r = pt_qdisc_read(&q, l.ifindex, &err);
    if (r < 0)
        return give_up(r);
    printf(
        "{\"name\": \"%s\", \"kind\": \"%s\", \"driver\": \"%s\", \"mtu\": %u, \"up\": %s, "
        "\"xdp\": %s, \"rx_queues\": %u, \"tx_queues\": %u, \"speed\": %u, \"rx_packets\": %llu, "
        "\"tx_packets\": %llu",
        l.name, l.kind, l.driver, l.mtu, l.up ? "true" : "false", l.xdp ? "true" : "false",
        l.rx_queues, l.tx_queues, l.speed_mbit, (unsigned long long)l.rx_packets,
        (unsigned long long)l.tx_packets);
    print_mac("mac", l.mac);
    printf(", \"qdisc\": \"%s\", \"qdisc_packets\": %llu, \"qdisc_bytes\": %llu, "
           "\"qdisc_drops\": %llu, \"overlimits\": %llu, \"requeues\": %llu}\n",
           q.kind, (unsigned long long)q.packets, (unsigned long long)q.bytes,
           (unsigned long long)q.drops, (unsigned long long)q.overlimits,
           (unsigned long long)q.requeues);
    return 0;
}

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "";
    if (argc >= 7 && strcmp(role, "xdp-send") == 0)
        return xdp_send(argc, argv);
    if (argc == 7 && strcmp(role, "packet-send") == 0)
        return packet_send(argv);
    if (argc >= 5 && strcmp(role, "xdp-recv") == 0)
        return xdp_recv(argc, argv);
    if (argc == 5 && strcmp(role, "udp-recv") == 0)
        return udp_recv(argv);
    if (argc == 5 && strcmp(role, "xdp-count") == 0)
        return xdp_count(argv);
    if (argc == 4 && strcmp(role, "hold") == 0)
        return hold(argv);
    if (argc == 3 && strcmp(role, "route") == 0)
        return show_route(argv);
    if (argc == 3 && strcmp(role, "link") == 0)
        return show_link(argv);
    fprintf(stderr, "see the head of rawpath_peer.c\n");
    return 2;
}
