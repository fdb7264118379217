/* sample_json.c: see sample_json.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/sample_json.h"

#include "host/fingerprint.h"
#include "os/link.h"

#include <math.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERIES_MOST 1000
#define NETS_MOST   PT_NETDEV_MAX

static json_t *real_or_null(double v, bool known)
{
    return known && isfinite(v) ? json_real(v) : json_null();
}

static json_t *count_or_null(int64_t n)
{
    return n >= 0 ? json_integer((json_int_t)n) : json_null();
}

/* ---- CPU */

#define TICKS 8
static const char *const tick_names[TICKS] = {"user_pct",   "nice_pct", "system_pct",  "idle_pct",
                                              "iowait_pct", "irq_pct",  "softirq_pct", "steal_pct"};

static void tick_list(int64_t out[TICKS], const struct pt_host_ticks *t)
{
    const int64_t v[TICKS] = {t->user,   t->nice, t->system,  t->idle,
                              t->iowait, t->irq,  t->softirq, t->steal};
    memcpy(out, v, sizeof(v));
}

/* Shares of the time between two looks, in percent; -1: unknown. A counter that went backwards, as
 * iowait may (proc(5)), stood still. */
static bool shares(double pct[TICKS], const struct pt_host_ticks *from,
                   const struct pt_host_ticks *to)
{
    int64_t a[TICKS], b[TICKS];
    double d[TICKS], all = 0;
    tick_list(a, from);
    tick_list(b, to);
    for (int i = 0; i < TICKS; i++) {
        d[i] = a[i] < 0 || b[i] < 0 ? -1 : b[i] > a[i] ? (double)(b[i] - a[i]) : 0;
        all += d[i] > 0 ? d[i] : 0;
    }
    for (int i = 0; i < TICKS; i++)
        pct[i] = d[i] < 0 || all <= 0 ? -1 : d[i] / all * 100;
    return all > 0;
}

/* idle and iowait are not work. */
static double busy(const double pct[TICKS])
{
    return 100 - (pct[3] > 0 ? pct[3] : 0) - (pct[4] > 0 ? pct[4] : 0);
}

static json_t *cpu_json(const struct pt_host_sample *from, const struct pt_host_sample *to)
{
    double pct[TICKS];
    bool known = shares(pct, &from->all, &to->all);
    json_t *o = json_object(), *each = json_array();
    for (int i = 0; i < TICKS; i++)
        json_object_set_new(o, tick_names[i], real_or_null(pct[i], known && pct[i] >= 0));
    for (unsigned i = 0; i < to->cpu_end; i++) {
        known = shares(pct, &from->cpu[i], &to->cpu[i]);
        json_array_append_new(each, real_or_null(busy(pct), known));
    }
    json_object_set_new(o, "per_cpu", each);
    return o;
}

/* ---- load, memory, processes */

static json_t *memory_json(const struct pt_host_memory *m)
{
    /* As free(1) of procps 4: used is what is not available. */
    int64_t used = m->total >= 0 && m->available >= 0 ? m->total - m->available : -1;
    int64_t cache = m->buffers >= 0 && m->cached >= 0
                        ? m->buffers + m->cached + (m->reclaimable > 0 ? m->reclaimable : 0)
                        : -1;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "total", count_or_null(m->total), "used",
                     count_or_null(used), "free", count_or_null(m->free), "shared",
                     count_or_null(m->shared), "buff_cache", count_or_null(cache), "available",
                     count_or_null(m->available));
}

static json_t *process_json(const struct pt_host_sample *from, const struct pt_host_sample *to)
{
    const struct pt_host_process *a = &from->process, *b = &to->process;
    double hz = (double)sysconf(_SC_CLK_TCK);
    /* Of a process that ended meanwhile nothing is known any more. */
    bool same = a->n == b->n && b->user >= a->user && b->system >= a->system;
    double share = to->memory.total > 0 ? (double)b->res / (double)to->memory.total * 100 : -1;
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o}", "virt", (json_int_t)b->virt, "res",
                     (json_int_t)b->res, "shr", (json_int_t)b->shr, "mem_pct",
                     real_or_null(share, share >= 0), "cpu_user_s",
                     real_or_null((double)(b->user - a->user) / hz, same), "cpu_system_s",
                     real_or_null((double)(b->system - a->system) / hz, same));
}

