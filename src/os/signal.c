/* signal.c: see signal.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/signal.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static atomic_int last_signal;
static atomic_uint signals;
static atomic_int event_fd = -1;

void pt_signal_note(int signal)
{
    int saved = errno;
    atomic_store(&last_signal, signal);
    atomic_fetch_add(&signals, 1);
    uint64_t one = 1;
    int fd = atomic_load(&event_fd);
    ssize_t n = fd < 0 ? 0 : write(fd, &one, sizeof(one));
    (void)n; /* full means readable already */
    errno = saved;
}

void pt_signals_forget(void)
{
    int fd = atomic_exchange(&event_fd, -1);
    if (fd >= 0)
        close(fd);
    atomic_store(&last_signal, 0);
    atomic_store(&signals, 0);
}

int pt_signals_install(struct pt_err *e)
{
    pt_signals_forget();
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return pt_fail(e, -errno, "eventfd: %s", strerror(errno));
    atomic_store(&event_fd, fd);
    struct sigaction on = {.sa_handler = pt_signal_note}, off = {.sa_handler = SIG_IGN};
    sigemptyset(&on.sa_mask);
    sigemptyset(&off.sa_mask);
    if (sigaction(SIGINT, &on, NULL) != 0 || sigaction(SIGTERM, &on, NULL) != 0 ||
        sigaction(SIGPIPE, &off, NULL) != 0)
        return pt_fail(e, -errno, "sigaction: %s", strerror(errno));
    return 0;
}

int pt_signal_seen(void)
{
    return atomic_load(&last_signal);
}

unsigned pt_signal_count(void)
{
    return atomic_load(&signals);
}

int pt_signal_fd(void)
{
    return atomic_load(&event_fd);
}
