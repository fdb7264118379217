/* sock.c: see sock.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/sock.h"

#include "proto/preamble.h"

#include "os/clock.h"
#include "os/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int get_int(int fd, int level, int name, int otherwise)
{
    int v = 0;
    socklen_t len = sizeof(v);
    return getsockopt(fd, level, name, &v, &len) == 0 ? v : otherwise;
}

static int set_int(int fd, int level, int name, int v)
{
    return setsockopt(fd, level, name, &v, sizeof(v)) == 0 ? 0 : -errno;
}

static bool is_tcp(int fd)
{
    return get_int(fd, SOL_SOCKET, SO_PROTOCOL, 0) == IPPROTO_TCP;
}

/* ---- options */

static int set_cc(int fd, const char *cc, struct pt_err *e)
{
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)) == 0)
        return 0;
    int rc = -errno;
    char there[256] = "unknown";
    int listed = pt_sock_cc_available(there, sizeof(there));
    (void)listed;
    if (rc == -EPERM)
        return pt_fail(e, rc,
                       "congestion control %s: this kernel has it but allows it to root only "
                       "(net.ipv4.tcp_allowed_congestion_control)",
                       cc);
    return pt_fail(e, rc,
                   "congestion control %s: %s; this kernel has: %s (modprobe tcp_%s may add "
                   "it)",
                   cc, rc == -ENOENT ? "there is none of that name" : strerror(-rc), there, cc);
}

static int set_tos(int fd, int family, int tos)
{
    /* A dual-stack socket sends IPv4 too, whose byte is the IPv4 option. */
    int rc = family == AF_INET6 ? set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, tos) : 0;
    int rc4 = set_int(fd, IPPROTO_IP, IP_TOS, tos);
    return family == AF_INET6 ? rc : rc4;
}

int pt_sockopts_apply(int fd, const struct pt_sockopts *o, struct pt_err *e)
{
    int family = get_int(fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC), rc;
    bool ip = family == AF_INET || family == AF_INET6, tcp = ip && is_tcp(fd);
    /* Buffers first: the window scale is agreed at connect, from the receive buffer. */
    if (o->sndbuf && (rc = set_int(fd, SOL_SOCKET, SO_SNDBUF, o->sndbuf)) < 0)
        return pt_fail(e, rc, "send buffer of %d bytes: %s", o->sndbuf, strerror(-rc));
    if (o->rcvbuf && (rc = set_int(fd, SOL_SOCKET, SO_RCVBUF, o->rcvbuf)) < 0)
        return pt_fail(e, rc, "receive buffer of %d bytes: %s", o->rcvbuf, strerror(-rc));
    if (ip && o->tos && (rc = set_tos(fd, family, o->tos)) < 0)
        return pt_fail(e, rc, "TOS %d: %s; expected 0 to 255", o->tos, strerror(-rc));
    if (!tcp)
        return 0;
    if (o->cc[0] && (rc = set_cc(fd, o->cc, e)) < 0)
        return rc;
    if (o->mss && (rc = set_int(fd, IPPROTO_TCP, TCP_MAXSEG, o->mss)) < 0)
        return pt_fail(e, rc, "MSS of %d bytes: %s; the kernel takes 88 to 32767", o->mss,
                       strerror(-rc));
    if (o->nodelay && (rc = set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1)) < 0)
        return pt_fail(e, rc, "TCP_NODELAY: %s", strerror(-rc));
    if (o->notsent_lowat &&
        (rc = set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, o->notsent_lowat)) < 0)
        return pt_fail(e, rc, "TCP_NOTSENT_LOWAT of %d bytes: %s", o->notsent_lowat, strerror(-rc));
    return 0;
}

