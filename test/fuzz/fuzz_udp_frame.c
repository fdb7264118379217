/* fuzz_udp_frame.c: frames as a stranger on the wire would send them.
 *
 * Besides not crashing: an accepted payload lies inside the frame, and a frame built from what was
 * read reads the same.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "proto/udp_frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void rebuild(const struct pt_udp_frame_view *read)
{
    static uint8_t frame[PT_UDP_FRAME_HEADER6 + 65535];
    struct pt_udp_frame_view again;
    struct pt_udp_frame_ends ends = read->ends;
    if (ends.ttl == 0) /* asks for the default */
        ends.ttl = 1;
    memcpy(frame + pt_udp_frame_header_len(ends.ipv6), read->payload, read->payload_len);
    ssize_t n = pt_udp_frame_build(frame, sizeof(frame), &ends, read->payload_len);
    must(n > 0);
    must(pt_udp_frame_checksum_ok(frame, (size_t)n));
    must(pt_udp_frame_parse(frame, (size_t)n, &again) == 0);
    must(memcmp(&again.ends, &ends, sizeof(ends)) == 0);
    must(again.payload_len == read->payload_len);
    must(memcmp(again.payload, read->payload, read->payload_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pt_udp_frame_view view;
    const bool right = pt_udp_frame_checksum_ok(data, size);
    const int code = pt_udp_frame_parse(data, size, &view);
    must(code <= 0);
    if (code < 0) {
        must(!right);
        return 0;
    }
    must(view.payload >= data + PT_UDP_FRAME_HEADER4);
    must(view.payload_len <= size - (size_t)(view.payload - data));
    rebuild(&view);
    return 0;
}
