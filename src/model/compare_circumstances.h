/* compare_circumstances.h: what was asked for and on what, as flat texts that can be compared; part
 * of compare.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_COMPARE_CIRCUMSTANCES_H
#define PT_MODEL_COMPARE_CIRCUMSTANCES_H

#include "model/result.h"

/* {path: text} of the options, both ends' identity and environment, and what was chosen; without
 * what is another one each time. A new reference; NULL: no memory. */
json_t *pt_circumstances(const struct pt_result *r);

/* [{path, values: [text or null, one per side]}] of what is not the same in all `n`. A new
 * reference; NULL: no memory. */
json_t *pt_circumstances_differ(json_t *const *sides, size_t n);

#endif
