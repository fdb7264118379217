/* watch.c: see watch.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/watch.h"

#include "os/clock.h"

#include <stdlib.h>
#include <string.h>

#define POINTS_MOST 400 /* then neighbours are joined */

struct pt_host_watch {
    pid_t pid[PT_HOST_PIDS];
    unsigned pids, looks;
    pt_ns begin, opened, cost, step;
    struct pt_host_sample *first, *last, *now; /* first: the last one before the window */
    unsigned points;
    struct pt_host_point point[POINTS_MOST];
};

/* A look may come so much too early. */
static pt_ns near(const struct pt_host_watch *w)
{
    return w->step / 20;
}

static bool look(struct pt_host_watch *w, struct pt_host_sample *into)
{
    struct pt_err ignored = {0};
    if (pt_host_look(into, w->pid, w->pids, &ignored) < 0)
        return false;
    w->cost += into->cost_ns;
    w->looks++;
    return true;
}

struct pt_host_watch *pt_host_watch_open(const pid_t *pid, unsigned pids, pt_ns begin, pt_ns step)
{
    struct pt_host_watch *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->pids = pids < PT_HOST_PIDS ? pids : PT_HOST_PIDS;
    memcpy(w->pid, pid, w->pids * sizeof(*pid));
    w->begin = begin;
    w->opened = pt_clock_now();
    w->step = step;
    w->first = malloc(sizeof(*w->first));
    w->last = malloc(sizeof(*w->last));
    w->now = malloc(sizeof(*w->now));
    if (!w->first || !w->last || !w->now || !look(w, w->first)) {
        pt_host_watch_free(w);
        return NULL;
    }
    memcpy(w->last, w->first, sizeof(*w->last));
    return w;
}

static void join_all(struct pt_host_watch *w)
{
    for (unsigned i = 0; i + 1 < w->points; i += 2) {
        w->point[i / 2] = w->point[i];
        pt_host_point_join(&w->point[i / 2], &w->point[i + 1]);
    }
    w->points /= 2;
}

static bool take(struct pt_host_watch *w)
{
    if (!look(w, w->now))
        return false;
    if (w->points == POINTS_MOST)
        join_all(w);
    pt_host_point_make(&w->point[w->points++], w->last, w->now,
                       (double)(w->now->at - w->begin) / 1e9);
    struct pt_host_sample *free_one = w->last;
    w->last = w->now;
    w->now = free_one;
    return true;
}

bool pt_host_watch_tick(struct pt_host_watch *w, pt_ns now)
{
    if (!w)
        return false;
    if (now < w->begin + near(w) && w->first->at < w->begin) {
        /* The look nearest to the begin of the window is where it begins. */
        if (now + near(w) >= w->begin && look(w, w->first))
            memcpy(w->last, w->first, sizeof(*w->last));
        return false;
    }
    return now >= w->begin && now - w->last->at >= w->step - near(w) && take(w);
}

json_t *pt_host_watch_interval(const struct pt_host_watch *w)
{
    return w && w->points ? pt_host_json(w->now, w->last) : NULL;
}

void pt_host_watch_end(struct pt_host_watch *w)
{
    if (w && (pt_clock_now() - w->last->at >= near(w) || !w->points))
        (void)take(w);
}

json_t *pt_host_watch_json(const struct pt_host_watch *w)
{
    json_t *o = w && w->points ? pt_host_json(w->first, w->last) : NULL;
    if (!o)
        return NULL;
    json_t *series = json_array();
    for (unsigned i = 0; i < w->points; i++)
        json_array_append_new(series, pt_host_point_json(&w->point[i]));
    double took = (double)(w->last->at - w->opened);
    json_object_set_new(o, "series", series);
    json_object_set_new(o, "sampling",
                        json_pack("{s:I, s:f}", "samples", (json_int_t)w->looks, "cpu_pct",
                                  took > 0 ? (double)w->cost / took * 100 : 0.0));
    return o;
}

void pt_host_watch_free(struct pt_host_watch *w)
{
    if (!w)
        return;
    free(w->first);
    free(w->last);
    free(w->now);
    free(w);
}
