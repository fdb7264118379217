/* host.c: `pitot host`: what this machine does, as top, free, uptime and sar would say it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "cmd/output.h"
#include "host/watch.h"
#include "net/identity.h"
#include "os/clock.h"
#include "os/signal.h"
#include "sink/page.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CPUS_SHOWN 16 /* of more only the busiest */
#define TEXT_MOST  ((size_t)64 << 10)

struct host_opts {
    pt_ns interval, duration;
    uint64_t count;
    struct pt_strs pid, dev;
};

static const char *const without[] = {"csv", "html", NULL};

static const struct pt_opt own_opts[] = {
    {PT_OPT_FIELD(struct host_opts, interval, PT_OPT_TIME), .name = "interval", .letter = 'i',
     .metavar = "T", .fallback = "1s", .min = 100 * PT_MS, .max = 3600 * (uint64_t)PT_S,
     .group = "What and how long", .help = "one view per interval, 100ms at least"},
    {PT_OPT_FIELD(struct host_opts, duration, PT_OPT_TIME), .name = "duration", .letter = 'd',
     .metavar = "T", .max = 365 * 86400 * (uint64_t)PT_S,
     .help = "ends after so long (default: with Ctrl-C)"},
    {PT_OPT_FIELD(struct host_opts, count, PT_OPT_COUNT), .name = "count", .letter = 'n',
     .metavar = "N", .help = "ends after so many intervals"},
    {PT_OPT_FIELD(struct host_opts, pid, PT_OPT_LIST), .name = "pid", .metavar = "N",
     .flags = PT_OPT_COMMAS, .help = "also these processes, added up"},
    {PT_OPT_FIELD(struct host_opts, dev, PT_OPT_LIST), .name = "if", .metavar = "NAME",
     .flags = PT_OPT_COMMAS, .help = "only these interfaces (default: all that carried anything)"},
    {0}};

static const struct pt_manual manual = {
    .command = "host",
    .summary = "this machine: CPU, load, memory, network, a process",
    .usage = "[options]",
    .about =
        "Shows what this machine does, once per interval: on a terminal as a table that stays in "
        "place, else one table after the other; at the end the averages, as sar does. Names and "
        "meanings are those of top (CPU), uptime (load), free (memory) and sar -n DEV (network; "
        "kB of 1024 bytes). Every measurement keeps the same figures of both its ends in `hosts` "
        "of its result.",
    .examples = "pitot host\ta live view until Ctrl-C\n"
                "pitot host -i 5s -n 12 --json host.json\ta minute, kept\n"
                "pitot host --pid 4711 --if eth0\ta process and one interface"};

struct host {
    struct host_opts o;
    struct pt_reporting asked;
    struct pt_output out;
    struct pt_host_watch *watch;
    pt_ns begin, realtime;
    bool drawn;
};

/* ---- the tables */

static const char *number(char *out, const json_t *o, const char *key, double unit, int digits)
{
    const json_t *v = json_object_get(o, key);
    if (json_is_number(v))
        snprintf(out, PT_PAGE_CELL, "%.*f", digits, json_number_value(v) / unit);
    else
        snprintf(out, PT_PAGE_CELL, "-");
    return out;
}

struct column {
    const char *title, *key;
    double unit;
    int digits;
};

static void titles(const struct pt_page *p, struct pt_page_table *t, const struct column *c,
                   size_t n)
{
    *t = (struct pt_page_table){.rows = 1, .columns = n + 1, .ink = {PT_INK_DIM}};
    for (size_t i = 0; i < n; i++)
        snprintf(t->cell[0][i + 1], PT_PAGE_CELL, "%s", pt_page_say(p, c[i].title));
}

static void row(struct pt_page_table *t, const char *name, const json_t *o, const struct column *c,
                size_t n)
{
    if (t->rows == PT_PAGE_ROWS)
        return;
    snprintf(t->cell[t->rows][0], PT_PAGE_CELL, "%s", name);
    for (size_t i = 0; i < n; i++)
        number(t->cell[t->rows][i + 1], o, c[i].key, c[i].unit, c[i].digits);
    t->rows++;
}

struct busy_cpu {
    size_t cpu;
    double pct;
};

static int busier(const void *a, const void *b)
{
    const struct busy_cpu *x = a, *y = b;
    return x->pct < y->pct ? 1 : x->pct > y->pct ? -1 : x->cpu < y->cpu ? -1 : 1;
}

