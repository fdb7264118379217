/* iperf3_control.c: see iperf3_control.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/iperf3_control.h"

#include "net/exact.h"
#include "os/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pt_iperf3_lost(const struct pt_iperf3_control *c, int rc, struct pt_err *e)
{
    if (rc == -ECONNRESET)
        return pt_fail(e, rc, "the %s ended the connection", c->name);
    if (rc == -ETIMEDOUT)
        return pt_fail(e, rc, "the %s does not answer", c->name);
    return pt_fail(e, rc, "the %s: %s", c->name, pt_strerror(rc));
}

int pt_iperf3_say(struct pt_iperf3_control *c, int8_t state, pt_ns deadline, struct pt_err *e)
{
    int rc = pt_exact_write(c->fd, &state, 1, deadline);
    return rc < 0 ? pt_iperf3_lost(c, rc, e) : 0;
}

int pt_iperf3_hear(struct pt_iperf3_control *c, int8_t *state, pt_ns deadline, struct pt_err *e)
{
    int rc = pt_exact_read(c->fd, state, 1, deadline);
    return rc < 0 ? pt_iperf3_lost(c, rc, e) : 0;
}

int pt_iperf3_unexpected(struct pt_iperf3_control *c, int8_t state, pt_ns deadline,
                         struct pt_err *e)
{
    uint8_t code[4] = {0};
    if (state == PT_IPERF3_ACCESS_DENIED)
        return pt_fail(e, -EBUSY, "the %s is busy with another test; try again later", c->name);
    if (state == PT_IPERF3_SERVER_TERMINATE)
        return pt_fail(e, -ECONNRESET, "the %s was stopped", c->name);
    if (state == PT_IPERF3_SERVER_ERROR) {
        pt_ns soon = pt_clock_now() + PT_S; /* it may end without telling why */
        bool told = pt_exact_read(c->fd, code, 4, soon < deadline ? soon : deadline) == 0;
        int32_t i_errno = (int32_t)((uint32_t)code[0] << 24 | (uint32_t)code[1] << 16 |
                                    (uint32_t)code[2] << 8 | code[3]);
        if (!told)
            return pt_fail(e, -EREMOTEIO, "the %s failed and did not say why", c->name);
        return pt_fail(e, i_errno == 142 ? -EACCES : -EREMOTEIO, "the %s: %s (its error %d)",
                       c->name, pt_iperf3_error(i_errno), (int)i_errno);
    }
    return pt_fail(e, -EPROTO, "the %s does not speak iperf3: it said %d", c->name, state);
}

int pt_iperf3_expect(struct pt_iperf3_control *c, int8_t want, pt_ns deadline, struct pt_err *e)
{
    int8_t state;
    int rc = pt_iperf3_hear(c, &state, deadline, e);
    if (rc < 0)
        return rc;
    return state == want ? 0 : pt_iperf3_unexpected(c, state, deadline, e);
}

int pt_iperf3_send_json(struct pt_iperf3_control *c, json_t *value, pt_ns deadline,
                        struct pt_err *e)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(value);
    if (!text)
        return pt_fail(e, -ENOMEM, "no memory for a message to the %s", c->name);
    size_t n = strlen(text);
    uint8_t head[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    int rc = pt_exact_write(c->fd, head, 4, deadline);
    if (rc == 0)
        rc = pt_exact_write(c->fd, text, n, deadline);
    free(text);
    return rc < 0 ? pt_iperf3_lost(c, rc, e) : 0;
}

int pt_iperf3_recv_json(struct pt_iperf3_control *c, size_t most, json_t **out, pt_ns deadline,
                        struct pt_err *e)
{
    uint8_t head[4];
    *out = NULL;
    int rc = pt_exact_read(c->fd, head, 4, deadline);
    if (rc < 0)
        return pt_iperf3_lost(c, rc, e);
    size_t n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (!n || n > most)
        return pt_fail(e, -EPROTO, "the %s announces a message of %zu bytes", c->name, n);
    char *text = malloc(n);
    if (!text)
        return pt_fail(e, -ENOMEM, "no memory for a message of the %s", c->name);
    rc = pt_exact_read(c->fd, text, n, deadline);
    rc = rc < 0 ? pt_iperf3_lost(c, rc, e) : pt_iperf3_json_parse(text, n, out, e);
    free(text);
    return rc;
}
