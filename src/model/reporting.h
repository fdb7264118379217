/* reporting.h: where a command's report goes and how it looks: the options that all commands with
 * a report have.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_REPORTING_H
#define PT_MODEL_REPORTING_H

#include "model/opt.h"

#define PT_PATH_LEN 512

enum pt_lang { PT_LANG_AUTO, PT_LANG_EN, PT_LANG_ZH };

struct pt_reporting {
    char json[PT_PATH_LEN], csv[PT_PATH_LEN], html[PT_PATH_LEN]; /* "": not wanted; "-": stdout */
    bool quiet, no_color, help, man;
    int lang; /* enum pt_lang */
};

extern const struct pt_opt pt_reporting_opts[];

/* -EINVAL when a file was given without a name, or two of them are one. `set` is of the table
 * above. */
int pt_reporting_check(const struct pt_opts *set, struct pt_err *e) PT_MUST_USE;

#endif