/* What of each CPU is neither idle nor iowait, in one line; of many the busiest. */
static void each_cpu(struct pt_page *p, const json_t *each)
{
    static struct busy_cpu all[PT_CPU_MAX];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(each) && n < PT_CPU_MAX; i++)
        if (json_is_number(json_array_get(each, i)))
            all[n++] = (struct busy_cpu){i, json_number_value(json_array_get(each, i))};
    if (n > CPUS_SHOWN)
        qsort(all, n, sizeof(all[0]), busier);
    char text[CPUS_SHOWN * 24] = "";
    size_t at = 0;
    for (size_t i = 0; i < n && i < CPUS_SHOWN; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%zu %.1f%%", i ? ", " : "",
                               all[i].cpu, all[i].pct);
    pt_page_row(p, PT_INK_PLAIN, n > CPUS_SHOWN ? "busiest CPUs" : "busy of each CPU", text);
}

static void cpu_table(struct pt_page *p, const json_t *entry)
{
    static const struct column columns[] = {
        {"user", "user_pct", 1, 1},       {"nice", "nice_pct", 1, 1},
        {"system", "system_pct", 1, 1},   {"idle", "idle_pct", 1, 1},
        {"iowait", "iowait_pct", 1, 1},   {"irq", "irq_pct", 1, 1},
        {"softirq", "softirq_pct", 1, 1}, {"steal", "steal_pct", 1, 1}};
    const json_t *cpu = json_object_get(entry, "cpu");
    struct pt_page_table t;
    titles(p, &t, columns, PT_COUNT(columns));
    row(&t, pt_page_say(p, "CPU, %"), cpu, columns, PT_COUNT(columns));
    pt_page_table(p, &t);
    each_cpu(p, json_object_get(cpu, "per_cpu"));
    const json_t *load = json_object_get(entry, "load");
    char text[128], per[PT_PAGE_CELL];
    if (json_is_number(json_array_get(load, 0))) {
        snprintf(
            text, sizeof(text), "%.2f, %.2f, %.2f (%s per CPU)",
            json_number_value(json_array_get(load, 0)), json_number_value(json_array_get(load, 1)),
            json_number_value(json_array_get(load, 2)), number(per, entry, "load_per_cpu", 1, 2));
        pt_page_row(p, PT_INK_PLAIN, "load average", text);
    }
}

static void memory_table(struct pt_page *p, const json_t *entry)
{
    const double mib = 1 << 20;
    static const struct column columns[] = {{"total", "total", 1, 0},
                                            {"used", "used", 1, 0},
                                            {"free", "free", 1, 0},
                                            {"shared", "shared", 1, 0},
                                            {"buff/cache", "buff_cache", 1, 0},
                                            {"available", "available", 1, 0}};
    struct column in_mib[PT_COUNT(columns)];
    memcpy(in_mib, columns, sizeof(columns));
    for (size_t i = 0; i < PT_COUNT(columns); i++)
        in_mib[i].unit = mib;
    struct pt_page_table t;
    titles(p, &t, in_mib, PT_COUNT(columns));
    row(&t, pt_page_say(p, "Memory, MiB"), json_object_get(entry, "memory"), in_mib,
        PT_COUNT(columns));
    pt_page_table(p, &t);
}

static bool wanted(const struct host *h, const json_t *net)
{
    const char *name = json_string_value(json_object_get(net, "if"));
    for (uint32_t i = 0; i < h->o.dev.n; i++)
        if (strcmp(h->o.dev.at[i], name) == 0)
            return true;
    return !h->o.dev.n && (json_number_value(json_object_get(net, "rx_packets_per_s")) > 0 ||
                           json_number_value(json_object_get(net, "tx_packets_per_s")) > 0);
}

static void net_table(const struct host *h, struct pt_page *p, const json_t *entry)
{
    static const struct column columns[] = {
        {"rxpck/s", "rx_packets_per_s", 1, 2}, {"txpck/s", "tx_packets_per_s", 1, 2},
        {"rxkB/s", "rx_kB_per_s", 1, 2},       {"txkB/s", "tx_kB_per_s", 1, 2},
        {"%ifutil", "if_util_pct", 1, 2},      {"rxdrop", "rx_dropped", 1, 0},
        {"txdrop", "tx_dropped", 1, 0}};
    const json_t *nets = json_object_get(entry, "net");
    struct pt_page_table t;
    titles(p, &t, columns, PT_COUNT(columns));
    snprintf(t.cell[0][0], PT_PAGE_CELL, "%s", pt_page_say(p, "Network"));
    for (size_t i = 0; i < json_array_size(nets); i++) {
        const json_t *net = json_array_get(nets, i);
        if (wanted(h, net))
            row(&t, json_string_value(json_object_get(net, "if")), net, columns, PT_COUNT(columns));
    }
    if (t.rows > 1)
        pt_page_table(p, &t);
}

