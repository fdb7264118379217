/* test_serve.c: sessions of `pitot serve` over real sockets: handshake, flows, limits, ends.
 *
 * What strangers on the port see is in test/scenario/test_serve.py.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_rig.h"

#include "cmd/serve.h"

static void listen_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *first, *second;
    } good[] = {
        {"10.0.0.2", "10.0.0.2:7411", NULL},     {"10.0.0.2:80", "10.0.0.2:80", NULL},
        {"127.0.0.1:0", "127.0.0.1:0", NULL},    {"[::1]:0", "[::1]:0", NULL},
        {"[::1]", "[::1]:7411", NULL},           {"::", "[::]:7411", NULL},
        {"fd00::1:0", "[fd00::1:0]:7411", NULL}, {":99", "0.0.0.0:99", "[::]:99"},
        {"unix:/run/p", "unix:/run/p", NULL},
    };
    static const char *const bad[] = {
        "",         ":",     ":x",   ":70000", "host:1",
        "1.2.3.4:", "1.2.3", "[::1", ":0x50",  ":11111111111111111111"};
    struct pt_err e = {0};
    char text[PT_ADDR_TEXT];
    for (size_t i = 0; i < PT_COUNT(good); i++) {
        struct pt_serve_spec spec = {0};
        if (pt_serve_listen(&spec, good[i].text, &e) != 0)
            fail_msg("%s: %s", good[i].text, e.text);
        assert_int_equal(spec.listen_count, good[i].second ? 2 : 1);
        assert_string_equal(pt_addr_print(&spec.listen[0], text), good[i].first);
        if (good[i].second)
            assert_string_equal(pt_addr_print(&spec.listen[1], text), good[i].second);
    }
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        struct pt_serve_spec spec = {0};
        assert_int_equal(pt_serve_listen(&spec, bad[i], &e), -EINVAL);
    }
    struct pt_serve_spec spec = {0};
    for (int i = 0; i < PT_SERVE_LISTEN_MAX; i++)
        assert_int_equal(pt_serve_listen(&spec, "1.2.3.4", &e), 0);
    assert_int_equal(pt_serve_listen(&spec, "1.2.3.4", &e), -EINVAL);
}

static void options_are_sound(void **state)
{
    (void)state;
    struct pt_serve_opts values;
    struct pt_opts set = {.table = pt_serve_opts, .values = &values};
    struct pt_err e = {0};
    if (pt_opts_valid(&set, 1, &e) != 0 || pt_opts_init(&set, &e) != 0)
        fail_msg("%s", e.text);
    /* Without --listen nothing beyond the loopback listens. */
    struct pt_serve_spec spec = {0};
    assert_int_equal(pt_serve_spec_fill(&spec, &values, &e), 0);
    assert_true(spec.listen_count > 0);
    for (unsigned i = 0; i < spec.listen_count; i++)
        assert_true(pt_addr_is_loopback(&spec.listen[i]));
    static const char *const line[] = {"--max-rate=1gbit", "--max-duration=90s",
                                       "--allow=10.0.0.0/8,fd00::/8", "--connections=3"};
    struct pt_args args;
    assert_int_equal(pt_opts_parse(&set, 1, PT_COUNT(line), line, &args, &e), 0);
    spec = (struct pt_serve_spec){0};
    assert_int_equal(pt_serve_spec_fill(&spec, &values, &e), 0);
    assert_true(spec.caps.max_rate_bits > 0.99e9 && spec.caps.max_rate_bits < 1.01e9);
    assert_int_equal(spec.caps.max_duration, 90 * PT_S);
    assert_int_equal(spec.allow_count, 2);
    assert_int_equal(spec.sessions, 3);
    values.max_rate.bits = false;
    assert_int_equal(pt_serve_spec_fill(&spec, &values, &e), -EINVAL);
}

static void set_secret(struct pt_secret *s, const char *text)
{
    s->len = strlen(text);
    memcpy(s->bytes, text, s->len);
}

static void welcomes_without_secret(void **state)
{
    (void)state;
    struct rig r = {0};
    struct pt_serve_spec spec = {.caps = {.max_rate_bits = 1e9,
                                          .max_duration = 90 * PT_S,
                                          .max_sessions = 7,
                                          .max_connections = 100}};
    struct pt_control c;
    struct pt_welcome w;
    rig_start(&r, &spec);
    rig_must_open(&r, &c, &w, NULL);
    assert_memory_equal(&w.caps, &spec.caps, sizeof(w.caps));
    json_t *mine = pt_identity();
    const char *boot = json_string_value(json_object_get(mine, "boot_id"));
    assert_non_null(boot);
    assert_string_equal(json_string_value(json_object_get(w.identity, "boot_id")), boot);
    assert_string_equal(json_string_value(json_object_get(w.identity, "pitot")), PT_VERSION);
    json_decref(mine);
    pt_control_fini(&c);
    pt_welcome_fini(&w);
    rig_stop(&r);
}

