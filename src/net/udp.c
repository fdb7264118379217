/* udp.c: see udp.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/udp.h"

#include "net/addr.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define UDP_HEADER  8
#define IPV4_HEADER 20
#define IPV6_HEADER 40
/* The length fields are 16 bits wide: IPv4's counts its own header, IPv6's does not. */
#define IPV4_PAYLOAD_MAX (65535 - IPV4_HEADER - UDP_HEADER)
#define IPV6_PAYLOAD_MAX (65535 - UDP_HEADER)

static int set_int(int fd, int level, int name, int v)
{
    return setsockopt(fd, level, name, &v, sizeof(v)) == 0 ? 0 : -errno;
}

static int get_int(int fd, int level, int name)
{
    int v = 0;
    socklen_t len = sizeof(v);
    return getsockopt(fd, level, name, &v, &len) == 0 ? v : -errno;
}

/* ---- segmentation offload */

int pt_udp_gro(int fd, bool on)
{
    return set_int(fd, SOL_UDP, UDP_GRO, on);
}

int pt_udp_segment(int fd, unsigned seg)
{
    return seg > UINT16_MAX ? -EINVAL : set_int(fd, SOL_UDP, UDP_SEGMENT, (int)seg);
}

ssize_t pt_udp_send_gso(int fd, const void *buf, size_t len, unsigned seg, int flags)
{
    if (seg > UINT16_MAX)
        return -EINVAL;
    uint16_t size = (uint16_t)seg;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(size))];
    } c = {0};
    struct iovec iov = {.iov_len = len};
    memcpy(&iov.iov_base, &buf, sizeof(buf));
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = c.bytes,
                       .msg_controllen = sizeof(c.bytes)};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_UDP;
    h->cmsg_type = UDP_SEGMENT;
    h->cmsg_len = CMSG_LEN(sizeof(size));
    memcpy(CMSG_DATA(h), &size, sizeof(size));
    ssize_t n = sendmsg(fd, &m, flags);
    return n < 0 ? -errno : n;
}

ssize_t pt_udp_recv_gro(int fd, void *buf, size_t cap, unsigned *seg, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[256]; /* other enabled options send theirs too */
    } c;
    struct iovec iov = {.iov_base = buf, .iov_len = cap};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = c.bytes,
                       .msg_controllen = sizeof(c.bytes)};
    ssize_t n = recvmsg(fd, &m, flags);
    if (n < 0)
        return -errno;
    *seg = (unsigned)n;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
        if (h->cmsg_level == SOL_UDP && h->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(h), sizeof(size));
            if (size > 0 && size < n)
                *seg = (unsigned)size;
        }
    return n;
}

unsigned pt_udp_gso_segments(void)
{
    static const char bytes[128];
    unsigned most = 0;
    int from = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int to = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    if (from < 0 || to < 0 || pt_udp_segment(from, 1) < 0)
        goto out;
    most = 64; /* what every kernel with the option can do, also where the loopback is down */
    if (bind(to, (struct sockaddr *)&at, sizeof(at)) == 0 &&
        getsockname(to, (struct sockaddr *)&at, &len) == 0 &&
        connect(from, (struct sockaddr *)&at, sizeof(at)) == 0 &&
        send(from, bytes, sizeof(bytes), MSG_DONTWAIT) == (ssize_t)sizeof(bytes))
        most = sizeof(bytes);
out:
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return most;
}

size_t pt_udp_gso_bytes(unsigned segments, unsigned seg)
{
    if (seg == 0)
        return 0;
    unsigned fit = IPV4_PAYLOAD_MAX / seg;
    return (size_t)(fit < segments ? fit : segments) * seg;
}

/* ---- path MTU */

int pt_udp_fragment(int fd, bool allow)
{
    int family = get_int(fd, SOL_SOCKET, SO_DOMAIN);
    if (family < 0)
        return family;
    int rc = family == AF_INET6 ? set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
                                          allow ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_DO)
                                : 0;
    /* An IPv6 socket sends IPv4 packets to mapped addresses. */
    return rc < 0 ? rc
                  : set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER,
                            allow ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
}

static int path_mtu(int fd, bool *v4)
{
    struct pt_addr peer;
    int rc = pt_addr_peer(&peer, fd);
    if (rc < 0)
        return rc;
    struct pt_addr there = peer;
    pt_addr_unmap(&peer);
    *v4 = pt_addr_family(&peer) == AF_INET;
    for (bool again = true;; again = false) {
        int mtu = *v4 ? get_int(fd, IPPROTO_IP, IP_MTU) : get_int(fd, IPPROTO_IPV6, IPV6_MTU);
        /* Some options (IP_TOS) make a connected socket forget its route until it sends. */
        if (mtu != -ENOTCONN || !again || connect(fd, &there.sa, there.len) != 0)
            return mtu;
    }
}

int pt_udp_mtu(int fd)
{
    bool v4;
    return path_mtu(fd, &v4);
}

int pt_udp_payload_max(int fd)
{
    bool v4;
    int mtu = path_mtu(fd, &v4);
    if (mtu < 0)
        return mtu;
    int most = v4 ? IPV4_PAYLOAD_MAX : IPV6_PAYLOAD_MAX;
    int payload = mtu - (v4 ? IPV4_HEADER : IPV6_HEADER) - UDP_HEADER;
    return payload < 0 ? -EMSGSIZE : payload < most ? payload : most;
}

/* ---- losses and timestamps */

int pt_udp_count_drops(int fd)
{
    return set_int(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
}

int64_t pt_sock_drops(int fd)
{
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t len = sizeof(memory);
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &len) != 0)
        return -errno;
    return memory[SK_MEMINFO_DROPS];
}

int pt_udp_stamp_rx(int fd, bool on)
{
    return set_int(fd, SOL_SOCKET, SO_TIMESTAMPNS, on);
}

int pt_udp_stamp_tx(int fd)
{
    /* Without OPT_TSONLY every stamp would bring its packet back. */
    return set_int(fd, SOL_SOCKET, SO_TIMESTAMPING,
                   SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_TX_SOFTWARE |
                       SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY);
}

static bool is_recverr(const struct cmsghdr *h)
{
    return (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_RECVERR) ||
           (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_RECVERR);
}

int pt_udp_stamp_take(int fd, struct pt_udp_stamp *s)
{
    union {
        struct cmsghdr align;
        char bytes[512];
    } c;
    char packet[1];
    struct iovec iov = {.iov_base = packet, .iov_len = sizeof(packet)};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = c.bytes,
                       .msg_controllen = sizeof(c.bytes)};
    if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
        return errno == EAGAIN ? 0 : -errno;
    bool stamped = false, numbered = false;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPING) {
            struct timespec ts; /* the first of three is the software one */
            memcpy(&ts, CMSG_DATA(h), sizeof(ts));
            s->kernel_ns = (pt_ns)ts.tv_sec * PT_S + ts.tv_nsec;
            stamped = true;
        } else if (is_recverr(h)) {
            struct sock_extended_err err;
            memcpy(&err, CMSG_DATA(h), sizeof(err));
            if (err.ee_origin != SO_EE_ORIGIN_TIMESTAMPING)
                return err.ee_errno ? -(int)err.ee_errno : -EIO;
            s->id = err.ee_data;
            numbered = true;
        }
    }
    return stamped && numbered ? 1 : -EPROTO;
}
