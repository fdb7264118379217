/* test_clock.c: a kernel timestamp as an instant of the monotonic clock.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "os/clock.h"

/* Two readings of a clock are apart; the conversion must lie between those taken around it. */
static void a_stamp_becomes_its_instant(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        pt_ns before = pt_clock_now();
        pt_ns stamp = pt_clock_realtime();
        pt_ns after = pt_clock_now();
        pt_ns instant = pt_clock_of_stamp(stamp);
        /* 0.1 ms: the two clocks are read one after the other, and a busy machine may come between.
         */
        if (pt_clock_now() - before > 100 * PT_US)
            continue;
        assert_true(instant >= before - 100 * PT_US && instant <= after + 100 * PT_US);
        pt_ns second_ago = pt_clock_of_stamp(stamp - PT_S);
        assert_true(second_ago >= before - PT_S - 100 * PT_US);
        assert_true(second_ago <= after - PT_S + 100 * PT_US);
    }
}

static void a_stamp_from_elsewhere_is_now(void **state)
{
    (void)state;
    const pt_ns off[] = {-3600 * PT_S, -10 * PT_S, PT_S, 86400 * PT_S};
    for (size_t i = 0; i < PT_COUNT(off); i++) {
        pt_ns before = pt_clock_now();
        pt_ns instant = pt_clock_of_stamp(pt_clock_realtime() + off[i]);
        assert_true(instant >= before && instant <= pt_clock_now());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stamp_becomes_its_instant),
        cmocka_unit_test(a_stamp_from_elsewhere_is_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
