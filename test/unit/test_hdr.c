/* test_hdr.c: texts of other implementations are read, ours read back, and broken ones refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/base64.h"
#include "base/rng.h"
#include "stat/hdr.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

static struct pt_hist hist, back;

/* Written by the Java implementation: one sample of 42. */
static const char java_42[] = "HISTFAAAAB542pNpmSzMwMDAxAABzFCaEUoz2X+AMIKZAEARAtM=";
/* Written by the Java implementation (jHiccup log, 2 digits, lowest value 20000 ns): 741 samples;
 * hdr-histogram-js reads lowest 16384, highest 2785278, p50 below 344064, p99 below 409600. */
static const char java_pauses[] =
    "HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4nrxg9v2lMaxhvMekILGZkKm"
    "cCAEf2CsI=";
/* Written by hdr-histogram-js 3.0.1, 3 digits: 0 three times, 1 a million times, 2 2^41+1 times,
 * 4 once, and 7^i i times for i = 1 to 12. Single empty buckets, runs, and counts of 1 to 6 bytes.
 */
static const char js_powers[] =
    "HISTFAAAAFN4nJNpmSzMwMCgz8DAwMjAwMDMAAGMDAzMbgY7FjDA+GwNnVVNDSDAyMDEzBTIcpKFbb0sx0VdrqU6PBt1+F"
    "7rCMzVFTqpK3JWR2y5jgQAR6YRsw==";
/* Written by hdr-histogram-js 3.0.1, 2 digits, lowest value 1000: 1000 2^40 + 7 times, and 5000,
 * 123456, 7654321, 59999999 seven times each. */
static const char js_coarse[] =
    "HISTFAAAADZ4nJNpmSzMwMAgxMDAwMjAwMDEAAbML8Dk5HYGKGBk6GtoaGhw4OU7y8z3lpvvMysfAMdwCTg=";

static void assert_near(double got, double want, double share)
{
    if (!(fabs(got - want) <= share * want))
        fail_msg("%.17g is not within %g of %.17g", got, share, want);
}

static void decode(const char *text)
{
    struct pt_err e = {0};
    if (pt_hdr_decode(text, strlen(text), &back, &e))
        fail_msg("%s", e.text);
}

static void reads_the_java_implementation(void **state)
{
    (void)state;
    decode(java_42);
    assert_int_equal(pt_hist_count(&back), 1);
    assert_int_equal(pt_hist_min(&back), 42);
    assert_int_equal(pt_hist_max(&back), 42);
    decode(java_pauses);
    assert_int_equal(pt_hist_count(&back), 741);
    /* Buckets of 16384 and, at the top, of 32768 to 65536 values: 2 digits. */
    assert_near((double)pt_hist_max(&back), 2785278, 0.01);
    struct pt_hist_bucket b = {0};
    assert_true(pt_hist_next(&back, &b) && pt_hist_next(&back, &b));
    assert_int_equal(pt_hist_index(16384 + 8192), b.index);
    assert_int_equal(pt_hist_quantile(&back, 0.5) / 16384, 344063 / 16384);
    assert_int_equal(pt_hist_quantile(&back, 0.99) / 16384, 409599 / 16384);
    assert_near(pt_hist_mean(&back), 301998.4669365722, 1e-3);
}

static void reads_javascript(void **state)
{
    (void)state;
    decode(js_powers);
    pt_hist_reset(&hist);
    pt_hist_record_n(&hist, 0, 3);
    pt_hist_record_n(&hist, 1, 1000000);
    pt_hist_record_n(&hist, 2, ((uint64_t)1 << 41) + 1);
    pt_hist_record_n(&hist, 4, 1);
    uint64_t power = 1;
    for (unsigned i = 1; i <= 12; i++)
        pt_hist_record_n(&hist, power *= 7, i);
    assert_memory_equal(hist.buckets, back.buckets, sizeof(hist.buckets));
    assert_int_equal(pt_hist_count(&back), pt_hist_count(&hist));
    assert_near(pt_hist_mean(&back), pt_hist_mean(&hist), 0.0005);

    decode(js_coarse);
    static const struct {
        uint64_t value, count;
    } want[] = {
        {1000, ((uint64_t)1 << 40) + 7}, {5000, 7}, {123456, 7}, {7654321, 7}, {59999999, 7}};
    struct pt_hist_bucket b = {0};
    for (size_t i = 0; i < PT_COUNT(want); i++) {
        assert_true(pt_hist_next(&back, &b));
        assert_int_equal(b.count, want[i].count);
        /* The lowest value is kept as 512: everything below 1024 is one or two buckets. */
        assert_near((double)pt_hist_mid(&b), (double)want[i].value, i < 2 ? 0.25 : 0.01);
    }
    assert_false(pt_hist_next(&back, &b));
}

