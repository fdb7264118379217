/* test_fingerprint.c: what is read of a system, and what is kept of what a peer says of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "host/fingerprint.h"
#include "os/offload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes `text` to a file below `root`, with the folders on the way. */
static void put(const char *root, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *c = full + strlen(root) + 1; (c = strchr(c, '/')); c++) {
        *c = 0;
        (void)mkdir(full, 0777);
        *c = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static const char *said(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static void a_system_is_read(void **state)
{
    (void)state;
    char root[] = "/tmp/pitot-test-XXXXXX", command[64], large[300];
    assert_non_null(mkdtemp(root));
    put(root, "proc/sys/net/ipv4/tcp_congestion_control", "cubic\n");
    put(root, "proc/sys/net/core/default_qdisc", "fq_codel\n");
    put(root, "proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n");
    put(root, "sys/class/dmi/id/sys_vendor", "QEMU\n");
    put(root, "sys/class/dmi/id/product_name", "Standard PC\n");
    put(root, "sys/devices/system/cpu/smt/active", "1\n");
    put(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = 0;
    put(root, "sys/devices/system/clocksource/clocksource0/current_clocksource", large);
    json_t *f = pt_fingerprint(root), *sysctl = json_object_get(f, "sysctl");
    assert_string_equal(said(f, "congestion_control"), "cubic");
    assert_string_equal(said(f, "default_qdisc"), "fq_codel");
    assert_string_equal(said(f, "platform"), "QEMU Standard PC");
    assert_string_equal(said(f, "governor"), "powersave");
    assert_true(json_is_true(json_object_get(f, "smt")));
    assert_null(json_object_get(f, "clock_source")); /* too long to be one */
    assert_string_equal(said(sysctl, "net.ipv4.tcp_rmem"), "4096 131072 6291456");
    assert_int_equal(json_object_size(sysctl), 1);
    json_decref(f);
    snprintf(command, sizeof(command), "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void the_loopback_is_among_the_interfaces(void **state)
{
    (void)state;
    json_t *f = pt_fingerprint(""), *clean = pt_fingerprint_clean(f);
    const json_t *all = json_object_get(f, "interfaces");
    bool found = false;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *n = json_array_get(all, i);
        if (strcmp(said(n, "if"), "lo") != 0)
            continue;
        found = true;
        assert_string_equal(said(n, "kind"), "loopback");
        assert_true(json_integer_value(json_object_get(n, "mtu")) >= 1280);
        assert_true(json_array_size(json_object_get(n, "offloads")) >= 1);
        assert_null(json_object_get(n, "irqs"));
    }
    assert_true(found);
    /* Nothing of it is lost on the way to the other end. */
    assert_true(json_equal(f, clean));
    json_decref(f);
    json_decref(clean);
    assert_true(pt_offload_read("lo") > 0);
    assert_true(pt_offload_read("no such one") < 0);
}

static void a_peer_is_not_trusted(void **state)
{
    (void)state;
    char large[PT_FINGERPRINT_TEXT + 8];
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = 0;
    json_t *theirs = json_pack(
        "{s:s, s:s, s:i, s:s, s:{s:s, s:s, s:i}, s:[{s:s, s:i, s:i, s:[s,s,i,s], s:[{s:i, s:s}, "
        "{s:i, s:s}, s]}, {s:s}, {s:i}, s]}",
        "platform", large, "governor", "a\033[2Jb", "smt", 1, "unknown", "x", "sysctl",
        "net.core.rmem_max", "1", "made.up", "2", "net.core.wmem_max", 3, "interfaces", "if",
        "eth0", "mtu", -5, "rx_queues", 2, "offloads", "tso", "evil", 3, "tso", "irqs", "irq", 7,
        "cpus", "0-1", "irq", -7, "cpus", "0", "text", "if", "a name that is too long", "if", 4,
        "text");
    assert_non_null(theirs);
    json_t *mine = pt_fingerprint_clean(theirs);
    json_t *want = json_pack("{s:{s:s}, s:[{s:s, s:i, s:[s], s:[{s:i, s:s}]}]}", "sysctl",
                             "net.core.rmem_max", "1", "interfaces", "if", "eth0", "rx_queues", 2,
                             "offloads", "tso", "irqs", "irq", 7, "cpus", "0-1");
    assert_true(json_equal(mine, want));
    json_decref(mine);
    json_decref(want);
    json_decref(theirs);
    json_t *list = json_array();
    assert_null(pt_fingerprint_clean(list));
    assert_null(pt_fingerprint_clean(NULL));
    /* Only so many interfaces. */
    theirs = json_pack("{s:o}", "interfaces", list);
    for (int i = 0; i < 1000; i++)
        json_array_append_new(list, json_pack("{s:s}", "if", "x"));
    mine = pt_fingerprint_clean(theirs);
    assert_int_equal(json_array_size(json_object_get(mine, "interfaces")), PT_FINGERPRINT_IFS);
    json_decref(mine);
    json_decref(theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_system_is_read),
        cmocka_unit_test(the_loopback_is_among_the_interfaces),
        cmocka_unit_test(a_peer_is_not_trusted),
    };
    return cmocka_run_group_tests_name("fingerprint", tests, NULL, NULL);
}
