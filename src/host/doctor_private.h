/* doctor_private.h: what the files of the doctor share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_HOST_DOCTOR_PRIVATE_H
#define PT_HOST_DOCTOR_PRIVATE_H

#include "host/doctor.h"

struct pt_doctor_check {
    const char *name; /* of a kernel setting, as sysctl(8) writes it, or of what `look` looks at */
    const char *why;
    uint64_t (*want)(uint64_t connections); /* the least value; NULL: `look` judges */
    unsigned column;                        /* of several numbers, the one that counts */
    void (*look)(struct pt_doctor *d, const struct pt_doctor_check *c);
};

/* The file `path` below the root, without the newline at its end. Negative errno, -EMSGSIZE when it
 * does not fit. */
int pt_doctor_read(const struct pt_doctor *d, const char *path, char *out, size_t cap) PT_MUST_USE;
/* The path of a setting below the root: "net.core.somaxconn" is proc/sys/net/core/somaxconn. */
const char *pt_doctor_path(char *out, size_t cap, const char *name);
/* Whether a fix may write this setting. */
bool pt_doctor_may_set(const char *name);
/* A new line, unknown so far; the last one again when there is no more room. */
struct pt_doctor_line *pt_doctor_add(struct pt_doctor *d, const char *name, const char *why);
/* CPUs in /proc/stat; 0 when it cannot be read. */
unsigned pt_doctor_cpus(const struct pt_doctor *d);

void pt_doctor_look_limits(struct pt_doctor *d, const struct pt_doctor_check *c);
void pt_doctor_look_governor(struct pt_doctor *d, const struct pt_doctor_check *c);
void pt_doctor_look_spread(struct pt_doctor *d, const struct pt_doctor_check *c);
void pt_doctor_look_offloads(struct pt_doctor *d, const struct pt_doctor_check *c);
void pt_doctor_look_swap(struct pt_doctor *d, const struct pt_doctor_check *c);
void pt_doctor_look_steal(struct pt_doctor *d, const struct pt_doctor_check *c);
void pt_doctor_look_clock(struct pt_doctor *d, const struct pt_doctor_check *c);
void pt_doctor_look_uring(struct pt_doctor *d, const struct pt_doctor_check *c);
void pt_doctor_look_load(struct pt_doctor *d, const struct pt_doctor_check *c);

#endif
