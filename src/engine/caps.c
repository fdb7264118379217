/* caps.c: see caps.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/caps.h"

#include "base/units.h"

#include <errno.h>

/* What a paced sender may be ahead of its schedule after a pause, and how exact it must be. */
#define RATE_SLACK (500 * PT_MS)
#define RATE_ERROR 1.05

bool pt_caps_slow_down(const struct pt_caps *caps, const struct pt_workload *wl,
                       struct pt_plan *plan, struct pt_shape *s)
{
    double bits = caps->max_rate_bits;
    if (!(bits > 0) || s->both || s->ops_per_s > 0)
        return false;
    struct pt_shape slower;
    plan->common.rate = (struct pt_rate){.per_s = bits, .bits = true};
    if (s->op_bytes)
        plan->common.rate = (struct pt_rate){.per_s = bits / 8 / (double)s->op_bytes};
    if (wl->shape(plan, &slower, NULL) < 0) {
        plan->common.rate = (struct pt_rate){0};
        return false;
    }
    *s = slower;
    return true;
}

int pt_caps_check(const struct pt_caps *caps, const struct pt_shape *s, const char *who,
                  struct pt_err *e)
{
    char allowed[PT_UNITS_TEXT], asked[PT_UNITS_TEXT];
    if (caps->max_connections && s->flows > caps->max_connections)
        return pt_fail(e, -EPERM, "%s allows %u connections, the test has %u; lower -c", who,
                       caps->max_connections, s->flows);
    pt_ns whole = s->bytes || s->ops_per_flow ? 0 : s->warmup + s->duration;
    if (caps->max_duration && whole > caps->max_duration)
        return pt_fail(e, -EPERM, "%s allows tests of %s, this one takes %s; lower -d or --warmup",
                       who, pt_time_print(allowed, sizeof(allowed), caps->max_duration),
                       pt_time_print(asked, sizeof(asked), whole));
    double most = caps->max_rate_bits;
    if (!(most > 0) || (s->bits_per_s > 0 ? s->bits_per_s <= most * (1 + 1e-9) : s->both))
        return 0;
    pt_si_show(allowed, sizeof(allowed), most, "bit/s");
    pt_si_show(asked, sizeof(asked), s->bits_per_s, "bit/s");
    return pt_fail(e, -EPERM, "%s allows %s, the test asks for %s; lower -r", who, allowed,
                   s->bits_per_s > 0 ? asked : "as much as goes");
}

int pt_caps_watch(const struct pt_caps *caps, const struct pt_job *job, pt_ns now, struct pt_err *e)
{
    pt_ns gone = now - atomic_load(&job->shared->start_ns);
    char allowed[PT_UNITS_TEXT], moved[PT_UNITS_TEXT];
    if (caps->max_duration && gone > caps->max_duration + RATE_SLACK)
        return pt_fail(e, -EPERM, "this server allows tests of %s",
                       pt_time_print(allowed, sizeof(allowed), caps->max_duration));
    if (!(caps->max_rate_bits > 0) || gone <= 0)
        return 0;
    uint64_t tx = 0, rx = 0;
    for (unsigned p = 0; p < PT_PHASES; p++) {
        struct pt_counters c;
        pt_job_counters(job, (enum pt_phase)p, &c);
        tx += c.tx_bytes;
        rx += c.rx_bytes;
    }
    double bits = 8.0 * (double)(tx > rx ? tx : rx);
    if (bits <= caps->max_rate_bits * RATE_ERROR * (double)(gone + RATE_SLACK) / 1e9)
        return 0;
    pt_si_show(allowed, sizeof(allowed), caps->max_rate_bits, "bit/s");
    pt_si_show(moved, sizeof(moved), bits * 1e9 / (double)gone, "bit/s");
    return pt_fail(e, -EPERM, "this server allows %s, the test moved %s", allowed, moved);
}
