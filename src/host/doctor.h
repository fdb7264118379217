/* doctor.h: what on this host would spoil a measurement, and setting it right for a while.
 *
 * Everything is read below a root folder ("" is the real one), so that tests have a host of their
 * own. Only kernel settings of the table in doctor.c are ever written; what they were is on disk
 * before the first of them changes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_HOST_DOCTOR_H
#define PT_HOST_DOCTOR_H

#include "base/err.h"
#include "base/types.h"

#define PT_DOCTOR_UNDO_FILE "/run/pitot/doctor-undo.json"
#define PT_DOCTOR_LINES     64
#define PT_DOCTOR_VALUE     96

enum pt_doctor_state {
    PT_DOCTOR_OK,
    PT_DOCTOR_ATTENTION,
    PT_DOCTOR_UNKNOWN, /* it cannot be read here */
};

struct pt_doctor_line {
    char name[64];
    enum pt_doctor_state state;
    char current[PT_DOCTOR_VALUE]; /* as the kernel prints it; "" when unknown */
    char wanted[PT_DOCTOR_VALUE];  /* for a person */
    const char *why;               /* a constant sentence; NULL for lines of an undo */
    char set[PT_DOCTOR_VALUE];     /* what a fix writes to the setting `name`; "": none does */
    char command[192];             /* what a person may do about it; "": nothing known */
    char note[192];                /* what a fix or an undo did or met; "" nothing */
    bool fixed;                    /* by this call */
};

struct pt_doctor {
    char root[128];
    char interface[16];   /* the only one to look at; "": all that are hardware */
    uint64_t connections; /* that a measurement shall have; at least 1 */
    pt_ns pause;          /* between the two looks at the steal time */
    unsigned n;
    struct pt_doctor_line line[PT_DOCTOR_LINES];
};

/* Fills the lines; takes `pause`. Nothing that is missing or unreadable is an error. */
void pt_doctor_look(struct pt_doctor *d);
unsigned pt_doctor_count(const struct pt_doctor *d, enum pt_doctor_state state);
const char *pt_doctor_state_name(enum pt_doctor_state state);

/* Sets every line that needs attention and has a setting, after pt_doctor_look. The former values
 * go to `undo_file` first (mode 0600, synced to the disk); what an earlier fix kept there stays. A
 * value that somebody else changed after an earlier fix is left alone, with a note. How many were
 * set; an error only for the undo file. */
int pt_doctor_fix(struct pt_doctor *d, const char *undo_file, struct pt_err *e) PT_MUST_USE;

/* Writes back what `undo_file` keeps and removes it; one line for each value. What somebody else
 * changed meanwhile is left alone and needs attention; what could not be written too, and then the
 * file stays. How many were restored; -ENOENT: there is no such file; -EPERM: the file is not ours,
 * others may write it, or it is of another network namespace; -EPROTO: it is not an undo file. */
int pt_doctor_undo(struct pt_doctor *d, const char *undo_file, struct pt_err *e) PT_MUST_USE;

#endif
