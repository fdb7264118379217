/* hist.c: see hist.h.
 *
 * Every scan goes row by row and leaves out the rows never written to: reading an untouched page of
 * a shared mapping would allocate it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "stat/hist.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

static unsigned row_of(uint32_t index)
{
    return index < 2 * PT_HIST_SUB ? 0 : (index >> PT_HIST_SUB_BITS) - 1;
}

/* Row 0 is twice as long as the others. */
static uint32_t row_begin(unsigned row)
{
    return row ? (row + 1) << PT_HIST_SUB_BITS : 0;
}

static uint32_t row_end(unsigned row)
{
    return (row + 2) << PT_HIST_SUB_BITS;
}

uint64_t pt_hist_low(uint32_t index)
{
    unsigned row = row_of(index);
    return (uint64_t)(index - (row << PT_HIST_SUB_BITS)) << row;
}

uint64_t pt_hist_width(uint32_t index)
{
    return (uint64_t)1 << row_of(index);
}

static void add_sum(struct pt_hist *h, u128 sum)
{
    sum += (u128)h->sum_high << 64 | h->sum_low;
    h->sum_low = (uint64_t)sum;
    h->sum_high = (uint64_t)(sum >> 64);
}

void pt_hist_record_n(struct pt_hist *h, uint64_t v, uint64_t n)
{
    if (!n)
        return;
    h->rows |= (uint64_t)1 << pt_hist_row(v);
    h->buckets[pt_hist_index(v)] += n;
    h->count += n;
    add_sum(h, (u128)v * n);
    if (~v > h->not_min)
        h->not_min = ~v;
    if (v > h->max)
        h->max = v;
}

void pt_hist_reset(struct pt_hist *h)
{
    for (uint64_t rows = h->rows; rows; rows &= rows - 1) {
        unsigned row = (unsigned)__builtin_ctzll(rows);
        uint32_t begin = row_begin(row);
        memset(&h->buckets[begin], 0, (row_end(row) - begin) * sizeof(h->buckets[0]));
    }
    memset(h, 0, offsetof(struct pt_hist, buckets));
}

/* The count is taken from the buckets, so that it agrees with them even when the writer is at
 * work. */
void pt_hist_merge(struct pt_hist *into, const struct pt_hist *from)
{
    uint64_t total = 0;
    for (uint64_t rows = from->rows; rows; rows &= rows - 1) {
        unsigned row = (unsigned)__builtin_ctzll(rows);
        for (uint32_t i = row_begin(row); i < row_end(row); i++) {
            uint64_t n = from->buckets[i];
            into->buckets[i] += n;
            total += n;
        }
        into->rows |= (uint64_t)1 << row;
    }
    into->count += total;
    add_sum(into, (u128)from->sum_high << 64 | from->sum_low);
    if (from->not_min > into->not_min)
        into->not_min = from->not_min;
    if (from->max > into->max)
        into->max = from->max;
}

void pt_hist_copy(struct pt_hist *to, const struct pt_hist *from)
{
    pt_hist_reset(to);
    pt_hist_merge(to, from);
}

void pt_hist_between(struct pt_hist *out, const struct pt_hist *now, const struct pt_hist *before)
{
    pt_hist_reset(out);
    for (uint64_t rows = now->rows; rows; rows &= rows - 1) {
        unsigned row = (unsigned)__builtin_ctzll(rows);
        for (uint32_t i = row_begin(row); i < row_end(row); i++)
            if (now->buckets[i] > before->buckets[i])
                pt_hist_record_n(out, pt_hist_low(i) + pt_hist_width(i) / 2,
                                 now->buckets[i] - before->buckets[i]);
    }
}

