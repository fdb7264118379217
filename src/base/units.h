/* units.h: quantities as people write them (64KiB, 10gbit, 250us, 0.1%), parsed and printed.
 *
 * Parsing takes the whole text or refuses it with one sentence that says what was expected:
 * nothing negative, no NaN, no trailing text, no silent overflow or rounding to zero. The locale
 * has no influence: a decimal point is a point. One space may stand before the unit. Units of time
 * are lower case (`m` is a minute); in all others the case of letters does not matter.
 *
 * Two printers per quantity: `_print` is exact and parses back to the same value (defaults, plans,
 * argv), `_show` is for reading: three significant digits and a unit. All return `out`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_BASE_UNITS_H
#define PT_BASE_UNITS_H

#include "base/err.h"
#include "base/types.h"

/* Enough for any text printed here. */
#define PT_UNITS_TEXT 48

/* Operations or packets per second, or bits per second when the unit said so. */
struct pt_rate {
    double per_s;
    bool bits;
};

/* Bytes: `1500`, `64k` `1M` `2G` `1T` (powers of 1000), `KiB` `MiB` `GiB` `TiB`, also `64kB`. */
int pt_size_parse(const char *text, uint64_t *bytes, struct pt_err *e) PT_MUST_USE;
/* A count: `1000`, `10k`, `1.5M`, `1G`, or hexadecimal `0x2e`. At most INT64_MAX. */
int pt_count_parse(const char *text, uint64_t *count, struct pt_err *e) PT_MUST_USE;
/* `1000`, `100k`, `1.5M`, with `/s` or not; bits: `10gbit`, `100mbit`, `10Gbit/s`, `5Gbps`. */
int pt_rate_parse(const char *text, struct pt_rate *rate, struct pt_err *e) PT_MUST_USE;
/* `250us`, `10ms`, `1.5s`, `1m`, `2h`, `100ns`, `24.7µs`; a bare number is seconds. */
int pt_time_parse(const char *text, pt_ns *time, struct pt_err *e) PT_MUST_USE;
/* `0.1%` gives 0.1; the sign may be left out. 0 to 100. */
int pt_percent_parse(const char *text, double *percent, struct pt_err *e) PT_MUST_USE;
/* A plain decimal number such as `12` or `0.5`. */
int pt_real_parse(const char *text, double *value, struct pt_err *e) PT_MUST_USE;

const char *pt_size_print(char *out, size_t cap, uint64_t bytes);
const char *pt_count_print(char *out, size_t cap, uint64_t count);
const char *pt_rate_print(char *out, size_t cap, struct pt_rate rate);
const char *pt_time_print(char *out, size_t cap, pt_ns time);
const char *pt_percent_print(char *out, size_t cap, double percent);
/* The shortest decimal form, without exponent, that reads back as the same double: for 0 and
 * magnitudes from 1e-9 to 1e18; others are clamped into that range. Not finite: "-". */
const char *pt_real_print(char *out, size_t cap, double value);
/* To the 15 digits that documents hold: every decimal figure of so many comes back as written. */
double pt_real_stored(double value);

/* `94.1 Gbit/s`, `1.25 Mpps`, `812 operations/s`: SI prefix between number and unit. Not finite:
 * "-". */
const char *pt_si_show(char *out, size_t cap, double value, const char *unit);
/* `3.20 MiB`, `512 B`. */
const char *pt_size_show(char *out, size_t cap, double bytes);
/* `24.7 µs`, `1.50 s`, `3 min 20 s`; from seconds. */
const char *pt_time_show(char *out, size_t cap, double seconds);
/* `0.123 %`. */
const char *pt_percent_show(char *out, size_t cap, double percent);
/* A plain number with three significant digits at least, thousands separated: `1,234,567`. */
const char *pt_number_show(char *out, size_t cap, double value);
/* `value` with exactly `decimals` (0 to 9) digits after a point, whatever the locale. */
const char *pt_fixed_show(char *out, size_t cap, double value, unsigned decimals);

#endif
