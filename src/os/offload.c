/* offload.c: see offload.h. The old commands of ethtool, one per feature: every driver answers
 * them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/offload.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
    const char *name;
    uint32_t command;
} features[PT_OFFLOADS - 1] = {
    {"rx", ETHTOOL_GRXCSUM}, {"tx", ETHTOOL_GTXCSUM}, {"sg", ETHTOOL_GSG},
    {"tso", ETHTOOL_GTSO},   {"gso", ETHTOOL_GGSO},   {"gro", ETHTOOL_GGRO},
};

const char *pt_offload_name(unsigned bit)
{
    return bit < PT_COUNT(features) ? features[bit].name : "lro";
}

static int ask(int fd, const char *dev, uint32_t command, uint32_t *value)
{
    struct ethtool_value v = {.cmd = command};
    struct ifreq q = {0};
    snprintf(q.ifr_name, sizeof(q.ifr_name), "%s", dev);
    q.ifr_data = (void *)&v;
    if (ioctl(fd, SIOCETHTOOL, &q) < 0)
        return -errno;
    *value = v.data;
    return 0;
}

int pt_offload_read(const char *dev)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    uint32_t value = 0;
    int on = 0, known = 0, rc = -EOPNOTSUPP;
    for (unsigned i = 0; i < PT_COUNT(features); i++) {
        int said = ask(fd, dev, features[i].command, &value);
        known += said == 0;
        rc = said < 0 ? said : rc;
        if (said == 0 && value)
            on |= 1 << i;
    }
    if (ask(fd, dev, ETHTOOL_GFLAGS, &value) == 0 && value & ETH_FLAG_LRO)
        on |= PT_OFFLOAD_LRO;
    close(fd);
    return known ? on : rc;
}
