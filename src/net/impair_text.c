/* impair_text.c: see impair_text.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/impair_text.h"

#include "base/units.h"

#include <errno.h>
#include <string.h>

#define PIECE 64

/* Cuts `*rest` at the first `mark` (or its end) into `piece` and moves behind the mark; `*rest`
 * becomes NULL after the last piece. */
static int cut(const char **rest, char mark, char piece[PIECE], struct pt_err *e)
{
    if (!*rest)
        return pt_fail(e, -EINVAL, "something is missing at the end");
    const char *end = strchr(*rest, mark);
    size_t n = end ? (size_t)(end - *rest) : strlen(*rest);
    if (n >= PIECE)
        return pt_fail(e, -EINVAL, "too long: %.20s…", *rest);
    memcpy(piece, *rest, n);
    piece[n] = '\0';
    *rest = end ? end + 1 : NULL;
    return 0;
}

static int cut_time(const char **rest, char mark, pt_ns *time, struct pt_err *e)
{
    char piece[PIECE];
    int rc = cut(rest, mark, piece, e);
    return rc ? rc : pt_time_parse(piece, time, e);
}

static int cut_share(const char **rest, char mark, double *share, struct pt_err *e)
{
    char piece[PIECE];
    int rc = cut(rest, mark, piece, e);
    if (!rc)
        rc = pt_percent_parse(piece, share, e);
    if (!rc)
        *share /= 100;
    return rc;
}

static int cut_count(const char **rest, char mark, uint64_t *count, struct pt_err *e)
{
    char piece[PIECE];
    int rc = cut(rest, mark, piece, e);
    return rc ? rc : pt_count_parse(piece, count, e);
}

/* The text behind `word:`, or NULL. */
static const char *behind(const char *text, const char *word)
{
    size_t n = strlen(word);
    return strncmp(text, word, n) == 0 && text[n] == ':' ? text + n + 1 : NULL;
}

static bool is_none(const char *text)
{
    return *text == '\0' || strcmp(text, "none") == 0;
}

static int finish(int rc, const char *rest, const char *text, const char *forms, struct pt_err *e)
{
    if (!rc && rest)
        rc = pt_fail(e, -EINVAL, "trailing %.40s", rest);
    return rc ? pt_fail_prefix(e, "\"%.80s\" is none of %s", text, forms) : 0;
}

static int parse_table(const char **rest, struct pt_delay *d, struct pt_err *e)
{
    d->kind = PT_DELAY_TABLE;
    while (*rest) {
        char row[PIECE];
        const char *in = row;
        if (d->count == PT_DELAY_ROWS)
            return pt_fail(e, -EINVAL, "a delay table has at most %d rows", PT_DELAY_ROWS);
        int rc = cut(rest, ',', row, e);
        if (!rc)
            rc = cut_time(&in, '=', &d->rows[d->count].delay, e);
        if (!rc && !in)
            rc = pt_fail(e, -EINVAL, "row \"%s\" has no =WEIGHT", row);
        if (!rc)
            rc = pt_real_parse(in, &d->rows[d->count].weight, e);
        if (rc)
            return rc;
        d->count++;
    }
    return 0;
}

int pt_delay_parse(const char *text, void *field, struct pt_err *e)
{
    struct pt_delay d = {0};
    const char *rest;
    int rc = 0;
    if (is_none(text)) {
        rest = NULL;
    } else if ((rest = behind(text, "uniform"))) {
        d.kind = PT_DELAY_UNIFORM;
        rc = cut_time(&rest, '-', &d.a, e);
        if (!rc)
            rc = cut_time(&rest, '-', &d.b, e);
    } else if ((rest = behind(text, "normal"))) {
        d.kind = PT_DELAY_NORMAL;
        rc = cut_time(&rest, ':', &d.a, e);
        if (!rc)
            rc = cut_time(&rest, ':', &d.b, e);
    } else if ((rest = behind(text, "exp"))) {
        d.kind = PT_DELAY_EXP;
        rc = cut_time(&rest, ':', &d.a, e);
    } else if ((rest = behind(text, "table"))) {
        rc = parse_table(&rest, &d, e);
    } else {
        rest = text;
        d.kind = PT_DELAY_FIXED;
        rc = cut_time(&rest, ':', &d.a, e);
    }
    rc = finish(rc, rest, text,
                "5ms, uniform:1ms-3ms, normal:MEAN:SD, exp:MEAN, table:1ms=90,10ms=10", e);
    if (!rc)
        *(struct pt_delay *)field = d;
    return rc;
}

