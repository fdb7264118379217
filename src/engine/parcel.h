/* parcel.h: what a child process measured, as JSON through a pipe to its parent.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_PARCEL_H
#define PT_ENGINE_PARCEL_H

#include "base/types.h"

#include <jansson.h>

/* Writes the whole of it, and blocks until the parent has read; takes the reference. The end of the
 * pipe is the end of the parcel. 0, or -ENOMEM (also for NULL), or what write(2) said. */
int pt_parcel_send_new(int fd, json_t *o) PT_MUST_USE;

#endif
