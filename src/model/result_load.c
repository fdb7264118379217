/* result_load.c: reads a result document that nobody vouches for.
 *
 * Sinks read figures through getters that take a missing or mistyped one for absent. What they walk
 * over (objects, lists and what the lists hold) is checked here, once.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/result.h"

#include "base/buf.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum shape { OBJECT, OBJECTS, STRINGS, STRING };

static const struct {
    const char *path;
    enum shape shape;
} walked[] = {
    {"version", STRING},       {"id", STRING},
    {"started", STRING},       {"argv", STRINGS},
    {"test", OBJECT},          {"test.load", OBJECT},
    {"test.params", OBJECT},   {"totals", OBJECT},
    {"totals.errors", OBJECT}, {"rates", OBJECT},
    {"latency", OBJECT},       {"service_time", OBJECT},
    {"connect_time", OBJECT},  {"wakeup_time", OBJECT},
    {"series", OBJECTS},       {"steps", OBJECTS},
    {"directions", OBJECTS},   {"path", OBJECTS},
    {"flows", OBJECTS},        {"hosts", OBJECTS},
    {"headline", OBJECTS},     {"expect", OBJECTS},
    {"chosen", OBJECTS},       {"limited_by", OBJECTS},
    {"warnings", STRINGS},     {"notes", STRINGS},
    {"cost", OBJECT},          {"generator", OBJECT},
    {"fairness", OBJECT},      {"repeat", OBJECT},
    {"placement", OBJECT},     {"repeat.metrics", OBJECT},
    {"local", OBJECT},         {"peer", OBJECT},
    {"environment", OBJECT},   {"search.trials", OBJECTS},
};

static bool all(json_t *array, bool (*is)(const json_t *))
{
    if (!json_is_array(array))
        return false;
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!is(json_array_get(array, i)))
            return false;
    }
    return true;
}

static bool is_object(const json_t *v)
{
    return json_is_object(v);
}

static bool is_string(const json_t *v)
{
    return json_is_string(v);
}

static bool has_shape(json_t *v, enum shape shape)
{
    switch (shape) {
    case OBJECT:
        return json_is_object(v);
    case OBJECTS:
        return all(v, is_object);
    case STRINGS:
        return all(v, is_string);
    case STRING:
        return json_is_string(v);
    }
    return false;
}

int pt_result_check(const struct pt_result *r, struct pt_err *e)
{
    const char *schema = pt_result_get_str(r, "schema");
    if (!schema)
        return pt_fail(e, -EBADMSG, "no pitot result: it has no `schema`");
    if (strcmp(schema, PT_RESULT_SCHEMA) != 0) {
        char quoted[60];
        pt_log_quote(quoted, sizeof(quoted), schema, strlen(schema));
        return pt_fail(e, -EPROTONOSUPPORT,
                       "schema '%s' is not %s; read it with the pitot that "
                       "wrote it",
                       quoted, PT_RESULT_SCHEMA);
    }
    static const char *const states[] = {"ok", "partial", "failed"};
    const char *status = pt_result_get_str(r, "status");
    bool known = false;
    for (size_t i = 0; status && i < PT_COUNT(states); i++)
        known |= !strcmp(status, states[i]);
    if (!known)
        return pt_fail(e, -EBADMSG, "`status` is none of ok, partial, failed");
    for (size_t i = 0; i < PT_COUNT(walked); i++) {
        json_t *v = pt_result_at(r, walked[i].path);
        if (v && !json_is_null(v) && !has_shape(v, walked[i].shape))
            return pt_fail(e, -EBADMSG, "`%s` has another shape than %s says", walked[i].path,
                           PT_RESULT_SCHEMA);
    }
    return 0;
}

int pt_result_read(const char *bytes, size_t n, struct pt_result **out, struct pt_err *e)
{
    *out = NULL;
    if (n > PT_RESULT_CEILING)
        return pt_fail(e, -EMSGSIZE, "larger than %zu MiB", PT_RESULT_CEILING >> 20);
    json_error_t where;
    json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        return pt_fail(e, -EBADMSG, "no JSON: line %d, column %d: %s", where.line, where.column,
                       where.text);
    struct pt_result *r = calloc(1, sizeof(*r));
    if (!r) {
        json_decref(root);
        return pt_fail(e, -ENOMEM, "no memory for the document");
    }
    r->root = root;
    if (!json_is_object(root)) {
        pt_result_free(r);
        return pt_fail(e, -EBADMSG, "no JSON object");
    }
    *out = r;
    return 0;
}

int pt_result_parse(const char *bytes, size_t n, struct pt_result **out, struct pt_err *e)
{
    int rc = pt_result_read(bytes, n, out, e);
    if (rc == 0)
        rc = pt_result_check(*out, e);
    if (rc < 0) {
        pt_result_free(*out);
        *out = NULL;
    }
    return rc;
}

static int read_all(int fd, struct pt_buf *into)
{
    for (;;) {
        char *room = pt_buf_reserve(into, 64 << 10);
        if (!room)
            return into->failed;
        ssize_t n = read(fd, room, 64 << 10);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        into->len += (size_t)n;
    }
}

int pt_result_load_by(pt_result_parser *parse, const char *path, struct pt_result **out,
                      struct pt_err *e)
{
    *out = NULL;
    /* Not blocking: a FIFO without a writer reads as empty. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return pt_fail(e, -errno, "%s: %s", path, pt_strerror(errno));
    struct pt_buf bytes;
    pt_buf_init(&bytes, PT_RESULT_CEILING + (64 << 10));
    int rc = read_all(fd, &bytes);
    close(fd);
    if (rc < 0)
        pt_fail(e, rc, "%s: %s", path, pt_strerror(rc));
    else if ((rc = parse(pt_buf_str(&bytes), bytes.len, out, e)) < 0 && e)
        pt_fail_prefix(e, "%s", path);
    pt_buf_fini(&bytes);
    return rc;
}

int pt_result_load(const char *path, struct pt_result **out, struct pt_err *e)
{
    return pt_result_load_by(pt_result_parse, path, out, e);
}