int pt_stall_parse(const char *text, void *field, struct pt_err *e)
{
    struct pt_stall s = {0};
    const char *rest = is_none(text) ? NULL : text;
    int rc = 0;
    if (rest) {
        bool again = strchr(rest, '/');
        rc = cut_time(&rest, again ? '/' : '@', &s.length, e);
        if (!rc && again)
            rc = cut_time(&rest, '@', &s.every, e);
        if (!rc && again && s.every == 0)
            rc = pt_fail(e, -EINVAL, "the period is 0");
        if (!rc && (rest || !again))
            rc = cut_time(&rest, '@', &s.at, e);
    }
    rc = finish(rc, rest, text, "100ms/1s, 100ms/1s@250ms, 2s@3s", e);
    if (!rc)
        *(struct pt_stall *)field = s;
    return rc;
}

int pt_chance_parse(const char *text, void *field, struct pt_err *e)
{
    struct pt_chance c = {0};
    const char *rest;
    int rc = 0;
    if (is_none(text)) {
        rest = NULL;
    } else if ((rest = behind(text, "every"))) {
        c.kind = PT_CHANCE_EVERY;
        rc = cut_count(&rest, ':', &c.every, e);
        if (!rc && c.every == 0)
            rc = pt_fail(e, -EINVAL, "N is 0");
    } else if ((rest = behind(text, "burst"))) {
        c.kind = PT_CHANCE_BURST;
        rc = cut_share(&rest, ':', &c.p, e);
        if (!rc)
            rc = cut_share(&rest, ':', &c.r, e);
    } else {
        rest = text;
        c.kind = PT_CHANCE_RANDOM;
        rc = cut_share(&rest, ':', &c.p, e);
    }
    rc = finish(rc, rest, text, "1%, every:100, burst:1%:25%", e);
    if (!rc)
        *(struct pt_chance *)field = c;
    return rc;
}

int pt_reorder_parse(const char *text, void *field, struct pt_err *e)
{
    struct pt_reorder r = {0};
    const char *rest = is_none(text) ? NULL : behind(text, "every");
    int rc = 0;
    if (!rest && !is_none(text))
        rc = pt_fail(e, -EINVAL, "every: is missing");
    if (rest) {
        rc = cut_count(&rest, ':', &r.every, e);
        const char *by = rc || !rest ? NULL : behind(rest, "by");
        uint64_t packets = 0;
        if (!rc && r.every == 0)
            rc = pt_fail(e, -EINVAL, "N is 0");
        if (!rc && !by)
            rc = pt_fail(e, -EINVAL, "by: is missing");
        /* Digits alone are packets; a time has its unit. */
        if (!rc && by && strspn(by, "0123456789") == strlen(by))
            rc = pt_count_parse(by, &packets, e);
        else if (!rc)
            rc = pt_time_parse(by, &r.by_ns, e);
        if (!rc && packets > UINT32_MAX)
            rc = pt_fail(e, -EINVAL, "too many packets");
        if (!rc && packets == 0 && r.by_ns == 0)
            rc = pt_fail(e, -EINVAL, "it holds back by nothing");
        r.by_packets = (uint32_t)packets;
        rest = NULL;
    }
    rc = finish(rc, rest, text, "every:50:by:3, every:50:by:2ms", e);
    if (!rc)
        *(struct pt_reorder *)field = r;
    return rc;
}

static int parse_cap_rate(const char *piece, struct pt_rate_cap *cap, struct pt_err *e)
{
    struct pt_rate rate;
    int rc = pt_rate_parse(piece, &rate, e);
    if (rc)
        return rc;
    if (!(rate.per_s >= 1 && rate.per_s <= 1e13))
        return pt_fail(e, -EINVAL, "a rate cap lies between 1 and 10T per second");
    cap->unit = rate.bits ? PT_RATE_BITS : PT_RATE_PACKETS;
    cap->per_s = (uint64_t)rate.per_s;
    return 0;
}

int pt_rate_cap_parse(const char *text, void *field, struct pt_err *e)
{
    struct pt_rate_cap cap = {0};
    const char *rest = is_none(text) ? NULL : text;
    int rc = 0;
    if (rest) {
        char piece[PIECE];
        rc = cut(&rest, ':', piece, e);
        if (!rc)
            rc = parse_cap_rate(piece, &cap, e);
        if (!rc && rest) {
            const char *queue = behind(rest, "queue");
            rc = queue ? pt_time_parse(queue, &cap.queue_ns, e)
                       : pt_fail(e, -EINVAL, "queue: is missing");
            if (!rc && cap.queue_ns == 0)
                rc = pt_fail(e, -EINVAL, "a queue of 0 passes nothing");
            rest = NULL;
        }
    }
    rc = finish(rc, rest, text, "100mbit, 10k, 100mbit:queue:20ms", e);
    if (!rc)
        *(struct pt_rate_cap *)field = cap;
    return rc;
}

