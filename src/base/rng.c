/* rng.c: see rng.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <errno.h>
#include <math.h>
#include <sys/random.h>

static uint64_t rotl(uint64_t x, unsigned k)
{
    return (x << k) | (x >> (64 - k));
}

void pt_rng_init(struct pt_rng *r, uint64_t seed)
{
    for (size_t i = 0; i < PT_COUNT(r->s); i++) {
        seed += 0x9e3779b97f4a7c15u;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->s[i] = z ^ (z >> 31);
    }
}

uint64_t pt_rng_u64(struct pt_rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t pt_rng_below(struct pt_rng *r, uint64_t n)
{
    __extension__ typedef unsigned __int128 u128;
    u128 m = (u128)pt_rng_u64(r) * n;
    if ((uint64_t)m < n) {
        uint64_t floor = (0 - n) % n;
        while ((uint64_t)m < floor)
            m = (u128)pt_rng_u64(r) * n;
    }
    return (uint64_t)(m >> 64);
}

double pt_rng_unit(struct pt_rng *r)
{
    return (double)(pt_rng_u64(r) >> 11) * 0x1p-53;
}

double pt_rng_exp(struct pt_rng *r, double mean)
{
    return -mean * log1p(-pt_rng_unit(r));
}

int pt_random_bytes(void *out, size_t n)
{
    char *p = out;
    while (n) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        p += got;
        n -= (size_t)got;
    }
    return 0;
}
