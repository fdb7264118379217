/* packet_tx.c: see packet_tx.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/packet_tx.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAMES_MOST = 1024, FRAME_LEAST = 14, FRAME_MOST = 65536 };

struct pt_packet_tx {
    int fd;
    unsigned frames;
    size_t stride; /* from frame to frame, a multiple of the cache line */
    uint8_t *area;
    uint32_t len; /* what every iov says now */
    struct iovec *iov;
    struct mmsghdr *messages;
};

static int open_socket(struct pt_packet_tx *p, const struct pt_packet_tx_spec *spec)
{
    p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (p->fd < 0)
        return -errno;
    const int on = 1;
    if (spec->qdisc_bypass &&
        setsockopt(p->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) < 0)
        return -errno;
    /* Protocol 0: nothing is received, so nothing has to be thrown away. */
    const struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)spec->ifindex};
    if (bind(p->fd, (const struct sockaddr *)(const void *)&to, sizeof(to)) < 0)
        return -errno;
    return 0;
}

static int make_frames(struct pt_packet_tx *p, const struct pt_packet_tx_spec *spec)
{
    p->frames = spec->frames;
    p->stride = (spec->frame_bytes + PT_CACHE_LINE - 1) / PT_CACHE_LINE * PT_CACHE_LINE;
    void *area = mmap(NULL, p->stride * p->frames, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (area == MAP_FAILED)
        return -errno;
    p->area = area;
    p->iov = calloc(p->frames, sizeof(*p->iov));
    p->messages = calloc(p->frames, sizeof(*p->messages));
    if (!p->iov || !p->messages)
        return -ENOMEM;
    for (unsigned i = 0; i < p->frames; i++) {
        p->iov[i].iov_base = p->area + i * p->stride;
        p->messages[i].msg_hdr.msg_iov = &p->iov[i];
        p->messages[i].msg_hdr.msg_iovlen = 1;
    }
    return 0;
}

int pt_packet_tx_open(struct pt_packet_tx **out, const struct pt_packet_tx_spec *spec,
                      struct pt_err *e)
{
    *out = NULL;
    if (spec->frames < 1 || spec->frames > FRAMES_MOST || spec->frame_bytes < FRAME_LEAST ||
        spec->frame_bytes > FRAME_MOST)
        return pt_fail(e, -EINVAL, "packet socket with %u frames of %u bytes: not possible",
                       spec->frames, spec->frame_bytes);
    struct pt_packet_tx *p = calloc(1, sizeof(*p));
    if (!p)
        return pt_fail(e, -ENOMEM, "packet socket: out of memory");
    int r = open_socket(p, spec);
    if (r == 0)
        r = make_frames(p, spec);
    if (r < 0) {
        pt_packet_tx_close(p);
        return pt_fail(e, r, "packet socket on interface %u: %s%s", spec->ifindex, pt_strerror(r),
                       r == -EPERM ? "; run as root or with CAP_NET_RAW" : "");
    }
    *out = p;
    return 0;
}

void pt_packet_tx_close(struct pt_packet_tx *p)
{
    if (!p)
        return;
    if (p->fd >= 0)
        close(p->fd);
    if (p->area)
        munmap(p->area, p->stride * p->frames);
    free(p->iov);
    free(p->messages);
    free(p);
}

uint8_t *pt_packet_tx_frame(struct pt_packet_tx *p, unsigned i)
{
    return p->area + i * p->stride;
}

int pt_packet_tx_send(struct pt_packet_tx *p, unsigned first, unsigned n, uint32_t len)
{
    if (len > p->stride || first + n > p->frames)
        return -EMSGSIZE;
    if (p->len != len) {
        for (unsigned i = 0; i < p->frames; i++)
            p->iov[i].iov_len = len;
        p->len = len;
    }
    int r = sendmmsg(p->fd, p->messages + first, n, 0);
    return r < 0 ? -errno : r;
}
