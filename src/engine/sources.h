/* sources.h: which local addresses and ports the flows of a test come from (--bind, --ports).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_SOURCES_H
#define PT_ENGINE_SOURCES_H

#include "model/plan.h"
#include "net/tuple.h"

/* The plan of the tuples towards `to`; `capacity` 0: none was asked for, the kernel chooses. */
int pt_sources_plan(struct pt_tuple_plan *t, const struct pt_common *c, const struct pt_addr *to,
                    struct pt_err *e) PT_MUST_USE;

/* The first source address, port 0, that goes with any of the addresses of the server: for what is
 * opened beside the flows. Length 0: any. */
int pt_sources_first(struct pt_addr *from, const struct pt_common *c, const struct pt_addr_list *to,
                     struct pt_err *e) PT_MUST_USE;

/* Whether `flows` have tuples towards any of the addresses: else -EINVAL or -EADDRNOTAVAIL. */
int pt_sources_check(const struct pt_common *c, const struct pt_addr_list *to, uint64_t flows,
                     struct pt_err *e) PT_MUST_USE;

#endif
