/* offload.h: which work of the network stack an interface does, or the stack does in large pieces.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_OFFLOAD_H
#define PT_OS_OFFLOAD_H

#include "base/types.h"

/* Bits, in the order of the names; as ethtool -k calls them in short. */
enum pt_offload {
    PT_OFFLOAD_RX = 1,   /* checksums of what arrives */
    PT_OFFLOAD_TX = 2,   /* checksums of what leaves */
    PT_OFFLOAD_SG = 4,   /* scatter-gather */
    PT_OFFLOAD_TSO = 8,  /* segmentation of TCP */
    PT_OFFLOAD_GSO = 16, /* the same by the stack, as late as possible */
    PT_OFFLOAD_GRO = 32, /* packets that belong together, joined by the stack */
    PT_OFFLOAD_LRO = 64, /* … by the interface */
};
#define PT_OFFLOADS 7

/* "rx", "tx", "sg", "tso", "gso", "gro", "lro" for bit 0, 1, … */
const char *pt_offload_name(unsigned bit);

/* Those that are on; -errno when the interface of that name in the present namespace does not say.
 */
int pt_offload_read(const char *dev) PT_MUST_USE;

#endif
