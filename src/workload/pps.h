/* pps.h: what the files of `pitot pps` share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_WORKLOAD_PPS_H
#define PT_WORKLOAD_PPS_H

#include "engine/worker.h"

enum pt_pps_path { PT_PPS_AUTO, PT_PPS_PLAIN, PT_PPS_GSO, PT_PPS_PACKET, PT_PPS_XDP };

struct pt_pps_opts {
    int path; /* enum pt_pps_path */
    bool no_coalesce;
    char search[64];
};

#define PT_PPS_SIZE 14 /* bytes: the cloud guides' message, and sockperf's */

#endif
