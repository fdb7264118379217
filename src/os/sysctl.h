/* sysctl.h: small values from /proc/sys, of the network namespace this process is in.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_SYSCTL_H
#define PT_OS_SYSCTL_H

#include "base/types.h"

/* The text of "net/core/wmem_max" (a path below /proc/sys), without its newline, into `out`.
 * -ENOENT: this kernel has none; -EMSGSIZE: it does not fit. */
int pt_sysctl_text(const char *name, char *out, size_t cap) PT_MUST_USE;
/* Up to `cap` numbers separated by blanks ("32768\t60999"); how many there were. -EINVAL: the text
 * holds something else. */
int pt_sysctl_numbers(const char *name, int64_t *out, size_t cap) PT_MUST_USE;
/* The only or first number, or `otherwise` when there is none. */
int64_t pt_sysctl_number(const char *name, int64_t otherwise);

#endif
