/* addr.c: see addr.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/addr.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what was written */

/* What a person wrote, safe to show. */
struct shown {
    char text[160];
};

static const char *show(struct shown *s, const char *text)
{
    return pt_log_quote(s->text, sizeof(s->text), text, strlen(text));
}

static int parse_port(const char *text, uint16_t *port, const char *whole, struct pt_err *e)
{
    struct shown s;
    char *end = NULL;
    errno = 0;
    unsigned long v = isdigit((unsigned char)text[0]) ? strtoul(text, &end, 10) : 0;
    if (!end || *end || errno || v < 1 || v > 65535)
        return pt_fail(e, -EINVAL,
                       "%s: the port must be a number from 1 to 65535 (an IPv6 address with a port "
                       "is written [address]:port)",
                       show(&s, whole));
    *port = (uint16_t)v;
    return 0;
}

static int parse_unix(struct pt_host *h, const char *path, struct pt_err *e)
{
    struct shown s;
    size_t n = strlen(path);
    if (n == 0 || (path[0] == '@' && n == 1))
        return pt_fail(e, -EINVAL, "unix: needs a path (unix:/run/x) or a name (unix:@x)");
    /* An abstract name trades its '@' for a NUL; a path needs its closing NUL. */
    size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - (path[0] == '@' ? 0 : 1);
    if (n > most)
        return pt_fail(e, -EINVAL, "unix:%s: %zu bytes, a unix socket path has at most %zu",
                       show(&s, path), n, most);
    memcpy(h->name, path, n + 1);
    h->unix_socket = true;
    h->port = 0;
    return 0;
}

/* Copies the `n` bytes of a name or address; both end in letters, digits and few others, a zone is
 * whatever an interface may be called. */
static int copy_name(struct pt_host *h, const char *name, size_t n, const char *whole,
                     struct pt_err *e)
{
    struct shown s;
    if (n == 0)
        return pt_fail(e, -EINVAL, "'%s': the host is missing", show(&s, whole));
    if (n > 253)
        return pt_fail(e, -EINVAL, "%.40s…: a host name has at most 253 bytes", show(&s, whole));
    const char *zone = memchr(name, '%', n);
    for (const char *p = name; p < (zone ? zone : name + n); p++)
        if (!isalnum((unsigned char)*p) && !strchr("-._:", *p))
            return pt_fail(e, -EINVAL,
                           "%s: no host name or address has such bytes; expected name, name:port, "
                           "1.2.3.4:port, [v6]:port or unix:/path",
                           show(&s, whole));
    for (const char *p = zone; p && p < name + n; p++)
        if (!isgraph((unsigned char)*p) || *p == '/')
            return pt_fail(e, -EINVAL, "%s: no interface has such a name", show(&s, whole));
    memcpy(h->name, name, n);
    h->name[n] = 0;
    return 0;
}

static int split_zone(const char *name, char ip[INET6_ADDRSTRLEN], const char **zone)
{
    const char *at = strchr(name, '%');
    size_t n = at ? (size_t)(at - name) : strlen(name);
    *zone = at ? at + 1 : NULL;
    if (n >= INET6_ADDRSTRLEN)
        return -EINVAL;
    memcpy(ip, name, n);
    ip[n] = 0;
    return 0;
}

static bool is_v6_text(const char *name)
{
    char ip[INET6_ADDRSTRLEN];
    const char *zone;
    struct in6_addr a;
    return split_zone(name, ip, &zone) == 0 && inet_pton(AF_INET6, ip, &a) == 1;
}

