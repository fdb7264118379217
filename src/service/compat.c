/* compat.c: see compat.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "service/compat.h"

#include "base/log.h"
#include "os/clock.h"
#include "os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct pt_compat *const all[] = {&pt_compat_iperf3};

const struct pt_compat *pt_compat_find(const char *name)
{
    for (size_t i = 0; i < PT_COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

struct birth {
    const struct pt_compat *what;
    const struct pt_serve_spec *spec;
    uint16_t port;
    int tell; /* a byte: it listens; or the sentence why not */
};

static void ready(void *ctx)
{
    struct birth *b = ctx;
    ssize_t n = write(b->tell, "", 1);
    (void)n;
    close(b->tell);
    b->tell = -1;
}

static int live(void *ctx)
{
    struct birth *b = ctx;
    struct pt_err e = {0};
    char name[16];
    snprintf(name, sizeof(name), "pitot-%.9s", b->what->name);
    pt_proc_name(name);
    int rc = pt_signals_install(&e);
    if (rc == 0)
        rc = b->what->serve(b->spec, b->port, ready, b, &e);
    if (rc < 0 && b->tell >= 0) {
        ssize_t n = write(b->tell, e.text, strlen(e.text));
        (void)n;
    } else if (rc < 0) {
        pt_log(PT_LOG_ERROR, "%s server ended error=\"%s\"", b->what->name, e.text);
    }
    return rc < 0;
}

int pt_compat_start(struct pt_child *c, const struct pt_compat *what,
                    const struct pt_serve_spec *spec, uint16_t port, struct pt_err *e)
{
    int pair[2];
    char said[400] = "";
    if (pipe2(pair, O_CLOEXEC) != 0)
        return pt_fail(e, -errno, "pipe: %s", pt_strerror(-errno));
    struct birth b = {
        .what = what, .spec = spec, .port = port ? port : what->port, .tell = pair[1]};
    int rc = pt_child_start(c, live, &b, e);
    close(pair[1]);
    ssize_t n = rc < 0 ? 0 : read(pair[0], said, sizeof(said) - 1);
    close(pair[0]);
    if (rc < 0)
        return rc;
    if (n == 1 && !said[0])
        return 0;
    pt_child_end(c, 0, NULL);
    return pt_fail(e, -EADDRNOTAVAIL, "--compat %s: %s", what->name,
                   n > 0 ? said : "it ended before it listened");
}
