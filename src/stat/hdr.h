/* hdr.h: a histogram as HdrHistogram V2 text, which other tools read and write.
 *
 * The format of HdrHistogram's V2 compressed encoding (Java AbstractHistogram.encodeIntoCompressed-
 * ByteBuffer, the reference), in base64 as in its log files; docs/formats/hdr.md describes the
 * bytes. Lowest discernible value 1, 3 significant digits: its buckets then have the borders of
 * ours, so every count goes over unchanged. What the format cannot hold: the exact minimum, maximum
 * and sum (readers take them from the buckets, 0.05 % away), and values of 2^63 and above, which
 * are counted in its last bucket.
 *
 * Readers print for a percentile the highest value of the bucket where pt_hist_quantile gives the
 * midpoint: theirs is up to 0.05 % higher.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_STAT_HDR_H
#define PT_STAT_HDR_H

#include "base/buf.h"
#include "base/err.h"
#include "stat/hist.h"

/* Longest text that is read; room for any histogram of this program. */
#define PT_HDR_TEXT_MAX ((size_t)1 << 20)

/* Appends the text. 0, or -ENOMEM, or -EMSGSIZE when it passes the ceiling of `out`. */
int pt_hdr_encode(const struct pt_hist *h, struct pt_buf *out) PT_MUST_USE;

/* Reads `len` characters, of any lowest discernible value and 0 to 5 significant digits; `out`
 * (initialised or zeroed) is replaced. Each count is recorded at the midpoint of its bucket, so
 * minimum, maximum and mean are those of midpoints. The text may come from anyone: memory is
 * bounded by `len`, work by the number of buckets that the header declares. Fails, leaving `out`
 * empty, with -EBADMSG (malformed), -EPROTONOSUPPORT (not V2, or a feature that is not supported),
 * -EMSGSIZE (too long) or -ENOMEM. */
int pt_hdr_decode(const char *text, size_t len, struct pt_hist *out, struct pt_err *e) PT_MUST_USE;

#endif
