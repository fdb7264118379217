/* units.c: see units.h.
 *
 * A number is read into a decimal mantissa and a scale, so sizes, counts and times are computed in
 * integers and are exact or refused; only rates and percentages become floating point.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/units.h"

#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

__extension__ typedef unsigned __int128 wide;

/* value = mantissa / 10^scale */
struct decimal {
    uint64_t mantissa;
    unsigned scale;
};

struct unit {
    const char *name;
    uint64_t times;
};

#define SCALE_MAX 38

static int refuse(struct pt_err *e, const char *text, const char *why, const char *expected)
{
    char quoted[100];
    pt_log_quote(quoted, sizeof(quoted), text, strlen(text));
    return pt_fail(e, -EINVAL, "'%s' %s; expected %s", quoted, why, expected);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool push_digit(struct decimal *d, char c)
{
    uint64_t digit = (uint64_t)(c - '0');
    return !__builtin_mul_overflow(d->mantissa, (uint64_t)10, &d->mantissa) &&
           !__builtin_add_overflow(d->mantissa, digit, &d->mantissa);
}

/* Reads `12`, `12.5` or `.5`; returns what follows, or NULL when it is no number or too long. */
static const char *read_decimal(const char *p, struct decimal *d)
{
    *d = (struct decimal){0};
    bool any = false;
    for (; is_digit(*p); p++, any = true) {
        if (!push_digit(d, *p))
            return NULL;
    }
    if (*p != '.')
        return any ? p : NULL;
    p++;
    const char *end = p;
    while (is_digit(*end))
        end++;
    const char *significant = end;
    while (significant > p && significant[-1] == '0')
        significant--;
    if (end == p || significant - p > SCALE_MAX)
        return NULL;
    for (; p < significant; p++, d->scale++) {
        if (!push_digit(d, *p))
            return NULL;
    }
    return end;
}

static const char *skip_space(const char *p)
{
    return p[0] == ' ' && p[1] ? p + 1 : p;
}

static wide power_of_ten(unsigned n)
{
    wide v = 1;
    while (n--)
        v *= 10;
    return v;
}

/* d * times as an integer up to `max`. -EDOM: it has a fraction, -ERANGE: it is too large. */
static int to_integer(struct decimal d, uint64_t times, uint64_t max, uint64_t *out)
{
    wide product = (wide)d.mantissa * times;
    wide divisor = power_of_ten(d.scale);
    if (product % divisor)
        return -EDOM;
    wide value = product / divisor;
    if (value > max)
        return -ERANGE;
    *out = (uint64_t)value;
    return 0;
}

/* Within one unit of the last place of a long double, so the nearest double in all but ties. */
static double to_double(struct decimal d, uint64_t times)
{
    return (double)((long double)d.mantissa * (long double)times /
                    (long double)power_of_ten(d.scale));
}

static const struct unit *find_unit(const struct unit *units, const char *name, bool exact_case)
{
    for (; units->name; units++) {
        if (exact_case ? !strcmp(units->name, name) : !strcasecmp(units->name, name))
            return units;
    }
    return NULL;
}

static int parse_integer(const char *text, const struct unit *units, bool exact_case, uint64_t max,
                         uint64_t *out, const char *finest, const char *expected, struct pt_err *e)
{
    struct decimal d;
    const char *rest = read_decimal(text, &d);
    if (!rest)
        return refuse(e, text, "is not a number", expected);
    const struct unit *u = find_unit(units, skip_space(rest), exact_case);
    if (!u)
        return refuse(e, text, "does not end in a unit known here", expected);
    uint64_t value = 0;
    int rc = to_integer(d, u->times, max, &value);
    if (rc == -EDOM)
        return refuse(e, text, finest, expected);
    if (rc < 0)
        return refuse(e, text, "is too large", expected);
    *out = value;
    return 0;
}

#define KI ((uint64_t)1 << 10)

static const struct unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"k", 1000},
    {"kB", 1000},
    {"M", 1000000},
    {"MB", 1000000},
    {"G", 1000000000},
    {"GB", 1000000000},
    {"T", 1000000000000},
    {"TB", 1000000000000},
    {"KiB", KI},
    {"MiB", KI << 10},
    {"GiB", KI << 20},
    {"TiB", KI << 30},
    {NULL, 0},
};

int pt_size_parse(const char *text, uint64_t *bytes, struct pt_err *e)
{
    return parse_integer(text, size_units, false, INT64_MAX, bytes,
                         "is not a whole number of bytes",
                         "bytes such as 1500, 64k or 1MiB (units k M G T, KiB MiB GiB TiB)", e);
}

