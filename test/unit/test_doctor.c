/* test_doctor.c: the doctor on a made-up host: a folder that looks like / of one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "host/doctor.h"
#include "sink/say.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct pt_doctor d;
static char undo[160];

static void put(const char *path, const char *text)
{
    char full[300];
    snprintf(full, sizeof(full), "%s/%s", d.root, path);
    for (char *p = full + strlen(d.root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        (void)mkdir(full, 0755);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static const char *get(const char *path)
{
    static char text[300];
    char full[300];
    snprintf(full, sizeof(full), "%s/%s", d.root, path);
    FILE *f = fopen(full, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = 0;
    fclose(f);
    text[strcspn(text, "\n")] = 0;
    return text;
}

static const struct pt_doctor_line *line(const char *name)
{
    for (unsigned i = 0; i < d.n; i++)
        if (!strcmp(d.line[i].name, name))
            return &d.line[i];
    fail_msg("there is no line %s", name);
    return &d.line[0];
}

static int fresh_host(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    memset(&d, 0, sizeof(d));
    snprintf(d.root, sizeof(d.root), "%.80s/pitot-doctor-XXXXXX", tmp ? tmp : "/tmp");
    d.connections = 1000;
    snprintf(undo, sizeof(undo), "%s/undo.json", mkdtemp(d.root) ? d.root : "/nonexistent");
    return 0;
}

static int remove_host(void **state)
{
    (void)state;
    char command[200];
    snprintf(command, sizeof(command), "rm -r '%s'", d.root);
    return system(command);
}

/* A host that somebody has not looked after. */
static void neglect(void)
{
    put("proc/sys/net/core/somaxconn", "128\n");
    put("proc/sys/net/ipv4/ip_local_port_range", "60000\t61000\n");
    put("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t200000\n");
    put("proc/sys/net/ipv4/tcp_congestion_control", "bbr\n");
    put("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic bbr\n");
    put("proc/sys/fs/nr_open", "1048576\n");
    put("proc/self/limits", "Limit  Soft Limit  Hard Limit  Units\n"
                            "Max open files            1024                 524288     files\n"
                            "Max locked memory         unlimited            unlimited  bytes\n");
    put("proc/stat", "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"
                     "cpu1 1 2 3 4 5 6 7 8 0 0\nintr 1\n");
    put("proc/loadavg", "3.00 1.00 0.50 1/100 1234\n");
    put("proc/meminfo", "MemTotal: 100000 kB\nSwapTotal:  200000 kB\nSwapFree:  1000 kB\n");
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
    put("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    put("proc/sys/kernel/io_uring_disabled", "2\n");
    put("sys/class/net/eth0/device/msi_irqs/33", "msix\n");
    put("proc/irq/33/effective_affinity_list", "1\n");
}

static void an_empty_host_is_unknown(void **state)
{
    (void)state;
    pt_doctor_look(&d);
    assert_true(d.n > 15);
    assert_int_equal(pt_doctor_count(&d, PT_DOCTOR_UNKNOWN), d.n);
    for (unsigned i = 0; i < d.n; i++) {
        assert_true(d.line[i].wanted[0] != 0);
        assert_true(pt_say_known(d.line[i].why));
    }
    struct pt_err e;
    assert_int_equal(pt_doctor_fix(&d, undo, &e), 0);
    assert_int_equal(access(undo, F_OK), -1);
}

static void each_check_says_what_it_found(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum pt_doctor_state state;
        const char *current;
    } rows[] = {
        {"net.core.somaxconn", PT_DOCTOR_ATTENTION, "128"},
        {"net.ipv4.ip_local_port_range", PT_DOCTOR_ATTENTION, "60000\t61000"},
        {"net.ipv4.tcp_rmem", PT_DOCTOR_ATTENTION, "4096\t131072\t200000"},
        {"net.ipv4.tcp_wmem", PT_DOCTOR_UNKNOWN, ""},
        {"net.ipv4.tcp_congestion_control", PT_DOCTOR_ATTENTION, "bbr"},
        {"net.netfilter.nf_conntrack_max", PT_DOCTOR_OK, "not loaded"},
        {"fs.nr_open", PT_DOCTOR_OK, "1048576"},
        {"nofile soft", PT_DOCTOR_ATTENTION, "1024"},
        {"nofile hard", PT_DOCTOR_OK, "524288"},
        {"memlock", PT_DOCTOR_OK, "unlimited"},
        {"load per CPU", PT_DOCTOR_ATTENTION, "1.50"},
        {"swap in use", PT_DOCTOR_ATTENTION, "194 MiB"},
        {"CPU governor", PT_DOCTOR_ATTENTION, "powersave"},
        {"clock source", PT_DOCTOR_ATTENTION, "hpet"},
        {"io_uring", PT_DOCTOR_ATTENTION, "refused"},
        {"IRQ and RPS eth0", PT_DOCTOR_ATTENTION, "1 CPU"},
    };
    neglect();
    pt_doctor_look(&d);
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        const struct pt_doctor_line *l = line(rows[i].name);
        assert_string_equal(l->current, rows[i].current);
        if (l->state != rows[i].state)
            fail_msg("%s is %s", l->name, pt_doctor_state_name(l->state));
        if (l->state == PT_DOCTOR_ATTENTION && strcmp(l->name, "load per CPU") != 0)
            assert_true(l->command[0] != 0);
    }
    put("sys/class/net/eth0/queues/rx-0/rps_cpus", "00000000,00000003\n");
    pt_doctor_look(&d);
    assert_string_equal(line("IRQ and RPS eth0")->current, "2 CPUs");
}

