/* addr.h: addresses: what a person writes, what the resolver answers, what the kernel takes.
 *
 * HOST forms: `name`, `name:port`, `1.2.3.4:5`, `[v6]:port`, bare `v6`, `fe80::1%eth0`,
 * `[fe80::1%eth0]:port`, `unix:/path`, `unix:@abstract`. A name is resolved once, before a run, and
 * all of its addresses are kept in the resolver's order (RFC 6724).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_ADDR_H
#define PT_NET_ADDR_H

#include "base/err.h"
#include "base/types.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

struct pt_addr {
    union {
        struct sockaddr sa;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un un;
        struct sockaddr_storage storage;
    };
    socklen_t len; /* 0: no address */
};

/* Enough for every printed address, port, zone and NUL. */
#define PT_ADDR_TEXT 144

/* ---- what was written */

struct pt_host {
    char name[256]; /* no brackets, no port; the zone stays ("fe80::1%eth0"); a path for unix */
    uint16_t port;  /* the written one, or the default; 0 for unix */
    bool port_given;
    bool unix_socket; /* name is a path, or '@' and an abstract name */
};

/* Takes a HOST form apart without asking anybody. -EINVAL with what is wrong and what was expected
 * (empty, port not in 1-65535, unbalanced bracket, bytes that no host name has, path too long). */
int pt_host_parse(struct pt_host *h, const char *text, uint16_t default_port,
                  struct pt_err *e) PT_MUST_USE;

/* ---- what the resolver answers */

#define PT_ADDR_LIST_MAX 16

struct pt_addr_list {
    unsigned n;
    struct pt_addr addr[PT_ADDR_LIST_MAX]; /* in the resolver's order, no duplicates */
};

/* Numeric, unix or by name. `family`: AF_UNSPEC, AF_INET (-4) or AF_INET6 (-6). Blocks on DNS: cold
 * path only. At least one address on 0. -EADDRNOTAVAIL: no address (of that family); -EAGAIN: the
 * resolver did not answer; -ENODEV: the zone is no interface here; -EINVAL: a link-local address
 * without its zone, or a family that contradicts the address. */
int pt_addr_resolve(struct pt_addr_list *out, const struct pt_host *h, int family,
                    struct pt_err *e) PT_MUST_USE;

/* pt_host_parse and pt_addr_resolve for numeric and unix forms only: never asks DNS. */
int pt_addr_parse(struct pt_addr *a, const char *text, uint16_t default_port,
                  struct pt_err *e) PT_MUST_USE;

/* ---- the kernel's form */

/* Copies what accept(2), recvmsg(2) or getsockname(2) filled in; a length out of range gives an
 * address of length 0. */
void pt_addr_from(struct pt_addr *a, const struct sockaddr *sa, socklen_t len);
/* The wildcard address of a family (AF_INET, AF_INET6) with a port. */
void pt_addr_any(struct pt_addr *a, int family, uint16_t port);
/* This end's and the other end's address of a socket. */
int pt_addr_local(struct pt_addr *a, int fd) PT_MUST_USE;
int pt_addr_peer(struct pt_addr *a, int fd) PT_MUST_USE;

int pt_addr_family(const struct pt_addr *a); /* AF_UNSPEC when there is none */
/* 0 for unix. */
uint16_t pt_addr_port(const struct pt_addr *a);
void pt_addr_set_port(struct pt_addr *a, uint16_t port);
/* ::ffff:1.2.3.4 becomes 1.2.3.4, anything else stays: what a dual-stack listener hands out. */
void pt_addr_unmap(struct pt_addr *a);

/* A total order: family, address, port, zone. 0 means the same endpoint. */
int pt_addr_cmp(const struct pt_addr *a, const struct pt_addr *b);
/* The same host address, whatever the port; a v4-mapped address equals its IPv4 one. */
bool pt_addr_same_ip(const struct pt_addr *a, const struct pt_addr *b);
/* 127.0.0.0/8, ::1, v4-mapped 127/8, unix. */
bool pt_addr_is_loopback(const struct pt_addr *a);
bool pt_addr_is_any(const struct pt_addr *a);
bool pt_addr_is_multicast(const struct pt_addr *a); /* or the IPv4 limited broadcast */

/* "1.2.3.4:5", "[fe80::1%eth0]:7411", "unix:/path", "unix:@name", "unix:" (unnamed), "-" (none).
 * Returns `out`. Bytes of abstract names that are not printable ASCII become '?'. */
const char *pt_addr_print(const struct pt_addr *a, char out[PT_ADDR_TEXT]);
/* The same without port and brackets. */
const char *pt_addr_print_ip(const struct pt_addr *a, char out[PT_ADDR_TEXT]);

#endif
