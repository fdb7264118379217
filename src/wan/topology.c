/* topology.c: see topology.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "wan/topology.h"

#include "base/rng.h"
#include "os/netif.h"
#include "os/netns.h"
#include "wan/owner.h"
#include "wan/range.h"
#include "wan/topology_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool may_not(int code)
{
    return code == -EPERM || code == -EACCES || code == -EROFS || code == -ENOSYS ||
           code == -EOPNOTSUPP;
}

static int check_names(const char *const *names, unsigned n, struct pt_err *e)
{
    if (n == 0 || n > PT_TOPO_HOSTS)
        return pt_fail(e, -EINVAL, "a topology has 1 to %d hosts, not %u", PT_TOPO_HOSTS, n);
    for (unsigned i = 0; i < n; i++) {
        const size_t length = strnlen(names[i], sizeof(((struct pt_topo_host *)0)->name));
        if (length == 0 || length == sizeof(((struct pt_topo_host *)0)->name))
            return pt_fail(e, -EINVAL, "host %u: a name has 1 to 63 bytes", i + 1);
        for (unsigned k = 0; k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                return pt_fail(e, -EINVAL, "two hosts are called %s", names[i]);
    }
    return 0;
}

/* 1 when the present namespace has ::1, 0 when it has no IPv6; an error is no answer. */
static int has_ipv6(struct pt_err *e)
{
    struct pt_addr a;
    pt_addr_any(&a, AF_INET6, 0);
    a.v6.sin6_addr = in6addr_loopback;
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int code = fd < 0 || bind(fd, &a.sa, a.len) < 0 ? -errno : 1;
    if (fd >= 0)
        close(fd);
    if (code == -EAFNOSUPPORT || code == -EADDRNOTAVAIL)
        return 0;
    return code < 0 ? pt_fail(e, code, "is there IPv6: %s", pt_strerror(code)) : code;
}

struct birth {
    const char *mark;
    bool six;
};

/* The first thing inside: the mark, so that a sweep knows whose it is, and the loopback. */
static int begin(void *ctx, struct pt_err *e)
{
    struct birth *b = ctx;
    const struct pt_netif_change c = {.up = true, .alias = b->mark};
    int code = pt_netif_change(1, &c, e);
    if (code == 0)
        code = has_ipv6(e);
    b->six = code > 0;
    return code < 0 ? code : 0;
}

static int make_namespace(int *out, struct birth *b, struct pt_err *e)
{
    *out = pt_netns_new(e);
    return *out < 0 ? *out : pt_netns_call(*out, begin, b, e);
}

static int give_addresses(struct pt_topo *t, bool six, struct pt_err *e)
{
    unsigned first;
    struct pt_cidr four, sixes;
    int code = pt_random_bytes(&first, sizeof(first));
    first &= 0xffff; /* the search begins anywhere, without a sum that wraps */
    code = code < 0 ? pt_fail(e, code, "random bytes: %s", pt_strerror(code))
                    : pt_range_free(&four, AF_INET, first, e);
    if (code == 0 && six)
        code = pt_range_free(&sixes, AF_INET6, first, e);
    for (unsigned i = 0; code == 0 && i < t->n; i++) {
        pt_range_host(&t->host[i].v4, &four, i + 1);
        if (six)
            pt_range_host(&t->host[i].v6, &sixes, i + 1);
    }
    return code;
}

static int open_namespaces(struct pt_topo *t, enum pt_topo_kind kind, struct pt_err *e)
{
    t->lock = calloc(1, sizeof(*t->lock));
    if (!t->lock)
        return pt_fail(e, -ENOMEM, "topology: out of memory");
    t->lock->lock = -1;
    int code = pt_owner_take(t->lock, e);
    struct birth b = {.mark = t->lock->mark};
    if (code == 0)
        code = make_namespace(&t->hub, &b, e);
    for (unsigned i = 0; code == 0 && i < t->n; i++)
        code = make_namespace(&t->host[i].netns, &b, e);
    if (code == 0)
        code = give_addresses(t, b.six, e);
    if (code == 0)
        code = pt_topo_join(t, kind, e);
    t->namespaces = code == 0;
    return code;
}

/* Closes what open_namespaces made; the hosts' names and their number stay. */
static void drop_namespaces(struct pt_topo *t)
{
    for (unsigned i = 0; i < t->n; i++) {
        if (t->host[i].netns >= 0)
            close(t->host[i].netns);
        t->host[i].netns = -1;
    }
    if (t->hub >= 0)
        close(t->hub);
    t->hub = -1;
    if (t->lock)
        pt_owner_release(t->lock);
    free(t->lock);
    t->lock = NULL;
    t->namespaces = false;
}

static int open_loopback(struct pt_topo *t, const char *why, struct pt_err *e)
{
    static unsigned serial; /* topologies of one process differ, and those of two mostly do */
    const unsigned seed = (unsigned)getpid() * 7 + serial++;
    const int six = has_ipv6(e);
    for (unsigned i = 0; i < t->n; i++) {
        struct pt_topo_host *h = &t->host[i];
        pt_range_loopback(&h->v4, seed, i + 1);
        h->v6 = (struct pt_addr){.len = 0};
        if (six > 0) {
            pt_addr_any(&h->v6, AF_INET6, 0);
            h->v6.v6.sin6_addr = in6addr_loopback;
        }
    }
    snprintf(t->text, sizeof(t->text),
             "%u host%s, each an address of the loopback of this machine: network namespaces need "
             "root (%.160s)",
             t->n, t->n == 1 ? "" : "s", why);
    return six < 0 ? six : 0;
}

int pt_topo_open_as(struct pt_topo *t, const char *const *names, unsigned n, enum pt_topo_kind kind,
                    struct pt_err *e)
{
    struct pt_err why = {.text = "not asked for"};
    *t = (struct pt_topo){.hub = -1, .owner = getpid()};
    int code = check_names(names, n, e);
    if (code < 0)
        return code;
    t->host = calloc(n, sizeof(*t->host));
    if (!t->host)
        return pt_fail(e, -ENOMEM, "topology: out of memory");
    t->n = n;
    for (unsigned i = 0; i < n; i++) {
        snprintf(t->host[i].name, sizeof(t->host[i].name), "%s", names[i]);
        t->host[i].netns = -1;
    }
    code = -EPERM;
    if (kind != PT_TOPO_LOOPBACK)
        code = open_namespaces(t, kind, &why);
    if (code == 0)
        return 0;
    drop_namespaces(t);
    if (may_not(code)) {
        char reason[sizeof(why.text)];
        memcpy(reason, why.text, sizeof(reason));
        code = open_loopback(t, reason, &why);
        if (code == 0)
            return 0;
    }
    pt_topo_close(t);
    return pt_fail(e, code, "%s", why.text);
}

int pt_topo_open(struct pt_topo *t, const char *const *names, unsigned n, struct pt_err *e)
{
    /* What others left is no reason not to begin: whoever asks for the sweep itself hears of it. */
    (void)!pt_topo_sweep(NULL);
    return pt_topo_open_as(t, names, n, PT_TOPO_BRIDGE, e);
}

int pt_topo_enter(const struct pt_topo *t, unsigned host, struct pt_err *e)
{
    if (host >= t->n)
        return pt_fail(e, -EINVAL, "the topology has no host %u", host);
    if (getpid() != t->owner)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return t->host[host].netns < 0 ? 0 : pt_netns_enter(t->host[host].netns, e);
}

void pt_topo_close(struct pt_topo *t)
{
    if (!t->host)
        return;
    drop_namespaces(t);
    free(t->host);
    *t = (struct pt_topo){.hub = -1};
}