static void secrets_are_proved_both_ways(void **state)
{
    (void)state;
    struct rig r = {0}, open = {0};
    static struct pt_serve_spec spec, none;
    static struct pt_secret wrong, right;
    struct pt_control c;
    struct pt_welcome w;
    struct pt_err e = {0};
    set_secret(&right, "a long enough secret");
    set_secret(&wrong, "a long enough secreT");
    spec.secret = right;
    rig_start(&r, &spec);
    rig_must_open(&r, &c, &w, &right);
    pt_control_fini(&c);
    pt_welcome_fini(&w);
    assert_int_equal(rig_open(&r, &c, &w, &wrong, &e), -EACCES);
    assert_non_null(strstr(e.text, "wrong secret"));
    assert_int_equal(c.fd, -1);
    assert_int_equal(rig_open(&r, &c, &w, NULL, &e), -EACCES);
    assert_non_null(strstr(e.text, "--secret-file"));
    rig_stop(&r);
    rig_start(&open, &none);
    assert_int_equal(rig_open(&open, &c, &w, &right, &e), -EACCES);
    assert_non_null(strstr(e.text, "cannot prove"));
    rig_stop(&open);
}

/* A raw connection that has sent a preamble and a hello with this nonce. */
static void raw_hello(struct rig *r, struct pt_control *c, const char *nonce)
{
    struct pt_err e = {0};
    uint8_t first[PT_PREAMBLE_SIZE];
    int fd = pt_sock_connect(SOCK_STREAM, &r->at.addr[0], NULL, NULL, soon(), &e);
    assert_true(fd >= 0);
    pt_preamble_write(
        first, &(struct pt_preamble){.version = PT_PROTO_VERSION, .kind = PT_PREAMBLE_CONTROL});
    assert_int_equal(send(fd, first, sizeof(first), 0), sizeof(first));
    pt_control_init(c, fd, "server");
    json_t *hello = json_pack("{s:s, s:[i], s:s, s:{}}", "type", "hello", "versions", 1, "nonce",
                              nonce, "identity");
    assert_int_equal(pt_control_send_new(c, hello, soon(), &e), 0);
}

static void a_recorded_proof_is_worth_nothing(void **state)
{
    (void)state;
    static struct pt_serve_spec spec;
    struct rig r = {0};
    struct pt_control c;
    uint8_t theirs[PT_NONCE_SIZE], ours[PT_NONCE_SIZE] = {7}, proof[PT_SHA256_SIZE];
    char nonce[2 * PT_NONCE_SIZE + 1], first_nonce[2 * PT_NONCE_SIZE + 1] = "", hex[65];
    set_secret(&spec.secret, "xyzzy");
    rig_start(&r, &spec);
    pt_hex(nonce, ours, sizeof(ours));
    for (int round = 0; round < 3; round++) {
        json_t *m;
        struct pt_err e = {0};
        raw_hello(&r, &c, nonce);
        assert_int_equal(pt_control_expect(&c, "hello", &m, soon(), &e), 0);
        /* Before the proof the server says nothing of itself. */
        assert_null(json_object_get(m, "identity"));
        assert_null(json_object_get(m, "token"));
        const char *text = json_string_value(json_object_get(m, "nonce"));
        if (round == 0) {
            snprintf(first_nonce, sizeof(first_nonce), "%s", text);
            assert_int_equal(pt_unhex(theirs, sizeof(theirs), text), 0);
            pt_secret_prove(&spec.secret, theirs, ours, "client", proof);
        } else {
            assert_string_not_equal(text, first_nonce);
            if (round == 2) { /* the server's own role, sent back */
                assert_int_equal(pt_unhex(theirs, sizeof(theirs), text), 0);
                pt_secret_prove(&spec.secret, theirs, ours, "server", proof);
            }
        }
        json_decref(m);
        pt_hex(hex, proof, sizeof(proof));
        m = json_pack("{s:s, s:s}", "type", "auth", "proof", hex);
        assert_int_equal(pt_control_send_new(&c, m, soon(), &e), 0);
        int rc = pt_control_expect(&c, "welcome", &m, soon(), &e);
        assert_int_equal(rc, round == 0 ? 0 : -EACCES);
        if (rc == 0)
            json_decref(m);
        pt_control_fini(&c);
    }
    rig_stop(&r);
}

