/* udp_door.c: see udp_door.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/udp_door.h"

#include "net/sock.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union pktinfo {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

/* Bound without SO_REUSEPORT, so that a port in use is an error; set after, so that the sockets of
 * flows may join. */
int pt_udp_door_open(const struct pt_addr *at, struct pt_err *e)
{
    static const int on = 1;
    bool v6 = pt_addr_family(at) == AF_INET6;
    int fd = pt_sock_bind(at, &(struct pt_sockopts){.v6only = v6}, e);
    if (fd < 0)
        return fd;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0 ||
        setsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &on,
                   sizeof(on)) != 0) {
        int rc = pt_fail(e, -errno, "UDP socket options: %s", pt_strerror(-errno));
        close(fd);
        return rc;
    }
    return fd;
}

/* The address that was written to: the door's, or what the kernel says where the door is a
 * wildcard. */
static void local_address(const struct pt_addr *at, struct msghdr *m, struct pt_addr *local)
{
    *local = *at;
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

ssize_t pt_udp_door_hear(int door, const struct pt_addr *at, void *bytes, size_t cap,
                         struct pt_addr *peer, struct pt_addr *local)
{
    union pktinfo control;
    struct sockaddr_storage from;
    struct iovec iov = {.iov_base = bytes, .iov_len = cap};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof(from),
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof(control.bytes)};
    ssize_t n = recvmsg(door, &m, MSG_DONTWAIT);
    if (n < 0)
        return -errno;
    pt_addr_from(peer, (const struct sockaddr *)&from, m.msg_namelen);
    local_address(at, &m, local);
    return n;
}

void pt_udp_door_say(int door, const struct pt_addr *local, const struct pt_addr *peer,
                     const void *bytes, size_t n)
{
    union pktinfo control = {0};
    struct pt_addr to = *peer;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    struct msghdr m = {.msg_name = &to.sa,
                       .msg_namelen = to.len,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes};
    bool v6 = pt_addr_family(local) == AF_INET6;
    size_t size = v6 ? sizeof(struct in6_pktinfo) : sizeof(struct in_pktinfo);
    m.msg_controllen = CMSG_SPACE(size);
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_len = CMSG_LEN(size);
    if (v6) {
        struct in6_pktinfo i = {.ipi6_addr = local->v6.sin6_addr,
                                .ipi6_ifindex = local->v6.sin6_scope_id};
        h->cmsg_level = IPPROTO_IPV6;
        h->cmsg_type = IPV6_PKTINFO;
        memcpy(CMSG_DATA(h), &i, size);
    } else {
        struct in_pktinfo i = {.ipi_spec_dst = local->v4.sin_addr};
        h->cmsg_level = IPPROTO_IP;
        h->cmsg_type = IP_PKTINFO;
        memcpy(CMSG_DATA(h), &i, size);
    }
    (void)sendmsg(door, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Between bind and connect it is open to everybody: what came then is dropped. */
static void drain(int fd)
{
    uint8_t scrap[64];
    for (int i = 0; i < 4096; i++)
        if (recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT | MSG_TRUNC) < 0 && errno == EAGAIN)
            return;
}

int pt_udp_door_flow(const struct pt_addr *local, const struct pt_addr *peer)
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
