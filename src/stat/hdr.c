/* hdr.c: see hdr.h.
 *
 * Decoding is a stream: inflate hands over a few KiB at a time to a byte-wise reader that checks
 * each count against the declared size, so a small text that inflates to gigabytes is refused early
 * and needs no memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "stat/hdr.h"

#include "base/base64.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

/* The high nibble of the low byte is the word size: 1 for variable-length counts. */
#define COOKIE            0x1c849303u
#define COOKIE_COMPRESSED 0x1c849304u
#define COOKIE_VARIABLE   0x10u
#define COOKIE_MASK       0xffffff0fu

#define HEADER_SIZE       40 /* of the payload: see header_read */
#define OUTER_HEADER_SIZE 8  /* cookie and length of the compressed payload */
#define VARINT_SIZE       9
#define DIGITS            3
/* The field's habit, one hour; a smaller one would make tools that add up files resize. */
#define HIGHEST_MIN (3600u * (uint64_t)PT_S)
/* The format's values end at 2^63-1. */
#define BUCKETS     (PT_HIST_BUCKETS - PT_HIST_SUB)
#define ONE_BITS    0x3ff0000000000000u /* 1.0 as IEEE 754 */
#define PAYLOAD_MAX (1u << 24)

static void store_be32(uint8_t *to, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void store_be64(uint8_t *to, uint64_t v)
{
    store_be32(to, (uint32_t)(v >> 32));
    store_be32(to + 4, (uint32_t)v);
}

static uint32_t load_be32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static uint64_t load_be64(const uint8_t *from)
{
    return (uint64_t)load_be32(from) << 32 | load_be32(from + 4);
}

/* ZigZag and LEB128 in HdrHistogram's variant: a ninth byte carries eight bits and ends it. */
static void put_signed(struct pt_buf *b, int64_t v)
{
    uint64_t bits = (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
    uint8_t bytes[VARINT_SIZE];
    size_t n = 0;
    while (bits >= 0x80 && n < VARINT_SIZE - 1) {
        bytes[n++] = (uint8_t)(bits | 0x80);
        bits >>= 7;
    }
    bytes[n++] = (uint8_t)bits;
    pt_buf_add(b, bytes, n);
}

/* The count of bucket `index` after those below `*at`; a run of empty ones is its negative length,
 * a single one is a plain zero. */
static void put_count(struct pt_buf *b, uint32_t *at, uint32_t index, uint64_t count)
{
    uint32_t gap = index - *at;
    if (gap)
        put_signed(b, gap == 1 ? 0 : -(int64_t)gap);
    put_signed(b, count > INT64_MAX ? INT64_MAX : (int64_t)count);
    *at = index + 1;
}

static void put_payload(struct pt_buf *b, const struct pt_hist *h)
{
    uint8_t header[HEADER_SIZE] = {0};
    pt_buf_add(b, header, sizeof(header));
    uint32_t at = 0;
    uint64_t last = 0;
    struct pt_hist_bucket bucket = {0};
    while (pt_hist_next(h, &bucket)) {
        if (bucket.index >= BUCKETS - 1)
            last += bucket.count;
        else
            put_count(b, &at, bucket.index, bucket.count);
    }
    if (last)
        put_count(b, &at, BUCKETS - 1, last);
    if (b->failed)
        return;
    uint32_t top = pt_hist_index(pt_hist_max(h));
    uint64_t highest = pt_hist_low(top) + (pt_hist_width(top) - 1);
    if (highest < HIGHEST_MIN)
        highest = HIGHEST_MIN;
    if (highest > INT64_MAX)
        highest = INT64_MAX;
    store_be32(header, COOKIE | COOKIE_VARIABLE);
    store_be32(header + 4, (uint32_t)(b->len - HEADER_SIZE));
    store_be32(header + 12, DIGITS);
    store_be64(header + 16, 1);
    store_be64(header + 24, highest);
    store_be64(header + 32, ONE_BITS);
    memcpy(b->bytes, header, sizeof(header));
}

static int deflate_into(struct pt_buf *out, const struct pt_buf *payload)
{
    uLongf size = compressBound(payload->len);
    char *to = pt_buf_reserve(out, OUTER_HEADER_SIZE + size);
    if (!to)
        return out->failed;
    if (compress((Bytef *)to + OUTER_HEADER_SIZE, &size, (const Bytef *)payload->bytes,
                 payload->len) != Z_OK)
        return -ENOMEM;
    store_be32((uint8_t *)to, COOKIE_COMPRESSED | COOKIE_VARIABLE);
    store_be32((uint8_t *)to + 4, (uint32_t)size);
    out->len += OUTER_HEADER_SIZE + size;
    return 0;
}

int pt_hdr_encode(const struct pt_hist *h, struct pt_buf *out)
{
    struct pt_buf payload, outer;
    pt_buf_init(&payload, HEADER_SIZE + (size_t)BUCKETS * VARINT_SIZE);
    pt_buf_init(&outer, PT_HDR_TEXT_MAX);
    put_payload(&payload, h);
    int rc = payload.failed;
    if (!rc)
        rc = deflate_into(&outer, &payload);
    if (!rc)
        rc = pt_base64_encode(out, outer.bytes, outer.len);
    pt_buf_fini(&outer);
    pt_buf_fini(&payload);
    return rc;
}

/* A payload being read. */
struct reader {
    struct pt_hist *out;
    uint8_t header[HEADER_SIZE];
    unsigned header_len;
    uint32_t left;      /* bytes of counts that the header promised and are not here yet */
    unsigned unit_bits; /* values below 2^unit_bits are not told apart */
    unsigned half_bits; /* half a row of buckets has 2^half_bits */
    uint32_t buckets, at;
    uint64_t varint;
    unsigned varint_len;
};

/* Buckets that HdrHistogram allots for a highest value (AbstractHistogram.getBucketsNeededToCover-
 * Value). The caller made sure that `unit_bits + half_bits` <= 61. */
static uint32_t buckets_for(unsigned unit_bits, unsigned half_bits, uint64_t highest)
{
    uint64_t beyond = (uint64_t)1 << (half_bits + 1 + unit_bits);
    uint32_t rows = 1;
    for (; beyond <= highest; beyond <<= 1, rows++)
        if (beyond > INT64_MAX / 2)
            return (rows + 2) << half_bits;
    return (rows + 1) << half_bits;
}

/* Big endian: cookie, length of the counts, normalizing offset, digits (32 bits each), lowest and
 * highest value (64), ratio of integer to double values (IEEE double). */
static int header_read(struct reader *r, struct pt_err *e)
{
    /* Values below this are told apart, by number of digits. */
    static const uint32_t apart[] = {2, 20, 200, 2000, 20000, 200000};
    const uint8_t *h = r->header;
    uint32_t digits = load_be32(h + 12);
    uint64_t lowest = load_be64(h + 16), highest = load_be64(h + 24);
    if ((load_be32(h) & COOKIE_MASK) != COOKIE)
        return pt_fail(e, -EPROTONOSUPPORT,
                       "histogram text: payload cookie 0x%08x is not that of HdrHistogram V2",
                       load_be32(h));
    uint32_t offset = load_be32(h + 8);
    uint64_t ratio = load_be64(h + 32);
    /* hdr-histogram-js writes the integer 1 in both places and means neither. */
    if (!(ratio == ONE_BITS && offset == 0) && !(ratio == 1 && offset <= 1))
        return pt_fail(e, -EPROTONOSUPPORT,
                       "histogram text: shifted or scaled values are not supported");
    r->left = load_be32(h + 4);
    if (r->left > PAYLOAD_MAX)
        return pt_fail(e, -EMSGSIZE, "histogram text: payload of %u bytes is above %u", r->left,
                       PAYLOAD_MAX);
    if (digits >= PT_COUNT(apart) || lowest < 1 || lowest > INT64_MAX / 2 || highest < 2 * lowest ||
        highest > INT64_MAX)
        return pt_fail(e, -EBADMSG, "histogram text: digits or range of values make no sense");
    r->half_bits = 0;
    while ((2u << r->half_bits) < apart[digits])
        r->half_bits++;
    r->unit_bits = 63 - (unsigned)__builtin_clzll(lowest);
    if (r->unit_bits + r->half_bits > 61)
        return pt_fail(e, -EBADMSG, "histogram text: digits and lowest value exceed 64 bits");
    r->buckets = buckets_for(r->unit_bits, r->half_bits, highest);
    return 0;
}

/* The midpoint of bucket `index`: row 0 has both halves, every other only its upper one. */
static uint64_t value_at(const struct reader *r, uint32_t index)
{
    uint32_t half = (uint32_t)1 << r->half_bits;
    uint32_t row = index >> r->half_bits, sub = index & (half - 1);
    if (row) {
        row--;
        sub += half;
    }
    unsigned shift = row + r->unit_bits;
    uint64_t width = (uint64_t)1 << shift;
    return ((uint64_t)sub << shift) + width / 2;
}

/* A count, or minus the length of a run of empty buckets. */
static int count_read(struct reader *r, struct pt_err *e)
{
    uint64_t size = r->varint >> 1;
    bool negative = r->varint & 1;
    if (negative) {
        /* Zigzag: -n is 2n - 1. */
        if (size >= r->buckets - r->at)
            return pt_fail(e, -EBADMSG, "histogram text: empty run passes the last bucket");
        r->at += (uint32_t)size + 1;
        return 0;
    }
    if (r->at >= r->buckets)
        return pt_fail(e, -EBADMSG, "histogram text: more than the declared %u buckets",
                       r->buckets);
    if (size > INT64_MAX - pt_hist_count(r->out))
        return pt_fail(e, -EBADMSG, "histogram text: counts add up to more than 2^63-1");
    pt_hist_record_n(r->out, value_at(r, r->at), size);
    r->at++;
    return 0;
}

static int payload_read(struct reader *r, const uint8_t *bytes, size_t n, struct pt_err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (r->header_len < HEADER_SIZE) {
            r->header[r->header_len++] = bytes[i];
            int rc = r->header_len == HEADER_SIZE ? header_read(r, e) : 0;
            if (rc)
                return rc;
            continue;
        }
        if (!r->left)
            return pt_fail(e, -EBADMSG, "histogram text: payload is longer than declared");
        r->left--;
        bool ninth = r->varint_len == VARINT_SIZE - 1;
        uint64_t bits = ninth ? bytes[i] : bytes[i] & 0x7fu;
        r->varint |= bits << (7 * r->varint_len++);
        if (!ninth && bytes[i] & 0x80)
            continue;
        int rc = count_read(r, e);
        if (rc)
            return rc;
        r->varint = 0;
        r->varint_len = 0;
    }
    return 0;
}

static int inflate_into(struct reader *r, const uint8_t *bytes, uint32_t n, struct pt_err *e)
{
    uint8_t chunk[4096];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = n};
    if (inflateInit(&z) != Z_OK)
        return pt_fail(e, -ENOMEM, "histogram text: no memory to decompress");
    int rc = 0, end = Z_OK;
    while (!rc && end == Z_OK) {
        z.next_out = chunk;
        z.avail_out = sizeof(chunk);
        end = inflate(&z, Z_NO_FLUSH);
        if (end != Z_OK && end != Z_STREAM_END)
            rc = pt_fail(e, -EBADMSG, "histogram text: compressed payload is damaged or cut");
        else
            rc = payload_read(r, chunk, sizeof(chunk) - z.avail_out, e);
    }
    inflateEnd(&z);
    if (!rc && (r->header_len < HEADER_SIZE || r->left || r->varint_len))
        rc = pt_fail(e, -EBADMSG, "histogram text: payload is shorter than declared");
    return rc;
}

