/* parcel.c: see parcel.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/parcel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int pt_parcel_send_new(int fd, json_t *o)
{
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    size_t n = text ? strlen(text) : 0;
    int rc = n ? 0 : -ENOMEM;
    for (size_t at = 0; rc == 0 && at < n;) {
        ssize_t sent = write(fd, text + at, n - at);
        if (sent < 0 && errno != EINTR)
            rc = -errno;
        at += sent > 0 ? (size_t)sent : 0;
    }
    free(text);
    json_decref(o);
    return rc;
}