int pt_host_parse(struct pt_host *h, const char *text, uint16_t default_port, struct pt_err *e)
{
    struct shown s;
    memset(h, 0, sizeof(*h));
    h->port = default_port;
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(h, text + 5, e);

    const char *port = NULL;
    int rc;
    if (text[0] == '[') {
        const char *close = strchr(text, ']');
        if (!close || (close[1] && close[1] != ':'))
            return pt_fail(e, -EINVAL, "%s: expected [v6] or [v6]:port", show(&s, text));
        port = close[1] ? close + 2 : NULL;
        rc = copy_name(h, text + 1, (size_t)(close - text - 1), text, e);
        if (rc == 0 && !is_v6_text(h->name))
            return pt_fail(e, -EINVAL, "%s: no IPv6 address between the brackets", show(&s, text));
    } else {
        const char *colon = strchr(text, ':');
        bool bare_v6 = colon && strchr(colon + 1, ':');
        port = colon && !bare_v6 ? colon + 1 : NULL;
        rc = copy_name(h, text, port ? (size_t)(colon - text) : strlen(text), text, e);
        if (rc == 0 && bare_v6 && !is_v6_text(h->name))
            return pt_fail(e, -EINVAL,
                           "%s: neither an IPv6 address nor host:port; an IPv6 address with a port "
                           "is written [address]:port",
                           show(&s, text));
        if (rc == 0 && !bare_v6 && strchr(h->name, '%'))
            return pt_fail(e, -EINVAL, "%s: only an IPv6 address takes a zone (%%interface)",
                           show(&s, text));
    }
    if (rc == 0 && port) {
        rc = parse_port(port, &h->port, text, e);
        h->port_given = rc == 0;
    }
    return rc;
}

/* ---- what the resolver answers */

static void unix_address(struct pt_addr *a, const char *path)
{
    size_t n = strlen(path);
    memset(a, 0, sizeof(*a));
    a->un.sun_family = AF_UNIX;
    memcpy(a->un.sun_path, path, n);
    if (path[0] == '@') {
        a->un.sun_path[0] = 0;
        a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    } else {
        a->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
    }
}

static bool needs_zone(const struct in6_addr *a)
{
    return IN6_IS_ADDR_LINKLOCAL(a) || IN6_IS_ADDR_MC_LINKLOCAL(a);
}

static int find_zone(const struct pt_host *h, const char *zone, uint32_t *scope, struct pt_err *e)
{
    char name[IF_NAMESIZE];
    unsigned index = if_nametoindex(zone);
    if (index == 0) {
        char *end;
        unsigned long v = strtoul(zone, &end, 10);
        if (isdigit((unsigned char)zone[0]) && !*end && v > 0 && v <= INT32_MAX &&
            if_indextoname((unsigned)v, name))
            index = (unsigned)v;
    }
    if (index == 0)
        return pt_fail(e, -ENODEV, "%s: there is no interface %s here (ip link shows them)",
                       h->name, zone);
    *scope = index;
    return 0;
}

/* 1: numeric, `a` filled; 0: it is a name. */
static int numeric_address(struct pt_addr *a, const struct pt_host *h, struct pt_err *e)
{
    char ip[INET6_ADDRSTRLEN];
    const char *zone;
    memset(a, 0, sizeof(*a));
    if (split_zone(h->name, ip, &zone) != 0)
        return 0;
    if (!zone && inet_pton(AF_INET, ip, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons(h->port);
        a->len = sizeof(a->v4);
        return 1;
    }
    if (inet_pton(AF_INET6, ip, &a->v6.sin6_addr) != 1)
        return 0;
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = htons(h->port);
    a->len = sizeof(a->v6);
    if (zone && !needs_zone(&a->v6.sin6_addr))
        return pt_fail(e, -EINVAL, "%s: only a link-local address (fe80::…) takes a zone", h->name);
    if (!zone && needs_zone(&a->v6.sin6_addr))
        return pt_fail(
            e, -EINVAL,
            "%s: a link-local address needs its interface: %s%%eth0 (ip link shows them)", h->name,
            ip);
    int rc = zone ? find_zone(h, zone, &a->v6.sin6_scope_id, e) : 0;
    return rc < 0 ? rc : 1;
}

static int resolver_failure(const struct pt_host *h, int family, int code, int saved_errno,
                            struct pt_err *e)
{
    const char *kind = family == AF_INET    ? "IPv4 address"
                       : family == AF_INET6 ? "IPv6 address"
                                            : "address";
    switch (code) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return pt_fail(e, -EADDRNOTAVAIL,
                       "%s: the resolver knows no %s of that name; check the "
                       "spelling%s, or give the address itself",
                       h->name, kind, family == AF_UNSPEC ? "" : ", try without -4 or -6");
    case EAI_AGAIN:
        return pt_fail(e, -EAGAIN,
                       "%s: no name server answered; check /etc/resolv.conf or give the "
                       "address itself",
                       h->name);
    case EAI_SYSTEM:
        return pt_fail(e, saved_errno ? -saved_errno : -EIO, "%s: looking up its %s: %s", h->name,
                       kind, strerror(saved_errno));
    default:
        return pt_fail(e, code == EAI_MEMORY ? -ENOMEM : -EIO, "%s: looking up its %s: %s", h->name,
                       kind, gai_strerror(code));
    }
}

