/* iperf3.h: what iperf3 (3.1 to 3.21) says on the wire: states, parameters, results, datagrams.
 *
 * docs/formats/iperf3.md describes it. Everything here is about bytes and JSON that nobody vouches
 * for: sizes, types and ranges are checked, and what does not fit is refused with a sentence.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_PROTO_IPERF3_H
#define PT_PROTO_IPERF3_H

#include "base/err.h"
#include "base/types.h"

#include <jansson.h>

#define PT_IPERF3_PORT        5201
#define PT_IPERF3_COOKIE      37         /* 36 of a-z2-7, and a NUL */
#define PT_IPERF3_PARAMS_MAX  8192       /* bytes of JSON, as 3.18 and later allow */
#define PT_IPERF3_RESULTS_MAX (1u << 20) /* 128 streams each way are 40 kB */
#define PT_IPERF3_STREAMS     128        /* each way */
#define PT_IPERF3_DGRAM       16         /* least bytes of a datagram */

/* The server leads the client through these, one byte each; CLIENT_* and TEST_END go the other way.
 */
enum pt_iperf3_state {
    PT_IPERF3_SERVER_ERROR =
        -2, /* then i_errno and errno, 4 bytes each; the second may be missing */
    PT_IPERF3_ACCESS_DENIED = -1,
    PT_IPERF3_TEST_START = 1,
    PT_IPERF3_TEST_RUNNING = 2,
    PT_IPERF3_TEST_END = 4,
    PT_IPERF3_PARAM_EXCHANGE = 9,
    PT_IPERF3_CREATE_STREAMS = 10,
    PT_IPERF3_SERVER_TERMINATE = 11,
    PT_IPERF3_CLIENT_TERMINATE = 12,
    PT_IPERF3_EXCHANGE_RESULTS = 13,
    PT_IPERF3_DISPLAY_RESULTS = 14,
    PT_IPERF3_DONE = 16,
};

/* "busy with another test", …: what a server's i_errno means; never NULL. */
const char *pt_iperf3_error(int32_t i_errno);

/* Of 36 random bytes. */
void pt_iperf3_cookie(char out[PT_IPERF3_COOKIE], const uint8_t random[PT_IPERF3_COOKIE - 1]);

/* Streams are called 1, 3, 4, 5, …: 2 is left out. */
static inline unsigned pt_iperf3_id(unsigned index)
{
    return index ? index + 2 : 1;
}

/* ---- parameters, client to server */

struct pt_iperf3_params {
    bool udp, reverse, bidir, nodelay, counters64, dont_fragment;
    uint32_t omit_s, time_s; /* time 0: until the client says so */
    uint64_t bytes, blocks;  /* ends of the test, seen to by the client; 0: by time */
    uint32_t parallel;
    uint32_t len; /* bytes of a block or datagram */
    uint32_t mss, window, tos;
    uint64_t bits_per_s; /* of one stream; 0: as fast as it goes */
    char congestion[16], version[24];
    const char *authtoken; /* NULL: none; a parsed one lies in the JSON it is from */
};

/* A new reference; NULL: no memory. */
json_t *pt_iperf3_params_json(const struct pt_iperf3_params *p);
/* -EPROTO: a value of the wrong type or out of range; *i_errno is what iperf3 calls that. */
int pt_iperf3_params_parse(struct pt_iperf3_params *p, const json_t *from, int32_t *i_errno,
                           struct pt_err *e) PT_MUST_USE;

/* ---- results, both ways */

struct pt_iperf3_stream {
    unsigned id;
    uint64_t bytes;
    int64_t retransmits; /* -1: not known, as for all below */
    int64_t packets, errors, omitted_packets, omitted_errors;
    double jitter_s, start_s, end_s;
};

struct pt_iperf3_results {
    double cpu_total_pct, cpu_user_pct, cpu_system_pct; /* of one CPU */
    int sender_has_retransmits;                         /* 1, 0, -1: not known */
    char congestion[16];
    unsigned n;
    struct pt_iperf3_stream stream[2 * PT_IPERF3_STREAMS];
};

json_t *pt_iperf3_results_json(const struct pt_iperf3_results *r);
/* -EPROTO. Numbers may be integers or reals (3.1 prints exponents); -1, and 2^64 - 1 as 3.12 prints
 * it, are "not known". */
int pt_iperf3_results_parse(struct pt_iperf3_results *r, const json_t *from,
                            struct pt_err *e) PT_MUST_USE;
/* The stream of that id, or NULL. */
const struct pt_iperf3_stream *pt_iperf3_result_of(const struct pt_iperf3_results *r, unsigned id);

/* JSON as iperf3 sends it: integers beyond 64 bits do not spoil it, depth and size are limited.
 * -EPROTO. */
int pt_iperf3_json_parse(const char *bytes, size_t n, json_t **out, struct pt_err *e) PT_MUST_USE;

/* ---- datagrams: seconds, microseconds, a counter that begins with 1; big endian */

void pt_iperf3_dgram_write(uint8_t *at, pt_ns now, uint64_t counter, bool wide);
/* The counter, of 32 bits unless `wide`; *sent on the sender's clock, ns. `size` must be at least
 * PT_IPERF3_DGRAM. */
uint64_t pt_iperf3_dgram_read(const uint8_t *at, bool wide, pt_ns *sent);

/* What opens a UDP stream: four bytes from the client, four in answer. */
extern const uint8_t pt_iperf3_udp_hello[4], pt_iperf3_udp_reply[4];
bool pt_iperf3_is_udp_reply(const uint8_t *bytes, size_t n);

#endif