static void note(struct pt_sock_granted *g, const char *fmt, ...) PT_PRINTF(2, 3);
static void note(struct pt_sock_granted *g, const char *fmt, ...)
{
    size_t used = strlen(g->note);
    if (used && used + 2 < sizeof(g->note)) {
        memcpy(g->note + used, "; ", 3);
        used += 2;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(g->note + used, sizeof(g->note) - used, fmt, ap);
    va_end(ap);
}

/* The kernel doubles what was asked, for its bookkeeping, after clipping it to the sysctl. */
static void note_buffer(struct pt_sock_granted *g, const char *what, const char *sysctl, int asked,
                        int granted)
{
    if (!asked || granted >= asked * 2LL)
        return;
    char name[64];
    snprintf(name, sizeof(name), "net/core/%s", sysctl);
    note(g, "%s buffer: %d bytes asked, %d granted (net.core.%s is %lld)", what, asked, granted / 2,
         sysctl, (long long)pt_sysctl_number(name, -1));
}

int pt_sock_granted(struct pt_sock_granted *g, int fd, const struct pt_sockopts *asked)
{
    memset(g, 0, sizeof(*g));
    int family = get_int(fd, SOL_SOCKET, SO_DOMAIN, -1);
    if (family < 0)
        return -EBADF;
    g->sndbuf = get_int(fd, SOL_SOCKET, SO_SNDBUF, 0);
    g->rcvbuf = get_int(fd, SOL_SOCKET, SO_RCVBUF, 0);
    note_buffer(g, "send", "wmem_max", asked->sndbuf, g->sndbuf);
    note_buffer(g, "receive", "rmem_max", asked->rcvbuf, g->rcvbuf);
    if (family != AF_INET && family != AF_INET6)
        return 0;
    g->tos = family == AF_INET6 ? get_int(fd, IPPROTO_IPV6, IPV6_TCLASS, 0)
                                : get_int(fd, IPPROTO_IP, IP_TOS, 0);
    if (asked->tos && g->tos != asked->tos)
        note(g, "TOS: %d asked, %d granted (the kernel keeps the ECN bits of TCP to itself)",
             asked->tos, g->tos);
    if (!is_tcp(fd))
        return 0;
    g->mss = get_int(fd, IPPROTO_TCP, TCP_MAXSEG, 0);
    if (asked->mss && g->mss > asked->mss)
        note(g, "MSS: %d bytes asked, %d in use", asked->mss, g->mss);
    return pt_sock_cc_get(fd, g->cc);
}

void pt_sock_room(int fd, int bytes)
{
    if (get_int(fd, SOL_SOCKET, SO_RCVBUF, 0) / 2 >= bytes)
        return;
    if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes) < 0)
        (void)!set_int(fd, SOL_SOCKET, SO_RCVBUF, bytes);
}

bool pt_sock_hold_window(int fd, int bytes)
{
    if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes) == 0)
        return true;
    return pt_sysctl_number("net/core/rmem_max", 0) >= bytes &&
           set_int(fd, SOL_SOCKET, SO_RCVBUF, bytes) == 0;
}

int pt_sock_cc_available(char *out, size_t cap)
{
    return pt_sysctl_text("net/ipv4/tcp_available_congestion_control", out, cap);
}

void pt_sock_release_window(int fd, bool sndbuf)
{
    /* Bit 0 locks the send buffer, bit 1 the receive buffer. */
    (void)!set_int(fd, SOL_SOCKET, SO_BUF_LOCK, sndbuf ? 1 : 0);
}

void pt_sock_cc_default(char out[16])
{
    char text[64];
    if (pt_sysctl_text("net/ipv4/tcp_congestion_control", text, sizeof(text)) < 0)
        text[0] = 0;
    snprintf(out, 16, "%.*s", (int)strcspn(text, "\n"), text);
}

int pt_sock_cc_get(int fd, char out[16])
{
    socklen_t len = 15;
    memset(out, 0, 16);
    return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, out, &len) == 0 ? 0 : -errno;
}

/* ---- opening */

static const char *kind_of(int type, int family)
{
    return family == AF_UNIX ? "unix socket" : type == SOCK_STREAM ? "TCP socket" : "UDP socket";
}

static int fresh_socket(int type, int family, const struct pt_sockopts *o, struct pt_err *e)
{
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        int rc = -errno;
        const char *advice = rc == -EMFILE         ? " (ulimit -n)"
                             : rc == -EAFNOSUPPORT ? " (is IPv6 switched off?)"
                                                   : "";
        return pt_fail(e, rc, "opening a %s: %s%s", kind_of(type, family), strerror(-rc), advice);
    }
    int rc = o ? pt_sockopts_apply(fd, o, e) : 0;
    if (rc == 0 && o && o->reuseport && (rc = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1)) < 0)
        pt_fail(e, rc, "SO_REUSEPORT: %s", strerror(-rc));
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

