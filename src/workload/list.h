/* list.h: the workloads there are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_WORKLOAD_LIST_H
#define PT_WORKLOAD_LIST_H

#include "engine/workload.h"

extern const struct pt_workload pt_bw, pt_pps, pt_lat;
extern const struct pt_workload *const pt_workloads[]; /* NULL-terminated */

#endif
