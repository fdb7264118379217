/* bare_xdp.c: the ceiling of AF_XDP over a veth pair, in copy mode.
 *
 * --recv spin   an AF_XDP socket read in a spinning loop
 *        nap    the same, looking at the ring every 100 us
 *        wait   the same, sleeping in poll
 *        udp    an ordinary UDP socket (recvmmsg): no program at the receiving interface
 *        drop   a program that counts and drops: what arrives below any socket
 * --mode generic (the default: faster over veth) | native
 * The sender keeps its ring full of the same frame. IPv4 only.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bare_frame.h"

#include <getopt.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <sys/syscall.h>

#define SLOT       2048u
#define FRAMES     4096u
#define MASK       (FRAMES - 1)
#define SKB_BUDGET 9 /* XDP_MAX_TX_SKB_BUDGET, Linux 6.18 */

struct ring {
    uint32_t *producer, *consumer, *flags;
    void *slots;
};

static size_t size = 14, length;
static unsigned batch = 256, budget = 256;
static uint32_t mode = XDP_FLAGS_SKB_MODE;
static uint8_t frame[SLOT];
static uint8_t *area;
static struct ring tx, rx, fill, completion;

static uint32_t acquire(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void release(uint32_t *p, uint32_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static long bpf(int command, union bpf_attr *attr)
{
    return syscall(SYS_bpf, command, attr, sizeof *attr);
}

static struct ring map_ring(int fd, const struct xdp_ring_offset *off, uint64_t page, size_t slot)
{
    uint8_t *at = mmap(NULL, off->desc + FRAMES * slot, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_POPULATE, fd, (off_t)page);
    if (at == MAP_FAILED)
        bare_die("ring");
    return (struct ring){(uint32_t *)(void *)(at + off->producer),
                         (uint32_t *)(void *)(at + off->consumer),
                         (uint32_t *)(void *)(at + off->flags), at + off->desc};
}

/* An AF_XDP socket on queue 0 whose frames serve one direction. */
static int open_xsk(unsigned ifindex, int sending)
{
    const uint32_t n = FRAMES;
    int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    /* Shared: a fork would give the child copies of pages that the kernel has pinned. */
    area = mmap(NULL, FRAMES * SLOT, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    const struct xdp_umem_reg memory = {
        .addr = (uintptr_t)area, .len = FRAMES * SLOT, .chunk_size = SLOT};
    struct xdp_mmap_offsets off;
    socklen_t off_size = sizeof off;
    const struct sockaddr_xdp to = {.sxdp_family = AF_XDP,
                                    .sxdp_flags = XDP_USE_NEED_WAKEUP | XDP_COPY,
                                    .sxdp_ifindex = ifindex};
    if (fd < 0 || area == MAP_FAILED ||
        setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory) ||
        setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &n, sizeof n) ||
        setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &n, sizeof n) ||
        setsockopt(fd, SOL_XDP, sending ? XDP_TX_RING : XDP_RX_RING, &n, sizeof n) ||
        getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &off_size))
        bare_die("AF_XDP socket");
    fill = map_ring(fd, &off.fr, XDP_UMEM_PGOFF_FILL_RING, 8);
    completion = map_ring(fd, &off.cr, XDP_UMEM_PGOFF_COMPLETION_RING, 8);
    if (sending)
        tx = map_ring(fd, &off.tx, XDP_PGOFF_TX_RING, sizeof(struct xdp_desc));
    else
        rx = map_ring(fd, &off.rx, XDP_PGOFF_RX_RING, sizeof(struct xdp_desc));
    if (budget && sending) /* older kernels send 32 frames per call, whatever is asked */
        (void)setsockopt(fd, SOL_XDP, SKB_BUDGET, &budget, sizeof budget);
    /* The kernel frees the queue of an earlier socket some time after its close. */
    for (int tries = 0; bind(fd, (const struct sockaddr *)&to, sizeof to); tries++) {
        if (errno != EBUSY || tries == 200)
            bare_die("bind an AF_XDP socket");
        bare_sleep(0.005);
    }
    return fd;
}

