/* bare_udp.c: the ceiling of small datagrams: one process sends, one receives, each way the kernel
 * offers.
 *
 * --send send | sendto | sendmmsg | gso   --recv recv | recvmmsg | gro | uring | look
 * Counts datagrams given to the receiving process (a coalesced read counts every datagram it
 * holds). With
 * --pairs N there are N flows, both ends of each on a core of their own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bare.h"

#include <getopt.h>
#include <liburing.h>
#include <linux/udp.h>

#define BATCH_MAX 128
#define READ_MAX  65536u

static size_t size = 14;
static unsigned batch = 64, read_batch = 64;
static struct sockaddr_storage peer;
static socklen_t peer_size;

static void *memory(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                    -1, 0);
    if (at == MAP_FAILED)
        bare_die("no memory");
    return at;
}

/* An ICMP refusal or a full queue loses the datagram; anything else ends the loop. */
static int passing(void)
{
    return errno == ECONNREFUSED || errno == ENOBUFS || errno == EAGAIN;
}

static void send_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = memory(READ_MAX);
    for (uint64_t n = 0;;) {
        if (send(fd, buf, size, 0) == (ssize_t)size) {
            n++;
            bare_count(me, n, n * size);
        } else if (!passing())
            bare_die("send");
    }
}

static void sendto_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = memory(READ_MAX);
    for (uint64_t n = 0;;) {
        if (sendto(fd, buf, size, 0, (struct sockaddr *)&peer, peer_size) == (ssize_t)size) {
            n++;
            bare_count(me, n, n * size);
        } else if (!passing())
            bare_die("sendto");
    }
}

static void sendmmsg_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = memory(READ_MAX);
    static struct mmsghdr message[BATCH_MAX];
    struct iovec iov = {buf, size};
    for (unsigned i = 0; i < batch; i++)
        message[i].msg_hdr = (struct msghdr){.msg_iov = &iov, .msg_iovlen = 1};
    for (uint64_t n = 0;;) {
        int sent = sendmmsg(fd, message, batch, 0);
        if (sent > 0) {
            n += (uint64_t)sent;
            bare_count(me, n, n * size);
        } else if (!passing())
            bare_die("sendmmsg");
    }
}

static void gso_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = memory(READ_MAX);
    int segment = (int)size;
    if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment))
        bare_die("UDP_SEGMENT");
    for (uint64_t n = 0;;) {
        if (send(fd, buf, size * batch, 0) > 0) {
            n += batch;
            bare_count(me, n, n * size);
        } else if (!passing())
            bare_die("send of %u segments of %zu bytes", batch, size);
    }
}

static void recv_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = memory(READ_MAX);
    uint64_t bytes = 0;
    for (uint64_t n = 1;; n++) {
        ssize_t got = recv(fd, buf, READ_MAX, 0);
        if (got < 0)
            bare_die("recv");
        bytes += (uint64_t)got;
        bare_count(me, n, bytes);
    }
}

/* Never woken by a packet: reads what is there, then sleeps 200 us, as an interface with interrupt
 * moderation does. */
static void look_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = memory(READ_MAX);
    uint64_t bytes = 0, n = 0;
    prctl(PR_SET_TIMERSLACK, 1);
    for (;;) {
        ssize_t got = recv(fd, buf, READ_MAX, MSG_DONTWAIT);
        if (got >= 0) {
            bytes += (uint64_t)got;
            bare_count(me, ++n, bytes);
        } else if (errno == EAGAIN) {
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        } else {
            bare_die("recv");
        }
    }
}

static void recvmmsg_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = memory(2048 * BATCH_MAX);
    static struct mmsghdr message[BATCH_MAX];
    static struct iovec iov[BATCH_MAX];
    for (unsigned i = 0; i < read_batch; i++) {
        iov[i] = (struct iovec){buf + 2048 * (size_t)i, 2048};
        message[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
    }
    uint64_t bytes = 0;
    for (uint64_t n = 0;;) {
        int got = recvmmsg(fd, message, read_batch, MSG_WAITFORONE, NULL);
        if (got < 0)
            bare_die("recvmmsg");
        for (int i = 0; i < got; i++)
            bytes += message[i].msg_len;
        n += (uint64_t)got;
        bare_count(me, n, bytes);
    }
}

