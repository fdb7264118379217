/* cmd.c: see cmd.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#define HELP_CEILING ((size_t)256 << 10)

bool pt_cmd_help(const struct pt_manual *m, const struct pt_opts *sets, size_t n, int argc,
                 const char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0)
            continue;
        struct pt_buf out;
        pt_buf_init(&out, HELP_CEILING);
        pt_manual_help(m, sets, n, &out);
        fputs(pt_buf_str(&out), stdout);
        pt_buf_fini(&out);
        return true;
    }
    return false;
}

int pt_cmd_complain(const struct pt_manual *m, const struct pt_err *e, int status)
{
    fprintf(stderr, "pitot %s: %s\n", m->command, e->text);
    return status;
}