/* ---- network */

/* Of the interface, in Mbit/s; -1: the driver does not say, or invents it. */
static int64_t speed_of(const char *dev)
{
    struct pt_link link;
    struct pt_err ignored = {0};
    unsigned index = if_nametoindex(dev);
    return index && pt_link_read(&link, index, &ignored) == 0 && link.speed_mbit
               ? (int64_t)link.speed_mbit
               : -1;
}

static double per_second(int64_t n, double s)
{
    return n >= 0 && s > 0 ? (double)n / s : -1;
}

static json_t *rate_json(int64_t n, double s, double unit)
{
    double v = per_second(n, s);
    return real_or_null(v / unit, v >= 0);
}

static json_t *net_json(const struct pt_netstat *d, double s)
{
    json_t *all = json_array();
    for (unsigned i = 0; i < d->devs; i++) {
        const struct pt_netdev *n = &d->dev[i];
        int64_t speed = speed_of(n->name),
                most = n->rx_bytes > n->tx_bytes ? n->rx_bytes : n->tx_bytes;
        double util = speed > 0 ? per_second(most, s) * 8 / ((double)speed * 1e6) * 100 : -1;
        json_t *o = json_pack(
            "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "if", n->name,
            "speed_mbit", count_or_null(speed), "rx_packets_per_s", rate_json(n->rx_packets, s, 1),
            "tx_packets_per_s", rate_json(n->tx_packets, s, 1), "rx_kB_per_s",
            rate_json(n->rx_bytes, s, 1024), "tx_kB_per_s", rate_json(n->tx_bytes, s, 1024),
            "rx_cmp_per_s", rate_json(n->rx_compressed, s, 1), "tx_cmp_per_s",
            rate_json(n->tx_compressed, s, 1), "if_util_pct", real_or_null(util, util >= 0),
            "rx_dropped", count_or_null(n->rx_dropped), "tx_dropped", count_or_null(n->tx_dropped),
            "rx_errors", count_or_null(n->rx_errors), "tx_errors", count_or_null(n->tx_errors));
        json_array_append_new(all, o);
    }
    return all;
}

struct counter {
    const char *name;
    enum pt_netstat_counter v4, v6; /* the same: there is one for both */
};

static const struct counter tcp_counters[] = {
    {"retransmits", PT_NETSTAT_TCP_RETRANS_SEGS, PT_NETSTAT_TCP_RETRANS_SEGS},
    {"timeouts", PT_NETSTAT_TCP_TIMEOUTS, PT_NETSTAT_TCP_TIMEOUTS},
    {"syn_retransmits", PT_NETSTAT_TCP_SYN_RETRANS, PT_NETSTAT_TCP_SYN_RETRANS},
    {"listen_overflows", PT_NETSTAT_TCP_LISTEN_OVERFLOWS, PT_NETSTAT_TCP_LISTEN_OVERFLOWS},
    {"listen_drops", PT_NETSTAT_TCP_LISTEN_DROPS, PT_NETSTAT_TCP_LISTEN_DROPS},
    {"backlog_drops", PT_NETSTAT_TCP_BACKLOG_DROP, PT_NETSTAT_TCP_BACKLOG_DROP},
    {"receive_queue_drops", PT_NETSTAT_TCP_RCVQ_DROP, PT_NETSTAT_TCP_RCVQ_DROP},
    {"pruned", PT_NETSTAT_TCP_PRUNE_CALLED, PT_NETSTAT_TCP_PRUNE_CALLED},
    {"active_opens", PT_NETSTAT_TCP_ACTIVE_OPENS, PT_NETSTAT_TCP_ACTIVE_OPENS},
    {"passive_opens", PT_NETSTAT_TCP_PASSIVE_OPENS, PT_NETSTAT_TCP_PASSIVE_OPENS},
    {"attempt_fails", PT_NETSTAT_TCP_ATTEMPT_FAILS, PT_NETSTAT_TCP_ATTEMPT_FAILS},
    {"resets_sent", PT_NETSTAT_TCP_OUT_RSTS, PT_NETSTAT_TCP_OUT_RSTS},
    {"segments_in", PT_NETSTAT_TCP_IN_SEGS, PT_NETSTAT_TCP_IN_SEGS},
    {"segments_out", PT_NETSTAT_TCP_OUT_SEGS, PT_NETSTAT_TCP_OUT_SEGS},
};

