/* bare_packet.c: the ceiling of a packet socket that sends to an ordinary UDP socket.
 *
 * --send sendmmsg | ring   --bypass 0 | 1 (past the queueing discipline)
 * One process sends the same frame again and again, the other reads with recvmmsg. Needs two
 * namespaces, because the frames must come in through an interface.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bare_frame.h"

#include <getopt.h>
#include <linux/if_packet.h>
#include <stdbool.h>

#define BATCH_MAX 1024u
#define SLOT      2048u

static size_t size = 14, length;
static unsigned batch = 64;
static uint8_t frame[SLOT];

/* A full queue loses frames; anything else ends the loop. */
static void lost_or_die(const char *call)
{
    if (errno != ENOBUFS && errno != EAGAIN)
        bare_die("%s", call);
}

static void sendmmsg_loop(struct bare_end *me, int fd)
{
    static struct iovec iov[BATCH_MAX];
    static struct mmsghdr messages[BATCH_MAX];
    for (unsigned i = 0; i < batch; i++) {
        iov[i] = (struct iovec){frame, length};
        messages[i].msg_hdr.msg_iov = &iov[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    for (uint64_t n = 0;;) {
        int sent = sendmmsg(fd, messages, batch, 0);
        if (sent < 0) {
            lost_or_die("sendmmsg");
            continue;
        }
        n += (unsigned)sent;
        bare_count(me, n, n * size);
    }
}

static void ring_loop(struct bare_end *me, int fd)
{
    const int version = TPACKET_V2;
    const struct tpacket_req ring = {.tp_block_size = batch * SLOT,
                                     .tp_block_nr = 1,
                                     .tp_frame_size = SLOT,
                                     .tp_frame_nr = batch};
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &ring, sizeof ring))
        bare_die("ring of %u frames", batch);
    uint8_t *at = mmap(NULL, batch * SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        bare_die("ring");
    const size_t head = sizeof(struct tpacket2_hdr); /* aligned to 16 already */
    for (unsigned i = 0; i < batch; i++)
        memcpy(at + i * SLOT + head, frame, length);
    for (uint64_t n = 0;;) {
        for (unsigned i = 0; i < batch; i++) {
            struct tpacket2_hdr *slot = (struct tpacket2_hdr *)(void *)(at + i * SLOT);
            if (__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE)
                continue;
            slot->tp_len = (uint32_t)length;
            __atomic_store_n(&slot->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
        }
        ssize_t sent = send(fd, NULL, 0, 0);
        if (sent < 0) {
            lost_or_die("send");
            continue;
        }
        n += (size_t)sent / length;
        bare_count(me, n, n * size);
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

static int open_sender(const struct bare_port *from, int bypass)
{
    const struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)from->ifindex};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&to, sizeof to) ||
        setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &bypass, sizeof bypass))
        bare_die("packet socket");
    return fd;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"addr", 1, NULL, 'a'},    {"ns", 1, NULL, 'n'},
                                            {"seconds", 1, NULL, 's'}, {"send", 1, NULL, 'w'},
                                            {"warmup", 1, NULL, 'u'},  {"bypass", 1, NULL, 'b'},
                                            {"size", 1, NULL, 'z'},    {"batch", 1, NULL, 'B'},
                                            {"cpus", 1, NULL, 'p'},    {NULL, 0, NULL, 0}};
    const char *host = "", *way = "sendmmsg", *cpu_from = "-1", *cpu_to = "-1";
    const char *from_ns = "", *to_ns = "";
    double seconds = 5, warmup = 0.5;
    int bypass = 1;
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
        case 'w':
            way = optarg;
            break;
        case 'b':
            bypass = atoi(optarg);
            break;
        case 'z':
            size = bare_size(optarg);
            break;
        case 'B':
            batch = (unsigned)bare_size(optarg);
            break;
        case 'p':
            bare_pair(optarg, &cpu_from, &cpu_to);
            break;
        default:
            return 2;
        }
    errno = 0;
    const bool ring = strcmp(way, "ring") == 0;
    if (optind != argc || batch > BATCH_MAX || size > 1472 || !*from_ns ||
        (!ring && strcmp(way, "sendmmsg") != 0))
        bare_die("options: --addr A --ns FROM,TO --seconds S --warmup S --send sendmmsg | ring "
                 "--bypass 0 | 1 --size N (up to 1472) --batch N (up to %u) --cpus FROM,TO",
                 BATCH_MAX);

    struct bare_port from = {0}, to = {0};
    struct sockaddr_storage address;
    const int room = 4 << 20;
    bare_enter(to_ns);
    socklen_t n = bare_address(host, SOCK_DGRAM, &address);
    int receiver = bare_bound(SOCK_DGRAM, &address, n);
    if (address.ss_family != AF_INET ||
        setsockopt(receiver, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
        bare_die("receiver");
    memcpy(&to.address, &address, sizeof to.address);
    bare_find_port(&to);
    bare_enter(from_ns);
    bare_find_source(&from, &to);
    length = bare_frame(frame, &from, &to, size);

    struct bare_end *ends = bare_ends();
    bare_start(&ends[1], atoi(cpu_to), recvmmsg_loop, receiver);
    bare_start(&ends[0], atoi(cpu_from), ring ? ring_loop : sendmmsg_loop,
               open_sender(&from, bypass));
    struct bare_sum sum = bare_measure(ends, 2, warmup, seconds);
    double mpkt = sum.units[1] / 1e6;
    printf("{\"program\":\"bare_packet\",\"send\":\"%s\",\"bypass\":%d,\"size\":%zu,\"batch\":%u,"
           "\"seconds\":%.3f,\"sent_mpps\":%.4f,\"delivered_mpps\":%.4f,\"cpu_s_per_mpkt\":%.4f}\n",
           way, bypass, size, batch, sum.seconds, sum.units[0] / 1e6 / sum.seconds,
           mpkt / sum.seconds, (sum.cpu_s[0] + sum.cpu_s[1]) / mpkt);
    return 0;
}
