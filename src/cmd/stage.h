/* stage.h: the hosts of a plan on this machine, and the servers that answer on them.
 *
 * Each host is a network namespace, or an address of the loopback where there are no rights for
 * that (wan/topology.h). A plan without hosts has a stage too: this machine as it is. A host that a
 * test goes to gets a `serve` of our own, in its namespace, for as long as the plan runs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_STAGE_H
#define PT_CMD_STAGE_H

#include "model/plan_file.h"
#include "model/result.h"
#include "service/serve.h"
#include "wan/topology.h"

struct pt_stage {
    const struct pt_plan_file *plan;
    struct pt_topo topo;           /* n 0: the plan has no hosts */
    struct pt_serve_child *server; /* per host, or one; those that never started are zeroed */
};

/* On a failure nothing is left, and closing is fine. */
int pt_stage_open(struct pt_stage *s, const struct pt_plan_file *plan,
                  struct pt_err *e) PT_MUST_USE;
void pt_stage_close(struct pt_stage *s);

/* The document's `topology`: kind, text, hosts with their addresses. */
void pt_stage_document(const struct pt_stage *s, struct pt_result *run);

/* Where the server of a test answers, which this starts when it is not there yet. */
int pt_stage_server(struct pt_stage *s, const struct pt_plan_test *t, struct pt_err *e) PT_MUST_USE;

/* In the forked child that shall measure from a host: moves there. */
int pt_stage_enter(const struct pt_stage *s, uint32_t host, struct pt_err *e) PT_MUST_USE;
/* The addresses to measure, by the test's `ipv4` and `ipv6`; on loopback addresses a test without
 * `bind` comes from the address of its host, which goes into `plan`. */
int pt_stage_ends(const struct pt_stage *s, const struct pt_plan_test *t, uint32_t sender,
                  struct pt_plan *plan, struct pt_addr_list *to, struct pt_err *e) PT_MUST_USE;
const struct pt_secret *pt_stage_secret(const struct pt_stage *s, const struct pt_plan_test *t);

#endif
