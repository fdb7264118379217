/* handshake.c: how a session is opened, both halves (control.h; docs/formats/control.md).
 *
 * The server says nothing about itself, and hands out no token, before the client has proved the
 * secret; the client sends no plan before the server has.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "net/control.h"
#include "net/sock.h"
#include "os/clock.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define AUTH_NONE "none"
#define AUTH_HMAC "hmac-sha256"

/* What a wrong secret costs the one who tries, beside a connection each time. */
#define WRONG_SECRET_PAUSE (300 * PT_MS)

void pt_welcome_fini(struct pt_welcome *w)
{
    json_decref(w->identity);
    w->identity = NULL;
    pt_wipe(w->token, sizeof(w->token));
}

/* ---- pieces of messages */

static int read_hex(const json_t *message, const char *key, uint8_t *out, size_t n)
{
    const char *text = json_string_value(json_object_get(message, key));
    return text ? pt_unhex(out, n, text) : -EINVAL;
}

static bool is_text(const json_t *value)
{
    const char *s = json_string_value(value);
    size_t n = json_string_length(value);
    if (n > 256)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return false;
    return true;
}

/* A flat object of numbers and short strings that can be shown to a person as they are. */
static bool is_identity(json_t *value)
{
    if (!json_is_object(value) || json_object_size(value) > 32)
        return false;
    for (void *it = json_object_iter(value); it; it = json_object_iter_next(value, it)) {
        const json_t *v = json_object_iter_value(it);
        if (json_is_object(v) || json_is_array(v) || (json_is_string(v) && !is_text(v)))
            return false;
    }
    return true;
}

static json_t *caps_to_json(const struct pt_caps *caps)
{
    return json_pack("{s:f, s:f, s:I, s:I}", "max_rate_bits", caps->max_rate_bits, "max_duration_s",
                     (double)caps->max_duration / 1e9, "max_sessions",
                     (json_int_t)caps->max_sessions, "max_connections",
                     (json_int_t)caps->max_connections);
}

static int caps_from_json(struct pt_caps *caps, json_t *from)
{
    double rate, seconds;
    json_int_t sessions, connections;
    if (json_unpack(from, "{s:F, s:F, s:I, s:I}", "max_rate_bits", &rate, "max_duration_s",
                    &seconds, "max_sessions", &sessions, "max_connections", &connections) != 0)
        return -EPROTO;
    if (!(rate >= 0) || !(seconds >= 0 && seconds < 1e9) || sessions < 0 || sessions > UINT32_MAX ||
        connections < 0 || connections > UINT32_MAX)
        return -EPROTO;
    *caps = (struct pt_caps){.max_rate_bits = rate,
                             .max_duration = (pt_ns)(seconds * 1e9),
                             .max_sessions = (unsigned)sessions,
                             .max_connections = (unsigned)connections};
    return 0;
}

/* ---- client */

static int send_hello(struct pt_control *c, const uint8_t nonce[PT_NONCE_SIZE],
                      const json_t *identity, pt_ns deadline, struct pt_err *e)
{
    uint8_t first[PT_PREAMBLE_SIZE];
    pt_preamble_write(
        first, &(struct pt_preamble){.version = PT_PROTO_VERSION, .kind = PT_PREAMBLE_CONTROL});
    ssize_t n = send(c->fd, first, sizeof(first), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n != (ssize_t)sizeof(first)) {
        int code = n < 0 ? -errno : -EPIPE;
        return pt_fail(e, code, "sending to the %s: %s", c->name, pt_strerror(code));
    }
    char hex[2 * PT_NONCE_SIZE + 1];
    pt_hex(hex, nonce, PT_NONCE_SIZE);
    json_t *copy = identity ? json_deep_copy(identity) : json_object();
    return pt_control_send_new(c,
                               json_pack("{s:s, s:[i], s:s, s:o}", "type", "hello", "versions",
                                         PT_PROTO_VERSION, "nonce", hex, "identity", copy),
                               deadline, e);
}

/* Reads the server's hello; `*auth` says whether it asks for the secret. */
static int read_server_hello(struct pt_control *c, uint8_t nonce[PT_NONCE_SIZE], bool *auth,
                             pt_ns deadline, struct pt_err *e)
{
    json_t *hello;
    int rc = pt_control_expect(c, "hello", &hello, deadline, e);
    if (rc)
        return rc;
    json_int_t version = json_integer_value(json_object_get(hello, "version"));
    const char *how = json_string_value(json_object_get(hello, "auth"));
    if (version != PT_PROTO_VERSION)
        rc = pt_fail(e, -EPROTONOSUPPORT, "%s speaks protocol version %lld, this pitot version %d",
                     c->name, (long long)version, PT_PROTO_VERSION);
    else if (!how || (strcmp(how, AUTH_NONE) != 0 && strcmp(how, AUTH_HMAC) != 0))
        rc =
            pt_fail(e, -EPROTONOSUPPORT, "%s asks for a way to authenticate unknown here", c->name);
    else if (read_hex(hello, "nonce", nonce, PT_NONCE_SIZE) != 0)
        rc = pt_fail(e, -EPROTO, "%s sent a malformed hello", c->name);
    else
        *auth = strcmp(how, AUTH_HMAC) == 0;
    json_decref(hello);
    return rc;
}