static void encode(const struct pt_hist *h, struct pt_buf *text)
{
    pt_buf_init(text, PT_HDR_TEXT_MAX);
    assert_int_equal(pt_hdr_encode(h, text), 0);
    assert_int_equal(strncmp(pt_buf_str(text), "HISTFA", 6), 0);
}

/* The payload within a text; returns its length. */
static size_t payload_in(const char *text, uint8_t *to, size_t cap)
{
    struct pt_buf outer;
    pt_buf_init(&outer, 4096);
    assert_int_equal(pt_base64_decode(&outer, text, strlen(text)), 0);
    uLongf size = cap;
    assert_int_equal(uncompress(to, &size, (const Bytef *)outer.bytes + 8, outer.len - 8), Z_OK);
    pt_buf_fini(&outer);
    return size;
}

/* The counts come out as the other implementation wrote them, byte for byte. */
static void writes_what_javascript_writes(void **state)
{
    (void)state;
    struct pt_buf text;
    uint8_t ours[200], theirs[200];
    decode(js_powers);
    encode(&back, &text);
    size_t size = payload_in(pt_buf_str(&text), ours, sizeof(ours));
    assert_int_equal(size, payload_in(js_powers, theirs, sizeof(theirs)));
    assert_memory_equal(ours, theirs, 8);
    assert_memory_equal(ours + 12, theirs + 12, 20);
    assert_memory_equal(ours + 40, theirs + 40, size - 40);
    pt_buf_fini(&text);
}

static void round_trip(void)
{
    struct pt_buf text;
    encode(&hist, &text);
    decode(pt_buf_str(&text));
    assert_int_equal(pt_hist_count(&back), pt_hist_count(&hist));
    assert_memory_equal(back.buckets, hist.buckets, sizeof(back.buckets));
    pt_buf_fini(&text);
}

static void own_text_reads_back(void **state)
{
    (void)state;
    pt_hist_reset(&hist);
    round_trip();
    pt_hist_record(&hist, 0);
    round_trip();
    pt_hist_record(&hist, INT64_MAX);
    pt_hist_record_n(&hist, 3, INT64_MAX - 2);
    round_trip();
    struct pt_rng rng;
    pt_rng_init(&rng, test_seed());
    for (unsigned round = 0; round < 20; round++) {
        pt_hist_reset(&hist);
        for (uint64_t n = 1 + pt_rng_below(&rng, 3000); n; n--)
            pt_hist_record_n(&hist, pt_rng_u64(&rng) >> (1 + pt_rng_below(&rng, 63)),
                             pt_rng_u64(&rng) >> (12 + pt_rng_below(&rng, 52)));
        round_trip();
    }
}

/* The widest text there is: every bucket with a count of nine bytes fits the reader's limit. */
static void full_histogram_fits(void **state)
{
    (void)state;
    struct pt_rng rng;
    pt_rng_init(&rng, 1);
    pt_hist_reset(&hist);
    for (uint32_t i = 0; i < PT_HIST_BUCKETS - PT_HIST_SUB; i++)
        pt_hist_record_n(&hist, pt_hist_low(i), 1 + (pt_rng_u64(&rng) >> 17));
    round_trip();
}

/* The format ends at 2^63-1: what is above counts in its last bucket. */
static void beyond_the_format_is_counted(void **state)
{
    (void)state;
    pt_hist_reset(&hist);
    pt_hist_record_n(&hist, UINT64_MAX, 5);
    pt_hist_record_n(&hist, (uint64_t)1 << 63, 3);
    pt_hist_record_n(&hist, INT64_MAX, 2);
    pt_hist_record(&hist, 100);
    struct pt_buf text;
    encode(&hist, &text);
    decode(pt_buf_str(&text));
    pt_buf_fini(&text);
    assert_int_equal(pt_hist_count(&back), 11);
    struct pt_hist_bucket b = {0};
    assert_true(pt_hist_next(&back, &b) && b.low == 100 && b.count == 1);
    assert_true(pt_hist_next(&back, &b) && b.high == INT64_MAX && b.count == 10);
    assert_false(pt_hist_next(&back, &b));
}

