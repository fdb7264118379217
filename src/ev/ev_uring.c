/* ev_uring.c: the loop over io_uring.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ev/backend.h"

#include <errno.h>

static int uring_open(struct pt_loop *l, struct pt_err *e)
{
    (void)l;
    return pt_fail(e, -ENOSYS, "this build has no io_uring back end");
}

const struct pt_backend_calls pt_backend_uring = {
    .name = "io_uring", .size = sizeof(struct pt_loop), .open = uring_open};
