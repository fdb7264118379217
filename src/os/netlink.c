/* netlink.c: see netlink.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/netlink.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void pt_nl_begin(struct pt_nl_request *r, uint16_t type, uint16_t flags, const void *fixed,
                 size_t n)
{
    memset(r, 0, sizeof(*r));
    assert(NLMSG_LENGTH(n) <= sizeof(r->bytes));
    r->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(n);
    r->head.nlmsg_type = type;
    r->head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    r->head.nlmsg_seq = 1;
    memcpy(r->bytes + NLMSG_HDRLEN, fixed, n);
}

void pt_nl_add(struct pt_nl_request *r, uint16_t type, const void *value, size_t n)
{
    const size_t at = NLMSG_ALIGN(r->head.nlmsg_len);
    assert(at + RTA_SPACE(n) <= sizeof(r->bytes));
    const struct rtattr a = {.rta_len = (uint16_t)RTA_LENGTH(n), .rta_type = type};
    memcpy(r->bytes + at, &a, sizeof(a));
    memcpy(r->bytes + at + RTA_LENGTH(0), value, n);
    r->head.nlmsg_len = (uint32_t)(at + RTA_LENGTH(n));
}

size_t pt_nl_nest(struct pt_nl_request *r, uint16_t type, const void *fixed, size_t n)
{
    const size_t at = NLMSG_ALIGN(r->head.nlmsg_len);
    pt_nl_add(r, type, n ? fixed : "", n);
    return at;
}

void pt_nl_nest_end(struct pt_nl_request *r, size_t at)
{
    struct rtattr a;
    assert(at + sizeof(a) <= r->head.nlmsg_len);
    memcpy(&a, r->bytes + at, sizeof(a));
    a.rta_len = (uint16_t)(r->head.nlmsg_len - at);
    memcpy(r->bytes + at, &a, sizeof(a));
}

/* The message behind m, of which n bytes are left; never past the end. */
static const struct nlmsghdr *next(const struct nlmsghdr *m, size_t *n)
{
    size_t step = NLMSG_ALIGN(m->nlmsg_len);
    *n -= step < *n ? step : *n;
    return (const void *)((const uint8_t *)m + step);
}

/* One datagram of answers. True when the walk is over, with its result in `code`. */
static bool visit_all(const struct nlmsghdr *m, size_t n, bool dump, pt_nl_visit *visit, void *ctx,
                      int *code)
{
    for (; NLMSG_OK(m, n); m = next(m, &n)) {
        if (m->nlmsg_seq != 1)
            continue;
        *code = 0;
        if (m->nlmsg_type == NLMSG_DONE) { /* its content, where there is one, is an errno */
            if (m->nlmsg_len >= NLMSG_LENGTH(sizeof(*code)))
                memcpy(code, pt_nl_body(m), sizeof(*code));
            return true;
        }
        if (m->nlmsg_type == NLMSG_ERROR) {
            *code = m->nlmsg_len < NLMSG_LENGTH(sizeof(struct nlmsgerr))
                        ? -EBADMSG
                        : ((const struct nlmsgerr *)pt_nl_body(m))->error;
            return true;
        }
        *code = visit(ctx, m);
        if (*code != 0 || !dump)
            return true;
    }
    return false;
}

static int exchange(int fd, const struct pt_nl_request *r, pt_nl_visit *visit, void *ctx)
{
    const struct timeval limit = {.tv_sec = 2};
    const bool dump = (r->head.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
        send(fd, r, r->head.nlmsg_len, 0) < 0)
        return -errno;
    /* Dumps come in pieces of up to 32 KiB; single answers are far smaller. */
    union {
        struct nlmsghdr head;
        uint8_t bytes[32768];
    } answer;
    for (;;) {
        ssize_t n = recv(fd, &answer, sizeof(answer), MSG_TRUNC);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        }
        if ((size_t)n > sizeof(answer))
            return -EMSGSIZE;
        int code;
        if (visit_all(&answer.head, (size_t)n, dump, visit, ctx, &code))
            return code;
    }
}

int pt_nl_ask(const struct pt_nl_request *r, pt_nl_visit *visit, void *ctx)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return -errno;
    int code = exchange(fd, r, visit, ctx);
    close(fd);
    return code;
}

static int no_answer(void *ctx, const struct nlmsghdr *message)
{
    (void)ctx;
    (void)message;
    return -EBADMSG;
}

int pt_nl_order(const struct pt_nl_request *r)
{
    return pt_nl_ask(r, no_answer, NULL);
}

static const struct rtattr *find(const uint8_t *at, size_t n, uint16_t type, size_t at_least)
{
    while (n >= sizeof(struct rtattr)) {
        const struct rtattr *a = (const struct rtattr *)(const void *)at;
        if (a->rta_len < sizeof(*a) || a->rta_len > n)
            return NULL;
        if ((a->rta_type & NLA_TYPE_MASK) == type)
            return RTA_PAYLOAD(a) >= at_least ? a : NULL;
        size_t step = RTA_ALIGN(a->rta_len);
        if (step > n)
            return NULL;
        at += step;
        n -= step;
    }
    return NULL;
}

const struct rtattr *pt_nl_find(const struct nlmsghdr *message, size_t fixed_bytes, uint16_t type,
                                size_t at_least)
{
    const size_t skip = NLMSG_ALIGN(NLMSG_LENGTH(fixed_bytes));
    if (message->nlmsg_len < skip)
        return NULL;
    return find((const uint8_t *)message + skip, message->nlmsg_len - skip, type, at_least);
}

const struct rtattr *pt_nl_nested(const struct rtattr *outer, uint16_t type, size_t at_least)
{
    return find(pt_nl_value(outer), RTA_PAYLOAD(outer), type, at_least);
}
