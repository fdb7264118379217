/* netlink.h: one request to the kernel's routing socket and its answers.
 *
 * Cold path only: every call opens a socket, asks, reads to the end and closes. Attributes are
 * walked with every length checked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_OS_NETLINK_H
#define PT_OS_NETLINK_H

#include "base/types.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

/* A request under construction: the header, then a fixed part, then attributes. */
struct pt_nl_request {
    union {
        struct nlmsghdr head;
        uint8_t bytes[512];
    };
};

void pt_nl_begin(struct pt_nl_request *r, uint16_t type, uint16_t flags, const void *fixed,
                 size_t n);
/* Asserts that it fits: the caller's attributes are of known, small size. */
void pt_nl_add(struct pt_nl_request *r, uint16_t type, const void *value, size_t n);
/* Opens an attribute that holds others, behind `n` fixed bytes of its own (0: none), until the end
 * is told with what this returned. */
size_t pt_nl_nest(struct pt_nl_request *r, uint16_t type, const void *fixed, size_t n);
void pt_nl_nest_end(struct pt_nl_request *r, size_t at);

/* Called for each answering message; a non-zero return ends the walk and becomes the result. */
typedef int pt_nl_visit(void *ctx, const struct nlmsghdr *message);

/* Sends and visits each answer (one, or many with NLM_F_DUMP). 0 at the end, the visitor's value,
 * or a negative errno: the kernel's refusal (-ENETUNREACH, -ENODEV, …) or the socket's. Gives up
 * with -ETIMEDOUT after two seconds of silence. */
int pt_nl_ask(const struct pt_nl_request *r, pt_nl_visit *visit, void *ctx) PT_MUST_USE;
/* Sends an order, for which the kernel has no answer but that it did it: 0 or its refusal. */
int pt_nl_order(const struct pt_nl_request *r) PT_MUST_USE;

/* What a message and an attribute hold, without losing const as the kernel's macros do. */
static inline const void *pt_nl_body(const struct nlmsghdr *message)
{
    return (const uint8_t *)message + NLMSG_HDRLEN;
}

static inline const void *pt_nl_value(const struct rtattr *attribute)
{
    return (const uint8_t *)attribute + RTA_LENGTH(0);
}

/* The attribute `type` behind the `fixed_bytes` of a message, or nested in another; NULL when it is
 * not there or shorter than `at_least`. */
const struct rtattr *pt_nl_find(const struct nlmsghdr *message, size_t fixed_bytes, uint16_t type,
                                size_t at_least);
const struct rtattr *pt_nl_nested(const struct rtattr *outer, uint16_t type, size_t at_least);

#endif
