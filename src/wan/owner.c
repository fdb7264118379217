/* owner.c: see owner.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "wan/owner.h"

#include "base/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What this process holds: a record lock does not stop its own owner, and closing any descriptor of
 * the file would drop it, so the sweep must not open these. */
static struct pt_owner *held;

static bool is_held(const char *mark)
{
    for (const struct pt_owner *o = held; o; o = o->next)
        if (o->pid == getpid() && strcmp(o->mark, mark) == 0)
            return true;
    return false;
}

static int lock_file(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_SETLK, &whole) < 0 ? -errno : 0;
}

/* The folder, when it is a real one of ours that nobody else can write to. */
static int open_dir(void)
{
    struct stat s;
    int fd = open(PT_OWNER_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &s) == 0 && s.st_uid == geteuid() && (s.st_mode & 022) == 0)
        return fd;
    close(fd);
    return -EACCES;
}

/* One attempt: -EAGAIN when a sweep took the file between its making and its locking. */
static int make_file(int dir, struct pt_owner *o)
{
    uint64_t random;
    int code = pt_random_bytes(&random, sizeof(random));
    if (code < 0)
        return code;
    snprintf(o->mark, sizeof(o->mark), "topo-%016" PRIx64, random);
    o->lock = openat(dir, o->mark, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (o->lock < 0)
        return errno == EEXIST ? -EAGAIN : -errno;
    struct stat s;
    code = lock_file(o->lock);
    if (code == 0 && fstat(o->lock, &s) == 0 && s.st_nlink > 0)
        return 0;
    /* A sweep that holds it removes it; any other failure leaves that to us. */
    if (code < 0 && code != -EAGAIN && code != -EACCES)
        unlinkat(dir, o->mark, 0);
    else
        code = -EAGAIN;
    close(o->lock);
    o->lock = -1;
    return code;
}

int pt_owner_take(struct pt_owner *o, struct pt_err *e)
{
    *o = (struct pt_owner){.lock = -1, .pid = getpid()};
    int dir = mkdir(PT_OWNER_DIR, 0700) < 0 && errno != EEXIST ? -errno : open_dir();
    int code = dir < 0 ? dir : -EAGAIN;
    for (int tries = 0; code == -EAGAIN && tries < 8; tries++)
        code = make_file(dir, o);
    if (dir >= 0)
        close(dir);
    if (code < 0)
        return pt_fail(e, code, "a lock file in %s: %s", PT_OWNER_DIR, pt_strerror(code));
    o->next = held;
    held = o;
    return 0;
}

void pt_owner_release(struct pt_owner *o)
{
    if (o->lock < 0)
        return;
    for (struct pt_owner **at = &held; *at; at = &(*at)->next)
        if (*at == o) {
            *at = o->next;
            break;
        }
    char path[sizeof(PT_OWNER_DIR) + PT_OWNER_MARK];
    snprintf(path, sizeof(path), "%s/%s", PT_OWNER_DIR, o->mark);
    if (o->pid == getpid())
        unlink(path);
    close(o->lock);
    o->lock = -1;
}

static bool is_mark(const char *name)
{
    return strncmp(name, "topo-", 5) == 0 && strlen(name) == 21 &&
           strspn(name + 5, "0123456789abcdef") == 16;
}

/* 1: it was a dead one's and is gone; 0: its owner lives, or another sweep was faster. */
static int try_one(int dir, const char *mark, int (*remove)(const char *mark, struct pt_err *e),
                   struct pt_err *e)
{
    struct stat s;
    int fd = openat(dir, mark, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT
                   ? 0
                   : pt_fail(e, -errno, "%s/%s: %s", PT_OWNER_DIR, mark, pt_strerror(-errno));
    int code = 0;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && lock_file(fd) == 0 && fstat(fd, &s) == 0 &&
        s.st_nlink > 0) {
        code = remove(mark, e);
        if (code == 0 && unlinkat(dir, mark, 0) == 0)
            code = 1;
    }
    close(fd);
    return code;
}

int pt_owner_each_dead(int (*remove)(const char *mark, struct pt_err *e), struct pt_err *e)
{
    int dir = open_dir();
    if (dir == -ENOENT || dir == -EACCES) /* nobody made one, or they are somebody else's */
        return 0;
    DIR *list = dir < 0 ? NULL : fdopendir(dir);
    if (!list) {
        int code = dir < 0 ? dir : -errno;
        if (dir >= 0)
            close(dir);
        return pt_fail(e, code, "%s: %s", PT_OWNER_DIR, pt_strerror(code));
    }
    int removed = 0, failed = 0;
    for (const struct dirent *d; (d = readdir(list));) {
        if (!is_mark(d->d_name) || is_held(d->d_name))
            continue;
        int code = try_one(dir, d->d_name, remove, failed ? NULL : e);
        if (code > 0)
            removed++;
        else if (code < 0 && !failed)
            failed = code;
    }
    closedir(list);
    return failed ? failed : removed;
}
