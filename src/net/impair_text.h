/* impair_text.h: impairments as people write them.
 *
 *     delay         5ms | uniform:1ms-3ms | normal:5ms:1ms | exp:2ms | table:1ms=90,10ms=10
 *     stall         100ms/1s (each second) | 100ms/1s@250ms (the first at 250 ms) | 2s@3s (once)
 *     loss, dup     1% | every:100 | burst:1%:25% (loss only: a burst begins, ends)
 *     reorder       every:50:by:3 (packets) | every:50:by:2ms
 *     rate cap      100mbit | 10k (packets/s) | 100mbit:queue:20ms
 *     clock offset  3ms | -3ms
 *     clock drift   50ppm | -20ppm
 *
 * Each parser fills the field of struct pt_impair_spec that it is named after, passed as `void *`
 * so that it serves as the kind of an option (model/opt.h); `none` gives the zeroed field. They
 * refuse what does not parse; pt_impair_check refuses what does not make sense. Each printer writes
 * what parses back to the same field, "" for a zeroed one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_NET_IMPAIR_TEXT_H
#define PT_NET_IMPAIR_TEXT_H

#include "base/buf.h"
#include "net/impair.h"

int pt_delay_parse(const char *text, void *field, struct pt_err *e) PT_MUST_USE;
int pt_stall_parse(const char *text, void *field, struct pt_err *e) PT_MUST_USE;
int pt_chance_parse(const char *text, void *field, struct pt_err *e) PT_MUST_USE;
int pt_reorder_parse(const char *text, void *field, struct pt_err *e) PT_MUST_USE;
int pt_rate_cap_parse(const char *text, void *field, struct pt_err *e) PT_MUST_USE;
int pt_clock_offset_parse(const char *text, void *field, struct pt_err *e) PT_MUST_USE;
int pt_clock_drift_parse(const char *text, void *field, struct pt_err *e) PT_MUST_USE;

void pt_delay_print(const void *field, struct pt_buf *out);
void pt_stall_print(const void *field, struct pt_buf *out);
void pt_chance_print(const void *field, struct pt_buf *out);
void pt_reorder_print(const void *field, struct pt_buf *out);
void pt_rate_cap_print(const void *field, struct pt_buf *out);
void pt_clock_offset_print(const void *field, struct pt_buf *out);
void pt_clock_drift_print(const void *field, struct pt_buf *out);

#endif
