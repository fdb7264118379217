/* netstat.c: see netstat.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/netstat.h"

#include "base/buf.h"
#include "os/clock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_CEILING ((size_t)1 << 20)

static const struct {
    const char *table, *name, *both;
} counters[] = {
#define X(id, table, name) {table, name, table "." name},
    PT_NETSTAT_COUNTERS(X)
#undef X
};

const char *pt_netstat_name(enum pt_netstat_counter c)
{
    return (unsigned)c < PT_NETSTAT_COUNT ? counters[c].both : "";
}

int pt_netstat_find(const char *name)
{
    for (int i = 0; i < PT_NETSTAT_COUNT; i++)
        if (strcmp(counters[i].both, name) == 0)
            return i;
    return -1;
}

static int find_counter(const char *table, size_t table_len, const char *name, size_t name_len)
{
    for (int i = 0; i < PT_NETSTAT_COUNT; i++)
        if (strlen(counters[i].table) == table_len && strlen(counters[i].name) == name_len &&
            memcmp(counters[i].table, table, table_len) == 0 &&
            memcmp(counters[i].name, name, name_len) == 0)
            return i;
    return -1;
}

/* ---- words */

/* A word within one line: what lies between blanks. */
struct word {
    const char *at;
    size_t len;
};

/* The next word of the line, *at moves behind it; length 0 at the end of the line. */
static struct word next_word(const char **at)
{
    const char *p = *at + strspn(*at, " \t\r");
    struct word w = {p, strcspn(p, " \t\r\n")};
    *at = p + w.len;
    return w;
}

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : at + strlen(at);
}

/* A counter, or -1: nothing, no number, or more than fits. */
static int64_t number(struct word w, int base)
{
    char digits[24];
    if (w.len == 0 || w.len >= sizeof(digits) || !isxdigit((unsigned char)w.at[0]))
        return -1;
    memcpy(digits, w.at, w.len);
    digits[w.len] = 0;
    char *end;
    errno = 0;
    unsigned long long v = strtoull(digits, &end, base);
    return *end || errno || v > INT64_MAX ? -1 : (int64_t)v;
}

/* ---- the files */

void pt_netstat_clear(struct pt_netstat *s)
{
    static const struct pt_softnet unknown = {-1, -1, -1};
    s->at = 0;
    for (int i = 0; i < PT_NETSTAT_COUNT; i++)
        s->counter[i] = -1;
    s->devs = s->devs_left_out = s->cpus = 0;
    memset(s->dev, 0, sizeof(s->dev));
    for (unsigned i = 0; i < PT_CPU_MAX; i++)
        s->softnet[i] = unknown;
    s->softnet_all = unknown;
}

/* A name may touch its first number ("eth0:123"), and may itself hold colons ("eth0:1"). */
static const char *end_of_name(const char *line)
{
    const char *end = strchr(line, '\n'), *colon = NULL;
    for (const char *p = line; *p && p != end; p++)
        if (*p == ':')
            colon = p;
    return colon;
}

void pt_netstat_parse_dev(struct pt_netstat *s, const char *text)
{
    for (const char *line = text; *line; line = next_line(line)) {
        const char *name = line + strspn(line, " \t"), *colon = end_of_name(name);
        int64_t v[16];
        if (!colon || colon == name || colon - name >= (int)sizeof(s->dev[0].name))
            continue;
        const char *at = colon + 1;
        bool whole = true;
        for (size_t i = 0; i < PT_COUNT(v); i++)
            whole &= (v[i] = number(next_word(&at), 10)) >= 0;
        if (!whole)
            continue;
        if (s->devs == PT_NETDEV_MAX) {
            s->devs_left_out++;
            continue;
        }
        struct pt_netdev *d = &s->dev[s->devs++];
        *d = (struct pt_netdev){.rx_bytes = v[0],
                                .rx_packets = v[1],
                                .rx_errors = v[2],
                                .rx_dropped = v[3],
                                .rx_fifo = v[4],
                                .rx_compressed = v[6],
                                .tx_bytes = v[8],
                                .tx_packets = v[9],
                                .tx_errors = v[10],
                                .tx_dropped = v[11],
                                .tx_fifo = v[12],
                                .tx_compressed = v[15]};
        memcpy(d->name, name, (size_t)(colon - name));
    }
}