static const struct unit count_units[] = {
    {"", 1}, {"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {"T", 1000000000000}, {NULL, 0},
};

static int parse_hex(const char *text, uint64_t *count)
{
    size_t n = strspn(text, "0123456789abcdefABCDEF");
    if (!n || n > 15 || text[n])
        return -EINVAL;
    uint64_t v = 0;
    for (; *text; text++)
        v = v << 4 | (uint64_t)(is_digit(*text) ? *text - '0' : (*text | 0x20) - 'a' + 10);
    *count = v;
    return 0;
}

int pt_count_parse(const char *text, uint64_t *count, struct pt_err *e)
{
    const char *expected = "a whole number such as 1000, 10k or 1.5M";
    if (text[0] == '0' && (text[1] | 0x20) == 'x') {
        if (parse_hex(text + 2, count) < 0)
            return refuse(e, text, "is not a hexadecimal number", expected);
        return 0;
    }
    return parse_integer(text, count_units, false, INT64_MAX, count, "is not whole", expected, e);
}

static const struct unit time_units[] = {
    {"", 1000000000},     {"ns", 1},          {"us", 1000},
    {"\u00b5s", 1000},    {"\u03bcs", 1000},  {"ms", 1000000},
    {"s", 1000000000},    {"m", 60000000000}, {"min", 60000000000},
    {"h", 3600000000000}, {NULL, 0},
};

int pt_time_parse(const char *text, pt_ns *time, struct pt_err *e)
{
    uint64_t ns = 0;
    int rc = parse_integer(text, time_units, true, INT64_MAX, &ns, "is finer than a nanosecond",
                           "a time such as 10s, 250us, 10ms or 1m (units ns us ms s m h)", e);
    if (!rc)
        *time = (pt_ns)ns;
    return rc;
}

#define RATE_MAX 1e18

/* What may follow the SI prefix of a rate. */
static bool rate_unit(const char *p, bool *bits)
{
    static const char *const bit_names[] = {"bit", "bits", "bit/s", "bits/s", "bps", "bit/sec"};
    static const char *const plain_names[] = {"", "/s", "pps", "ops", "/sec"};
    for (size_t i = 0; i < PT_COUNT(bit_names); i++) {
        if (!strcasecmp(p, bit_names[i])) {
            *bits = true;
            return true;
        }
    }
    *bits = false;
    for (size_t i = 0; i < PT_COUNT(plain_names); i++) {
        if (!strcasecmp(p, plain_names[i]))
            return true;
    }
    return false;
}

int pt_rate_parse(const char *text, struct pt_rate *rate, struct pt_err *e)
{
    const char *expected = "a rate such as 1000, 100k, 1.5M or 10gbit, 100mbit, 10Gbit/s";
    struct decimal d;
    const char *rest = read_decimal(text, &d);
    if (!rest)
        return refuse(e, text, "is not a number", expected);
    rest = skip_space(rest);
    uint64_t times = 1;
    static const char prefixes[] = "kmgt";
    const char *prefix = *rest ? strchr(prefixes, *rest | 0x20) : NULL;
    if (prefix) {
        for (const char *p = prefixes; p <= prefix; p++)
            times *= 1000;
        rest++;
    }
    bool bits;
    if (!rate_unit(rest, &bits))
        return refuse(e, text, "does not end in a unit known here", expected);
    double v = to_double(d, times);
    if (v > RATE_MAX)
        return refuse(e, text, "is too large", expected);
    if (d.mantissa && v < 1e-9)
        return refuse(e, text, "is too small", expected);
    *rate = (struct pt_rate){.per_s = v, .bits = bits};
    return 0;
}

int pt_percent_parse(const char *text, double *percent, struct pt_err *e)
{
    const char *expected = "a percentage from 0 to 100 such as 0.1% or 5%";
    struct decimal d;
    const char *rest = read_decimal(text, &d);
    if (!rest)
        return refuse(e, text, "is not a number", expected);
    rest = skip_space(rest);
    if (rest[0] && strcmp(rest, "%") != 0)
        return refuse(e, text, "has something behind the number", expected);
    double v = to_double(d, 1);
    if (v > 100)
        return refuse(e, text, "is more than 100 %", expected);
    *percent = v;
    return 0;
}

int pt_real_parse(const char *text, double *value, struct pt_err *e)
{
    struct decimal d;
    const char *rest = read_decimal(text, &d);
    if (!rest || *rest)
        return refuse(e, text, "is not a number", "a decimal number such as 12 or 0.5");
    *value = to_double(d, 1);
    return 0;
}

/* ---- printing */

const char *pt_size_print(char *out, size_t cap, uint64_t bytes)
{
    static const struct unit by_preference[] = {
        {"TiB", KI << 30}, {"GiB", KI << 20}, {"MiB", KI << 10}, {"KiB", KI}, {"T", 1000000000000},
        {"G", 1000000000}, {"M", 1000000},    {"k", 1000},       {"", 1},
    };
    char best[PT_UNITS_TEXT] = "";
    for (size_t i = 0; i < PT_COUNT(by_preference); i++) {
        const struct unit *u = &by_preference[i];
        if (bytes % u->times || (!bytes && u->times > 1))
            continue;
        char text[PT_UNITS_TEXT];
        snprintf(text, sizeof(text), "%llu%s", (unsigned long long)(bytes / u->times), u->name);
        if (!best[0] || strlen(text) < strlen(best))
            memcpy(best, text, sizeof(best));
    }
    snprintf(out, cap, "%s", best);
    return out;
}

const char *pt_count_print(char *out, size_t cap, uint64_t count)
{
    snprintf(out, cap, "%llu", (unsigned long long)count);
    return out;
}

const char *pt_time_print(char *out, size_t cap, pt_ns time)
{
    static const struct unit coarse_first[] = {
        {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
        {"ms", 1000000},      {"us", 1000},       {"ns", 1},
    };
    if (time <= 0) {
        snprintf(out, cap, "0s");
        return out;
    }
    size_t i = 0;
    while ((uint64_t)time % coarse_first[i].times)
        i++;
    snprintf(out, cap, "%llu%s", (unsigned long long)((uint64_t)time / coarse_first[i].times),
             coarse_first[i].name);
    return out;
}

const char *pt_rate_print(char *out, size_t cap, struct pt_rate rate)
{
    static const struct {
        const char *prefix;
        double times;
    } coarse_first[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}};
    size_t i = 0;
    while (coarse_first[i].times > 1 &&
           (rate.per_s < coarse_first[i].times || fmod(rate.per_s, coarse_first[i].times) > 0))
        i++;
    char number[PT_UNITS_TEXT];
    pt_real_print(number, sizeof(number), rate.per_s / coarse_first[i].times);
    snprintf(out, cap, "%s%s%s", number, coarse_first[i].prefix, rate.bits ? "bit" : "");
    return out;
}

const char *pt_percent_print(char *out, size_t cap, double percent)
{
    char number[PT_UNITS_TEXT];
    snprintf(out, cap, "%s%%", pt_real_print(number, sizeof(number), percent));
    return out;
}

/* "d.ddde±x" as printed by C in any locale, spread out without exponent. */
static void spread(char *out, size_t cap, const char *scientific, bool negative)
{
    char digits[24];
    size_t n = 0;
    const char *p = scientific;
    for (; *p && *p != 'e'; p++) {
        if (is_digit(*p) && n < sizeof(digits) - 1)
            digits[n++] = *p;
    }
    int exponent = 0;
    bool small = *p && p[1] == '-';
    for (p += *p ? 2 : 0; is_digit(*p); p++)
        exponent = exponent * 10 + (*p - '0');
    if (small)
        exponent = -exponent;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    const char *sign = negative ? "-" : "";
    if (exponent < 0)
        snprintf(out, cap, "%s0.%.*s%s", sign, -exponent - 1, "00000000000000000000", digits);
    else if ((size_t)exponent + 1 >= n)
        snprintf(out, cap, "%s%s%.*s", sign, digits, exponent + 1 - (int)n, "00000000000000000000");
    else
        snprintf(out, cap, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}

double pt_real_stored(double value)
{
    char text[40];
    snprintf(text, sizeof(text), "%.14e", value);
    return strtod(text, NULL); /* reads what the same locale printed */
}

const char *pt_real_print(char *out, size_t cap, double value)
{
    double magnitude = fabs(value);
    if (!isfinite(value)) {
        snprintf(out, cap, "-");
        return out;
    }
    if (magnitude < 1e-9)
        magnitude = magnitude > 0 ? 1e-9 : 0;
    if (magnitude > 1e18)
        magnitude = 1e18;
    for (int digits = 0; digits <= 16; digits++) {
        char scientific[40];
        snprintf(scientific, sizeof(scientific), "%.*e", digits, magnitude);
        char plain[PT_UNITS_TEXT];
        spread(plain, sizeof(plain), scientific, false);
        struct decimal d;
        bool same = read_decimal(plain, &d) && !(to_double(d, 1) > magnitude) &&
                    !(to_double(d, 1) < magnitude);
        if (same || digits == 16) {
            spread(out, cap, scientific, value < 0 && magnitude > 0);
            break;
        }
    }
    return out;
}

const char *pt_fixed_show(char *out, size_t cap, double value, unsigned decimals)
{
    if (!isfinite(value)) {
        snprintf(out, cap, "-");
        return out;
    }
    uint64_t unit = (uint64_t)power_of_ten(decimals > 9 ? 9 : decimals);
    double scaled = fabs(value) * (double)unit;
    if (scaled > 9e18) {
        snprintf(out, cap, "%.0f", value);
        return out;
    }
    uint64_t whole = (uint64_t)llround(scaled);
    const char *sign = value < 0 && whole ? "-" : "";
    if (unit == 1)
        snprintf(out, cap, "%s%llu", sign, (unsigned long long)whole);
    else
        snprintf(out, cap, "%s%llu.%0*llu", sign, (unsigned long long)(whole / unit), (int)decimals,
                 (unsigned long long)(whole % unit));
    return out;
}

/* Decimals that leave three significant digits; `v` >= 0. */
static unsigned decimals_for(double v)
{
    return v < 0.9995 ? 3 : v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
}

/* Whole numbers below 1000 stay whole. */
static const char *show_three(char *out, size_t cap, double v, bool keep_whole)
{
    double magnitude = fabs(v);
    /* What is whole but for the last digits became so by a change of unit. */
    bool whole =
        keep_whole && magnitude < 1000 && fabs(magnitude - round(magnitude)) <= 1e-12 * magnitude;
    return pt_fixed_show(out, cap, v, whole ? 0 : decimals_for(magnitude));
}

const char *pt_si_show(char *out, size_t cap, double value, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    if (!isfinite(value)) {
        snprintf(out, cap, "-");
        return out;
    }
    size_t i = 0;
    double v = value;
    while (fabs(v) >= 999.5 && i + 1 < PT_COUNT(prefixes)) {
        v /= 1000;
        i++;
    }
    char number[PT_UNITS_TEXT];
    show_three(number, sizeof(number), v, i == 0);
    const char *space = *prefixes[i] || *unit ? " " : "";
    snprintf(out, cap, "%s%s%s%s", number, space, prefixes[i], unit);
    return out;
}

const char *pt_size_show(char *out, size_t cap, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    if (!isfinite(bytes)) {
        snprintf(out, cap, "-");
        return out;
    }
    size_t i = 0;
    double v = bytes;
    while (fabs(v) >= 1023.5 && i + 1 < PT_COUNT(units)) {
        v /= 1024;
        i++;
    }
    char number[PT_UNITS_TEXT];
    snprintf(out, cap, "%s %s", show_three(number, sizeof(number), v, i == 0), units[i]);
    return out;
}

const char *pt_time_show(char *out, size_t cap, double seconds)
{
    static const struct {
        const char *unit;
        double per_s;
    } fine_first[] = {{"ns", 1e9}, {"\u00b5s", 1e6}, {"ms", 1e3}, {"s", 1}};
    double magnitude = fabs(seconds);
    if (!isfinite(seconds)) {
        snprintf(out, cap, "-");
    } else if (magnitude >= 3599.5) {
        double minutes = round(magnitude / 60);
        snprintf(out, cap, "%s%.0f h %02.0f min", seconds < 0 ? "-" : "", floor(minutes / 60),
                 fmod(minutes, 60));
    } else if (magnitude >= 59.95) {
        double whole = round(magnitude);
        snprintf(out, cap, "%s%.0f min %02.0f s", seconds < 0 ? "-" : "", floor(whole / 60),
                 fmod(whole, 60));
    } else if (!(magnitude > 0)) {
        snprintf(out, cap, "0 s");
    } else {
        size_t i = 0;
        while (i + 1 < PT_COUNT(fine_first) && magnitude * fine_first[i].per_s >= 999.5)
            i++;
        char number[PT_UNITS_TEXT];
        show_three(number, sizeof(number), seconds * fine_first[i].per_s, i == 0);
        snprintf(out, cap, "%s %s", number, fine_first[i].unit);
    }
    return out;
}

const char *pt_percent_show(char *out, size_t cap, double percent)
{
    char number[PT_UNITS_TEXT];
    if (!isfinite(percent))
        snprintf(out, cap, "-");
    else if (percent > 0 && percent < 0.0005)
        snprintf(out, cap, "< 0.001 %%");
    else
        snprintf(out, cap, "%s %%", show_three(number, sizeof(number), percent, true));
    return out;
}

const char *pt_number_show(char *out, size_t cap, double value)
{
    if (!isfinite(value) || fabs(value) < 999.5)
        return isfinite(value) ? show_three(out, cap, value, true)
                               : pt_fixed_show(out, cap, value, 0);
    char digits[400];
    int n = snprintf(digits, sizeof(digits), "%.0f", fabs(value));
    size_t at = 0;
    if (value < 0 && at + 1 < cap)
        out[at++] = '-';
    for (int i = 0; i < n && at + 2 < cap; i++) {
        if (i && (n - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    if (cap)
        out[at] = '\0';
    return out;
}
