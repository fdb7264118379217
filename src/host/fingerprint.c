/* fingerprint.c: see fingerprint.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/fingerprint.h"

#include "os/link.h"
#include "os/offload.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Those whose values decide a result most often. */
static const char *const sysctls[] = {
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.rmem_default",
    "net.core.wmem_default",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.somaxconn",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_ecn",
};

static const char *const texts[] = {"platform", "congestion_control", "default_qdisc",
                                    "clock_source", "governor"};
static const char *const if_texts[] = {"kind", "driver", "qdisc", "rps_mask"};
static const char *const if_counts[] = {"mtu", "speed_mbit", "rx_queues", "tx_queues"};

/* ---- one line of a file */

/* The first line, blanks made single; false when there is none or it is too long. */
static bool line_of(const char *root, const char *path, char out[PT_FINGERPRINT_TEXT])
{
    char full[512];
    out[0] = 0;
    if ((size_t)snprintf(full, sizeof(full), "%s/%s", root, path) >= sizeof(full))
        return false;
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, PT_FINGERPRINT_TEXT);
    if (fd >= 0)
        close(fd);
    if (n <= 0 || n == PT_FINGERPRINT_TEXT) {
        out[0] = 0;
        return false;
    }
    out[n] = 0;
    out[strcspn(out, "\n")] = 0;
    for (char *c = out; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    return out[0] != 0;
}

static void add_line(json_t *to, const char *key, const char *root, const char *path)
{
    char text[PT_FINGERPRINT_TEXT];
    if (line_of(root, path, text))
        json_object_set_new(to, key, json_string(text));
}

static void add_sysctls(json_t *to, const char *root)
{
    json_t *all = json_object();
    for (size_t i = 0; i < PT_COUNT(sysctls); i++) {
        char path[96];
        snprintf(path, sizeof(path), "proc/sys/%s", sysctls[i]);
        for (char *c = path; *c; c++)
            *c = *c == '.' ? '/' : *c;
        add_line(all, sysctls[i], root, path);
    }
    json_object_set_new(to, "sysctl", all);
}

/* Who made the virtual machine: firmware says, where there is one, else Xen. */
static void add_platform(json_t *to, const char *root)
{
    char vendor[PT_FINGERPRINT_TEXT], product[PT_FINGERPRINT_TEXT], both[2 * PT_FINGERPRINT_TEXT];
    bool made = line_of(root, "sys/class/dmi/id/sys_vendor", vendor);
    bool named = line_of(root, "sys/class/dmi/id/product_name", product);
    snprintf(both, sizeof(both), "%s%s%s", vendor, made && named ? " " : "", product);
    both[PT_FINGERPRINT_TEXT - 1] = 0;
    if (made || named)
        json_object_set_new(to, "platform", json_string(both));
    else
        add_line(to, "platform", root, "sys/hypervisor/type");
}

/* ---- interfaces */

/* The folder in sysfs is of the namespace that sysfs was mounted in: it is this interface's only
 * when its number and its address are the same. */
static bool sysfs_is_ours(const char *root, const struct pt_link *l)
{
    char path[96], text[PT_FINGERPRINT_TEXT], mac[24];
    snprintf(path, sizeof(path), "sys/class/net/%s/ifindex", l->name);
    if (!line_of(root, path, text) || strtoul(text, NULL, 10) != l->ifindex)
        return false;
    snprintf(path, sizeof(path), "sys/class/net/%s/address", l->name);
    snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", l->mac[0], l->mac[1], l->mac[2],
             l->mac[3], l->mac[4], l->mac[5]);
    return line_of(root, path, text) && !strcmp(text, mac);
}

static int by_number(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* The interrupts in a folder msi_irqs, whose entries are their numbers. */
static size_t interrupts(const char *root, const char *folder, unsigned irq[PT_FINGERPRINT_IRQS])
{
    char full[512];
    size_t n = 0;
    snprintf(full, sizeof(full), "%s/%s", root, folder);
    DIR *all = opendir(full);
    for (const struct dirent *f; all && n < PT_FINGERPRINT_IRQS && (f = readdir(all));) {
        if (f->d_name[0] >= '0' && f->d_name[0] <= '9')
            irq[n++] = (unsigned)strtoul(f->d_name, NULL, 10);
    }
    if (all)
        closedir(all);
    qsort(irq, n, sizeof(*irq), by_number);
    return n;
}

static void add_interrupts(json_t *to, const char *root, const char *dev)
{
    char path[128], cpus[PT_FINGERPRINT_TEXT];
    unsigned irq[PT_FINGERPRINT_IRQS];
    snprintf(path, sizeof(path), "sys/class/net/%s/device/msi_irqs", dev);
    size_t n = interrupts(root, path, irq);
    if (!n) { /* a virtio device has its interrupts at the PCI device above */
        snprintf(path, sizeof(path), "sys/class/net/%s/device/../msi_irqs", dev);
        n = interrupts(root, path, irq);
    }
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "proc/irq/%u/effective_affinity_list", irq[i]);
        if (line_of(root, path, cpus))
            json_array_append_new(all,
                                  json_pack("{s:I, s:s}", "irq", (json_int_t)irq[i], "cpus", cpus));
    }
    json_object_set_new(to, "irqs", all);
    snprintf(path, sizeof(path), "sys/class/net/%s/queues/rx-0/rps_cpus", dev);
    add_line(to, "rps_mask", root, path);
}

static json_t *offloads_json(int on)
{
    json_t *all = json_array();
    for (unsigned i = 0; i < PT_OFFLOADS; i++) {
        if (on >> i & 1)
            json_array_append_new(all, json_string(pt_offload_name(i)));
    }
    return all;
}

