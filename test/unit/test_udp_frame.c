/* test_udp_frame.c: frames equal, byte for byte, what a Linux 6.18 kernel put on a wire for the
 * same datagram (captured behind a veth with transmit checksum offload switched off).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "proto/udp_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MACS                                                                                       \
    "\x02\x00\x00\x00\x00\x0b"                                                                     \
    "\x02\x00\x00\x00\x00\x0a"
#define EVEN "pitot measures"
#define ODD                                                                                        \
    "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11"                         \
    "\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x20\x21"
#define IP6_ENDS                                                                                   \
    "\xfd\x77\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"                                                       \
    "\xfd\x77\0\0\0\0\0\0\0\0\0\0\0\0\0\x02"

static const char v4_even[] =
    MACS "\x08\x00\x45\xb8\x00\x2a\x00\x00\x40\x00\x40\x11\x25\x6f\x0a\x4d\x00\x01\x0a\x4d\x00\x02"
         "\x9c\x40\x15\xb3\x00\x16\x36\x7a" EVEN;
static const char v4_odd[] =
    MACS "\x08\x00\x45\xb8\x00\x3d\x00\x00\x40\x00\x40\x11\x25\x5c\x0a\x4d\x00\x01\x0a\x4d\x00\x02"
         "\x9c\x40\x15\xb3\x00\x29\x16\xfb" ODD;
static const char v6_even[] = MACS "\x86\xdd\x6b\x80\x00\x00\x00\x16\x11\x40" IP6_ENDS
                                   "\x9c\x40\x15\xb3\x00\x16\x50\x24" EVEN;
static const char v6_odd[] =
    MACS "\x86\xdd\x6b\x80\x00\x00\x00\x29\x11\x40" IP6_ENDS "\x9c\x40\x15\xb3\x00\x29\x30\xa5" ODD;

static const struct {
    bool ipv6;
    const char *payload, *frame;
    size_t payload_len, frame_len;
} vectors[] = {
    {false, EVEN, v4_even, sizeof(EVEN) - 1, sizeof(v4_even) - 1},
    {false, ODD, v4_odd, sizeof(ODD) - 1, sizeof(v4_odd) - 1},
    {true, EVEN, v6_even, sizeof(EVEN) - 1, sizeof(v6_even) - 1},
    {true, ODD, v6_odd, sizeof(ODD) - 1, sizeof(v6_odd) - 1},
};

static struct pt_udp_frame_ends ends(bool ipv6)
{
    struct pt_udp_frame_ends e = {.ipv6 = ipv6,
                                  .source_mac = {2, 0, 0, 0, 0, 10},
                                  .destination_mac = {2, 0, 0, 0, 0, 11},
                                  .source_port = 40000,
                                  .destination_port = 5555,
                                  .tos = 0xb8};
    static const uint8_t v4[2][4] = {{10, 77, 0, 1}, {10, 77, 0, 2}};
    memcpy(e.source, ipv6 ? (const uint8_t *)IP6_ENDS : v4[0], ipv6 ? 16 : 4);
    memcpy(e.destination, ipv6 ? (const uint8_t *)IP6_ENDS + 16 : v4[1], ipv6 ? 16 : 4);
    return e;
}

static void builds_what_the_kernel_sends(void **state)
{
    (void)state;
    for (size_t i = 0; i < PT_COUNT(vectors); i++) {
        uint8_t frame[256];
        const struct pt_udp_frame_ends e = ends(vectors[i].ipv6);
        const size_t header = pt_udp_frame_header_len(e.ipv6);
        memset(frame, 0xa5, sizeof(frame));
        memcpy(frame + header, vectors[i].payload, vectors[i].payload_len);
        ssize_t n = pt_udp_frame_build(frame, sizeof(frame), &e, vectors[i].payload_len);
        assert_int_equal(n, vectors[i].frame_len);
        assert_memory_equal(frame, vectors[i].frame, vectors[i].frame_len);
        assert_int_equal(frame[n], 0xa5);
    }
}

static void reads_what_the_kernel_sends(void **state)
{
    (void)state;
    for (size_t i = 0; i < PT_COUNT(vectors); i++) {
        struct pt_udp_frame_view view;
        struct pt_udp_frame_ends e = ends(vectors[i].ipv6);
        e.ttl = 64;
        const uint8_t *frame = (const uint8_t *)vectors[i].frame;
        assert_int_equal(pt_udp_frame_parse(frame, vectors[i].frame_len, &view), 0);
        assert_memory_equal(&view.ends, &e, sizeof(e));
        assert_int_equal(view.payload_len, vectors[i].payload_len);
        assert_ptr_equal(view.payload, frame + pt_udp_frame_header_len(e.ipv6));
        assert_true(pt_udp_frame_checksum_ok(frame, vectors[i].frame_len));
    }
}

static void any_flipped_bit_behind_the_addresses_shows(void **state)
{
    (void)state;
    for (size_t i = 0; i < PT_COUNT(vectors); i++) {
        uint8_t frame[256];
        memcpy(frame, vectors[i].frame, vectors[i].frame_len);
        for (size_t bit = 26 * 8; bit < vectors[i].frame_len * 8; bit++) {
            frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_false(pt_udp_frame_checksum_ok(frame, vectors[i].frame_len));
            frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

/* Every prefix of a frame is too short; it is copied to its exact size, so a sanitizer sees any
 * read behind it. */
