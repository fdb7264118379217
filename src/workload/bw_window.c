/* bw_window.c: the receive window of a connection within one machine (docs/METHOD.md).
 *
 * Left to itself it grows to megabytes, which two CPUs then hand each other through memory. Held
 * at what fits their caches the same connection carries up to half as much again. That is true of
 * a direct path only: where the two ends are joined by an emulated link, with delay or a rate, the
 * window has to grow as it would between machines. So it is held where the handshake took no time,
 * and let go again when little comes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/sock.h"
#include "workload/bw.h"

/* Measured: 256 KiB starve the sender, from 576 KiB on CPUs exchange more than their caches hold.
 */
#define WINDOW      (512 << 10)
#define RTT_MOST_US 1000
#define JUDGE_NS    (100 * PT_MS)
#define DIRECT_BPNS 0.625 /* bytes per ns, 5 Gbit/s: a direct path carries more */

void pt_bw_window_hold(struct pt_bw_window *b, struct pt_flow *f)
{
    const struct pt_job_spec *spec = &f->w->job->spec;
    struct pt_tcp_info t;
    if (!spec->same_machine || spec->impairment || spec->shape.chan != PT_CHAN_TCP ||
        spec->shape.ops_per_s > 0 || spec->plan->common.rcvbuf || !(f->dir & PT_DIR_RX))
        return;
    if (pt_tcp_info_read(&t, f->fd) < 0 || t.rtt_us >= RTT_MOST_US ||
        !pt_sock_hold_window(f->fd, WINDOW))
        return;
    b->held = true;
    pt_worker_note(f->w,
                   "receive windows are held at %d KiB, as both ends are on one machine; --rcvbuf "
                   "sets another size",
                   WINDOW >> 10);
}

void pt_bw_window_judge(struct pt_bw_window *b, struct pt_worker *w, pt_ns now)
{
    uint64_t bytes = 0;
    for (int k = 0; k < PT_PHASES; k++)
        bytes += w->st->c[k].rx_bytes;
    if (!b->held || !bytes)
        return;
    if (!b->since) {
        b->since = now;
        b->before = bytes;
    }
    if (now - b->since < JUDGE_NS)
        return;
    b->held = false; /* that was the only question */
    if ((double)(bytes - b->before) / (double)(now - b->since) >= DIRECT_BPNS)
        return;
    for (uint32_t i = 0; i < w->flow_count; i++)
        if (!w->flows[i].dead)
            pt_sock_release_window(w->flows[i].fd, w->job->spec.plan->common.sndbuf > 0);
    pt_worker_note(w, "%s", "");
}
