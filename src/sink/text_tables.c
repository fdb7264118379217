/* text_tables.c: see text_tables.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/text_tables.h"

#include "base/units.h"
#include "model/figures.h"
#include "sink/figure.h"

#include <stdio.h>
#include <string.h>

static void cell(struct pt_page_table *t, size_t row, size_t column, const char *text)
{
    snprintf(t->cell[row][column], PT_PAGE_CELL, "%s", text);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

/* ---- latency */

struct column {
    const char *title, *key;
};

static void header(struct pt_page *p, struct pt_page_table *t, const struct column *columns,
                   size_t n)
{
    t->columns = n + 1;
    t->rows = 1;
    t->ink[0] = PT_INK_DIM;
    for (size_t i = 0; i < n; i++)
        cell(t, 0, i + 1, pt_page_say(p, columns[i].title));
}

void pt_text_latency(struct pt_page *p, const struct pt_result *r)
{
    static const struct column columns[] = {
        {"mean", "mean_us"},   {"p50", "p50_us"},       {"p90", "p90_us"}, {"p99", "p99_us"},
        {"p99.9", "p99_9_us"}, {"p99.99", "p99_99_us"}, {"max", "max_us"},
    };
    static const struct {
        const char *label, *path;
    } blocks[] = {
        {"round trip", "latency"},        {"from sending", "service_time"},
        {"connect time", "connect_time"}, {"first byte", "first_byte_time"},
        {"wake-up", "wakeup_time"},       {"forward", "one_way.forward"},
        {"backward", "one_way.backward"},
    };
    bool closed = json_is_null(pt_result_at(r, "test.load.arrivals"));
    struct pt_page_table t = {0};
    header(p, &t, columns, PT_COUNT(columns));
    for (size_t b = 0; b < PT_COUNT(blocks); b++) {
        const json_t *block = pt_result_at(r, blocks[b].path);
        /* In a closed loop an operation is sent when it is due: the two are the same. */
        bool same = closed && !strcmp(blocks[b].path, "service_time");
        if (!json_is_object(block) || same)
            continue;
        if (!(json_number_value(json_object_get(block, "count")) > 0))
            continue;
        cell(&t, t.rows, 0, pt_page_say(p, blocks[b].label));
        for (size_t c = 0; c < PT_COUNT(columns); c++)
            pt_figure_of(block, columns[c].key, "us", t.cell[t.rows][c + 1], PT_PAGE_CELL);
        t.rows++;
    }
    if (t.rows == 1)
        return;
    pt_page_heading(p, "Latency");
    pt_page_table(p, &t);
    char text[PT_FIGURE_TEXT], error[PT_FIGURE_TEXT], line[200];
    if (pt_figure_at(r, "latency.count", "", text, sizeof(text)))
        pt_page_row(p, PT_INK_DIM, "samples", text);
    if (pt_figure_at(r, "half_rtt_p50_us", "us", text, sizeof(text)))
        pt_page_row(p, PT_INK_PLAIN, "half the round trip, p50", text);
    if (pt_figure_at(r, "one_way.offset_us", "us", text, sizeof(text)) &&
        pt_figure_at(r, "one_way.offset_error_us", "us", error, sizeof(error))) {
        snprintf(line, sizeof(line), "%s ± %s", text, error);
        pt_page_row(p, PT_INK_PLAIN, "clock offset", line);
    }
}

/* ---- both directions */

void pt_text_directions(struct pt_page *p, const struct pt_result *r)
{
    const json_t *directions = pt_result_at(r, "directions");
    if (!json_array_size(directions))
        return;
    static const struct {
        const char *title, *block, *key, *unit;
    } columns[] = {
        {"received", "rates", "rx_bits_per_s", "bit/s"},
        {"sent", "rates", "tx_bits_per_s", "bit/s"},
        {"delivered", "rates", "rx_packets_per_s", "packet/s"},
        {"loss", "rates", "loss_pct", "%"},
        {"retransmits", "totals", "retransmits", ""},
    };
    struct pt_page_table t = {.rows = 1, .columns = 1, .ink = {PT_INK_DIM}};
    for (size_t i = 0; i < json_array_size(directions) && t.rows < PT_PAGE_ROWS; i++) {
        cell(&t, t.rows, 0, pt_page_say(p, text_of(json_array_get(directions, i), "name")));
        t.rows++;
    }
    for (size_t c = 0; c < PT_COUNT(columns); c++) {
        bool any = false;
        for (size_t row = 1; row < t.rows; row++) {
            const json_t *d = json_array_get(directions, row - 1);
            any |= pt_figure_of(json_object_get(d, columns[c].block), columns[c].key,
                                columns[c].unit, t.cell[row][t.columns], PT_PAGE_CELL);
        }
        if (any) {
            cell(&t, 0, t.columns, pt_page_say(p, columns[c].title));
            t.columns++;
        }
    }
    pt_page_heading(p, "Directions");
    pt_page_table(p, &t);
}