/* Datagrams in a coalesced read: its length over the segment size the kernel told. */
static uint64_t segments(struct msghdr *m, size_t length)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int segment;
            memcpy(&segment, CMSG_DATA(c), sizeof segment);
            return segment > 0 ? (length + (size_t)segment - 1) / (size_t)segment : 1;
        }
    return 1;
}

static void gro_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = memory(READ_MAX);
    int on = 1;
    if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on))
        bare_die("UDP_GRO");
    uint64_t bytes = 0;
    for (uint64_t n = 0;;) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        struct iovec iov = {buf, READ_MAX};
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof control};
        ssize_t got = recvmsg(fd, &m, 0);
        if (got < 0)
            bare_die("recvmsg");
        bytes += (uint64_t)got;
        n += segments(&m, (size_t)got);
        bare_count(me, n, bytes);
    }
}

/* Multishot receive into provided buffers, waking for every completion: waiting for more of them
 * starves when completions are deferred. */
static void uring_loop(struct bare_end *me, int fd)
{
    enum { BUFFERS = 1024, BUFFER = 2048 };
    uint8_t *buf = memory((size_t)BUFFERS * BUFFER);
    struct io_uring_buf_ring *provided = memory(BUFFERS * sizeof(struct io_uring_buf));
    struct io_uring ring;
    struct io_uring_params params = {.flags = IORING_SETUP_CQSIZE | IORING_SETUP_SINGLE_ISSUER |
                                              IORING_SETUP_DEFER_TASKRUN,
                                     .cq_entries = 4 * BUFFERS};
    struct io_uring_buf_reg reg = {
        .ring_addr = (uint64_t)(uintptr_t)provided, .ring_entries = BUFFERS, .bgid = 0};
    int rc = io_uring_queue_init_params(64, &ring, &params);
    if (rc == 0)
        rc = io_uring_register_buf_ring(&ring, &reg, 0);
    errno = -rc;
    if (rc)
        bare_die("io_uring");
    io_uring_buf_ring_init(provided);
    for (unsigned i = 0; i < BUFFERS; i++)
        io_uring_buf_ring_add(provided, buf + (size_t)i * BUFFER, BUFFER, (unsigned short)i,
                              io_uring_buf_ring_mask(BUFFERS), (int)i);
    io_uring_buf_ring_advance(provided, BUFFERS);
    uint64_t n = 0, bytes = 0;
    for (int armed = 0;;) {
        if (!armed) {
            struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
            if (!sqe)
                bare_die("io_uring: queue full");
            io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
            sqe->flags |= IOSQE_BUFFER_SELECT;
            sqe->buf_group = 0;
            armed = 1;
        }
        io_uring_submit_and_wait(&ring, 1);
        struct io_uring_cqe *cqe;
        unsigned head, seen = 0, given = 0;
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            seen++;
            armed &= (cqe->flags & IORING_CQE_F_MORE) != 0;
            if (cqe->res >= 0 && (cqe->flags & IORING_CQE_F_BUFFER)) {
                unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
                io_uring_buf_ring_add(provided, buf + (size_t)id * BUFFER, BUFFER,
                                      (unsigned short)id, io_uring_buf_ring_mask(BUFFERS),
                                      (int)given++);
                bytes += (uint64_t)cqe->res;
            } else if (cqe->res < 0 && cqe->res != -ENOBUFS) {
                errno = -cqe->res;
                bare_die("io_uring recv");
            }
        }
        n += given;
        io_uring_buf_ring_advance(provided, (int)given);
        io_uring_cq_advance(&ring, seen);
        bare_count(me, n, bytes);
    }
}

struct way {
    const char *name;
    void (*loop)(struct bare_end *, int);
};
static const struct way senders[] = {{"send", send_loop},
                                     {"sendto", sendto_loop},
                                     {"sendmmsg", sendmmsg_loop},
                                     {"gso", gso_loop},
                                     {NULL, NULL}};
static const struct way receivers[] = {{"recv", recv_loop}, {"recvmmsg", recvmmsg_loop},
                                       {"gro", gro_loop},   {"uring", uring_loop},
                                       {"look", look_loop}, {NULL, NULL}};

static const struct way *find(const struct way *list, const char *name)
{
    for (; list->name; list++)
        if (!strcmp(list->name, name))
            return list;
    errno = 0;
    bare_die("no way called %s", name);
}

