/* test_diagnose.c: each rule of the verdict fires on what it is about, and not otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "host/diagnose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A flood of datagrams between two machines that are both half idle, and lost nothing. */
static struct pt_result *flood(const char *workload)
{
    struct pt_result *r = pt_result_new(0);
    assert_non_null(r);
    pt_result_str(r, "test.workload", workload);
    pt_result_str(r, "test.load.mode", "closed");
    pt_result_str(r, "local.boot_id", "a");
    pt_result_str(r, "peer.boot_id", "b");
    pt_result_real(r, "duration_s", 10);
    pt_result_real(r, "cost.cpu_s", 9);
    pt_result_real(r, "generator.cpu_pct", 50);
    pt_result_bool(r, "generator.valid", true);
    pt_result_u64(r, "placement.workers", 1);
    pt_result_u64(r, "totals.operations", 100000);
    pt_result_u64(r, "totals.lost_packets", 0);
    pt_result_real(r, "rates.loss_pct", 0);
    static const char *const hosts[] = {"near", "far"}, *const roles[] = {"sender", "receiver"};
    for (int i = 0; i < 2; i++)
        pt_result_append(
            r, "hosts",
            json_pack("{s:s, s:s, s:{s:f, s:f, s:f, s:f, s:[f, f]}, s:{s:i}, s:{s:i}, s:{s:i}, "
                      "s:[{s:s, s:i, s:f}]}",
                      "name", hosts[i], "role", roles[i], "cpu", "user_pct", 5.0, "system_pct",
                      30.0, "softirq_pct", 15.0, "steal_pct", 0.0, "per_cpu", 60.0, 40.0, "tcp",
                      "listen_overflows", 0, "udp", "rcvbuf_errors", 0, "softnet", "dropped", 0,
                      "net", "if", "eth0", "speed_mbit", 10000, "if_util_pct", 30.0));
    return r;
}

static void set(struct pt_result *r, const char *path, double v)
{
    char parent[128];
    const char *key = strrchr(path, '.') + 1;
    snprintf(parent, sizeof(parent), "%.*s", (int)(key - 1 - path), path);
    json_t *o = pt_result_at(r, parent);
    assert_non_null(o);
    if (json_is_array(o))
        json_array_set_new(o, (size_t)atoi(key), json_real(v));
    else
        json_object_set_new(o, key, json_real(v));
}

/* The first finding, "" when there is none; the document is gone then. */
static void verdict(struct pt_result *r, const char *what, const char *where)
{
    pt_diagnose(r);
    assert_int_equal(pt_result_failed(r), 0);
    json_t *first = pt_result_at(r, "limited_by.0");
    const char *found = json_string_value(json_object_get(first, "what"));
    assert_string_equal(found ? found : "", what);
    if (first) {
        const char *at = json_string_value(json_object_get(first, "where"));
        assert_string_equal(at ? at : "", where);
        assert_true(strlen(json_string_value(json_object_get(first, "evidence"))) > 10);
        assert_true(strlen(json_string_value(json_object_get(first, "advice"))) > 10);
    }
    pt_result_free(r);
}

static void nothing_stands_out(void **state)
{
    (void)state;
    verdict(flood("pps"), "", "");
    verdict(flood("bw"), "", "");
    struct pt_result *r = flood("lat"); /* a closed loop waits; a busy CPU is no limit of it */
    set(r, "hosts.0.cpu.per_cpu.0", 100);
    verdict(r, "", "");
    r = flood("pps"); /* at a rate that it reached */
    pt_result_str(r, "test.load.mode", "open");
    set(r, "hosts.0.cpu.per_cpu.0", 100);
    verdict(r, "", "");
    verdict(pt_result_new(0), "", "");
}

