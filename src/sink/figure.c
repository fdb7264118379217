/* figure.c: see figure.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/figure.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *pt_figure_show(char *out, size_t cap, double value, const char *unit)
{
    char number[PT_UNITS_TEXT];
    if (!isfinite(value))
        unit = "";
    if (!strcmp(unit, "bit/s"))
        return pt_si_show(out, cap, value, unit);
    if (!strcmp(unit, "packet/s"))
        return pt_si_show(out, cap, value, "pps");
    if (!strcmp(unit, "us"))
        return pt_time_show(out, cap, value / 1e6);
    if (!strcmp(unit, "s"))
        return pt_time_show(out, cap, value);
    if (!strcmp(unit, "%"))
        return pt_percent_show(out, cap, value);
    if (!strcmp(unit, "byte"))
        return pt_size_show(out, cap, value);
    pt_number_show(number, sizeof(number), value);
    if (!strcmp(unit, "operation/s"))
        unit = "/s";
    if (!strcmp(unit, "CPU s"))
        unit = "s";
    snprintf(out, cap, "%s%s%s", number, *unit && *unit != '/' ? " " : "", unit);
    return out;
}

const char *pt_figure_unit(const char *path)
{
    static const char *const units[][2] = {
        {"bits_per_s", "bit/s"},
        {"packets_per_s", "packet/s"},
        {"_per_s", "operation/s"},
        {"_us", "us"},
        {"_s", "s"},
        {"_pct", "%"},
        {"_bytes", "byte"},
    };
    size_t n = strlen(path);
    for (size_t i = 0; i < PT_COUNT(units); i++) {
        size_t m = strlen(units[i][0]);
        if (n >= m && !strcmp(path + n - m, units[i][0]))
            return units[i][1];
    }
    return "";
}

static bool show_json(const json_t *v, const char *unit, char *out, size_t cap)
{
    if (!json_is_number(v)) {
        snprintf(out, cap, "-");
        return false;
    }
    pt_figure_show(out, cap, json_number_value(v), unit);
    return true;
}

bool pt_figure_at(const struct pt_result *r, const char *path, const char *unit, char *out,
                  size_t cap)
{
    return show_json(pt_result_at(r, path), unit, out, cap);
}

bool pt_figure_of(const json_t *object, const char *key, const char *unit, char *out, size_t cap)
{
    return show_json(json_object_get(object, key), unit, out, cap);
}