/* Where frames are is a matter of the completion ring's order, but all hold the same. */
static void send_loop(struct bare_end *me, int fd)
{
    struct xdp_desc *slots = tx.slots;
    for (uint32_t i = 0; i < FRAMES; i++) {
        memcpy(area + i * SLOT, frame, length);
        slots[i] = (struct xdp_desc){.addr = i * SLOT, .len = (uint32_t)length};
    }
    const uint64_t *done = completion.slots;
    uint32_t given = 0, taken_back = 0;
    for (uint64_t n = 0;;) {
        uint32_t ended = acquire(completion.producer);
        n += ended - taken_back;
        for (; taken_back != ended; taken_back++)
            slots[(taken_back + FRAMES) & MASK].addr = done[taken_back & MASK];
        release(completion.consumer, taken_back);
        bare_count(me, n, n * size);
        uint32_t room = FRAMES - (given - taken_back);
        given += room < batch ? room : batch;
        release(tx.producer, given);
        if (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN && errno != EBUSY &&
            errno != ENOBUFS)
            bare_die("send");
    }
}

static int waiting, napping;

static void recv_loop(struct bare_end *me, int fd)
{
    uint64_t *free_slots = fill.slots;
    for (uint32_t i = 0; i < FRAMES; i++)
        free_slots[i] = i * SLOT;
    release(fill.producer, FRAMES);
    const struct xdp_desc *slots = rx.slots;
    uint32_t at = 0, filled = FRAMES;
    for (uint64_t n = 0, bytes = 0;;) {
        uint32_t until = acquire(rx.producer);
        if (until == at) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            if (napping)
                bare_sleep(100e-6);
            if (waiting)
                poll(&p, 1, -1);
            continue;
        }
        n += until - at;
        for (; at != until; at++) {
            bytes += slots[at & MASK].len - BARE_HEADER;
            free_slots[filled++ & MASK] = slots[at & MASK].addr & ~(uint64_t)(SLOT - 1);
        }
        release(rx.consumer, at);
        release(fill.producer, filled);
        bare_count(me, n, bytes);
    }
}

