/* compat_iperf3.h: pitot as the server of stock iperf3 clients: `pitot serve --compat iperf3`.
 *
 * One port, TCP and UDP. The main process accepts and never waits for anybody; each test has a
 * process of its own, as many at once as the caps allow (a stock server refuses the second). A data
 * connection belongs to the test whose cookie it carries, a UDP stream to a test of the same
 * address that waits for one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_SERVICE_COMPAT_IPERF3_H
#define PT_SERVICE_COMPAT_IPERF3_H

#include "service/compat.h"

/* ---- between its two files */

/* What a test's process tells the main one, and what comes back with a descriptor. */
struct pt_compat_word {
    enum { PT_COMPAT_WANTS_UDP = 1, PT_COMPAT_GO, PT_COMPAT_STREAM, PT_COMPAT_LOG } kind;
    uint32_t streams; /* WANTS_UDP: that many; answered by GO when it is this test's turn */
    char text[200];   /* LOG */
};

struct pt_compat_test {
    int control, channel; /* the client; main */
    struct pt_addr peer;
    const struct pt_serve_spec *spec;
};

/* The whole test; the exit status. */
int pt_compat_iperf3_test(struct pt_compat_test *t);

#endif