bool pt_hist_next(const struct pt_hist *h, struct pt_hist_bucket *b)
{
    uint32_t i = b->after;
    while (i < PT_HIST_BUCKETS) {
        unsigned row = row_of(i);
        if (!(h->rows >> row & 1)) {
            i = row_end(row);
            continue;
        }
        for (uint32_t end = row_end(row); i < end; i++) {
            uint64_t n = h->buckets[i];
            if (!n)
                continue;
            uint64_t low = pt_hist_low(i);
            *b = (struct pt_hist_bucket){
                .low = low, .high = low + (pt_hist_width(i) - 1), .count = n, .index = i};
            b->after = i + 1;
            return true;
        }
    }
    return false;
}

uint64_t pt_hist_min(const struct pt_hist *h)
{
    return h->count ? ~h->not_min : 0;
}

uint64_t pt_hist_max(const struct pt_hist *h)
{
    return h->max;
}

double pt_hist_mean(const struct pt_hist *h)
{
    if (!h->count)
        return 0;
    return ((double)h->sum_high * 0x1p64 + (double)h->sum_low) / (double)h->count;
}

/* Mean and standard deviation of the midpoints. Both from the same midpoints: mixing in the exact
 * mean would turn the width of a bucket into a spread that the samples do not have. */
struct spread {
    double mean, stddev;
};

static struct spread spread_of(const struct pt_hist *h)
{
    struct spread s = {0};
    if (!h->count)
        return s;
    double n = 0, sum = 0;
    struct pt_hist_bucket b = {0};
    while (pt_hist_next(h, &b)) {
        n += (double)b.count;
        sum += (double)b.count * (double)pt_hist_mid(&b);
    }
    s.mean = sum / n;
    double squares = 0;
    b = (struct pt_hist_bucket){0};
    while (pt_hist_next(h, &b)) {
        double away = (double)pt_hist_mid(&b) - s.mean;
        squares += (double)b.count * away * away;
    }
    s.stddev = sqrt(squares / n);
    return s;
}

double pt_hist_stddev(const struct pt_hist *h)
{
    return spread_of(h).stddev;
}

double pt_hist_within_1_stddev_pct(const struct pt_hist *h)
{
    if (!h->count)
        return 0;
    struct spread s = spread_of(h);
    /* The slack absorbs the rounding of the mean: two values are both exactly one deviation away.
     */
    double reach = s.stddev + 1e-12 * s.mean;
    double inside = 0, n = 0;
    struct pt_hist_bucket b = {0};
    while (pt_hist_next(h, &b)) {
        n += (double)b.count;
        double half = (double)(b.high - b.low) / 2;
        if (fabs((double)b.low + half - s.mean) <= reach + half)
            inside += (double)b.count;
    }
    return 100 * inside / n;
}

/* 1-based rank of quantile q. A product that is an integer but for rounding (0.07 * 100) is that
 * integer. */
static uint64_t rank_of(uint64_t count, double q)
{
    double exact = q * (double)count;
    double rank = ceil(exact - exact * 1e-12);
    if (!(rank >= 1))
        return 1;
    return rank >= (double)count ? count : (uint64_t)rank;
}

uint64_t pt_hist_quantile(const struct pt_hist *h, double q)
{
    if (!h->count)
        return 0;
    uint64_t min = pt_hist_min(h), max = pt_hist_max(h);
    uint64_t rank = rank_of(h->count, q);
    if (rank == 1)
        return min;
    if (rank == h->count)
        return max;
    uint64_t below = 0;
    struct pt_hist_bucket b = {0};
    while (pt_hist_next(h, &b)) {
        if (b.count >= rank - below) {
            uint64_t mid = pt_hist_mid(&b);
            return mid < min ? min : mid > max ? max : mid;
        }
        below += b.count;
    }
    return max;
}

bool pt_hist_depth_ok(const struct pt_hist *h, double q)
{
    if (!h->count || !(q >= 0 && q <= 1))
        return false;
    if (q <= 0.5 || q == 1.0)
        return true;
    /* The slack lets 1,000 samples carry p99 although 1 - 0.99 is a little less than 0.01. */
    return (double)h->count * (1 - q) >= PT_HIST_DEPTH * (1 - 1e-9);
}
