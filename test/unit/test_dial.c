/* test_dial.c: opening UDP flows over a network that loses and repeats, and refusals.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/dial.h"
#include "os/clock.h"
#include "os/proc.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint8_t token[PT_TOKEN_SIZE] = "0123456789abcde";

/* What a server does with the knocks that it gets, one letter each: `-` loses it, `c` answers with
 * a challenge, `r` with ready, in capitals twice; `!` sends the flow's first datagram after ready.
 */
struct script {
    const char *acts;
    int fd;
    char expected[16]; /* the kinds that should come, as digits */
};

static void answer(int fd, const struct sockaddr *to, socklen_t len, uint8_t kind, uint32_t flow)
{
    uint8_t bytes[PT_KNOCK_SIZE];
    struct pt_preamble p = {.version = PT_PROTO_VERSION, .kind = kind, .flow = flow};
    memcpy(p.token, token, sizeof(token));
    pt_knock_write(bytes, &p, (const uint8_t *)"the nonce is 16");
    (void)sendto(fd, bytes, sizeof(bytes), 0, to, len);
}

static int play(void *ctx)
{
    const struct script *s = ctx;
    for (const char *act = s->acts; *act; act++) {
        uint8_t bytes[100], nonce[PT_UDP_NONCE_SIZE];
        struct sockaddr_storage from;
        socklen_t len = sizeof(from);
        struct sockaddr *to = (struct sockaddr *)&from;
        struct pt_preamble p;
        struct pollfd poll_fd = {.fd = s->fd, .events = POLLIN};
        if (poll(&poll_fd, 1, 5000) != 1)
            return 1;
        ssize_t n = recvfrom(s->fd, bytes, sizeof(bytes), 0, to, &len);
        if (n < 0 || pt_knock_read(&p, nonce, bytes, (size_t)n) != 0 ||
            p.kind != s->expected[act - s->acts] - '0')
            return 2;
        if (p.kind == PT_PREAMBLE_PROOF && memcmp(nonce, "the nonce is 16", sizeof(nonce)) != 0)
            return 3;
        uint8_t kind = *act == 'c' || *act == 'C' ? PT_PREAMBLE_CHALLENGE : PT_PREAMBLE_READY;
        for (int times = *act == '-' ? 0 : *act < 'a' ? 2 : 1; times > 0; times--)
            answer(s->fd, to, len, kind, p.flow);
    }
    return 0;
}

/* The flow opens, and what can be received first is its first datagram. */
static void opens(const char *acts, const char *expected)
{
    struct pt_err e = {0};
    struct pt_addr at, any;
    struct script s = {.acts = acts};
    snprintf(s.expected, sizeof(s.expected), "%s", expected);
    pt_addr_any(&any, AF_INET, 0);
    any.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s.fd = pt_sock_bind(&any, NULL, &e);
    assert_true(s.fd >= 0);
    assert_int_equal(pt_addr_local(&at, s.fd), 0);
    struct pt_child child;
    assert_int_equal(pt_child_start(&child, play, &s, &e), 0);
    struct pt_dial flow = {.flow = 77};
    int rc = pt_dial_flows(&flow, 1, SOCK_DGRAM, &at, token, NULL, pt_clock_now() + 8 * PT_S, &e);
    struct pt_exit x;
    assert_int_equal(pt_child_wait(&child, pt_clock_now() + 5 * PT_S, &x), 0);
    assert_int_equal(x.code, 0);
    if (rc)
        fail_msg("%s", e.text);
    char bytes[100];
    struct pt_addr local;
    assert_int_equal(pt_addr_local(&local, flow.fd), 0);
    assert_int_equal(sendto(s.fd, "payload", 7, 0, &local.sa, local.len), 7);
    struct pollfd p = {.fd = flow.fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 5000), 1);
    assert_int_equal(recv(flow.fd, bytes, sizeof(bytes), 0), 7);
    assert_memory_equal(bytes, "payload", 7);
    close(flow.fd);
    close(s.fd);
}

static void a_clean_network(void **state)
{
    (void)state;
    opens("cr", "34");
}

static void a_lost_hello_and_a_lost_proof(void **state)
{
    (void)state;
    opens("-c-r", "3344");
}

static void answers_twice(void **state)
{
    (void)state;
    opens("-C-R", "3344");
}

static void an_outdated_challenge_is_asked_for_again(void **state)
{
    (void)state;
    opens("c----cr", "3444434");
}

static void nobody_answers(void **state)
{
    (void)state;
    struct pt_err e = {0};
    struct pt_addr at, any;
    pt_addr_any(&any, AF_INET, 0);
    any.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = pt_sock_bind(&any, NULL, &e);
    assert_int_equal(pt_addr_local(&at, fd), 0);
    struct pt_dial flows[3] = {{.flow = 1}, {.flow = 2}, {.flow = 3}};
    pt_ns began = pt_clock_now();
    assert_int_equal(pt_dial_flows(flows, 3, SOCK_DGRAM, &at, token, NULL, began + 120 * PT_MS, &e),
                     -ETIMEDOUT);
    assert_non_null(strstr(e.text, "firewall"));
    for (int i = 0; i < 3; i++)
        assert_int_equal(flows[i].fd, -1);
    close(fd);
    assert_int_equal(
        pt_dial_flows(flows, 3, SOCK_DGRAM, &at, token, NULL, pt_clock_now() + 5 * PT_S, &e),
        -ECONNREFUSED);
    assert_int_equal(
        pt_dial_flows(flows, 3, SOCK_STREAM, &at, token, NULL, pt_clock_now() + 5 * PT_S, &e),
        -ECONNREFUSED);
    assert_non_null(strstr(e.text, "flow "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_network),
        cmocka_unit_test(a_lost_hello_and_a_lost_proof),
        cmocka_unit_test(answers_twice),
        cmocka_unit_test(an_outdated_challenge_is_asked_for_again),
        cmocka_unit_test(nobody_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
