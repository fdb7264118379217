/* cidr.c: see cidr.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/cidr.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Clears everything behind the first `bits` bits; whether anything was there. */
static bool mask(uint8_t bytes[16], size_t size, unsigned bits)
{
    bool cleared = false;
    for (size_t i = 0; i < size; i++) {
        unsigned keep = bits > 8 * i ? bits - 8 * (unsigned)i : 0;
        uint8_t kept = (uint8_t)(keep >= 8 ? bytes[i] : bytes[i] & ~(0xffU >> keep));
        cleared |= kept != bytes[i];
        bytes[i] = kept;
    }
    return cleared;
}

static int parse_bits(const char *text, unsigned most, unsigned *bits)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end || end - text > 3 || v > most)
        return -EINVAL;
    *bits = (unsigned)v;
    return 0;
}

int pt_cidr_parse(struct pt_cidr *c, const char *text, struct pt_err *e)
{
    char shown[96], ip[INET6_ADDRSTRLEN];
    pt_log_quote(shown, sizeof(shown), text, strlen(text));
    memset(c, 0, sizeof(*c));
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    if (n < sizeof(ip)) {
        memcpy(ip, text, n);
        ip[n] = 0;
        c->family = inet_pton(AF_INET, ip, c->prefix) == 1    ? AF_INET
                    : inet_pton(AF_INET6, ip, c->prefix) == 1 ? AF_INET6
                                                              : 0;
    }
    if (c->family == 0)
        return pt_fail(e, -EINVAL,
                       "'%s': expected an address or a prefix, like 10.0.0.0/8 or fd00::/8", shown);
    unsigned most = c->family == AF_INET ? 32 : 128;
    c->bits = most;
    if (slash && parse_bits(slash + 1, most, &c->bits) != 0)
        return pt_fail(e, -EINVAL, "'%s': the prefix length must be a number from 0 to %u", shown,
                       most);
    if (mask(c->prefix, most / 8, c->bits)) {
        inet_ntop(c->family, c->prefix, ip, sizeof(ip));
        return pt_fail(e, -EINVAL, "'%s': has bits behind its length; was %s/%u or %.*s meant?",
                       shown, ip, c->bits, (int)n, text);
    }
    const struct in6_addr *v6 = (const void *)c->prefix;
    if (c->family == AF_INET6 && c->bits >= 96 && IN6_IS_ADDR_V4MAPPED(v6)) {
        c->family = AF_INET;
        c->bits -= 96;
        memmove(c->prefix, c->prefix + 12, 4);
        memset(c->prefix + 4, 0, 12);
    }
    return 0;
}

bool pt_cidr_match(const struct pt_cidr *c, const struct pt_addr *a)
{
    struct pt_addr x = *a;
    pt_addr_unmap(&x);
    if (c->family == 0 || pt_addr_family(&x) != c->family)
        return false;
    uint8_t bytes[16] = {0};
    if (c->family == AF_INET)
        memcpy(bytes, &x.v4.sin_addr, 4);
    else
        memcpy(bytes, &x.v6.sin6_addr, 16);
    mask(bytes, sizeof(bytes), c->bits);
    return memcmp(bytes, c->prefix, sizeof(bytes)) == 0;
}
