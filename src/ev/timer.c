/* timer.c: the timers of a loop, a 4-ary heap ordered by due time.
 *
 * Four children per node share two cache lines and halve the depth; each timer knows its place, so
 * moving and cancelling cost O(log n) without a search.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/backend.h"

#include <errno.h>
#include <stdlib.h>

#define ARITY      4
#define TIMERS_MAX ((size_t)1 << 24)

int pt_timer_heap_init(struct pt_timer_heap *h, size_t cap)
{
    *h = (struct pt_timer_heap){.cap = cap};
    h->slots = calloc(cap, sizeof(*h->slots));
    return h->slots ? 0 : -ENOMEM;
}

void pt_timer_heap_fini(struct pt_timer_heap *h)
{
    free(h->slots);
    *h = (struct pt_timer_heap){0};
}

static void place(struct pt_timer_heap *h, size_t at, struct pt_timer_slot s)
{
    h->slots[at] = s;
    s.timer->p.index = at + 1;
}

static void sift_up(struct pt_timer_heap *h, size_t at, struct pt_timer_slot s)
{
    while (at > 0) {
        size_t parent = (at - 1) / ARITY;
        if (h->slots[parent].due <= s.due)
            break;
        place(h, at, h->slots[parent]);
        at = parent;
    }
    place(h, at, s);
}

static void sift_down(struct pt_timer_heap *h, size_t at, struct pt_timer_slot s)
{
    for (;;) {
        size_t first = at * ARITY + 1, least = first;
        if (first >= h->count)
            break;
        size_t end = first + ARITY < h->count ? first + ARITY : h->count;
        for (size_t i = first + 1; i < end; i++)
            if (h->slots[i].due < h->slots[least].due)
                least = i;
        if (s.due <= h->slots[least].due)
            break;
        place(h, at, h->slots[least]);
        at = least;
    }
    place(h, at, s);
}

static void settle(struct pt_timer_heap *h, size_t at, struct pt_timer_slot s)
{
    if (at > 0 && s.due < h->slots[(at - 1) / ARITY].due)
        sift_up(h, at, s);
    else
        sift_down(h, at, s);
}

static int grow(struct pt_timer_heap *h)
{
    if (h->cap >= TIMERS_MAX)
        return -ENOSPC;
    struct pt_timer_slot *slots = realloc(h->slots, 2 * h->cap * sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    h->slots = slots;
    h->cap *= 2;
    return 0;
}

int pt_timer_set(struct pt_loop *l, struct pt_timer *t, pt_ns due)
{
    struct pt_timer_heap *h = &l->timers;
    struct pt_timer_slot s = {.due = due, .timer = t};
    if (t->p.index) {
        t->p.due = due;
        settle(h, t->p.index - 1, s);
        return 0;
    }
    if (h->count == h->cap) {
        int rc = grow(h);
        if (rc < 0)
            return rc;
    }
    t->p.due = due;
    sift_up(h, h->count++, s);
    return 0;
}

static void remove_at(struct pt_timer_heap *h, size_t at)
{
    h->slots[at].timer->p.index = 0;
    struct pt_timer_slot last = h->slots[--h->count];
    if (at < h->count)
        settle(h, at, last);
}

void pt_timer_cancel(struct pt_loop *l, struct pt_timer *t)
{
    if (t->p.index)
        remove_at(&l->timers, t->p.index - 1);
}

int pt_timer_heap_run(struct pt_timer_heap *h, pt_ns now)
{
    int ran = 0;
    for (size_t most = h->count; most > 0 && h->count > 0 && h->slots[0].due <= now; most--) {
        struct pt_timer_slot s = h->slots[0];
        remove_at(h, 0);
        s.timer->fn(s.timer, s.due);
        ran++;
    }
    return ran;
}