static void counters(struct pt_page *p, const json_t *entry)
{
    static const struct {
        const char *label, *group, *first, *first_name, *second, *second_name;
    } rows[] = {
        {"TCP", "tcp", "retransmits", "retransmits", "listen_overflows", "listen overflows"},
        {"UDP", "udp", "rcvbuf_errors", "RcvbufErrors", "sndbuf_errors", "SndbufErrors"},
        {"softnet", "softnet", "dropped", "dropped", "squeezed", "squeezed"},
    };
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        const json_t *o = json_object_get(entry, rows[i].group);
        char a[PT_PAGE_CELL], b[PT_PAGE_CELL], text[2 * PT_PAGE_CELL + 64];
        snprintf(text, sizeof(text), "%s %s, %s %s", number(a, o, rows[i].first, 1, 0),
                 rows[i].first_name, number(b, o, rows[i].second, 1, 0), rows[i].second_name);
        pt_page_row(p, PT_INK_PLAIN, rows[i].label, text);
    }
}

static void process_line(struct pt_page *p, const json_t *entry)
{
    const json_t *o = json_object_get(entry, "process");
    double s = json_number_value(json_object_get(entry, "interval_s"));
    char virt[PT_PAGE_CELL], res[PT_PAGE_CELL], shr[PT_PAGE_CELL], mem[PT_PAGE_CELL],
        user[PT_PAGE_CELL], text[400];
    if (!json_is_object(o))
        return;
    const json_t *u = json_object_get(o, "cpu_user_s"), *k = json_object_get(o, "cpu_system_s");
    if (json_is_number(u) && json_is_number(k) && s > 0)
        snprintf(user, sizeof(user), "%.1f",
                 (json_number_value(u) + json_number_value(k)) / s * 100);
    else
        snprintf(user, sizeof(user), "-");
    snprintf(text, sizeof(text), "VIRT %s, RES %s, SHR %s MiB, %%MEM %s, %%CPU %s",
             number(virt, o, "virt", 1 << 20, 1), number(res, o, "res", 1 << 20, 1),
             number(shr, o, "shr", 1 << 20, 1), number(mem, o, "mem_pct", 1, 1), user);
    pt_page_row(p, PT_INK_PLAIN, "process", text);
}

/* A view: at once, so that a terminal does not flicker. On one it stays in place. */
static int draw(struct host *h, const json_t *entry, const char *title)
{
    struct pt_buf text;
    pt_buf_init(&text, TEXT_MOST);
    struct pt_sink_style style = {.color = h->out.color, .chinese = h->out.chinese};
    struct pt_page p = {.out = &text, .style = &style};
    pt_page_heading(&p, title);
    cpu_table(&p, entry);
    memory_table(&p, entry);
    net_table(h, &p, entry);
    counters(&p, entry);
    process_line(&p, entry);
    bool live = h->out.progress.terminal && strcmp(title, "Averages") != 0;
    struct pt_buf screen;
    pt_buf_init(&screen, 2 * TEXT_MOST);
    if (live)
        pt_buf_addf(&screen, h->drawn ? "\x1b[H" : "\x1b[H\x1b[2J");
    for (const char *c = pt_buf_str(&text); *c; c++) {
        if (live && *c == '\n')
            pt_buf_addf(&screen, "\x1b[K");
        pt_buf_addf(&screen, "%c", *c);
    }
    if (live)
        pt_buf_addf(&screen, "\x1b[J");
    h->drawn = true;
    int rc = pt_output_print(&h->out, &screen);
    pt_buf_fini(&screen);
    pt_buf_fini(&text);
    return rc;
}

/* ---- the document */

static int append(const char *bytes, size_t n, void *ctx)
{
    return pt_buf_add(ctx, bytes, n);
}

/* `pitot.host/1`, docs/host.schema.json. */
static int write_document(const struct host *h, const json_t *entry, struct pt_err *e)
{
    time_t began = (time_t)(h->realtime / PT_S);
    struct tm utc;
    char started[32] = "";
    if (gmtime_r(&began, &utc))
        strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *doc = json_pack("{s:s, s:s, s:s, s:o?}", "schema", "pitot.host/1", "version",
                            PT_VERSION, "started", started, "identity", pt_identity());
    struct pt_buf text;
    pt_buf_init(&text, PT_SINK_CEILING);
    int rc = doc && json_object_update_missing(doc, (json_t *)(uintptr_t)entry) == 0 ? 0 : -ENOMEM;
    if (rc == 0 &&
        (json_dump_callback(doc, append, &text, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) < 0 ||
         pt_buf_adds(&text, "\n") < 0))
        rc = -ENOMEM;
    rc = rc < 0 ? pt_fail(e, rc, "no memory for the document")
                : pt_sink_store(h->asked.json, &text, e);
    pt_buf_fini(&text);
    json_decref(doc);
    return rc;
}

/* ---- the command */

