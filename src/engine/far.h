/* far.h: the other end of a test, as the asking end sees it: how it is reached, told what to do,
 * and listened to.
 *
 * A kind of other end is one constant table: `pitot serve` (far_pitot.c), or a stock server of
 * another tool (peer/). run.c calls its entries in the order in which they stand here and knows
 * nothing of what they say on the wire. A missing entry means that there is nothing to do.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_FAR_H
#define PT_ENGINE_FAR_H

#include "engine/half.h"
#include "engine/place.h"
#include "engine/run.h"
#include "net/control.h"
#include "net/dial.h"

struct pt_far {
    const struct pt_far_kind *kind;
    const struct pt_run_spec *spec;
    struct pt_plan *plan;   /* the spec's, within what the other end allows */
    struct pt_shape *shape; /* of that */
    struct pt_place *place;
    enum pt_backend backend;

    /* set by `reach` */
    struct pt_addr at;            /* where the flows go */
    char name[PT_ADDR_TEXT + 24]; /* "server at 10.0.0.2:7411", for sentences */
    const json_t *identity;       /* what it says of itself; NULL: nothing */
    struct pt_caps caps;          /* what it allows */
    pt_ns rtt_ns;                 /* 0: not known yet */
    int fd;                       /* readable when it has said something; -1: never */
    /* set by `propose` */
    uint16_t listener_port; /* where answer_listens; 0 */

    /* what it has said since the start */
    struct pt_point point; /* the newest interval */
    struct pt_half half;   /* its report */
    bool point_new, sent, reported;
    pt_ns heard_ns, told_ns;
    char broken[320]; /* why it is of no use any more; "" */
    void *own;        /* the kind's */
};

struct pt_far_kind {
    const char *name; /* of --peer; NULL: pitot's own */
    uint16_t port;    /* where it listens unless the target says otherwise */
    bool ticks;       /* says something at least once a second: silence means that it is lost */

    /* Each until `deadline`. On failure the sentence is there; `close` is called all the same. */
    int (*reach)(struct pt_far *f, pt_ns deadline, struct pt_err *e);
    int (*propose)(struct pt_far *f, pt_ns deadline, struct pt_err *e);
    /* Opens the flows, whose ids and sources are set: d[i].fd. */
    int (*dial)(struct pt_far *f, struct pt_dial *d, pt_ns deadline, struct pt_err *e);
    int (*prepare)(struct pt_far *f, pt_ns deadline, struct pt_err *e);
    /* Its warm-up begins `lead` from now. */
    int (*start)(struct pt_far *f, pt_ns lead, pt_ns deadline, struct pt_err *e);
    /* Takes what it has said, without waiting. False: it is lost, and `broken` says why. */
    bool (*listen)(struct pt_far *f);
    /* About once a second, while it runs: that we still live. */
    void (*keep_alive)(struct pt_far *f, pt_ns now);
    /* We have stopped sending: it shall stop, and report. Without this entry it reports nothing. */
    void (*stop)(struct pt_far *f, const struct pt_job *job);
    /* When our end is read: makes its half of what it said and of what our end knows, and warns of
     * what it cannot tell. */
    void (*conclude)(struct pt_far *f, const struct pt_half *local, struct pt_result *r);
    /* A step failed with `rc`: what it said may be the better reason. Returns what stands then. */
    int (*explain)(struct pt_far *f, int rc, struct pt_err *e);
    void (*close)(struct pt_far *f);
};

/* The first reason stays. */
void pt_far_broke(struct pt_far *f, const char *fmt, ...) PT_PRINTF(2, 3);

extern const struct pt_far_kind pt_far_pitot;

#endif
