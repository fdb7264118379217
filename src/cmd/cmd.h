/* cmd.h: what main.c needs to know of a command, and what commands share.
 *
 * A command is one file with one constant; main.c lists them. Commands are the only code that
 * prints and that decides an exit status.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_CMD_H
#define PT_CMD_CMD_H

#include "base/err.h"
#include "model/manual.h"

enum pt_exit_status {
    PT_EXIT_OK = 0,
    PT_EXIT_FAILED = 1,    /* or partial */
    PT_EXIT_USAGE = 2,     /* not done: the command line */
    PT_EXIT_THRESHOLD = 3, /* an --expect failed */
    PT_EXIT_INTERRUPTED = 130,
};

struct pt_cmd {
    const struct pt_manual *manual; /* name and summary are there */
    /* `argv` begins behind the command's name. Returns the exit status. */
    int (*run)(int argc, const char *const *argv);
};

extern const struct pt_cmd pt_cmd_compare, pt_cmd_doctor, pt_cmd_host, pt_cmd_report, pt_cmd_run,
    pt_cmd_serve, pt_cmd_truth;

/* Handles --help and --man anywhere in the arguments: prints the page and returns true. */
bool pt_cmd_help(const struct pt_manual *m, const struct pt_opts *sets, size_t n, int argc,
                 const char *const *argv);
/* "pitot lat: sentence" on stderr; returns `status`. */
int pt_cmd_complain(const struct pt_manual *m, const struct pt_err *e, int status);

#endif
