/* clock.h: the clocks. Everything above this layer that can take time as a parameter does.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_CLOCK_H
#define PT_OS_CLOCK_H

#include "base/types.h"

/* CLOCK_MONOTONIC (never steps; slewed by NTP). One vDSO call, about 25 ns. */
pt_ns pt_clock_now(void);
/* CLOCK_REALTIME, nanoseconds since 1970: for timestamps that a person or another host reads. */
pt_ns pt_clock_realtime(void);
/* The CLOCK_MONOTONIC instant of something that a kernel timestamp (CLOCK_REALTIME) places in the
 * recent past; now, when the stamp is not from there (the clock was set meanwhile). */
pt_ns pt_clock_of_stamp(pt_ns realtime);
/* CPU time of this process (user + system), nanoseconds. */
pt_ns pt_clock_cpu(void);
/* Sleeps until the instant, through signals. */
void pt_clock_sleep_until(pt_ns instant);
/* Sleeps until the instant or a signal. 0, or -EINTR. */
int pt_clock_wait_until(pt_ns instant);
/* RFC 3339 UTC with milliseconds, "2026-01-31T23:59:59.123Z"; `out` holds at least 32 bytes. */
void pt_clock_rfc3339(pt_ns realtime, char out[32]);

#endif