static const struct counter udp_counters[] = {
    {"in_datagrams", PT_NETSTAT_UDP4_IN_DATAGRAMS, PT_NETSTAT_UDP6_IN_DATAGRAMS},
    {"out_datagrams", PT_NETSTAT_UDP4_OUT_DATAGRAMS, PT_NETSTAT_UDP6_OUT_DATAGRAMS},
    {"rcvbuf_errors", PT_NETSTAT_UDP4_RCVBUF_ERRORS, PT_NETSTAT_UDP6_RCVBUF_ERRORS},
    {"sndbuf_errors", PT_NETSTAT_UDP4_SNDBUF_ERRORS, PT_NETSTAT_UDP6_SNDBUF_ERRORS},
    {"in_errors", PT_NETSTAT_UDP4_IN_ERRORS, PT_NETSTAT_UDP6_IN_ERRORS},
    {"no_ports", PT_NETSTAT_UDP4_NO_PORTS, PT_NETSTAT_UDP6_NO_PORTS},
};

static json_t *counters_json(const struct pt_netstat *d, const struct counter *c, size_t n)
{
    json_t *o = json_object();
    for (; n--; c++)
        json_object_set_new(
            o, c->name,
            count_or_null(c->v4 == c->v6 ? d->counter[c->v4] : pt_netstat_sum(d, c->v4, c->v6)));
    return o;
}

/* ---- all of it */

json_t *pt_host_json(const struct pt_host_sample *from, const struct pt_host_sample *to)
{
    double s = (double)(to->at - from->at) / 1e9;
    struct pt_netstat *d = malloc(sizeof(*d));
    if (!d)
        return NULL;
    pt_netstat_sub(d, &to->net, &from->net);
    json_t *o = json_object();
    json_object_set_new(o, "cpus", json_integer(to->cpus));
    json_object_set_new(o, "interval_s", json_real(s));
    json_object_set_new(o, "cpu", cpu_json(from, to));
    json_t *load = json_array();
    for (int i = 0; i < 3; i++)
        json_array_append_new(load, real_or_null(to->load[i], to->load[i] >= 0));
    json_object_set_new(o, "load", load);
    json_object_set_new(
        o, "load_per_cpu",
        real_or_null(to->load[0] / (to->cpus ? to->cpus : 1), to->load[0] >= 0 && to->cpus));
    json_object_set_new(o, "memory", memory_json(&to->memory));
    if (to->process.n)
        json_object_set_new(o, "process", process_json(from, to));
    json_object_set_new(o, "net", net_json(d, s));
    json_object_set_new(o, "tcp", counters_json(d, tcp_counters, PT_COUNT(tcp_counters)));
    json_object_set_new(o, "udp", counters_json(d, udp_counters, PT_COUNT(udp_counters)));
    json_object_set_new(o, "softnet",
                        json_pack("{s:o, s:o, s:o}", "processed",
                                  count_or_null(d->softnet_all.processed), "dropped",
                                  count_or_null(d->softnet_all.dropped), "squeezed",
                                  count_or_null(d->softnet_all.squeezed)));
    free(d);
    return o;
}

/* ---- points */

static const char *const figure_names[PT_HOST_FIGURES] = {
    "user_pct",    "system_pct",  "iowait_pct",       "irq_pct",          "softirq_pct",
    "steal_pct",   "idle_pct",    "busiest_cpu_pct",  "rx_packets_per_s", "tx_packets_per_s",
    "rx_kB_per_s", "tx_kB_per_s", "retransmits_per_s"};

