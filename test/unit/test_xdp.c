/* test_xdp.c: the XDP program's verdicts, found by running its instructions here, without the
 * kernel.
 *
 * The machine below knows the instructions that the program uses and fails the test on any other,
 * on a read outside the packet, on a jump out of the program and on a register that was never
 * written. That the kernel's verifier accepts the program is shown by the scenario test.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "os/xdp.h"
#include "proto/udp_frame.h"

#include <stdlib.h>
#include <string.h>

enum { MAP_FD = 77, SENDERS_FD = 78, QUEUE = 3, DROP_KEY = -4, WORD_KEY = -4, STEPS = 200 };

/* Addresses as the program sees them: a packet and a context far apart, so that mixing them shows.
 */
#define PACKET  ((uint64_t)0x10000000)
#define CONTEXT ((uint64_t)0x20000000)
#define STACK   ((uint64_t)0x30000000)
#define VALUE   ((uint64_t)0x40000000)

struct machine {
    uint64_t r[11];
    unsigned written;
    const uint8_t *packet;
    size_t len;
    uint8_t stack[24], value[16];
    const uint16_t *sender; /* the one port in the map of senders */
    unsigned redirected;    /* calls of bpf_redirect_map */
};

static uint64_t get(const struct machine *m, unsigned reg)
{
    assert_true(reg <= 10 && (m->written & 1U << reg));
    return m->r[reg];
}

static void put(struct machine *m, unsigned reg, uint64_t v)
{
    assert_true(reg < 10);
    m->r[reg] = v;
    m->written |= 1U << reg;
}

static unsigned width(uint8_t code)
{
    switch (code & 0x18) {
    case BPF_B:
        return 1;
    case BPF_H:
        return 2;
    case BPF_W:
        return 4;
    default:
        return 8;
    }
}

static uint64_t load_context(const struct machine *m, uint64_t at)
{
    switch (at) {
    case offsetof(struct xdp_md, data):
        return PACKET;
    case offsetof(struct xdp_md, data_end):
        return PACKET + m->len;
    case offsetof(struct xdp_md, rx_queue_index):
        return QUEUE;
    default:
        fail_msg("context offset %u", (unsigned)at);
        return 0;
    }
}

static uint64_t load(const struct machine *m, uint64_t at, unsigned n)
{
    uint64_t v = 0;
    if (at >= CONTEXT && at < CONTEXT + sizeof(struct xdp_md)) {
        assert_int_equal(n, 4);
        return load_context(m, at - CONTEXT);
    }
    if (at >= VALUE && at + n <= VALUE + sizeof(m->value)) {
        memcpy(&v, m->value + (at - VALUE), n);
        return v;
    }
    assert_true(at >= PACKET && at + n <= PACKET + m->len);
    memcpy(&v, m->packet + (at - PACKET), n);
    return v;
}

static void store(struct machine *m, uint64_t at, unsigned n, uint64_t v)
{
    if (at >= VALUE && at + n <= VALUE + sizeof(m->value))
        memcpy(m->value + (at - VALUE), &v, n);
    else if (at >= STACK - sizeof(m->stack) && at + n <= STACK)
        memcpy(m->stack + (at - (STACK - sizeof(m->stack))), &v, n);
    else
        fail_msg("store to %llx", (unsigned long long)at);
}

static uint64_t alu(uint8_t code, uint64_t a, uint64_t b)
{
    switch (code & 0xf0) {
    case BPF_MOV:
        return b;
    case BPF_ADD:
        return a + b;
    case BPF_SUB:
        return a - b;
    case BPF_AND:
        return a & b;
    case BPF_LSH:
        return a << b;
    case BPF_RSH:
        return a >> b;
    default:
        fail_msg("ALU code %02x", code);
        return 0;
    }
}

static bool taken(uint8_t code, uint64_t a, uint64_t b)
{
    switch (code & 0xf0) {
    case BPF_JEQ:
        return a == b;
    case BPF_JNE:
        return a != b;
    case BPF_JGT:
        return a > b;
    case BPF_JLT:
        return a < b;
    default:
        fail_msg("jump code %02x", code);
        return false;
    }
}

