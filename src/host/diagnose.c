/* diagnose.c: see diagnose.h. The table at the end is the whole of it; each rule above reads the
 * facts it needs and says how sure it is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/diagnose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_PCT                                                                                   \
    92.0 /* a CPU that has nothing left; sampling and the rest of the system take some */
#define LOSS_PCT 0.05 /* what is worth a word */

struct facts {
    const struct pt_result *r;
    bool bulk, closed, udp, reverse;
    bool wants_more; /* it would have taken more than it got */
    double lost, loss_pct, errors, operations;
    const json_t *sender, *receiver; /* entries of `hosts`; NULL: unknown */
    bool one_machine;
    double sender_cpus, receiver_cpus; /* CPU seconds per second of each end's workers; -1 */
};

/* What a rule found. `score` 0: it does not apply; the highest is named first. */
struct finding {
    double score;
    char where[160], evidence[400];
};

static double real(const struct pt_result *r, const char *path, double otherwise)
{
    double v = otherwise;
    return pt_result_get_real(r, path, &v) ? v : otherwise;
}

static double number(const json_t *object, const char *group, const char *key)
{
    const json_t *o = group ? json_object_get(object, group) : object;
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : -1;
}

static const char *name_of(const json_t *host)
{
    const char *name = json_string_value(json_object_get(host, "name"));
    return name ? name : "";
}

static bool is(const struct pt_result *r, const char *path, const char *text)
{
    const char *v = pt_result_get_str(r, path);
    return v && strcmp(v, text) == 0;
}

static void share_cpus(struct facts *f)
{
    double s = real(f->r, "duration_s", 0), all = real(f->r, "cost.cpu_s", -1);
    double ours = real(f->r, "generator.cpu_pct", -1) / 100 * real(f->r, "placement.workers", 0);
    double theirs = all >= 0 && s > 0 ? all / s - ours : -1;
    f->sender_cpus = f->reverse ? theirs : ours;
    f->receiver_cpus = f->reverse ? ours : theirs;
}

static void gather(struct facts *f, const struct pt_result *r)
{
    *f = (struct facts){.r = r};
    bool bw = is(r, "test.workload", "bw"), pps = is(r, "test.workload", "pps");
    f->bulk = bw || pps;
    f->udp = pps || json_is_true(pt_result_at(r, "test.params.udp"));
    f->closed = is(r, "test.load.mode", "closed");
    f->reverse = json_is_true(pt_result_at(r, "test.params.reverse"));
    f->lost = real(r, "totals.lost_packets", 0);
    f->loss_pct = real(r, "rates.loss_pct", 0);
    f->operations = real(r, "totals.operations", 0);
    const char *kind;
    json_t *n;
    json_object_foreach(pt_result_at(r, "totals.errors"), kind, n)
    {
        f->errors += json_number_value(n);
    }
    bool short_of = json_is_false(pt_result_at(r, "generator.valid"));
    f->wants_more = (f->bulk && f->closed && real(r, "totals.errors.connect", 0) <= 0) || short_of;
    const json_t *hosts = pt_result_at(r, "hosts");
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *h = json_array_get(hosts, i);
        const char *role = json_string_value(json_object_get(h, "role"));
        bool both = role && strcmp(role, "both") == 0;
        if (role && (both || strcmp(role, "sender") == 0) && !f->sender)
            f->sender = h;
        if (role && (both || strcmp(role, "receiver") == 0) && (!f->receiver || i == 1))
            f->receiver = h;
    }
    const char *here = pt_result_get_str(r, "local.boot_id");
    const char *there = pt_result_get_str(r, "peer.boot_id");
    f->one_machine = here && there && strcmp(here, there) == 0;
    share_cpus(f);
}

/* ---- the rules */

static bool was_said(const struct facts *f, const char *part)
{
    const json_t *all = pt_result_at(f->r, "warnings");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *text = json_string_value(json_array_get(all, i));
        if (text && strstr(text, part))
            return true;
    }
    return false;
}