static void recvmmsg_loop(struct bare_end *me, int fd)
{
    static uint8_t buffers[64][SLOT];
    struct iovec iov[64];
    struct mmsghdr messages[64] = {0};
    for (int i = 0; i < 64; i++) {
        iov[i] = (struct iovec){buffers[i], SLOT};
        messages[i].msg_hdr.msg_iov = &iov[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    for (uint64_t n = 0, bytes = 0;;) {
        int got = recvmmsg(fd, messages, 64, MSG_WAITFORONE, NULL);
        if (got < 0)
            bare_die("recvmmsg");
        n += (unsigned)got;
        for (int i = 0; i < got; i++)
            bytes += messages[i].msg_len;
        bare_count(me, n, bytes);
    }
}

/* Reads what the program counted. */
static void drop_loop(struct bare_end *me, int map)
{
    const uint32_t key = 0;
    for (;;) {
        uint64_t n = 0;
        union bpf_attr attr = {.map_fd = (uint32_t)map};
        attr.key = (uintptr_t)&key;
        attr.value = (uintptr_t)&n;
        if (bpf(BPF_MAP_LOOKUP_ELEM, &attr))
            bare_die("counter");
        bare_count(me, n, n * size);
        bare_sleep(0.001);
    }
}

#define LOAD(bits, to, from, at)                                                                   \
    {                                                                                              \
        BPF_LDX | BPF_MEM | (bits), to, from, at, 0                                                \
    }
#define MOVE(to, from)                                                                             \
    {                                                                                              \
        BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0                                                \
    }
#define SET(to, value)                                                                             \
    {                                                                                              \
        BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value                                               \
    }
#define ADD(to, value)                                                                             \
    {                                                                                              \
        BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value                                               \
    }
#define MAP(to, fd)                                                                                \
    {BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, fd},                                     \
    {                                                                                              \
        0, 0, 0, 0, 0                                                                              \
    }
#define UNLESS(reg, value, skip)                                                                   \
    {                                                                                              \
        BPF_JMP | BPF_JNE | BPF_K, reg, 0, skip, value                                             \
    }
#define CALL(function)                                                                             \
    {                                                                                              \
        BPF_JMP | BPF_CALL, 0, 0, 0, function                                                      \
    }
#define EXIT                                                                                       \
    {                                                                                              \
        BPF_JMP | BPF_EXIT, 0, 0, 0, 0                                                             \
    }

/* IPv4 without options, UDP, our port: to the socket in the map, or counted and dropped. */
static void attach(const struct bare_port *to, int map, int drop)
{
    const int port = to->address.sin_port, ip = htons(0x0800);
    const struct bpf_insn head[] = {
        MOVE(6, 1),
        LOAD(BPF_W, 2, 1, 0),
        LOAD(BPF_W, 3, 1, 4),
        MOVE(4, 2),
        ADD(4, BARE_HEADER),
        {BPF_JMP | BPF_JGT | BPF_X, 4, 3, 6, 0},
        LOAD(BPF_H, 5, 2, 12),
        UNLESS(5, ip, 4),
        LOAD(BPF_B, 5, 2, 23),
        UNLESS(5, IPPROTO_UDP, 2),
        LOAD(BPF_H, 5, 2, 36),
        {BPF_JMP | BPF_JEQ | BPF_K, 5, 0, 2, port},
        SET(0, XDP_PASS),
        EXIT,
    };
    const struct bpf_insn redirect[] = {
        MAP(1, map), LOAD(BPF_W, 2, 6, 16), SET(3, XDP_PASS), CALL(BPF_FUNC_redirect_map), EXIT,
    };
    const struct bpf_insn count[] = {
        {BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0},
        MAP(1, map),
        MOVE(2, 10),
        ADD(2, -4),
        CALL(BPF_FUNC_map_lookup_elem),
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2, 0},
        SET(1, 1),
        {BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD},
        SET(0, XDP_DROP),
        EXIT,
    };
    struct bpf_insn all[32];
    const size_t tail = drop ? sizeof count : sizeof redirect;
    memcpy(all, head, sizeof head);
    memcpy((uint8_t *)all + sizeof head, drop ? count : redirect, tail);
    union bpf_attr load = {.prog_type = BPF_PROG_TYPE_XDP,
                           .insn_cnt = (uint32_t)((sizeof head + tail) / sizeof *all)};
    load.insns = (uintptr_t)all;
    load.license = (uintptr_t) "Apache-2.0";
    long program = bpf(BPF_PROG_LOAD, &load);
    if (program < 0)
        bare_die("load the program");
    union bpf_attr link = {0};
    link.link_create.prog_fd = (uint32_t)program;
    link.link_create.target_ifindex = to->ifindex;
    link.link_create.attach_type = BPF_XDP;
    link.link_create.flags = mode;
    if (bpf(BPF_LINK_CREATE, &link) < 0)
        bare_die("attach the program");
}

static int make_map(enum bpf_map_type type, uint32_t value_size)
{
    union bpf_attr attr = {
        .map_type = type, .key_size = 4, .value_size = value_size, .max_entries = 1};
    long fd = bpf(BPF_MAP_CREATE, &attr);
    if (fd < 0)
        bare_die("map");
    return (int)fd;
}

/* What the receiving process works on; leaves the program attached for as long as we live. */
static int open_receiver(const struct bare_port *to, int udp, int drop)
{
    if (udp >= 0)
        return udp;
    int map = drop ? make_map(BPF_MAP_TYPE_ARRAY, 8) : make_map(BPF_MAP_TYPE_XSKMAP, 4);
    attach(to, map, drop);
    if (drop)
        return map;
    int fd = open_xsk(to->ifindex, 0);
    const uint32_t queue = 0;
    union bpf_attr attr = {.map_fd = (uint32_t)map};
    attr.key = (uintptr_t)&queue;
    attr.value = (uintptr_t)&fd;
    if (bpf(BPF_MAP_UPDATE_ELEM, &attr))
        bare_die("map the socket");
    return fd;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"addr", 1, NULL, 'a'},  {"ns", 1, NULL, 'n'},     {"seconds", 1, NULL, 's'},
        {"recv", 1, NULL, 'r'},  {"warmup", 1, NULL, 'u'}, {"size", 1, NULL, 'z'},
        {"batch", 1, NULL, 'B'}, {"cpus", 1, NULL, 'p'},   {"budget", 1, NULL, 'k'},
        {"mode", 1, NULL, 'm'},  {NULL, 0, NULL, 0}};
    const char *host = "", *way = "spin", *cpu_from = "-1", *cpu_to = "-1";
    const char *from_ns = "", *to_ns = "";
    double seconds = 5, warmup = 0.5;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (o) {
        case 'a':
            host = optarg;
            break;
        case 'n':
            bare_pair(optarg, &from_ns, &to_ns);
            break;
        case 's':
            seconds = atof(optarg);
            break;
        case 'u':
            warmup = atof(optarg);
            break;
        case 'r':
            way = optarg;
            break;
        case 'z':
            size = bare_size(optarg);
            break;
        case 'B':
            batch = (unsigned)bare_size(optarg);
            break;
        case 'k':
            budget = (unsigned)bare_size(optarg);
            break;
        case 'm':
            mode = strcmp(optarg, "native") ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
            break;
        case 'p':
            bare_pair(optarg, &cpu_from, &cpu_to);
            break;
        default:
            return 2;
        }
    errno = 0;
    const int drop = !strcmp(way, "drop"), udp = !strcmp(way, "udp");
    waiting = !strcmp(way, "wait");
    napping = !strcmp(way, "nap");
    if (optind != argc || batch > FRAMES || size > 1472 || !*from_ns ||
        !(drop || udp || waiting || napping || !strcmp(way, "spin")))
        bare_die("options: --addr A --ns FROM,TO --seconds S --warmup S "
                 "--recv spin | nap | wait | udp | drop --size N (up to 1472) --batch N (up to %u) "
                 "--budget N (frames per call, 0: the kernel's own) --mode generic | native "
                 "--cpus FROM,TO",
                 FRAMES);

    struct bare_port from = {0}, to = {0};
    struct sockaddr_storage address;
    const int room = 4 << 20;
    bare_enter(to_ns);
    socklen_t n = bare_address(host, SOCK_DGRAM, &address);
    int socket_fd = bare_bound(SOCK_DGRAM, &address, n); /* it also keeps the port ours */
    if (address.ss_family != AF_INET ||
        setsockopt(socket_fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
        bare_die("receiver");
    memcpy(&to.address, &address, sizeof to.address);
    bare_find_port(&to);
    int receiver = open_receiver(&to, udp ? socket_fd : -1, drop);

    struct bare_end *ends = bare_ends();
    bare_start(&ends[1], atoi(cpu_to),
               udp    ? recvmmsg_loop
               : drop ? drop_loop
                      : recv_loop,
               receiver);
    bare_enter(from_ns);
    bare_find_source(&from, &to);
    length = bare_frame(frame, &from, &to, size);
    bare_start(&ends[0], atoi(cpu_from), send_loop, open_xsk(from.ifindex, 1));
    struct bare_sum sum = bare_measure(ends, 2, warmup, seconds);
    double mpkt = sum.units[1] / 1e6;
    printf("{\"program\":\"bare_xdp\",\"recv\":\"%s\",\"mode\":\"%s\",\"size\":%zu,\"batch\":%u,"
           "\"budget\":%u,"
           "\"seconds\":%.3f,\"sent_mpps\":%.4f,\"delivered_mpps\":%.4f,\"cpu_s_per_mpkt\":%.4f}\n",
           way, mode == XDP_FLAGS_SKB_MODE ? "generic" : "native", size, batch, budget, sum.seconds,
           sum.units[0] / 1e6 / sum.seconds, mpkt / sum.seconds,
           (sum.cpu_s[0] + sum.cpu_s[1]) / mpkt);
    return 0;
}