static void look_up_sender(struct machine *m, int which)
{
    uint32_t index;
    uint64_t word = 0;
    assert_int_equal(which, BPF_FUNC_map_lookup_elem);
    assert_int_equal(get(m, 2), STACK + (uint64_t)WORD_KEY);
    memcpy(&index, m->stack + sizeof(m->stack) + WORD_KEY, 4);
    assert_true(index < 65536 / 64);
    assert_non_null(m->sender);
    if (*m->sender / 64 == index)
        word = (uint64_t)1 << *m->sender % 64;
    memcpy(m->value, &word, 8);
    put(m, 0, VALUE);
}

static void call(struct machine *m, int which)
{
    if (get(m, 1) == SENDERS_FD) {
        look_up_sender(m, which);
        m->written &= ~0x3eU; /* r1-r5 are lost */
        return;
    }
    assert_int_equal(get(m, 1), MAP_FD);
    if (which == BPF_FUNC_redirect_map) {
        assert_int_equal(get(m, 2), QUEUE);
        assert_int_equal(get(m, 3), XDP_PASS);
        m->redirected++;
        put(m, 0, XDP_REDIRECT);
    } else {
        static const uint8_t zero[4];
        assert_int_equal(which, BPF_FUNC_map_lookup_elem);
        assert_int_equal(get(m, 2), STACK + (uint64_t)DROP_KEY);
        assert_memory_equal(m->stack + sizeof(m->stack) + DROP_KEY, zero, 4);
        put(m, 0, VALUE);
    }
    m->written &= ~0x3eU; /* r1-r5 are lost */
}

/* The second operand: a register, or the immediate, sign-extended. */
static uint64_t operand(const struct machine *m, const struct bpf_insn *i)
{
    return i->code & BPF_X ? get(m, i->src_reg) : (uint64_t)(int64_t)i->imm;
}

/* One instruction; returns how far to go, 0 at the exit. */
static int step(struct machine *m, const struct bpf_insn *i)
{
    const unsigned n = width(i->code);
    switch (i->code & 7) {
    case BPF_LD:
        assert_int_equal(i->code, BPF_LD | BPF_DW | BPF_IMM);
        assert_int_equal(i->src_reg, BPF_PSEUDO_MAP_FD);
        put(m, i->dst_reg, (uint32_t)i->imm);
        return 2;
    case BPF_LDX:
        put(m, i->dst_reg, load(m, get(m, i->src_reg) + (uint64_t)(int64_t)i->off, n));
        return 1;
    case BPF_ST:
        store(m, get(m, i->dst_reg) + (uint64_t)(int64_t)i->off, n, (uint64_t)(int64_t)i->imm);
        return 1;
    case BPF_STX:
        store(m, get(m, i->dst_reg) + (uint64_t)(int64_t)i->off, n, get(m, i->src_reg));
        return 1;
    case BPF_ALU:
        assert_int_equal(i->code, BPF_ALU | BPF_END | BPF_TO_BE);
        assert_int_equal(i->imm, 16);
        put(m, i->dst_reg, __builtin_bswap16((uint16_t)get(m, i->dst_reg)));
        return 1;
    case BPF_ALU64:
        put(m, i->dst_reg,
            alu(i->code, (i->code & 0xf0) == BPF_MOV ? 0 : get(m, i->dst_reg), operand(m, i)));
        return 1;
    default:
        break;
    }
    if ((i->code & 7) == BPF_JMP32)
        return 1 +
               (taken(i->code, (uint32_t)get(m, i->dst_reg), (uint32_t)operand(m, i)) ? i->off : 0);
    assert_int_equal(i->code & 7, BPF_JMP);
    switch (i->code & 0xf0) {
    case BPF_EXIT:
        return 0;
    case BPF_CALL:
        call(m, i->imm);
        return 1;
    case BPF_JA:
        return 1 + i->off;
    default:
        return 1 + (taken(i->code, get(m, i->dst_reg), operand(m, i)) ? i->off : 0);
    }
}

