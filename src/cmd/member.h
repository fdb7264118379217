/* member.h: one test of a group in a process of its own: what the child does, and what the parent
 * knows of it. Used by group.c only.
 *
 * The child writes its warm-up to the gate and reads the instant of the window from it, once per
 * run of `repeat`. At its end it writes one JSON object to the other pipe:
 * {"result": the document, "windows": [[first_ns, last_ns], …]} or {"error": sentence}.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_MEMBER_H
#define PT_CMD_MEMBER_H

#include "cmd/output.h"
#include "cmd/stage.h"

#define PT_MEMBER_ROUNDS 1000 /* the most that --repeat takes */

struct pt_member {
    const struct pt_plan_test *test;
    uint32_t sender; /* index of the host it runs on */
    struct pt_child child;
    int parcel;   /* what it says at the end; -1: all is read */
    int gate;     /* a socket pair's end; -1: closed */
    pt_ns warmup; /* once it waits at the gate; -1: it does not */
    struct pt_buf text;
};

/* Forks it; `all` is the array that it is in, of which those before it are started. `gated`: it
 * waits for others; `quiet`: no live lines. */
int pt_member_start(struct pt_member *m, const struct pt_member *all, struct pt_stage *s,
                    struct pt_output *output, bool gated, bool quiet, struct pt_err *e) PT_MUST_USE;
/* Reads what is there of the parcel; closes it at its end. */
void pt_member_read(struct pt_member *m);
/* Reads the child's warm-up from the gate, or closes it when the child has. */
void pt_member_arrived(struct pt_member *m);
void pt_member_pass(struct pt_member *m, pt_ns window);
void pt_member_close_gate(struct pt_member *m);
/* Ends the process if it still runs, and frees all. */
void pt_member_end(struct pt_member *m);

/* The parcel, when it is one: an object; NULL: the child ended without. The caller's reference. */
json_t *pt_member_parcel(const struct pt_member *m);

#endif
