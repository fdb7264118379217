/* netns.c: see netns.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

int pt_netns_self(void)
{
    int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int pt_netns_enter(int netns, struct pt_err *e)
{
    if (setns(netns, CLONE_NEWNET) == 0)
        return 0;
    int code = -errno;
    return pt_fail(e, code, "entering a network namespace: %s", pt_strerror(code));
}

/* Where we are, after proof that we may come back to it: entering the own namespace needs the same
 * right as returning to it, and is harmless. */
static int way_back(struct pt_err *e)
{
    int home = pt_netns_self();
    if (home < 0)
        return pt_fail(e, home, "the present network namespace: %s", pt_strerror(home));
    int code = pt_netns_enter(home, e);
    if (code == 0)
        return home;
    close(home);
    return code;
}

int pt_netns_new(struct pt_err *e)
{
    int home = way_back(e);
    if (home < 0)
        return home;
    int made = unshare(CLONE_NEWNET) < 0 ? -errno : 0;
    if (made == -EINVAL) /* CONFIG_NET_NS is off */
        made = -EOPNOTSUPP;
    if (made < 0) {
        close(home);
        return pt_fail(e, made, "making a network namespace: %s%s", pt_strerror(made),
                       made == -ENOSPC ? " (see sysctl user.max_net_namespaces)" : "");
    }
    made = pt_netns_self();
    if (made < 0)
        made = pt_fail(e, made, "a new network namespace: %s", pt_strerror(made));
    int back = pt_netns_enter(home, e);
    close(home);
    if (back == 0)
        return made;
    if (made >= 0)
        close(made);
    return back;
}

int pt_netns_call(int netns, int (*run)(void *ctx, struct pt_err *e), void *ctx, struct pt_err *e)
{
    int home = way_back(e);
    if (home < 0)
        return home;
    int code = pt_netns_enter(netns, e);
    if (code == 0) {
        code = run(ctx, e);
        int back = pt_netns_enter(home, e);
        if (back < 0)
            code = back;
    }
    close(home);
    return code;
}