static int run_from(struct machine *m, const struct pt_xdp_spec *spec, const uint8_t *packet,
                    size_t len, const uint16_t *sender)
{
    struct bpf_insn program[PT_XDP_INSNS];
    const size_t n = pt_xdp_program(program, spec, MAP_FD, SENDERS_FD);
    assert_true(n > 0 && n <= PT_XDP_INSNS);
    *m = (struct machine){
        .packet = packet, .len = len, .written = 1U << 1 | 1U << 10, .sender = sender};
    memset(m->stack, 0xa5, sizeof(m->stack)); /* what nobody wrote is not a key */
    m->r[1] = CONTEXT;
    m->r[10] = STACK;
    size_t at = 0;
    for (int steps = 0; steps < STEPS; steps++) {
        assert_true(at < n);
        int go = step(m, &program[at]);
        if (go == 0)
            return (int)get(m, 0);
        assert_true(go > 0); /* no loops */
        at += (size_t)go;
    }
    fail_msg("the program does not end");
    return -1;
}

static int run(struct machine *m, const struct pt_xdp_spec *spec, const uint8_t *packet, size_t len)
{
    return run_from(m, spec, packet, len, NULL);
}

/* The verdict on an exact-size copy, so that a sanitizer sees a read behind it. */
static int verdict(const struct pt_xdp_spec *spec, const uint8_t *packet, size_t len)
{
    struct machine m;
    uint8_t *copy = malloc(len + !len);
    assert_non_null(copy);
    memcpy(copy, packet, len);
    int v = run(&m, spec, copy, len);
    assert_int_equal(m.redirected, v == XDP_REDIRECT);
    free(copy);
    return v;
}

static size_t make(uint8_t frame[128], bool ipv6, uint16_t port)
{
    const struct pt_udp_frame_ends e = {
        .ipv6 = ipv6, .source_port = 9, .destination_port = port, .source = {1}};
    memset(frame, 0, 128);
    ssize_t n = pt_udp_frame_build(frame, 128, &e, 14);
    assert_true(n > 0);
    return (size_t)n;
}

static const struct pt_xdp_spec range = {.port_first = 7000, .port_last = 7003, .queues = 4};

static void takes_the_port_range_and_nothing_else(void **state)
{
    (void)state;
    const struct pt_xdp_spec one = {.port_first = 7001, .port_last = 7001, .queues = 1};
    const struct pt_xdp_spec high = {.port_first = 40000, .port_last = 65535, .queues = 1};
    uint8_t f[128];
    for (int six = 0; six < 2; six++)
        for (unsigned port = 0; port < 65536; port += port % 1000 == 4 ? 996 : 1) {
            size_t n = make(f, six, (uint16_t)port);
            bool in = port >= 7000 && port <= 7003;
            assert_int_equal(verdict(&range, f, n), in ? XDP_REDIRECT : XDP_PASS);
            assert_int_equal(verdict(&one, f, n), port == 7001 ? XDP_REDIRECT : XDP_PASS);
            assert_int_equal(verdict(&high, f, n), port >= 40000 ? XDP_REDIRECT : XDP_PASS);
        }
}

static void any_length_is_safe(void **state)
{
    (void)state;
    uint8_t f[128];
    for (int six = 0; six < 2; six++) {
        make(f, six, 7000);
        const size_t shortest = pt_udp_frame_header_len(six);
        for (size_t n = 0; n < sizeof(f); n++)
            assert_int_equal(verdict(&range, f, n), n < shortest ? XDP_PASS : XDP_REDIRECT);
    }
}

static int verdict_with(bool ipv6, size_t at, uint8_t value)
{
    uint8_t f[128];
    size_t n = make(f, ipv6, 7000);
    f[at] = value;
    return verdict(&range, f, n);
}

static void other_traffic_passes(void **state)
{
    (void)state;
    assert_int_equal(verdict_with(false, 12, 0x08), XDP_REDIRECT); /* the change itself is none */
    assert_int_equal(verdict_with(false, 13, 0x06), XDP_PASS);     /* ARP */
    assert_int_equal(verdict_with(false, 12, 0x81), XDP_PASS);     /* VLAN */
    assert_int_equal(verdict_with(false, 23, 6), XDP_PASS);        /* TCP */
    assert_int_equal(verdict_with(false, 23, 1), XDP_PASS);        /* ICMP */
    assert_int_equal(verdict_with(false, 20, 0x20), XDP_PASS);     /* first fragment */
    assert_int_equal(verdict_with(false, 21, 0x04), XDP_PASS);     /* later fragment */
    assert_int_equal(verdict_with(false, 14, 0x44), XDP_PASS);     /* header of 16 bytes */
    assert_int_equal(verdict_with(true, 20, 6), XDP_PASS);
    assert_int_equal(verdict_with(true, 20, 58), XDP_PASS); /* ICMPv6 */
    assert_int_equal(verdict_with(true, 20, 44), XDP_PASS); /* fragment header */
}