static void encode_keeps_the_ceiling(void **state)
{
    (void)state;
    struct pt_buf text;
    pt_buf_init(&text, 20);
    pt_hist_reset(&hist);
    assert_int_equal(pt_hdr_encode(&hist, &text), -EMSGSIZE);
    assert_int_equal(text.len, 0);
    pt_buf_fini(&text);
}

/* A payload under construction, for texts that no writer makes. */
struct payload {
    uint8_t bytes[200];
    size_t len;
};

static struct payload payload_of(const uint8_t *counts, size_t n)
{
    static const uint8_t header[40] = {
        0x1c, 0x84, 0x93, 0x13, [15] = 3, [23] = 1, [30] = 0x10, [32] = 0x3f, [33] = 0xf0};
    struct payload p = {.len = sizeof(header) + n};
    memcpy(p.bytes, header, sizeof(header));
    p.bytes[7] = (uint8_t)n;
    memcpy(p.bytes + sizeof(header), counts, n);
    return p;
}

/* `claimed` less than zero: the compressed length is told as it is. */
static int decode_payload(const struct payload *p, long claimed)
{
    uint8_t outer[600] = {0x1c, 0x84, 0x93, 0x14};
    uLongf size = sizeof(outer) - 8;
    assert_int_equal(compress(outer + 8, &size, p->bytes, p->len), Z_OK);
    uLongf tell = claimed < 0 ? size : (uLongf)claimed;
    outer[6] = (uint8_t)(tell >> 8);
    outer[7] = (uint8_t)tell;
    struct pt_buf text;
    pt_buf_init(&text, 4096);
    assert_int_equal(pt_base64_encode(&text, outer, 8 + size), 0);
    struct pt_err e = {0};
    pt_hist_reset(&back);
    pt_hist_record(&back, 1);
    int rc = pt_hdr_decode(pt_buf_str(&text), text.len, &back, &e);
    pt_buf_fini(&text);
    if (rc) {
        assert_true(e.text[0] != '\0' && e.code == rc);
        assert_int_equal(pt_hist_count(&back), 0);
    }
    return rc;
}

static void reads_a_hand_made_payload(void **state)
{
    (void)state;
    /* 3 of value 0, five empty buckets, 300 of value 6, an over-long 1. */
    static const uint8_t counts[] = {0x06, 0x09, 0xd8, 0x04, 0x82, 0x00};
    struct payload p = payload_of(counts, sizeof(counts));
    assert_int_equal(decode_payload(&p, -1), 0);
    assert_int_equal(back.buckets[0], 3);
    assert_int_equal(back.buckets[6], 300);
    assert_int_equal(back.buckets[7], 1);
    assert_int_equal(pt_hist_count(&back), 304);
}

