/* control.c: see control.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "proto/control.h"

#include <errno.h>
#include <string.h>

#define LENGTH_SIZE 4

void pt_control_decoder_init(struct pt_control_decoder *d, size_t limit)
{
    d->limit = limit;
    d->failed = 0;
    pt_buf_init(&d->buf, LENGTH_SIZE + PT_CONTROL_MAX);
}

void pt_control_decoder_fini(struct pt_control_decoder *d)
{
    pt_buf_fini(&d->buf);
}

/* The length that stands at the front; call with at least LENGTH_SIZE bytes there. */
static size_t front_length(const struct pt_control_decoder *d)
{
    const unsigned char *b = (const unsigned char *)d->buf.bytes;
    return (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
}

int pt_control_waiting(const struct pt_control_decoder *d)
{
    if (d->failed)
        return d->failed;
    if (d->buf.len < LENGTH_SIZE)
        return 0;
    size_t length = front_length(d);
    if (length == 0 || length > d->limit)
        return -EMSGSIZE;
    return d->buf.len >= LENGTH_SIZE + length;
}

/* What follows the message at the front stays with the caller (in the kernel), so the buffer never
 * holds more than one message. */
size_t pt_control_room(const struct pt_control_decoder *d)
{
    if (pt_control_waiting(d) != 0)
        return 0;
    if (d->buf.len < LENGTH_SIZE)
        return LENGTH_SIZE - d->buf.len;
    return LENGTH_SIZE + front_length(d) - d->buf.len;
}

int pt_control_feed(struct pt_control_decoder *d, const void *bytes, size_t n)
{
    if (n > pt_control_room(d))
        return -EMSGSIZE;
    return pt_buf_add(&d->buf, bytes, n);
}

const char *pt_control_type(const json_t *message)
{
    return json_string_value(json_object_get(message, "type"));
}

int pt_control_decode(struct pt_control_decoder *d, json_t **out, struct pt_err *e)
{
    *out = NULL;
    int waiting = pt_control_waiting(d);
    if (waiting == 0)
        return 0;
    if (d->failed)
        return pt_fail(e, d->failed, "the control stream is broken");
    size_t length = front_length(d);
    if (waiting < 0)
        return d->failed =
                   pt_fail(e, waiting, "a control message of %zu bytes, 1 to %zu are allowed",
                           length, d->limit);
    json_error_t why;
    json_t *message = json_loadb(d->buf.bytes + LENGTH_SIZE, length, JSON_REJECT_DUPLICATES, &why);
    pt_buf_drop(&d->buf, LENGTH_SIZE + length);
    if (!message)
        return d->failed = pt_fail(e, -EPROTO, "a control message that is not JSON");
    if (!json_is_object(message) || !pt_control_type(message)) {
        json_decref(message);
        return d->failed = pt_fail(e, -EPROTO, "a control message without a type");
    }
    *out = message;
    return 1;
}

static int append(const char *bytes, size_t n, void *out)
{
    return pt_buf_add(out, bytes, n) ? -1 : 0;
}

int pt_control_encode(struct pt_buf *out, const json_t *message)
{
    size_t at = out->len;
    if (!pt_control_type(message))
        return -EINVAL;
    int rc = pt_buf_add(out, "\0\0\0", LENGTH_SIZE);
    if (rc)
        return rc;
    if (json_dump_callback(message, append, out, JSON_COMPACT) != 0) {
        out->len = at;
        return out->failed ? out->failed : -EINVAL;
    }
    size_t length = out->len - at - LENGTH_SIZE;
    if (length > PT_CONTROL_MAX) {
        out->len = at;
        return -EMSGSIZE;
    }
    for (unsigned i = 0; i < LENGTH_SIZE; i++)
        out->bytes[at + i] = (char)(length >> (24 - 8 * i));
    return 0;
}
