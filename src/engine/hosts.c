/* hosts.c: see hosts.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/hosts.h"

#include "host/fingerprint.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct pt_host_watch *pt_hosts_watch(const struct pt_job *job, pt_ns begin)
{
    pid_t pid[PT_HOST_PIDS] = {getpid()};
    unsigned n = 1;
    for (unsigned i = 0; i < job->spec.workers && n < PT_HOST_PIDS; i++)
        if (job->child[i].pid)
            pid[n++] = job->child[i].pid;
    return pt_host_watch_open(pid, n, begin, PT_S);
}

json_t *pt_hosts_json(const struct pt_host_watch *w)
{
    json_t *host = pt_host_watch_json(w);
    if (host)
        json_object_set_new(host, "environment", pt_fingerprint(""));
    return host;
}

/* One entry: who it was, and what it did. */
static void add(struct pt_result *r, json_t *host, const char *end, const char *role)
{
    const json_t *identity = pt_result_at(r, end);
    json_t *o = json_object();
    json_t *name = json_object_get(identity, "host"), *kernel = json_object_get(identity, "kernel");
    json_object_set_new(o, "name", name ? json_incref(name) : json_string(""));
    json_object_set_new(o, "role", json_string(role));
    if (kernel)
        json_object_set(o, "kernel", kernel);
    json_object_update(o, host);
    json_object_del(o, "environment");
    pt_result_append(r, "hosts", o);
    json_t *environment = json_object_get(host, "environment");
    if (environment) {
        char path[32];
        snprintf(path, sizeof(path), "environment.%s", end);
        pt_result_take(r, path, json_incref(environment));
    }
}

void pt_report_hosts(const struct pt_report *rep, struct pt_result *r)
{
    const struct pt_shape *s = rep->shape;
    bool forward = s->forward > 0, reverse = s->forward < s->flows;
    bool each = s->both || (forward && reverse);
    json_t *peer = rep->peer ? rep->peer->host : NULL;
    if (rep->local->host)
        add(r, rep->local->host, "local",
            rep->one_net || each ? "both"
            : forward            ? "sender"
                                 : "receiver");
    if (peer && !(rep->one_net && rep->local->host))
        add(r, peer, "peer", rep->one_net || each ? "both" : forward ? "receiver" : "sender");
}