static void descriptors(const struct facts *f, struct finding *out)
{
    if (!was_said(f, "Too many open files"))
        return;
    out->score = 100;
    snprintf(out->evidence, sizeof(out->evidence), "the kernel refused to open more descriptors");
}

static void ports(const struct facts *f, struct finding *out)
{
    if (!was_said(f, "Cannot assign requested address"))
        return;
    out->score = 100;
    snprintf(out->evidence, sizeof(out->evidence),
             "the kernel had no local port left for a connection to this address");
}

static void backlog(const struct facts *f, struct finding *out)
{
    double n = number(f->receiver, "tcp", "listen_overflows");
    if (n <= 0 || (f->errors <= 0 && n < 0.01 * f->operations))
        return;
    out->score = 95;
    snprintf(out->where, sizeof(out->where), "%s", name_of(f->receiver));
    snprintf(out->evidence, sizeof(out->evidence),
             "%.0f connections found the listener's queue full (ListenOverflows)", n);
}

static const json_t *fullest_link(const json_t *host)
{
    const json_t *nets = json_object_get(host, "net"), *most = NULL;
    for (size_t i = 0; i < json_array_size(nets); i++) {
        const json_t *net = json_array_get(nets, i);
        if (number(net, NULL, "if_util_pct") > (most ? number(most, NULL, "if_util_pct") : 0))
            most = net;
    }
    return most;
}

static const json_t *stage(const struct facts *f, const char *name)
{
    const json_t *path = pt_result_at(f->r, "path");
    for (size_t i = 0; i < json_array_size(path); i++) {
        const json_t *s = json_array_get(path, i);
        const char *is_called = json_string_value(json_object_get(s, "stage"));
        if (is_called && strcmp(is_called, name) == 0)
            return s;
    }
    return NULL;
}

static void link_rate(const struct facts *f, struct finding *out)
{
    const json_t *net = fullest_link(f->sender);
    double util = net ? number(net, NULL, "if_util_pct") : -1;
    if (f->wants_more && util >= BUSY_PCT) {
        out->score = 92;
        snprintf(out->where, sizeof(out->where), "%s of %s",
                 json_string_value(json_object_get(net, "if")), name_of(f->sender));
        snprintf(out->evidence, sizeof(out->evidence),
                 "the interface was %.0f %% used, of %.0f Mbit/s", util,
                 number(net, NULL, "speed_mbit"));
        return;
    }
    const json_t *nic = stage(f, "nic_sent");
    double lost = nic ? number(nic, NULL, "lost_here") : -1;
    if (f->loss_pct < LOSS_PCT || lost < f->lost / 2 || lost <= 0)
        return;
    const char *why = json_string_value(json_object_get(nic, "evidence"));
    out->score = 90;
    snprintf(out->where, sizeof(out->where), "%s", name_of(f->sender));
    snprintf(out->evidence, sizeof(out->evidence),
             "%.0f of %.0f lost packets never left the sender's interface%s%.250s", lost, f->lost,
             why ? ": " : "", why ? why : "");
}

/* The busiest CPU of a host, in percent; -1: unknown. */
static double busiest(const json_t *host, size_t *which)
{
    const json_t *each = json_object_get(json_object_get(host, "cpu"), "per_cpu");
    double most = -1;
    for (size_t i = 0; i < json_array_size(each); i++) {
        const json_t *v = json_array_get(each, i);
        if (json_is_number(v) && json_number_value(v) > most) {
            most = json_number_value(v);
            *which = i;
        }
    }
    return most;
}

