/* common.c: the options that every measurement has, and the types with a syntax of their own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/plan.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- boost: conns:100,rate:50k,every:30s,until:p99>50ms|flat */

static int parse_until(const char *text, struct pt_boost *b, struct pt_err *e)
{
    char word[64];
    while (*text) {
        size_t n = strcspn(text, "|");
        snprintf(word, sizeof(word), "%.*s", (int)n, text);
        if (!strcmp(word, "flat")) {
            b->until_flat = true;
        } else if (!strncmp(word, "p99>", 4)) {
            int rc = pt_time_parse(word + 4, &b->until_p99, e);
            if (rc < 0)
                return rc;
        } else {
            return pt_fail(e, -EINVAL, "until: expected p99>T, flat or both joined by |");
        }
        text += n;
        if (*text && !*++text)
            return pt_fail(e, -EINVAL, "until: nothing behind |");
    }
    return 0;
}

static int parse_step(const char *key, const char *value, struct pt_boost *b, struct pt_err *e)
{
    if (!strcmp(key, "conns")) {
        uint64_t n = 0;
        int rc = pt_count_parse(value, &n, e);
        if (!rc && (!n || n > 1000000))
            return pt_fail(e, -EINVAL, "conns: expected 1 to 1000000 connections per step");
        b->connections = (uint32_t)n;
        return rc;
    }
    if (!strcmp(key, "rate"))
        return pt_rate_parse(value, &b->rate, e);
    if (!strcmp(key, "every"))
        return pt_time_parse(value, &b->every, e);
    if (!strcmp(key, "until"))
        return parse_until(value, b, e);
    return pt_fail(e, -EINVAL,
                   "expected conns:N, rate:R, every:T and until:COND, joined by commas");
}

static int parse_boost(const char *text, void *field, struct pt_err *e)
{
    struct pt_boost b = {.every = 10 * PT_S};
    char part[128];
    while (*text) {
        size_t n = strcspn(text, ",");
        if (n >= sizeof(part))
            return pt_fail(e, -EINVAL, "a part is too long");
        memcpy(part, text, n);
        part[n] = '\0';
        char *value = strchr(part, ':');
        if (value)
            *value++ = '\0';
        int rc = parse_step(part, value ? value : "", &b, e);
        if (rc < 0)
            return rc;
        text += n + (text[n] == ',');
    }
    if (!b.connections && !(b.rate.per_s > 0))
        return pt_fail(e, -EINVAL, "a step needs conns:N, rate:R or both");
    if (b.every < 100 * PT_MS)
        return pt_fail(e, -EINVAL, "every: expected 100ms or more");
    if (!b.until_p99 && !b.until_flat)
        b.until_flat = true;
    memcpy(field, &b, sizeof(b));
    return 0;
}

static void print_boost(const void *field, struct pt_buf *out)
{
    const struct pt_boost *b = field;
    char t[PT_UNITS_TEXT];
    if (!b->every)
        return;
    if (b->connections)
        pt_buf_addf(out, "conns:%u,", b->connections);
    if (b->rate.per_s > 0)
        pt_buf_addf(out, "rate:%s,", pt_rate_print(t, sizeof(t), b->rate));
    pt_buf_addf(out, "every:%s,until:", pt_time_print(t, sizeof(t), b->every));
    if (b->until_p99)
        pt_buf_addf(out, "p99>%s", pt_time_print(t, sizeof(t), b->until_p99));
    if (b->until_flat)
        pt_buf_addf(out, "%sflat", b->until_p99 ? "|" : "");
}

/* ---- ports: 40000-50000, or one */

static int parse_port(const char *text, size_t n, uint16_t *port)
{
    char word[8];
    uint64_t v = 0;
    if (!n || n >= sizeof(word) || strspn(text, "0123456789") < n)
        return -EINVAL;
    memcpy(word, text, n);
    word[n] = '\0';
    if (pt_count_parse(word, &v, NULL) < 0 || !v || v > UINT16_MAX)
        return -EINVAL;
    *port = (uint16_t)v;
    return 0;
}

