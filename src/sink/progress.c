/* progress.c: see progress.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/progress.h"

#include "base/units.h"
#include "sink/figure.h"
#include "sink/say.h"

#include <stdio.h>

#define BAR_CELLS 40
#define VALUE_AT  16

void pt_progress_end(struct pt_progress *p, struct pt_buf *out)
{
    if (p->bar_shown)
        pt_buf_adds(out, "\r\033[K");
    p->bar_shown = false;
}

void pt_progress_line(struct pt_progress *p, pt_ns elapsed,
                      const struct pt_progress_figure *figures, size_t n, struct pt_buf *out)
{
    char t[PT_FIGURE_TEXT];
    pt_progress_end(p, out);
    if (elapsed < 0) {
        pt_buf_addf(out, "%10s", pt_say(p->chinese, "warm-up"));
    } else {
        pt_fixed_show(t, sizeof(t), (double)elapsed / 1e9, elapsed % PT_S ? 2 : 0);
        pt_buf_addf(out, "%8s s", t);
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = pt_say(p->chinese, figures[i].name);
        pt_figure_show(t, sizeof(t), figures[i].value, figures[i].unit);
        size_t used = pt_text_columns(t);
        pt_buf_addf(out, "%*s%s%s%s", used < VALUE_AT ? (int)(VALUE_AT - used) : 1, "", t,
                    *name ? " " : "", name);
    }
    pt_buf_adds(out, "\n");
}

void pt_progress_bar(struct pt_progress *p, pt_ns elapsed, pt_ns total, struct pt_buf *out)
{
    if (!p->terminal)
        return;
    pt_progress_end(p, out);
    if (total <= 0)
        return;
    pt_ns at = elapsed < 0 ? 0 : elapsed > total ? total : elapsed;
    int filled = (int)((double)at / (double)total * BAR_CELLS);
    char left[PT_FIGURE_TEXT];
    pt_ns seconds = (total - at + PT_S - 1) / PT_S;
    if (seconds < 60)
        snprintf(left, sizeof(left), "%d s", (int)seconds);
    else
        pt_time_show(left, sizeof(left), (double)seconds);
    pt_buf_addf(out, "%s  [", p->color ? "\033[2m" : "");
    for (int i = 0; i < BAR_CELLS; i++)
        pt_buf_adds(out, i < filled ? "=" : i == filled ? ">" : " ");
    pt_buf_addf(out, "] %3d %%  %s %s%s", (int)((double)at / (double)total * 100), left,
                pt_say(p->chinese, "left"), p->color ? "\033[0m" : "");
    p->bar_shown = true;
}