static int read_pids(const struct host_opts *o, pid_t pid[PT_STRS_MAX], struct pt_err *e)
{
    for (uint32_t i = 0; i < o->pid.n; i++) {
        char *end;
        errno = 0;
        long v = strtol(o->pid.at[i], &end, 10);
        if (errno || *end || v < 1 || v > INT32_MAX)
            return pt_fail(e, -EINVAL, "--pid %s: expected the number of a process", o->pid.at[i]);
        pid[i] = (pid_t)v;
        if (kill(pid[i], 0) < 0 && errno == ESRCH)
            return pt_fail(e, -EINVAL, "--pid %s: there is no such process", o->pid.at[i]);
    }
    return 0;
}

static int check_interfaces(const struct host_opts *o, struct pt_err *e)
{
    for (uint32_t i = 0; i < o->dev.n; i++)
        if (!if_nametoindex(o->dev.at[i]))
            return pt_fail(e, -EINVAL, "--if %s: there is no such interface here", o->dev.at[i]);
    return 0;
}

static void look_on(struct host *h)
{
    const struct host_opts *o = &h->o;
    pt_ns end = o->duration ? h->begin + o->duration : PT_NS_MAX;
    pt_ns next = h->begin + o->interval;
    for (uint64_t shown = 0; !pt_signal_seen() && (!o->count || shown < o->count);) {
        pt_ns now = pt_clock_now();
        if (now >= end)
            return;
        if (now >= next) {
            while (next <= now)
                next += o->interval;
            if (!pt_host_watch_tick(h->watch, now))
                continue;
            shown++;
            json_t *entry = h->asked.quiet ? NULL : pt_host_watch_interval(h->watch);
            int drawn = entry ? draw(h, entry, "This host") : 0;
            json_decref(entry);
            /* Without a reader only the document is a reason to go on. */
            if (!h->asked.json[0] && (drawn < 0 || pt_output_reader_left(h->out.fd)))
                return;
            continue;
        }
        pt_ns wait = (next < end ? next : end) - now;
        struct timespec ts = {.tv_sec = (time_t)(wait / PT_S), .tv_nsec = (long)(wait % PT_S)};
        struct pollfd p = {.fd = pt_signal_fd(), .events = POLLIN};
        (void)ppoll(&p, 1, &ts, NULL);
    }
}

static int measure(struct host *h, struct pt_err *e)
{
    pid_t pid[PT_STRS_MAX];
    int rc = read_pids(&h->o, pid, e);
    if (rc == 0)
        rc = check_interfaces(&h->o, e);
    if (rc == 0)
        rc = pt_signals_install(e);
    if (rc < 0)
        return rc;
    pt_output_init(&h->out, &h->asked);
    h->begin = pt_clock_now();
    h->realtime = pt_clock_realtime();
    h->watch = pt_host_watch_open(pid, h->o.pid.n, h->begin, h->o.interval);
    if (!h->watch)
        return pt_fail(e, -ENODATA, "/proc/stat cannot be read");
    look_on(h);
    pt_host_watch_end(h->watch);
    json_t *all = pt_host_watch_json(h->watch);
    pt_host_watch_free(h->watch);
    if (!all)
        return pt_fail(e, -ENODATA, "/proc could not be read a second time");
    int printed = draw(h, all, "Averages");
    if (h->asked.json[0])
        rc = write_document(h, all, e);
    json_decref(all);
    if (rc == 0 && printed < 0)
        rc = pt_fail(e, printed, "not everything could be written");
    return rc;
}

static int run(int argc, const char *const *argv)
{
    static struct host h;
    struct pt_opts sets[] = {{.table = own_opts, .values = &h.o},
                             {.table = pt_reporting_opts, .values = &h.asked, .without = without}};
    struct pt_args args = {0};
    struct pt_err e = {0};
    int rc = pt_opts_init(&sets[0], &e);
    if (rc == 0)
        rc = pt_opts_init(&sets[1], &e);
    if (pt_cmd_help(&manual, sets, 2, argc, argv))
        return PT_EXIT_OK;
    if (rc == 0)
        rc = pt_opts_parse(sets, 2, argc, argv, &args, &e);
    if (rc == 0)
        rc = pt_reporting_check(&sets[1], &e);
    if (rc == 0 && args.n)
        rc = pt_fail(&e, -EINVAL, "it takes no argument such as \"%s\"; it is about this machine",
                     args.at[0]);
    if (rc == 0)
        rc = pt_output_check(&h.asked, NULL, &e);
    if (rc == 0)
        rc = measure(&h, &e);
    if (rc < 0)
        return pt_cmd_complain(&manual, &e, rc == -EINVAL ? PT_EXIT_USAGE : PT_EXIT_FAILED);
    return PT_EXIT_OK;
}

const struct pt_cmd pt_cmd_host = {&manual, run};