static void other_versions_hear_both(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {0};
    struct rig r = {0};
    struct pt_control c;
    struct pt_err e = {0};
    json_t *m;
    rig_start(&r, &spec);
    uint8_t first[PT_PREAMBLE_SIZE];
    int fd = pt_sock_connect(SOCK_STREAM, &r.at.addr[0], NULL, NULL, soon(), &e);
    assert_true(fd >= 0);
    pt_preamble_write(first, &(struct pt_preamble){.version = 9, .kind = PT_PREAMBLE_CONTROL});
    assert_int_equal(send(fd, first, sizeof(first), 0), sizeof(first));
    pt_control_init(&c, fd, "server");
    assert_int_equal(pt_control_recv(&c, &m, soon(), &e), -EPROTONOSUPPORT);
    assert_non_null(strstr(e.text, "version 1"));
    pt_control_fini(&c);
    rig_stop(&r);
}

static void carries_flows(const char *listen, int type, unsigned count)
{
    struct pt_serve_spec spec = {0};
    struct rig r = {0};
    struct pt_control c;
    struct pt_welcome w;
    struct pt_err e = {0};
    static struct pt_dial flows[RIG_FLOWS_MAX];
    if (listen)
        assert_int_equal(pt_serve_listen(&spec, listen, &e), 0);
    rig_start(&r, &spec);
    if (listen && strncmp(listen, "0.0.0.0", 7) == 0) {
        uint16_t port = pt_addr_port(&r.at.addr[0]);
        assert_int_equal(pt_addr_parse(&r.at.addr[0], "127.0.0.9", PT_PORT, &e), 0);
        pt_addr_set_port(&r.at.addr[0], port);
    }
    rig_must_open(&r, &c, &w, NULL);
    rig_flows(&c, &w, flows, 0, count, type);
    rig_check_echo(flows, count);
    rig_check_echo(flows, count);
    rig_close(flows, count);
    pt_control_fini(&c);
    pt_welcome_fini(&w);
    rig_stop(&r);
}

static void streams(void **state)
{
    (void)state;
    carries_flows(NULL, SOCK_STREAM, 400);
}

static void datagrams(void **state)
{
    (void)state;
    carries_flows(NULL, SOCK_DGRAM, 200);
}

static void datagrams_on_ipv6(void **state)
{
    (void)state;
    carries_flows("[::1]:0", SOCK_DGRAM, 64);
}

/* The flow's socket must take the address that the client wrote to, which only the kernel knows. */
static void datagrams_on_a_wildcard(void **state)
{
    (void)state;
    carries_flows("0.0.0.0:0", SOCK_DGRAM, 64);
}

static void unix_streams(void **state)
{
    (void)state;
    char dir[] = "/tmp/pitot-test-XXXXXX", listen[64];
    assert_non_null(mkdtemp(dir));
    snprintf(listen, sizeof(listen), "unix:%s/s", dir);
    carries_flows(listen, SOCK_STREAM, 64);
    assert_int_equal(rmdir(dir), 0); /* the socket's name is gone too */
}

/* Flow ids come back with the next test of a session, UDP ones too. */
static void ids_are_used_again(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {0};
    struct rig r = {0};
    struct pt_control c;
    struct pt_welcome w;
    struct pt_dial flows[8];
    struct pt_err e = {0};
    rig_start(&r, &spec);
    rig_must_open(&r, &c, &w, NULL);
    for (int round = 0; round < 3; round++) {
        rig_flows(&c, &w, flows, 5, 8, round == 1 ? SOCK_STREAM : SOCK_DGRAM);
        rig_check_echo(flows, 8);
        rig_close(flows, 8);
        /* The rig's session ends a test at the next message. */
        json_t *again = json_pack("{s:s, s:i}", "type", "open", "count", 0);
        json_t *m;
        assert_int_equal(pt_control_send_new(&c, again, soon(), &e), 0);
        assert_int_equal(pt_control_expect(&c, "go", &m, soon(), &e), 0);
        json_decref(m);
        assert_int_equal(pt_control_send_new(&c, json_pack("{s:s}", "type", "began"), soon(), &e),
                         0);
        assert_int_equal(pt_control_expect(&c, "standing", &m, soon(), &e), 0);
        json_decref(m);
    }
    pt_control_fini(&c);
    pt_welcome_fini(&w);
    rig_stop(&r);
}

