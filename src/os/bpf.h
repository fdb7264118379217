/* bpf.h: the few bpf(2) calls that an XDP program needs, without a library.
 *
 * Everything is a file descriptor and nothing is pinned: when the last process holding one ends,
 * however it ends, the kernel detaches and frees it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_BPF_H
#define PT_OS_BPF_H

#include "base/err.h"
#include "base/types.h"

#include <linux/bpf.h>

struct pt_bpf_map_spec {
    enum bpf_map_type type;
    uint32_t key_bytes, value_bytes, entries;
    const char *name; /* at most 15 characters, shown by bpftool */
};

/* Each returns a close-on-exec descriptor, or a negative errno with the reason in `e`. -EPERM means
 * that CAP_BPF and CAP_NET_ADMIN (or root) are missing, -ENOSYS that the kernel has no bpf(2). */
int pt_bpf_map_open(const struct pt_bpf_map_spec *spec, struct pt_err *e) PT_MUST_USE;
int pt_bpf_xdp_load(const struct bpf_insn *insns, size_t n, const char *name,
                    struct pt_err *e) PT_MUST_USE;
/* Attaches an XDP program. `flags` is XDP_FLAGS_DRV_MODE or XDP_FLAGS_SKB_MODE. -EBUSY: another
 * program is attached already. */
int pt_bpf_xdp_link(int prog_fd, unsigned ifindex, uint32_t flags, struct pt_err *e) PT_MUST_USE;

/* Key and value as the map was made; a per-CPU value is an array over all possible CPUs. 0 or a
 * negative errno. */
int pt_bpf_map_set(int map_fd, const void *key, const void *value) PT_MUST_USE;
int pt_bpf_map_get(int map_fd, const void *key, void *value) PT_MUST_USE;

#endif