int pt_hdr_decode(const char *text, size_t len, struct pt_hist *out, struct pt_err *e)
{
    pt_hist_reset(out);
    if (len > PT_HDR_TEXT_MAX)
        return pt_fail(e, -EMSGSIZE, "histogram text: %zu characters are more than %zu", len,
                       PT_HDR_TEXT_MAX);
    struct pt_buf outer;
    pt_buf_init(&outer, PT_HDR_TEXT_MAX);
    int rc = pt_base64_decode(&outer, text, len);
    const uint8_t *bytes = (const uint8_t *)outer.bytes;
    if (rc) {
        pt_fail(e, rc, "histogram text: not base64");
    } else if (outer.len < OUTER_HEADER_SIZE) {
        rc = pt_fail(e, -EBADMSG, "histogram text: too short");
    } else if ((load_be32(bytes) & COOKIE_MASK) != COOKIE_COMPRESSED) {
        rc = pt_fail(e, -EPROTONOSUPPORT,
                     "histogram text: cookie 0x%08x is not that of compressed HdrHistogram V2",
                     load_be32(bytes));
    } else if (load_be32(bytes + 4) > outer.len - OUTER_HEADER_SIZE) {
        rc = pt_fail(e, -EBADMSG, "histogram text: compressed payload is cut");
    } else {
        struct reader r = {.out = out};
        rc = inflate_into(&r, bytes + OUTER_HEADER_SIZE, load_be32(bytes + 4), e);
    }
    pt_buf_fini(&outer);
    if (rc)
        pt_hist_reset(out);
    return rc;
}
