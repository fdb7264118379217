/* xsk.c: see xsk.h. The rings are the kernel's (Documentation/networking/af_xdp.rst): each has one
 * producer and one consumer, and the only ordering needed is release on one's own index and acquire
 * on the other's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/xsk.h"

#include "os/clock.h"

#include <errno.h>
#include <linux/if_xdp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Newer than the headers of the oldest distribution built on. */
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#endif
#ifndef SO_BUSY_POLL_BUDGET
#define SO_BUSY_POLL_BUDGET 70
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

enum { FRAMES_MOST = 65536, FRAME_BYTES = 2048, KICK_BUDGET = 256 };

static uint32_t load_acquire(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void store_release(uint32_t *p, uint32_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static uint64_t *address_slot(const struct pt_xsk_ring *r, uint32_t i)
{
    return &((uint64_t *)r->slots)[i & r->mask];
}

static struct xdp_desc *desc_slot(const struct pt_xsk_ring *r, uint32_t i)
{
    return &((struct xdp_desc *)r->slots)[i & r->mask];
}

static bool wants_wakeup(const struct pt_xsk_ring *r)
{
    return __atomic_load_n(r->flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP;
}

/* opening */

static int map_ring(struct pt_xsk_ring *r, int fd, const struct xdp_ring_offset *off, uint64_t page,
                    uint32_t slots, size_t slot_bytes)
{
    r->map_bytes = off->desc + slots * slot_bytes;
    r->map = mmap(NULL, r->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                  (off_t)page);
    if (r->map == MAP_FAILED) {
        r->map = NULL;
        return -errno;
    }
    uint8_t *base = r->map;
    r->producer = (uint32_t *)(void *)(base + off->producer);
    r->consumer = (uint32_t *)(void *)(base + off->consumer);
    r->flags = (uint32_t *)(void *)(base + off->flags);
    r->slots = base + off->desc;
    r->mask = slots - 1;
    return 0;
}

static int set_option(int fd, int option, const void *value, size_t n)
{
    return setsockopt(fd, SOL_XDP, option, value, (socklen_t)n) < 0 ? -errno : 0;
}

/* Shared, because the kernel pins these pages: after a fork the child would have copies of private
 * ones. The area counts against RLIMIT_MEMLOCK where CAP_IPC_LOCK is missing. */
static int register_area(struct pt_xsk *x)
{
    x->area_bytes = (size_t)(x->tx_frames + x->rx_frames) * x->frame_bytes;
    void *area = mmap(NULL, x->area_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (area == MAP_FAILED)
        return -errno;
    x->area = area;
    const struct xdp_umem_reg reg = {
        .addr = (uint64_t)(uintptr_t)area, .len = x->area_bytes, .chunk_size = x->frame_bytes};
    int r = set_option(x->fd, XDP_UMEM_REG, &reg, sizeof(reg));
    if (r != -ENOBUFS && r != -EPERM)
        return r;
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &all) < 0)
        return r;
    return set_option(x->fd, XDP_UMEM_REG, &reg, sizeof(reg));
}

/* The fill and the completion ring must exist even where they are not used. */
static int make_rings(struct pt_xsk *x)
{
    const uint32_t fill = x->rx_frames ? x->rx_frames : 1;
    const uint32_t completion = x->tx_frames ? x->tx_frames : 1;
    int r = set_option(x->fd, XDP_UMEM_FILL_RING, &fill, sizeof(fill));
    if (r == 0)
        r = set_option(x->fd, XDP_UMEM_COMPLETION_RING, &completion, sizeof(completion));
    if (r == 0 && x->tx_frames)
        r = set_option(x->fd, XDP_TX_RING, &x->tx_frames, sizeof(x->tx_frames));
    if (r == 0 && x->rx_frames)
        r = set_option(x->fd, XDP_RX_RING, &x->rx_frames, sizeof(x->rx_frames));
    if (r < 0)
        return r;

    struct xdp_mmap_offsets off;
    socklen_t n = sizeof(off);
    if (getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &off, &n) < 0)
        return -errno;
    r = map_ring(&x->fill, x->fd, &off.fr, XDP_UMEM_PGOFF_FILL_RING, fill, sizeof(uint64_t));
    if (r == 0)
        r = map_ring(&x->completion, x->fd, &off.cr, XDP_UMEM_PGOFF_COMPLETION_RING, completion,
                     sizeof(uint64_t));
    if (r == 0 && x->tx_frames)
        r = map_ring(&x->tx, x->fd, &off.tx, XDP_PGOFF_TX_RING, x->tx_frames,
                     sizeof(struct xdp_desc));
    if (r == 0 && x->rx_frames)
        r = map_ring(&x->rx, x->fd, &off.rx, XDP_PGOFF_RX_RING, x->rx_frames,
                     sizeof(struct xdp_desc));
    return r;
}

static int own_frames(struct pt_xsk *x)
{
    if (x->tx_frames) {
        x->tx_free = malloc(x->tx_frames * sizeof(*x->tx_free));
        if (!x->tx_free)
            return -ENOMEM;
        for (uint32_t i = 0; i < x->tx_frames; i++)
            x->tx_free[i] = (uint64_t)i * x->frame_bytes;
        x->tx_free_n = x->tx_frames;
    }
    for (uint32_t i = 0; i < x->rx_frames; i++)
        *address_slot(&x->fill, i) = (uint64_t)(x->tx_frames + i) * x->frame_bytes;
    x->fill.at = x->rx_frames;
    store_release(x->fill.producer, x->fill.at);
    return 0;
}

/* Improvements that older kernels do not know: their refusal is no error. */
static void tune(struct pt_xsk *x, unsigned busy_poll_us)
{
    if (x->tx_frames) {
        const uint32_t budget = x->tx_frames < KICK_BUDGET ? x->tx_frames : KICK_BUDGET;
        (void)set_option(x->fd, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
        const int sndbuf = 4 << 20;
        (void)setsockopt(x->fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf));
    }
    if (busy_poll_us) {
        const int on = 1, us = (int)busy_poll_us, budget = 64;
        (void)setsockopt(x->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &on, sizeof(on));
        (void)setsockopt(x->fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof(us));
        (void)setsockopt(x->fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget, sizeof(budget));
    }
}

#define RELEASE_NS 300000000 /* a busy queue: how long it is waited for */

static int bind_queue(struct pt_xsk *x, const struct pt_xsk_spec *spec)
{
    struct sockaddr_xdp to = {.sxdp_family = AF_XDP,
                              .sxdp_flags = XDP_USE_NEED_WAKEUP,
                              .sxdp_ifindex = spec->ifindex,
                              .sxdp_queue_id = spec->queue};
    if (spec->copy_only)
        to.sxdp_flags |= XDP_COPY; /* else the kernel tries zero copy first, then copies */
    /* The kernel gives a closed socket's queue back a little later: wait for that, not for a live
     * one. */
    pt_ns give_up = pt_clock_now() + RELEASE_NS;
    while (bind(x->fd, (const struct sockaddr *)(const void *)&to, sizeof(to)) < 0) {
        if (errno != EBUSY || pt_clock_now() >= give_up)
            return -errno;
        pt_clock_sleep_until(pt_clock_now() + RELEASE_NS / 100);
    }
    struct xdp_options options = {0};
    socklen_t n = sizeof(options);
    if (getsockopt(x->fd, SOL_XDP, XDP_OPTIONS, &options, &n) == 0)
        x->zero_copy = options.flags & XDP_OPTIONS_ZEROCOPY;
    return 0;
}

static bool frames_valid(unsigned n)
{
    return n <= FRAMES_MOST && (n & (n - 1)) == 0;
}

static int open_socket(struct pt_xsk *x, const struct pt_xsk_spec *spec, struct pt_err *e)
{
    if (!frames_valid(spec->tx_frames) || !frames_valid(spec->rx_frames) ||
        spec->tx_frames + spec->rx_frames == 0 ||
        (x->frame_bytes != 2048 && x->frame_bytes != 4096))
        return pt_fail(e, -EINVAL, "AF_XDP socket with %u + %u frames of %u bytes: not possible",
                       spec->tx_frames, spec->rx_frames, x->frame_bytes);
    x->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (x->fd < 0) {
        int code = -errno;
        return pt_fail(e, code,
                       "open an AF_XDP socket: %s; it needs root (CAP_NET_RAW) and a "
                       "kernel with XDP_SOCKETS",
                       pt_strerror(code));
    }
    int r = register_area(x);
    if (r == 0)
        r = make_rings(x);
    if (r == 0)
        r = own_frames(x);
    if (r < 0)
        return pt_fail(e, r, "prepare an AF_XDP socket with %zu bytes of frames: %s", x->area_bytes,
                       pt_strerror(r));
    tune(x, spec->busy_poll_us);
    r = bind_queue(x, spec);
    if (r < 0)
        return pt_fail(e, r, "bind an AF_XDP socket to queue %u of interface %u: %s%s", spec->queue,
                       spec->ifindex, pt_strerror(r),
                       r == -EBUSY    ? "; another socket has this queue"
                       : r == -EINVAL ? "; it has fewer queues: see 'ethtool -l'"
                                      : "");
    return 0;
}

int pt_xsk_open(struct pt_xsk *x, const struct pt_xsk_spec *spec, struct pt_err *e)
{
    *x = (struct pt_xsk){.fd = -1,
                         .frame_bytes = spec->frame_bytes ? spec->frame_bytes : FRAME_BYTES,
                         .tx_frames = spec->tx_frames,
                         .rx_frames = spec->rx_frames};
    int r = open_socket(x, spec, e);
    if (r < 0)
        pt_xsk_close(x);
    return r;
}

static void unmap_ring(struct pt_xsk_ring *r)
{
    if (r->map)
        munmap(r->map, r->map_bytes);
    *r = (struct pt_xsk_ring){0};
}

void pt_xsk_close(struct pt_xsk *x)
{
    unmap_ring(&x->tx);
    unmap_ring(&x->rx);
    unmap_ring(&x->fill);
    unmap_ring(&x->completion);
    if (x->fd >= 0)
        close(x->fd);
    if (x->area)
        munmap(x->area, x->area_bytes);
    free(x->tx_free);
    x->fd = -1;
    x->area = NULL;
    x->tx_free = NULL;
}

/* sending */

/* Frames come back in any order: an skb may be freed on another CPU, or dropped early. The ones
 * that came last are used next, while their bytes are still in the cache. */
static void collect_completions(struct pt_xsk *x)
{
    struct pt_xsk_ring *r = &x->completion;
    uint32_t until = load_acquire(r->producer);
    if (until == r->at)
        return;
    for (; r->at != until; r->at++)
        x->tx_free[x->tx_free_n++] = *address_slot(r, r->at);
    store_release(r->consumer, r->at);
}

unsigned pt_xsk_tx_reserve(struct pt_xsk *x, unsigned n, uint8_t *frames[])
{
    if (x->tx_free_n < n)
        collect_completions(x);
    if (n > x->tx_free_n)
        n = x->tx_free_n;
    for (unsigned i = 0; i < n; i++)
        frames[i] = x->area + x->tx_free[x->tx_free_n - 1 - i];
    return n;
}

void pt_xsk_tx_submit(struct pt_xsk *x, unsigned n, uint32_t len)
{
    struct pt_xsk_ring *r = &x->tx;
    for (unsigned i = 0; i < n; i++)
        *desc_slot(r, r->at++) = (struct xdp_desc){.addr = x->tx_free[--x->tx_free_n], .len = len};
    store_release(r->producer, r->at);
}

unsigned pt_xsk_tx_unsent(const struct pt_xsk *x)
{
    return x->tx.at - load_acquire(x->tx.consumer);
}

unsigned pt_xsk_tx_pending(const struct pt_xsk *x)
{
    return x->tx_frames - x->tx_free_n - (load_acquire(x->completion.producer) - x->completion.at);
}

int pt_xsk_tx_kick(struct pt_xsk *x)
{
    if (pt_xsk_tx_unsent(x) == 0)
        return 0;
    if (wants_wakeup(&x->tx)) {
        x->tx_kicks++;
        if (sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0) {
            if (errno == EBUSY)
                x->tx_dropped++; /* one frame: completed, but the interface dropped it */
            else if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
                return -errno;
        }
    }
    return pt_xsk_tx_unsent(x) ? 1 : 0;
}

/* receiving */

unsigned pt_xsk_rx_peek(struct pt_xsk *x, struct pt_xsk_packet packets[], unsigned max)
{
    struct pt_xsk_ring *r = &x->rx;
    if (r->seen - r->at < max)
        r->seen = load_acquire(r->producer);
    uint32_t n = r->seen - r->at;
    if (n > max)
        n = max;
    for (uint32_t i = 0; i < n; i++) {
        const struct xdp_desc *d = desc_slot(r, r->at + i);
        packets[i] = (struct pt_xsk_packet){.bytes = x->area + d->addr, .len = d->len};
    }
    return n;
}

void pt_xsk_rx_release(struct pt_xsk *x, unsigned n)
{
    struct pt_xsk_ring *r = &x->rx, *fill = &x->fill;
    for (unsigned i = 0; i < n; i++) /* never full: it has a slot for every receive frame */
        *address_slot(fill, fill->at++) =
            desc_slot(r, r->at++)->addr & ~(uint64_t)(x->frame_bytes - 1);
    store_release(r->consumer, r->at);
    store_release(fill->producer, fill->at);
    if (wants_wakeup(fill))
        (void)recvfrom(x->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

int pt_xsk_rx_wait(struct pt_xsk *x, pt_ns timeout_ns)
{
    if (load_acquire(x->rx.producer) != x->rx.at)
        return 1;
    struct pollfd p = {.fd = x->fd, .events = POLLIN};
    const struct timespec limit = {.tv_sec = (time_t)(timeout_ns / PT_S),
                                   .tv_nsec = (long)(timeout_ns % PT_S)};
    int r = ppoll(&p, 1, timeout_ns < 0 ? NULL : &limit, NULL);
    if (r < 0)
        return -errno;
    if (r > 0 && !(p.revents & POLLIN))
        return -ENETDOWN;
    return r;
}

int pt_xsk_stats(const struct pt_xsk *x, struct pt_xsk_stats *out)
{
    struct xdp_statistics s = {0};
    socklen_t n = sizeof(s);
    if (getsockopt(x->fd, SOL_XDP, XDP_STATISTICS, &s, &n) < 0)
        return -errno;
    *out = (struct pt_xsk_stats){.rx_dropped = s.rx_dropped,
                                 .rx_ring_full = s.rx_ring_full,
                                 .rx_fill_ring_empty = s.rx_fill_ring_empty_descs,
                                 .rx_invalid = s.rx_invalid_descs,
                                 .tx_invalid = s.tx_invalid_descs,
                                 .tx_ring_empty = s.tx_ring_empty_descs,
                                 .tx_dropped = x->tx_dropped,
                                 .tx_kicks = x->tx_kicks};
    return 0;
}