/* How many bytes come back for `n` bytes in one datagram. */
static ssize_t udp_answer(const struct pt_addr *to, const void *bytes, size_t n, uint8_t *back,
                          size_t cap)
{
    struct pt_err e = {0};
    int fd = pt_sock_connect(SOCK_DGRAM, to, NULL, NULL, soon(), &e);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, bytes, n, 0), n);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t got = poll(&p, 1, 150) == 1 ? recv(fd, back, cap, 0) : 0;
    while (poll(&p, 1, 0) == 1) {
        ssize_t more = recv(fd, back + got, cap - (size_t)got, 0);
        got += more > 0 ? more : 0;
    }
    close(fd);
    return got;
}

static void udp_answers_tokens_only_and_never_more_than_asked(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {0};
    struct rig r = {0};
    struct pt_control c;
    struct pt_welcome w;
    uint8_t knock[PT_KNOCK_SIZE + 1] = {0}, back[4096], none[PT_UDP_NONCE_SIZE] = {0};
    rig_start(&r, &spec);
    rig_must_open(&r, &c, &w, NULL);
    struct pt_preamble p = {.version = PT_PROTO_VERSION, .kind = PT_PREAMBLE_HELLO, .flow = 3};
    pt_knock_write(knock, &p, none);
    assert_int_equal(udp_answer(&c.peer, knock, PT_KNOCK_SIZE, back, sizeof(back)), 0);
    memcpy(p.token, w.token, PT_TOKEN_SIZE);
    p.token[15] ^= 1;
    pt_knock_write(knock, &p, none);
    assert_int_equal(udp_answer(&c.peer, knock, PT_KNOCK_SIZE, back, sizeof(back)), 0);
    p.token[15] ^= 1;
    pt_knock_write(knock, &p, none);
    assert_int_equal(udp_answer(&c.peer, knock, PT_KNOCK_SIZE + 1, back, sizeof(back)), 0);
    assert_int_equal(udp_answer(&c.peer, knock, PT_KNOCK_SIZE - 1, back, sizeof(back)), 0);
    assert_int_equal(udp_answer(&c.peer, "", 0, back, sizeof(back)), 0);
    assert_int_equal(udp_answer(&c.peer, knock, PT_KNOCK_SIZE, back, sizeof(back)), PT_KNOCK_SIZE);
    struct pt_preamble got;
    uint8_t nonce[PT_UDP_NONCE_SIZE];
    assert_int_equal(pt_knock_read(&got, nonce, back, PT_KNOCK_SIZE), 0);
    assert_int_equal(got.kind, PT_PREAMBLE_CHALLENGE);
    /* The challenge of one address proves nothing for another (udp_answer has a new port). */
    p.kind = PT_PREAMBLE_PROOF;
    pt_knock_write(knock, &p, nonce);
    assert_int_equal(udp_answer(&c.peer, knock, PT_KNOCK_SIZE, back, sizeof(back)), 0);
    pt_control_fini(&c);
    pt_welcome_fini(&w);
    rig_stop(&r);
}

static void a_guessed_token_is_closed(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {0};
    struct rig r = {0};
    struct pt_err e = {0};
    struct pt_dial flow = {.flow = 0};
    uint8_t token[PT_TOKEN_SIZE] = {1};
    rig_start(&r, &spec);
    assert_int_equal(pt_dial_flows(&flow, 1, SOCK_STREAM, &r.at.addr[0], token, NULL, soon(), &e),
                     -ECONNRESET);
    assert_int_equal(flow.fd, -1);
    flow = (struct pt_dial){.flow = 0};
    assert_int_equal(pt_dial_flows(&flow, 1, SOCK_DGRAM, &r.at.addr[0], token, NULL,
                                   pt_clock_now() + 300 * PT_MS, &e),
                     -ETIMEDOUT);
    rig_stop(&r);
}

struct victim {
    struct rig *rig;
    int told;
};

static int open_and_hang(void *ctx)
{
    struct victim *v = ctx;
    struct pt_control c;
    struct pt_welcome w;
    struct pt_err e = {0};
    struct pt_dial flows[4];
    if (rig_open(v->rig, &c, &w, NULL, &e) != 0)
        return 1;
    rig_flows(&c, &w, flows, 0, 4, SOCK_STREAM);
    if (write(v->told, "x", 1) != 1)
        return 1;
    pause();
    return 0;
}

