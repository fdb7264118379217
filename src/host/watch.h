/* watch.h: a host beside a test: looks at every step, in the end one `hosts` entry.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_HOST_WATCH_H
#define PT_HOST_WATCH_H

#include "host/sample_json.h"

#define PT_HOST_PIDS 264 /* a supervisor and its workers */

struct pt_host_watch; /* all functions are fine with NULL */

/* Takes the first look. `begin`: when the window of the figures begins (CLOCK_MONOTONIC); looks
 * before it only move the start of the averages. NULL: no memory, or no /proc. */
struct pt_host_watch *pt_host_watch_open(const pid_t *pid, unsigned pids, pt_ns begin, pt_ns step);
/* To be called often: takes a look when one is due, and says so. */
bool pt_host_watch_tick(struct pt_host_watch *w, pt_ns now);
/* An entry about the time between the last two looks, without series and sampling; a new reference.
 */
json_t *pt_host_watch_interval(const struct pt_host_watch *w);
/* The last look. */
void pt_host_watch_end(struct pt_host_watch *w);
/* The entry, a new reference; NULL: nothing to tell. */
json_t *pt_host_watch_json(const struct pt_host_watch *w);
void pt_host_watch_free(struct pt_host_watch *w);

#endif