/* A path where something else than a socket is. */
static bool is_other_file(const struct pt_addr *at)
{
    struct stat st;
    return pt_addr_family(at) == AF_UNIX && at->un.sun_path[0] &&
           lstat(at->un.sun_path, &st) == 0 && !S_ISSOCK(st.st_mode);
}

static int bind_failure(const struct pt_addr *at, int code, struct pt_err *e)
{
    char text[PT_ADDR_TEXT];
    const char *advice = is_other_file(at)     ? "; it is there and is no socket"
                         : code == -EADDRINUSE ? "; another program has it (ss -lntup shows which)"
                         : code == -EADDRNOTAVAIL ? "; it is no address of this host (ip address)"
                         : code == -EACCES        ? "; ports below 1024 need root or "
                                                    "CAP_NET_BIND_SERVICE"
                                                  : "";
    return pt_fail(e, code, "bind %s: %s%s", pt_addr_print(at, text), strerror(-code), advice);
}

static int bind_source(int fd, const struct pt_addr *from, struct pt_err *e)
{
    int family = pt_addr_family(from);
    if (family == AF_INET || family == AF_INET6) {
        /* Without a port the choice waits for connect(2), which may then reuse a port towards
         * another destination; with one, a connection in TIME_WAIT must not stand in the way. */
        int rc = pt_addr_port(from) == 0
                     ? set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
                     : (is_tcp(fd) ? set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1) : 0);
        if (rc < 0)
            return pt_fail(e, rc, "preparing the source address: %s", strerror(-rc));
    }
    return bind(fd, &from->sa, from->len) == 0 ? 0 : bind_failure(from, -errno, e);
}

