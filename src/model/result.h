/* result.h: the result document `pitot.result/1`, docs/result.schema.json, as a tree with paths.
 *
 * Everything that is printed, stored or compared is in here; docs/METHOD.md defines every key. A
 * path is keys joined by dots, "totals.errors.timeout", and indices of arrays, "steps.0.p99_us". A
 * setter makes the objects on the way, but no array elements.
 *
 * Setters do not fail one by one: the first failure (no memory, a path through something that is
 * not an object) sticks and pt_result_failed tells it once at the end. Numbers that are not finite
 * become null. Text that is not UTF-8 is stored with \xNN for its bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_MODEL_RESULT_H
#define PT_MODEL_RESULT_H

#include "base/err.h"
#include "base/types.h"

#include <jansson.h>

#define PT_RESULT_SCHEMA  "pitot.result/1"
#define PT_RESULT_CEILING ((size_t)256 << 20) /* bytes of a file that pt_result_load accepts */

struct pt_plan;
struct pt_hist;

struct pt_result {
    json_t *root;
    int failed; /* 0, or the first negative errno of a setter */
};

enum pt_result_status { PT_RESULT_OK, PT_RESULT_PARTIAL, PT_RESULT_FAILED };

/* An empty document with schema, version, id and `started` (CLOCK_REALTIME). NULL: no memory. */
struct pt_result *pt_result_new(pt_ns realtime);
/* The same of another schema, without the lists that a result has. */
struct pt_result *pt_result_bare(const char *schema, pt_ns realtime);
void pt_result_free(struct pt_result *r);
int pt_result_failed(const struct pt_result *r);
/* Rounds every real to the digits that are stored, so that reports of the document in memory and of
 * the stored one are the same. Called once, when it is complete. */
void pt_result_round(struct pt_result *r);

/* Fills test{workload, name, params, load}, warmup_s from the plan. */
void pt_result_plan(struct pt_result *r, const struct pt_plan *p);
void pt_result_argv(struct pt_result *r, int argc, const char *const *argv);
/* status and exit (0 ok, 1 partial or failed; a caller may then set "exit" to 130). A worse status
 * is never replaced by a better one. */
void pt_result_status(struct pt_result *r, enum pt_result_status s);
enum pt_result_status pt_result_get_status(const struct pt_result *r);

void pt_result_u64(struct pt_result *r, const char *path, uint64_t n); /* > INT64_MAX: null */
void pt_result_i64(struct pt_result *r, const char *path, int64_t n);
void pt_result_real(struct pt_result *r, const char *path, double v);
void pt_result_bool(struct pt_result *r, const char *path, bool b);
void pt_result_str(struct pt_result *r, const char *path, const char *text); /* NULL: null */
void pt_result_null(struct pt_result *r, const char *path);
/* Takes the reference, also when it fails; NULL counts as out of memory. */
void pt_result_take(struct pt_result *r, const char *path, json_t *value);
/* Appends to the array at `path`, made when missing; takes the reference. */
void pt_result_append(struct pt_result *r, const char *path, json_t *value);

void pt_result_warn(struct pt_result *r, const char *fmt, ...) PT_PRINTF(2, 3);
void pt_result_note(struct pt_result *r, const char *fmt, ...) PT_PRINTF(2, 3);
/* Adds {name, path, value, unit} to `headline`, in order of importance: the value at `path`, which
 * must be set before. Units: bit/s packet/s operation/s us s % byte, or "" for a plain count. */
void pt_result_headline(struct pt_result *r, const char *name, const char *path, const char *unit);

/* The block at `path` ("latency", "service_time", "connect_time") from nanoseconds: count, mean_us,
 * …, percentiles that too few samples stand behind as null, hdr. */
void pt_result_hist(struct pt_result *r, const char *path, const struct pt_hist *h);
/* The same figures as an object (new reference) without `hdr`, for a step or a direction. */
json_t *pt_hist_json(const struct pt_hist *h);

/* Borrowed; NULL when there is nothing there. */
json_t *pt_result_at(const struct pt_result *r, const char *path);
/* False when missing, null or of another type. A real getter also takes integers and booleans. */
bool pt_result_get_real(const struct pt_result *r, const char *path, double *v);
bool pt_result_get_u64(const struct pt_result *r, const char *path, uint64_t *n);
/* NULL when missing or not a string. */
const char *pt_result_get_str(const struct pt_result *r, const char *path);
int pt_result_exit(const struct pt_result *r);

/* Whether the books balance: operations = ok + Σ errors + in_flight_at_end. -EINVAL with the sum.
 */
int pt_result_balance(const struct pt_result *r, struct pt_err *e) PT_MUST_USE;

/* Reads a document from bytes or a file that nobody vouches for: size and depth are limited, the
 * schema and the types of what sinks rely on are checked. Caller frees. */
int pt_result_parse(const char *bytes, size_t n, struct pt_result **out,
                    struct pt_err *e) PT_MUST_USE;
int pt_result_load(const char *path, struct pt_result **out, struct pt_err *e) PT_MUST_USE;

/* What those are made of, for documents that hold results: an object of any schema; whether it is a
 * result; a file through a parser. */
typedef int pt_result_parser(const char *bytes, size_t n, struct pt_result **out, struct pt_err *e);
int pt_result_read(const char *bytes, size_t n, struct pt_result **out,
                   struct pt_err *e) PT_MUST_USE;
int pt_result_check(const struct pt_result *r, struct pt_err *e) PT_MUST_USE;
int pt_result_load_by(pt_result_parser *parse, const char *path, struct pt_result **out,
                      struct pt_err *e) PT_MUST_USE;

/* One document of `n` >= 1 runs of the same test: a copy of the run whose first headline figure is
 * the median, with `repeat`: n, per headline path, and per figure that is compared
 * (figures.h), {values, median, min, max, spread_pct}, and whether the runs agree (the first
 * figure's spread is at most PT_RESULT_AGREE_PCT). The worst status and all warnings are kept. */
#define PT_RESULT_AGREE_PCT 10.0
int pt_result_repeat(struct pt_result *const *runs, size_t n, struct pt_result **out,
                     struct pt_err *e) PT_MUST_USE;

#endif
