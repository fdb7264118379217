/* plan_value.h: what plan_file.c and plan_value.c share; nobody else includes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_PLAN_VALUE_H
#define PT_MODEL_PLAN_VALUE_H

#include "model/plan_file.h"
#include "model/yaml.h"

/* Appends the test of a command to the plan, in the present group: `y` has its keys. */
int pt_plan_value_test(struct pt_plan_file *f, const struct pt_plan_form *form,
                       const struct pt_yaml *y, struct pt_err *e) PT_MUST_USE;

/* Put FILE:LINE:COLUMN of a value, or of a key, before the sentence. -EINVAL */
int pt_plan_at_value(const struct pt_plan_file *f, const struct pt_yaml *y, struct pt_err *e);
int pt_plan_at_key(const struct pt_plan_file *f, const struct pt_yaml *y, struct pt_err *e);
/* The sentence for a key that is none of `known` (NULL-terminated). -EINVAL */
int pt_plan_unknown_key(const struct pt_plan_file *f, const struct pt_yaml *y, const char *of,
                        const char *const *known, struct pt_err *e);
int pt_plan_take_name(const struct pt_plan_file *f, const struct pt_yaml *y, char out[PT_PLAN_NAME],
                      struct pt_err *e) PT_MUST_USE;

#endif
