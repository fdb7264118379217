/* echo_conn.h: one TCP connection of the echo service, with an impaired path of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SERVICE_ECHO_CONN_H
#define PT_SERVICE_ECHO_CONN_H

#include "ev/loop.h"
#include "net/impair_ledger.h"
#include "net/impair_queue.h"

struct pt_echo_conn {
    int fd;     /* -1: not in use */
    bool ended; /* to be closed by the owner, outside of any callback */
    bool polling, sending, leaving, eof;
    struct pt_loop *loop;
    struct pt_impair_ledger *ledger;
    struct pt_impair_record *record;
    struct pt_impair_queue queue;
    struct pt_departure departure; /* of the send under way */
    struct pt_op poll, send;
    struct pt_timer timer;
};

/* Takes `fd` (blocking mode) on 0; on a negative errno it stays the caller's. */
int pt_echo_conn_open(struct pt_echo_conn *c, struct pt_loop *loop,
                      const struct pt_impairment *impairment, int fd) PT_MUST_USE;
void pt_echo_conn_close(struct pt_echo_conn *c);

#endif
