/* run.h: `pitot run`.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_RUN_H
#define PT_CMD_RUN_H

#include "cmd/cmd.h"

extern const struct pt_cmd pt_cmd_run;

#endif
