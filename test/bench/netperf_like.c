/* netperf_like.c: the cloud recipe as netperf runs it: many flows, each a sender and a receiver
 * process.
 *
 * netperf is not in Debian main; this does what its processes do. `udp` (UDP_STREAM -m N): an
 * unconnected sendto per message, the receiver one recvfrom per datagram. `tcp` (TCP_STREAM): a
 * blocking send of as many bytes as SO_SNDBUF of a fresh socket says (16 KiB with the default
 * tcp_wmem), a blocking recv of as many as its SO_RCVBUF says (128 KiB with the default tcp_rmem).
 * No pinning, default buffers. All flows run when the window opens, which flatters a recipe whose
 * processes start one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bare.h"

#include <getopt.h>
#include <netinet/tcp.h>

static size_t size;
static struct sockaddr_storage peer;
static socklen_t peer_size;
static uint8_t *buf;

static void udp_send_loop(struct bare_end *me, int fd)
{
    for (uint64_t n = 0;;) {
        if (sendto(fd, buf, size, 0, (struct sockaddr *)&peer, peer_size) == (ssize_t)size) {
            n++;
            bare_count(me, n, n * size);
        } else if (errno != ENOBUFS && errno != ECONNREFUSED)
            bare_die("sendto");
    }
}

static void udp_recv_loop(struct bare_end *me, int fd)
{
    uint64_t bytes = 0;
    for (uint64_t n = 1;; n++) {
        struct sockaddr_storage from;
        socklen_t length = sizeof from;
        ssize_t got = recvfrom(fd, buf, 65536, 0, (struct sockaddr *)&from, &length);
        if (got < 0)
            bare_die("recvfrom");
        bytes += (uint64_t)got;
        bare_count(me, n, bytes);
    }
}

static size_t buffer_of(int fd, int which)
{
    int bytes = 0;
    socklen_t length = sizeof bytes;
    if (getsockopt(fd, SOL_SOCKET, which, &bytes, &length) || bytes < 1)
        bare_die("socket buffer size");
    return (size_t)bytes;
}

static void tcp_send_loop(struct bare_end *me, int fd)
{
    uint64_t bytes = 0;
    for (uint64_t n = 1;; n++) {
        ssize_t sent = send(fd, buf, size, 0);
        if (sent <= 0)
            bare_die("send");
        bytes += (uint64_t)sent;
        bare_count(me, n, bytes);
    }
}

static size_t read_size;

static void tcp_recv_loop(struct bare_end *me, int fd)
{
    uint64_t bytes = 0;
    for (uint64_t n = 1;; n++) {
        ssize_t got = recv(fd, buf, read_size, 0);
        if (got <= 0)
            bare_die("recv");
        bytes += (uint64_t)got;
        bare_count(me, n, bytes);
    }
}

static void open_pair(int stream, const char *from, const char *to, const char *host,
                      const char *cc, int fd[2])
{
    int type = stream ? SOCK_STREAM : SOCK_DGRAM;
    bare_enter(to);
    peer_size = bare_address(host, type, &peer);
    fd[1] = bare_bound(type, &peer, peer_size);
    bare_enter(from);
    fd[0] = socket(peer.ss_family, type | SOCK_CLOEXEC, 0);
    if (fd[0] < 0)
        bare_die("socket");
    if (!stream)
        return;
    size = buffer_of(fd[0], SO_SNDBUF);
    read_size = buffer_of(fd[1], SO_RCVBUF);
    int listener = fd[1];
    if (*cc && setsockopt(fd[0], IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)))
        bare_die("congestion control %s", cc);
    if (listen(listener, 1) || connect(fd[0], (struct sockaddr *)&peer, peer_size))
        bare_die("connect to %s", host);
    fd[1] = accept(listener, NULL, NULL);
    if (fd[1] < 0)
        bare_die("accept");
    close(listener);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"addr", 1, NULL, 'a'},   {"ns", 1, NULL, 'n'},   {"seconds", 1, NULL, 's'},
        {"warmup", 1, NULL, 'u'}, {"mode", 1, NULL, 'm'}, {"flows", 1, NULL, 'f'},
        {"size", 1, NULL, 'z'},   {"cc", 1, NULL, 'c'},   {NULL, 0, NULL, 0}};
    const char *host = "127.0.0.1", *from = "", *to = "", *cc = "", *mode = "udp";
    double seconds = 5, warmup = 0.5;
    int flows = 64;
    size_t asked = 1;
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
        case 'm':
            mode = optarg;
            break;
        case 'f':
            flows = atoi(optarg);
            break;
        case 'z':
            asked = bare_size(optarg);
            break;
        case 'c':
            cc = optarg;
            break;
        default:
            return 2;
        }
    int stream = !strcmp(mode, "tcp");
    errno = 0;
    if (optind != argc || flows < 1 || flows > BARE_ENDS_MAX / 2 || asked > 65507 ||
        (!stream && strcmp(mode, "udp")))
        bare_die("options: --mode udp|tcp --flows N --size N (udp) --cc NAME (tcp) --addr A --ns "
                 "FROM,TO "
                 "--seconds S --warmup S");
    buf = calloc(1, 8 << 20);
    if (!buf)
        bare_die("no memory");
    size = asked;
    struct bare_end *ends = bare_ends();
    for (int i = 0; i < flows; i++) {
        int fd[2];
        open_pair(stream, from, to, host, cc, fd);
        bare_start(&ends[2 * i + 1], -1, stream ? tcp_recv_loop : udp_recv_loop, fd[1]);
        bare_start(&ends[2 * i], -1, stream ? tcp_send_loop : udp_send_loop, fd[0]);
        close(fd[0]);
        close(fd[1]);
    }
    struct bare_sum sum = bare_measure(ends, 2 * flows, warmup, seconds);
    double cpu = sum.cpu_s[0] + sum.cpu_s[1];
    printf(
        "{\"program\":\"netperf_like\",\"mode\":\"%s\",\"flows\":%d,\"size\":%zu,\"seconds\":%.3f,"
        "\"sent_mpps\":%.4f,\"delivered_mpps\":%.4f,\"gbit_s\":%.3f,\"cpu_s_per_mpkt\":%.4f,"
        "\"cpu_s_per_GB\":%.4f}\n",
        mode, flows, size, sum.seconds, sum.units[0] / 1e6 / sum.seconds,
        sum.units[1] / 1e6 / sum.seconds, sum.bytes[1] * 8 / 1e9 / sum.seconds,
        cpu / (sum.units[1] / 1e6), cpu / (sum.bytes[1] / 1e9));
    free(buf);
    return 0;
}
