/* fuzz_hdr.c: histogram texts from anyone: the reader keeps its bounds, and what it accepts
 * survives being written and read again.
 *
 * The first byte chooses: even, the rest is the text itself; odd, the rest is a payload, which is
 * compressed and wrapped here, since a fuzzer does not find its way through zlib and base64.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"
#include "stat/hdr.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pt_hist hist, back;

static void check(const char *text, size_t len)
{
    struct pt_err e;
    if (pt_hdr_decode(text, len, &hist, &e)) {
        if (pt_hist_count(&hist))
            abort();
        return;
    }
    struct pt_buf again;
    pt_buf_init(&again, PT_HDR_TEXT_MAX);
    if (pt_hdr_encode(&hist, &again) || pt_hdr_decode(again.bytes, again.len, &back, &e) ||
        pt_hist_count(&hist) != pt_hist_count(&back) ||
        memcmp(hist.buckets, back.buckets, sizeof(hist.buckets)) != 0)
        abort();
    pt_buf_fini(&again);
}

static void check_payload(const uint8_t *payload, size_t size)
{
    struct pt_buf outer, text;
    pt_buf_init(&outer, PT_HDR_TEXT_MAX);
    pt_buf_init(&text, PT_HDR_TEXT_MAX);
    uLongf packed = compressBound(size);
    uint8_t *to = (uint8_t *)pt_buf_reserve(&outer, 8 + packed);
    if (to && compress2(to + 8, &packed, payload, size, 1) == Z_OK) {
        const uint8_t head[8] = {0x1c,
                                 0x84,
                                 0x93,
                                 0x14,
                                 (uint8_t)(packed >> 24),
                                 (uint8_t)(packed >> 16),
                                 (uint8_t)(packed >> 8),
                                 (uint8_t)packed};
        memcpy(to, head, sizeof(head));
        outer.len = 8 + packed;
        if (!pt_base64_encode(&text, outer.bytes, outer.len))
            check(text.bytes, text.len);
    }
    pt_buf_fini(&text);
    pt_buf_fini(&outer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] & 1)
        check_payload(data + 1, size - 1);
    else
        check((const char *)data + 1, size - 1);
    return 0;
}
