/* place.c: see place.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/place.h"

#include "os/cpu.h"

#include <errno.h>
#include <stdio.h>

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void pin_pairs(struct pt_place *p, const struct pt_shape *s, const struct pt_common *c,
                      const struct pt_cpu_list *l)
{
    const bool apart = (p->workers == 1 || s->spin) && !s->same_cpu && l->n > 1;
    p->paired = !apart;
    p->joins = apart && s->joins && p->workers == 1 && !c->cpus.n;
    for (unsigned i = 0; i < p->workers; i++) {
        p->cpu[i] = l->cpu[apart ? 2 * i % l->n : i % l->n];
        p->peer_cpu[i] = l->cpu[apart ? (2 * i + 1) % l->n : i % l->n];
    }
    snprintf(p->text, sizeof(p->text), "one machine, %u worker%s at each end, %s", p->workers,
             p->workers == 1 ? "" : "s",
             p->joins      ? "on one CPU or on two, as measured"
             : apart       ? "both ends on CPUs of their own"
             : s->same_cpu ? "both ends on one CPU"
             : l->n == 1   ? "one CPU for all"
                           : "each pair on one CPU");
}

int pt_place_check(const struct pt_common *c, struct pt_err *e)
{
    struct pt_cpu_list allowed;
    int rc = c->cpus.n ? pt_cpu_allowed(&allowed, e) : 0;
    for (unsigned i = 0; rc == 0 && i < c->cpus.n; i++)
        if (!pt_cpu_has(&allowed, c->cpus.cpu[i]))
            return pt_fail(e, -EINVAL, "--cpus: CPU %u is not usable here; usable are 0-%u",
                           c->cpus.cpu[i], allowed.n - 1);
    return rc;
}

int pt_place_plan(struct pt_place *p, const struct pt_shape *s, const struct pt_common *c,
                  bool same_machine, unsigned peer_cpus, struct pt_err *e)
{
    *p = (struct pt_place){.same_machine = same_machine};
    struct pt_cpu_list allowed = {0};
    int rc = pt_place_check(c, e);
    if (rc == 0)
        rc = pt_cpu_allowed(&allowed, e);
    if (rc < 0)
        return rc;
    const struct pt_cpu_list *l = c->cpus.n ? &c->cpus : &allowed;
    unsigned most = smaller(l->n, PT_WORKERS_MAX);
    if (same_machine && s->spin && l->n > 1)
        most = l->n / 2; /* two spinning ends cannot share a CPU */
    bool queues = s->workers_most && s->workers_most < most;
    if (queues)
        most = s->workers_most;
    if (s->same_cpu)
        most = 1;
    p->workers = c->workers ? c->workers : most;
    if (p->workers > most) {
        snprintf(p->note, sizeof(p->note), "--workers %u clipped to %u, the %s there are for them",
                 p->workers, most, queues ? "queues of the interface" : "CPUs");
        p->workers = most;
    }
    p->workers = smaller(p->workers, s->flows ? s->flows : 1);
    p->peer_workers =
        same_machine || !peer_cpus ? p->workers : smaller(peer_cpus, s->flows ? s->flows : 1);
    if (c->workers)
        p->peer_workers = smaller(p->peer_workers, c->workers);
    for (unsigned i = 0; i < PT_WORKERS_MAX; i++)
        p->cpu[i] = p->peer_cpu[i] = -1;
    if (same_machine) {
        pin_pairs(p, s, c, l);
        return 0;
    }
    if (s->same_cpu)
        return pt_fail(e, -EINVAL,
                       "--same-cpu needs both ends on this machine; leave HOST out, or "
                       "name an address of this machine");
    for (unsigned i = 0; i < p->workers; i++)
        p->cpu[i] = l->cpu[i];
    snprintf(p->text, sizeof(p->text), "two machines, %u worker%s here, %u there, each on a CPU",
             p->workers, p->workers == 1 ? "" : "s", p->peer_workers);
    return 0;
}