static int read_welcome(struct pt_control *c, struct pt_welcome *w,
                        const uint8_t proof[PT_SHA256_SIZE], pt_ns deadline, struct pt_err *e)
{
    json_t *m;
    int rc = pt_control_expect(c, "welcome", &m, deadline, e);
    if (rc)
        return rc;
    uint8_t theirs[PT_SHA256_SIZE];
    json_t *identity = json_object_get(m, "identity");
    if (proof && (read_hex(m, "proof", theirs, sizeof(theirs)) != 0 ||
                  !pt_equal_secret(proof, theirs, sizeof(theirs))))
        rc = pt_fail(e, -EACCES,
                     "%s does not know the secret: it is not the server that --secret-file is for",
                     c->name);
    else if (read_hex(m, "token", w->token, PT_TOKEN_SIZE) != 0 || !is_identity(identity) ||
             caps_from_json(&w->caps, json_object_get(m, "caps")) != 0)
        rc = pt_fail(e, -EPROTO, "%s sent a malformed welcome", c->name);
    else
        w->identity = json_incref(identity);
    json_decref(m);
    return rc;
}

static int client_handshake(struct pt_control *c, const struct pt_secret *secret,
                            const json_t *identity, struct pt_welcome *w, pt_ns deadline,
                            struct pt_err *e)
{
    uint8_t ours[PT_NONCE_SIZE], theirs[PT_NONCE_SIZE], proof[PT_SHA256_SIZE];
    char hex[2 * PT_SHA256_SIZE + 1];
    bool auth = false;
    int rc = pt_random_bytes(ours, sizeof(ours));
    if (rc)
        return pt_fail(e, rc, "random bytes: %s", pt_strerror(rc));
    rc = send_hello(c, ours, identity, deadline, e);
    if (!rc)
        rc = read_server_hello(c, theirs, &auth, deadline, e);
    if (rc)
        return rc;
    bool have = secret && secret->len;
    if (auth && !have)
        return pt_fail(e, -EACCES, "%s asks for a secret: give it with --secret-file", c->name);
    if (have && !auth)
        return pt_fail(e, -EACCES,
                       "%s asks for no secret and so cannot prove that it is yours; start it with "
                       "--secret-file, or leave that out here",
                       c->name);
    if (!auth)
        return read_welcome(c, w, NULL, deadline, e);
    pt_secret_prove(secret, theirs, ours, "client", proof);
    pt_hex(hex, proof, sizeof(proof));
    rc = pt_control_send_new(c, json_pack("{s:s, s:s}", "type", "auth", "proof", hex), deadline, e);
    if (rc)
        return rc;
    pt_secret_prove(secret, theirs, ours, "server", proof);
    return read_welcome(c, w, proof, deadline, e);
}

int pt_control_open(struct pt_control *c, const struct pt_addr_list *to, const struct pt_addr *from,
                    const struct pt_secret *secret, const json_t *identity, struct pt_welcome *w,
                    pt_ns deadline, struct pt_err *e)
{
    *w = (struct pt_welcome){0};
    *c = (struct pt_control){.fd = -1};
    unsigned used;
    struct pt_err why = {0};
    int fd = pt_sock_connect_any(SOCK_STREAM, to, from, NULL, deadline, &used, &why);
    if (fd < 0)
        return pt_fail(e, fd, "%s%s", why.text,
                       fd == -ECONNREFUSED ? " (start `pitot serve` on that host)"
                       : fd == -ENOENT     ? "; start `pitot serve --listen unix:PATH`"
                                           : "");
    pt_control_init(c, fd, "server");
    int rc = client_handshake(c, secret, identity, w, deadline, e);
    if (rc == 0) {
        c->in.limit = PT_CONTROL_MAX;
        return 0;
    }
    rc = pt_control_lost(c, rc, e);
    pt_control_fini(c);
    pt_welcome_fini(w);
    return rc;
}

/* ---- server */

