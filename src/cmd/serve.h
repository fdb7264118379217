/* serve.h: what the commands that serve sessions share: `pitot serve`, `pitot truth`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_SERVE_H
#define PT_CMD_SERVE_H

#include "cmd/cmd.h"
#include "service/serve.h"

struct pt_serve_opts {
    struct pt_strs listen, allow, compat;
    char secret_file[1024];
    struct pt_rate max_rate;
    pt_ns max_duration;
    uint32_t max_sessions, max_connections, iperf3_port;
    uint64_t connections;
};

extern const struct pt_opt pt_serve_opts[];

/* Fills addresses, allow list, secret and caps; session and impairment stay the caller's. Without
 * --listen: the loopback only. -EINVAL is the user's mistake. */
int pt_serve_spec_fill(struct pt_serve_spec *spec, const struct pt_serve_opts *opts,
                       struct pt_err *e) PT_MUST_USE;

/* Installs the signals, sends the log to stderr, says on stdout where it listens, serves until the
 * end, with what `--compat` of the options asks for beside it. Returns the exit status. */
int pt_serve_command(const struct pt_manual *m, const struct pt_serve_opts *o,
                     const struct pt_serve_spec *spec);

#endif