static void processors(void **state)
{
    (void)state;
    struct pt_result *r = flood("pps");
    set(r, "hosts.0.cpu.per_cpu.1", 99);
    verdict(r, "sender CPU", "CPU 1 of near");
    r = flood("bw");
    set(r, "hosts.1.cpu.per_cpu.0", 97);
    verdict(r, "receiver CPU", "CPU 0 of far");
    r = flood("bw"); /* one machine: by what the workers used */
    pt_result_str(r, "peer.boot_id", "a");
    set(r, "hosts.0.cpu.per_cpu.0", 99);
    set(r, "hosts.1.cpu.per_cpu.0", 99);
    pt_result_real(r, "cost.cpu_s", 14); /* 0.5 of a CPU here, 0.9 there */
    verdict(r, "receiver CPU", "CPU 0 of far");
    r = flood("pps");
    pt_result_str(r, "test.load.mode", "open");
    pt_result_bool(r, "generator.valid", false);
    set(r, "hosts.0.cpu.per_cpu.0", 100);
    verdict(r, "sender CPU", "CPU 0 of near");
    r = flood("lat");
    pt_result_bool(r, "generator.valid", false);
    verdict(r, "generator", "");
}

static struct pt_result *lossy(double lost)
{
    struct pt_result *r = flood("pps");
    pt_result_real(r, "totals.lost_packets", lost);
    pt_result_real(r, "rates.loss_pct", lost / 1000);
    return r;
}

static void where_packets_were_lost(void **state)
{
    (void)state;
    struct pt_result *r = lossy(1000);
    set(r, "hosts.1.udp.rcvbuf_errors", 990);
    verdict(r, "receive buffer", "far");
    r = lossy(1000); /* no buffer helps a receiver that cannot follow */
    set(r, "hosts.1.udp.rcvbuf_errors", 990);
    set(r, "hosts.1.cpu.per_cpu.0", 100);
    verdict(r, "receiver CPU", "CPU 0 of far");
    r = lossy(1000); /* somebody else's */
    set(r, "hosts.1.udp.rcvbuf_errors", 10);
    verdict(r, "", "");
    r = lossy(1000);
    set(r, "hosts.1.softnet.dropped", 900);
    verdict(r, "receiver backlog", "far");
    r = lossy(1000);
    pt_result_append(r, "path",
                     json_pack("{s:s, s:i, s:s}", "stage", "nic_sent", "lost_here", 999, "evidence",
                               "the queueing discipline of eth0 dropped 999"));
    verdict(r, "link rate", "near");
    r = flood("bw");
    set(r, "hosts.0.net.0.if_util_pct", 97);
    verdict(r, "link rate", "eth0 of near");
}

static void connections(void **state)
{
    (void)state;
    struct pt_result *r = flood("lat");
    set(r, "hosts.1.tcp.listen_overflows", 40);
    verdict(r, "", ""); /* some, and nothing went wrong */
    r = flood("lat");
    set(r, "hosts.1.tcp.listen_overflows", 40);
    pt_result_u64(r, "totals.errors.timeout", 3);
    verdict(r, "listen backlog", "far");
    r = flood("lat");
    pt_result_warn(r,
                   "connections could not be made (Cannot assign requested address): see errors");
    verdict(r, "local ports", "");
    r = flood("lat");
    pt_result_warn(r, "connections could not be made (Too many open files): see errors");
    verdict(r, "open files", "");
}

static void time_taken_away(void **state)
{
    (void)state;
    struct pt_result *r = flood("pps");
    set(r, "hosts.1.cpu.steal_pct", 20);
    verdict(r, "steal time", "far");
    r = flood("pps");
    pt_result_str(r, "test.load.mode", "open");
    set(r, "hosts.1.cpu.steal_pct", 20);
    verdict(r, "", "");
}

static void what_tcp_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *limit, *where;
    } rows[] = {{"receiver window", "far"}, {"send buffer", "near"}, {"congestion window", ""}};
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        struct pt_result *r = flood("bw");
        for (int k = 0; k < 3; k++)
            pt_result_append(r, "flows",
                             json_pack("{s:s}", "limited_by", k ? rows[i].limit : "application"));
        verdict(r, rows[i].limit, rows[i].where);
    }
    struct pt_result *r = flood("bw");
    pt_result_append(r, "flows", json_pack("{s:s}", "limited_by", "receiver window"));
    set(r, "hosts.0.cpu.per_cpu.0", 99); /* then the window is a symptom */
    verdict(r, "sender CPU", "CPU 0 of near");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_stands_out),      cmocka_unit_test(processors),
        cmocka_unit_test(where_packets_were_lost), cmocka_unit_test(connections),
        cmocka_unit_test(time_taken_away),         cmocka_unit_test(what_tcp_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
