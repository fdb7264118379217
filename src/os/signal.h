/* signal.h: SIGINT and SIGTERM as a flag and a descriptor; SIGPIPE ignored.
 *
 * The handler writes to an eventfd, so that a loop asleep in the kernel wakes even when the signal
 * came between its last look at the flag and its sleep.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_SIGNAL_H
#define PT_OS_SIGNAL_H

#include "base/err.h"
#include "base/types.h"

/* SIGINT and SIGTERM are noted, without SA_RESTART (blocking calls end with EINTR); SIGPIPE is
 * ignored. Installing again forgets what was seen. */
int pt_signals_install(struct pt_err *e) PT_MUST_USE;
/* The last of the two that came, or 0. */
int pt_signal_seen(void);
/* How many came: a second one means "now". */
unsigned pt_signal_count(void);
/* Readable (POLLIN) once a signal has come: closes the gap between looking and sleeping. Nobody
 * reads it. -1 before the install. */
int pt_signal_fd(void);
/* Nothing was seen, nothing is noted any more: what a forked child begins with. */
void pt_signals_forget(void);
/* Notes `signal` as if it had come (tests, and a command received from elsewhere). */
void pt_signal_note(int signal);

#endif
