/* serve_knock.c: opens UDP flows: hello, challenge, proof, and a socket of the flow's own.
 *
 * Nothing is answered without a valid token, an answer is as long as the question, and nothing is
 * kept until the address has proved itself: the challenge is a keyed digest of what it is for. The
 * flow's socket is bound to the address the client wrote to and connected to the client, so the
 * kernel gives it that client's datagrams and this process never sees them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/udp_door.h"
#include "os/clock.h"
#include "service/serve_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE 64 /* datagrams per turn of the loop */
/* A challenge holds for one to two of these. */
#define CHALLENGE_TIME (8 * PT_S)

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

static void answer(const struct pt_serve_door *door, const struct pt_addr *local,
                   const struct pt_addr *peer, const struct pt_preamble *p,
                   const uint8_t nonce[PT_UDP_NONCE_SIZE])
{
    uint8_t bytes[PT_KNOCK_SIZE];
    pt_knock_write(bytes, p, nonce);
    pt_udp_door_say(door->udp, local, peer, bytes,
                    sizeof(bytes)); /* a lost answer is asked for again */
}

/* ---- the flow's socket */

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
    int fd = pt_udp_door_flow(local, peer), rc = fd < 0 ? fd : 0;
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
        struct pt_addr peer, local;
        ssize_t n = pt_udp_door_hear(door->udp, &door->at, bytes, sizeof(bytes), &peer, &local);
        if (n == -EAGAIN)
            return;
        if (n != PT_KNOCK_SIZE)
            continue; /* an error that ICMP brought, or no knock */
        handle(door, bytes, (size_t)n, &local, &peer);
    }
}
