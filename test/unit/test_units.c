/* test_units.c: quantities are read exactly or refused, and printed so that they read well.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/units.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <string.h>

static void reads_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"1500", 1500},
        {"64k", 64000},
        {"64K", 64000},
        {"64kB", 64000},
        {"64KiB", 65536},
        {"64 KiB", 65536},
        {"1.5MiB", 1572864},
        {".5k", 500},
        {"1M", 1000000},
        {"3G", 3000000000},
        {"2GiB", 2147483648},
        {"1T", 1000000000000},
        {"1TiB", 1099511627776},
        {"9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < PT_COUNT(good); i++) {
        uint64_t bytes = 99;
        struct pt_err e = {0};
        assert_int_equal(pt_size_parse(good[i].text, &bytes, &e), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
}

static void refuses_what_is_no_size(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "k",
        "-1",
        "+1",
        "1x",
        "1kk",
        "1.5",
        "1.5B",
        "0x10",
        "nan",
        "inf",
        "1e3",
        "1,5k",
        "1..5",
        "1.",
        "10gbit",
        "1k ",
        " 1k",
        "1  k",
        "٣",
        "1\n",
        "--5",
        "9223372036854775808",
        "9999999TiB",
        "18446744073709551616",
        "99999999999999999999999999999999",
    };
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        uint64_t bytes = 7;
        struct pt_err e = {0};
        assert_int_equal(pt_size_parse(bad[i], &bytes, &e), -EINVAL);
        assert_int_equal(bytes, 7);
        assert_non_null(strstr(e.text, "expected bytes"));
    }
}

static void reads_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pt_ns ns;
    } good[] = {
        {"0", 0},           {"10", 10 * PT_S},      {"0.25", 250 * PT_MS},
        {"100ns", 100},     {"250us", 250 * PT_US}, {"24.7µs", 24700},
        {"24.7 μs", 24700}, {"10ms", 10 * PT_MS},   {"1.5s", 1500 * PT_MS},
        {"1m", 60 * PT_S},  {"2h", 7200 * PT_S},    {"0.000000001", 1},
    };
    for (size_t i = 0; i < PT_COUNT(good); i++) {
        pt_ns ns = -1;
        assert_int_equal(pt_time_parse(good[i].text, &ns, NULL), 0);
        assert_int_equal(ns, good[i].ns);
    }
    static const char *const bad[] = {"",          "-1s",   "10M",      "1S",
                                      "5 minutes", "1.5ns", "1e3s",     "s",
                                      "3000000h",  "1s2",   "infinity", "0.0000000001"};
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        pt_ns ns = 3;
        struct pt_err e = {0};
        assert_int_equal(pt_time_parse(bad[i], &ns, &e), -EINVAL);
        assert_int_equal(ns, 3);
        assert_non_null(strstr(e.text, "expected a time"));
    }
}

static void reads_rates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double per_s;
        bool bits;
    } good[] = {
        {"100", 100, false},           {"100k", 1e5, false},         {"1.5M", 1.5e6, false},
        {"100k/s", 1e5, false},        {"1.25 Mpps", 1.25e6, false}, {"0.5", 0.5, false},
        {"10gbit", 1e10, true},        {"100mbit", 1e8, true},       {"10Gbit/s", 1e10, true},
        {"94.1 Gbit/s", 94.1e9, true}, {"5Gbps", 5e9, true},         {"9600bit", 9600, true},
    };
    for (size_t i = 0; i < PT_COUNT(good); i++) {
        struct pt_rate r = {0};
        assert_int_equal(pt_rate_parse(good[i].text, &r, NULL), 0);
        assert_true(fabs(r.per_s - good[i].per_s) <= good[i].per_s * 1e-15);
        assert_int_equal(r.bits, good[i].bits);
    }
    static const char *const bad[] = {"",
                                      "-5",
                                      "10gb",
                                      "10GiB",
                                      "10 x",
                                      "1e6",
                                      "nan",
                                      "k",
                                      "9999999999999999999",
                                      "1000000000T",
                                      "10gbit/h",
                                      "0.00000000000000001"};
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        struct pt_rate r = {.per_s = 3};
        struct pt_err e = {0};
        assert_int_equal(pt_rate_parse(bad[i], &r, &e), -EINVAL);
        assert_true(r.per_s > 2.9);
        assert_non_null(strstr(e.text, "expected a rate"));
    }
}

static void reads_counts_and_percentages(void **state)
{
    (void)state;
    uint64_t n = 0;
    assert_int_equal(pt_count_parse("1.5M", &n, NULL), 0);
    assert_int_equal(n, 1500000);
    assert_int_equal(pt_count_parse("0x2E", &n, NULL), 0);
    assert_int_equal(n, 0x2e);
    assert_int_equal(pt_count_parse("0x", &n, NULL), -EINVAL);
    assert_int_equal(pt_count_parse("0xfffffffffffffffff", &n, NULL), -EINVAL);
    assert_int_equal(pt_count_parse("1.5", &n, NULL), -EINVAL);
    assert_int_equal(pt_count_parse("10KiB", &n, NULL), -EINVAL);
    double p = 0;
    assert_int_equal(pt_percent_parse("0.1%", &p, NULL), 0);
    assert_true(fabs(p - 0.1) < 1e-15);
    assert_int_equal(pt_percent_parse("100", &p, NULL), 0);
    assert_int_equal(pt_percent_parse("100.1%", &p, NULL), -EINVAL);
    assert_int_equal(pt_percent_parse("5%%", &p, NULL), -EINVAL);
    assert_int_equal(pt_percent_parse("%", &p, NULL), -EINVAL);
}

static void names_the_text_without_trusting_it(void **state)
{
    (void)state;
    struct pt_err e = {0};
    uint64_t n;
    assert_int_equal(pt_size_parse("\x1b[31m", &n, &e), -EINVAL);
    assert_null(strchr(e.text, '\x1b'));
    assert_non_null(strstr(e.text, "\\x1b"));
}

static void shows_three_digits(void **state)
{
    (void)state;
    char t[PT_UNITS_TEXT];
    assert_string_equal(pt_si_show(t, sizeof(t), 94.123e9, "bit/s"), "94.1 Gbit/s");
    assert_string_equal(pt_si_show(t, sizeof(t), 1.2461e6, "pps"), "1.25 Mpps");
    assert_string_equal(pt_si_show(t, sizeof(t), 812, "operations/s"), "812 operations/s");
    assert_string_equal(pt_si_show(t, sizeof(t), 999.9, "pps"), "1.00 kpps");
    assert_string_equal(pt_si_show(t, sizeof(t), 0, "pps"), "0 pps");
    assert_string_equal(pt_si_show(t, sizeof(t), (double)NAN, "pps"), "-");
    assert_string_equal(pt_size_show(t, sizeof(t), 3.2 * 1048576), "3.20 MiB");
    assert_string_equal(pt_size_show(t, sizeof(t), 512), "512 B");
    assert_string_equal(pt_time_show(t, sizeof(t), 24.68e-6), "24.7 µs");
    assert_string_equal(pt_time_show(t, sizeof(t), 1.5), "1.50 s");
    assert_string_equal(pt_time_show(t, sizeof(t), 999.7e-6), "1.00 ms");
    assert_string_equal(pt_time_show(t, sizeof(t), 200), "3 min 20 s");
    assert_string_equal(pt_time_show(t, sizeof(t), 59.97), "1 min 00 s");
    assert_string_equal(pt_time_show(t, sizeof(t), 7260), "2 h 01 min");
    assert_string_equal(pt_percent_show(t, sizeof(t), 0.123), "0.123 %");
    assert_string_equal(pt_percent_show(t, sizeof(t), 0.00001), "< 0.001 %");
    assert_string_equal(pt_number_show(t, sizeof(t), 1234567), "1,234,567");
    assert_string_equal(pt_number_show(t, sizeof(t), -1000), "-1,000");
    assert_string_equal(pt_number_show(t, sizeof(t), 12), "12");
    assert_string_equal(pt_fixed_show(t, sizeof(t), -0.04, 1), "0.0");
    assert_string_equal(pt_fixed_show(t, sizeof(t), 2.5, 3), "2.500");
}

static void prints_what_a_person_would_write(void **state)
{
    (void)state;
    char t[PT_UNITS_TEXT];
    assert_string_equal(pt_size_print(t, sizeof(t), 65536), "64KiB");
    assert_string_equal(pt_size_print(t, sizeof(t), 64000), "64k");
    assert_string_equal(pt_size_print(t, sizeof(t), 1500), "1500");
    assert_string_equal(pt_size_print(t, sizeof(t), 0), "0");
    assert_string_equal(pt_time_print(t, sizeof(t), 10 * PT_S), "10s");
    assert_string_equal(pt_time_print(t, sizeof(t), 90 * PT_S), "90s");
    assert_string_equal(pt_time_print(t, sizeof(t), 1500 * PT_US), "1500us");
    assert_string_equal(pt_rate_print(t, sizeof(t), (struct pt_rate){1e10, true}), "10Gbit");
    assert_string_equal(pt_rate_print(t, sizeof(t), (struct pt_rate){1234, false}), "1234");
    assert_string_equal(pt_percent_print(t, sizeof(t), 0.1), "0.1%");
    assert_string_equal(pt_real_print(t, sizeof(t), 1e18), "1000000000000000000");
    assert_string_equal(pt_real_print(t, sizeof(t), 0.001), "0.001");
    assert_string_equal(pt_real_print(t, sizeof(t), -2.5), "-2.5");
}

static void ignores_the_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "fr_FR.utf8"};
    const char *got = NULL;
    for (size_t i = 0; i < PT_COUNT(names) && !got; i++)
        got = setlocale(LC_ALL, names[i]);
    if (!got)
        print_message("# no locale with a decimal comma is installed: tried in C only\n");
    struct pt_rate r;
    int rc = pt_rate_parse("1.5M", &r, NULL);
    char t[PT_UNITS_TEXT], u[PT_UNITS_TEXT];
    pt_si_show(t, sizeof(t), 94.1e9, "bit/s");
    pt_real_print(u, sizeof(u), 0.25);
    setlocale(LC_ALL, "C");
    assert_int_equal(rc, 0);
    assert_true(r.per_s > 1.49e6);
    assert_string_equal(t, "94.1 Gbit/s");
    assert_string_equal(u, "0.25");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_sizes),
        cmocka_unit_test(refuses_what_is_no_size),
        cmocka_unit_test(reads_times),
        cmocka_unit_test(reads_rates),
        cmocka_unit_test(reads_counts_and_percentages),
        cmocka_unit_test(names_the_text_without_trusting_it),
        cmocka_unit_test(shows_three_digits),
        cmocka_unit_test(prints_what_a_person_would_write),
        cmocka_unit_test(ignores_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
