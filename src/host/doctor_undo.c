/* doctor_undo.c: setting what the doctor found, and taking it back exactly.
 *
 * The undo file is `{"schema": "pitot.doctor-undo/1", "netns": "net:[…]", "values": [{"name":
 * "net.core.somaxconn", "before": "128", "from": "128", "set": "4096"}]}`: what it was at first,
 * what the last fix found, what it wrote. It is complete on the disk before the
 * first value changes, so a crash at any point leaves what an undo needs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "host/doctor_private.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA   "pitot.doctor-undo/1"
#define FILE_MAX ((size_t)64 << 10)

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* Most settings belong to a network namespace; the file is good only there. */
static const char *namespace_here(const struct pt_doctor *d, char *out, size_t cap)
{
    char path[192];
    snprintf(path, sizeof(path), "%s/proc/self/ns/net", d->root);
    ssize_t n = readlink(path, out, cap - 1);
    out[n > 0 ? n : 0] = 0;
    return out;
}

static int read_value(const struct pt_doctor *d, const char *name, char out[PT_DOCTOR_VALUE])
{
    char path[128];
    return pt_doctor_read(d, pt_doctor_path(path, sizeof(path), name), out, PT_DOCTOR_VALUE);
}

/* Writes, and reads back: the kernel may take another value than it was given. */
static int write_value(const struct pt_doctor *d, const char *name, const char *value)
{
    char path[128], full[320], now[PT_DOCTOR_VALUE];
    snprintf(full, sizeof(full), "%s/%s", d->root, pt_doctor_path(path, sizeof(path), name));
    int fd = open(full, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t len = strlen(value);
    ssize_t n = write(fd, value, len);
    int rc = n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
    close(fd);
    if (rc == 0)
        rc = read_value(d, name, now);
    return rc < 0 ? rc : strcmp(now, value) != 0 ? -ERANGE : 0;
}

/* ---- the file */

static bool value_sound(const json_t *v)
{
    static const char *const keys[] = {"before", "from", "set"};
    for (size_t i = 0; i < PT_COUNT(keys); i++) {
        const char *s = text_of(v, keys[i]);
        if (!*s || strlen(s) >= PT_DOCTOR_VALUE)
            return false;
        for (; *s; s++)
            if ((unsigned char)*s < ' ' && *s != '\t')
                return false;
    }
    return pt_doctor_may_set(text_of(v, "name"));
}

static int check(const struct pt_doctor *d, const json_t *doc, const char *file, struct pt_err *e)
{
    char here[64];
    const json_t *values = json_object_get(doc, "values");
    if (strcmp(text_of(doc, "schema"), SCHEMA) != 0 || !json_is_array(values) ||
        json_array_size(values) > PT_DOCTOR_LINES)
        return pt_fail(e, -EPROTO, "%s: this is not an undo file of pitot doctor", file);
    for (size_t i = 0; i < json_array_size(values); i++)
        if (!value_sound(json_array_get(values, i)))
            return pt_fail(e, -EPROTO, "%s: value %zu is not one that pitot doctor sets", file,
                           i + 1);
    if (strcmp(text_of(doc, "netns"), namespace_here(d, here, sizeof(here))) != 0)
        return pt_fail(e, -EPERM, "%s was made in another network namespace (%s); undo it there",
                       file, text_of(doc, "netns"));
    return 0;
}

/* `*doc` is NULL and the result -ENOENT when there is none. */
static int load(const struct pt_doctor *d, const char *file, json_t **doc, struct pt_err *e)
{
    static char text[FILE_MAX];
    struct stat st;
    *doc = NULL;
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return pt_fail(e, -errno, "%s: %s", file, pt_strerror(-errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 022)) {
        close(fd);
        return pt_fail(e, -EPERM, "%s: not a file of this user that only this user can write",
                       file);
    }
    ssize_t n = read(fd, text, sizeof(text));
    close(fd);
    json_error_t why;
    if (n >= 0 && (size_t)n < sizeof(text))
        *doc = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &why);
    int rc = check(d, *doc, file, e);
    if (rc < 0) {
        json_decref(*doc);
        *doc = NULL;
    }
    return rc;
}

/* The folder of `file`, synced so that its new name survives a crash. */
static int sync_folder(const char *file)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", file);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