static void receive_buffer(const struct facts *f, struct finding *out)
{
    double dropped = number(f->receiver, "udp", "rcvbuf_errors");
    if (!f->udp || f->loss_pct < LOSS_PCT || dropped <= 0 || dropped < f->lost / 2)
        return;
    /* Where the receiver cannot follow, no buffer is large enough. */
    size_t cpu;
    bool slow = f->wants_more && busiest(f->receiver, &cpu) >= BUSY_PCT;
    out->score = slow ? 60 : 91;
    snprintf(out->where, sizeof(out->where), "%s", name_of(f->receiver));
    snprintf(out->evidence, sizeof(out->evidence),
             "%.0f datagrams found the socket's buffer full (RcvbufErrors), %.0f were lost in all",
             dropped, f->lost);
}

static void softnet(const struct facts *f, struct finding *out)
{
    double dropped = number(f->receiver, "softnet", "dropped");
    if (f->loss_pct < LOSS_PCT || dropped <= 0 || dropped < f->lost / 2)
        return;
    out->score = 85;
    snprintf(out->where, sizeof(out->where), "%s", name_of(f->receiver));
    snprintf(out->evidence, sizeof(out->evidence),
             "%.0f packets found a CPU's backlog full (softnet_stat)", dropped);
}

static bool cpu(const struct facts *f, const json_t *host, struct finding *out)
{
    size_t which = 0;
    double busy = busiest(host, &which);
    if (!f->wants_more || !f->bulk || busy < BUSY_PCT)
        return false;
    snprintf(out->where, sizeof(out->where), "CPU %zu of %s", which, name_of(host));
    snprintf(
        out->evidence, sizeof(out->evidence),
        "that CPU was %.0f %% busy; of all CPUs system took %.0f %%, softirq %.0f %%, user %.0f "
        "%%; the sender's workers used %.2f CPUs, the receiver's %.2f",
        busy, number(host, "cpu", "system_pct"), number(host, "cpu", "softirq_pct"),
        number(host, "cpu", "user_pct"), f->sender_cpus, f->receiver_cpus);
    out->score = 80;
    return true;
}

/* On one machine both ends see the same CPUs: it is the end whose workers use more. */
static void sender_cpu(const struct facts *f, struct finding *out)
{
    if (cpu(f, f->sender, out) && f->one_machine && f->receiver_cpus > f->sender_cpus)
        out->score = 0;
}

static void receiver_cpu(const struct facts *f, struct finding *out)
{
    if (cpu(f, f->receiver, out) && f->one_machine && f->receiver_cpus <= f->sender_cpus)
        out->score = 0;
}

static void steal(const struct facts *f, struct finding *out)
{
    const json_t *const hosts[] = {f->sender, f->receiver};
    for (int i = 0; i < 2; i++) {
        double pct = number(hosts[i], "cpu", "steal_pct");
        if (!(f->wants_more || f->errors > 0) || pct < 5 || 45 + pct < out->score)
            continue;
        out->score = 45 + pct;
        snprintf(out->where, sizeof(out->where), "%s", name_of(hosts[i]));
        snprintf(out->evidence, sizeof(out->evidence), "the host took %.1f %% of the CPU time away",
                 pct);
    }
}

/* Most flows of a TCP flood are held back by `by`, and no CPU is. */
static bool flows_held(const struct facts *f, const char *by, struct finding *out)
{
    const json_t *flows = pt_result_at(f->r, "flows");
    size_t n = 0, of = 0, which;
    if (f->udp || !f->bulk || !f->closed || busiest(f->sender, &which) >= BUSY_PCT ||
        busiest(f->receiver, &which) >= BUSY_PCT)
        return false;
    for (size_t i = 0; i < json_array_size(flows); i++) {
        const char *l = json_string_value(json_object_get(json_array_get(flows, i), "limited_by"));
        of += l != NULL;
        n += l && strcmp(l, by) == 0;
    }
    if (!n || 2 * n < of)
        return false;
    out->score = 75;
    snprintf(out->evidence, sizeof(out->evidence),
             "%zu of %zu connections waited for it most of their time (TCP_INFO)", n, of);
    return true;
}

