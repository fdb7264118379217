/* stage.c: see stage.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stage.h"

#include "engine/run.h"
#include "os/netns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pt_stage_open(struct pt_stage *s, const struct pt_plan_file *plan, struct pt_err *e)
{
    static char names[PT_PLAN_HOSTS][PT_PLAN_NAME];
    const char *name[PT_PLAN_HOSTS];
    *s = (struct pt_stage){.plan = plan};
    s->server = calloc(plan->hosts + 1, sizeof(*s->server));
    if (!s->server)
        return pt_fail(e, -ENOMEM, "no memory for the servers of the plan");
    for (uint32_t i = 0; i <= plan->hosts; i++)
        s->server[i].process.pidfd = -1;
    for (uint32_t i = 0; i < plan->hosts; i++)
        name[i] = pt_plan_file_host(plan, i, names[i]);
    int rc = plan->hosts ? pt_topo_open(&s->topo, name, plan->hosts, e) : 0;
    if (rc < 0)
        pt_stage_close(s);
    return rc;
}

void pt_stage_close(struct pt_stage *s)
{
    for (uint32_t i = 0; s->server && i <= s->plan->hosts; i++)
        pt_serve_child_end(&s->server[i]);
    free(s->server);
    s->server = NULL;
    pt_topo_close(&s->topo);
}

/* ---- in the document */

static json_t *address_json(const struct pt_addr *a)
{
    char text[PT_ADDR_TEXT];
    return a->len ? json_string(pt_addr_print_ip(a, text)) : json_null();
}

void pt_stage_document(const struct pt_stage *s, struct pt_result *run)
{
    const struct pt_topo *t = &s->topo;
    json_t *hosts = json_array();
    for (unsigned i = 0; i < t->n; i++)
        json_array_append_new(hosts, json_pack("{s:s, s:o, s:o}", "name", t->host[i].name, "v4",
                                               address_json(&t->host[i].v4), "v6",
                                               address_json(&t->host[i].v6)));
    pt_result_str(run, "topology.kind", !t->n ? "host" : t->namespaces ? "namespaces" : "loopback");
    pt_result_str(run, "topology.text",
                  t->n ? t->text
                       : "this machine as it is, both ends of every test on its loopback");
    pt_result_take(run, "topology.hosts", hosts);
}

/* ---- servers */

struct start {
    struct pt_serve_child *server;
    struct pt_serve_spec *spec;
};

/* Sockets and the process that is forked stay where they were made. */
static int start(void *ctx, struct pt_err *e)
{
    struct start *st = ctx;
    return pt_serve_child_start(st->server, st->spec, e);
}

static struct pt_serve_child *server_of(const struct pt_stage *s, const struct pt_plan_test *t)
{
    return &s->server[s->topo.n ? t->target : 0];
}

int pt_stage_server(struct pt_stage *s, const struct pt_plan_test *t, struct pt_err *e)
{
    struct pt_serve_spec spec = {.session = pt_answer_session};
    struct start st = {.server = server_of(s, t), .spec = &spec};
    if (st.server->process.pid > 0)
        return 0;
    if (!s->topo.n)
        return start(&st, e);
    const struct pt_topo_host *h = &s->topo.host[t->target];
    const struct pt_addr *at[] = {&h->v4, &h->v6};
    for (size_t i = 0; i < PT_COUNT(at); i++)
        if (at[i]->len)
            spec.listen[spec.listen_count++] = *at[i];
    return h->netns < 0 ? start(&st, e) : pt_netns_call(h->netns, start, &st, e);
}

const struct pt_secret *pt_stage_secret(const struct pt_stage *s, const struct pt_plan_test *t)
{
    return &server_of(s, t)->secret;
}

/* ---- the asking end */

int pt_stage_enter(const struct pt_stage *s, uint32_t host, struct pt_err *e)
{
    return s->topo.n ? pt_topo_enter(&s->topo, host, e) : 0;
}

static bool is_wanted(const struct pt_addr *a, const struct pt_common *c, bool only_v4)
{
    int family = pt_addr_family(a);
    return c->ipv4 || only_v4 ? family == AF_INET : c->ipv6 ? family == AF_INET6 : true;
}

int pt_stage_ends(const struct pt_stage *s, const struct pt_plan_test *t, uint32_t sender,
                  struct pt_plan *plan, struct pt_addr_list *to, struct pt_err *e)
{
    struct pt_common *c = &plan->common;
    const struct pt_addr_list *all = &server_of(s, t)->at;
    /* Hosts on the loopback differ by their IPv4 address only; ::1 is all of them. */
    const bool loopback = s->topo.n && !s->topo.namespaces && !c->ipv6;
    to->n = 0;
    for (unsigned i = 0; i < all->n; i++)
        if (is_wanted(&all->addr[i], c, loopback))
            to->addr[to->n++] = all->addr[i];
    if (!to->n)
        return pt_fail(e, -EADDRNOTAVAIL, "%s has no IPv%d address here",
                       s->topo.n ? t->to : "the loopback", c->ipv6 ? 6 : 4);
    if (loopback && !c->bind.n) {
        char text[PT_ADDR_TEXT];
        c->bind.n = 1;
        snprintf(c->bind.at[0], sizeof(c->bind.at[0]), "%s",
                 pt_addr_print_ip(&s->topo.host[sender].v4, text));
    }
    return 0;
}
