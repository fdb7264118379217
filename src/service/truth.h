/* truth.h: what `pitot truth` injects: its options, and the document of what was injected.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SERVICE_TRUTH_H
#define PT_SERVICE_TRUTH_H

#include "base/buf.h"
#include "model/opt.h"
#include "net/impair_ledger.h"

#define PT_TRUTH_SCHEMA "pitot.truth/1"

/* Options whose values are a struct pt_impair_spec. */
extern const struct pt_opt pt_truth_path_opts[];

/* The document `pitot.truth/1` (docs/formats/truth.md): the spec as text, the counters, the
 * distributions of injected delay and of lateness. New reference; NULL: no memory. */
json_t *pt_truth_document(const struct pt_impair_spec *spec, const struct pt_impair_record *record,
                          uint64_t paths);

/* The same for reading, as lines. */
void pt_truth_text(struct pt_buf *out, const struct pt_impair_spec *spec,
                   const struct pt_impair_record *record, uint64_t paths);

#endif
