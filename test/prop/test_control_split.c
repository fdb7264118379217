/* test_control_split.c: any split of a control stream gives the same messages, and any damage gives
 * the same messages up to it and then the same error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/rng.h"
#include "proto/control.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_MAX 20000

static json_t *random_message(struct pt_rng *r)
{
    json_t *m = json_pack("{s:s, s:I}", "type", pt_rng_below(r, 2) ? "a" : "bb", "n",
                          (json_int_t)(pt_rng_u64(r) >> 1));
    json_t *list = json_array();
    for (uint64_t i = pt_rng_below(r, 40); i > 0; i--)
        assert_int_equal(json_array_append_new(list, json_real(pt_rng_unit(r))), 0);
    assert_int_equal(json_object_set_new(m, "list", list), 0);
    return m;
}

/* Writes every message and the final result as text. Pieces of `most` bytes at most; 0: as large as
 * they come. */
static void run(const uint8_t *bytes, size_t n, struct pt_rng *r, size_t most, struct pt_buf *log)
{
    struct pt_control_decoder d;
    json_t *m;
    int rc;
    pt_control_decoder_init(&d, 2000);
    pt_buf_init(log, 4 * STREAM_MAX);
    for (;;) {
        while ((rc = pt_control_decode(&d, &m, NULL)) == 1) {
            char *text = json_dumps(m, JSON_COMPACT | JSON_SORT_KEYS);
            assert_int_equal(pt_buf_addf(log, "%s\n", text), 0);
            free(text);
            json_decref(m);
        }
        if (rc < 0 || n == 0)
            break;
        size_t part = most ? 1 + (size_t)pt_rng_below(r, most) : n;
        part = part < n ? part : n;
        size_t room = pt_control_room(&d);
        part = part < room ? part : room;
        assert_true(part > 0);
        assert_int_equal(pt_control_feed(&d, bytes, part), 0);
        bytes += part;
        n -= part;
    }
    assert_int_equal(pt_buf_addf(log, "end %d", rc), 0);
    pt_control_decoder_fini(&d);
}

static void any_split_gives_the_same(void **state)
{
    (void)state;
    uint64_t seed;
    assert_int_equal(pt_random_bytes(&seed, sizeof(seed)), 0);
    print_message("# seed %" PRIu64 "\n", seed);
    struct pt_rng r;
    pt_rng_init(&r, seed);
    unsigned whole_messages = 0, broken = 0;
    for (unsigned round = 0; round < 300; round++) {
        struct pt_buf stream, expect, got;
        pt_buf_init(&stream, STREAM_MAX);
        for (uint64_t i = 1 + pt_rng_below(&r, 8); i > 0; i--) {
            json_t *m = random_message(&r);
            assert_int_equal(pt_control_encode(&stream, m), 0);
            json_decref(m);
        }
        if (round % 2)
            stream.bytes[pt_rng_below(&r, stream.len)] ^= (char)(1 + pt_rng_below(&r, 255));
        const uint8_t *bytes = (const uint8_t *)stream.bytes;
        run(bytes, stream.len, &r, 0, &expect);
        whole_messages += strchr(pt_buf_str(&expect), '\n') != NULL;
        broken += strstr(pt_buf_str(&expect), "end -") != NULL;
        for (size_t most = 1; most < 4000; most *= 3) {
            run(bytes, stream.len, &r, most, &got);
            assert_string_equal(pt_buf_str(&expect), pt_buf_str(&got));
            pt_buf_fini(&got);
        }
        pt_buf_fini(&expect);
        pt_buf_fini(&stream);
    }
    assert_true(whole_messages > 100 && broken > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_split_gives_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
