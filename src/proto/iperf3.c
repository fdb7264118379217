/* iperf3.c: see iperf3.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "proto/iperf3.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const uint8_t pt_iperf3_udp_hello[4] = {'9', '8', '7', '6'};
const uint8_t pt_iperf3_udp_reply[4] = {'6', '7', '8', '9'};

/* Those a person meets; iperf_api.h has the whole list. */
const char *pt_iperf3_error(int32_t i_errno)
{
    static const struct {
        int32_t code;
        const char *text;
    } known[] = {
        {5, "the duration is longer than it allows"},
        {6, "more streams than it allows"},
        {7, "the block size does not suit it"},
        {11, "it has no sendfile"},
        {20, "the datagram size does not suit it"},
        {27, "the rate is higher than it allows"},
        {37, "the duration is longer than it allows"},
        {109, "it lost the control connection"},
        {114, "it did not understand the parameters"},
        {119, "the client ended the test"},
        {120, "it was stopped"},
        {121, "it is busy with another test"},
        {142, "it does not know this user and password"},
        {144, "no data reached it for too long"},
        {160, "the test took longer than it allows"},
        {202, "it could not listen for the streams"},
        {206, "it could not read from a stream"},
    };
    for (size_t i = 0; i < PT_COUNT(known); i++)
        if (known[i].code == i_errno)
            return known[i].text;
    return "it failed";
}

void pt_iperf3_cookie(char out[PT_IPERF3_COOKIE], const uint8_t random[PT_IPERF3_COOKIE - 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    for (size_t i = 0; i < PT_IPERF3_COOKIE - 1; i++)
        out[i] = letters[random[i] % 32];
    out[PT_IPERF3_COOKIE - 1] = '\0';
}

/* ---- numbers as iperf3 prints them */

/* False: not there. `*v` NAN: of another type. */
static bool number(const json_t *o, const char *key, double *v)
{
    const json_t *n = json_object_get(o, key);
    if (!n || json_is_null(n))
        return false;
    *v = json_is_number(n)    ? json_number_value(n)
         : json_is_boolean(n) ? (double)json_is_true(n)
                              : (double)NAN;
    return true;
}

/* A count, of which -1 and 2^64 - 1 mean "not known": -1. -2: no such thing. */
static int64_t count(const json_t *o, const char *key)
{
    const json_t *n = json_object_get(o, key);
    double v = -1;
    if (json_is_integer(n))
        return json_integer_value(n) >= -1 ? json_integer_value(n) : -2;
    if (!number(o, key, &v))
        return -1;
    if (!(v >= -1))
        return -2;
    return v >= 9.2e18 ? -1 : (int64_t)v;
}

/* ---- parameters */

json_t *pt_iperf3_params_json(const struct pt_iperf3_params *p)
{
    json_t *o = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:i}", p->udp ? "udp" : "tcp", true,
                          "omit", (json_int_t)p->omit_s, "time", (json_int_t)p->time_s, "num",
                          (json_int_t)p->bytes, "blockcount", (json_int_t)p->blocks, "parallel",
                          (json_int_t)p->parallel, "len", (json_int_t)p->len, "pacing_timer", 1000);
    const struct {
        const char *key;
        bool set;
    } flags[] = {{"reverse", p->reverse},
                 {"bidirectional", p->bidir},
                 {"nodelay", p->nodelay},
                 {"dont_fragment", p->dont_fragment}};
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {{"MSS", p->mss},
                   {"window", p->window},
                   {"TOS", p->tos},
                   {"bandwidth", p->bits_per_s},
                   {"udp_counters_64bit", p->counters64}};
    int rc = o ? 0 : -1;
    for (size_t i = 0; i < PT_COUNT(flags); i++)
        if (flags[i].set)
            rc |= json_object_set_new(o, flags[i].key, json_true());
    for (size_t i = 0; i < PT_COUNT(numbers); i++)
        if (numbers[i].value)
            rc |=
                json_object_set_new(o, numbers[i].key, json_integer((json_int_t)numbers[i].value));
    if (p->congestion[0])
        rc |= json_object_set_new(o, "congestion", json_string(p->congestion));
    if (p->authtoken)
        rc |= json_object_set_new(o, "authtoken", json_string(p->authtoken));
    rc |= json_object_set_new(o, "client_version", json_string(p->version));
    if (rc == 0)
        return o;
    json_decref(o);
    return NULL;
}

/* A whole number up to `most`; 0 where it is missing. */
static bool whole(const json_t *o, const char *key, double most, uint64_t *out)
{
    double v = 0;
    *out = 0;
    if (!number(o, key, &v))
        return true;
    if (!(v >= 0 && v <= most))
        return false;
    *out = (uint64_t)v;
    return true;
}

static bool flag(const json_t *o, const char *key)
{
    double v = 0;
    return number(o, key, &v) && v > 0;
}