static void receiver_window(const struct facts *f, struct finding *out)
{
    if (flows_held(f, "receiver window", out))
        snprintf(out->where, sizeof(out->where), "%s", name_of(f->receiver));
}

static void send_buffer(const struct facts *f, struct finding *out)
{
    if (flows_held(f, "send buffer", out))
        snprintf(out->where, sizeof(out->where), "%s", name_of(f->sender));
}

static void congestion(const struct facts *f, struct finding *out)
{
    double again = real(f->r, "totals.retransmits", 0);
    if (!flows_held(f, "congestion window", out))
        return;
    size_t used = strlen(out->evidence);
    snprintf(out->evidence + used, sizeof(out->evidence) - used, "; %.0f retransmits; %s", again,
             pt_result_get_str(f->r, "congestion_control")
                 ? pt_result_get_str(f->r, "congestion_control")
                 : "congestion control unknown");
}

static void generator(const struct facts *f, struct finding *out)
{
    if (!json_is_false(pt_result_at(f->r, "generator.valid")))
        return;
    out->score = 50;
    snprintf(out->evidence, sizeof(out->evidence),
             "it was late or short of its rate; its workers used %.0f %% of their CPUs",
             real(f->r, "generator.cpu_pct", 0));
}

static const struct rule {
    const char *what;
    void (*look)(const struct facts *f, struct finding *out);
    const char *advice;
} rules[] = {
    {"open files", descriptors, "raise the limit of open files (ulimit -n), or fewer connections"},
    {"local ports", ports,
     "widen net.ipv4.ip_local_port_range, or several source addresses with --bind"},
    {"listen backlog", backlog,
     "raise net.core.somaxconn and net.ipv4.tcp_max_syn_backlog on the listening host"},
    {"link rate", link_rate, "this is what the link carries; a faster one, or a lower --rate"},
    {"receive buffer", receive_buffer,
     "a larger --rcvbuf (net.core.rmem_max bounds it), or a lower --rate"},
    {"receiver backlog", softnet,
     "raise net.core.netdev_max_backlog, and spread the work of receiving over CPUs (RSS, RPS)"},
    {"sender CPU", sender_cpu,
     "more workers or connections where there are CPUs left; segmentation offload; larger "
     "messages"},
    {"receiver CPU", receiver_cpu,
     "more connections, so that receiving is spread over CPUs; receive offload; larger messages"},
    {"steal time", steal, "a less crowded host, or dedicated CPUs"},
    {"receiver window", receiver_window, "a larger --rcvbuf, or net.ipv4.tcp_rmem"},
    {"send buffer", send_buffer, "a larger --sndbuf, or net.ipv4.tcp_wmem"},
    {"congestion window", congestion,
     "look for loss on the way, or try another congestion control with --cc"},
    {"generator", generator, "a lower --rate, more --workers, or a machine of its own"},
};

struct ranked {
    const struct rule *rule;
    struct finding found;
};

static int surer(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->found.score != y->found.score)
        return x->found.score < y->found.score ? 1 : -1;
    return x->rule < y->rule ? -1 : 1;
}

void pt_diagnose(struct pt_result *r)
{
    struct facts f;
    struct ranked all[PT_COUNT(rules)] = {{0}};
    size_t n = 0;
    gather(&f, r);
    for (size_t i = 0; i < PT_COUNT(rules); i++) {
        all[n] = (struct ranked){.rule = &rules[i]};
        rules[i].look(&f, &all[n].found);
        n += all[n].found.score > 0;
    }
    qsort(all, n, sizeof(all[0]), surer);
    for (size_t i = 0; i < n; i++)
        pt_result_append(r, "limited_by",
                         json_pack("{s:s, s:s?, s:s, s:s}", "what", all[i].rule->what, "where",
                                   all[i].found.where[0] ? all[i].found.where : NULL, "evidence",
                                   all[i].found.evidence, "advice", all[i].rule->advice));
}