/* ---- the waterfall */

static const char *stage_name(const char *stage)
{
    static const char *const names[][2] = {
        {"app_sent", "sent by the application"},
        {"kernel_sent", "accepted by the kernel"},
        {"nic_sent", "sent by the interface"},
        {"nic_received", "received by the interface"},
        {"kernel_delivered", "delivered to the socket"},
        {"app_received", "read by the application"},
    };
    for (size_t i = 0; i < PT_COUNT(names); i++) {
        if (!strcmp(stage, names[i][0]))
            return names[i][1];
    }
    return stage;
}

void pt_text_path(struct pt_page *p, const struct pt_result *r)
{
    const json_t *path = pt_result_at(r, "path");
    if (!json_array_size(path))
        return;
    struct pt_page_table t = {.rows = 1, .columns = 3, .ink = {PT_INK_DIM}};
    cell(&t, 0, 1, pt_page_say(p, "packets"));
    cell(&t, 0, 2, pt_page_say(p, "lost here"));
    for (size_t i = 0; i < json_array_size(path) && t.rows < PT_PAGE_ROWS; i++) {
        const json_t *stage = json_array_get(path, i);
        cell(&t, t.rows, 0, pt_page_say(p, stage_name(text_of(stage, "stage"))));
        pt_figure_of(stage, "packets", "", t.cell[t.rows][1], PT_PAGE_CELL);
        bool known = pt_figure_of(stage, "lost_here", "", t.cell[t.rows][2], PT_PAGE_CELL);
        if (known && json_number_value(json_object_get(stage, "lost_here")) > 0)
            t.ink[t.rows] = PT_INK_YELLOW;
        t.rows++;
    }
    pt_page_heading(p, "Path, over the whole run");
    pt_page_table(p, &t);
    for (size_t i = 0; i < json_array_size(path); i++) {
        const json_t *stage = json_array_get(path, i);
        const char *evidence = text_of(stage, "evidence");
        /* Where nothing was lost there is nothing to prove; the document has it all. */
        if (!*evidence || !(json_number_value(json_object_get(stage, "lost_here")) > 0))
            continue;
        char line[512];
        snprintf(line, sizeof(line), "%s: %s", pt_page_say(p, stage_name(text_of(stage, "stage"))),
                 evidence);
        pt_page_sentence(p, PT_INK_DIM, "    ", line);
    }
}

/* ---- boost and search */

static bool has_key(const json_t *rows, const char *key)
{
    return json_is_number(json_object_get(json_array_get(rows, 0), key));
}

