/* xdp.c: see xdp.h. The program is assembled here, forty to seventy instructions, because little
 * more than the port range varies and a compiler for bpf is not everywhere.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/xdp.h"

#include "os/bpf.h"
#include "os/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Registers. r1-r5 are lost in a helper call, r6-r9 are kept, r10 is the frame pointer. */
enum { RET = 0, ARG1 = 1, ARG2 = 2, ARG3 = 3, DATA = 2, END = 3, LIMIT = 4, FIELD = 5 };
enum { CONTEXT = 6, LENGTH = 7, SOURCE = 8, FRAME_POINTER = 10 };

/* Offsets from the start of the Ethernet header; IPv4 ones past byte 34 hold without options. */
enum {
    AT_ETHERTYPE = 12,
    AT_IP = 14,
    AT_IP4_FRAGMENT = 20,
    AT_IP4_PROTOCOL = 23,
    AT_IP4_SOURCE = 26,
    AT_IP6_NEXT = 20,
    AT_IP6_SOURCE = 22,
    AT_IP6_UDP = 14 + 40,
    SHORTEST_UDP4 = 14 + 20 + 8,
    SHORTEST_UDP6 = 14 + 40 + 8,
};

/* The map of senders: one bit for each UDP source port, in words. */
enum { PORT_WORDS = 65536 / 64, AT_WORD_INDEX = -4 };

/* Where a jump goes: resolved when the label is placed. */
enum label { LABEL_NONE, LABEL_IPV6, LABEL_PORT, LABEL_PASS, LABELS };

struct assembler {
    struct bpf_insn *out;
    size_t n;
    enum label target[PT_XDP_INSNS];
};

static void emit(struct assembler *a, unsigned code, unsigned dst, unsigned src, int off, int imm)
{
    a->out[a->n++] = (struct bpf_insn){.code = (uint8_t)code,
                                       .dst_reg = (uint8_t)(dst & 15),
                                       .src_reg = (uint8_t)(src & 15),
                                       .off = (int16_t)off,
                                       .imm = imm};
}

static void move(struct assembler *a, unsigned dst, unsigned src)
{
    emit(a, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void set(struct assembler *a, unsigned dst, int value)
{
    emit(a, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value);
}

static void load(struct assembler *a, unsigned size, unsigned dst, unsigned base, int off)
{
    emit(a, BPF_LDX | BPF_MEM | size, dst, base, off, 0);
}

static void alu(struct assembler *a, unsigned op, unsigned dst, int value)
{
    emit(a, BPF_ALU64 | op | BPF_K, dst, 0, 0, value);
}

static void jump_if(struct assembler *a, unsigned op, unsigned reg, int value, enum label to)
{
    a->target[a->n] = to;
    emit(a, BPF_JMP | op | BPF_K, reg, 0, 0, value);
}

/* To `pass` unless `len` bytes from `DATA` on are inside the packet: the verifier wants this form.
 */
static void need(struct assembler *a, int len)
{
    move(a, LIMIT, DATA);
    alu(a, BPF_ADD, LIMIT, len);
    a->target[a->n] = LABEL_PASS;
    emit(a, BPF_JMP | BPF_JGT | BPF_X, LIMIT, END, 0, 0);
}

static void load_map(struct assembler *a, unsigned dst, int map_fd)
{
    /* Two of the three are 0; all are named as the instruction set does. */
    /* NOLINTNEXTLINE(misc-redundant-expression) */
    emit(a, BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, map_fd);
    emit(a, 0, 0, 0, 0, 0); /* the upper half of a 16-byte instruction */
}

static void place(struct assembler *a, enum label label)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->target[i] == label)
            a->out[i].off = (int16_t)(a->n - i - 1);
}

static void store_word(struct assembler *a, int at, int value)
{
    emit(a, BPF_ST | BPF_MEM | BPF_W, FRAME_POINTER, 0, at, value);
}

/* To `pass` unless the `n` bytes at DATA + `at` are these; in words, as packets are aligned. */
static void need_bytes(struct assembler *a, int at, const uint8_t *bytes, int n)
{
    for (int i = 0; i < n; i += 4) {
        int32_t word;
        memcpy(&word, bytes + i, 4);
        load(a, BPF_W, FIELD, DATA, at + i);
        a->target[a->n] = LABEL_PASS;
        emit(a, BPF_JMP32 | BPF_JNE | BPF_K, FIELD, 0, 0, word);
    }
}

