/* cmd.c: see cmd.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#define HELP_CEILING ((size_t)256 << 10)

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return !strcmp(word, a) || !strcmp(word, b);
}

bool pt_cmd_help(const struct pt_manual *m, const struct pt_opts *sets, size_t n, int argc,
                 const char *const *argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool man = !strcmp(argv[i], "--man");
        if (!man && !is_one_of(argv[i], "--help", "-h"))
            continue;
        struct pt_buf out;
        pt_buf_init(&out, HELP_CEILING);
        if (man)
            pt_manual_man(m, sets, n, &out);
        else
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