static void keep(struct pt_addr_list *out, const struct pt_addr *a)
{
    for (unsigned i = 0; i < out->n; i++)
        if (pt_addr_cmp(&out->addr[i], a) == 0)
            return;
    if (out->n < PT_ADDR_LIST_MAX)
        out->addr[out->n++] = *a;
}

static int resolve_name(struct pt_addr_list *out, const struct pt_host *h, int family,
                        struct pt_err *e)
{
    /* No AI_ADDRCONFIG: it would hide ::1 and every address of a host that has only a loopback. */
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM}, *found = NULL;
    errno = 0;
    int code = getaddrinfo(h->name, NULL, &hints, &found);
    if (code != 0)
        return resolver_failure(h, family, code, errno, e);
    bool zone_missing = false;
    for (struct addrinfo *i = found; i; i = i->ai_next) {
        struct pt_addr a;
        pt_addr_from(&a, i->ai_addr, i->ai_addrlen);
        if (a.len == 0)
            continue;
        pt_addr_set_port(&a, h->port);
        if (pt_addr_family(&a) == AF_INET6 && needs_zone(&a.v6.sin6_addr) && !a.v6.sin6_scope_id)
            zone_missing = true;
        else
            keep(out, &a);
    }
    freeaddrinfo(found);
    if (out->n)
        return 0;
    return zone_missing
               ? pt_fail(e, -EINVAL,
                         "%s: has only a link-local address, whose interface is not known; "
                         "give it as fe80::…%%interface",
                         h->name)
               : resolver_failure(h, family, EAI_NONAME, 0, e);
}

int pt_addr_resolve(struct pt_addr_list *out, const struct pt_host *h, int family, struct pt_err *e)
{
    out->n = 0;
    if (h->unix_socket) {
        if (family != AF_UNSPEC)
            return pt_fail(e, -EINVAL, "unix:%s: -4 and -6 do not go with a unix socket", h->name);
        unix_address(&out->addr[0], h->name);
        out->n = 1;
        return 0;
    }
    int rc = numeric_address(&out->addr[0], h, e);
    if (rc <= 0)
        return rc < 0 ? rc : resolve_name(out, h, family, e);
    if (family != AF_UNSPEC && family != pt_addr_family(&out->addr[0]))
        return pt_fail(e, -EINVAL, "%s: %s was asked for, but this is an %s address", h->name,
                       family == AF_INET ? "IPv4 (-4)" : "IPv6 (-6)",
                       family == AF_INET ? "IPv6" : "IPv4");
    out->n = 1;
    return 0;
}

int pt_addr_parse(struct pt_addr *a, const char *text, uint16_t default_port, struct pt_err *e)
{
    struct pt_host h;
    memset(a, 0, sizeof(*a));
    int rc = pt_host_parse(&h, text, default_port, e);
    if (rc < 0)
        return rc;
    if (h.unix_socket) {
        unix_address(a, h.name);
        return 0;
    }
    rc = numeric_address(a, &h, e);
    if (rc == 1)
        return 0;
    memset(a, 0, sizeof(*a));
    return rc < 0 ? rc : pt_fail(e, -EINVAL, "%s: expected a numeric address, not a name", h.name);
}

