/* identity.c: see identity.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "net/identity.h"

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void add(json_t *to, const char *key, const char *text)
{
    /* A host may be named anything: what is not UTF-8 is left out. */
    if (*text)
        (void)json_object_set_new(to, key, json_string(text));
}

static void add_boot_id(json_t *to)
{
    char text[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    add(to, "boot_id", text);
}

json_t *pt_identity(void)
{
    struct utsname u;
    char ns[64] = "";
    json_t *id = json_object();
    if (!id)
        return NULL;
    if (uname(&u) == 0) {
        add(id, "host", u.nodename);
        add(id, "kernel", u.release);
        add(id, "machine", u.machine);
    }
    add(id, "pitot", PT_VERSION);
    add_boot_id(id);
    ssize_t n = readlink("/proc/self/ns/net", ns, sizeof(ns) - 1);
    ns[n > 0 ? n : 0] = '\0';
    add(id, "netns", ns);
    (void)json_object_set_new(id, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    (void)json_object_set_new(id, "pid", json_integer(getpid()));
    return id;
}