static void wanted_follows_the_connections(void **state)
{
    (void)state;
    neglect();
    put("proc/sys/net/netfilter/nf_conntrack_max", "262144\n");
    pt_doctor_look(&d);
    assert_string_equal(line("nofile soft")->wanted, ">= 1064");
    assert_int_equal(line("net.netfilter.nf_conntrack_max")->state, PT_DOCTOR_OK);
    d.connections = 2000000;
    pt_doctor_look(&d);
    assert_string_equal(line("nofile soft")->wanted, ">= 2000064");
    assert_string_equal(line("fs.nr_open")->set, "2000064");
    assert_string_equal(line("net.core.somaxconn")->wanted, ">= 65535");
    assert_string_equal(line("net.ipv4.ip_local_port_range")->wanted, ">= 64512 ports");
    assert_int_equal(line("net.netfilter.nf_conntrack_max")->state, PT_DOCTOR_ATTENTION);
}

/* The settings of this host are plain files: what is written is what is read, no newline. */
static void fix_twice_and_undo_restores_the_first(void **state)
{
    (void)state;
    struct pt_err e;
    struct stat st;
    neglect();
    pt_doctor_look(&d);
    assert_int_equal(pt_doctor_fix(&d, undo, &e), 4);
    assert_int_equal(stat(undo, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_string_equal(get("proc/sys/net/core/somaxconn"), "1024");
    assert_string_equal(get("proc/sys/net/ipv4/tcp_rmem"), "4096\t131072\t4194304");
    assert_string_equal(get("proc/sys/net/ipv4/tcp_congestion_control"), "cubic");
    assert_string_equal(get("proc/sys/kernel/io_uring_disabled"), "2");
    d.connections = 5000;
    pt_doctor_look(&d);
    assert_int_equal(pt_doctor_fix(&d, undo, &e), 1);
    assert_string_equal(get("proc/sys/net/core/somaxconn"), "5000");
    assert_int_equal(pt_doctor_undo(&d, undo, &e), 4);
    assert_string_equal(get("proc/sys/net/core/somaxconn"), "128");
    assert_string_equal(get("proc/sys/net/ipv4/ip_local_port_range"), "60000\t61000");
    assert_string_equal(get("proc/sys/net/ipv4/tcp_rmem"), "4096\t131072\t200000");
    assert_string_equal(get("proc/sys/net/ipv4/tcp_congestion_control"), "bbr");
    assert_int_equal(access(undo, F_OK), -1);
    assert_int_equal(pt_doctor_undo(&d, undo, &e), -ENOENT);
}

/* The second fix had written its undo file and nothing else when it died. */
static void a_fix_that_died_is_undone(void **state)
{
    (void)state;
    struct pt_err e;
    neglect();
    pt_doctor_look(&d);
    assert_int_equal(pt_doctor_fix(&d, undo, &e), 4);
    d.connections = 5000;
    pt_doctor_look(&d);
    assert_int_equal(pt_doctor_fix(&d, undo, &e), 1);
    put("proc/sys/net/core/somaxconn", "1024");
    assert_int_equal(pt_doctor_undo(&d, undo, &e), 4);
    assert_string_equal(get("proc/sys/net/core/somaxconn"), "128");
}

static void what_others_changed_is_left_alone(void **state)
{
    (void)state;
    struct pt_err e;
    neglect();
    pt_doctor_look(&d);
    assert_int_equal(pt_doctor_fix(&d, undo, &e), 4);
    put("proc/sys/net/core/somaxconn", "64\n");
    pt_doctor_look(&d);
    assert_int_equal(pt_doctor_fix(&d, undo, &e), 0);
    assert_non_null(strstr(line("net.core.somaxconn")->note, "left alone"));
    assert_int_equal(pt_doctor_undo(&d, undo, &e), 3);
    assert_int_equal(line("net.core.somaxconn")->state, PT_DOCTOR_ATTENTION);
    assert_string_equal(get("proc/sys/net/core/somaxconn"), "64");
}

static void odd_undo_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int rc;
    } rows[] = {
        {"", -EPROTO},
        {"[]", -EPROTO},
        {"{\"schema\": \"pitot.doctor-undo/1\"}", -EPROTO},
        {"{\"schema\": \"pitot.doctor-undo/1\", \"netns\": \"net:[1]\", \"values\": []}", -EPERM},
        {"{\"schema\": \"pitot.doctor-undo/1\", \"netns\": \"\", \"values\": [{\"name\": "
         "\"kernel.core_pattern\", \"before\": \"|x\", \"from\": \"x\", \"set\": \"core\"}]}",
         -EPROTO},
        {"{\"schema\": \"pitot.doctor-undo/1\", \"netns\": \"\", \"values\": [{\"name\": "
         "\"net.core.somaxconn\", \"before\": \"1\\n2\", \"from\": \"1\", \"set\": \"128\"}]}",
         -EPROTO},
    };
    struct pt_err e;
    neglect();
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        put("undo.json", rows[i].text);
        assert_int_equal(pt_doctor_undo(&d, undo, &e), rows[i].rc);
        pt_doctor_look(&d);
        assert_int_equal(pt_doctor_fix(&d, undo, &e), rows[i].rc);
    }
    put("undo.json", "{\"schema\": \"pitot.doctor-undo/1\", \"netns\": \"\", \"values\": []}");
    assert_int_equal(chmod(undo, 0666), 0);
    assert_int_equal(pt_doctor_undo(&d, undo, &e), -EPERM);
    assert_string_equal(get("proc/sys/net/core/somaxconn"), "128");
    snprintf(undo, sizeof(undo), "%s/nowhere/undo.json", d.root);
    assert_int_equal(pt_doctor_fix(&d, undo, &e), -ENOENT);
    assert_string_equal(get("proc/sys/net/core/somaxconn"), "128");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_host_is_unknown, fresh_host, remove_host),
        cmocka_unit_test_setup_teardown(each_check_says_what_it_found, fresh_host, remove_host),
        cmocka_unit_test_setup_teardown(wanted_follows_the_connections, fresh_host, remove_host),
        cmocka_unit_test_setup_teardown(fix_twice_and_undo_restores_the_first, fresh_host,
                                        remove_host),
        cmocka_unit_test_setup_teardown(a_fix_that_died_is_undone, fresh_host, remove_host),
        cmocka_unit_test_setup_teardown(what_others_changed_is_left_alone, fresh_host, remove_host),
        cmocka_unit_test_setup_teardown(odd_undo_files_are_refused, fresh_host, remove_host),
    };
    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
