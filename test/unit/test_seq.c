/* test_seq.c: the books of a sequenced flow: lost, duplicate, reordered, late, and no wrap at 2^31.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "stat/seq.h"

static struct pt_seq seq;
static struct pt_seq_books books;

static int fresh(void **state)
{
    (void)state;
    seq = (struct pt_seq){0};
    books = (struct pt_seq_books){0};
    return 0;
}

static void see(uint64_t first, uint64_t last)
{
    for (uint64_t n = first; n <= last; n++)
        pt_seq_see(&seq, n, &books);
}

static void in_order_is_only_unique(void **state)
{
    (void)state;
    see(0, 99999);
    assert_int_equal(books.unique, 100000);
    assert_int_equal(books.duplicate + books.reordered + books.late, 0);
    assert_int_equal(pt_seq_lost(&books, 100000), 0);
}

static void a_gap_is_lost_until_it_comes(void **state)
{
    (void)state;
    see(0, 9);
    see(20, 29);
    assert_int_equal(pt_seq_lost(&books, 30), 10);
    see(15, 15);
    assert_int_equal(books.reordered, 1);
    assert_int_equal(pt_seq_lost(&books, 30), 9);
    see(15, 15);
    assert_int_equal(books.duplicate, 1);
    assert_int_equal(pt_seq_lost(&books, 30), 9);
}

static void duplicates_never_make_loss_negative(void **state)
{
    (void)state;
    see(0, 99);
    see(0, 99);
    see(0, 99);
    assert_int_equal(books.unique, 100);
    assert_int_equal(books.duplicate, 200);
    assert_int_equal(pt_seq_lost(&books, 100), 0);
    assert_int_equal(pt_seq_lost(&books, 50), 0); /* a sender that says less than came */
}

static void older_than_the_window_is_late(void **state)
{
    (void)state;
    see(0, 0);
    see(2, 3 * PT_SEQ_WINDOW);
    pt_seq_see(&seq, 1, &books);
    assert_int_equal(books.late, 1);
    assert_int_equal(books.duplicate, 0);
    assert_int_equal(pt_seq_lost(&books, 3 * PT_SEQ_WINDOW + 1), 0);
}

static void a_jump_forgets_what_was_before(void **state)
{
    (void)state;
    see(0, 9);
    see(1000000, 1000009);
    see(1000000 - 5, 1000000 - 1);
    assert_int_equal(books.reordered, 5);
    assert_int_equal(books.duplicate, 0);
    see((uint64_t)1 << 62, ((uint64_t)1 << 62) + 1);
    assert_int_equal(books.unique, 27);
}

static void every_order_within_the_window_counts_each_once(void **state)
{
    (void)state;
    /* A stride that is prime to the block size visits each number of a block once. */
    for (uint64_t block = 0; block < 50; block++)
        for (uint64_t i = 0; i < 1000; i++)
            pt_seq_see(&seq, block * 1000 + i * 377 % 1000, &books);
    assert_int_equal(books.unique, 50000);
    assert_int_equal(books.duplicate + books.late, 0);
    assert_int_equal(pt_seq_lost(&books, 50000), 0);
}

static void short_numbers_are_extended_over_their_wrap(void **state)
{
    (void)state;
    uint64_t mask = ((uint64_t)1 << 31) - 1;
    seq.next = mask - 2; /* just before the 31 bits are used up */
    for (uint64_t n = mask - 2; n < mask + 1000; n++)
        pt_seq_see(&seq, pt_seq_extend(&seq, n & mask, 31), &books);
    assert_int_equal(books.unique, 1002);
    assert_int_equal(books.reordered + books.duplicate + books.late, 0);
    assert_int_equal(seq.next, mask + 1000);
    assert_int_equal(pt_seq_extend(&seq, mask, 31), mask); /* a late one from before the wrap */
    struct pt_seq young = {.next = 3};
    assert_int_equal(pt_seq_extend(&young, 1, 31), 1);
    assert_int_equal(pt_seq_extend(&young, 100, 31), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(in_order_is_only_unique, fresh),
        cmocka_unit_test_setup(a_gap_is_lost_until_it_comes, fresh),
        cmocka_unit_test_setup(duplicates_never_make_loss_negative, fresh),
        cmocka_unit_test_setup(older_than_the_window_is_late, fresh),
        cmocka_unit_test_setup(a_jump_forgets_what_was_before, fresh),
        cmocka_unit_test_setup(every_order_within_the_window_counts_each_once, fresh),
        cmocka_unit_test_setup(short_numbers_are_extended_over_their_wrap, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
