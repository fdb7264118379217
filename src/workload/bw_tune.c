/* bw_tune.c: the block size and the way of sending that this path carries most with.
 *
 * Each candidate sends for a slice of the warm-up, upwards and then downwards, so that a slow start
 * or a candidate that hurt the next one does not decide. The first slice is not counted.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload/bw.h"

#include <stdio.h>
#include <string.h>

#define SLICE_MIN    (12 * PT_MS)
#define WARMUP_SHARE 0.85

static struct pt_bw_candidate *add(struct pt_bw_tuner *t, enum pt_bulk_method how, size_t block)
{
    struct pt_bw_candidate *c = &t->c[t->n++];
    *c = (struct pt_bw_candidate){.how = how, .block = block};
    return c;
}

void pt_bw_tune_init(struct pt_bw_tuner *t, const struct pt_bw_opts *o, size_t fixed, bool joins,
                     pt_ns warmup)
{
    static const size_t blocks[] = {64 << 10, 128 << 10, 256 << 10, 512 << 10,
                                    1 << 20,  2 << 20,   4 << 20};
    *t = (struct pt_bw_tuner){0};
    enum pt_bulk_method how = o->zerocopy == PT_BW_SENDFILE       ? PT_BULK_SENDFILE
                              : o->zerocopy == PT_BW_SPLICE       ? PT_BULK_SPLICE
                              : o->zerocopy == PT_BW_MSG_ZEROCOPY ? PT_BULK_ZEROCOPY
                                                                  : PT_BULK_WRITE;
    for (size_t i = 0; i < PT_COUNT(blocks) && !fixed; i++)
        add(t, how, blocks[i]);
    if (fixed)
        add(t, how, fixed);
    if (o->zerocopy == PT_BW_AUTO) {
        add(t, PT_BULK_SENDFILE, fixed ? fixed : 1 << 20);
        add(t, PT_BULK_SPLICE, fixed ? fixed : 512 << 10);
    }
    if (joins) {
        add(t, how, fixed ? fixed : 1 << 20)->beside = true;
        add(t, how, fixed ? fixed : 4 << 20)->beside = true;
    }
    t->how = how;
    t->block = fixed ? fixed : PT_BW_BLOCK;
    t->slice = (pt_ns)((double)warmup * WARMUP_SHARE / (2 * t->n + 1));
    t->settled = t->n == 1 || t->slice < SLICE_MIN;
    t->rounds_left = 2;
}

static void use(struct pt_bw_tuner *t, const struct pt_bw_candidate *c)
{
    t->how = c->how;
    t->block = c->block;
    t->beside = c->beside;
}

static void settle(struct pt_bw_tuner *t)
{
    const struct pt_bw_candidate *best = &t->c[0];
    for (unsigned i = 1; i < t->n; i++) {
        const struct pt_bw_candidate *c = &t->c[i];
        if (c->ns > 0 && (best->ns <= 0 || c->bytes / c->ns > best->bytes / best->ns))
            best = c;
    }
    use(t, best);
    t->settled = true;
}

bool pt_bw_tune(struct pt_bw_tuner *t, pt_ns now, uint64_t bytes)
{
    if (t->settled)
        return false;
    if (!t->until) { /* the first slice warms the connection up, with the default */
        t->until = now + t->slice;
        t->began = 0;
        return false;
    }
    if (t->began) {
        struct pt_bw_candidate *c = &t->c[t->at];
        c->bytes += (double)bytes;
    }
    if (now < t->until)
        return false;
    if (t->began) {
        t->c[t->at].ns += (double)(now - t->began);
        bool last = t->down ? t->at == 0 : t->at + 1 == t->n;
        if (last) {
            t->down = !t->down;
            if (--t->rounds_left == 0) {
                settle(t);
                return true;
            }
        } else {
            t->at = t->down ? t->at - 1 : t->at + 1;
        }
    }
    use(t, &t->c[t->at]);
    t->began = now;
    t->until = now + t->slice;
    return false;
}

static void print_size(char *out, size_t cap, size_t n)
{
    if (n % (1 << 20) == 0)
        snprintf(out, cap, "%zu MiB", n >> 20);
    else if (n % 1024 == 0)
        snprintf(out, cap, "%zu KiB", n >> 10);
    else
        snprintf(out, cap, "%zu B", n);
}

void pt_bw_tune_text(const struct pt_bw_tuner *t, char *out, size_t cap)
{
    char size[32];
    print_size(size, sizeof(size), t->block);
    int at = snprintf(out, cap, "sent by %s in blocks of %s%s", pt_bulk_names[t->how], size,
                      t->beside ? " on the receiver's CPU" : "");
    if (t->n < 2 || t->c[0].ns <= 0)
        return;
    at += snprintf(out + at, cap - (size_t)at, ", the fastest of");
    for (unsigned i = 0; i < t->n && (size_t)at < cap; i++) {
        const struct pt_bw_candidate *c = &t->c[i];
        print_size(size, sizeof(size), c->block);
        at += snprintf(out + at, cap - (size_t)at, "%s %s%s%s%s %.1f", i ? "," : "",
                       c->how == PT_BULK_WRITE ? "" : pt_bulk_names[c->how],
                       c->how == PT_BULK_WRITE ? "" : " ", size, c->beside ? " on one CPU" : "",
                       c->ns > 0 ? c->bytes * 8 / c->ns : 0);
    }
    if ((size_t)at < cap)
        snprintf(out + at, cap - (size_t)at, " Gbit/s");
}
