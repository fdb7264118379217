/* run_document.h: `pitot.run/1`, docs/run.schema.json: what a plan gave. Its tests are documents
 * `pitot.result/1` of their own; beside them stand which ran at the same instant, how far apart
 * they really began, and the sums over several senders. docs/METHOD.md defines every key.
 *
 * It is a tree with paths like a result, and its setters fail the same way (result.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_RUN_DOCUMENT_H
#define PT_MODEL_RUN_DOCUMENT_H

#include "model/result.h"

#define PT_RUN_SCHEMA "pitot.run/1"

/* NULL: no memory. pt_result_free. */
struct pt_result *pt_run_new(const char *name, pt_ns realtime);

size_t pt_run_tests(const struct pt_result *run);
/* One of its tests, as a view that must not be freed and holds as long as the run. */
struct pt_result pt_run_test(const struct pt_result *run, size_t index);
/* Takes the document of a test over; it becomes the last. */
void pt_run_add(struct pt_result *run, struct pt_result *test);

/* Tests `first` to `first + n - 1` ran at the same instant; their windows really began within
 * `skew_ns`, -1: not known. */
void pt_run_together(struct pt_result *run, size_t first, size_t n, pt_ns skew_ns);
/* They are one test from several senders: adds the sums of their rates and totals. What one of them
 * does not have is null in the sum. */
void pt_run_sum(struct pt_result *run, const char *name, size_t first, size_t n);

/* status and exit of the whole: the worst of the tests; 3 when only thresholds were not held. */
void pt_run_conclude(struct pt_result *run);

bool pt_run_is(const struct pt_result *document);
/* Reads a run or a result that nobody vouches for (pt_result_load_by reads files). Each test of a
 * run is checked as pt_result_parse does. */
int pt_document_parse(const char *bytes, size_t n, struct pt_result **out,
                      struct pt_err *e) PT_MUST_USE;

#endif