static void a_killed_client_frees_its_slot(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {.caps.max_sessions = 1};
    struct rig r = {0};
    struct pt_control c;
    struct pt_welcome w;
    struct pt_err e = {0};
    int pipes[2];
    char byte;
    rig_start(&r, &spec);
    assert_int_equal(pipe(pipes), 0);
    struct victim v = {&r, pipes[1]};
    struct pt_child client;
    assert_int_equal(pt_child_start(&client, open_and_hang, &v, &e), 0);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    assert_int_equal(rig_open(&r, &c, &w, NULL, &e), -EBUSY);
    assert_non_null(strstr(e.text, "sessions"));
    pt_child_end(&client, 0, NULL);
    pt_ns killed = pt_clock_now();
    while (rig_open(&r, &c, &w, NULL, &e) == -EBUSY)
        assert_true(pt_clock_now() - killed < PT_S);
    assert_true(c.fd >= 0);
    pt_control_fini(&c);
    pt_welcome_fini(&w);
    close(pipes[0]);
    close(pipes[1]);
    rig_stop(&r);
}

static int use_once(void *ctx)
{
    struct rig *r = ctx;
    struct pt_control c;
    struct pt_welcome w;
    struct pt_dial flows[8];
    struct pt_err e = {0};
    if (rig_open(r, &c, &w, NULL, &e) != 0) {
        fprintf(stderr, "# %s\n", e.text);
        return 1;
    }
    rig_flows(&c, &w, flows, 0, 8, getpid() % 2 ? SOCK_STREAM : SOCK_DGRAM);
    rig_check_echo(flows, 8);
    return 0;
}

static void many_clients_at_once(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {0};
    struct rig r = {0};
    struct pt_child clients[40];
    struct pt_err e = {0};
    rig_start(&r, &spec);
    for (size_t i = 0; i < PT_COUNT(clients); i++)
        assert_int_equal(pt_child_start(&clients[i], use_once, &r, &e), 0);
    for (size_t i = 0; i < PT_COUNT(clients); i++) {
        struct pt_exit x;
        assert_int_equal(pt_child_wait(&clients[i], pt_clock_now() + 20 * PT_S, &x), 0);
        assert_int_equal(x.code, 0);
        assert_int_equal(x.signal, 0);
    }
    rig_stop(&r);
}

static void ends_after_so_many_sessions(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {.sessions = 2};
    struct rig r = {0};
    struct pt_exit x;
    struct pt_err e = {0};
    struct pt_control c[3];
    struct pt_welcome w[3];
    rig_start(&r, &spec);
    rig_must_open(&r, &c[0], &w[0], NULL);
    rig_must_open(&r, &c[1], &w[1], NULL);
    assert_int_equal(rig_open(&r, &c[2], &w[2], NULL, &e), -EBUSY);
    for (int i = 0; i < 2; i++) {
        pt_control_fini(&c[i]);
        pt_welcome_fini(&w[i]);
    }
    assert_int_equal(pt_child_wait(&r.child, soon(), &x), 0);
    assert_int_equal(x.code, 0);
}

static void a_session_ends_at_its_limit(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {.caps.max_duration = 50 * PT_MS};
    struct rig r = {0};
    struct pt_control c;
    struct pt_welcome w;
    struct pt_err e = {0};
    json_t *m;
    rig_start(&r, &spec);
    pt_ns began = pt_clock_now();
    rig_must_open(&r, &c, &w, NULL);
    assert_int_equal(pt_control_recv(&c, &m, soon(), &e), -ECONNRESET);
    assert_true(pt_clock_now() - began >= 50 * PT_MS);
    pt_control_fini(&c);
    pt_welcome_fini(&w);
    rig_stop(&r);
}

static int take_over(void *ctx)
{
    struct pt_serve_spec *spec = ctx;
    struct pt_serve *s;
    struct pt_err e = {0};
    return pt_serve_open(&s, spec, &e) == -EADDRINUSE ? 0 : 1;
}

static void a_port_in_use_is_an_error(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {0}, again = {0};
    struct rig r = {0};
    struct pt_control c;
    struct pt_welcome w;
    rig_start(&r, &spec);
    rig_must_open(&r, &c, &w, NULL);
    again.listen[again.listen_count++] = r.at.addr[0];
    assert_int_equal(take_over(&again), 0);
    /* UDP alone: the port of a plain UDP socket. */
    struct pt_err e = {0};
    struct pt_addr at;
    pt_addr_any(&at, AF_INET, 0);
    int fd = pt_sock_bind(&at, &(struct pt_sockopts){.reuseport = true}, &e);
    assert_true(fd >= 0);
    assert_int_equal(pt_addr_local(&again.listen[0], fd), 0);
    assert_int_equal(take_over(&again), 0);
    close(fd);
    pt_control_fini(&c);
    pt_welcome_fini(&w);
    rig_stop(&r);
}