static void ipv4_options_are_skipped(void **state)
{
    (void)state;
    for (size_t options = 4; options <= 40; options += 4) {
        uint8_t plain[128], f[128] = {0};
        size_t n = make(plain, false, 7002);
        memcpy(f, plain, 34);
        memcpy(f + 34 + options, plain + 34, n - 34);
        f[14] = (uint8_t)(0x45 + options / 4);
        assert_int_equal(verdict(&range, f, n + options), XDP_REDIRECT);
        assert_int_equal(verdict(&range, f, 42 + options - 1), XDP_PASS);
    }
}

static void counts_and_drops(void **state)
{
    (void)state;
    const struct pt_xdp_spec spec = {
        .port_first = 7000, .port_last = 7000, .verdict = PT_XDP_COUNT};
    uint8_t f[128];
    for (int six = 0; six < 2; six++) {
        struct machine m;
        uint64_t counted[2];
        size_t n = make(f, six, 7000);
        assert_int_equal(run(&m, &spec, f, n), XDP_DROP);
        memcpy(counted, m.value, sizeof(counted));
        assert_int_equal(counted[0], 1);
        assert_int_equal(counted[1], n);
        n = make(f, six, 7001);
        assert_int_equal(run(&m, &spec, f, n), XDP_PASS);
        memcpy(counted, m.value, sizeof(counted));
        assert_int_equal(counted[0], 0);
    }
}

/* Of the flows to one port, address and source port tell which is ours. */
static void takes_only_the_sender_that_was_named(void **state)
{
    (void)state;
    for (int six = 0; six < 2; six++)
        for (size_t options = 0; options <= (six ? 0 : 40); options += 20) {
            struct pt_xdp_sender sender = {.ipv6 = six};
            const struct pt_xdp_spec spec = {
                .port_first = 7000, .port_last = 7000, .queues = 1, .sender = &sender};
            const uint16_t mine = 0x9234;
            uint8_t plain[128] = {0}, f[128] = {0};
            struct machine m;
            struct pt_udp_frame_ends e = {
                .ipv6 = six, .source_port = mine, .destination_port = 7000};
            for (uint8_t i = 0; i < (six ? 16 : 4); i++)
                e.source[i] = sender.address[i] = (uint8_t)(0xc3 + i);
            ssize_t built = pt_udp_frame_build(plain, sizeof(plain), &e, 14);
            assert_true(built > 0);
            size_t n = (size_t)built + options;
            memcpy(f, plain, 34);
            memcpy(f + 34 + options, plain + 34, (size_t)built - 34);
            if (!six)
                f[14] = (uint8_t)(0x45 + options / 4);
            assert_int_equal(run_from(&m, &spec, f, n, &mine), XDP_REDIRECT);
            for (unsigned bit = 0; bit < 16; bit++) {
                const uint16_t other = (uint16_t)(mine ^ 1U << bit);
                assert_int_equal(run_from(&m, &spec, f, n, &other), XDP_PASS);
            }
            for (size_t i = 0; i < (six ? 16 : 4); i++) {
                sender.address[i] ^= 0x80;
                assert_int_equal(run_from(&m, &spec, f, n, &mine), XDP_PASS);
                sender.address[i] ^= 0x80;
            }
            sender.ipv6 = !six; /* the other family's program leaves ours alone */
            assert_int_equal(run_from(&m, &spec, f, n, &mine), XDP_PASS);
            sender.ipv6 = six;
            f[(six ? 54 : 34 + options) + 3] ^= 1; /* the same sender to another port */
            assert_int_equal(run_from(&m, &spec, f, n, &mine), XDP_PASS);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_port_range_and_nothing_else),
        cmocka_unit_test(any_length_is_safe),
        cmocka_unit_test(other_traffic_passes),
        cmocka_unit_test(ipv4_options_are_skipped),
        cmocka_unit_test(counts_and_drops),
        cmocka_unit_test(takes_only_the_sender_that_was_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