static bool text(const json_t *o, const char *key, char *out, size_t cap)
{
    const json_t *v = json_object_get(o, key);
    const char *s = json_string_value(v);
    out[0] = '\0';
    if (!v || json_is_null(v))
        return true;
    if (!s || strlen(s) >= cap)
        return false;
    for (const char *c = s; *c; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    memcpy(out, s, strlen(s) + 1);
    return true;
}

int pt_iperf3_params_parse(struct pt_iperf3_params *p, const json_t *from, int32_t *i_errno,
                           struct pt_err *e)
{
    *p = (struct pt_iperf3_params){.udp = flag(from, "udp"),
                                   .reverse = flag(from, "reverse"),
                                   .bidir = flag(from, "bidirectional"),
                                   .nodelay = flag(from, "nodelay"),
                                   .counters64 = flag(from, "udp_counters_64bit"),
                                   .dont_fragment = flag(from, "dont_fragment"),
                                   .authtoken =
                                       json_string_value(json_object_get(from, "authtoken"))};
    uint64_t omit, time, parallel, len, mss, window, tos;
    const struct {
        const char *key;
        double most;
        uint64_t *out;
        int32_t i_errno;
    } numbers[] = {
        {"omit", 600, &omit, 114},
        {"time", 86400, &time, 5},
        {"num", 9e18, &p->bytes, 114},
        {"blockcount", 9e18, &p->blocks, 114},
        {"parallel", PT_IPERF3_STREAMS, &parallel, 6},
        {"len", 1 << 20, &len, 7},
        {"MSS", 65535, &mss, 114},
        {"window", 512 << 20, &window, 114},
        {"TOS", 255, &tos, 114},
        {"bandwidth", 1e14, &p->bits_per_s, 27},
    };
    *i_errno = 114;
    if (!json_is_object(from))
        return pt_fail(e, -EPROTO, "its parameters are no JSON object");
    if (flag(from, "sctp") || flag(from, "mptcp"))
        return pt_fail(e, -EPROTO, "it asks for SCTP or MPTCP, which pitot does not speak");
    for (size_t i = 0; i < PT_COUNT(numbers); i++) {
        if (whole(from, numbers[i].key, numbers[i].most, numbers[i].out))
            continue;
        *i_errno = numbers[i].i_errno;
        return pt_fail(e, -EPROTO, "its parameter `%s` is out of range", numbers[i].key);
    }
    p->omit_s = (uint32_t)omit;
    p->time_s = (uint32_t)time;
    p->parallel = parallel ? (uint32_t)parallel : 1;
    p->len = (uint32_t)len;
    p->mss = (uint32_t)mss;
    p->window = (uint32_t)window;
    p->tos = (uint32_t)tos;
    if (!text(from, "congestion", p->congestion, sizeof(p->congestion)) ||
        !text(from, "client_version", p->version, sizeof(p->version)))
        return pt_fail(e, -EPROTO, "its parameter `congestion` or `client_version` is no name");
    if (p->udp && (p->len < PT_IPERF3_DGRAM || p->len > 65507)) {
        *i_errno = 20;
        return pt_fail(e, -EPROTO, "its datagrams have %u bytes; 16 to 65507 go", p->len);
    }
    if (!p->udp && !p->len) {
        *i_errno = 7;
        return pt_fail(e, -EPROTO, "its parameter `len` is missing");
    }
    return 0;
}

/* ---- results */

static void set_count(json_t *o, const char *key, int64_t n)
{
    json_object_set_new(o, key, json_integer(n));
}

json_t *pt_iperf3_results_json(const struct pt_iperf3_results *r)
{
    json_t *streams = json_array();
    json_t *o = json_pack("{s:f, s:f, s:f, s:i}", "cpu_util_total", r->cpu_total_pct,
                          "cpu_util_user", r->cpu_user_pct, "cpu_util_system", r->cpu_system_pct,
                          "sender_has_retransmits", r->sender_has_retransmits);
    if (r->congestion[0])
        json_object_set_new(o, "congestion_used", json_string(r->congestion));
    for (unsigned i = 0; i < r->n; i++) {
        const struct pt_iperf3_stream *s = &r->stream[i];
        json_t *one = json_pack("{s:i, s:I, s:I, s:f, s:I, s:I}", "id", (int)s->id, "bytes",
                                (json_int_t)s->bytes, "retransmits", (json_int_t)s->retransmits,
                                "jitter", s->jitter_s > 0 ? s->jitter_s : 0.0, "errors",
                                (json_int_t)(s->errors > 0 ? s->errors : 0), "packets",
                                (json_int_t)(s->packets > 0 ? s->packets : 0));
        if (s->omitted_packets >= 0) { /* both or neither */
            set_count(one, "omitted_errors", s->omitted_errors > 0 ? s->omitted_errors : 0);
            set_count(one, "omitted_packets", s->omitted_packets);
        }
        json_object_set_new(one, "start_time", json_real(s->start_s > 0 ? s->start_s : 0.0));
        json_object_set_new(one, "end_time", json_real(s->end_s > 0 ? s->end_s : 0.0));
        json_array_append_new(streams, one);
    }
    if (json_object_set_new(o, "streams", streams) == 0)
        return o;
    json_decref(o);
    return NULL;
}

/* Seconds, or a percentage: not negative, not absurd; -1: not known. */
static double measure(const json_t *o, const char *key)
{
    double v = -1;
    return number(o, key, &v) && v >= 0 && v < 1e9 ? v : -1;
}

static int parse_stream(struct pt_iperf3_stream *s, const json_t *from, struct pt_err *e)
{
    int64_t id = count(from, "id"), bytes = count(from, "bytes");
    *s = (struct pt_iperf3_stream){
        .retransmits = count(from, "retransmits"),
        .packets = count(from, "packets"),
        .errors = count(from, "errors"),
        .omitted_packets = count(from, "omitted_packets"),
        .omitted_errors = count(from, "omitted_errors"),
        .jitter_s = measure(from, "jitter"),
        .start_s = measure(from, "start_time"),
        .end_s = measure(from, "end_time"),
    };
    if (id < 1 || id > 3 * PT_IPERF3_STREAMS || bytes < 0)
        return pt_fail(e, -EPROTO, "its results have a stream without an id or bytes");
    s->id = (unsigned)id;
    s->bytes = (uint64_t)bytes;
    /* Reordering makes its errors negative at times. */
    s->errors = s->errors < -1 ? 0 : s->errors;
    s->omitted_errors = s->omitted_errors < -1 ? 0 : s->omitted_errors;
    if (s->retransmits < -1 || s->packets < -1 || s->omitted_packets < -1)
        return pt_fail(e, -EPROTO, "its results have a negative count");
    return 0;
}

int pt_iperf3_results_parse(struct pt_iperf3_results *r, const json_t *from, struct pt_err *e)
{
    const json_t *streams = json_object_get(from, "streams");
    *r = (struct pt_iperf3_results){
        .cpu_total_pct = measure(from, "cpu_util_total"),
        .cpu_user_pct = measure(from, "cpu_util_user"),
        .cpu_system_pct = measure(from, "cpu_util_system"),
        .sender_has_retransmits = (int)count(from, "sender_has_retransmits"),
    };
    if (!json_is_object(from) || !json_is_array(streams))
        return pt_fail(e, -EPROTO, "its results are no object with a list of streams");
    if (json_array_size(streams) > PT_COUNT(r->stream))
        return pt_fail(e, -EPROTO, "its results have more streams than a test can");
    if (!text(from, "congestion_used", r->congestion, sizeof(r->congestion)))
        r->congestion[0] = '\0';
    for (size_t i = 0; i < json_array_size(streams); i++) {
        int rc = parse_stream(&r->stream[i], json_array_get(streams, i), e);
        if (rc < 0)
            return rc;
        r->n++;
    }
    return 0;
}

const struct pt_iperf3_stream *pt_iperf3_result_of(const struct pt_iperf3_results *r, unsigned id)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->stream[i].id == id)
            return &r->stream[i];
    return NULL;
}