static int parse_ports(const char *text, void *field, struct pt_err *e)
{
    struct pt_ports p = {0};
    size_t n = strcspn(text, "-");
    if (n && strspn(text, "0") == n)
        return pt_fail(e, -EINVAL, "0 is no port; the lowest is 1");
    const char *last = text[n] ? text + n + 1 : text;
    if (parse_port(text, n, &p.first) < 0 || parse_port(last, strlen(last), &p.last) < 0 ||
        p.first > p.last)
        return pt_fail(e, -EINVAL, "expected a range of ports such as 40000-50000");
    memcpy(field, &p, sizeof(p));
    return 0;
}

static void print_ports(const void *field, struct pt_buf *out)
{
    const struct pt_ports *p = field;
    if (p->first)
        pt_buf_addf(out, "%u-%u", p->first, p->last);
}

/* ---- cpus */

static int parse_cpus(const char *text, void *field, struct pt_err *e)
{
    return pt_cpu_parse(field, text, e);
}

static void print_cpus(const void *field, struct pt_buf *out)
{
    const struct pt_cpu_list *l = field;
    for (unsigned i = 0; i < l->n; i++)
        pt_buf_addf(out, "%s%u", i ? "," : "", l->cpu[i]);
}

static const struct pt_opt_kind boost_kind = {parse_boost, print_boost};
static const struct pt_opt_kind ports_kind = {parse_ports, print_ports};
static const struct pt_opt_kind cpus_kind = {parse_cpus, print_cpus};

static const char *const arrivals_names[] = {"uniform", "poisson", NULL};
static const char *const engine_names[] = {"auto", "uring", "epoll", NULL};

#define FIELD(field, type) PT_OPT_FIELD(struct pt_common, field, type)

