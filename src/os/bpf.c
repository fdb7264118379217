/* bpf.c: see bpf.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/bpf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sys_bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
    long r = syscall(SYS_bpf, cmd, attr, sizeof(*attr));
    return r < 0 ? -errno : (int)r;
}

/* Kernels before 5.11 charge maps and programs to RLIMIT_MEMLOCK, 64 KiB by default, and report the
 * lack as -EPERM. */
static int sys_bpf_locked(enum bpf_cmd cmd, union bpf_attr *attr)
{
    int r = sys_bpf(cmd, attr);
    if (r != -EPERM)
        return r;
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &all) < 0)
        return r;
    return sys_bpf(cmd, attr);
}

static const char *what_to_try(int code)
{
    switch (code) {
    case -EPERM:
    case -EACCES:
        return "; run as root or with CAP_BPF and CAP_NET_ADMIN";
    case -ENOSYS:
        return "; this kernel has no bpf(2)";
    case -EBUSY:
        return "; another XDP program is attached: see 'ip link'";
    default:
        return "";
    }
}

int pt_bpf_map_open(const struct pt_bpf_map_spec *spec, struct pt_err *e)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.map_type = spec->type;
    attr.key_size = spec->key_bytes;
    attr.value_size = spec->value_bytes;
    attr.max_entries = spec->entries;
    snprintf(attr.map_name, sizeof(attr.map_name), "%s", spec->name);
    int fd = sys_bpf_locked(BPF_MAP_CREATE, &attr);
    if (fd < 0)
        return pt_fail(e, fd, "create bpf map '%s' of type %d: %s%s", spec->name, (int)spec->type,
                       pt_strerror(fd), what_to_try(fd));
    return fd;
}

/* The verifier's last line says how many instructions it processed; the reason stands before it. */
static void last_lines(char *log)
{
    size_t n = strlen(log);
    while (n && log[n - 1] == '\n')
        log[--n] = 0;
    size_t keep = 240;
    if (n > keep)
        memmove(log, log + n - keep, keep + 1);
    for (char *p = log; *p; p++)
        if (*p == '\n')
            *p = ' ';
}

int pt_bpf_xdp_load(const struct bpf_insn *insns, size_t n, const char *name, struct pt_err *e)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.prog_type = BPF_PROG_TYPE_XDP;
    attr.insns = (uint64_t)(uintptr_t)insns;
    attr.insn_cnt = (uint32_t)n;
    attr.license = (uint64_t)(uintptr_t) "Apache-2.0";
    snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", name);
    int fd = sys_bpf_locked(BPF_PROG_LOAD, &attr);
    if (fd >= 0)
        return fd;

    /* Asked again for its reasons: a log costs time and fails by itself when it is too small. */
    const uint32_t log_bytes = 65536;
    char *log = calloc(1, log_bytes);
    attr.log_buf = (uint64_t)(uintptr_t)log;
    attr.log_size = log ? log_bytes : 0;
    attr.log_level = log ? 1 : 0;
    int again = sys_bpf(BPF_PROG_LOAD, &attr);
    if (again < 0) {
        if (log)
            last_lines(log);
        pt_fail(e, fd, "load XDP program '%s': %s%s%s%s", name, pt_strerror(fd),
                log && log[0] ? ": " : "", log ? log : "", what_to_try(fd));
    }
    free(log);
    return again >= 0 ? again : fd;
}

int pt_bpf_xdp_link(int prog_fd, unsigned ifindex, uint32_t flags, struct pt_err *e)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.link_create.prog_fd = (uint32_t)prog_fd;
    attr.link_create.target_ifindex = ifindex;
    attr.link_create.attach_type = BPF_XDP;
    attr.link_create.flags = flags;
    int fd = sys_bpf(BPF_LINK_CREATE, &attr);
    if (fd < 0)
        return pt_fail(e, fd, "attach XDP program to interface %u: %s%s", ifindex, pt_strerror(fd),
                       what_to_try(fd));
    return fd;
}

int pt_bpf_map_set(int map_fd, const void *key, const void *value)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.map_fd = (uint32_t)map_fd;
    attr.key = (uint64_t)(uintptr_t)key;
    attr.value = (uint64_t)(uintptr_t)value;
    attr.flags = BPF_ANY;
    return sys_bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

int pt_bpf_map_get(int map_fd, const void *key, void *value)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.map_fd = (uint32_t)map_fd;
    attr.key = (uint64_t)(uintptr_t)key;
    attr.value = (uint64_t)(uintptr_t)value;
    return sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr);
}