static void connect_pair(const char *from, const char *to, const char *host, int rcvbuf,
                         int connected, int fd[2])
{
    bare_enter(to);
    peer_size = bare_address(host, SOCK_DGRAM, &peer);
    fd[1] = bare_bound(SOCK_DGRAM, &peer, peer_size);
    if (rcvbuf && setsockopt(fd[1], SOL_SOCKET, SO_RCVBUFFORCE, &rcvbuf, sizeof rcvbuf) &&
        setsockopt(fd[1], SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf))
        bare_die("receive buffer of %d bytes", rcvbuf);
    bare_enter(from);
    fd[0] = socket(peer.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd[0] < 0 || (connected && connect(fd[0], (struct sockaddr *)&peer, peer_size)))
        bare_die("connect to %s", host);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"addr", 1, NULL, 'a'},   {"ns", 1, NULL, 'n'},     {"seconds", 1, NULL, 's'},
        {"warmup", 1, NULL, 'u'}, {"send", 1, NULL, 'w'},   {"recv", 1, NULL, 'r'},
        {"size", 1, NULL, 'z'},   {"batch", 1, NULL, 'b'},  {"cpus", 1, NULL, 'p'},
        {"pairs", 1, NULL, 'P'},  {"rcvbuf", 1, NULL, 'R'}, {"read-batch", 1, NULL, 'B'},
        {NULL, 0, NULL, 0}};
    const char *host = "127.0.0.1", *from = "", *to = "", *cpu_from = "-1", *cpu_to = "-1";
    const struct way *out = &senders[0], *in = &receivers[0];
    double seconds = 5, warmup = 0.5;
    int pairs = 1, rcvbuf = 0;
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (o) {
        case 'a':
            host = optarg;
            break;
        case 'n':
            bare_pair(optarg, &from, &to);
            break;
        case 's':
            seconds = atof(optarg);
            break;
        case 'u':
            warmup = atof(optarg);
            break;
        case 'w':
            out = find(senders, optarg);
            break;
        case 'r':
            in = find(receivers, optarg);
            break;
        case 'z':
            size = bare_size(optarg);
            break;
        case 'b':
            batch = (unsigned)bare_size(optarg);
            break;
        case 'B':
            read_batch = (unsigned)bare_size(optarg);
            break;
        case 'p':
            bare_pair(optarg, &cpu_from, &cpu_to);
            break;
        case 'P':
            pairs = atoi(optarg);
            break;
        case 'R':
            rcvbuf = (int)bare_size(optarg);
            break;
        default:
            return 2;
        }
    errno = 0;
    if (optind != argc || pairs < 1 || pairs > BARE_ENDS_MAX / 2 || batch > BATCH_MAX ||
        read_batch > BATCH_MAX || size > 2048)
        bare_die("options: --addr A --ns FROM,TO --seconds S --warmup S --send WAY --recv WAY "
                 "--size N (up to "
                 "2048) --batch N --read-batch N (up to %d) --cpus FROM,TO --pairs N --rcvbuf N",
                 BATCH_MAX);
    struct bare_end *ends = bare_ends();
    for (int i = 0; i < pairs; i++) {
        int fd[2], own = (int)((long)i % sysconf(_SC_NPROCESSORS_ONLN));
        connect_pair(from, to, host, rcvbuf, out->loop != sendto_loop, fd);
        bare_start(&ends[2 * i + 1], pairs > 1 ? own : atoi(cpu_to), in->loop, fd[1]);
        bare_start(&ends[2 * i], pairs > 1 ? own : atoi(cpu_from), out->loop, fd[0]);
    }
    struct bare_sum sum = bare_measure(ends, 2 * pairs, warmup, seconds);
    double mpkt = sum.units[1] / 1e6;
    printf("{\"program\":\"bare_udp\",\"send\":\"%s\",\"recv\":\"%s\",\"size\":%zu,\"batch\":%u,"
           "\"pairs\":%d,"
           "\"seconds\":%.3f,\"sent_mpps\":%.4f,\"delivered_mpps\":%.4f,\"cpu_s_per_mpkt\":%.4f}\n",
           out->name, in->name, size, batch, pairs, sum.seconds, sum.units[0] / 1e6 / sum.seconds,
           mpkt / sum.seconds, (sum.cpu_s[0] + sum.cpu_s[1]) / mpkt);
    return 0;
}
