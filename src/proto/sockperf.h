/* sockperf.h: the message of sockperf: 14 bytes and padding, big endian; docs/formats/sockperf.md.
 *
 *     0   8   sequence number, from 1
 *     8   2   flags: 1 from a client, 2 an answer is asked for, 4 warm-up
 *    10   4   length of the whole message
 *
 * There is no control connection and no end. A server answers with the same message, flag 1 taken
 * out.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_PROTO_SOCKPERF_H
#define PT_PROTO_SOCKPERF_H

#include "base/types.h"

#define PT_SOCKPERF_PORT   11111
#define PT_SOCKPERF_HEADER 14
#define PT_SOCKPERF_MAX    65507 /* bytes of a message that a stock server takes */

enum { PT_SOCKPERF_CLIENT = 1, PT_SOCKPERF_PONG = 2, PT_SOCKPERF_WARMUP = 4 };

struct pt_sockperf {
    uint64_t sequence;
    uint16_t flags;
    uint32_t length;
};

static inline void pt_sockperf_number(uint8_t *at, uint64_t sequence)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(sequence >> (56 - 8 * i));
}

static inline void pt_sockperf_write(uint8_t *at, const struct pt_sockperf *m)
{
    pt_sockperf_number(at, m->sequence);
    at[8] = (uint8_t)(m->flags >> 8);
    at[9] = (uint8_t)m->flags;
    for (int i = 0; i < 4; i++)
        at[10 + i] = (uint8_t)(m->length >> (24 - 8 * i));
}

static inline void pt_sockperf_read(struct pt_sockperf *m, const uint8_t *at)
{
    m->sequence = 0;
    for (int i = 0; i < 8; i++)
        m->sequence = m->sequence << 8 | at[i];
    m->flags = (uint16_t)(at[8] << 8 | at[9]);
    m->length = (uint32_t)at[10] << 24 | (uint32_t)at[11] << 16 | (uint32_t)at[12] << 8 | at[13];
}

#endif