void pt_netstat_parse_tables(struct pt_netstat *s, const char *text)
{
    const char *values;
    for (const char *names = text; *names; names = values) {
        values = next_line(names);
        const char *n = names, *v = values;
        struct word table = next_word(&n), again = next_word(&v);
        if (table.len < 2 || table.at[table.len - 1] != ':' || table.len != again.len ||
            memcmp(table.at, again.at, table.len) != 0)
            continue;
        for (;;) {
            struct word name = next_word(&n), value = next_word(&v);
            if (name.len == 0 || value.len == 0)
                break;
            int i = find_counter(table.at, table.len - 1, name.at, name.len);
            if (i >= 0)
                s->counter[i] = number(value, 10);
        }
        values = next_line(values);
    }
}

void pt_netstat_parse_snmp6(struct pt_netstat *s, const char *text)
{
    for (const char *line = text; *line; line = next_line(line)) {
        const char *at = line;
        struct word key = next_word(&at), value = next_word(&at);
        const char *six = memchr(key.at, '6', key.len);
        if (!six)
            continue;
        size_t table = (size_t)(six + 1 - key.at);
        int i = find_counter(key.at, table, six + 1, key.len - table);
        if (i >= 0)
            s->counter[i] = number(value, 10);
    }
}

void pt_netstat_parse_softnet(struct pt_netstat *s, const char *text)
{
    struct pt_softnet all = {0, 0, 0};
    int64_t row = 0;
    for (const char *line = text; *line; line = next_line(line), row++) {
        const char *at = line;
        int64_t v[13];
        for (size_t i = 0; i < PT_COUNT(v); i++)
            v[i] = number(next_word(&at), 16);
        /* Since Linux 5.10 the line names its CPU; before, offline CPUs shift the rows. */
        int64_t cpu = v[12] >= 0 ? v[12] : row;
        if (v[0] < 0 || v[1] < 0 || v[2] < 0 || cpu >= PT_CPU_MAX)
            continue;
        s->softnet[cpu] = (struct pt_softnet){v[0], v[1], v[2]};
        if ((unsigned)cpu >= s->cpus)
            s->cpus = (unsigned)cpu + 1;
        all.processed += v[0];
        all.dropped += v[1];
        all.squeezed += v[2];
    }
    if (s->cpus)
        s->softnet_all = all;
}

static int read_file(struct pt_buf *b, const char *path)
{
    pt_buf_reset(b);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = 0;
    for (;;) {
        char *to = pt_buf_reserve(b, 16384);
        ssize_t n = to ? read(fd, to, 16384) : -1;
        if (n <= 0) {
            rc = !to ? b->failed : n < 0 ? -errno : 0;
            break;
        }
        b->len += (size_t)n;
        b->bytes[b->len] = 0;
    }
    close(fd);
    return rc;
}

int pt_netstat_read(struct pt_netstat *s, struct pt_err *e)
{
    static const struct {
        const char *path;
        void (*parse)(struct pt_netstat *s, const char *text);
        bool needed;
    } files[] = {{"/proc/net/dev", pt_netstat_parse_dev, true},
                 {"/proc/net/snmp", pt_netstat_parse_tables, true},
                 {"/proc/net/netstat", pt_netstat_parse_tables, false},
                 {"/proc/net/snmp6", pt_netstat_parse_snmp6, false},
                 {"/proc/net/softnet_stat", pt_netstat_parse_softnet, false}};
    struct pt_buf b;
    int rc = 0;
    pt_buf_init(&b, FILE_CEILING);
    pt_netstat_clear(s);
    s->at = pt_clock_now();
    for (size_t i = 0; i < PT_COUNT(files) && rc == 0; i++) {
        int got = read_file(&b, files[i].path);
        if (got == 0)
            files[i].parse(s, pt_buf_str(&b));
        else if (files[i].needed)
            rc = pt_fail(e, got, "reading %s: %s", files[i].path, pt_strerror(got));
    }
    pt_buf_fini(&b);
    return rc;
}