/* jansson itself limits the depth (JSON_PARSER_MAX_DEPTH). */
int pt_iperf3_json_parse(const char *bytes, size_t n, json_t **out, struct pt_err *e)
{
    json_error_t why;
    *out = json_loadb(bytes, n, 0, &why);
    if (!*out) /* an integer beyond 64 bits among them */
        *out = json_loadb(bytes, n, JSON_DECODE_INT_AS_REAL, &why);
    return *out ? 0 : pt_fail(e, -EPROTO, "it sent what is no JSON: %s", why.text);
}

/* ---- datagrams */

static void put32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

void pt_iperf3_dgram_write(uint8_t *at, pt_ns now, uint64_t counter, bool wide)
{
    put32(at, (uint32_t)(now / PT_S));
    put32(at + 4, (uint32_t)(now % PT_S / PT_US));
    if (wide)
        put32(at + 8, (uint32_t)(counter >> 32));
    put32(at + (wide ? 12 : 8), (uint32_t)counter);
}

uint64_t pt_iperf3_dgram_read(const uint8_t *at, bool wide, pt_ns *sent)
{
    *sent = (pt_ns)get32(at) * PT_S + (pt_ns)get32(at + 4) * PT_US;
    return wide ? (uint64_t)get32(at + 8) << 32 | get32(at + 12) : get32(at + 8);
}

bool pt_iperf3_is_udp_reply(const uint8_t *bytes, size_t n)
{
    /* 3.12 and later, its bytes the other way round, and the two forms of older ones. */
    static const uint8_t forms[][4] = {{'6', '7', '8', '9'},
                                       {'9', '8', '7', '6'},
                                       {0xb1, 0x68, 0xde, 0x3a},
                                       {0x3a, 0xde, 0x68, 0xb1}};
    for (size_t i = 0; n == 4 && i < PT_COUNT(forms); i++)
        if (memcmp(bytes, forms[i], 4) == 0)
            return true;
    return false;
}
