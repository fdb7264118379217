/* test_impair_text.c: impairments in text, and back.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/impair_text.h"

#include <errno.h>
#include <string.h>

typedef int parse_fn(const char *, void *, struct pt_err *);
typedef void print_fn(const void *, struct pt_buf *);

/* Parses, prints, parses what was printed: the same field and the same text. */
static void round_trip(parse_fn *parse, print_fn *print, size_t size, const char *text, void *field)
{
    struct pt_err e = {0};
    struct pt_buf out;
    char again[sizeof(struct pt_delay)] = {0};
    assert_true(size <= sizeof(again));
    memset(field, 0xee, size);
    memset(again, 0xee, size);
    if (parse(text, field, &e))
        fail_msg("%s: %s", text, e.text);
    pt_buf_init(&out, 4096);
    print(field, &out);
    if (parse(pt_buf_str(&out), again, &e))
        fail_msg("%s, printed as %s: %s", text, pt_buf_str(&out), e.text);
    assert_string_equal(pt_buf_str(&out), text);
    assert_memory_equal(field, again, size);
    pt_buf_fini(&out);
}

#define ROUND_TRIP(name, text, field)                                                              \
    round_trip(pt_##name##_parse, pt_##name##_print, sizeof(*(field)), text, field)

static void refused(parse_fn *parse, const char *const *texts)
{
    for (; *texts; texts++) {
        struct pt_err e = {0};
        char field[sizeof(struct pt_delay)], before[sizeof(field)];
        memset(field, 0x5a, sizeof(field));
        memcpy(before, field, sizeof(field));
        if (parse(*texts, field, &e) != -EINVAL || !e.text[0])
            fail_msg("\"%s\" was accepted", *texts);
        assert_memory_equal(field, before, sizeof(field));
    }
}

#define REFUSED(name, ...) refused(pt_##name##_parse, (const char *const[]){__VA_ARGS__, NULL})

static void delays(void **state)
{
    (void)state;
    struct pt_delay d;
    ROUND_TRIP(delay, "5ms", &d);
    assert_int_equal(d.kind, PT_DELAY_FIXED);
    assert_int_equal(d.a, 5 * PT_MS);
    ROUND_TRIP(delay, "uniform:1ms-3ms", &d);
    assert_int_equal(d.kind, PT_DELAY_UNIFORM);
    assert_int_equal(d.a, PT_MS);
    assert_int_equal(d.b, 3 * PT_MS);
    ROUND_TRIP(delay, "normal:5ms:250us", &d);
    assert_int_equal(d.kind, PT_DELAY_NORMAL);
    assert_int_equal(d.b, 250 * PT_US);
    ROUND_TRIP(delay, "exp:2ms", &d);
    assert_int_equal(d.kind, PT_DELAY_EXP);
    ROUND_TRIP(delay, "table:1ms=90,10ms=9.5,50ms=0.5", &d);
    assert_int_equal(d.kind, PT_DELAY_TABLE);
    assert_int_equal(d.count, 3);
    assert_int_equal(d.rows[1].delay, 10 * PT_MS);
    assert_true(d.rows[1].weight > 9.49 && d.rows[1].weight < 9.51);
    ROUND_TRIP(delay, "", &d);
    assert_int_equal(d.kind, PT_DELAY_NONE);
    assert_int_equal(pt_delay_parse("none", &d, NULL), 0);
    assert_int_equal(d.kind, PT_DELAY_NONE);
    REFUSED(delay, "x", "-5ms", "5ms:1ms", "uniform:1ms", "uniform:1ms-2ms-3ms", "normal:5ms",
            "normal:5ms:1ms:", "exp:", "gamma:1ms", "table:", "table:1ms",
            "table:1ms=", "table:1ms=1,", "table:1ms=x",
            "table:1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1,1=1");
}

static void stalls(void **state)
{
    (void)state;
    struct pt_stall s;
    ROUND_TRIP(stall, "100ms/1s", &s);
    assert_int_equal(s.length, 100 * PT_MS);
    assert_int_equal(s.every, PT_S);
    assert_int_equal(s.at, 0);
    ROUND_TRIP(stall, "100ms/1s@250ms", &s);
    assert_int_equal(s.at, 250 * PT_MS);
    ROUND_TRIP(stall, "2s@3s", &s);
    assert_int_equal(s.length, 2 * PT_S);
    assert_int_equal(s.every, 0);
    assert_int_equal(s.at, 3 * PT_S);
    ROUND_TRIP(stall, "", &s);
    REFUSED(stall, "100ms", "100ms/", "100ms/0s", "100ms@", "/1s", "2s@3s/4s", "1s/2s@3s@4s");
}

static void chances(void **state)
{
    (void)state;
    struct pt_chance c;
    ROUND_TRIP(chance, "1%", &c);
    assert_int_equal(c.kind, PT_CHANCE_RANDOM);
    assert_true(c.p > 0.00999 && c.p < 0.01001);
    ROUND_TRIP(chance, "every:100", &c);
    assert_int_equal(c.kind, PT_CHANCE_EVERY);
    assert_int_equal(c.every, 100);
    ROUND_TRIP(chance, "burst:1%:25%", &c);
    assert_int_equal(c.kind, PT_CHANCE_BURST);
    assert_true(c.r > 0.2499 && c.r < 0.2501);
    ROUND_TRIP(chance, "", &c);
    REFUSED(chance, "101%", "-1%", "1%:2%", "every:", "every:0", "every:5:6", "burst:1%",
            "burst:1%:2%:3%", "often");
}

static void reorders(void **state)
{
    (void)state;
    struct pt_reorder r;
    ROUND_TRIP(reorder, "every:50:by:3", &r);
    assert_int_equal(r.every, 50);
    assert_int_equal(r.by_packets, 3);
    assert_int_equal(r.by_ns, 0);
    ROUND_TRIP(reorder, "every:50:by:2ms", &r);
    assert_int_equal(r.by_packets, 0);
    assert_int_equal(r.by_ns, 2 * PT_MS);
    ROUND_TRIP(reorder, "", &r);
    REFUSED(reorder, "50", "every:50", "every:50:by:", "every:0:by:1", "every:50:by:0",
            "every:50:3", "every:50:by:3:4", "every:50:by:99999999999");
}

static void rate_caps(void **state)
{
    (void)state;
    struct pt_rate_cap c;
    ROUND_TRIP(rate_cap, "100Mbit", &c);
    assert_int_equal(c.unit, PT_RATE_BITS);
    assert_int_equal(c.per_s, 100000000);
    assert_int_equal(c.queue_ns, 0);
    ROUND_TRIP(rate_cap, "10k", &c);
    assert_int_equal(c.unit, PT_RATE_PACKETS);
    assert_int_equal(c.per_s, 10000);
    ROUND_TRIP(rate_cap, "100Mbit:queue:20ms", &c);
    assert_int_equal(c.queue_ns, 20 * PT_MS);
    ROUND_TRIP(rate_cap, "", &c);
    REFUSED(rate_cap, "0", "0.5", "-1k", "100mbit:20ms", "100mbit:queue:", "100mbit:queue:0s",
            "fast");
}

static void clocks(void **state)
{
    (void)state;
    pt_ns offset;
    double drift;
    ROUND_TRIP(clock_offset, "3ms", &offset);
    assert_int_equal(offset, 3 * PT_MS);
    ROUND_TRIP(clock_offset, "-3ms", &offset);
    assert_int_equal(offset, -3 * PT_MS);
    ROUND_TRIP(clock_offset, "", &offset);
    ROUND_TRIP(clock_drift, "50ppm", &drift);
    assert_true(drift > 49.9 && drift < 50.1);
    ROUND_TRIP(clock_drift, "-0.5ppm", &drift);
    assert_true(drift > -0.51 && drift < -0.49);
    ROUND_TRIP(clock_drift, "", &drift);
    REFUSED(clock_offset, "--3ms", "-", "3 parsecs");
    REFUSED(clock_drift, "50", "ppm", "-ppm", "--5ppm", "1e", "50 ppmx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays),   cmocka_unit_test(stalls),    cmocka_unit_test(chances),
        cmocka_unit_test(reorders), cmocka_unit_test(rate_caps), cmocka_unit_test(clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
