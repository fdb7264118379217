/* bare_tcp.c: the ceiling of TCP bulk: one process writes blocks, one reads them, nothing else.
 *
 * Prints what arrived in the receiver's window and the CPU both ends spent for it. With --pairs N
 * there are N streams, both ends of each on a core of their own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bare.h"

#include <getopt.h>
#include <netinet/tcp.h>

static size_t write_size = 1 << 20, read_size = 1 << 20;
static int read_flags;

static uint8_t *block(size_t size)
{
    uint8_t *at = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
    if (!at)
        bare_die("no memory");
    memset(at, 0x5a, size);
    return at;
}

static void send_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = block(write_size);
    uint64_t bytes = 0;
    for (uint64_t calls = 1;; calls++) {
        ssize_t n = write(fd, buf, write_size);
        if (n <= 0)
            break;
        bytes += (uint64_t)n;
        bare_count(me, calls, bytes);
    }
    free(buf);
}

static void recv_loop(struct bare_end *me, int fd)
{
    uint8_t *buf = block(read_size);
    uint64_t bytes = 0;
    for (uint64_t calls = 1;; calls++) {
        ssize_t n = recv(fd, buf, read_size, read_flags);
        if (n <= 0)
            break;
        bytes += (uint64_t)n;
        bare_count(me, calls, bytes);
    }
    free(buf);
}

static void connect_pair(const char *from, const char *to, const char *host, const char *cc,
                         int fd[2])
{
    struct sockaddr_storage at;
    bare_enter(to);
    socklen_t size = bare_address(host, SOCK_STREAM, &at);
    int listener = bare_bound(SOCK_STREAM, &at, size);
    if (*cc && setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc)))
        bare_die("congestion control %s", cc);
    if (listen(listener, 1))
        bare_die("listen");
    bare_enter(from);
    fd[0] = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd[0] < 0 ||
        (*cc && setsockopt(fd[0], IPPROTO_TCP, TCP_CONGESTION, cc, (socklen_t)strlen(cc))))
        bare_die("congestion control %s", cc);
    if (connect(fd[0], (struct sockaddr *)&at, size))
        bare_die("connect to %s", host);
    fd[1] = accept(listener, NULL, NULL);
    if (fd[1] < 0)
        bare_die("accept");
    close(listener);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"addr", 1, NULL, 'a'},   {"ns", 1, NULL, 'n'},    {"seconds", 1, NULL, 's'},
        {"warmup", 1, NULL, 'u'}, {"write", 1, NULL, 'w'}, {"read", 1, NULL, 'r'},
        {"cc", 1, NULL, 'c'},     {"cpus", 1, NULL, 'p'},  {"trunc", 0, NULL, 't'},
        {"pairs", 1, NULL, 'P'},  {NULL, 0, NULL, 0}};
    const char *host = "127.0.0.1", *from = "", *to = "", *cc = "", *cpu_from = "-1",
               *cpu_to = "-1";
    double seconds = 5, warmup = 0.5;
    int pairs = 1;
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
            write_size = bare_size(optarg);
            break;
        case 'r':
            read_size = bare_size(optarg);
            break;
        case 'c':
            cc = optarg;
            break;
        case 'p':
            bare_pair(optarg, &cpu_from, &cpu_to);
            break;
        case 't':
            read_flags = MSG_TRUNC;
            break;
        case 'P':
            pairs = atoi(optarg);
            break;
        default:
            return 2;
        }
    errno = 0;
    if (optind != argc || pairs < 1 || pairs > BARE_ENDS_MAX / 2)
        bare_die(
            "options: --addr A --ns FROM,TO --seconds S --warmup S --write N --read N --cc NAME "
            "--cpus FROM,TO --trunc --pairs N");
    int fd[BARE_ENDS_MAX];
    for (int i = 0; i < pairs; i++)
        connect_pair(from, to, host, cc, &fd[2 * i]);
    struct bare_end *ends = bare_ends();
    for (int i = 0; i < 2 * pairs; i++) {
        int own = (int)((long)(i / 2) % sysconf(_SC_NPROCESSORS_ONLN));
        int cpu = pairs > 1 ? own : atoi(i & 1 ? cpu_to : cpu_from);
        bare_start(&ends[i], cpu, i & 1 ? recv_loop : send_loop, fd[i]);
    }
    struct bare_sum sum = bare_measure(ends, 2 * pairs, warmup, seconds);
    double gb = sum.bytes[1] / 1e9;
    printf("{\"program\":\"bare_tcp\",\"write\":%zu,\"read\":%zu,\"trunc\":%d,\"pairs\":%d,\"cc\":"
           "\"%s\","
           "\"seconds\":%.3f,\"gbit_s\":%.3f,\"cpu_s_per_GB\":%.4f,\"sender_cpu_s_per_GB\":%.4f,"
           "\"receiver_cpu_s_per_GB\":%.4f}\n",
           write_size, read_size, read_flags != 0, pairs, cc, sum.seconds, gb * 8 / sum.seconds,
           (sum.cpu_s[0] + sum.cpu_s[1]) / gb, sum.cpu_s[0] / gb, sum.cpu_s[1] / gb);
    return 0;
}
