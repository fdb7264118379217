/* hosts.h: what the hosts did beside a test.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_HOSTS_H
#define PT_ENGINE_HOSTS_H

#include "engine/report.h"
#include "host/watch.h"

/* Of this process and the workers of `job`; `begin`: of the window. NULL: nothing can be seen. */
struct pt_host_watch *pt_hosts_watch(const struct pt_job *job, pt_ns begin);
/* What one end has to say of its host: the looks, and with them the key `environment`
 * (host/fingerprint.h). Not while something is measured. A new reference; NULL: nothing. */
json_t *pt_hosts_json(const struct pt_host_watch *w);
/* The array `hosts`: one entry when both ends are in one network namespace, else one for each.
 * The environments go to `environment`, by end; of one namespace there is one, `local`. */
void pt_report_hosts(const struct pt_report *rep, struct pt_result *r);

#endif