/* ---- the kernel's form */

void pt_addr_from(struct pt_addr *a, const struct sockaddr *sa, socklen_t len)
{
    memset(a, 0, sizeof(*a));
    if (!sa || len < sizeof(sa->sa_family) || len > sizeof(a->storage))
        return;
    memcpy(&a->storage, sa, len);
    int family = a->sa.sa_family;
    if ((family == AF_INET && len >= sizeof(a->v4)) ||
        (family == AF_INET6 && len >= sizeof(a->v6)) || (family == AF_UNIX && len <= sizeof(a->un)))
        a->len = family == AF_INET    ? (socklen_t)sizeof(a->v4)
                 : family == AF_INET6 ? (socklen_t)sizeof(a->v6)
                                      : len;
    else
        memset(a, 0, sizeof(*a));
}

void pt_addr_any(struct pt_addr *a, int family, uint16_t port)
{
    memset(a, 0, sizeof(*a));
    a->sa.sa_family = (sa_family_t)family;
    a->len = family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
    pt_addr_set_port(a, port);
}

int pt_addr_local(struct pt_addr *a, int fd)
{
    struct sockaddr_storage s = {0};
    socklen_t len = sizeof(s);
    if (getsockname(fd, (struct sockaddr *)&s, &len) != 0)
        return -errno;
    pt_addr_from(a, (struct sockaddr *)&s, len);
    return 0;
}

int pt_addr_peer(struct pt_addr *a, int fd)
{
    struct sockaddr_storage s = {0};
    socklen_t len = sizeof(s);
    if (getpeername(fd, (struct sockaddr *)&s, &len) != 0)
        return -errno;
    pt_addr_from(a, (struct sockaddr *)&s, len);
    return 0;
}

int pt_addr_family(const struct pt_addr *a)
{
    return a->len ? a->sa.sa_family : AF_UNSPEC;
}

uint16_t pt_addr_port(const struct pt_addr *a)
{
    switch (pt_addr_family(a)) {
    case AF_INET:
        return ntohs(a->v4.sin_port);
    case AF_INET6:
        return ntohs(a->v6.sin6_port);
    default:
        return 0;
    }
}

void pt_addr_set_port(struct pt_addr *a, uint16_t port)
{
    if (pt_addr_family(a) == AF_INET)
        a->v4.sin_port = htons(port);
    else if (pt_addr_family(a) == AF_INET6)
        a->v6.sin6_port = htons(port);
}

void pt_addr_unmap(struct pt_addr *a)
{
    if (pt_addr_family(a) != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
        return;
    struct pt_addr v4 = {.len = sizeof(v4.v4)};
    v4.v4.sin_family = AF_INET;
    v4.v4.sin_port = a->v6.sin6_port;
    memcpy(&v4.v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, 4);
    *a = v4;
}

static int three_way(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int pt_addr_cmp(const struct pt_addr *a, const struct pt_addr *b)
{
    int c = three_way((uint64_t)pt_addr_family(a), (uint64_t)pt_addr_family(b));
    if (c)
        return c;
    switch (pt_addr_family(a)) {
    case AF_INET:
        c = memcmp(&a->v4.sin_addr, &b->v4.sin_addr, 4);
        break;
    case AF_INET6:
        c = memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, 16);
        break;
    case AF_UNIX:
        c = three_way(a->len, b->len);
        return c ? c : memcmp(&a->un, &b->un, a->len);
    default:
        return 0;
    }
    if (c == 0)
        c = three_way(pt_addr_port(a), pt_addr_port(b));
    if (c == 0 && pt_addr_family(a) == AF_INET6)
        c = three_way(a->v6.sin6_scope_id, b->v6.sin6_scope_id);
    return c;
}

bool pt_addr_same_ip(const struct pt_addr *a, const struct pt_addr *b)
{
    struct pt_addr x = *a, y = *b;
    pt_addr_unmap(&x);
    pt_addr_unmap(&y);
    pt_addr_set_port(&x, 0);
    pt_addr_set_port(&y, 0);
    return pt_addr_cmp(&x, &y) == 0;
}

bool pt_addr_is_loopback(const struct pt_addr *a)
{
    struct pt_addr x = *a;
    pt_addr_unmap(&x);
    switch (pt_addr_family(&x)) {
    case AF_INET:
        return ntohl(x.v4.sin_addr.s_addr) >> 24 == 127;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&x.v6.sin6_addr);
    default:
        return pt_addr_family(&x) == AF_UNIX;
    }
}

