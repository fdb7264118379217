/* expect.c: see expect.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/expect.h"

#include "model/result.h"

#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *path;
} short_names[] = {
    {"p50", "latency.p50_us"},       {"p75", "latency.p75_us"},       {"p90", "latency.p90_us"},
    {"p95", "latency.p95_us"},       {"p99", "latency.p99_us"},       {"p99.9", "latency.p99_9_us"},
    {"p99.99", "latency.p99_99_us"}, {"mean", "latency.mean_us"},     {"min", "latency.min_us"},
    {"max", "latency.max_us"},       {"stddev", "latency.stddev_us"}, {"loss", "rates.loss_pct"},
    {"errors", "totals.errors"},
};

/* Figures that may be named by their last key. */
static const char *const paths[] = {
    "rates.operations_per_s",
    "rates.tx_bits_per_s",
    "rates.rx_bits_per_s",
    "rates.tx_packets_per_s",
    "rates.rx_packets_per_s",
    "rates.connects_per_s",
    "rates.loss_pct",
    "totals.operations",
    "totals.ok",
    "totals.in_flight_at_end",
    "totals.tx_bytes",
    "totals.rx_bytes",
    "totals.tx_packets",
    "totals.rx_packets",
    "totals.lost_packets",
    "totals.late_packets",
    "totals.reordered_packets",
    "totals.duplicate_packets",
    "totals.reconnects",
    "totals.retransmits",
    "cost.cpu_s_per_million_operations",
    "cost.cpu_s_per_GB",
    "cost.cpu_s_per_million_packets",
    "generator.pacer_late_p99_us",
    "generator.cpu_pct",
    "generator.own_drops",
    "latency.p50_us",
    "latency.p75_us",
    "latency.p90_us",
    "latency.p95_us",
    "latency.p99_us",
    "latency.p99_9_us",
    "latency.p99_99_us",
    "latency.mean_us",
    "latency.min_us",
    "latency.max_us",
    "latency.stddev_us",
    "fairness.jain",
};

/* First keys of a dotted path. */
static const char *const roots[] = {
    "totals",          "rates",       "latency",    "service_time", "connect_time",
    "first_byte_time", "wakeup_time", "one_way",    "cost",         "generator",
    "fairness",        "steps",       "directions", "hosts",        "repeat",
    "duration_s",      "path",        "flows",      "series",       "search"};

static const char *const op_texts[] = {"<", "<=", ">", ">=", "==", "!="};

static int unknown_metric(const char *metric, struct pt_err *e)
{
    const char *names[PT_COUNT(short_names) + PT_COUNT(paths) + 1] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < PT_COUNT(short_names); i++)
        names[n++] = short_names[i].name;
    for (size_t i = 0; i < PT_COUNT(paths); i++)
        names[n++] = strchr(paths[i], '.') + 1;
    const char *near = pt_nearest(metric, names);
    char quoted[80];
    pt_log_quote(quoted, sizeof(quoted), metric, strlen(metric));
    if (near)
        return pt_fail(e, -EINVAL, "--expect: unknown figure '%s'; did you mean %s?", quoted, near);
    return pt_fail(
        e, -EINVAL,
        "--expect: unknown figure '%s'; expected p99, loss, errors, rx_bits_per_s, … or a "
        "path of the result document such as latency.p99_us",
        quoted);
}

