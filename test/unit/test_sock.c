/* test_sock.c: sockets connect, carry their options, and say why when they do not.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "net/sock.h"
#include "os/clock.h"
#include "os/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct pt_addr parsed(const char *text)
{
    struct pt_addr a;
    struct pt_err e = {0};
    if (pt_addr_parse(&a, text, 0, &e) != 0)
        fail_msg("%s", e.text);
    return a;
}

static int option(int fd, int level, int name)
{
    int v = 0;
    socklen_t len = sizeof(v);
    assert_int_equal(getsockopt(fd, level, name, &v, &len), 0);
    return v;
}

static pt_ns soon(void)
{
    return pt_clock_now() + 5 * PT_S;
}

/* A listener on `text` with a port of the kernel's choice, whose address goes to `at`. */
static int listener(const char *text, const struct pt_sockopts *o, struct pt_addr *at)
{
    struct pt_addr a = parsed(text);
    struct pt_err e = {0};
    int fd = pt_sock_listen(&a, 0, o, &e);
    if (fd < 0)
        fail_msg("%s", e.text);
    assert_int_equal(pt_addr_local(at, fd), 0);
    return fd;
}

static void stream_connects(void **state)
{
    (void)state;
    static const char *const rows[] = {"127.0.0.1", "::1", "unix:@pitot-test-sock"};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_addr at, from = {.len = 0}, peer, local;
        struct pt_err e = {0};
        int l = listener(rows[i], NULL, &at);
        assert_true(fcntl(l, F_GETFL) & O_NONBLOCK);
        assert_int_equal(fcntl(l, F_GETFD), FD_CLOEXEC);
        int c = pt_sock_connect(SOCK_STREAM, &at, &from, NULL, soon(), &e);
        assert_true(c >= 0);
        assert_false(fcntl(c, F_GETFL) & O_NONBLOCK);
        assert_int_equal(fcntl(c, F_GETFD), FD_CLOEXEC);
        int s = accept(l, NULL, NULL);
        assert_true(s >= 0);
        assert_int_equal(send(c, "hi", 2, 0), 2);
        char buf[4];
        assert_int_equal(recv(s, buf, sizeof(buf), 0), 2);
        assert_int_equal(pt_addr_peer(&peer, c), 0);
        assert_int_equal(pt_addr_cmp(&peer, &at), 0);
        if (pt_addr_family(&at) != AF_UNIX) {
            assert_int_equal(pt_addr_local(&local, c), 0);
            assert_int_equal(pt_addr_peer(&peer, s), 0);
            assert_int_equal(pt_addr_cmp(&peer, &local), 0);
        }
        close(s);
        close(c);
        close(l);
    }
}

static void source_addresses_are_used(void **state)
{
    (void)state;
    struct pt_addr at, from = parsed("127.0.0.7"), local;
    struct pt_err e = {0};
    int l = listener("127.0.0.1", NULL, &at);
    int c = pt_sock_open(SOCK_STREAM, &at, &from, NULL, &e);
    assert_true(c >= 0);
    assert_int_equal(pt_addr_local(&local, c), 0);
    assert_true(pt_addr_same_ip(&local, &from));
    assert_int_equal(pt_addr_port(&local), 0); /* not chosen before connect */
    assert_int_equal(connect(c, &at.sa, at.len), 0);
    assert_int_equal(pt_addr_local(&local, c), 0);
    assert_true(pt_addr_port(&local) != 0);
    close(c);

    close(listener("127.0.0.7", NULL, &from)); /* a port that is free */
    c = pt_sock_connect(SOCK_STREAM, &at, &from, NULL, soon(), &e);
    assert_true(c >= 0);
    assert_int_equal(pt_addr_local(&local, c), 0);
    assert_int_equal(pt_addr_cmp(&local, &from), 0);
    /* The same four-tuple twice. */
    assert_int_equal(pt_sock_connect(SOCK_STREAM, &at, &from, NULL, soon(), &e), -EADDRNOTAVAIL);
    assert_non_null(strstr(e.text, "no source port is left"));
    close(c);

    from = parsed("192.0.2.1");
    assert_int_equal(pt_sock_connect(SOCK_STREAM, &at, &from, NULL, soon(), &e), -EADDRNOTAVAIL);
    assert_non_null(strstr(e.text, "192.0.2.1:0"));
    assert_non_null(strstr(e.text, "no address of this host"));
    close(l);
}