bool pt_addr_is_any(const struct pt_addr *a)
{
    struct pt_addr x = *a;
    pt_addr_unmap(&x);
    switch (pt_addr_family(&x)) {
    case AF_INET:
        return x.v4.sin_addr.s_addr == htonl(INADDR_ANY);
    case AF_INET6:
        return IN6_IS_ADDR_UNSPECIFIED(&x.v6.sin6_addr);
    default:
        return false;
    }
}

bool pt_addr_is_multicast(const struct pt_addr *a)
{
    struct pt_addr x = *a;
    pt_addr_unmap(&x);
    switch (pt_addr_family(&x)) {
    case AF_INET:
        return IN_MULTICAST(ntohl(x.v4.sin_addr.s_addr)) ||
               x.v4.sin_addr.s_addr == htonl(INADDR_BROADCAST);
    case AF_INET6:
        return IN6_IS_ADDR_MULTICAST(&x.v6.sin6_addr);
    default:
        return false;
    }
}

static const char *print_unix(const struct pt_addr *a, char out[PT_ADDR_TEXT])
{
    size_t n = a->len - offsetof(struct sockaddr_un, sun_path);
    const char *path = a->un.sun_path;
    bool abstract = n > 0 && path[0] == 0;
    char *to = stpcpy(out, "unix:");
    if (!abstract)
        n = strnlen(path, n);
    for (size_t i = 0; i < n; i++) {
        char c = abstract && i == 0 ? '@' : path[i];
        *to++ = c >= 0x20 && c < 0x7f ? c : '?';
    }
    *to = 0;
    return out;
}

const char *pt_addr_print_ip(const struct pt_addr *a, char out[PT_ADDR_TEXT])
{
    switch (pt_addr_family(a)) {
    case AF_INET:
        inet_ntop(AF_INET, &a->v4.sin_addr, out, PT_ADDR_TEXT);
        return out;
    case AF_INET6: {
        char ip[INET6_ADDRSTRLEN], zone[IF_NAMESIZE];
        inet_ntop(AF_INET6, &a->v6.sin6_addr, ip, sizeof(ip));
        uint32_t scope = a->v6.sin6_scope_id;
        if (scope == 0)
            snprintf(out, PT_ADDR_TEXT, "%s", ip);
        else if (if_indextoname(scope, zone))
            snprintf(out, PT_ADDR_TEXT, "%s%%%s", ip, zone);
        else
            snprintf(out, PT_ADDR_TEXT, "%s%%%u", ip, scope);
        return out;
    }
    case AF_UNIX:
        return print_unix(a, out);
    default:
        memcpy(out, "-", sizeof("-"));
        return out;
    }
}

const char *pt_addr_print(const struct pt_addr *a, char out[PT_ADDR_TEXT])
{
    char ip[PT_ADDR_TEXT];
    switch (pt_addr_family(a)) {
    case AF_INET:
        snprintf(out, PT_ADDR_TEXT, "%.64s:%u", pt_addr_print_ip(a, ip), pt_addr_port(a));
        return out;
    case AF_INET6:
        snprintf(out, PT_ADDR_TEXT, "[%.96s]:%u", pt_addr_print_ip(a, ip), pt_addr_port(a));
        return out;
    default:
        return pt_addr_print_ip(a, out);
    }
}
