/* opt_row.h: what opt.c shares with opt_cli.c and opt_json.c; nobody else includes it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_OPT_ROW_H
#define PT_MODEL_OPT_ROW_H

#include "model/opt.h"

void *pt_opt_field(const struct pt_opt *opt, void *values);
const void *pt_opt_field_peek(const struct pt_opt *opt, const void *values);
/* Whether a number is within the limits of its row. */
int pt_opt_within(const struct pt_opt *opt, double v, struct pt_err *e) PT_MUST_USE;
int pt_opt_enum(const struct pt_opt *opt, const char *text, int *out, struct pt_err *e) PT_MUST_USE;
int pt_strs_add(struct pt_strs *list, const char *text, size_t len, struct pt_err *e) PT_MUST_USE;
/* Parses into the field and marks the row as given. -EINVAL with "--name: …". */
int pt_opt_set_row(struct pt_opt_at at, const char *text, struct pt_err *e) PT_MUST_USE;
/* -ENOENT and the sentence for a name that does not exist, with the nearest that does. */
int pt_opt_unknown(const struct pt_opts *sets, size_t n, const char *name, const char *dashes,
                   struct pt_err *e) PT_MUST_USE;

#endif
