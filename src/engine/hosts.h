/* hosts.h: what the hosts did beside a test.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_HOSTS_H
#define PT_ENGINE_HOSTS_H

#include "engine/report.h"
#include "host/watch.h"

/* Of this process and the workers of `job`; `begin`: of the window. NULL: nothing can be seen. */
struct pt_host_watch *pt_hosts_watch(const struct pt_job *job, pt_ns begin);
/* The array `hosts`: one entry when both ends are in one network namespace, else one for each. */
void pt_report_hosts(const struct pt_report *rep, struct pt_result *r);

#endif