/* Of the UDP header at DATA + `at`: source port and destination port, network order. */
static void take_ports(struct assembler *a, int at)
{
    load(a, BPF_H, SOURCE, DATA, at);
    load(a, BPF_H, FIELD, DATA, at + 2);
}

static void udp4(struct assembler *a, const struct pt_xdp_sender *sender)
{
    load(a, BPF_B, FIELD, DATA, AT_IP4_PROTOCOL);
    jump_if(a, BPF_JNE, FIELD, IPPROTO_UDP, LABEL_PASS);
    load(a, BPF_H, FIELD, DATA, AT_IP4_FRAGMENT);
    alu(a, BPF_AND, FIELD, htons(0x3fff)); /* more fragments, or an offset */
    jump_if(a, BPF_JNE, FIELD, 0, LABEL_PASS);
    if (sender)
        need_bytes(a, AT_IP4_SOURCE, sender->address, 4);
    load(a, BPF_B, FIELD, DATA, AT_IP);
    alu(a, BPF_AND, FIELD, 15);
    alu(a, BPF_LSH, FIELD, 2); /* the header's length, 20 without options */
    jump_if(a, BPF_JLT, FIELD, 20, LABEL_PASS);
    emit(a, BPF_ALU64 | BPF_ADD | BPF_X, DATA, FIELD, 0, 0);
    need(a, AT_IP + 8);
    take_ports(a, AT_IP);
}

static void udp6(struct assembler *a, const struct pt_xdp_sender *sender)
{
    need(a, SHORTEST_UDP6);
    load(a, BPF_B, FIELD, DATA, AT_IP6_NEXT);
    jump_if(a, BPF_JNE, FIELD, IPPROTO_UDP, LABEL_PASS);
    if (sender)
        need_bytes(a, AT_IP6_SOURCE, sender->address, 16);
    take_ports(a, AT_IP6_UDP);
}

/* Leaves the ports in SOURCE and FIELD (network order) or has gone to `pass`. */
static void find_ports(struct assembler *a, const struct pt_xdp_sender *sender)
{
    bool four = !sender || !sender->ipv6, six = !sender || sender->ipv6;
    move(a, CONTEXT, ARG1);
    load(a, BPF_W, DATA, CONTEXT, offsetof(struct xdp_md, data));
    load(a, BPF_W, END, CONTEXT, offsetof(struct xdp_md, data_end));
    move(a, LENGTH, END);
    emit(a, BPF_ALU64 | BPF_SUB | BPF_X, LENGTH, DATA, 0, 0);
    need(a, SHORTEST_UDP4);
    load(a, BPF_H, FIELD, DATA, AT_ETHERTYPE);
    if (six)
        jump_if(a, BPF_JEQ, FIELD, htons(ETHERTYPE_IPV6), LABEL_IPV6);
    if (four) {
        jump_if(a, BPF_JNE, FIELD, htons(ETHERTYPE_IP), LABEL_PASS);
        udp4(a, sender);
    }
    if (six) {
        jump_if(a, BPF_JA, 0, 0, four ? LABEL_PORT : LABEL_PASS);
        place(a, LABEL_IPV6);
        udp6(a, sender);
    }
    place(a, LABEL_PORT);
}

static void look_up(struct assembler *a, int map_fd, int key_at)
{
    load_map(a, ARG1, map_fd);
    move(a, ARG2, FRAME_POINTER);
    alu(a, BPF_ADD, ARG2, key_at);
    emit(a, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem);
    jump_if(a, BPF_JEQ, RET, 0, LABEL_PASS);
}

/* To `pass` unless the bit of the source port is set. */
static void need_sender(struct assembler *a, int senders_fd)
{
    emit(a, BPF_ALU | BPF_END | BPF_TO_BE, SOURCE, 0, 0, 16);
    move(a, FIELD, SOURCE);
    alu(a, BPF_RSH, FIELD, 6);
    emit(a, BPF_STX | BPF_MEM | BPF_W, FRAME_POINTER, FIELD, AT_WORD_INDEX, 0);
    look_up(a, senders_fd, AT_WORD_INDEX);
    load(a, BPF_DW, FIELD, RET, 0);
    alu(a, BPF_AND, SOURCE, 63);
    emit(a, BPF_ALU64 | BPF_RSH | BPF_X, FIELD, SOURCE, 0, 0);
    alu(a, BPF_AND, FIELD, 1);
    jump_if(a, BPF_JEQ, FIELD, 0, LABEL_PASS);
}