/* One line per run of several; `first` is the key of the first column. */
static void runs_table(struct pt_page *p, const json_t *runs, const char *heading,
                       const char *first, const char *rate_unit)
{
    const struct {
        const char *title, *key, *unit;
    } columns[] = {
        {"connections", "connections", ""},
        {"rate", "rate", rate_unit},
        {"sent", "tx_packets_per_s", "packet/s"},
        {"sent", "tx_bits_per_s", "bit/s"},
        {"delivered", "rx_packets_per_s", "packet/s"},
        {"received", "rx_bits_per_s", "bit/s"},
        {"per second", "operations_per_s", ""},
        {"mean", "mean_us", "us"},
        {"p99", "p99_us", "us"},
        {"loss", "loss_pct", "%"},
        {"verdict", "verdict", ""},
    };
    size_t n = json_array_size(runs);
    if (!n)
        return;
    /* What is sent counts, where it is not what arrives that does. */
    bool arrives = has_key(runs, "rx_packets_per_s") || has_key(runs, "rx_bits_per_s");
    size_t skip = n > PT_PAGE_ROWS - 1 ? n - (PT_PAGE_ROWS - 1) : 0;
    struct pt_page_table t = {.rows = 1 + n - skip, .columns = 1, .ink = {PT_INK_DIM}};
    cell(&t, 0, 0, pt_page_say(p, first));
    for (size_t row = 1; row < t.rows; row++)
        cell(&t, row, 0, pt_page_say(p, text_of(json_array_get(runs, skip + row - 1), first)));
    for (size_t c = 0; c < PT_COUNT(columns) && t.columns < PT_PAGE_CELLS; c++) {
        bool any = false;
        if (!strcmp(columns[c].key, first) ||
            (arrives && !strcmp(columns[c].key, "operations_per_s")))
            continue;
        for (size_t row = 1; row < t.rows; row++) {
            const json_t *run = json_array_get(runs, skip + row - 1);
            const char *text = json_string_value(json_object_get(run, columns[c].key));
            if (text)
                cell(&t, row, t.columns, pt_page_say(p, text));
            any |= text || pt_figure_of(run, columns[c].key, columns[c].unit,
                                        t.cell[row][t.columns], PT_PAGE_CELL);
        }
        if (any) {
            cell(&t, 0, t.columns, pt_page_say(p, columns[c].title));
            t.columns++;
        }
    }
    pt_page_heading(p, heading);
    pt_page_table(p, &t);
}

void pt_text_steps(struct pt_page *p, const struct pt_result *r)
{
    const char *unit = pt_result_get_str(r, "test.load.rate_unit");
    runs_table(p, pt_result_at(r, "steps"), "Steps", "verdict", unit ? unit : "");
    bool bits = pt_result_at(r, "search.found_bits_per_s") != NULL;
    runs_table(p, pt_result_at(r, "search.trials"), "Trials", "trial", bits ? "bit/s" : "packet/s");
}

/* ---- hosts */

static void plain(char *out, const json_t *v, double unit, int digits)
{
    if (json_is_number(v))
        snprintf(out, PT_PAGE_CELL, "%.*f", digits, json_number_value(v) / unit);
    else
        snprintf(out, PT_PAGE_CELL, "-");
}

static double carried(const json_t *net)
{
    double rx = json_number_value(json_object_get(net, "rx_kB_per_s")),
           tx = json_number_value(json_object_get(net, "tx_kB_per_s"));
    return rx > tx ? rx : tx;
}

/* The interface whose busier direction carried most; NULL: none carried anything. */
static const json_t *busiest(const json_t *nets)
{
    const json_t *most = NULL;
    for (size_t i = 0; i < json_array_size(nets); i++) {
        const json_t *net = json_array_get(nets, i);
        if (carried(net) > carried(most))
            most = net;
    }
    return most;
}

static void load_and_memory(struct pt_page *p, const json_t *hosts)
{
    static const struct column columns[] = {
        {"load", NULL},   {"memory, GiB", NULL}, {"interface", NULL},
        {"rxkB/s", NULL}, {"txkB/s", NULL},
    };
    const double gib = 1 << 30;
    struct pt_page_table t = {0};
    bool any = false;
    header(p, &t, columns, PT_COUNT(columns));
    for (size_t i = 0; i < json_array_size(hosts) && t.rows < PT_PAGE_ROWS; i++) {
        const json_t *host = json_array_get(hosts, i), *memory = json_object_get(host, "memory"),
                     *load = json_array_get(json_object_get(host, "load"), 0),
                     *net = busiest(json_object_get(host, "net"));
        char used[PT_PAGE_CELL], total[PT_PAGE_CELL];
        char(*c)[PT_PAGE_CELL] = t.cell[t.rows++];
        any |= json_is_number(load) || json_is_number(json_object_get(memory, "total")) || net;
        snprintf(c[0], PT_PAGE_CELL, "%.16s", text_of(host, "name"));
        plain(c[1], load, 1, 2);
        plain(used, json_object_get(memory, "used"), gib, 1);
        plain(total, json_object_get(memory, "total"), gib, 1);
        snprintf(c[2], PT_PAGE_CELL, "%.20s / %.20s", used, total);
        snprintf(c[3], PT_PAGE_CELL, "%.15s", net ? text_of(net, "if") : "-");
        plain(c[4], json_object_get(net, "rx_kB_per_s"), 1, 0);
        plain(c[5], json_object_get(net, "tx_kB_per_s"), 1, 0);
    }
    if (!any)
        return;
    pt_page_heading(p, "Load, memory in use and busiest interface");
    pt_page_table(p, &t);
}

