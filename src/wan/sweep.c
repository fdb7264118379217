/* sweep.c: ends what lives on in the namespaces of a dead owner.
 *
 * Namespaces have no names, so only processes can keep one: workers ask to die with their owner,
 * but what they started may not have. A process is ended when the namespace it is in carries the
 * mark of the dead owner, looked at through a descriptor that pins the process, so neither a reused
 * process number nor a foreign namespace is hit.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"
#include "os/netif.h"
#include "os/netns.h"
#include "wan/owner.h"
#include "wan/topology.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 8, PATIENCE_MS = 2000 };

static int read_mark(void *ctx, struct pt_err *e)
{
    (void)e;
    return pt_netif_alias(1, ctx, PT_OWNER_MARK); /* the loopback is the first interface */
}

static bool is_marked(int netns, const char *mark)
{
    char found[PT_OWNER_MARK] = "";
    return pt_netns_call(netns, read_mark, found, NULL) == 0 && strcmp(found, mark) == 0;
}

/* Is this process in a namespace with the mark? */
static bool lives_in(pid_t pid, const char *mark, ino_t home)
{
    char path[64];
    struct stat s;
    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    if (stat(path, &s) < 0 || s.st_ino == home)
        return false;
    int netns = open(path, O_RDONLY | O_CLOEXEC);
    if (netns < 0)
        return false;
    bool yes = is_marked(netns, mark);
    close(netns);
    return yes;
}

/* 1: ended; 0: not one of them; -ETIMEDOUT: it does not die. */
static int end_if_marked(pid_t pid, const char *mark, ino_t home)
{
    if (!lives_in(pid, mark, home))
        return 0;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0U);
    if (pidfd < 0)
        return 0;
    int code = 0;
    /* Looked at again now that the number cannot become another process. */
    if (lives_in(pid, mark, home) &&
        syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0U) == 0) {
        struct pollfd p = {.fd = pidfd, .events = POLLIN};
        code = poll(&p, 1, PATIENCE_MS) == 1 ? 1 : -ETIMEDOUT;
    }
    close(pidfd);
    return code;
}

/* One walk over all processes: how many were ended, or the last failure. */
static int walk(const char *mark, ino_t home)
{
    DIR *all = opendir("/proc");
    if (!all)
        return -errno;
    int ended = 0, failed = 0;
    for (const struct dirent *d; (d = readdir(all));) {
        long pid = isdigit((unsigned char)d->d_name[0]) ? strtol(d->d_name, NULL, 10) : 0;
        if (pid <= 0 || pid == (long)getpid())
            continue;
        int code = end_if_marked((pid_t)pid, mark, home);
        if (code < 0)
            failed = code;
        else
            ended += code;
    }
    closedir(all);
    return failed ? failed : ended;
}

/* Again until nobody is left: a process may have forked while the list was read. */
static int remove_marked(const char *mark, struct pt_err *e)
{
    struct stat home;
    if (stat("/proc/self/ns/net", &home) < 0)
        return pt_fail(e, -errno, "/proc/self/ns/net: %s", pt_strerror(-errno));
    int code = 1;
    for (int round = 0; code > 0 && round < ROUNDS; round++)
        code = walk(mark, home.st_ino);
    if (code == 0)
        return 0;
    return pt_fail(e, code < 0 ? code : -EBUSY,
                   "processes of a topology whose owner died (%s) do not end", mark);
}

int pt_topo_sweep(struct pt_err *e)
{
    return pt_owner_each_dead(remove_marked, e);
}
