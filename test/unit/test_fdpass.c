/* test_fdpass.c: descriptors arrive, messages keep their borders, nothing leaks.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/types.h"
#include "os/fdpass.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned open_fds(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void a_descriptor_arrives(void **state)
{
    (void)state;
    int pair[2], pipefd[2], got;
    char text[16];
    assert_int_equal(pt_fdpass_open(pair), 0);
    assert_int_equal(pipe(pipefd), 0);
    assert_int_equal(pt_fdpass_send(pair[0], pipefd[1], "take", 5, 0), 0);
    assert_int_equal(pt_fdpass_recv(pair[1], &got, text, sizeof(text), 0), 5);
    assert_string_equal(text, "take");
    assert_true(got >= 0 && got != pipefd[1]);
    assert_int_equal(fcntl(got, F_GETFD), FD_CLOEXEC);
    close(pipefd[1]);
    assert_int_equal(write(got, "x", 1), 1);
    assert_int_equal(read(pipefd[0], text, 1), 1);
    close(got);
    close(pipefd[0]);
    close(pair[0]);
    close(pair[1]);
}

static void messages_go_alone_too(void **state)
{
    (void)state;
    int pair[2], got = 5;
    char text[8];
    assert_int_equal(pt_fdpass_open(pair), 0);
    assert_int_equal(pt_fdpass_recv(pair[1], &got, text, sizeof(text), 0), -ETIMEDOUT);
    assert_int_equal(got, -1);
    assert_int_equal(pt_fdpass_send(pair[0], -1, "", 0, 0), -EINVAL);
    assert_int_equal(pt_fdpass_send(pair[0], -1, "one", 3, 0), 0);
    assert_int_equal(pt_fdpass_send(pair[0], -1, "three", 5, 0), 0);
    assert_int_equal(pt_fdpass_recv(pair[1], &got, text, sizeof(text), 0), 3);
    assert_int_equal(got, -1);
    assert_int_equal(pt_fdpass_recv(pair[1], &got, text, sizeof(text), 0), 5);
    close(pair[0]);
    assert_int_equal(pt_fdpass_recv(pair[1], &got, text, sizeof(text), 0), 0);
    assert_int_equal(pt_fdpass_send(pair[1], -1, "x", 1, 0), -EPIPE);
    close(pair[1]);
}

static void too_much_is_refused_and_closed(void **state)
{
    (void)state;
    int pair[2], got;
    char text[4];
    assert_int_equal(pt_fdpass_open(pair), 0);
    unsigned before = open_fds();

    assert_int_equal(pt_fdpass_send(pair[0], pair[0], "longer", 6, 0), 0);
    assert_int_equal(pt_fdpass_recv(pair[1], &got, text, sizeof(text), 0), -EMSGSIZE);
    assert_int_equal(got, -1);
    assert_int_equal(open_fds(), before);

    for (size_t count = 2; count < 12; count++) {
        int many[12];
        for (size_t i = 0; i < count; i++)
            many[i] = pair[0];
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(sizeof(many))];
        } c = {0};
        struct iovec iov = {.iov_base = text, .iov_len = 1};
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = c.bytes,
                           .msg_controllen = CMSG_SPACE(count * sizeof(int))};
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        *h = (struct cmsghdr){.cmsg_len = CMSG_LEN(count * sizeof(int)),
                              .cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(h), many, count * sizeof(int));
        assert_int_equal(sendmsg(pair[0], &m, 0), 1);
        assert_int_equal(pt_fdpass_recv(pair[1], &got, text, sizeof(text), 0), -EPROTO);
        assert_int_equal(got, -1);
        assert_int_equal(open_fds(), before);
    }
    close(pair[0]);
    close(pair[1]);
}

static void a_full_pipe_gives_up_at_the_deadline(void **state)
{
    (void)state;
    int pair[2], rc;
    static const char block[4096];
    assert_int_equal(pt_fdpass_open(pair), 0);
    for (unsigned i = 0; (rc = pt_fdpass_send(pair[0], -1, block, sizeof(block), 0)) == 0; i++)
        assert_true(i < 100000);
    assert_int_equal(rc, -ETIMEDOUT);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_arrives),
        cmocka_unit_test(messages_go_alone_too),
        cmocka_unit_test(too_much_is_refused_and_closed),
        cmocka_unit_test(a_full_pipe_gives_up_at_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