static void refuses_damage(void **state)
{
    (void)state;
    static const uint8_t one[] = {0x02};
    /* Header bytes changed one at a time, on an otherwise good payload. */
    static const struct {
        size_t at;
        uint8_t byte;
        int rc;
    } changes[] = {
        {0, 0x1d, -EPROTONOSUPPORT},  /* cookie */
        {3, 0x11, -EPROTONOSUPPORT},  /* V1 */
        {4, 0x7f, -EMSGSIZE},         /* two gigabytes of counts */
        {7, 2, -EBADMSG},             /* one more byte of counts than there is */
        {7, 0, -EBADMSG},             /* one less */
        {11, 1, -EPROTONOSUPPORT},    /* shifted */
        {15, 6, -EBADMSG},            /* digits */
        {12, 0x80, -EBADMSG},         /* digits, negative */
        {23, 0, -EBADMSG},            /* lowest value 0 */
        {16, 0x80, -EBADMSG},         /* lowest value negative */
        {16, 0x10, -EBADMSG},         /* highest below twice the lowest */
        {30, 0, -EBADMSG},            /* highest value 0 */
        {24, 0x80, -EBADMSG},         /* highest value negative */
        {33, 0xe0, -EPROTONOSUPPORT}, /* ratio 0.5 */
    };
    struct payload p = payload_of(one, sizeof(one));
    assert_int_equal(decode_payload(&p, -1), 0);
    for (size_t i = 0; i < PT_COUNT(changes); i++) {
        struct payload changed = p;
        changed.bytes[changes[i].at] = changes[i].byte;
        int rc = decode_payload(&changed, -1);
        if (rc != changes[i].rc)
            fail_msg("change %zu: %d, not %d", i, rc, changes[i].rc);
    }
    assert_int_equal(decode_payload(&p, 5), -EBADMSG);    /* deflate stream cut */
    assert_int_equal(decode_payload(&p, 9999), -EBADMSG); /* longer than the text */
    p.len = 39;
    assert_int_equal(decode_payload(&p, -1), -EBADMSG);
    p.len = 0;
    assert_int_equal(decode_payload(&p, -1), -EBADMSG);
}

/* The header of payload_of declares values to 4096, which takes three rows: 4096 buckets. */
static void refuses_counts_out_of_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint8_t counts[24];
        size_t n;
        int rc;
    } cases[] = {
        {"skip 4095, count the last", {0xfd, 0x3f, 0x02}, 3, 0},
        {"skip all 4096", {0xff, 0x3f}, 2, 0},
        {"skip all 4096, one more count", {0xff, 0x3f, 0x02}, 3, -EBADMSG},
        {"skip 4097", {0x81, 0x40}, 2, -EBADMSG},
        {"skip 2^63", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9, -EBADMSG},
        {"2^63-1", {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9, 0},
        {"2^63", {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 10, -EBADMSG},
        {"half a number", {0x02, 0x82}, 2, -EBADMSG},
    };
    for (size_t i = 0; i < PT_COUNT(cases); i++) {
        struct payload p = payload_of(cases[i].counts, cases[i].n);
        int rc = decode_payload(&p, -1);
        if (rc != cases[i].rc)
            fail_msg("%s: %d, not %d", cases[i].what, rc, cases[i].rc);
    }
}

static int decode_text(const char *text)
{
    struct pt_err e = {0};
    int rc = pt_hdr_decode(text, strlen(text), &back, &e);
    assert_true((rc != 0) == (e.text[0] != '\0'));
    return rc;
}

static void refuses_other_texts(void **state)
{
    (void)state;
    assert_int_equal(decode_text(""), -EBADMSG);
    assert_int_equal(decode_text("HISTFAAA"), -EBADMSG);
    assert_int_equal(decode_text("not base64!!"), -EBADMSG);
    assert_int_equal(decode_text("AAAAAAAAAAAAAAAA"), -EPROTONOSUPPORT);
    /* V1, from the same log tools. */
    assert_int_equal(
        decode_text("HISTIgAAAFd42pNpmazIwMAYxgABTBDKT4GBgdnNYMcCBvsPUBkeBkYGZqA8MwMbAzs"
                    "DC5DFBCTZgJCDQY1BjkGLQZRBlUEPCB8zWDCYMxgDZZkZhgJgHDibAY8JB/A="),
        -EPROTONOSUPPORT);
    char *long_text = malloc(PT_HDR_TEXT_MAX + 5);
    memset(long_text, 'A', PT_HDR_TEXT_MAX + 4);
    long_text[PT_HDR_TEXT_MAX + 4] = '\0';
    assert_int_equal(decode_text(long_text), -EMSGSIZE);
    free(long_text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_java_implementation),
        cmocka_unit_test(reads_javascript),
        cmocka_unit_test(writes_what_javascript_writes),
        cmocka_unit_test(own_text_reads_back),
        cmocka_unit_test(full_histogram_fits),
        cmocka_unit_test(beyond_the_format_is_counted),
        cmocka_unit_test(encode_keeps_the_ceiling),
        cmocka_unit_test(reads_a_hand_made_payload),
        cmocka_unit_test(refuses_damage),
        cmocka_unit_test(refuses_counts_out_of_bounds),
        cmocka_unit_test(refuses_other_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
