/* test_seq.c: the books of a flow against a model that remembers everything.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/rng.h"
#include "stat/seq.h"

#include <stdlib.h>
#include <string.h>

#define NUMBERS 60000

static void books_equal_the_model(void **state)
{
    (void)state;
    struct pt_rng rng;
    pt_rng_init(&rng, test_seed());
    static unsigned char came[NUMBERS];
    for (int round = 0; round < 30; round++) {
        struct pt_seq seq = {0};
        struct pt_seq_books books = {0}, model = {0};
        memset(came, 0, sizeof(came));
        uint64_t at = 0, high = 0;
        bool any = false;
        uint64_t spread = 1 + pt_rng_below(&rng, PT_SEQ_WINDOW / 2);
        while (at + spread < NUMBERS) {
            uint64_t n = at + (pt_rng_below(&rng, 4) ? 0 : pt_rng_below(&rng, spread));
            at += pt_rng_below(&rng, 3);
            pt_seq_see(&seq, n, &books);
            if (came[n])
                model.duplicate++;
            else {
                model.unique++;
                model.reordered += any && n < high;
            }
            came[n] = 1;
            high = n > high ? n : high;
            any = true;
        }
        assert_int_equal(books.late, 0);
        assert_int_equal(books.unique, model.unique);
        assert_int_equal(books.duplicate, model.duplicate);
        assert_int_equal(books.reordered, model.reordered);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(books_equal_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
