/* bare_frame.h: for the bare loops below the IP stack: one UDP over IPv4 frame between two
 * namespaces, the interface at each end found by its address.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BARE_FRAME_H
#define BARE_FRAME_H

#include "bare.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>

#define BARE_HEADER 42u

/* One end of the wire. */
struct bare_port {
    struct sockaddr_in address;
    unsigned ifindex;
    uint8_t mac[6];
};

/* Inside the namespace of the port: fills in the interface that has `port->address`. */
static inline void bare_find_port(struct bare_port *port)
{
    struct ifaddrs *all;
    struct ifreq request = {0};
    char text[INET_ADDRSTRLEN] = "?";
    if (getifaddrs(&all))
        bare_die("interfaces");
    for (struct ifaddrs *a = all; a && !*request.ifr_name; a = a->ifa_next)
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
            ((struct sockaddr_in *)a->ifa_addr)->sin_addr.s_addr == port->address.sin_addr.s_addr)
            snprintf(request.ifr_name, sizeof request.ifr_name, "%s", a->ifa_name);
    freeifaddrs(all);
    inet_ntop(AF_INET, &port->address.sin_addr, text, sizeof text);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (!*request.ifr_name || ioctl(fd, SIOCGIFHWADDR, &request))
        bare_die("no interface has %s", text);
    memcpy(port->mac, request.ifr_hwaddr.sa_data, 6);
    port->ifindex = if_nametoindex(request.ifr_name);
    close(fd);
}

/* The sender's own address is what a connected socket gets. */
static inline void bare_find_source(struct bare_port *from, const struct bare_port *to)
{
    socklen_t n = sizeof from->address;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to->address, sizeof to->address) ||
        getsockname(fd, (struct sockaddr *)&from->address, &n))
        bare_die("no way to the receiver");
    close(fd);
    bare_find_port(from);
}

static inline uint32_t bare_add(const uint8_t *p, size_t n, uint32_t sum)
{
    for (size_t i = 0; i < n; i++)
        sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
    return sum;
}

static inline void bare_checksum(uint8_t *at, uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    at[0] = (uint8_t)(~sum >> 8);
    at[1] = (uint8_t)~sum;
}

/* The whole frame with `size` bytes of zero payload; returns its length. */
static inline size_t bare_frame(uint8_t *f, const struct bare_port *from,
                                const struct bare_port *to, size_t size)
{
    const size_t udp = 8 + size, ip = 20 + udp;
    const uint8_t head[] = {8, 0,    0x45, 0,  (uint8_t)(ip >> 8), (uint8_t)ip, 0,
                            0, 0x40, 0,    64, IPPROTO_UDP};
    memset(f, 0, BARE_HEADER + size);
    memcpy(f, to->mac, 6);
    memcpy(f + 6, from->mac, 6);
    memcpy(f + 12, head, sizeof head);
    memcpy(f + 26, &from->address.sin_addr, 4);
    memcpy(f + 30, &to->address.sin_addr, 4);
    bare_checksum(f + 24, bare_add(f + 14, 20, 0));
    memcpy(f + 34, &from->address.sin_port, 2);
    memcpy(f + 36, &to->address.sin_port, 2);
    f[38] = (uint8_t)(udp >> 8);
    f[39] = (uint8_t)udp;
    bare_checksum(f + 40,
                  bare_add(f + 34, udp, bare_add(f + 26, 8, (uint32_t)(IPPROTO_UDP + udp))));
    return BARE_HEADER + size;
}

#endif