/* ---- differences */

static int64_t grown(int64_t after, int64_t before)
{
    return after < 0 || before < 0 || after < before ? -1 : after - before;
}

/* Counters of 32 bits pass zero; their difference is good as long as they do so once. */
static int64_t grown32(int64_t after, int64_t before)
{
    return after < 0 || before < 0 ? -1 : (int64_t)(uint32_t)((uint32_t)after - (uint32_t)before);
}

static void sub_dev(struct pt_netdev *d, const struct pt_netdev *a, const struct pt_netdev *b)
{
    memcpy(d->name, a->name, sizeof(d->name));
    d->rx_bytes = grown(a->rx_bytes, b->rx_bytes);
    d->rx_packets = grown(a->rx_packets, b->rx_packets);
    d->rx_errors = grown(a->rx_errors, b->rx_errors);
    d->rx_dropped = grown(a->rx_dropped, b->rx_dropped);
    d->rx_fifo = grown(a->rx_fifo, b->rx_fifo);
    d->rx_compressed = grown(a->rx_compressed, b->rx_compressed);
    d->tx_bytes = grown(a->tx_bytes, b->tx_bytes);
    d->tx_packets = grown(a->tx_packets, b->tx_packets);
    d->tx_errors = grown(a->tx_errors, b->tx_errors);
    d->tx_dropped = grown(a->tx_dropped, b->tx_dropped);
    d->tx_fifo = grown(a->tx_fifo, b->tx_fifo);
    d->tx_compressed = grown(a->tx_compressed, b->tx_compressed);
}

static void sub_softnet(struct pt_netstat *out, const struct pt_netstat *after,
                        const struct pt_netstat *before)
{
    struct pt_softnet all = {0, 0, 0};
    for (unsigned i = 0; i < PT_CPU_MAX; i++) {
        const struct pt_softnet *a = &after->softnet[i], *b = &before->softnet[i];
        struct pt_softnet *d = &out->softnet[i];
        d->processed = grown32(a->processed, b->processed);
        d->dropped = grown32(a->dropped, b->dropped);
        d->squeezed = grown32(a->squeezed, b->squeezed);
        if (d->processed < 0)
            continue;
        out->cpus = i + 1;
        all.processed += d->processed;
        all.dropped += d->dropped;
        all.squeezed += d->squeezed;
    }
    if (out->cpus)
        out->softnet_all = all;
}

void pt_netstat_sub(struct pt_netstat *out, const struct pt_netstat *after,
                    const struct pt_netstat *before)
{
    pt_netstat_clear(out);
    out->at = after->at - before->at;
    for (int i = 0; i < PT_NETSTAT_COUNT; i++)
        out->counter[i] = grown(after->counter[i], before->counter[i]);
    out->devs_left_out = after->devs_left_out;
    for (unsigned i = 0; i < after->devs; i++) {
        const struct pt_netdev *b = pt_netstat_dev(before, after->dev[i].name);
        if (b)
            sub_dev(&out->dev[out->devs++], &after->dev[i], b);
    }
    sub_softnet(out, after, before);
}

const struct pt_netdev *pt_netstat_dev(const struct pt_netstat *s, const char *name)
{
    for (unsigned i = 0; i < s->devs; i++)
        if (strcmp(s->dev[i].name, name) == 0)
            return &s->dev[i];
    return NULL;
}

int64_t pt_netstat_sum(const struct pt_netstat *s, enum pt_netstat_counter v4,
                       enum pt_netstat_counter v6)
{
    int64_t a = s->counter[v4], b = s->counter[v6];
    return a < 0 ? b : b < 0 ? a : a + b;
}
