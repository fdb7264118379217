/* hist.h: a log-linear histogram of unsigned 64-bit values, in nanoseconds by convention.
 *
 * Values below 2048 have a bucket each; above, every power of two is cut into 1024 buckets of equal
 * width, so a bucket is at most 1/1024 (0.098 %) of its values wide and its midpoint is within
 * 0.049 % of each. The whole range 0 to 2^64-1 is covered. The bucket borders are those of
 * HdrHistogram with lowest discernible value 1 and 3 significant digits (hdr.h relies on it).
 *
 * The struct is plain memory without pointers. All zero bytes are an empty histogram, so a fresh
 * anonymous or shared mapping needs no init, and only the rows that values fell into are ever
 * touched, by the writer or by a reader: a run whose values span four powers of two costs about
 * 40 KiB of the 440.
 *
 * One process writes. Another may read a mapping while it is written to: it takes pt_hist_merge or
 * pt_hist_copy, whose result agrees with itself in its count, and is at most the samples then in
 * flight away from the truth in its sum, minimum and maximum.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_STAT_HIST_H
#define PT_STAT_HIST_H

#include "base/types.h"

#define PT_HIST_SUB_BITS 10
#define PT_HIST_SUB      (1u << PT_HIST_SUB_BITS)
/* Row 0 holds the values below 2 * PT_HIST_SUB, row r > 0 those of bit length r + 11. */
#define PT_HIST_ROWS    (64 - PT_HIST_SUB_BITS)
#define PT_HIST_BUCKETS ((PT_HIST_ROWS + 1) * PT_HIST_SUB)
/* A percentile in the upper half stands on at least so many samples above it. */
#define PT_HIST_DEPTH 10

struct pt_hist {
    uint64_t count;
    uint64_t not_min; /* complement of the minimum, so that zero means "none yet" */
    uint64_t max;
    uint64_t sum_low, sum_high; /* 128 bits: cannot overflow while count fits 64 */
    uint64_t rows;              /* bit r: row r was written to */
    uint64_t buckets[PT_HIST_BUCKETS];
};

static inline unsigned pt_hist_row(uint64_t v)
{
    return 63 - PT_HIST_SUB_BITS - (unsigned)__builtin_clzll(v | PT_HIST_SUB);
}

/* The bucket of a value. */
static inline uint32_t pt_hist_index(uint64_t v)
{
    unsigned row = pt_hist_row(v);
    return (row << PT_HIST_SUB_BITS) + (uint32_t)(v >> row);
}

/* The smallest value of bucket `index` < PT_HIST_BUCKETS, and how many values it spans. */
uint64_t pt_hist_low(uint32_t index);
uint64_t pt_hist_width(uint32_t index);

/* Adds one value. A few instructions, no branch that misses, no allocation. */
static inline void pt_hist_record(struct pt_hist *h, uint64_t v)
{
    unsigned row = pt_hist_row(v);
    h->rows |= (uint64_t)1 << row;
    h->buckets[(row << PT_HIST_SUB_BITS) + (uint32_t)(v >> row)]++;
    h->count++;
    h->sum_high += __builtin_add_overflow(h->sum_low, v, &h->sum_low);
    if (PT_UNLIKELY(~v > h->not_min))
        h->not_min = ~v;
    if (PT_UNLIKELY(v > h->max))
        h->max = v;
}

/* Adds the value `n` times. The caller keeps the total count below 2^64. */
void pt_hist_record_n(struct pt_hist *h, uint64_t v, uint64_t n);

/* Makes it empty, touching only what was used. Not while another process writes. */
void pt_hist_reset(struct pt_hist *h);
/* Adds all samples of `from`: the result equals having recorded them here. */
void pt_hist_merge(struct pt_hist *into, const struct pt_hist *from);
/* `to` (initialised or zeroed) becomes equal to `from`. */
void pt_hist_copy(struct pt_hist *to, const struct pt_hist *from);

/* `out` becomes what was recorded after `before` was copied from the histogram that `now` was
 * copied from. Its minimum, maximum and sum are those of the buckets, not of the samples. */
void pt_hist_between(struct pt_hist *out, const struct pt_hist *now, const struct pt_hist *before);

static inline uint64_t pt_hist_count(const struct pt_hist *h)
{
    return h->count;
}

/* Exact; 0 when empty. */
uint64_t pt_hist_min(const struct pt_hist *h);
uint64_t pt_hist_max(const struct pt_hist *h);
/* Of the exact sum; 0 when empty. */
double pt_hist_mean(const struct pt_hist *h);
/* Population standard deviation of the bucket midpoints; differs from that of the samples by at
 * most half a bucket, 0.049 % of the largest values that matter to it. Exact below 2048. */
double pt_hist_stddev(const struct pt_hist *h);
/* Percentage of samples within one standard deviation of the mean, a bucket that the limit cuts
 * counted as inside; 0 when empty. For a normal distribution 68.3. */
double pt_hist_within_1_stddev_pct(const struct pt_hist *h);

/* The value at quantile `q` in [0, 1]: the midpoint of the bucket of the ceil(q * count)-th
 * smallest sample, so within 0.049 % of that sample; exact for the smallest and the largest sample
 * and below 2048. 0 when empty. HdrHistogram tools print the upper border of the same bucket. */
uint64_t pt_hist_quantile(const struct pt_hist *h, double q);

/* Whether enough samples stand behind quantile `q` to print it; sinks print null otherwise.
 * The rule: above the median at least PT_HIST_DEPTH samples lie beyond it, count * (1 - q) >= 10
 * (p75 from 40 samples, p90 from 100, p99 from 1,000, p99.9 from 10,000); the median and below
 * need one sample, as do 0 and 1, which are the exact minimum and maximum. */
bool pt_hist_depth_ok(const struct pt_hist *h, double q);

/* A walk over the buckets that hold something, in rising order:
 *     struct pt_hist_bucket b = {0};
 *     while (pt_hist_next(h, &b))
 *         use(b.low, b.high, b.count); */
struct pt_hist_bucket {
    uint64_t low, high; /* smallest and largest value that fall into it */
    uint64_t count;
    uint32_t index;
    uint32_t after; /* where the walk goes on */
};
bool pt_hist_next(const struct pt_hist *h, struct pt_hist_bucket *b);

/* The value that stands for a bucket. */
static inline uint64_t pt_hist_mid(const struct pt_hist_bucket *b)
{
    return b->low + (b->high - b->low + 1) / 2;
}

#endif
