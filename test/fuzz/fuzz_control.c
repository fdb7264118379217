/* fuzz_control.c: the control protocol's codecs, fed as a hostile peer would.
 *
 * The first byte chooses the sizes of the pieces. Besides not crashing: the decoder never holds
 * more than its limit, and what it accepts it can send.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "proto/control.h"
#include "proto/preamble.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void preambles(const uint8_t *bytes, size_t n)
{
    struct pt_preamble p;
    uint8_t nonce[PT_UDP_NONCE_SIZE], out[PT_KNOCK_SIZE];
    int rc = pt_preamble_read(&p, bytes, n < PT_PREAMBLE_SIZE ? n : PT_PREAMBLE_SIZE);
    must(rc <= 0 || rc == PT_PREAMBLE_SIZE);
    must(pt_preamble_guess(bytes, n) != NULL);
    size_t knock = n < PT_KNOCK_SIZE ? n : PT_KNOCK_SIZE;
    if (pt_knock_read(&p, nonce, bytes, knock) == 0) {
        pt_knock_write(out, &p, nonce);
        must(memcmp(out + 8, bytes + 8, PT_TOKEN_SIZE + 4) == 0);
    }
}

static void messages(const uint8_t *bytes, size_t n, size_t piece)
{
    struct pt_control_decoder d;
    struct pt_buf out;
    json_t *m;
    int rc;
    pt_control_decoder_init(&d, PT_CONTROL_MAX_EARLY);
    for (;;) {
        while ((rc = pt_control_decode(&d, &m, NULL)) == 1) {
            must(pt_control_type(m) != NULL);
            pt_buf_init(&out, 4 + 8 * PT_CONTROL_MAX_EARLY);
            must(pt_control_encode(&out, m) == 0);
            pt_buf_fini(&out);
            json_decref(m);
        }
        if (rc < 0 || n == 0)
            break;
        size_t part = pt_control_room(&d);
        part = part < piece ? part : piece;
        part = part < n ? part : n;
        must(part > 0 && pt_control_feed(&d, bytes, part) == 0);
        must(d.buf.len <= 4 + PT_CONTROL_MAX_EARLY);
        bytes += part;
        n -= part;
    }
    pt_control_decoder_fini(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    preambles(data + 1, size - 1);
    messages(data + 1, size - 1, 1 + (size_t)data[0] * 16);
    return 0;
}
