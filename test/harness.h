/* harness.h: what every cmocka test file includes, in the order cmocka needs it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_TEST_HARNESS_H
#define PT_TEST_HARNESS_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A seed for random tests, printed so that a failure can be repeated: PT_TEST_SEED sets it. */
static inline uint64_t test_seed(void)
{
    const char *given = getenv("PT_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = given ? strtoull(given, NULL, 0)
                          : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    printf("# seed: PT_TEST_SEED=%" PRIu64 "\n", seed);
    fflush(stdout);
    return seed;
}

#endif