static void failures_name_the_address_and_the_reason(void **state)
{
    (void)state;
    struct pt_addr at;
    struct pt_err e = {0};
    char text[PT_ADDR_TEXT];
    close(listener("127.0.0.1", NULL, &at)); /* a port that nobody has any more */
    assert_int_equal(pt_sock_connect(SOCK_STREAM, &at, NULL, NULL, soon(), &e), -ECONNREFUSED);
    assert_non_null(strstr(e.text, pt_addr_print(&at, text)));
    assert_non_null(strstr(e.text, "nothing listens"));
    at = parsed("unix:/nonexistent/socket");
    assert_int_equal(pt_sock_connect(SOCK_STREAM, &at, NULL, NULL, soon(), &e), -ENOENT);
    assert_int_equal(pt_sock_listen(&at, 0, NULL, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/socket"));
    int l = listener("127.0.0.1", NULL, &at);
    assert_int_equal(pt_sock_listen(&at, 0, NULL, &e), -EADDRINUSE);
    assert_non_null(strstr(e.text, "another program"));
    close(l);
}

static void a_full_listener_times_out(void **state)
{
    (void)state;
    struct pt_addr at, a = parsed("127.0.0.1");
    struct pt_err e = {0};
    int l = pt_sock_listen(&a, 1, NULL, &e), c[8], n = 0, rc = 0;
    assert_true(l >= 0);
    assert_int_equal(pt_addr_local(&at, l), 0);
    /* A deadline that has passed still gives the loopback its chance; a full queue gives none. */
    while (n < 8 && (rc = pt_sock_connect(SOCK_STREAM, &at, NULL, NULL, pt_clock_now(), &e)) >= 0)
        c[n++] = rc;
    assert_true(n >= 1);
    assert_int_equal(rc, -ETIMEDOUT);
    while (n)
        close(c[--n]);
    close(l);
}

static void the_next_address_is_tried(void **state)
{
    (void)state;
    struct pt_addr_list to = {.n = 2};
    struct pt_err e = {0};
    unsigned used = 9;
    close(listener("127.0.0.1", NULL, &to.addr[0]));
    int l = listener("::1", NULL, &to.addr[1]);
    int c = pt_sock_connect_any(SOCK_STREAM, &to, NULL, NULL, soon(), &used, &e);
    assert_true(c >= 0);
    assert_int_equal(used, 1);
    close(c);
    close(l);
    assert_int_equal(pt_sock_connect_any(SOCK_STREAM, &to, NULL, NULL, soon(), &used, &e),
                     -ECONNREFUSED);
    to.n = 0;
    assert_int_equal(pt_sock_connect_any(SOCK_STREAM, &to, NULL, NULL, soon(), &used, &e),
                     -EDESTADDRREQ);
}

static void dual_stack_takes_both_families(void **state)
{
    (void)state;
    struct pt_addr at, v4 = parsed("127.0.0.1"), peer;
    struct pt_err e = {0};
    int l = listener("::", NULL, &at);
    pt_addr_set_port(&v4, pt_addr_port(&at));
    int c = pt_sock_connect(SOCK_STREAM, &v4, NULL, NULL, soon(), &e);
    assert_true(c >= 0);
    int s = accept(l, NULL, NULL);
    assert_int_equal(pt_addr_peer(&peer, s), 0);
    pt_addr_unmap(&peer);
    assert_int_equal(pt_addr_family(&peer), AF_INET);
    close(s);
    close(c);
    close(l);
    struct pt_sockopts only = {.v6only = true};
    l = listener("::", &only, &at);
    pt_addr_set_port(&v4, pt_addr_port(&at));
    assert_int_equal(pt_sock_connect(SOCK_STREAM, &v4, NULL, NULL, soon(), &e), -ECONNREFUSED);
    close(l);
}

static void options_reach_the_socket(void **state)
{
    (void)state;
    static const char *const rows[] = {"127.0.0.1", "::1"};
    struct pt_sockopts o = {.tos = 0x28,
                            .mss = 1000,
                            .sndbuf = 20000,
                            .rcvbuf = 30000,
                            .notsent_lowat = 131072,
                            .nodelay = true,
                            .cc = "reno"};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_addr at;
        struct pt_err e = {0};
        struct pt_sock_granted g;
        int l = listener(rows[i], &o, &at);
        int c = pt_sock_connect(SOCK_STREAM, &at, NULL, &o, soon(), &e);
        if (c < 0)
            fail_msg("%s", e.text);
        int s = accept(l, NULL, NULL);
        assert_true(s >= 0);
        assert_int_equal(option(c, IPPROTO_TCP, TCP_NODELAY), 1);
        assert_int_equal(option(c, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 131072);
        assert_int_equal(option(s, IPPROTO_TCP, TCP_NODELAY), 1);
        assert_int_equal(pt_sock_granted(&g, c, &o), 0);
        assert_int_equal(g.sndbuf, 40000);
        assert_int_equal(g.rcvbuf, 60000);
        assert_int_equal(g.tos, 0x28);
        assert_true(g.mss > 0 && g.mss <= 1000);
        assert_string_equal(g.cc, "reno");
        assert_string_equal(g.note, "");
        assert_int_equal(pt_sock_granted(&g, s, &o), 0);
        assert_string_equal(g.cc, "reno");
        assert_int_equal(g.rcvbuf, 60000);
        close(s);
        close(c);
        close(l);
    }
}

static void clipped_buffers_are_noted(void **state)
{
    (void)state;
    int fds[2];
    struct pt_sock_granted g;
    struct pt_sockopts o = {.sndbuf = 1 << 30};
    assert_true(pt_sysctl_number("net/core/wmem_max", -1) < o.sndbuf);
    assert_int_equal(pt_sock_pair(SOCK_STREAM, fds), 0);
    assert_int_equal(pt_sockopts_apply(fds[0], &o, NULL), 0);
    assert_int_equal(pt_sock_granted(&g, fds[0], &o), 0);
    assert_non_null(strstr(g.note, "1073741824 bytes asked"));
    assert_non_null(strstr(g.note, "net.core.wmem_max"));
    assert_int_equal(pt_sock_granted(&g, -1, &o), -EBADF);
    close(fds[0]);
    close(fds[1]);
}

static void a_window_is_held_and_let_go(void **state)
{
    (void)state;
    struct pt_addr at;
    struct pt_err e = {0};
    int l = listener("127.0.0.1", NULL, &at);
    int c = pt_sock_connect(SOCK_STREAM, &at, NULL, NULL, soon(), &e);
    assert_true(c >= 0);
    assert_int_equal(option(c, SOL_SOCKET, SO_BUF_LOCK), 0);
    assert_true(pt_sock_hold_window(c, 100000));
    assert_int_equal(option(c, SOL_SOCKET, SO_RCVBUF), 200000);
    assert_int_equal(option(c, SOL_SOCKET, SO_BUF_LOCK), 2);
    pt_sock_release_window(c, false);
    assert_int_equal(option(c, SOL_SOCKET, SO_BUF_LOCK), 0);
    pt_sock_release_window(c, true);
    assert_int_equal(option(c, SOL_SOCKET, SO_BUF_LOCK), 1);
    close(c);
    close(l);
}

static void unknown_congestion_control_lists_the_known(void **state)
{
    (void)state;
    struct pt_addr to = parsed("127.0.0.1");
    struct pt_sockopts o = {.cc = "no_such_cc"};
    struct pt_err e = {0};
    char there[256], cc[16];
    assert_int_equal(pt_sock_open(SOCK_STREAM, &to, NULL, &o, &e), -ENOENT);
    assert_int_equal(pt_sock_cc_available(there, sizeof(there)), 0);
    assert_non_null(strstr(e.text, "no_such_cc"));
    assert_non_null(strstr(e.text, there));
    /* It is TCP's: other sockets are not touched by it. */
    int fd = pt_sock_open(SOCK_DGRAM, &to, NULL, &o, &e);
    assert_true(fd >= 0);
    assert_int_equal(pt_sock_cc_get(fd, cc), -EOPNOTSUPP);
    close(fd);
}

static void a_stale_unix_path_is_replaced(void **state)
{
    (void)state;
    char dir[] = "/tmp/pitot-sock-XXXXXX", path[64], text[80];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s", dir);
    snprintf(text, sizeof(text), "unix:%s", path);
    struct pt_addr at = parsed(text);
    struct pt_err e = {0};
    int l = pt_sock_listen(&at, 0, NULL, &e);
    assert_true(l >= 0);
    assert_int_equal(pt_sock_listen(&at, 0, NULL, &e), -EADDRINUSE); /* it lives */
    close(l);
    l = pt_sock_listen(&at, 0, NULL, &e); /* it was left behind */
    assert_true(l >= 0);
    close(l);
    assert_int_equal(unlink(path), 0);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600); /* somebody's file stays */
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(pt_sock_listen(&at, 0, NULL, &e), -EADDRINUSE);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    unlink(path);
    rmdir(dir);
}

static void datagrams_go_both_ways(void **state)
{
    (void)state;
    static const char *const rows[] = {"127.0.0.1", "::1", "unix:@pitot-test-dgram"};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_addr at = parsed(rows[i]);
        struct pt_err e = {0};
        int s = pt_sock_bind(&at, NULL, &e);
        assert_true(s >= 0);
        assert_int_equal(pt_addr_local(&at, s), 0);
        int c = pt_sock_connect(SOCK_DGRAM, &at, NULL, NULL, soon(), &e);
        assert_true(c >= 0);
        char buf[8];
        assert_int_equal(send(c, "abc", 3, 0), 3);
        assert_int_equal(recv(s, buf, sizeof(buf), MSG_DONTWAIT), 3);
        close(c);
        close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_connects),
        cmocka_unit_test(source_addresses_are_used),
        cmocka_unit_test(failures_name_the_address_and_the_reason),
        cmocka_unit_test(a_full_listener_times_out),
        cmocka_unit_test(the_next_address_is_tried),
        cmocka_unit_test(dual_stack_takes_both_families),
        cmocka_unit_test(options_reach_the_socket),
        cmocka_unit_test(clipped_buffers_are_noted),
        cmocka_unit_test(a_window_is_held_and_let_go),
        cmocka_unit_test(unknown_congestion_control_lists_the_known),
        cmocka_unit_test(a_stale_unix_path_is_replaced),
        cmocka_unit_test(datagrams_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