static int write_whole(int fd, const char *text)
{
    for (size_t left = strlen(text); left;) {
        ssize_t n = write(fd, text, left);
        if (n < 0 && errno != EINTR)
            return -errno;
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

static int save(const char *file, const json_t *doc, struct pt_err *e)
{
    char fresh[512];
    if (!strncmp(file, "/run/pitot/", 11))
        (void)mkdir("/run/pitot", 0700); /* when it cannot be made, the file says so */
    if ((size_t)snprintf(fresh, sizeof(fresh), "%s.new", file) >= sizeof(fresh))
        return pt_fail(e, -ENAMETOOLONG, "%s: the name is too long", file);
    char *text = json_dumps(doc, JSON_INDENT(2));
    if (!text)
        return pt_fail(e, -ENOMEM, "no memory for the undo file");
    (void)unlink(fresh);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : write_whole(fd, text);
    if (fd >= 0)
        close(fd);
    if (rc == 0 && rename(fresh, file) < 0)
        rc = -errno;
    if (rc == 0)
        rc = sync_folder(file);
    else if (fd >= 0)
        (void)unlink(fresh);
    free(text);
    return rc < 0 ? pt_fail(e, rc, "the undo file %s: %s; nothing was set", file, pt_strerror(rc))
                  : 0;
}

/* ---- fix */

static json_t *find(json_t *values, const char *name)
{
    for (size_t i = 0; i < json_array_size(values); i++)
        if (!strcmp(text_of(json_array_get(values, i), "name"), name))
            return json_array_get(values, i);
    return NULL;
}

/* Whether a value is one that a fix found or wrote, if need be one that did not come to an end. */
static bool is_ours(const json_t *v, const char *current)
{
    return !strcmp(current, text_of(v, "set")) || !strcmp(current, text_of(v, "from")) ||
           !strcmp(current, text_of(v, "before"));
}

/* Enters what is about to be set. false: the value is somebody else's by now. */
static bool book(json_t *values, struct pt_doctor_line *l)
{
    json_t *kept = find(values, l->name);
    if (!kept)
        return json_array_append_new(values,
                                     json_pack("{s:s, s:s, s:s, s:s}", "name", l->name, "before",
                                               l->current, "from", l->current, "set", l->set)) == 0;
    return is_ours(kept, l->current) &&
           json_object_set_new(kept, "from", json_string(l->current)) == 0 &&
           json_object_set_new(kept, "set", json_string(l->set)) == 0;
}

static bool may_write(const struct pt_doctor *d, const char *name)
{
    char path[128], full[320];
    snprintf(full, sizeof(full), "%s/%s", d->root, pt_doctor_path(path, sizeof(path), name));
    return access(full, W_OK) == 0;
}

static void set_line(const struct pt_doctor *d, struct pt_doctor_line *l)
{
    int rc = write_value(d, l->name, l->set);
    if (rc < 0) {
        /* What the kernel made of it is not what was asked for: as before, then. */
        if (rc == -ERANGE)
            (void)!write_value(d, l->name, l->current);
        snprintf(l->note, sizeof(l->note), "not set: %s", pt_strerror(rc));
        return;
    }
    char before[PT_DOCTOR_VALUE];
    memcpy(before, l->current, sizeof(before));
    snprintf(l->note, sizeof(l->note), "was %.80s", before);
    _Static_assert(sizeof(l->current) == sizeof(l->set), "one is copied over the other");
    memcpy(l->current, l->set, sizeof(l->current));
    l->state = PT_DOCTOR_OK;
    l->fixed = true;
}

int pt_doctor_fix(struct pt_doctor *d, const char *undo_file, struct pt_err *e)
{
    char here[64];
    json_t *doc;
    bool todo[PT_DOCTOR_LINES] = {0};
    int n = 0, rc = load(d, undo_file, &doc, e);
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (!doc)
        doc = json_pack("{s:s, s:s, s:[]}", "schema", SCHEMA, "netns",
                        namespace_here(d, here, sizeof(here)), "values");
    json_t *values = json_object_get(doc, "values");
    for (unsigned i = 0; i < d->n; i++) {
        struct pt_doctor_line *l = &d->line[i];
        if (l->state != PT_DOCTOR_ATTENTION || !l->set[0])
            continue;
        if (!may_write(d, l->name))
            snprintf(l->note, sizeof(l->note), "not set: it cannot be written here");
        else if (!book(values, l))
            snprintf(l->note, sizeof(l->note), "left alone: changed since pitot set it");
        else
            n += todo[i] = true;
    }
    rc = n ? save(undo_file, doc, e) : 0;
    json_decref(doc);
    if (rc < 0)
        return rc;
    n = 0;
    for (unsigned i = 0; i < d->n; i++)
        if (todo[i]) {
            set_line(d, &d->line[i]);
            n += d->line[i].fixed;
        }
    return n;
}

/* ---- undo */

/* Whether it needs no more undo: it is back, or somebody else's. */
static bool restore(struct pt_doctor *d, const json_t *v)
{
    struct pt_doctor_line *l = pt_doctor_add(d, text_of(v, "name"), NULL);
    const char *before = text_of(v, "before");
    snprintf(l->wanted, sizeof(l->wanted), "%s", before);
    int rc = read_value(d, l->name, l->current);
    if (rc == 0 && !strcmp(l->current, before)) {
        l->state = PT_DOCTOR_OK; /* a crash before it was set, or somebody undid it */
        return true;
    }
    l->state = PT_DOCTOR_ATTENTION;
    if (rc == 0 && !is_ours(v, l->current)) {
        snprintf(l->note, sizeof(l->note), "left alone: changed since pitot set it");
        return true;
    }
    if (rc == 0)
        rc = write_value(d, l->name, before);
    if (rc < 0) {
        snprintf(l->note, sizeof(l->note), "not restored: %s", pt_strerror(rc));
        return false;
    }
    snprintf(l->note, sizeof(l->note), "was %.80s", l->current);
    snprintf(l->current, sizeof(l->current), "%s", before);
    l->state = PT_DOCTOR_OK;
    l->fixed = true;
    return true;
}

int pt_doctor_undo(struct pt_doctor *d, const char *undo_file, struct pt_err *e)
{
    json_t *doc;
    bool done = true;
    int n = 0, rc = load(d, undo_file, &doc, e);
    if (rc < 0)
        return rc;
    d->n = 0;
    const json_t *values = json_object_get(doc, "values");
    /* Last set, first restored: a limit may hold another one. */
    for (size_t i = json_array_size(values); i--;) {
        done &= restore(d, json_array_get(values, i));
        n += d->line[d->n - 1].fixed;
    }
    json_decref(doc);
    if (done && unlink(undo_file) < 0)
        return pt_fail(e, -errno, "%s cannot be removed: %s", undo_file, pt_strerror(-errno));
    return n;
}
