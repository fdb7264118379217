/* channel.h: what the flows of a test run over, and the options of their sockets, at both ends.
 *
 * The control connection decides: over a unix socket the stream flows are unix sockets too. The
 * asking side sets options before it connects; the answering side is handed connected sockets and
 * sets on them what counts at its end (congestion control and type of service of what it sends, its
 * buffers).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_ENGINE_CHANNEL_H
#define PT_ENGINE_CHANNEL_H

#include "engine/workload.h"
#include "net/addr.h"
#include "net/sock.h"

/* Fits the shape to the way to `peer`. -EINVAL: the test, or an option that was given, makes no
 * sense over it. */
int pt_channel_choose(struct pt_shape *s, const struct pt_plan *plan, const struct pt_addr *peer,
                      struct pt_err *e) PT_MUST_USE;

/* What the plan asks of a flow's socket. */
void pt_channel_options(struct pt_sockopts *o, const struct pt_common *c, const struct pt_shape *s);

/* The rest of it, on a flow's socket that is open: the answering side's options, and room for
 * datagrams at a receiver whose buffer nobody chose. */
int pt_channel_equip(int fd, const struct pt_common *c, const struct pt_shape *s, enum pt_side side,
                     struct pt_err *e) PT_MUST_USE;

/* What the kernel granted, with a note on what differs from what was asked, and on the room that a
 * receiver of datagrams has. */
void pt_channel_granted(struct pt_sock_granted *g, int fd, const struct pt_common *c,
                        const struct pt_shape *s, bool receives);

#endif
