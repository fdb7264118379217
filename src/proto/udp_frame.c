/* udp_frame.c: see udp_frame.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "proto/udp_frame.h"

#include <errno.h>
#include <string.h>

enum {
    ETHER = 14,
    IP4 = 20,
    IP6 = 40,
    UDP = 8,
    TYPE_IP4 = 0x0800,
    TYPE_IP6 = 0x86dd,
    PROTOCOL_UDP = 17,
    DONT_FRAGMENT = 0x4000,
    FRAGMENT_BITS = 0x3fff, /* more fragments, and the offset */
    DEFAULT_TTL = 64,
};

static void put16(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

/* Sum of big-endian 16-bit words, an odd last byte padded with zero (RFC 1071). Of 65535 bytes at
 * most, so 32 bits do not overflow. */
static uint32_t sum_words(uint32_t sum, const uint8_t *p, size_t n)
{
    for (; n > 1; p += 2, n -= 2)
        sum += get16(p);
    if (n)
        sum += (uint32_t)p[0] << 8;
    return sum;
}

static uint16_t fold(uint32_t sum)
{
    sum = (sum >> 16) + (sum & 0xffff);
    sum += sum >> 16;
    return (uint16_t)sum;
}

/* A computed zero is sent as all ones: zero would mean "no checksum" (RFC 768). */
static uint16_t udp_checksum(uint32_t sum)
{
    uint16_t c = (uint16_t)~fold(sum);
    return c ? c : 0xffff;
}

/* Addresses, protocol and length are summed with the datagram (RFC 768, RFC 8200 section 8.1). */
static uint32_t sum_datagram(const uint8_t *addresses, size_t address_bytes, const uint8_t *udp,
                             size_t n)
{
    uint32_t sum = sum_words(PROTOCOL_UDP + (uint32_t)n, addresses, address_bytes);
    return sum_words(sum, udp, n);
}

static void put_ip4(uint8_t *ip, const struct pt_udp_frame_ends *ends, size_t udp_len)
{
    memset(ip, 0, IP4);
    ip[0] = 4 << 4 | IP4 / 4;
    ip[1] = ends->tos;
    put16(ip + 2, IP4 + udp_len);
    put16(ip + 6, DONT_FRAGMENT);
    ip[8] = ends->ttl ? ends->ttl : DEFAULT_TTL;
    ip[9] = PROTOCOL_UDP;
    memcpy(ip + 12, ends->source, 4);
    memcpy(ip + 16, ends->destination, 4);
    put16(ip + 10, (uint16_t)~fold(sum_words(0, ip, IP4)));
}

static void put_ip6(uint8_t *ip, const struct pt_udp_frame_ends *ends, size_t udp_len)
{
    memset(ip, 0, IP6);
    ip[0] = (uint8_t)(6 << 4 | ends->tos >> 4);
    ip[1] = (uint8_t)(ends->tos << 4);
    put16(ip + 4, udp_len);
    ip[6] = PROTOCOL_UDP;
    ip[7] = ends->ttl ? ends->ttl : DEFAULT_TTL;
    memcpy(ip + 8, ends->source, 16);
    memcpy(ip + 24, ends->destination, 16);
}

ssize_t pt_udp_frame_build(uint8_t *frame, size_t cap, const struct pt_udp_frame_ends *ends,
                           size_t payload_len)
{
    const size_t header = pt_udp_frame_header_len(ends->ipv6);
    const size_t most = ends->ipv6 ? 65535 - UDP : 65535 - UDP - IP4;
    if (payload_len > most || header + payload_len > cap)
        return -EMSGSIZE;
    memcpy(frame, ends->destination_mac, 6);
    memcpy(frame + 6, ends->source_mac, 6);
    put16(frame + 12, ends->ipv6 ? TYPE_IP6 : TYPE_IP4);

    const size_t udp_len = UDP + payload_len;
    uint8_t *udp = frame + header - UDP;
    put16(udp, ends->source_port);
    put16(udp + 2, ends->destination_port);
    put16(udp + 4, udp_len);
    put16(udp + 6, 0);
    uint32_t sum;
    if (ends->ipv6) {
        put_ip6(frame + ETHER, ends, udp_len);
        sum = sum_datagram(frame + ETHER + 8, 32, udp, udp_len);
    } else {
        put_ip4(frame + ETHER, ends, udp_len);
        sum = sum_datagram(frame + ETHER + 12, 8, udp, udp_len);
    }
    put16(udp + 6, udp_checksum(sum));
    return (ssize_t)(header + payload_len);
}

/* HC' = ~(~HC + ~m + m'), RFC 1624 equation 3. */
static void replace_words(uint8_t *checksum, uint8_t *at, const uint8_t *with, size_t n)
{
    uint32_t sum = (uint16_t)~get16(checksum);
    for (size_t i = 0; i < n; i += 2)
        sum += (uint32_t)(uint16_t)~get16(at + i) + get16(with + i);
    memcpy(at, with, n);
    put16(checksum, udp_checksum(sum));
}

void pt_udp_frame_patch(uint8_t *frame, size_t header_len, size_t offset, const void *bytes,
                        size_t n)
{
    replace_words(frame + header_len - 2, frame + header_len + offset, bytes, n);
}

void pt_udp_frame_set_ports(uint8_t *frame, size_t header_len, uint16_t source,
                            uint16_t destination)
{
    uint8_t ports[4];
    put16(ports, source);
    put16(ports + 2, destination);
    replace_words(frame + header_len - 2, frame + header_len - UDP, ports, sizeof(ports));
}

/* Where the UDP header begins and how far the IP packet reaches, or a negative errno. */
static int find_udp4(const uint8_t *ip, size_t len, size_t *header, size_t *end)
{
    if (len < IP4)
        return -EBADMSG;
    *header = (size_t)(ip[0] & 15) * 4;
    *end = get16(ip + 2);
    if (ip[0] >> 4 != 4 || *header < IP4 || *end < *header || *end > len)
        return -EBADMSG;
    if (ip[9] != PROTOCOL_UDP || (get16(ip + 6) & FRAGMENT_BITS))
        return -EPROTONOSUPPORT;
    return 0;
}

static int find_udp6(const uint8_t *ip, size_t len, size_t *header, size_t *end)
{
    if (len < IP6)
        return -EBADMSG;
    *header = IP6;
    *end = (size_t)IP6 + get16(ip + 4);
    if (ip[0] >> 4 != 6 || *end > len)
        return -EBADMSG;
    return ip[6] == PROTOCOL_UDP ? 0 : -EPROTONOSUPPORT;
}

static int find_udp(const uint8_t *frame, size_t len, size_t *at, size_t *udp_len)
{
    if (len < ETHER)
        return -EBADMSG;
    uint16_t type = get16(frame + 12);
    if (type != TYPE_IP4 && type != TYPE_IP6)
        return -EPROTONOSUPPORT;
    size_t header, end;
    int r = type == TYPE_IP6 ? find_udp6(frame + ETHER, len - ETHER, &header, &end)
                             : find_udp4(frame + ETHER, len - ETHER, &header, &end);
    if (r < 0)
        return r;
    if (end < header + UDP)
        return -EBADMSG;
    *at = ETHER + header;
    *udp_len = get16(frame + *at + 4);
    if (*udp_len < UDP || *udp_len > end - header)
        return -EBADMSG;
    return 0;
}

int pt_udp_frame_parse(const uint8_t *frame, size_t len, struct pt_udp_frame_view *out)
{
    size_t at, udp_len;
    int r = find_udp(frame, len, &at, &udp_len);
    if (r < 0)
        return r;
    const uint8_t *ip = frame + ETHER, *udp = frame + at;
    struct pt_udp_frame_ends *ends = &out->ends;
    memset(out, 0, sizeof(*out));
    ends->ipv6 = ip[0] >> 4 == 6;
    memcpy(ends->destination_mac, frame, 6);
    memcpy(ends->source_mac, frame + 6, 6);
    if (ends->ipv6) {
        memcpy(ends->source, ip + 8, 16);
        memcpy(ends->destination, ip + 24, 16);
        ends->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
        ends->ttl = ip[7];
    } else {
        memcpy(ends->source, ip + 12, 4);
        memcpy(ends->destination, ip + 16, 4);
        ends->tos = ip[1];
        ends->ttl = ip[8];
    }
    ends->source_port = get16(udp);
    ends->destination_port = get16(udp + 2);
    out->payload = udp + UDP;
    out->payload_len = udp_len - UDP;
    return 0;
}

bool pt_udp_frame_checksum_ok(const uint8_t *frame, size_t len)
{
    size_t at, udp_len;
    if (find_udp(frame, len, &at, &udp_len) < 0)
        return false;
    const uint8_t *ip = frame + ETHER, *udp = frame + at;
    if (ip[0] >> 4 == 6)
        return get16(udp + 6) != 0 && fold(sum_datagram(ip + 8, 32, udp, udp_len)) == 0xffff;
    if (fold(sum_words(0, ip, at - ETHER)) != 0xffff)
        return false;
    return get16(udp + 6) == 0 || fold(sum_datagram(ip + 12, 8, udp, udp_len)) == 0xffff;
}