void pt_host_point_make(struct pt_host_point *p, const struct pt_host_sample *from,
                        const struct pt_host_sample *to, double t_s)
{
    double s = (double)(to->at - from->at) / 1e9, pct[TICKS];
    *p = (struct pt_host_point){.t_s = t_s, .span_s = s, .busiest = -1};
    for (int i = 0; i < PT_HOST_FIGURES; i++)
        p->v[i] = -1;
    if (shares(pct, &from->all, &to->all)) {
        p->v[PT_HOST_USER] = pct[0] + (pct[1] > 0 ? pct[1] : 0);
        p->v[PT_HOST_SYSTEM] = pct[2];
        p->v[PT_HOST_IDLE] = pct[3];
        p->v[PT_HOST_IOWAIT] = pct[4];
        p->v[PT_HOST_IRQ] = pct[5];
        p->v[PT_HOST_SOFTIRQ] = pct[6];
        p->v[PT_HOST_STEAL] = pct[7];
    }
    for (unsigned i = 0; i < to->cpu_end; i++)
        if (shares(pct, &from->cpu[i], &to->cpu[i]) && busy(pct) > p->v[PT_HOST_BUSIEST]) {
            p->v[PT_HOST_BUSIEST] = busy(pct);
            p->busiest = (int)i;
        }
    int64_t sum[4] = {0};
    unsigned devs = 0;
    for (unsigned i = 0; i < to->net.devs; i++) {
        const struct pt_netdev *b = &to->net.dev[i], *a = pt_netstat_dev(&from->net, b->name);
        if (!a || b->rx_packets < a->rx_packets || b->tx_packets < a->tx_packets ||
            b->rx_bytes < a->rx_bytes || b->tx_bytes < a->tx_bytes)
            continue;
        devs++;
        sum[0] += b->rx_packets - a->rx_packets;
        sum[1] += b->tx_packets - a->tx_packets;
        sum[2] += b->rx_bytes - a->rx_bytes;
        sum[3] += b->tx_bytes - a->tx_bytes;
    }
    for (int i = 0; i < 4 && devs; i++)
        p->v[PT_HOST_RX_PACKETS + i] = per_second(sum[i], s) / (i < 2 ? 1 : 1024);
    int64_t a = from->net.counter[PT_NETSTAT_TCP_RETRANS_SEGS],
            b = to->net.counter[PT_NETSTAT_TCP_RETRANS_SEGS];
    if (a >= 0 && b >= a)
        p->v[PT_HOST_RETRANSMITS] = per_second(b - a, s);
}

void pt_host_point_join(struct pt_host_point *first, const struct pt_host_point *second)
{
    double all = first->span_s + second->span_s;
    for (int i = 0; i < PT_HOST_FIGURES; i++) {
        double *a = &first->v[i], b = second->v[i];
        if (i == PT_HOST_BUSIEST) {
            first->busiest = b > *a ? second->busiest : first->busiest;
            *a = b > *a ? b : *a;
        } else {
            *a = *a < 0 || b < 0 || all <= 0 ? -1 : (*a * first->span_s + b * second->span_s) / all;
        }
    }
    first->t_s = second->t_s;
    first->span_s = all;
}

json_t *pt_host_point_json(const struct pt_host_point *p)
{
    json_t *o = json_pack("{s:f, s:f, s:o}", "t_s", p->t_s, "span_s", p->span_s, "busiest_cpu",
                          count_or_null(p->busiest));
    for (int i = 0; i < PT_HOST_FIGURES; i++)
        /* In hundredths: a peer's message has a limit. */
        json_object_set_new(o, figure_names[i],
                            real_or_null(round(p->v[i] * 100) / 100, p->v[i] >= 0));
    return o;
}

/* ---- from a peer */

static bool is_figure(const json_t *v)
{
    return json_is_null(v) || (json_is_number(v) && json_number_value(v) >= -1e-9);
}

static void copy_figure(json_t *to, const json_t *from, const char *key)
{
    json_t *v = json_object_get(from, key);
    if (v && is_figure(v))
        json_object_set(to, key, v);
}

static json_t *copy_figures(const json_t *from, const char *const *keys, size_t n)
{
    json_t *o = json_object();
    for (size_t i = 0; i < n; i++)
        copy_figure(o, from, keys[i]);
    return o;
}

