/* sockperf.c: a stock `sockperf sr` at the other end: `pitot lat` and `pitot pps --peer sockperf`.
 *
 * It has no control connection: it answers messages that ask for it and tells nothing of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "peer/list.h"

#include "engine/channel.h"
#include "engine/sources.h"
#include "proto/sockperf.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* Over TCP the first address that answers; over UDP there is no telling. */
static int reach(struct pt_far *f, pt_ns deadline, struct pt_err *e)
{
    const struct pt_addr_list *to = f->spec->to;
    struct pt_addr from;
    char text[PT_ADDR_TEXT];
    unsigned used = 0;
    int rc = pt_sources_first(&from, &f->plan->common, to, e);
    if (rc < 0)
        return rc;
    int fd = pt_sock_connect_any(f->shape->chan == PT_CHAN_UDP ? SOCK_DGRAM : SOCK_STREAM, to,
                                 &from, NULL, deadline, &used, e);
    if (fd < 0)
        return fd;
    close(fd);
    f->at = to->addr[used];
    pt_addr_print(&f->at, text);
    snprintf(f->name, sizeof(f->name), "sockperf server at %s", text);
    f->identity = json_pack("{s:s, s:s}", "software", "sockperf", "address", text);
    return 0;
}

static int dial(struct pt_far *f, struct pt_dial *d, pt_ns deadline, struct pt_err *e)
{
    struct pt_sockopts options;
    pt_channel_options(&options, &f->plan->common, f->shape);
    for (uint32_t i = 0; i < f->shape->flows; i++) {
        d[i].fd = pt_sock_connect(f->shape->chan == PT_CHAN_UDP ? SOCK_DGRAM : SOCK_STREAM, &f->at,
                                  d[i].from.len ? &d[i].from : NULL, &options, deadline, e);
        if (d[i].fd < 0)
            return d[i].fd;
    }
    return 0;
}

static void conclude(struct pt_far *f, const struct pt_half *local, struct pt_result *r)
{
    (void)local;
    if (!f->shape->both)
        pt_result_warn(r,
                       "what arrived is not known: the %s counts, but has nobody to tell; its own "
                       "output says it",
                       f->name);
}

static void close_far(struct pt_far *f)
{
    json_decref((json_t *)(uintptr_t)f->identity);
}

const struct pt_far_kind pt_peer_sockperf = {
    .name = "sockperf",
    .port = PT_SOCKPERF_PORT,
    .reach = reach,
    .dial = dial,
    .conclude = conclude,
    .close = close_far,
};