static json_t *interface_json(const char *root, const struct pt_link *l)
{
    struct pt_qdisc_stats q;
    int offloads = pt_offload_read(l->name);
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:I, s:o, s:I, s:I, s:b}", "if", l->name, "kind",
        l->loopback ? "loopback" : l->kind, "driver", l->driver, "mtu", (json_int_t)l->mtu,
        "speed_mbit", l->speed_mbit ? json_integer(l->speed_mbit) : json_null(), "rx_queues",
        (json_int_t)l->rx_queues, "tx_queues", (json_int_t)l->tx_queues, "xdp", (int)l->xdp);
    if (pt_qdisc_read(&q, l->ifindex, NULL) == 0 && q.kind[0])
        json_object_set_new(o, "qdisc", json_string(q.kind));
    if (offloads >= 0)
        json_object_set_new(o, "offloads", offloads_json(offloads));
    if (!l->loopback && sysfs_is_ours(root, l))
        add_interrupts(o, root, l->name);
    return o;
}

static json_t *interfaces_json(const char *root)
{
    json_t *all = json_array();
    struct if_nameindex *names = if_nameindex();
    for (size_t i = 0; names && names[i].if_index && json_array_size(all) < PT_FINGERPRINT_IFS;
         i++) {
        struct pt_link l;
        if (pt_link_read(&l, names[i].if_index, NULL) == 0 && l.up)
            json_array_append_new(all, interface_json(root, &l));
    }
    if (names)
        if_freenameindex(names);
    return all;
}

json_t *pt_fingerprint(const char *root)
{
    char text[PT_FINGERPRINT_TEXT];
    json_t *o = json_object();
    add_platform(o, root);
    add_line(o, "congestion_control", root, "proc/sys/net/ipv4/tcp_congestion_control");
    add_line(o, "default_qdisc", root, "proc/sys/net/core/default_qdisc");
    add_line(o, "clock_source", root,
             "sys/devices/system/clocksource/clocksource0/current_clocksource");
    add_line(o, "governor", root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if (line_of(root, "sys/devices/system/cpu/smt/active", text))
        json_object_set_new(o, "smt", json_boolean(!strcmp(text, "1")));
    add_sysctls(o, root);
    json_object_set_new(o, "interfaces", interfaces_json(root));
    return o;
}

/* ---- from a peer */

static bool is_text(const json_t *v)
{
    const char *s = json_string_value(v);
    if (!s || json_string_length(v) >= PT_FINGERPRINT_TEXT)
        return false;
    for (; *s; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return false;
    }
    return true;
}

static void copy_texts(json_t *to, const json_t *from, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_t *v = json_object_get(from, keys[i]);
        if (is_text(v))
            json_object_set(to, keys[i], v);
    }
}

static bool is_count(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

static json_t *clean_interface(const json_t *from)
{
    json_t *name = json_object_get(from, "if"), *o = json_object(), *list;
    if (!is_text(name) || json_string_length(name) >= IF_NAMESIZE) {
        json_decref(o);
        return NULL;
    }
    json_object_set(o, "if", name);
    copy_texts(o, from, if_texts, PT_COUNT(if_texts));
    for (size_t i = 0; i < PT_COUNT(if_counts); i++) {
        json_t *v = json_object_get(from, if_counts[i]);
        if (is_count(v) || json_is_null(v))
            json_object_set(o, if_counts[i], v);
    }
    if (json_is_boolean(json_object_get(from, "xdp")))
        json_object_set(o, "xdp", json_object_get(from, "xdp"));
    if (json_is_array(list = json_object_get(from, "offloads"))) {
        int on = 0;
        for (size_t i = 0; i < json_array_size(list) && i < PT_OFFLOADS; i++) {
            const char *word = json_string_value(json_array_get(list, i));
            for (unsigned bit = 0; word && bit < PT_OFFLOADS; bit++)
                on |= !strcmp(word, pt_offload_name(bit)) << bit;
        }
        json_object_set_new(o, "offloads", offloads_json(on));
    }
    if (json_is_array(list = json_object_get(from, "irqs"))) {
        json_t *all = json_array();
        for (size_t i = 0; i < json_array_size(list) && i < PT_FINGERPRINT_IRQS; i++) {
            const json_t *q = json_array_get(list, i);
            json_t *irq = json_object_get(q, "irq"), *cpus = json_object_get(q, "cpus");
            if (is_count(irq) && is_text(cpus))
                json_array_append_new(all, json_pack("{s:O, s:O}", "irq", irq, "cpus", cpus));
        }
        json_object_set_new(o, "irqs", all);
    }
    return o;
}

json_t *pt_fingerprint_clean(const json_t *from)
{
    if (!json_is_object(from))
        return NULL;
    json_t *o = json_object(), *all = json_array(), *values = json_object();
    const json_t *theirs = json_object_get(from, "interfaces");
    copy_texts(o, from, texts, PT_COUNT(texts));
    copy_texts(values, json_object_get(from, "sysctl"), sysctls, PT_COUNT(sysctls));
    if (json_is_boolean(json_object_get(from, "smt")))
        json_object_set(o, "smt", json_object_get(from, "smt"));
    for (size_t i = 0; i < json_array_size(theirs) && i < PT_FINGERPRINT_IFS; i++) {
        json_t *mine = clean_interface(json_array_get(theirs, i));
        if (mine)
            json_array_append_new(all, mine);
    }
    json_object_set_new(o, "sysctl", values);
    json_object_set_new(o, "interfaces", all);
    return o;
}
