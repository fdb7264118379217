/* test_udp_frame.c: whatever was patched into a frame, it equals the frame built anew.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/rng.h"
#include "proto/udp_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 300, ROUNDS = 20000 };

static struct pt_rng rng;

static void random_bytes(void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)out)[i] = (uint8_t)pt_rng_u64(&rng);
}

static struct pt_udp_frame_ends random_ends(void)
{
    struct pt_udp_frame_ends e = {.ipv6 = pt_rng_below(&rng, 2)};
    random_bytes(e.source_mac, 6);
    random_bytes(e.destination_mac, 6);
    random_bytes(e.source, e.ipv6 ? 16 : 4);
    random_bytes(e.destination, e.ipv6 ? 16 : 4);
    random_bytes(&e.source_port, 2);
    random_bytes(&e.destination_port, 2);
    e.ttl = (uint8_t)(1 + pt_rng_below(&rng, 255));
    e.tos = (uint8_t)pt_rng_u64(&rng);
    return e;
}

static void patched_equals_built(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct pt_udp_frame_ends e = random_ends();
        const size_t header = pt_udp_frame_header_len(e.ipv6);
        const size_t payload = 2 + pt_rng_below(&rng, MOST - 2);
        uint8_t frame[PT_UDP_FRAME_HEADER6 + MOST], fresh[sizeof(frame)], bytes[MOST];
        random_bytes(frame + header, payload);
        ssize_t n = pt_udp_frame_build(frame, sizeof(frame), &e, payload);
        assert_int_equal(n, header + payload);

        for (int patch = 0; patch < 3; patch++) {
            const size_t at = 2 * pt_rng_below(&rng, payload / 2);
            const size_t len = 2 * pt_rng_below(&rng, (payload - at) / 2 + 1);
            random_bytes(bytes, len);
            pt_udp_frame_patch(frame, header, at, bytes, len);
        }
        random_bytes(&e.source_port, 2);
        random_bytes(&e.destination_port, 2);
        pt_udp_frame_set_ports(frame, header, e.source_port, e.destination_port);

        memcpy(fresh + header, frame + header, payload);
        assert_int_equal(pt_udp_frame_build(fresh, sizeof(fresh), &e, payload), n);
        assert_memory_equal(frame, fresh, (size_t)n);
        assert_true(pt_udp_frame_checksum_ok(frame, (size_t)n));

        struct pt_udp_frame_view view;
        assert_int_equal(pt_udp_frame_parse(frame, (size_t)n, &view), 0);
        assert_memory_equal(&view.ends, &e, sizeof(e));
        assert_int_equal(view.payload_len, payload);
    }
}

int main(void)
{
    uint64_t seed;
    if (getenv("PT_SEED"))
        seed = strtoull(getenv("PT_SEED"), NULL, 0);
    else if (pt_random_bytes(&seed, sizeof(seed)) < 0)
        return 1;
    printf("# seed %llu (set PT_SEED to repeat)\n", (unsigned long long)seed);
    pt_rng_init(&rng, seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(patched_equals_built)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