static bool some_host_has(const json_t *hosts, const char *key)
{
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const json_t *cpu = json_object_get(json_array_get(hosts, i), "cpu");
        if (json_number_value(json_object_get(cpu, key)) >= 0.5)
            return true;
    }
    return false;
}

void pt_text_hosts(struct pt_page *p, const struct pt_result *r)
{
    /* The rare ones where there is something of them: a line adds up to all of the time, and has
     * its place on a terminal. */
    static const struct column all[] = {
        {"user", "user_pct"},     {"nice", "nice_pct"}, {"system", "system_pct"},
        {"iowait", "iowait_pct"}, {"irq", "irq_pct"},   {"softirq", "softirq_pct"},
        {"steal", "steal_pct"},   {"idle", "idle_pct"},
    };
    const json_t *hosts = pt_result_at(r, "hosts");
    if (!json_array_size(hosts))
        return;
    struct column columns[PT_COUNT(all)];
    size_t n = 0;
    for (size_t i = 0; i < PT_COUNT(all); i++) {
        bool rare = i == 1 || i == 3 || i == 4;
        if (!rare || some_host_has(hosts, all[i].key))
            columns[n++] = all[i];
    }
    struct pt_page_table t = {0};
    header(p, &t, columns, n);
    for (size_t i = 0; i < json_array_size(hosts) && t.rows < PT_PAGE_ROWS; i++) {
        const json_t *host = json_array_get(hosts, i), *cpu = json_object_get(host, "cpu");
        const char *role = text_of(host, "role");
        role = !strcmp(role, "both") ? "sender and receiver" : role;
        snprintf(t.cell[t.rows][0], PT_PAGE_CELL, "%.28s%s%s", text_of(host, "name"),
                 *role ? ", " : "", pt_page_say(p, role));
        for (size_t c = 0; c < n; c++)
            pt_figure_of(cpu, columns[c].key, "%", t.cell[t.rows][c + 1], PT_PAGE_CELL);
        t.rows++;
    }
    pt_page_heading(p, "CPU of the hosts");
    pt_page_table(p, &t);
    load_and_memory(p, hosts);
}

/* ---- repeated runs */

static const char *unit_of(const struct pt_result *r, const char *path, const char **name)
{
    const json_t *headline = pt_result_at(r, "headline");
    for (size_t i = 0; i < json_array_size(headline); i++) {
        const json_t *h = json_array_get(headline, i);
        if (!strcmp(text_of(h, "path"), path)) {
            *name = text_of(h, "name");
            return text_of(h, "unit");
        }
    }
    const struct pt_figure *f = pt_figure_find(r, path);
    *name = f ? f->name : path;
    return f ? f->unit : "";
}

void pt_text_repeat(struct pt_page *p, const struct pt_result *r)
{
    static const struct column columns[] = {
        {"median", "median"}, {"min", "min"}, {"max", "max"}, {"spread", "spread_pct"}};
    json_t *metrics = pt_result_at(r, "repeat.metrics");
    if (!json_is_object(metrics))
        return;
    struct pt_page_table t = {0};
    header(p, &t, columns, PT_COUNT(columns));
    const char *path, *name;
    json_t *metric;
    json_object_foreach(metrics, path, metric)
    {
        if (t.rows == PT_PAGE_ROWS)
            break;
        const char *unit = unit_of(r, path, &name);
        cell(&t, t.rows, 0, pt_page_say(p, name));
        for (size_t c = 0; c < PT_COUNT(columns); c++)
            pt_figure_of(metric, columns[c].key, c == 3 ? "%" : unit, t.cell[t.rows][c + 1],
                         PT_PAGE_CELL);
        t.rows++;
    }
    bool agree = json_is_true(pt_result_at(r, "repeat.agree"));
    pt_page_heading(p, "Repeated");
    pt_page_table(p, &t);
    char runs[PT_FIGURE_TEXT], line[200];
    pt_figure_at(r, "repeat.n", "", runs, sizeof(runs));
    snprintf(line, sizeof(line), "%s, %s", runs,
             pt_page_say(p, agree ? "they agree" : "they do not agree"));
    pt_page_row(p, agree ? PT_INK_PLAIN : PT_INK_YELLOW, "runs", line);
}
