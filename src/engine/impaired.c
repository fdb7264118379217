/* impaired.c: see impaired.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine/impaired.h"

#include "net/impair_ledger.h"
#include "net/impair_queue.h"
#include "os/clock.h"

#include <stdlib.h>

#define SLOTS       16384
#define STREAM_SLOT (64u * 1024)

struct pt_impaired {
    struct pt_worker *w;
    const struct pt_impairment *how;
    struct pt_impair_record *record;
    struct pt_impair_queue queue;
    bool queue_open, stream, held_back;
    uint32_t ending; /* flows that end when the path has delivered them */
    struct flow {
        struct pt_impair_flow path;
        bool ending;
    } flows[]; /* by index in the worker */
};

int pt_impaired_new(struct pt_impaired **out, struct pt_worker *w, const struct pt_impairment *how,
                    struct pt_err *e)
{
    struct pt_impaired *im = calloc(1, sizeof(*im) + w->flow_count * sizeof(im->flows[0]));
    if (!im)
        return pt_fail(e, -ENOMEM, "no memory for an impaired path");
    im->w = w;
    im->how = how;
    im->stream = w->shape->chan != PT_CHAN_UDP;
    for (uint32_t i = 0; i < w->flow_count; i++)
        im->flows[i].path.ctx = &w->flows[i];
    uint64_t salt = 0;
    im->record = pt_impair_claim(how->ledger, &salt);
    if (!im->record) {
        free(im);
        return pt_fail(e, -EBUSY, "too many impaired paths at once; try fewer sessions");
    }
    uint32_t slot = im->stream ? STREAM_SLOT : (uint32_t)w->shape->recv_size;
    uint32_t slots = im->stream ? 1024 : SLOTS;
    int rc = im->stream ? pt_impair_check_stream(&how->spec, e) : 0;
    if (rc == 0)
        rc = pt_impair_queue_init(&im->queue, &how->spec, im->record, salt, im->stream, slots, slot,
                                  e);
    if (rc < 0) {
        pt_impair_give_back(how->ledger, im->record);
        free(im);
        return rc;
    }
    im->queue_open = true;
    *out = im;
    return 0;
}

void pt_impaired_free(struct pt_impaired *im)
{
    if (!im)
        return;
    if (im->queue_open)
        pt_impair_queue_fini(&im->queue);
    pt_impair_give_back(im->how->ledger, im->record);
    free(im);
}

/* Streams: reads on only while the path has room. */
static void read_or_not(struct pt_impaired *im, pt_ns now)
{
    if (!im->stream || pt_impair_reads(&im->queue, now, im->w->shape->recv_size) == !im->held_back)
        return;
    im->held_back = !im->held_back;
    for (uint32_t i = 0; i < im->w->flow_count; i++) {
        struct pt_flow *f = &im->w->flows[i];
        if (f->dead || im->flows[i].ending || !(f->dir & PT_DIR_RX))
            continue;
        if (im->held_back) {
            pt_recv_pause(im->w->loop, &f->rx);
        } else {
            int rc = pt_recv_resume(im->w->loop, &f->rx);
            if (rc < 0)
                pt_flow_end(f, rc);
        }
    }
}

static void offer(struct pt_impaired *im, struct pt_flow *f, const uint8_t *bytes, size_t n,
                  pt_ns now)
{
    int rc = pt_impair_offer(&im->queue, now, &im->flows[f->index].path, NULL, 0, bytes, n);
    if (rc < 0 && im->stream)
        pt_flow_end(f, rc);
}

void pt_impaired_offer(struct pt_impaired *im, struct pt_flow *f, const uint8_t *bytes, size_t n,
                       const struct pt_recv_meta *meta, pt_ns now)
{
    size_t piece = im->stream ? STREAM_SLOT : meta && meta->seg ? meta->seg : n;
    size_t at = 0;
    /* A datagram came when the kernel took it, however late we are to look: what is injected does
     * not depend on who had the CPU meanwhile. */
    if (meta && meta->kernel_ns)
        now = pt_clock_of_stamp(meta->kernel_ns);
    do {
        size_t m = n - at < piece ? n - at : piece;
        offer(im, f, bytes ? bytes + at : NULL, m, now); /* NULL: discarded by the kernel */
        at += m;
    } while (at < n && !f->dead);
    read_or_not(im, now);
}

pt_ns pt_impaired_next(const struct pt_impaired *im)
{
    return pt_impair_next(&im->queue);
}

/* A stream loses nothing: the path has delivered it when the last chunk offered has left. */
static bool is_delivered(const struct flow *f)
{
    return f->path.high == f->path.offered;
}

static void end_delivered(struct pt_impaired *im)
{
    for (uint32_t i = 0; im->ending && i < im->w->flow_count; i++) {
        if (!im->flows[i].ending || !is_delivered(&im->flows[i]))
            continue;
        im->flows[i].ending = false;
        im->ending--;
        pt_flow_end(&im->w->flows[i], 0);
    }
}

void pt_impaired_deliver(struct pt_impaired *im, pt_ns now)
{
    struct pt_departure d;
    while (pt_impair_next(&im->queue) <= now &&
           pt_impair_take(&im->queue, pt_loop_touch(im->w->loop), &d)) {
        pt_worker_deliver(d.flow->ctx, d.bytes, d.len, NULL, pt_loop_now(im->w->loop));
        pt_impair_done(&im->queue, &d);
    }
    end_delivered(im);
    read_or_not(im, now);
}

bool pt_impaired_end(struct pt_impaired *im, const struct pt_flow *f)
{
    struct flow *mine = &im->flows[f->index];
    if (!im->stream || is_delivered(mine))
        return false;
    mine->ending = true;
    im->ending++;
    return true;
}

pt_ns pt_impaired_clock(const struct pt_impaired *im, pt_ns now)
{
    return pt_impair_clock(&im->how->spec, im->how->since, now);
}