static bool speaks_version(const json_t *hello)
{
    size_t i;
    json_t *version;
    json_array_foreach(json_object_get(hello, "versions"), i,
                       version) if (json_integer_value(version) == PT_PROTO_VERSION) return true;
    return false;
}

static int read_client_hello(struct pt_control *c, uint8_t nonce[PT_NONCE_SIZE], json_t **client,
                             pt_ns deadline, struct pt_err *e)
{
    json_t *hello;
    int rc = pt_control_expect(c, "hello", &hello, deadline, e);
    if (rc)
        return rc;
    json_t *identity = json_object_get(hello, "identity");
    if (!speaks_version(hello))
        rc =
            pt_fail(e, -EPROTONOSUPPORT, "the server speaks protocol version %d", PT_PROTO_VERSION);
    else if (read_hex(hello, "nonce", nonce, PT_NONCE_SIZE) != 0 || !is_identity(identity))
        rc = pt_fail(e, -EPROTO, "malformed hello");
    else
        *client = json_incref(identity);
    json_decref(hello);
    return rc;
}

static int read_proof(struct pt_control *c, const uint8_t proof[PT_SHA256_SIZE], pt_ns deadline,
                      struct pt_err *e)
{
    json_t *auth;
    uint8_t theirs[PT_SHA256_SIZE];
    int rc = pt_control_expect(c, "auth", &auth, deadline, e);
    if (rc)
        return rc;
    rc = read_hex(auth, "proof", theirs, sizeof(theirs));
    json_decref(auth);
    if (rc == 0 && pt_equal_secret(proof, theirs, sizeof(theirs)))
        return 0;
    pt_clock_sleep_until(pt_clock_now() + WRONG_SECRET_PAUSE);
    return pt_fail(e, -EACCES, "wrong secret");
}

static int send_welcome(struct pt_control *c, const struct pt_welcome *w,
                        const uint8_t proof[PT_SHA256_SIZE], pt_ns deadline, struct pt_err *e)
{
    char token[2 * PT_TOKEN_SIZE + 1], hex[2 * PT_SHA256_SIZE + 1];
    pt_hex(token, w->token, PT_TOKEN_SIZE);
    json_t *m = json_pack("{s:s, s:s, s:O, s:o}", "type", "welcome", "token", token, "identity",
                          w->identity, "caps", caps_to_json(&w->caps));
    if (m && proof) {
        pt_hex(hex, proof, PT_SHA256_SIZE);
        if (json_object_set_new(m, "proof", json_string(hex)) != 0) {
            json_decref(m);
            m = NULL;
        }
    }
    int rc = pt_control_send_new(c, m, deadline, e);
    pt_wipe(token, sizeof(token));
    return rc;
}

static int server_handshake(struct pt_control *c, const struct pt_secret *secret,
                            const struct pt_welcome *w, json_t **client, pt_ns deadline,
                            struct pt_err *e)
{
    uint8_t ours[PT_NONCE_SIZE], theirs[PT_NONCE_SIZE], proof[PT_SHA256_SIZE];
    char hex[2 * PT_NONCE_SIZE + 1];
    bool auth = secret && secret->len;
    int rc = read_client_hello(c, theirs, client, deadline, e);
    if (rc)
        return rc;
    rc = pt_random_bytes(ours, sizeof(ours));
    if (rc)
        return pt_fail(e, rc, "random bytes: %s", pt_strerror(rc));
    pt_hex(hex, ours, sizeof(ours));
    rc = pt_control_send_new(c,
                             json_pack("{s:s, s:i, s:s, s:s}", "type", "hello", "version",
                                       PT_PROTO_VERSION, "auth", auth ? AUTH_HMAC : AUTH_NONE,
                                       "nonce", hex),
                             deadline, e);
    if (rc || !auth)
        return rc ? rc : send_welcome(c, w, NULL, deadline, e);
    pt_secret_prove(secret, ours, theirs, "client", proof);
    rc = read_proof(c, proof, deadline, e);
    if (rc)
        return rc;
    pt_secret_prove(secret, ours, theirs, "server", proof);
    return send_welcome(c, w, proof, deadline, e);
}

int pt_control_accept(struct pt_control *c, const struct pt_secret *secret,
                      const struct pt_welcome *w, json_t **client, pt_ns deadline, struct pt_err *e)
{
    struct pt_err own = {0};
    *client = NULL;
    int rc = server_handshake(c, secret, w, client, deadline, &own);
    if (rc == 0) {
        c->in.limit = PT_CONTROL_MAX;
        return 0;
    }
    json_decref(*client);
    *client = NULL;
    pt_control_refuse(c, rc, own.text);
    return pt_fail(e, rc, "%s", own.text);
}