/* XDP_PASS is also the answer where the map holds no socket for the queue. */
static void redirect(struct assembler *a, int map_fd)
{
    load_map(a, ARG1, map_fd);
    load(a, BPF_W, ARG2, CONTEXT, offsetof(struct xdp_md, rx_queue_index));
    set(a, ARG3, XDP_PASS);
    emit(a, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map);
    emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* The value is this CPU's own {packets, bytes}: no atomics. */
static void count_and_drop(struct assembler *a, int map_fd)
{
    store_word(a, -4, 0);
    look_up(a, map_fd, -4);
    load(a, BPF_DW, ARG1, RET, 0);
    alu(a, BPF_ADD, ARG1, 1);
    emit(a, BPF_STX | BPF_MEM | BPF_DW, RET, ARG1, 0, 0);
    load(a, BPF_DW, ARG1, RET, 8);
    emit(a, BPF_ALU64 | BPF_ADD | BPF_X, ARG1, LENGTH, 0, 0);
    emit(a, BPF_STX | BPF_MEM | BPF_DW, RET, ARG1, 8, 0);
    set(a, RET, XDP_DROP);
    emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

size_t pt_xdp_program(struct bpf_insn out[PT_XDP_INSNS], const struct pt_xdp_spec *spec, int map_fd,
                      int senders_fd)
{
    struct assembler a = {.out = out};
    find_ports(&a, spec->sender);
    emit(&a, BPF_ALU | BPF_END | BPF_TO_BE, FIELD, 0, 0, 16);
    jump_if(&a, BPF_JLT, FIELD, spec->port_first, LABEL_PASS);
    jump_if(&a, BPF_JGT, FIELD, spec->port_last, LABEL_PASS);
    if (spec->sender)
        need_sender(&a, senders_fd);
    if (spec->verdict == PT_XDP_COUNT)
        count_and_drop(&a, map_fd);
    else
        redirect(&a, map_fd);
    place(&a, LABEL_PASS);
    set(&a, RET, XDP_PASS);
    emit(&a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    return a.n;
}

static int attach_as(struct pt_xdp *x, const struct pt_xdp_spec *spec, bool native,
                     struct pt_err *e)
{
    x->native = native;
    x->link_fd = pt_bpf_xdp_link(x->prog_fd, spec->ifindex,
                                 native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE, e);
    return x->link_fd < 0 ? x->link_fd : 0;
}

/* A veth packet is an skb already, and for native mode the driver copies it into a page of its own:
 * generic mode, which writes straight from the skb, delivers about a tenth more there. But only
 * native mode keeps the queue that the sender chose. */
static bool native_is_slower(const struct pt_xdp_spec *spec)
{
    struct pt_link link;
    return spec->queues <= 1 && pt_link_read(&link, spec->ifindex, NULL) == 0 &&
           strcmp(link.kind, "veth") == 0;
}

static int attach_somehow(struct pt_xdp *x, const struct pt_xdp_spec *spec, struct pt_err *e)
{
    if (spec->mode == PT_XDP_GENERIC || (spec->mode == PT_XDP_AUTO && native_is_slower(spec)))
        return attach_as(x, spec, false, e);
    int r = attach_as(x, spec, true, e);
    /* These would be the same in generic mode; its sentence would hide the first. */
    if (r == 0 || spec->mode == PT_XDP_NATIVE || r == -EBUSY || r == -EPERM || r == -ENODEV)
        return r;
    return attach_as(x, spec, false, e);
}

static int attach(struct pt_xdp *x, const struct pt_xdp_spec *spec, struct pt_err *e)
{
    const struct pt_bpf_map_spec sockets = {.type = BPF_MAP_TYPE_XSKMAP,
                                            .key_bytes = 4,
                                            .value_bytes = 4,
                                            .entries = spec->queues,
                                            .name = "pitot_xsks"};
    const struct pt_bpf_map_spec counts = {.type = BPF_MAP_TYPE_PERCPU_ARRAY,
                                           .key_bytes = 4,
                                           .value_bytes = 16,
                                           .entries = 1,
                                           .name = "pitot_counts"};
    x->map_fd = pt_bpf_map_open(spec->verdict == PT_XDP_COUNT ? &counts : &sockets, e);
    if (x->map_fd < 0)
        return x->map_fd;
    if (spec->sender) {
        const struct pt_bpf_map_spec senders = {.type = BPF_MAP_TYPE_ARRAY,
                                                .key_bytes = 4,
                                                .value_bytes = 8,
                                                .entries = PORT_WORDS,
                                                .name = "pitot_senders"};
        x->senders_fd = pt_bpf_map_open(&senders, e);
        if (x->senders_fd < 0)
            return x->senders_fd;
    }
    struct bpf_insn program[PT_XDP_INSNS];
    size_t n = pt_xdp_program(program, spec, x->map_fd, x->senders_fd);
    x->prog_fd = pt_bpf_xdp_load(program, n, "pitot", e);
    if (x->prog_fd < 0)
        return x->prog_fd;
    return attach_somehow(x, spec, e);
}

int pt_xdp_attach(struct pt_xdp *x, const struct pt_xdp_spec *spec, struct pt_err *e)
{
    *x = (struct pt_xdp){
        .map_fd = -1, .senders_fd = -1, .prog_fd = -1, .link_fd = -1, .verdict = spec->verdict};
    if (spec->port_first > spec->port_last ||
        (spec->verdict == PT_XDP_REDIRECT && spec->queues == 0))
        return pt_fail(e, -EINVAL, "XDP program for ports %u-%u on %u queues: nothing to match",
                       spec->port_first, spec->port_last, spec->queues);
    int r = attach(x, spec, e);
    if (r < 0)
        pt_xdp_detach(x);
    return r;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void pt_xdp_detach(struct pt_xdp *x)
{
    close_fd(&x->link_fd);
    close_fd(&x->prog_fd);
    close_fd(&x->senders_fd);
    close_fd(&x->map_fd);
}

int pt_xdp_join(struct pt_xdp *x, unsigned queue, int xsk_fd, struct pt_err *e)
{
    int r = pt_bpf_map_set(x->map_fd, &queue, &xsk_fd);
    if (r < 0)
        return pt_fail(e, r, "give queue %u to an AF_XDP socket: %s", queue, pt_strerror(r));
    return 0;
}

int pt_xdp_admit(struct pt_xdp *x, uint16_t port, struct pt_err *e)
{
    const uint32_t index = port / 64;
    uint64_t word = 0;
    int r = pt_bpf_map_get(x->senders_fd, &index, &word);
    word |= (uint64_t)1 << port % 64;
    if (r == 0)
        r = pt_bpf_map_set(x->senders_fd, &index, &word);
    if (r < 0)
        return pt_fail(e, r, "name a sender to the XDP program: %s", pt_strerror(r));
    return 0;
}

/* One more than the highest CPU number that could ever exist here: what the kernel returns per-CPU
 * values for, which may be more than the CPUs present. */
static int possible_cpus(void)
{
    char text[256];
    int fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    int code = n < 0 ? -errno : -EINVAL;
    close(fd);
    if (n <= 0)
        return code;
    text[n] = 0; /* "0-127" or "0,2-5": ascending, the last number is the highest */
    const char *last = text;
    for (const char *p = text; *p; p++)
        if (*p == '-' || *p == ',')
            last = p + 1;
    long highest = strtol(last, NULL, 10);
    return highest < 0 || highest > 65535 ? -EINVAL : (int)highest + 1;
}

int pt_xdp_counted(const struct pt_xdp *x, uint64_t *packets, uint64_t *bytes)
{
    int cpus = possible_cpus();
    if (cpus < 0)
        return cpus;
    struct {
        uint64_t packets, bytes;
    } *each = calloc((size_t)cpus, sizeof(*each));
    if (!each)
        return -ENOMEM;
    int r = pt_bpf_map_get(x->map_fd, &(uint32_t){0}, each);
    *packets = *bytes = 0;
    for (int i = 0; r == 0 && i < cpus; i++) {
        *packets += each[i].packets;
        *bytes += each[i].bytes;
    }
    free(each);
    return r;
}
