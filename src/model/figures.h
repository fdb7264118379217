/* figures.h: the figures of a result that are worth a line beside its headline, and what is known
 * of each: its name, unit, and whether more of it is better.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_FIGURES_H
#define PT_MODEL_FIGURES_H

#include "model/result.h"

enum pt_better { PT_BETTER_NEITHER, PT_BETTER_HIGHER, PT_BETTER_LOWER };

struct pt_figure {
    const char *name, *path, *unit;
    const char *workloads; /* those it is shown for, separated by blanks; NULL: all */
    bool tabled;           /* has a place in a table of its own, no line */
    bool hide_zero;        /* zero says nothing, and nobody would miss it */
    bool compared;         /* kept for each run of a repeated test; `pitot compare` shows it */
    enum pt_better better;
};

/* In the order of a report; ends with a row without a name. */
extern const struct pt_figure pt_figures[];

/* Whether the figure is one of this result's workload. */
bool pt_figure_belongs(const struct pt_figure *f, const struct pt_result *r);
/* The row of a path that belongs to this result's workload, or NULL. */
const struct pt_figure *pt_figure_find(const struct pt_result *r, const char *path);

#endif
