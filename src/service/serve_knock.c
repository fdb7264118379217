/* serve_knock.c: opens UDP flows: hello, challenge, proof, and a socket of the flow's own.
 *
 * Nothing is answered without a valid token, an answer is as long as the question, and nothing is
 * kept until the address has proved itself: the challenge is a keyed digest of what it is for. The
 * flow's socket is bound to the address the client wrote to and connected to the client, so the
 * kernel gives it that client's datagrams and this process never sees them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"
#include "service/serve_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT_ONCE 64 /* datagrams per turn of the loop */
/* A challenge holds for one to two of these. */
#define CHALLENGE_TIME (8 * PT_S)

union pktinfo {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static void challenge(const struct pt_serve *s, const struct pt_addr *peer,
                      const struct pt_preamble *p, int64_t period, uint8_t nonce[PT_UDP_NONCE_SIZE])
{
    struct pt_hmac m;
    uint8_t digest[PT_SHA256_SIZE];
    char text[PT_ADDR_TEXT];
    pt_addr_print(peer, text);
    pt_hmac_init(&m, s->knock_key, sizeof(s->knock_key));
    pt_hmac_add(&m, &period, sizeof(period));
    pt_hmac_add(&m, p->token, sizeof(p->token));
    pt_hmac_add(&m, &p->flow, sizeof(p->flow));
    pt_hmac_add(&m, text, strlen(text));
    pt_hmac_end(&m, digest);
    memcpy(nonce, digest, PT_UDP_NONCE_SIZE);
}

static bool proved(const struct pt_serve *s, const struct pt_addr *peer,
                   const struct pt_preamble *p, const uint8_t nonce[PT_UDP_NONCE_SIZE])
{
    int64_t period = pt_clock_now() / CHALLENGE_TIME;
    uint8_t want[PT_UDP_NONCE_SIZE];
    for (int64_t back = 0; back < 2; back++) {
        challenge(s, peer, p, period - back, want);
        if (pt_equal_secret(want, nonce, sizeof(want)))
            return true;
    }
    return false;
}

/* ---- the addresses of a datagram */

/* The address that the client wrote to: the door's, or what the kernel says where the door is a
 * wildcard. */
static void local_address(const struct pt_serve_door *door, struct msghdr *m, struct pt_addr *local)
{
    *local = door->at;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo i;
            memcpy(&i, CMSG_DATA(h), sizeof(i));
            local->v4.sin_addr = i.ipi_spec_dst;
        } else if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo i;
            memcpy(&i, CMSG_DATA(h), sizeof(i));
            local->v6.sin6_addr = i.ipi6_addr;
            bool zone = IN6_IS_ADDR_LINKLOCAL(&i.ipi6_addr);
            local->v6.sin6_scope_id = zone ? (uint32_t)i.ipi6_ifindex : 0;
        }
    }
}

/* Answers from the address that was written to: the client's socket is connected to it. */
static void answer(const struct pt_serve_door *door, const struct pt_addr *local,
                   const struct pt_addr *peer, const struct pt_preamble *p,
                   const uint8_t nonce[PT_UDP_NONCE_SIZE])
{
    uint8_t bytes[PT_KNOCK_SIZE];
    union pktinfo control = {0};
    struct pt_addr to = *peer;
    struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr m = {.msg_name = &to.sa,
                       .msg_namelen = to.len,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes};
    bool v6 = pt_addr_family(local) == AF_INET6;
    size_t n = v6 ? sizeof(struct in6_pktinfo) : sizeof(struct in_pktinfo);
    m.msg_controllen = CMSG_SPACE(n);
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_len = CMSG_LEN(n);
    if (v6) {
        struct in6_pktinfo i = {.ipi6_addr = local->v6.sin6_addr,
                                .ipi6_ifindex = local->v6.sin6_scope_id};
        h->cmsg_level = IPPROTO_IPV6;
        h->cmsg_type = IPV6_PKTINFO;
        memcpy(CMSG_DATA(h), &i, n);
    } else {
        struct in_pktinfo i = {.ipi_spec_dst = local->v4.sin_addr};
        h->cmsg_level = IPPROTO_IP;
        h->cmsg_type = IP_PKTINFO;
        memcpy(CMSG_DATA(h), &i, n);
    }
    pt_knock_write(bytes, p, nonce);
    (void)sendmsg(door->udp, &m,
                  MSG_DONTWAIT | MSG_NOSIGNAL); /* a lost answer is asked for again */
}

