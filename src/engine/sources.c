/* sources.c: see sources.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/sources.h"

#include <errno.h>
#include <stdio.h>

int pt_sources_plan(struct pt_tuple_plan *t, const struct pt_common *c, const struct pt_addr *to,
                    struct pt_err *e)
{
    *t = (struct pt_tuple_plan){0};
    if (!c->bind.n && !c->ports.last)
        return 0;
    struct pt_ephemeral free_ports;
    pt_ephemeral_read(&free_ports);
    char ports[16];
    snprintf(ports, sizeof(ports), "%u-%u", c->ports.first, c->ports.last);
    struct pt_buf bind;
    pt_buf_init(&bind, 16384);
    for (uint32_t i = 0; i < c->bind.n; i++)
        pt_buf_addf(&bind, "%s%s", i ? "," : "", c->bind.at[i]);
    int rc = pt_tuple_plan(t, c->bind.n ? pt_buf_str(&bind) : NULL, c->ports.last ? ports : NULL,
                           to, 1, &free_ports, e);
    pt_buf_fini(&bind);
    return rc;
}

int pt_sources_first(struct pt_addr *from, const struct pt_common *c, const struct pt_addr_list *to,
                     struct pt_err *e)
{
    *from = (struct pt_addr){.len = 0};
    if (!c->bind.n || pt_addr_family(&to->addr[0]) == AF_UNIX)
        return 0;
    int rc = -EINVAL;
    for (unsigned i = 0; i < to->n && rc < 0; i++) {
        struct pt_tuple_plan t;
        struct pt_tuple first;
        rc = pt_sources_plan(&t, c, &to->addr[i], e);
        if (rc < 0)
            continue;
        pt_tuple_at(&t, 0, &first);
        *from = first.from;
        pt_addr_set_port(from, 0);
    }
    return rc;
}

int pt_sources_check(const struct pt_common *c, const struct pt_addr_list *to, uint64_t flows,
                     struct pt_err *e)
{
    int rc = -EINVAL;
    for (unsigned i = 0; i < to->n && rc < 0; i++) {
        struct pt_tuple_plan t;
        if (pt_addr_family(&to->addr[i]) == AF_UNIX)
            return 0;
        rc = pt_sources_plan(&t, c, &to->addr[i], e);
        if (rc == 0 && t.capacity)
            rc = pt_tuple_check(&t, flows, e);
    }
    return rc;
}