/* clang-format off */
const struct pt_opt pt_common_opts[] = {
    {FIELD(connections, PT_OPT_U32), .name = "connections", .letter = 'c', .metavar = "N",
     .fallback = "1", .min = 1, .max = 10000000, .flags = PT_OPT_PEER, .group = "Load",
     .help = "connections in all"},
    {FIELD(workers, PT_OPT_U32), .name = "workers", .letter = 't', .metavar = "N", .min = 1,
     .max = 1024,
     .help = "worker processes at each end (default: one per CPU, no more than connections)"},
    {FIELD(duration, PT_OPT_TIME), .name = "duration", .letter = 'd', .metavar = "T",
     .fallback = "10s", .max = 366ULL * 86400 * 1000000000, .flags = PT_OPT_PEER,
     .help = "measured time, after the warm-up"},
    {FIELD(requests, PT_OPT_COUNT), .name = "requests", .letter = 'n', .metavar = "N",
     .flags = PT_OPT_PEER, .help = "operations per connection, instead of a duration"},
    {FIELD(warmup, PT_OPT_TIME), .name = "warmup", .metavar = "T", .fallback = "1s",
     .max = 86400ULL * 1000000000, .flags = PT_OPT_PEER,
     .help = "time before the figures begin; excluded from them"},
    {FIELD(rate, PT_OPT_RATE), .name = "rate", .letter = 'r', .metavar = "R", .flags = PT_OPT_PEER,
     .help = "open loop: operations per second in all (default: closed loop, an operation "
             "starts when one ends)"},
    {FIELD(arrivals, PT_OPT_ENUM), .name = "arrivals", .names = arrivals_names,
     .fallback = "uniform", .help = "spacing of the operations of an open loop: even, or at random"},
    {FIELD(inflight, PT_OPT_U32), .name = "inflight", .metavar = "K", .fallback = "1", .min = 1,
     .max = 65536, .flags = PT_OPT_PEER, .help = "closed loop: operations outstanding per connection"},
    {FIELD(boost, PT_OPT_CUSTOM), .name = "boost", .metavar = "SPEC", .kind = &boost_kind,
     .help = "add load step by step until it no longer pays, for instance "
             "conns:100,rate:50k,every:30s,until:p99>50ms|flat"},
    {FIELD(size, PT_OPT_SIZE), .name = "size", .letter = 's', .metavar = "N",
     .max = (uint64_t)1 << 40, .flags = PT_OPT_PEER, .help = "message size in bytes"},
    {FIELD(timeout, PT_OPT_TIME), .name = "timeout", .metavar = "T", .fallback = "10s",
     .min = 1000000, .max = 86400ULL * 1000000000, .flags = PT_OPT_PEER,
     .help = "an operation older than this is an error; it still enters the histogram"},
    {FIELD(repeat, PT_OPT_U32), .name = "repeat", .metavar = "N", .fallback = "1", .min = 1,
     .max = 1000, .help = "run the whole test N times: median, spread, and whether they agree"},

    {FIELD(via, PT_OPT_STRING), .name = "via", .metavar = "CHANNEL", .flags = PT_OPT_PEER,
     .group = "Path", .help = "what carries the test: tcp, or udp, which is the same as --udp"},
    {FIELD(peer, PT_OPT_STRING), .name = "peer", .metavar = "TOOL", .flags = PT_OPT_LOCAL,
     .help = "HOST is the stock server of another tool"},
    {FIELD(bind, PT_OPT_LIST), .name = "bind", .metavar = "ADDR[,...]", .flags = PT_OPT_COMMAS,
     .help = "source addresses; connections are spread over several"},
    {FIELD(ports, PT_OPT_CUSTOM), .name = "ports", .metavar = "A-B", .kind = &ports_kind,
     .help = "source ports, one per connection"},
    {FIELD(ipv4, PT_OPT_BOOL), .name = "ipv4", .letter = '4', .help = "IPv4 only"},
    {FIELD(ipv6, PT_OPT_BOOL), .name = "ipv6", .letter = '6', .help = "IPv6 only"},
    {FIELD(tos, PT_OPT_U32), .name = "tos", .metavar = "N", .max = 255, .flags = PT_OPT_PEER,
     .help = "type of service byte (DSCP and ECN) of every packet, such as 0xb8"},
    {FIELD(mss, PT_OPT_U32), .name = "mss", .metavar = "N", .max = 65535, .flags = PT_OPT_PEER,
     .help = "TCP maximum segment size in bytes"},
    {FIELD(cc, PT_OPT_STRING), .name = "cc", .metavar = "NAME", .flags = PT_OPT_PEER,
     .help = "TCP congestion control, such as cubic or bbr (default: the system's)"},
    {FIELD(sndbuf, PT_OPT_SIZE), .name = "sndbuf", .metavar = "N", .max = (uint64_t)1 << 31,
     .flags = PT_OPT_PEER, .help = "socket send buffer in bytes (default: the system's)"},
    {FIELD(rcvbuf, PT_OPT_SIZE), .name = "rcvbuf", .metavar = "N", .max = (uint64_t)1 << 31,
     .flags = PT_OPT_PEER, .help = "socket receive buffer in bytes (default: the system's)"},
    {FIELD(secret_file, PT_OPT_STRING), .name = "secret-file", .metavar = "F",
     .flags = PT_OPT_LOCAL, .help = "file with the secret of the server: both prove that they know it"},

    {FIELD(cpus, PT_OPT_CUSTOM), .name = "cpus", .metavar = "LIST", .kind = &cpus_kind,
     .group = "This machine", .help = "CPUs to pin the workers to, in order: 0,2,4-7"},
    {FIELD(engine, PT_OPT_ENUM), .name = "engine", .names = engine_names, .fallback = "auto",
     .help = "event loop: io_uring or epoll; auto takes the faster one for the test, by a "
             "probe where it is not known"},

    {FIELD(interval, PT_OPT_TIME), .name = "interval", .letter = 'i', .metavar = "T",
     .fallback = "1s", .min = 10000000, .max = 3600ULL * 1000000000, .flags = PT_OPT_PEER,
     .group = "Report", .help = "time between live lines, and between the rows of the series"},
    {FIELD(expect, PT_OPT_LIST), .name = "expect", .metavar = "'p99<5ms'",
     .help = "threshold, also loss<=0.1%, rx_bits_per_s>=10gbit; several allowed; exit status 3 "
             "when one is not held"},
    {0},
};
/* clang-format on */
