/* identity.c: see identity.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/identity.h"

#include "os/cpu.h"
#include "os/sysctl.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* x86 says so itself, in the flags of the first processor. */
static bool cpu_says_hypervisor(void)
{
    char line[8192];
    bool found = false;
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f)
        return false;
    while (fgets(line, sizeof(line), f))
        if (strncmp(line, "flags", 5) == 0) {
            found = strstr(line, " hypervisor") != NULL;
            break;
        }
    fclose(f);
    return found;
}

/* Elsewhere the firmware's tables name the product. */
static bool firmware_names_hypervisor(void)
{
    static const char *const names[] = {"QEMU",    "KVM",     "VMware",        "VirtualBox",
                                        "Xen",     "Bochs",   "EC2",           "Cloud",
                                        "Alibaba", "Virtual", "Google Compute"};
    char text[256];
    FILE *f = fopen("/sys/class/dmi/id/product_name", "re");
    if (!f)
        return access("/sys/hypervisor/type", F_OK) == 0;
    bool found = false;
    if (fgets(text, sizeof(text), f))
        for (size_t i = 0; i < PT_COUNT(names); i++)
            found |= strcasestr(text, names[i]) != NULL && strcasestr(text, "metal") == NULL;
    fclose(f);
    return found;
}

void pt_identity_read(struct pt_identity *id)
{
    struct utsname u;
    struct stat ns;
    memset(id, 0, sizeof(*id));
    if (uname(&u) == 0) {
        snprintf(id->host, sizeof(id->host), "%.64s", u.nodename);
        snprintf(id->kernel, sizeof(id->kernel), "%.64s", u.release);
        snprintf(id->arch, sizeof(id->arch), "%.64s", u.machine);
    }
    char boot[64];
    if (pt_sysctl_text("kernel/random/boot_id", boot, sizeof(boot)) == 0)
        snprintf(id->boot_id, sizeof(id->boot_id), "%.36s", boot);
    if (pt_cpu_model(id->cpu_model, sizeof(id->cpu_model)) < 0)
        id->cpu_model[0] = 0;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    id->cpus = cpus > 0 ? (unsigned)cpus : 0;
    if (stat("/proc/self/ns/net", &ns) == 0)
        id->net_ns = ns.st_ino;
    id->virtualised = cpu_says_hypervisor() || firmware_names_hypervisor();
}

bool pt_identity_same_host(const struct pt_identity *a, const struct pt_identity *b)
{
    return a->boot_id[0] && strcmp(a->boot_id, b->boot_id) == 0;
}

bool pt_identity_same_net(const struct pt_identity *a, const struct pt_identity *b)
{
    return pt_identity_same_host(a, b) && a->net_ns != 0 && a->net_ns == b->net_ns;
}
