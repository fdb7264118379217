/* identity.c: see identity.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/identity.h"

#include "os/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static void add(json_t *to, const char *key, const char *text)
{
    /* A host may be named anything: what is not UTF-8 is left out. */
    if (*text)
        (void)json_object_set_new(to, key, json_string(text));
}

json_t *pt_identity(void)
{
    struct pt_identity me;
    char ns[40] = "";
    json_t *id = json_object();
    if (!id)
        return NULL;
    pt_identity_read(&me);
    if (me.net_ns)
        snprintf(ns, sizeof(ns), "net:[%" PRIu64 "]", me.net_ns);
    add(id, "host", me.host);
    add(id, "kernel", me.kernel);
    add(id, "machine", me.arch);
    add(id, "cpu_model", me.cpu_model);
    add(id, "pitot", PT_VERSION);
    add(id, "boot_id", me.boot_id);
    add(id, "netns", ns);
    (void)json_object_set_new(id, "cpus", json_integer(me.cpus));
    (void)json_object_set_new(id, "virtualised", json_boolean(me.virtualised));
    (void)json_object_set_new(id, "pid", json_integer(getpid()));
    return id;
}
