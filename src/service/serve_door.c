/* serve_door.c: the addresses where `pitot serve` listens, TCP and UDP on one port, or unix.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/sock.h"
#include "net/udp_door.h"
#include "service/serve_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* Free ports are looked for by TCP; that UDP has the same one free is likely, not certain. */
#define PORT_TRIES 32

static int append(struct pt_serve_spec *spec, const struct pt_addr *a, const char *text,
                  struct pt_err *e)
{
    if (spec->listen_count == PT_SERVE_LISTEN_MAX)
        return pt_fail(e, -EINVAL, "--listen %s: more than %d addresses", text,
                       PT_SERVE_LISTEN_MAX);
    spec->listen[spec->listen_count++] = *a;
    return 0;
}

/* Port 0 is fine here, unlike where one connects to: it means any free one. */
static int parse_address(struct pt_addr *a, const char *text, struct pt_err *e)
{
    char trimmed[PT_ADDR_TEXT];
    size_t n = strlen(text);
    bool port_0 = n > 3 && n < sizeof(trimmed) && strcmp(text + n - 2, ":0") == 0;
    bool v6 = text[0] == '[';
    /* A bare IPv6 address may end in ":0" too. */
    if (!port_0 || (v6 ? text[n - 3] != ']' : strchr(text, ':') != text + n - 2))
        return pt_addr_parse(a, text, PT_PORT, e);
    memcpy(trimmed, text, n - 2);
    trimmed[n - 2] = '\0';
    int rc = pt_addr_parse(a, trimmed, PT_PORT, e);
    if (!rc)
        pt_addr_set_port(a, 0);
    return rc;
}

int pt_serve_listen(struct pt_serve_spec *spec, const char *text, struct pt_err *e)
{
    struct pt_addr a;
    char all[32];
    int rc = 0;
    if (text[0] != ':' || text[1] == ':') {
        rc = parse_address(&a, text, e);
        return rc ? rc : append(spec, &a, text, e);
    }
    static const char *const any[] = {"0.0.0.0", "[::]"};
    for (size_t i = 0; !rc && i < PT_COUNT(any); i++) {
        if (snprintf(all, sizeof(all), "%s%s", any[i], text) >= (int)sizeof(all))
            return pt_fail(e, -EINVAL, "--listen %s: not a port", text);
        rc = pt_addr_parse(&a, all, PT_PORT, e);
        if (!rc)
            rc = append(spec, &a, text, e);
    }
    return rc;
}

void pt_serve_listen_loopback(struct pt_serve_spec *spec, uint16_t port)
{
    static const char *const texts[] = {"127.0.0.1", "::1"};
    spec->listen_count = 0;
    for (size_t i = 0; i < PT_COUNT(texts); i++) {
        struct pt_addr a, probe;
        if (pt_addr_parse(&a, texts[i], PT_PORT, NULL) != 0)
            continue;
        probe = a;
        pt_addr_set_port(&probe, 0);
        int fd = pt_sock_bind(&probe, NULL, NULL);
        if (fd < 0)
            continue; /* no IPv6, or a namespace whose lo is down */
        close(fd);
        pt_addr_set_port(&a, port);
        spec->listen[spec->listen_count++] = a;
    }
}

static int open_door(struct pt_serve_door *door, const struct pt_addr *at, struct pt_err *e)
{
    bool v6 = pt_addr_family(at) == AF_INET6;
    door->udp = -1;
    /* What is accepted inherits this, and then gets what its test asks for: a socket that BBR was
     * ever in charge of keeps pacing by a timer under any other congestion control. */
    struct pt_sockopts o = {.v6only = v6, .cc = "reno"};
    door->fd = pt_sock_listen(at, 0, &o, e);
    if (door->fd < 0)
        return door->fd;
    int rc = pt_addr_local(&door->at, door->fd);
    if (rc) {
        pt_fail(e, rc, "getsockname: %s", pt_strerror(rc));
    } else if (pt_addr_family(at) != AF_UNIX) {
        door->udp = pt_udp_door_open(&door->at, e);
        rc = door->udp < 0 ? door->udp : 0;
    }
    if (rc)
        close(door->fd);
    return rc;
}