static void a_child_of_ones_own(void **state)
{
    (void)state;
    struct pt_serve_spec spec = {.session = rig_session};
    struct pt_serve_child child;
    struct pt_err e = {0};
    assert_int_equal(pt_serve_child_start(&child, &spec, &e), 0);
    struct rig r = {.at = child.at};
    struct pt_control c;
    struct pt_welcome w;
    struct pt_dial flows[2];
    assert_int_equal(rig_open(&r, &c, &w, NULL, &e), -EACCES);
    rig_must_open(&r, &c, &w, &child.secret);
    rig_flows(&c, &w, flows, 0, 2, SOCK_DGRAM);
    rig_check_echo(flows, 2);
    rig_close(flows, 2);
    pt_control_fini(&c);
    pt_welcome_fini(&w);
    pt_serve_child_end(&child);
    assert_int_equal(rig_open(&r, &c, &w, &child.secret, &e), -ECONNREFUSED);
    pt_serve_child_end(&child);
}

/* The parent dies without a word: the server and its session go too. */
static int parent_that_dies(void *ctx)
{
    int *pipes = ctx;
    struct pt_serve_spec spec = {.session = rig_session};
    struct pt_serve_child child;
    struct pt_err e = {0};
    if (pt_serve_child_start(&child, &spec, &e) != 0)
        return 1;
    struct rig r = {.at = child.at};
    struct pt_control c;
    struct pt_welcome w;
    if (rig_open(&r, &c, &w, &child.secret, &e) != 0 ||
        write(pipes[1], &child.at, sizeof(child.at)) < 0)
        return 1;
    raise(SIGKILL);
    return 0;
}

static void a_child_does_not_outlive_us(void **state)
{
    (void)state;
    int pipes[2];
    struct pt_child parent;
    struct pt_exit x;
    struct pt_err e = {0};
    struct pt_addr_list at;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(pt_child_start(&parent, parent_that_dies, pipes, &e), 0);
    assert_int_equal(pt_child_wait(&parent, soon(), &x), 0);
    assert_int_equal(x.signal, SIGKILL);
    assert_int_equal(read(pipes[0], &at, sizeof(at)), sizeof(at));
    /* The server inherited the write end: the end of the file says that it is dying. */
    close(pipes[1]);
    struct pollfd p = {.fd = pipes[0], .events = POLLIN};
    assert_int_equal(poll(&p, 1, 5000), 1);
    char byte;
    assert_int_equal(read(pipes[0], &byte, 1), 0);
    close(pipes[0]);
    /* Its descriptors close one by one. */
    pt_ns until = soon();
    int fd = 0;
    while (fd != -ECONNREFUSED && pt_clock_now() < until) {
        fd = pt_sock_connect(SOCK_STREAM, &at.addr[0], NULL, NULL, soon(), &e);
        if (fd >= 0)
            close(fd);
    }
    assert_int_equal(fd, -ECONNREFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listen_addresses),
        cmocka_unit_test(options_are_sound),
        cmocka_unit_test(welcomes_without_secret),
        cmocka_unit_test(secrets_are_proved_both_ways),
        cmocka_unit_test(a_recorded_proof_is_worth_nothing),
        cmocka_unit_test(other_versions_hear_both),
        cmocka_unit_test(streams),
        cmocka_unit_test(datagrams),
        cmocka_unit_test(datagrams_on_ipv6),
        cmocka_unit_test(datagrams_on_a_wildcard),
        cmocka_unit_test(unix_streams),
        cmocka_unit_test(ids_are_used_again),
        cmocka_unit_test(udp_answers_tokens_only_and_never_more_than_asked),
        cmocka_unit_test(a_guessed_token_is_closed),
        cmocka_unit_test(a_killed_client_frees_its_slot),
        cmocka_unit_test(many_clients_at_once),
        cmocka_unit_test(ends_after_so_many_sessions),
        cmocka_unit_test(a_session_ends_at_its_limit),
        cmocka_unit_test(a_port_in_use_is_an_error),
        cmocka_unit_test(a_child_of_ones_own),
        cmocka_unit_test(a_child_does_not_outlive_us),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