int pt_clock_offset_parse(const char *text, void *field, struct pt_err *e)
{
    pt_ns offset = 0;
    bool minus = *text == '-';
    int rc = is_none(text) ? 0 : pt_time_parse(text + minus, &offset, e);
    if (!rc)
        *(pt_ns *)field = minus ? -offset : offset;
    return rc;
}

int pt_clock_drift_parse(const char *text, void *field, struct pt_err *e)
{
    char number[PIECE];
    double ppm = 0;
    bool minus = *text == '-';
    size_t n = strlen(text);
    int rc = 0;
    if (!is_none(text)) {
        if (n < 4 + (size_t)minus || n >= PIECE || strcmp(text + n - 3, "ppm") != 0)
            return pt_fail(e, -EINVAL, "\"%.80s\" is no drift: 50ppm, -20ppm", text);
        memcpy(number, text + minus, n - 3 - minus);
        number[n - 3 - minus] = '\0';
        rc = pt_real_parse(number, &ppm, e);
    }
    if (!rc)
        *(double *)field = minus ? -ppm : ppm;
    return rc;
}

static void add_time(struct pt_buf *out, const char *before, pt_ns time)
{
    char text[PT_UNITS_TEXT];
    pt_buf_addf(out, "%s%s", before, pt_time_print(text, sizeof(text), time));
}

static void add_share(struct pt_buf *out, const char *before, double share)
{
    char text[PT_UNITS_TEXT];
    pt_buf_addf(out, "%s%s", before, pt_percent_print(text, sizeof(text), share * 100));
}

void pt_delay_print(const void *field, struct pt_buf *out)
{
    const struct pt_delay *d = field;
    switch (d->kind) {
    case PT_DELAY_NONE:
        break;
    case PT_DELAY_FIXED:
        add_time(out, "", d->a);
        break;
    case PT_DELAY_UNIFORM:
        add_time(out, "uniform:", d->a);
        add_time(out, "-", d->b);
        break;
    case PT_DELAY_NORMAL:
        add_time(out, "normal:", d->a);
        add_time(out, ":", d->b);
        break;
    case PT_DELAY_EXP:
        add_time(out, "exp:", d->a);
        break;
    case PT_DELAY_TABLE:
        for (unsigned i = 0; i < d->count; i++) {
            char weight[PT_UNITS_TEXT];
            add_time(out, i ? "," : "table:", d->rows[i].delay);
            pt_buf_addf(out, "=%s", pt_real_print(weight, sizeof(weight), d->rows[i].weight));
        }
    }
}

void pt_stall_print(const void *field, struct pt_buf *out)
{
    const struct pt_stall *s = field;
    if (s->length == 0)
        return;
    add_time(out, "", s->length);
    if (s->every)
        add_time(out, "/", s->every);
    if (s->at || !s->every)
        add_time(out, "@", s->at);
}

void pt_chance_print(const void *field, struct pt_buf *out)
{
    const struct pt_chance *c = field;
    switch (c->kind) {
    case PT_CHANCE_NEVER:
        break;
    case PT_CHANCE_RANDOM:
        add_share(out, "", c->p);
        break;
    case PT_CHANCE_EVERY:
        pt_buf_addf(out, "every:%llu", (unsigned long long)c->every);
        break;
    case PT_CHANCE_BURST:
        add_share(out, "burst:", c->p);
        add_share(out, ":", c->r);
    }
}

void pt_reorder_print(const void *field, struct pt_buf *out)
{
    const struct pt_reorder *r = field;
    if (r->every == 0)
        return;
    pt_buf_addf(out, "every:%llu:by:", (unsigned long long)r->every);
    if (r->by_packets)
        pt_buf_addf(out, "%u", r->by_packets);
    else
        add_time(out, "", r->by_ns);
}

void pt_rate_cap_print(const void *field, struct pt_buf *out)
{
    const struct pt_rate_cap *cap = field;
    char text[PT_UNITS_TEXT];
    if (cap->unit == PT_RATE_NONE)
        return;
    struct pt_rate rate = {.per_s = (double)cap->per_s, .bits = cap->unit == PT_RATE_BITS};
    pt_buf_adds(out, pt_rate_print(text, sizeof(text), rate));
    if (cap->queue_ns)
        add_time(out, ":queue:", cap->queue_ns);
}

void pt_clock_offset_print(const void *field, struct pt_buf *out)
{
    const pt_ns *offset = field;
    if (*offset)
        add_time(out, *offset < 0 ? "-" : "", *offset < 0 ? -*offset : *offset);
}

void pt_clock_drift_print(const void *field, struct pt_buf *out)
{
    const double *ppm = field;
    char text[PT_UNITS_TEXT];
    if (*ppm < 0 || *ppm > 0)
        pt_buf_addf(out, "%s%sppm", *ppm < 0 ? "-" : "",
                    pt_real_print(text, sizeof(text), *ppm < 0 ? -*ppm : *ppm));
}
