/* compare.h: the report of a comparison, `pitot.compare/1` (model/compare.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SINK_COMPARE_H
#define PT_SINK_COMPARE_H

#include "sink/sink.h"

extern const struct pt_sink pt_sink_compare_text;

#endif
