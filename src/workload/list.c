/* list.c: the list of workloads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "workload/list.h"

#include "engine/run.h"

#include <string.h>

const struct pt_workload *const pt_workloads[] = {&pt_bw, &pt_pps, &pt_lat, NULL};

const struct pt_workload *pt_workload_find(const char *name)
{
    for (size_t i = 0; pt_workloads[i]; i++)
        if (strcmp(pt_workloads[i]->form.manual.command, name) == 0)
            return pt_workloads[i];
    return NULL;
}