/* ---- the flow's socket */

/* Between bind and connect it is open to everybody: what came then is dropped. The client has not
 * been told yet that it may send, and others repeat themselves. */
static void drain(int fd)
{
    uint8_t scrap[64];
    for (int i = 0; i < 4096; i++)
        if (recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT | MSG_TRUNC) < 0 && errno == EAGAIN)
            return;
}

static int open_flow(const struct pt_addr *local, const struct pt_addr *peer)
{
    static const int on = 1;
    int family = pt_addr_family(local);
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 ||
        (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0) ||
        bind(fd, &local->sa, local->len) != 0 || connect(fd, &peer->sa, peer->len) != 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    drain(fd);
    return fd;
}

/* A flow id gets one socket: a proof that is repeated finds its bit set, and the flow's own socket
 * answers the repetitions that follow. */
static uint8_t *id_byte(struct pt_serve_slot *slot, uint32_t flow)
{
    uint32_t ids = slot->serve->spec.caps.max_connections;
    if (ids == 0 || ids > PT_SERVE_FLOW_IDS_MAX)
        ids = PT_SERVE_FLOW_IDS_MAX;
    if (flow >= ids)
        return NULL;
    if (!slot->datagram_ids)
        slot->datagram_ids = calloc(PT_SERVE_FLOW_IDS_MAX / 8, 1);
    return slot->datagram_ids ? &slot->datagram_ids[flow / 8] : NULL;
}

void pt_serve_knock_forget(struct pt_serve_slot *slot)
{
    if (slot->datagram_ids)
        memset(slot->datagram_ids, 0, PT_SERVE_FLOW_IDS_MAX / 8);
}

static void make_flow(struct pt_serve_slot *slot, uint32_t flow, const struct pt_addr *local,
                      const struct pt_addr *peer)
{
    struct pt_serve *s = slot->serve;
    char text[PT_ADDR_TEXT];
    uint8_t *byte = id_byte(slot, flow), bit = (uint8_t)(1u << (flow & 7));
    if (!byte || (*byte & bit))
        return;
    int fd = open_flow(local, peer), rc = fd < 0 ? fd : 0;
    if (rc == 0) {
        rc = pt_serve_slot_pass(slot, PT_CHANNEL_DATAGRAM, flow, fd);
        close(fd);
    }
    if (rc == 0)
        *byte |= bit;
    else /* the client repeats its proof: another try */
        pt_serve_log(s, "refused peer=%s session=%llu flow=%u udp error=\"%s\"",
                     pt_addr_print(peer, text), (unsigned long long)slot->id, flow,
                     pt_strerror(rc));
}

static void handle(struct pt_serve_door *door, const uint8_t *bytes, size_t n,
                   const struct pt_addr *local, const struct pt_addr *peer)
{
    struct pt_serve *s = door->serve;
    struct pt_preamble p;
    uint8_t nonce[PT_UDP_NONCE_SIZE];
    if (pt_knock_read(&p, nonce, bytes, n) != 0 || !pt_serve_allows(s, peer) ||
        pt_addr_port(peer) == 0)
        return;
    struct pt_serve_slot *slot = pt_serve_slot_find(s, p.token);
    if (!slot)
        return;
    if (p.kind == PT_PREAMBLE_HELLO) {
        challenge(s, peer, &p, pt_clock_now() / CHALLENGE_TIME, nonce);
        p.kind = PT_PREAMBLE_CHALLENGE;
        answer(door, local, peer, &p, nonce);
    } else if (p.kind == PT_PREAMBLE_PROOF && proved(s, peer, &p, nonce)) {
        make_flow(slot, p.flow, local, peer);
    }
}

void pt_serve_knock(struct pt_serve_door *door)
{
    for (int i = 0; i < AT_ONCE; i++) {
        uint8_t bytes[PT_KNOCK_SIZE + 1];
        union pktinfo control;
        struct sockaddr_storage from;
        struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
        struct msghdr m = {.msg_name = &from,
                           .msg_namelen = sizeof(from),
                           .msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof(control.bytes)};
        ssize_t n = recvmsg(door->udp, &m, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n != PT_KNOCK_SIZE)
            continue; /* an error that ICMP brought, or no knock */
        struct pt_addr peer, local;
        pt_addr_from(&peer, (const struct sockaddr *)&from, m.msg_namelen);
        local_address(door, &m, &local);
        handle(door, bytes, (size_t)n, &local, &peer);
    }
}
