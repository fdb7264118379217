/* dgram.h: the header that measuring datagrams carry, as far as they are long enough.
 *
 * Little endian. From 8 bytes on: bit 63 the sender's phase (1: inside its window), bits 0-62 the
 * sequence number. From 4 to 7 bytes: bit 31 and bits 0-30 of the same. Shorter ones carry nothing
 * and are only counted. `bw` and `lat --one-way` have instants behind it, in their own files.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_PROTO_DGRAM_H
#define PT_PROTO_DGRAM_H

#include "base/types.h"
#include "proto/sockperf.h"

#include <endian.h>
#include <string.h>

/* Whose header it is: ours, or that of a stock tool (proto/iperf3.h, proto/sockperf.h). */
enum pt_dgram_form { PT_DGRAM_PITOT, PT_DGRAM_IPERF3, PT_DGRAM_IPERF3_64, PT_DGRAM_SOCKPERF };

#define PT_DGRAM_HEADER 8
#define PT_DGRAM_SHORT  4

static inline void pt_put64(uint8_t *at, uint64_t v)
{
    v = htole64(v);
    memcpy(at, &v, sizeof(v));
}

static inline uint64_t pt_get64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return le64toh(v);
}

static inline void pt_put32(uint8_t *at, uint32_t v)
{
    v = htole32(v);
    memcpy(at, &v, sizeof(v));
}

static inline uint32_t pt_get32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof(v));
    return le32toh(v);
}

/* PITOT and SOCKPERF; iperf3's carry the time as well. */
static inline void pt_dgram_write(enum pt_dgram_form form, uint8_t *at, size_t size,
                                  uint64_t number, bool measured)
{
    if (PT_UNLIKELY(form == PT_DGRAM_SOCKPERF))
        pt_sockperf_number(at, number + 1);
    else if (PT_LIKELY(size >= PT_DGRAM_HEADER))
        pt_put64(at, number | (uint64_t)measured << 63);
    else if (size >= PT_DGRAM_SHORT)
        pt_put32(at, ((uint32_t)number & 0x7fffffffu) | (uint32_t)measured << 31);
}

#endif
