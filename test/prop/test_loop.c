/* test_loop.c: the loop against a model, under random traffic, stops, closes and reused numbers.
 *
 * Many pairs live at once; each step one of them sends, sends a lot, pauses, stops, is closed and
 * replaced under the same number, or shuts down. The model knows what each receive may see: the
 * stream of its own pair from the start and in order, one end, and nothing after a stop.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "../unit/loop_harness.h"

#include "base/rng.h"

#include <fcntl.h>

#define PAIRS 24
#define STEPS 4000
#define CHUNK ((size_t)200000)

struct life {
    struct pt_loop *loop;
    int near, far; /* near: the loop's end */
    bool datagram, alive, shut, ended, paused;
    uint8_t wrote, read; /* next byte of the stream to write, to see */
    size_t unread;
    struct pt_recv recv;
    struct pt_op out;
    bool sending;
    struct pt_rng *rng;
};

static unsigned after_stop, wrong;

static void seen(struct pt_recv *r, uint8_t *buf, ssize_t n, const struct pt_recv_meta *meta)
{
    struct life *f = r->ctx;
    (void)meta;
    after_stop += !f->alive || f->ended || f->paused;
    if (n <= 0) {
        wrong += n < 0 || !f->shut || f->unread > 0;
        f->ended = true;
        return;
    }
    for (ssize_t i = 0; i < n; i++)
        wrong += buf[i] != f->read++;
    wrong += (size_t)n > f->unread;
    f->unread -= (size_t)n;
    if (!f->datagram && pt_rng_below(f->rng, 8) == 0) {
        pt_recv_pause(f->loop, r);
        f->paused = true;
        return;
    }
    if (pt_rng_below(f->rng, 64) == 0) {
        pt_recv_stop(f->loop, r);
        f->alive = false;
    }
}

static void gone(struct pt_op *op, int res, bool more)
{
    struct life *f = op->ctx;
    (void)more;
    wrong += res < 0;
    f->sending = false;
}

static void begin(struct life *f, struct pt_loop *l, struct pt_rng *rng, int number)
{
    int fds[2];
    *f = (struct life){.loop = l, .rng = rng, .alive = true};
    enum family family = (enum family)pt_rng_below(rng, FAMILIES);
    f->datagram = family >= STREAMS;
    pair(family, fds);
    int at = fds[1] == number; /* which of the two is the loop's */
    f->near = fds[at];
    f->far = fds[1 - at];
    if (number >= 0 && f->near != number) {
        assert_int_equal(dup3(f->near, number, O_CLOEXEC), number);
        close(f->near);
        f->near = number;
    }
    f->recv = (struct pt_recv){.fd = f->near,
                               .kind = f->datagram ? PT_RECV_DGRAM : PT_RECV_STREAM,
                               .batch = (unsigned)pt_rng_below(rng, 5),
                               .fn = seen,
                               .ctx = f};
    f->out = (struct pt_op){.fn = gone, .ctx = f};
    assert_int_equal(pt_recv_start(l, &f->recv), 0);
}

static void end(struct life *f)
{
    pt_recv_stop(f->loop, &f->recv);
    pt_op_cancel(f->loop, &f->out);
    f->alive = false;
    close(f->far);
    close(f->near);
}

static void write_some(struct life *f, size_t most)
{
    static uint8_t bytes[CHUNK];
    if (f->shut || f->sending)
        return;
    size_t n = 1 + (size_t)pt_rng_below(f->rng, f->datagram && most > 1000 ? 1000 : most);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(f->wrote + i);
    ssize_t done = send(f->far, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done <= 0)
        return;
    f->wrote = (uint8_t)(f->wrote + (size_t)done);
    f->unread += (size_t)done;
}

/* The loop's own sending end, with nobody reading: part of it stays until it is cancelled. */
static void stuff(struct life *f)
{
    static const uint8_t zeros[1 << 20];
    if (f->sending || f->datagram || f->ended)
        return;
    f->sending = true;
    assert_int_equal(pt_op_send(f->loop, &f->out, f->near, zeros, sizeof(zeros)), 0);
}

static void go_on(struct life *f)
{
    f->paused = false;
    assert_int_equal(pt_recv_resume(f->loop, &f->recv), 0);
}

static void act(struct life *f, struct pt_loop *l, struct pt_rng *rng)
{
    int number = f->near;
    if (f->paused && f->alive && pt_rng_below(rng, 4))
        go_on(f);
    switch (pt_rng_below(rng, 16)) {
    case 0:
        end(f);
        begin(f, l, rng, number);
        break;
    case 1:
        if (!f->datagram && !f->shut) {
            f->shut = true;
            shutdown(f->far, SHUT_WR);
        }
        break;
    case 2:
        stuff(f);
        break;
    case 3:
        write_some(f, CHUNK);
        break;
    default:
        write_some(f, 300);
        break;
    }
}

static void agrees_with_the_model(void **state)
{
    uint64_t seed;
    assert_int_equal(pt_random_bytes(&seed, sizeof(seed)), 0);
    const char *given = getenv("PT_SEED");
    if (given)
        seed = strtoull(given, NULL, 0);
    print_message("# seed %llu\n", (unsigned long long)seed);
    struct pt_rng rng;
    pt_rng_init(&rng, seed);
    struct pt_loop *l = loop_of(state, 4096, 4);
    static struct life lives[PAIRS];
    /* Few at first, so that the direct paths of epoll have their turn, too. */
    size_t count = 1;
    after_stop = wrong = 0;
    begin(&lives[0], l, &rng, -1);
    for (int i = 0; i < STEPS; i++) {
        if (i % 128 == 127 && count < PAIRS)
            begin(&lives[count++], l, &rng, -1);
        act(&lives[pt_rng_below(&rng, count)], l, &rng);
        if (pt_rng_below(&rng, 2))
            assert_true(pt_loop_step(l, pt_rng_below(&rng, 8) ? 0 : pt_clock_now() + 20 * PT_US) >=
                        0);
        assert_int_equal(after_stop, 0);
        assert_int_equal(wrong, 0);
    }
    /* Everything written to a receive that still runs arrives, and every end is seen. */
    for (size_t i = 0; i < count; i++) {
        struct life *f = &lives[i];
        while (f->alive && (f->unread > 0 || f->shut != f->ended)) {
            if (f->paused)
                go_on(f);
            UNTIL(l, !f->alive || f->paused || (f->unread == 0 && f->shut == f->ended));
        }
    }
    assert_int_equal(wrong + after_stop, 0);
    for (size_t i = 0; i < count; i++)
        end(&lives[i]);
    settle(l);
    pt_loop_free(l);
}

int main(void)
{
    static const struct loop_test tests[] = {LOOP_TEST(agrees_with_the_model)};
    return run_loop_tests(tests, PT_COUNT(tests));
}
