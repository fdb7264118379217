/* xsk.h: an AF_XDP socket: whole Ethernet frames to and from one queue of one interface.
 *
 * One socket belongs to one worker process. It owns a memory area of equal frames, one half for
 * sending and one for receiving, and four rings shared with the kernel. Sending in copy mode works
 * on every interface; receiving needs an XDP program that redirects to the socket (xdp.h). Nothing
 * here allocates after pt_xsk_open.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_XSK_H
#define PT_OS_XSK_H

#include "base/err.h"
#include "base/types.h"

struct pt_xsk_spec {
    unsigned ifindex, queue;
    unsigned tx_frames;    /* 0: no sending; else a power of two, at most 65536 */
    unsigned rx_frames;    /* 0: no receiving; else a power of two, at most 65536 */
    unsigned frame_bytes;  /* 0: 2048; else 2048 or 4096. A packet must fit, less 256 on receive */
    bool copy_only;        /* do not let the driver work on our frames directly (zero copy) */
    unsigned busy_poll_us; /* 0: off; else SO_PREFER_BUSY_POLL: the waiting call runs the driver */
};

/* A ring shared with the kernel: producer and consumer run freely, the mask gives the slot. */
struct pt_xsk_ring {
    uint32_t *producer, *consumer; /* shared, acquire/release */
    const uint32_t *flags;         /* XDP_RING_NEED_WAKEUP */
    void *slots;                   /* uint64_t frame addresses, or struct xdp_desc */
    uint32_t mask;
    uint32_t at;   /* our own end of it */
    uint32_t seen; /* the kernel's end when last looked */
    void *map;
    size_t map_bytes;
};

struct pt_xsk_stats {
    uint64_t rx_dropped;             /* no descriptor could be made: frame too long, socket dying */
    uint64_t rx_ring_full;           /* we read too slowly */
    uint64_t rx_fill_ring_empty;     /* likewise: no free frame to receive into */
    uint64_t rx_invalid, tx_invalid; /* descriptors of ours that the kernel refused: a defect */
    uint64_t tx_ring_empty;          /* the kernel was ready to send and found nothing */
    uint64_t tx_dropped; /* taken from the ring and dropped by the interface (copy mode) */
    uint64_t tx_kicks;   /* system calls made to send */
};

struct pt_xsk {
    int fd;         /* -1 when closed; may be polled */
    bool zero_copy; /* what the driver granted */
    unsigned frame_bytes, tx_frames, rx_frames;
    uint8_t *area; /* tx frames, then rx frames */
    size_t area_bytes;
    struct pt_xsk_ring tx, completion, rx, fill;
    uint64_t *tx_free; /* a stack of the addresses of frames that are ours to write */
    uint32_t tx_free_n;
    uint64_t tx_dropped, tx_kicks;
};

struct pt_xsk_packet {
    const uint8_t *bytes; /* from the Ethernet header on */
    uint32_t len;
};

/* -EPERM: CAP_NET_RAW is missing; -EBUSY: another socket owns the queue, and still did after 0.3 s;
 * -EINVAL, -ENXIO: the interface has no such queue; -EAFNOSUPPORT: the kernel has no AF_XDP. On
 * failure nothing is left open. Binds with zero copy where the driver has it, else copying;
 * `zero_copy` says which. */
int pt_xsk_open(struct pt_xsk *x, const struct pt_xsk_spec *spec, struct pt_err *e) PT_MUST_USE;
void pt_xsk_close(struct pt_xsk *x);

/* Up to `n` frames that may be written; returns how many, 0 while all are still with the kernel
 * (kick, then try again). A frame still holds what was last written to it, but frames come back in
 * any order: pt_xsk_frame_index tells which one it is. The next reservation replaces this one. */
unsigned pt_xsk_tx_reserve(struct pt_xsk *x, unsigned n, uint8_t *frames[]) PT_MUST_USE;
/* Hands the first `n` reserved frames to the kernel, `len` bytes each. Nothing moves before a kick.
 */
void pt_xsk_tx_submit(struct pt_xsk *x, unsigned n, uint32_t len);
/* Makes the kernel send what was submitted; in copy mode one call sends a limited number (32 on
 * older kernels). 0 when all of it was taken, 1 when some is left (call again), or a negative errno
 * (-ENETDOWN, -ENXIO: the interface went away). */
int pt_xsk_tx_kick(struct pt_xsk *x) PT_MUST_USE;
/* Submitted and not yet taken by the kernel. */
unsigned pt_xsk_tx_unsent(const struct pt_xsk *x);
/* Frames that the kernel still holds: unsent ones, and taken ones not yet reported complete. */
unsigned pt_xsk_tx_pending(const struct pt_xsk *x);

/* Up to `max` packets that have arrived, oldest first; 0 when none. They stay valid until released;
 * peeking again before a release gives the same ones. */
unsigned pt_xsk_rx_peek(struct pt_xsk *x, struct pt_xsk_packet packets[], unsigned max) PT_MUST_USE;
/* Gives the oldest `n` peeked packets' frames back to the kernel. */
void pt_xsk_rx_release(struct pt_xsk *x, unsigned n);

/* Sleeps until a packet can be read, or `timeout_ns` (negative: no limit; 0: only look). 1 ready,
 * 0 not, or a negative errno (-EINTR included). */
int pt_xsk_rx_wait(struct pt_xsk *x, pt_ns timeout_ns) PT_MUST_USE;

int pt_xsk_stats(const struct pt_xsk *x, struct pt_xsk_stats *out) PT_MUST_USE;

/* Which frame of the area this is: 0 .. tx_frames-1 for sending, then the receive frames. */
static inline unsigned pt_xsk_frame_index(const struct pt_xsk *x, const uint8_t *frame)
{
    return (unsigned)((size_t)(frame - x->area) / x->frame_bytes);
}

#endif
