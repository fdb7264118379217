/* compat.h: servers of other tools' protocols beside `pitot serve`: --compat.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SERVICE_COMPAT_H
#define PT_SERVICE_COMPAT_H

#include "service/serve.h"

#define PT_COMPAT_MAX 4

/* One of them: a constant of its own file, a word in compat.c. */
struct pt_compat {
    const char *name;
    uint16_t port;
    /* Binds the IP addresses of `spec` with `port`, calls `ready`, and serves until SIGINT, SIGTERM
     * or the end of the parent. 0, or a negative errno. */
    int (*serve)(const struct pt_serve_spec *spec, uint16_t port, void (*ready)(void *ctx),
                 void *ctx, struct pt_err *e);
};

extern const struct pt_compat pt_compat_iperf3;

/* NULL: there is none of that name. */
const struct pt_compat *pt_compat_find(const char *name);

/* Starts it in a process of its own, which ends with us; returns when it listens. `port` 0: its
 * usual one. */
int pt_compat_start(struct pt_child *c, const struct pt_compat *what,
                    const struct pt_serve_spec *spec, uint16_t port, struct pt_err *e) PT_MUST_USE;

#endif
