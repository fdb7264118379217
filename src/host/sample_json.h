/* sample_json.h: from looks at a host to the figures of the result document (`hosts`).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_HOST_SAMPLE_JSON_H
#define PT_HOST_SAMPLE_JSON_H

#include "host/sample.h"

#include <jansson.h>

/* What happened between two looks, one of them `hosts` entry without name, role and kernel:
 * cpu, load, load_per_cpu, memory, process, net, tcp, udp, softnet, sampling. A new reference;
 * NULL: no memory. */
json_t *pt_host_json(const struct pt_host_sample *from, const struct pt_host_sample *to);

/* ---- one interval of the series */

enum pt_host_figure {
    PT_HOST_USER, /* user and nice */
    PT_HOST_SYSTEM,
    PT_HOST_IOWAIT,
    PT_HOST_IRQ,
    PT_HOST_SOFTIRQ,
    PT_HOST_STEAL,
    PT_HOST_IDLE,
    PT_HOST_BUSIEST, /* percent of the busiest CPU */
    PT_HOST_RX_PACKETS,
    PT_HOST_TX_PACKETS,
    PT_HOST_RX_KB,
    PT_HOST_TX_KB,
    PT_HOST_RETRANSMITS, /* per second */
    PT_HOST_FIGURES
};

struct pt_host_point {
    double t_s, span_s;        /* its end, from the start of the window; its length */
    double v[PT_HOST_FIGURES]; /* percent of all CPUs; per second; -1: unknown */
    int busiest;               /* which CPU; -1: unknown */
};

void pt_host_point_make(struct pt_host_point *p, const struct pt_host_sample *from,
                        const struct pt_host_sample *to, double t_s);
/* Two neighbours become one: means over their time, the busier of the busiest CPUs. */
void pt_host_point_join(struct pt_host_point *first, const struct pt_host_point *second);
json_t *pt_host_point_json(const struct pt_host_point *p);

/* What a peer that is not trusted sent, rebuilt from what is known: other keys, wrong types and
 * long texts are gone; with its `environment`. A new reference; NULL: nothing of it can be used. */
json_t *pt_host_clean(const json_t *from);

#endif
