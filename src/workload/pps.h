/* pps.h: what the files of `pitot pps` share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_WORKLOAD_PPS_H
#define PT_WORKLOAD_PPS_H

#include "engine/search.h"
#include "engine/worker.h"
#include "os/link.h"
#include "os/route.h"

enum pt_pps_path { PT_PPS_AUTO, PT_PPS_PLAIN, PT_PPS_GSO, PT_PPS_PACKET, PT_PPS_XDP };

struct pt_pps_opts {
    int path; /* enum pt_pps_path */
    bool no_coalesce;
    struct pt_search_limit search;
};

#define PT_PPS_SIZE 14 /* bytes: the cloud guides' message, and sockperf's */

/* What a worker counts in `extra`, all phases together. */
enum {
    PT_PPS_RING_FULL,  /* frames lost because we read an AF_XDP ring too slowly */
    PT_PPS_FILL_EMPTY, /* times that the kernel found no free frame to receive into */
    PT_PPS_RX_DROPPED, /* frames that an AF_XDP socket lost for any other reason */
    PT_PPS_STRANGE,    /* frames that came in that way and are none of this test's datagrams */
};

/* One end of a flow. */
struct pt_pps_flow {
    uint64_t number;
    size_t size, batch;
    enum pt_dgram_form form;
    uint8_t *bytes; /* `batch` datagrams; packet, xdp: the frame that all others are copied from */
    size_t header;  /* packet, xdp: its length before the datagram */
    struct pt_seq seq;
    struct pt_seq_books scrap; /* what came outside the window */
};

struct pt_packet_tx;
struct pt_pps_rings;

struct pt_pps_worker {
    struct pt_packet_tx *packet; /* packet, sending */
    struct pt_pps_rings *rings;  /* xdp */
};

static inline enum pt_pps_path pt_pps_path(const struct pt_plan *p)
{
    return (enum pt_pps_path)((const struct pt_pps_opts *)p->params)->path;
}

size_t pt_pps_size(const struct pt_plan *p);
/* What all datagrams of a flow have in common behind the number. */
void pt_pps_fill(const struct pt_pps_flow *p, uint8_t *datagram);

/* ---- pps_frame.c: frames of our own making, past the sender's IP stack */

/* What the supervisor finds out before the fork; pt_job_spec.path. */
struct pt_pps_way {
    struct pt_route route; /* to the peer; its MAC addresses where this end sends */
    struct pt_link link;
    struct pt_pps_door *door; /* xdp, where this end receives */
};

/* pt_workload.reach, open and close for `packet` and `xdp`; the others need none. */
int pt_pps_reach(const struct pt_plan *plan, enum pt_side side, const struct pt_addr *peer,
                 struct pt_shape *s, struct pt_err *e) PT_MUST_USE;
int pt_pps_open(struct pt_job_spec *spec, struct pt_err *e) PT_MUST_USE;
void pt_pps_close(struct pt_job_spec *spec);

/* Builds the frame of a sending flow from the addresses of its socket. */
int pt_pps_frame_init(struct pt_flow *f, struct pt_err *e) PT_MUST_USE;
/* Makes `frame`, zero or written by us before, the flow's frame with this number. */
void pt_pps_frame_write(struct pt_pps_flow *p, uint8_t *frame, uint64_t number, bool measured);
static inline size_t pt_pps_frame_len(const struct pt_pps_flow *p)
{
    return p->header + p->size;
}

/* ---- pps_packet.c */

int pt_pps_packet_init(struct pt_worker *w, struct pt_err *e) PT_MUST_USE;
void pt_pps_packet_fini(struct pt_worker *w);
/* Up to `n` datagrams of the flow; as pt_workload.on_due. */
int pt_pps_packet_send(struct pt_flow *f, unsigned n, bool measured);

/* ---- pps_xdp.c */

#define PT_PPS_XDP_FLOWS 4096 /* connections at most */
/* Bytes of a frame in the rings, and what of a received packet fits into one. */
unsigned pt_pps_xdp_frame(size_t packet);
#define PT_PPS_XDP_PACKET (4096 - 256)

/* The receiving end: attaches the program to the interface of `way` for the peers of spec->fds. */
int pt_pps_door_open(struct pt_pps_way *way, const struct pt_job_spec *spec,
                     struct pt_err *e) PT_MUST_USE;
void pt_pps_door_close(struct pt_pps_door *door);

int pt_pps_xdp_init(struct pt_worker *w, struct pt_err *e) PT_MUST_USE;
void pt_pps_xdp_fini(struct pt_worker *w);
int pt_pps_xdp_send(struct pt_flow *f, unsigned n, bool measured);
/* pt_workload.on_poll */
int pt_pps_xdp_poll(struct pt_worker *w, pt_ns now);
/* What the receiver's rings lost, and why. */
void pt_pps_xdp_report(const struct pt_report *rep, struct pt_result *r);

/* pps_choose.c: pt_workload.choose. */
int pt_pps_choose(struct pt_plan *plan, const struct pt_addr_list *to, json_t *chosen,
                  struct pt_err *e);

#endif