static json_t *copy_list(const json_t *from, size_t most)
{
    json_t *to = json_array();
    for (size_t i = 0; i < json_array_size(from) && i < most; i++) {
        json_t *v = json_array_get(from, i);
        json_array_append_new(to, is_figure(v) ? json_incref(v) : json_null());
    }
    return to;
}

json_t *pt_host_clean(const json_t *from)
{
    static const char *const plain[] = {"cpus", "interval_s", "load_per_cpu"};
    static const char *const memory[] = {"total",  "used",       "free",
                                         "shared", "buff_cache", "available"};
    static const char *const process[] = {"virt",    "res",        "shr",
                                          "mem_pct", "cpu_user_s", "cpu_system_s"};
    static const char *const softnet[] = {"processed", "dropped", "squeezed"};
    static const char *const net[] = {"speed_mbit",   "rx_packets_per_s", "tx_packets_per_s",
                                      "rx_kB_per_s",  "tx_kB_per_s",      "rx_cmp_per_s",
                                      "tx_cmp_per_s", "if_util_pct",      "rx_dropped",
                                      "tx_dropped",   "rx_errors",        "tx_errors"};
    static const char *const point[] = {"t_s", "span_s", "busiest_cpu"};
    const json_t *cpu = json_object_get(from, "cpu");
    if (!json_is_object(from) || !json_is_object(cpu))
        return NULL;
    json_t *o = copy_figures(from, plain, PT_COUNT(plain));
    json_t *c = copy_figures(cpu, tick_names, TICKS);
    json_object_set_new(c, "per_cpu", copy_list(json_object_get(cpu, "per_cpu"), PT_CPU_MAX));
    json_object_set_new(o, "cpu", c);
    json_object_set_new(o, "load", copy_list(json_object_get(from, "load"), 3));
    json_object_set_new(o, "memory",
                        copy_figures(json_object_get(from, "memory"), memory, PT_COUNT(memory)));
    if (json_is_object(json_object_get(from, "process")))
        json_object_set_new(
            o, "process",
            copy_figures(json_object_get(from, "process"), process, PT_COUNT(process)));
    json_object_set_new(o, "softnet",
                        copy_figures(json_object_get(from, "softnet"), softnet, PT_COUNT(softnet)));
    json_t *tcp = json_object(), *udp = json_object(), *nets = json_array(), *series = json_array();
    for (size_t i = 0; i < PT_COUNT(tcp_counters); i++)
        copy_figure(tcp, json_object_get(from, "tcp"), tcp_counters[i].name);
    for (size_t i = 0; i < PT_COUNT(udp_counters); i++)
        copy_figure(udp, json_object_get(from, "udp"), udp_counters[i].name);
    const json_t *theirs = json_object_get(from, "net");
    for (size_t i = 0; i < json_array_size(theirs) && i < NETS_MOST; i++) {
        json_t *n = json_array_get(theirs, i), *name = json_object_get(n, "if");
        if (!json_is_string(name) || json_string_length(name) >= 16)
            continue;
        json_t *mine = copy_figures(n, net, PT_COUNT(net));
        json_object_set(mine, "if", name);
        json_array_append_new(nets, mine);
    }
    theirs = json_object_get(from, "series");
    for (size_t i = 0; i < json_array_size(theirs) && i < SERIES_MOST; i++) {
        const json_t *p = json_array_get(theirs, i);
        json_t *mine = copy_figures(p, point, PT_COUNT(point));
        for (int k = 0; k < PT_HOST_FIGURES; k++)
            copy_figure(mine, p, figure_names[k]);
        json_array_append_new(series, mine);
    }
    json_object_set_new(o, "tcp", tcp);
    json_object_set_new(o, "udp", udp);
    json_object_set_new(o, "net", nets);
    json_object_set_new(o, "series", series);
    json_object_set_new(o, "sampling",
                        copy_figures(json_object_get(from, "sampling"),
                                     (const char *const[]){"cpu_pct", "samples"}, 2));
    json_t *environment = pt_fingerprint_clean(json_object_get(from, "environment"));
    if (environment)
        json_object_set_new(o, "environment", environment);
    return o;
}
