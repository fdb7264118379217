/* rng.h: a small, fast, seedable generator; the same seed gives the same run everywhere.
 *
 * xoshiro256++ (Blackman, Vigna, "Scrambled linear pseudorandom number generators", 2021), seeded
 * by splitmix64. Not for secrets: those come from getrandom(2) through pt_random_bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_BASE_RNG_H
#define PT_BASE_RNG_H

#include "base/types.h"

struct pt_rng {
    uint64_t s[4];
};

void pt_rng_init(struct pt_rng *r, uint64_t seed);
uint64_t pt_rng_u64(struct pt_rng *r);
/* Uniform in [0, n), n > 0, without modulo bias (Lemire 2019). */
uint64_t pt_rng_below(struct pt_rng *r, uint64_t n);
/* Uniform in [0, 1), 53 bits. */
double pt_rng_unit(struct pt_rng *r);
/* Exponential with the given mean. */
double pt_rng_exp(struct pt_rng *r, double mean);
/* Fills `out` from the kernel; 0 or a negative errno. */
int pt_random_bytes(void *out, size_t n) PT_MUST_USE;

#endif