static int find_path(const char *metric, struct pt_expect *x, struct pt_err *e)
{
    const char *path = NULL;
    for (size_t i = 0; i < PT_COUNT(short_names) && !path; i++) {
        if (!strcmp(metric, short_names[i].name))
            path = short_names[i].path;
    }
    for (size_t i = 0; i < PT_COUNT(paths) && !path; i++) {
        if (!strcmp(metric, strchr(paths[i], '.') + 1))
            path = paths[i];
    }
    for (size_t i = 0; i < PT_COUNT(roots) && !path; i++) {
        size_t n = strlen(roots[i]);
        if (!strncmp(metric, roots[i], n) && (metric[n] == '.' || !metric[n]))
            path = metric;
    }
    if (!path)
        return unknown_metric(metric, e);
    snprintf(x->path, sizeof(x->path), "%s", path);
    return 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* How many units of the figure a second is; 0 when it is no time. */
static double units_per_second(const char *path)
{
    if (ends_with(path, "_per_s"))
        return 0;
    if (ends_with(path, "_ns"))
        return 1e9;
    if (ends_with(path, "_us"))
        return 1e6;
    if (ends_with(path, "_ms"))
        return 1e3;
    return ends_with(path, "_s") ? 1 : 0;
}

static int parse_time_value(const char *metric, const char *text, struct pt_expect *x,
                            struct pt_err *e)
{
    double scale = units_per_second(x->path);
    double bare = 0;
    if (!pt_real_parse(text, &bare, NULL)) {
        /* `p99<5` would mean seconds to one reader and microseconds to another. */
        if (!ends_with(x->path, metric) && bare > 0)
            return pt_fail(e, -EINVAL, "say the unit of the time, such as %s%s%sms", metric,
                           op_texts[x->op], text);
        x->value = bare;
        return 0;
    }
    pt_ns ns = 0;
    int rc = pt_time_parse(text, &ns, e);
    x->value = (double)ns / 1e9 * scale;
    return rc;
}

static int parse_rate_value(const char *text, struct pt_expect *x, struct pt_err *e)
{
    struct pt_rate rate = {0};
    int rc = pt_rate_parse(text, &rate, e);
    if (!rc && rate.bits && !ends_with(x->path, "_bits_per_s"))
        return pt_fail(e, -EINVAL, "%s does not count bits", x->path);
    x->value = rate.per_s;
    return rc;
}

static int parse_plain_value(const char *text, struct pt_expect *x, struct pt_err *e)
{
    if (!pt_real_parse(text, &x->value, NULL))
        return 0;
    uint64_t n = 0;
    int rc = pt_count_parse(text, &n, e);
    x->value = (double)n;
    return rc;
}

/* The value behind the operator, in the unit that the figure has. */
static int read_value(const char *metric, const char *text, struct pt_expect *x, struct pt_err *e)
{
    if (units_per_second(x->path) > 0)
        return parse_time_value(metric, text, x, e);
    if (ends_with(x->path, "_per_s"))
        return parse_rate_value(text, x, e);
    if (ends_with(x->path, "_pct"))
        return pt_percent_parse(text, &x->value, e);
    if (ends_with(x->path, "bytes")) {
        uint64_t bytes = 0;
        int rc = pt_size_parse(text, &bytes, e);
        x->value = (double)bytes;
        return rc;
    }
    return parse_plain_value(text, x, e);
}

static int parse_value(const char *metric, const char *text, struct pt_expect *x, struct pt_err *e)
{
    int rc = read_value(metric, text, x, e);
    if (rc < 0 && e)
        pt_fail_prefix(e, "--expect");
    return rc;
}

static void copy_trimmed(char *out, size_t cap, const char *from, size_t n)
{
    while (n && *from == ' ') {
        from++;
        n--;
    }
    while (n && from[n - 1] == ' ')
        n--;
    snprintf(out, cap, "%.*s", (int)n, from);
}

int pt_expect_parse(const char *text, struct pt_expect *x, struct pt_err *e)
{
    char metric[PT_STRS_LEN], value[PT_STRS_LEN];
    memset(x, 0, sizeof(*x));
    if (strlen(text) >= sizeof(x->text))
        return pt_fail(e, -EINVAL, "--expect: longer than %zu bytes", sizeof(x->text) - 1);
    memcpy(x->text, text, strlen(text) + 1);
    size_t at = strcspn(text, "<>=!"), n = strspn(text + at, "<>=!");
    int op = -1;
    for (size_t i = 0; i < PT_COUNT(op_texts); i++) {
        if (strlen(op_texts[i]) == n && !strncmp(text + at, op_texts[i], n))
            op = (int)i;
    }
    copy_trimmed(metric, sizeof(metric), text, at);
    copy_trimmed(value, sizeof(value), text + at + n, strlen(text + at + n));
    if (op < 0 || !metric[0] || !value[0]) {
        char quoted[80];
        pt_log_quote(quoted, sizeof(quoted), text, strlen(text));
        return pt_fail(e, -EINVAL,
                       "--expect: '%s' is no threshold; expected FIGURE OP VALUE such as p99<5ms, "
                       "with OP one of < <= > >= == !=",
                       quoted);
    }
    x->op = (enum pt_expect_op)op;
    int rc = find_path(metric, x, e);
    return rc < 0 ? rc : parse_value(metric, value, x, e);
}

/* The figure; of an object of counts (totals.errors) the sum. */
static bool figure(const struct pt_result *r, const char *path, double *value)
{
    json_t *at = pt_result_at(r, path);
    if (!json_is_object(at))
        return pt_result_get_real(r, path, value);
    const char *key;
    json_t *v;
    *value = 0;
    json_object_foreach(at, key, v) *value += json_number_value(v);
    return true;
}

bool pt_expect_holds(const struct pt_expect *x, const struct pt_result *r, double *value,
                     bool *present)
{
    double v = 0;
    *present = figure(r, x->path, &v);
    *value = v;
    if (!*present)
        return false;
    switch (x->op) {
    case PT_EXPECT_LT:
        return v < x->value;
    case PT_EXPECT_LE:
        return v <= x->value;
    case PT_EXPECT_GT:
        return v > x->value;
    case PT_EXPECT_GE:
        return v >= x->value;
    case PT_EXPECT_EQ:
        return !islessgreater(v, x->value);
    case PT_EXPECT_NE:
        return islessgreater(v, x->value);
    }
    return false;
}

int pt_expect_record(const struct pt_strs *list, struct pt_result *r, struct pt_err *e)
{
    int failed = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        struct pt_expect x;
        int rc = pt_expect_parse(list->at[i], &x, e);
        if (rc < 0)
            return rc;
        double value;
        bool present;
        bool ok = pt_expect_holds(&x, r, &value, &present);
        failed += !ok;
        pt_result_append(r, "expect",
                         json_pack("{s:s, s:s, s:o, s:b}", "text", x.text, "path", x.path, "value",
                                   present ? json_real(value) : json_null(), "ok", ok));
        if (!present)
            pt_result_warn(r, "--expect %s: the result has no %s, so it fails", x.text, x.path);
    }
    if (failed && !pt_result_exit(r))
        pt_result_i64(r, "exit", 3);
    return failed;
}
