/* bare_pingpong.c: the floor of a round trip: one message to and fro, blocking or spinning.
 *
 * --proto tcp | udp   --mode block | spin | uring (spinning on an io_uring at both ends)
 * Prints percentiles of half the round trip, as sockperf does, from every single sample.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "bare.h"

#include <getopt.h>
#include <liburing.h>
#include <netinet/tcp.h>

#define SAMPLES_MAX 8000000u

static size_t size = 14;
static int flags;
static uint8_t message[2048];

/* Whole messages only: a stream may deliver one in pieces. */
static void take(int fd)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = recv(fd, message + got, size - got, flags);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            bare_die("recv");
    }
}

static void give(int fd)
{
    if (send(fd, message, size, flags) != (ssize_t)size)
        bare_die("send");
}

static void uring_one(struct io_uring *ring, int fd, int sending)
{
    for (size_t done = 0; done < size;) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
        if (!sqe)
            bare_die("io_uring: queue full");
        if (sending)
            io_uring_prep_send(sqe, fd, message + done, size - done, 0);
        else
            io_uring_prep_recv(sqe, fd, message + done, size - done, 0);
        io_uring_submit_and_get_events(ring);
        struct io_uring_cqe *cqe;
        while (io_uring_peek_cqe(ring, &cqe))
            io_uring_get_events(ring);
        errno = cqe->res < 0 ? -cqe->res : 0;
        if (cqe->res <= 0)
            bare_die("io_uring");
        done += (size_t)cqe->res;
        io_uring_cqe_seen(ring, cqe);
    }
}

static void uring_open(struct io_uring *ring)
{
    int rc = io_uring_queue_init(8, ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    errno = -rc;
    if (rc)
        bare_die("io_uring");
}

static void echo_loop(struct bare_end *me, int fd)
{
    for (uint64_t n = 1;; n++) {
        take(fd);
        give(fd);
        bare_count(me, n, n * size);
    }
}

static void uring_echo_loop(struct bare_end *me, int fd)
{
    struct io_uring ring;
    uring_open(&ring);
    for (uint64_t n = 1;; n++) {
        uring_one(&ring, fd, 0);
        uring_one(&ring, fd, 1);
        bare_count(me, n, n * size);
    }
}

/* Fills `samples` with round trips until `until`; returns how many there are. */
static size_t ask(int fd, int through_ring, uint64_t until, uint32_t *samples)
{
    struct io_uring ring;
    if (through_ring)
        uring_open(&ring);
    size_t n = 0;
    for (uint64_t began = bare_now_ns(); began < until && n < SAMPLES_MAX;) {
        if (through_ring) {
            uring_one(&ring, fd, 1);
            uring_one(&ring, fd, 0);
        } else {
            give(fd);
            take(fd);
        }
        uint64_t ended = bare_now_ns();
        samples[n++] = (uint32_t)(ended - began);
        began = ended;
    }
    if (through_ring)
        io_uring_queue_exit(&ring);
    return n;
}

static void connect_pair(const char *from, const char *to, const char *host, int type, int fd[2])
{
    struct sockaddr_storage at, back;
    bare_enter(to);
    socklen_t length = bare_address(host, type, &at);
    fd[1] = bare_bound(type, &at, length);
    if (type == SOCK_STREAM && listen(fd[1], 1))
        bare_die("listen");
    bare_enter(from);
    fd[0] = socket(at.ss_family, type | SOCK_CLOEXEC, 0);
    if (fd[0] < 0 || connect(fd[0], (struct sockaddr *)&at, length))
        bare_die("connect to %s", host);
    int on = 1;
    if (type == SOCK_STREAM) {
        fd[1] = accept(fd[1], NULL, NULL);
        if (fd[1] < 0 || setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
            setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
            bare_die("TCP_NODELAY");
    } else if (getsockname(fd[0], (struct sockaddr *)&back, &length) ||
               connect(fd[1], (struct sockaddr *)&back, length))
        bare_die("connect back");
}

static int ascending(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static double half_us(const uint32_t *sorted, size_t n, double share)
{
    size_t at = (size_t)(share * (double)n);
    return sorted[at < n ? at : n - 1] / 2000.0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"addr", 1, NULL, 'a'},   {"ns", 1, NULL, 'n'},    {"seconds", 1, NULL, 's'},
        {"warmup", 1, NULL, 'u'}, {"proto", 1, NULL, 'k'}, {"mode", 1, NULL, 'm'},
        {"size", 1, NULL, 'z'},   {"cpus", 1, NULL, 'p'},  {NULL, 0, NULL, 0}};
    const char *host = "127.0.0.1", *from = "", *to = "", *proto = "tcp", *mode = "block";
    const char *cpu_from = "-1", *cpu_to = "-1";
    double seconds = 5, warmup = 0.3;
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
        case 'k':
            proto = optarg;
            break;
        case 'm':
            mode = optarg;
            break;
        case 'z':
            size = bare_size(optarg);
            break;
        case 'p':
            bare_pair(optarg, &cpu_from, &cpu_to);
            break;
        default:
            return 2;
        }
    int stream = !strcmp(proto, "tcp"), ring = !strcmp(mode, "uring");
    flags = !strcmp(mode, "spin") ? MSG_DONTWAIT : 0;
    errno = 0;
    if (optind != argc || size > sizeof message || (!stream && strcmp(proto, "udp")) ||
        (!ring && !flags && strcmp(mode, "block")))
        bare_die("options: --addr A --ns FROM,TO --seconds S --warmup S --proto tcp|udp --mode "
                 "block|spin|uring "
                 "--size N (up to 2048) --cpus FROM,TO");
    alarm((unsigned)(seconds + warmup) + 10);
    int fd[2];
    connect_pair(from, to, host, stream ? SOCK_STREAM : SOCK_DGRAM, fd);
    uint32_t *samples = malloc(SAMPLES_MAX * sizeof *samples);
    if (!samples)
        bare_die("no memory");
    memset(samples, 0, SAMPLES_MAX * sizeof *samples);
    struct bare_end *echo = bare_ends();
    bare_start(echo, atoi(cpu_to), ring ? uring_echo_loop : echo_loop, fd[1]);
    bare_pin(atoi(cpu_from));
    size_t n = ask(fd[0], ring, bare_now_ns() + (uint64_t)(warmup * 1e9), samples);
    n = ask(fd[0], ring, bare_now_ns() + (uint64_t)(seconds * 1e9), samples);
    bare_kill(echo, 1);
    qsort(samples, n, sizeof *samples, ascending);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += samples[i];
    printf(
        "{\"program\":\"bare_pingpong\",\"proto\":\"%s\",\"mode\":\"%s\",\"size\":%zu,\"count\":%"
        "zu,"
        "\"half_mean_us\":%.3f,\"half_p50_us\":%.3f,\"half_p99_us\":%.3f,\"half_p99_9_us\":%.3f}\n",
        proto, mode, size, n, sum / (double)n / 2000, half_us(samples, n, 0.5),
        half_us(samples, n, 0.99), half_us(samples, n, 0.999));
    free(samples);
    return 0;
}
