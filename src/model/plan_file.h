/* plan_file.h: a plan as people write it, in YAML: hosts, and tests between them (docs/PLANS.md).
 *
 *     name: ecs-network
 *     hosts:
 *       target: {}
 *       senders: {count: 3}
 *     tests:
 *       - pps: {from: senders, to: target, connections: 64, duration: 60s}
 *       - together:
 *           - bw: {from: senders-1, to: target, duration: 10s}
 *           - lat: {from: senders-2, to: target, duration: 10s, name: under load}
 *
 * The keys of a test are the long options of its command, read by the same tables. Three steps:
 * parse (what a value is), set (--set), check (what contradicts what). Everything that is refused
 * is refused with FILE:LINE:COLUMN, what was expected and the nearest key.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_PLAN_FILE_H
#define PT_MODEL_PLAN_FILE_H

#include "model/plan.h"

#define PT_PLAN_TESTS    128
#define PT_PLAN_HOSTS    250 /* in all, with every `count` */
#define PT_PLAN_TOGETHER 64  /* members of a group, one per sender */
#define PT_PLAN_NAME     64  /* bytes of a name and its NUL */

/* Warm-ups of tests that run together end at one instant: the shorter ones wait for the longest,
 * and a server waits no longer than this. */
#define PT_PLAN_WARMUPS (10 * PT_S)

struct pt_plan_host {
    char name[PT_PLAN_NAME];
    uint32_t count; /* hosts of this name: NAME when 1, else NAME-1 … NAME-count */
    uint32_t first; /* index of the first among all hosts */
};

struct pt_plan_test {
    struct pt_plan plan;
    char name[PT_PLAN_NAME];                   /* unique in the plan */
    char from[PT_PLAN_NAME], to[PT_PLAN_NAME]; /* as written */
    uint32_t sender, senders; /* hosts it runs on, at once; senders 0: the plan has no hosts */
    uint32_t target;          /* the host that answers */
    uint32_t group;           /* tests of one group run together; groups follow each other */
    uint32_t line, column;    /* of its command's key */
    bool left_out;            /* by pt_plan_file_only */
};

struct pt_plan_file {
    char origin[PT_PATH_LEN]; /* the file's name, for sentences */
    char name[PT_PLAN_NAME];
    uint32_t host_names, hosts; /* entries of `host`, and hosts in all */
    struct pt_plan_host host[PT_PLAN_HOSTS];
    uint32_t tests, groups;
    struct pt_plan_test *test[PT_PLAN_TESTS]; /* owned */
};

/* `forms` are the commands there are, NULL-terminated. `f` need not be initialised; on a failure
 * it is empty, and pt_plan_file_fini is fine then. */
int pt_plan_file_parse(struct pt_plan_file *f, const char *origin, const char *bytes, size_t n,
                       const struct pt_plan_form *const *forms, struct pt_err *e) PT_MUST_USE;
/* The same from a file of at most PT_YAML_BYTES. */
int pt_plan_file_load(struct pt_plan_file *f, const char *path,
                      const struct pt_plan_form *const *forms, struct pt_err *e) PT_MUST_USE;
void pt_plan_file_fini(struct pt_plan_file *f);

/* "key=value": sets that option in every test whose command has it. -EINVAL: none has, or the value
 * does not fit. */
int pt_plan_file_set(struct pt_plan_file *f, const char *assignment, struct pt_err *e) PT_MUST_USE;
/* What contradicts what, in each test and among those that run together. */
int pt_plan_file_check(const struct pt_plan_file *f, struct pt_err *e) PT_MUST_USE;
/* Leaves out every test that is none of `names`. -EINVAL for a name that no test has. */
int pt_plan_file_only(struct pt_plan_file *f, const struct pt_strs *names,
                      struct pt_err *e) PT_MUST_USE;

/* The whole plan as YAML, every default filled in and tagged `!default`; what it prints parses to
 * the same plan. Options that have no value unless somebody gives one are left out. */
void pt_plan_file_print(const struct pt_plan_file *f, struct pt_buf *out);

/* The name of one host by its index. */
const char *pt_plan_file_host(const struct pt_plan_file *f, uint32_t index, char out[PT_PLAN_NAME]);

/* Puts FILE:LINE:COLUMN before the sentence, and writes options in it as keys, without dashes. */
int pt_plan_file_refuse(const struct pt_plan_file *f, uint32_t line, uint32_t column,
                        struct pt_err *e);

#endif