int pt_serve_doors_open(struct pt_serve *s, struct pt_err *e)
{
    size_t at = 0;
    for (unsigned i = 0; i < s->spec.listen_count; i++) {
        struct pt_serve_door *door = &s->doors[s->door_count];
        const struct pt_addr *want = &s->spec.listen[i];
        bool any_port = pt_addr_family(want) != AF_UNIX && pt_addr_port(want) == 0;
        char text[PT_ADDR_TEXT];
        int rc, tries = any_port ? PORT_TRIES : 1;
        do
            rc = open_door(door, want, e);
        while (rc == -EADDRINUSE && --tries > 0);
        if (rc)
            return rc;
        door->serve = s;
        s->door_count++;
        at += (size_t)snprintf(s->addresses + at, sizeof(s->addresses) - at, "%s%s", i ? ", " : "",
                               pt_addr_print(&door->at, text));
    }
    return 0;
}

static void accepted(struct pt_op *op, int res, bool more)
{
    struct pt_serve_door *door = op->ctx;
    struct pt_serve *s = door->serve;
    struct pt_addr peer;
    char text[PT_ADDR_TEXT];
    if (res < 0) {
        pt_serve_log(s, "accept_failed error=\"%s\"", pt_strerror(res));
    } else if (pt_addr_peer(&peer, res) != 0) {
        close(res); /* it is gone already */
    } else if (!pt_serve_allows(s, &peer)) {
        pt_serve_log(s, "refused peer=%s why=\"not in --allow\"", pt_addr_print(&peer, text));
        close(res);
    } else {
        pt_serve_entry_take(s, res, &peer);
    }
    if (!more && !s->stopping && pt_op_accept(s->loop, op, door->fd) != 0) {
        pt_log(PT_LOG_ERROR, "listener_lost at=%s", pt_addr_print(&door->at, text));
        pt_serve_stop(s, "listener lost");
    }
}

static void knocked(struct pt_op *op, int res, bool more)
{
    (void)res;
    (void)more;
    struct pt_serve_door *door = op->ctx;
    char text[PT_ADDR_TEXT];
    pt_serve_knock(door);
    if (!door->serve->stopping && pt_op_poll(door->serve->loop, op, door->udp, POLLIN) != 0) {
        pt_log(PT_LOG_ERROR, "listener_lost at=%s udp", pt_addr_print(&door->at, text));
        pt_serve_stop(door->serve, "listener lost");
    }
}

int pt_serve_doors_start(struct pt_serve *s, struct pt_err *e)
{
    for (unsigned i = 0; i < s->door_count; i++) {
        struct pt_serve_door *door = &s->doors[i];
        door->accept = (struct pt_op){.fn = accepted, .ctx = door};
        door->knock = (struct pt_op){.fn = knocked, .ctx = door};
        int rc = pt_op_accept(s->loop, &door->accept, door->fd);
        if (!rc && door->udp >= 0)
            rc = pt_op_poll(s->loop, &door->knock, door->udp, POLLIN);
        if (rc)
            return pt_fail(e, rc, "event loop: %s", pt_strerror(rc));
    }
    return 0;
}

void pt_serve_doors_close(struct pt_serve *s)
{
    for (unsigned i = 0; i < s->door_count; i++) {
        struct pt_serve_door *door = &s->doors[i];
        if (s->loop) {
            pt_op_cancel(s->loop, &door->accept);
            if (door->udp >= 0)
                pt_op_cancel(s->loop, &door->knock);
            if (pt_addr_family(&door->at) == AF_UNIX && door->at.un.sun_path[0])
                unlink(door->at.un.sun_path);
        }
        close(door->fd);
        if (door->udp >= 0)
            close(door->udp);
    }
    s->door_count = 0;
}
