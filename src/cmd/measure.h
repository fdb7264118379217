/* measure.h: the measuring commands.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_CMD_MEASURE_H
#define PT_CMD_MEASURE_H

#include "cmd/cmd.h"

extern const struct pt_cmd pt_cmd_bw, pt_cmd_pps, pt_cmd_lat;

#endif