static void refuses_cut_frames(void **state)
{
    (void)state;
    for (size_t i = 0; i < PT_COUNT(vectors); i++)
        for (size_t n = 0; n < vectors[i].frame_len; n++) {
            struct pt_udp_frame_view view;
            uint8_t *cut = malloc(n + !n);
            assert_non_null(cut);
            memcpy(cut, vectors[i].frame, n);
            assert_int_equal(pt_udp_frame_parse(cut, n, &view), -EBADMSG);
            free(cut);
        }
}

static void padding_is_no_payload(void **state)
{
    (void)state;
    uint8_t frame[128] = {0};
    struct pt_udp_frame_view view;
    memcpy(frame, v4_even, sizeof(v4_even) - 1);
    assert_int_equal(pt_udp_frame_parse(frame, sizeof(frame), &view), 0);
    assert_int_equal(view.payload_len, sizeof(EVEN) - 1);
}

static int parse_with(const char *base, size_t len, size_t at, uint8_t value)
{
    uint8_t frame[256];
    struct pt_udp_frame_view view;
    memcpy(frame, base, len);
    frame[at] = value;
    return pt_udp_frame_parse(frame, len, &view);
}

static void refuses_what_is_not_plain_udp(void **state)
{
    (void)state;
    const size_t four = sizeof(v4_even) - 1, six = sizeof(v6_even) - 1;
    assert_int_equal(parse_with(v4_even, four, 12, 0x81), -EPROTONOSUPPORT); /* VLAN tag */
    assert_int_equal(parse_with(v4_even, four, 23, 6), -EPROTONOSUPPORT);    /* TCP */
    assert_int_equal(parse_with(v4_even, four, 20, 0x20), -EPROTONOSUPPORT); /* more fragments */
    assert_int_equal(parse_with(v4_even, four, 21, 0x01), -EPROTONOSUPPORT); /* a later fragment */
    assert_int_equal(parse_with(v6_even, six, 20, 44), -EPROTONOSUPPORT);    /* fragment header */
    assert_int_equal(parse_with(v4_even, four, 14, 0x44), -EBADMSG);         /* IHL 16 bytes */
    assert_int_equal(parse_with(v4_even, four, 14, 0x65), -EBADMSG);         /* version 6 */
    assert_int_equal(parse_with(v6_even, six, 14, 0x45), -EBADMSG);          /* version 4 */
    assert_int_equal(parse_with(v4_even, four, 17, 0x2b), -EBADMSG); /* longer than the frame */
    assert_int_equal(parse_with(v4_even, four, 39, 7), -EBADMSG);    /* shorter than its header */
    assert_int_equal(parse_with(v4_even, four, 39, 0x17), -EBADMSG); /* longer than its packet */
    assert_int_equal(parse_with(v6_even, six, 19, 7), -EBADMSG);
}

static void ipv4_options_are_skipped(void **state)
{
    (void)state;
    uint8_t frame[128];
    struct pt_udp_frame_view view;
    const size_t rest = sizeof(v4_even) - 1 - 34;
    memcpy(frame, v4_even, 34);
    memset(frame + 34, 1, 4); /* no-operation */
    memcpy(frame + 38, v4_even + 34, rest);
    frame[14] = 0x46;
    frame[17] = (uint8_t)(frame[17] + 4);
    assert_int_equal(pt_udp_frame_parse(frame, 38 + rest, &view), 0);
    assert_int_equal(view.ends.destination_port, 5555);
    assert_memory_equal(view.payload, EVEN, sizeof(EVEN) - 1);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    static uint8_t frame[70000];
    for (int ipv6 = 0; ipv6 < 2; ipv6++) {
        const struct pt_udp_frame_ends e = ends(ipv6);
        const size_t header = pt_udp_frame_header_len(ipv6);
        const size_t most = ipv6 ? 65527 : 65507;
        assert_int_equal(pt_udp_frame_build(frame, header + 13, &e, 14), -EMSGSIZE);
        assert_int_equal(pt_udp_frame_build(frame, header, &e, 0), header);
        assert_int_equal(pt_udp_frame_build(frame, sizeof(frame), &e, most + 1), -EMSGSIZE);
        assert_int_equal(pt_udp_frame_build(frame, sizeof(frame), &e, most), header + most);
        assert_true(pt_udp_frame_checksum_ok(frame, header + most));
    }
}

/* A payload that brings the sum to zero is sent with the checksum ffff, never 0000. */
static void zero_checksum_is_sent_as_ones(void **state)
{
    (void)state;
    const struct pt_udp_frame_ends e = ends(false);
    uint8_t frame[64] = {0};
    assert_int_equal(pt_udp_frame_build(frame, sizeof(frame), &e, 2), 44);
    const uint8_t complement[2] = {frame[40], frame[41]};
    pt_udp_frame_patch(frame, 42, 0, complement, 2);
    assert_int_equal(frame[40], 0xff);
    assert_int_equal(frame[41], 0xff);
    memcpy(frame + 42, complement, 2);
    frame[40] = frame[41] = 0;
    assert_int_equal(pt_udp_frame_build(frame, sizeof(frame), &e, 2), 44);
    assert_int_equal(frame[40], 0xff);
    assert_int_equal(frame[41], 0xff);
    const uint8_t zero[2] = {0, 0};
    pt_udp_frame_patch(frame, 42, 0, zero, 2);
    assert_memory_equal(frame + 40, complement, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builds_what_the_kernel_sends),
        cmocka_unit_test(reads_what_the_kernel_sends),
        cmocka_unit_test(any_flipped_bit_behind_the_addresses_shows),
        cmocka_unit_test(refuses_cut_frames),
        cmocka_unit_test(padding_is_no_payload),
        cmocka_unit_test(refuses_what_is_not_plain_udp),
        cmocka_unit_test(ipv4_options_are_skipped),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(zero_checksum_is_sent_as_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