int pt_sock_open(int type, const struct pt_addr *to, const struct pt_addr *from,
                 const struct pt_sockopts *o, struct pt_err *e)
{
    int fd = fresh_socket(type, pt_addr_family(to), o, e);
    if (fd < 0 || !from || from->len == 0)
        return fd;
    int rc = bind_source(fd, from, e);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

static int wait_connected(int fd, pt_ns deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    pt_ns left = deadline == PT_NS_MAX ? 0 : deadline - pt_clock_now();
    if (left < 0)
        left = 0;
    struct timespec ts = {.tv_sec = (time_t)(left / PT_S), .tv_nsec = (long)(left % PT_S)};
    int n = ppoll(&p, 1, deadline == PT_NS_MAX ? NULL : &ts, NULL);
    if (n <= 0)
        return n == 0 ? -ETIMEDOUT : -errno;
    return -get_int(fd, SOL_SOCKET, SO_ERROR, EIO);
}

/* TCP to a free port of this host may be given that port as its source, and then meets itself in
 * the middle (RFC 9293, simultaneous open). */
static bool met_itself(int fd)
{
    struct pt_addr here, there;
    return is_tcp(fd) && pt_addr_local(&here, fd) == 0 && pt_addr_peer(&there, fd) == 0 &&
           pt_addr_cmp(&here, &there) == 0;
}

static int connect_failure(const struct pt_addr *to, int code, struct pt_err *e)
{
    char text[PT_ADDR_TEXT];
    const char *advice = "";
    switch (code) {
    case -ECONNREFUSED:
        advice = "; nothing listens there";
        break;
    case -EAGAIN:
        advice = "; its queue of waiting connections is full";
        break;
    case -ETIMEDOUT:
        advice = "; no answer: is the host up, and does a firewall let the port through?";
        break;
    case -EADDRNOTAVAIL:
        advice = "; no source port is left towards it (more --bind addresses or a wider --ports)";
        break;
    case -ENETUNREACH:
    case -EHOSTUNREACH:
        advice = "; there is no route to it (ip route get)";
        break;
    default:
        break;
    }
    return pt_fail(e, code, "connect %s: %s%s", pt_addr_print(to, text),
                   code == -EINTR ? "interrupted" : strerror(-code), advice);
}

int pt_sock_connect(int type, const struct pt_addr *to, const struct pt_addr *from,
                    const struct pt_sockopts *o, pt_ns deadline, struct pt_err *e)
{
    int fd = pt_sock_open(type, to, from, o, e);
    if (fd < 0)
        return fd;
    int rc = pt_sock_set_nonblock(fd, true);
    if (rc == 0 && connect(fd, &to->sa, to->len) != 0)
        rc = errno == EINPROGRESS ? wait_connected(fd, deadline) : -errno;
    if (rc == 0 && met_itself(fd))
        rc = -ECONNREFUSED;
    if (rc < 0)
        connect_failure(to, rc, e);
    else if ((rc = pt_sock_set_nonblock(fd, false)) < 0)
        pt_fail(e, rc, "fcntl: %s", strerror(-rc));
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

int pt_sock_connect_any(int type, const struct pt_addr_list *to, const struct pt_addr *from,
                        const struct pt_sockopts *o, pt_ns deadline, unsigned *used,
                        struct pt_err *e)
{
    bool bound = from && from->len;
    int rc = pt_fail(e, -EDESTADDRREQ, "connect: no address was given%s",
                     bound ? " that goes with the source address" : "");
    for (unsigned i = 0; i < to->n; i++) {
        if (bound && pt_addr_family(from) != pt_addr_family(&to->addr[i]))
            continue;
        /* A silent address must leave time for those behind it. */
        pt_ns now = pt_clock_now(), share = deadline;
        if (deadline != PT_NS_MAX && deadline > now)
            share = now + (deadline - now) / (to->n - i);
        rc = pt_sock_connect(type, &to->addr[i], from, o, share, e);
        if (rc >= 0) {
            *used = i;
            return rc;
        }
        if (rc == -EINTR)
            break;
    }
    return rc;
}

/* ---- listening */

/* A path that a server left behind when it was killed: a socket that nobody accepts on. */
static void remove_stale(const struct pt_addr *at)
{
    struct stat st;
    const char *path = at->un.sun_path;
    if (path[0] == 0 || lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    if (connect(fd, &at->sa, at->len) != 0 && errno == ECONNREFUSED)
        unlink(path);
    close(fd);
}

static int prepare_server(int fd, const struct pt_addr *at, const struct pt_sockopts *o)
{
    int rc = 0;
    if (pt_addr_family(at) == AF_INET6)
        rc = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, o && o->v6only);
    /* On UDP this would let two servers share a port unnoticed; TCP needs it after a restart. */
    if (rc == 0 && is_tcp(fd))
        rc = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    return rc;
}

static int server_socket(int type, const struct pt_addr *at, const struct pt_sockopts *o,
                         struct pt_err *e)
{
    int fd = fresh_socket(type, pt_addr_family(at), o, e);
    if (fd < 0)
        return fd;
    int rc = prepare_server(fd, at, o);
    if (rc < 0)
        pt_fail(e, rc, "preparing a server socket: %s", strerror(-rc));
    else if (bind(fd, &at->sa, at->len) != 0)
        rc = bind_failure(at, -errno, e);
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

int pt_sock_listen(const struct pt_addr *at, unsigned backlog, const struct pt_sockopts *o,
                   struct pt_err *e)
{
    if (pt_addr_family(at) == AF_UNIX)
        remove_stale(at);
    int fd = server_socket(SOCK_STREAM, at, o, e);
    if (fd < 0)
        return fd;
    /* The kernel clips to net.core.somaxconn. */
    int rc = listen(fd, backlog == 0 || backlog > INT32_MAX ? INT32_MAX : (int)backlog) == 0
                 ? pt_sock_set_nonblock(fd, true)
                 : -errno;
    if (rc == 0)
        return fd;
    bind_failure(at, rc, e);
    close(fd);
    return rc;
}

int pt_sock_bind(const struct pt_addr *at, const struct pt_sockopts *o, struct pt_err *e)
{
    return server_socket(SOCK_DGRAM, at, o, e);
}

int pt_sock_pair(int type, int fds[2])
{
    return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) == 0 ? 0 : -errno;
}

int pt_sock_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0)
        return -errno;
    int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return wanted == flags || fcntl(fd, F_SETFL, wanted) == 0 ? 0 : -errno;
}
