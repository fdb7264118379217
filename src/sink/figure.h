/* figure.h: a figure of the document as text with its unit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_FIGURE_H
#define PT_SINK_FIGURE_H

#include "model/result.h"

#define PT_FIGURE_TEXT 64

/* Units: bit/s packet/s operation/s us s % byte, "CPU s" for seconds that are not scaled to ms or
 * us, "" for a plain number; another is appended. */
const char *pt_figure_show(char *out, size_t cap, double value, const char *unit);
/* The unit that the last part of a key tells: "_us" is us, "_bits_per_s" is bit/s, … */
const char *pt_figure_unit(const char *path);
/* The figure at `path`; "-" and false when it is missing or null. */
bool pt_figure_at(const struct pt_result *r, const char *path, const char *unit, char *out,
                  size_t cap);
/* The same for a member of an object. */
bool pt_figure_of(const json_t *object, const char *key, const char *unit, char *out, size_t cap);

#endif
