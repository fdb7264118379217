/* test_host_sample.c: what /proc says becomes the figures of top, free, uptime and sar.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "host/watch.h"
#include "os/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct pt_host_sample *fresh(void)
{
    struct pt_host_sample *s = malloc(sizeof(*s));
    assert_non_null(s);
    pt_host_clear(s);
    return s;
}

static void stat_is_read(void **state)
{
    (void)state;
    struct pt_host_sample *s = fresh();
    pt_host_parse_stat(s, "cpu  10 2 30 400 5 6 7 8 9 1\n"
                          "cpu0 5 1 15 200 2 3 4 4 9 1\n"
                          "cpu3 5 1 15 200 3 3 3 4 0 0\n"
                          "intr 123 4 5\nctxt 99\nbtime 1\n");
    assert_int_equal(s->cpus, 2);
    assert_int_equal(s->cpu_end, 4);
    assert_int_equal(s->all.user, 10);
    assert_int_equal(s->all.steal, 8);
    assert_int_equal(s->cpu[3].iowait, 3);
    assert_int_equal(s->cpu[1].user, -1); /* offline */
    free(s);
}

static void odd_stat_is_survived(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "cpu",
        "cpu \n",
        "cpu  x y z\ncpu0\ncpu0x 1 2\ncpu-1 3\n",
        "cpu  99999999999999999999 1 2 3\n",
        "cpu4096 1 2 3 4 5 6 7 8\n",
        "cpu1023 1 2 3 4",
        "nonsense\n\n\n",
    };
    struct pt_host_sample *s = malloc(sizeof(*s));
    assert_non_null(s);
    for (size_t i = 0; i < PT_COUNT(rows); i++) {
        pt_host_clear(s);
        pt_host_parse_stat(s, rows[i]);
        assert_true(s->cpu_end <= PT_CPU_MAX);
        assert_int_equal(s->all.user, -1);
    }
    /* Linux 2.4 had four columns: what is not there is not known. */
    pt_host_clear(s);
    pt_host_parse_stat(s, "cpu  1 2 3 4\n");
    assert_int_equal(s->all.idle, 4);
    assert_int_equal(s->all.iowait, -1);
    free(s);
}

static void many_cpus(void **state)
{
    (void)state;
    struct pt_host_sample *s = fresh();
    char *text = malloc(64 << 10), *at = text;
    assert_non_null(text);
    at += sprintf(at, "cpu  300 0 0 0 0 0 0 0 0 0\n");
    for (int i = 0; i < 300; i++)
        at += sprintf(at, "cpu%d %d 0 0 %d 0 0 0 0 0 0\n", i, i, 1000 - i);
    pt_host_parse_stat(s, text);
    assert_int_equal(s->cpus, 300);
    assert_int_equal(s->cpu[299].user, 299);
    free(text);
    free(s);
}

static void memory_as_free_counts_it(void **state)
{
    (void)state;
    struct pt_host_sample *a = fresh();
    pt_host_parse_meminfo(&a->memory, "MemTotal:       24576 kB\nMemFree:  1000 kB\n"
                                      "MemAvailable:   20000 kB\nBuffers: 10 kB\nCached: 20 kB\n"
                                      "SwapCached: 7 kB\nShmem: 5 kB\nSReclaimable: 30 kB\n");
    json_t *o = pt_host_json(a, a), *m = json_object_get(o, "memory");
    assert_int_equal(json_integer_value(json_object_get(m, "total")), 24576 * 1024);
    assert_int_equal(json_integer_value(json_object_get(m, "used")), 4576 * 1024);
    assert_int_equal(json_integer_value(json_object_get(m, "buff_cache")), 60 * 1024);
    assert_int_equal(json_integer_value(json_object_get(m, "shared")), 5 * 1024);
    json_decref(o);
    pt_host_clear(a);
    pt_host_parse_meminfo(&a->memory, "MemTotal: -3 kB\nMemFree: lots\nMemAvailable:\n");
    o = pt_host_json(a, a);
    m = json_object_get(o, "memory");
    assert_true(json_is_null(json_object_get(m, "total")));
    assert_true(json_is_null(json_object_get(m, "used")));
    assert_true(json_is_null(json_object_get(json_object_get(o, "cpu"), "user_pct")));
    assert_true(json_is_null(json_array_get(json_object_get(o, "load"), 0)));
    json_decref(o);
    free(a);
}

static void a_process_may_have_any_name(void **state)
{
    (void)state;
    struct pt_host_process p = {0};
    assert_true(pt_host_parse_process(
        &p, "42 (a) b) (c) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 1 0 5 6 7",
        "100 50 20 1 0 9 0"));
    assert_int_equal(p.user, 150);
    assert_int_equal(p.system, 50);
    assert_int_equal(p.res, 50 * sysconf(_SC_PAGESIZE));
    assert_false(pt_host_parse_process(&p, "42 (sh", "1 2 3"));
    assert_false(pt_host_parse_process(&p, "42 (sh) S 1", "1 2 3"));
    assert_false(pt_host_parse_process(&p, "", ""));
    assert_int_equal(p.n, 1);
}

static double pct(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(json_object_get(o, "cpu"), key));
}

static void shares_add_up_and_never_go_below_nothing(void **state)
{
    (void)state;
    struct pt_host_sample *a = fresh(), *b = fresh();
    pt_host_parse_stat(a, "cpu  100 10 200 1000 50 0 20 5\ncpu0 100 10 200 1000 50 0 20 5\n");
    /* iowait went backwards, which proc(5) says it may. */
    pt_host_parse_stat(b, "cpu  130 20 260 1080 40 0 40 5\ncpu0 130 20 260 1080 40 0 40 5\n");
    a->at = 0;
    b->at = PT_S;
    json_t *o = pt_host_json(a, b);
    assert_true(fabs(pct(o, "user_pct") - 15) < 1e-9);
    assert_true(fabs(pct(o, "nice_pct") - 5) < 1e-9);
    assert_true(fabs(pct(o, "system_pct") - 30) < 1e-9);
    assert_true(fabs(pct(o, "softirq_pct") - 10) < 1e-9);
    assert_true(fabs(pct(o, "idle_pct") - 40) < 1e-9);
    assert_true(pct(o, "iowait_pct") == 0);
    const json_t *each = json_object_get(json_object_get(o, "cpu"), "per_cpu");
    assert_int_equal(json_array_size(each), 1);
    assert_true(fabs(json_number_value(json_array_get(each, 0)) - 60) < 1e-9);
    json_decref(o);
    struct pt_host_point p, q;
    pt_host_point_make(&p, a, b, 1);
    assert_true(fabs(p.v[PT_HOST_USER] - 20) < 1e-9);
    assert_int_equal(p.busiest, 0);
    pt_host_point_make(&q, b, b, 2); /* no time passed: nothing is known */
    assert_true(q.v[PT_HOST_USER] < 0 && q.busiest < 0);
    q = p;
    q.t_s = 2;
    q.v[PT_HOST_USER] = 40;
    q.v[PT_HOST_BUSIEST] = 90;
    q.busiest = 7;
    pt_host_point_join(&p, &q);
    assert_true(fabs(p.v[PT_HOST_USER] - 30) < 1e-9 && p.span_s == 2 && p.t_s == 2);
    assert_true(p.busiest == 7 && p.v[PT_HOST_BUSIEST] == 90);
    free(a);
    free(b);
}

static struct pt_host_sample *look(pt_ns at, const char *stat, const char *dev, const char *snmp)
{
    struct pt_host_sample *s = fresh();
    s->at = at;
    pt_host_parse_stat(s, stat);
    pt_netstat_parse_dev(&s->net, dev);
    pt_netstat_parse_tables(&s->net, snmp);
    return s;
}

#define DEV_HEAD                                                                                   \
    "Inter-|   Receive                                                |  Transmit\n"               \
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs "     \
    "drop fifo colls carrier compressed\n"

/* Between the two looks CPU 1 went, CPU 2 came, and the driver of eth0 began to count anew. */
static void what_comes_goes_or_is_reset_is_unknown(void **state)
{
    (void)state;
    struct pt_host_sample *a =
        look(0, "cpu  100 0 0 900 0 0 0 0\ncpu0 50 0 0 450 0 0 0 0\ncpu1 50 0 0 450 0 0 0 0\n",
             DEV_HEAD "eth0: 9223372036854775800 900 0 0 0 0 0 0 5000 70 0 0 0 0 0 0\n"
                      "eth1: 1024 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
             "Tcp: RetransSegs\nTcp: 100\n");
    struct pt_host_sample *b =
        look(2 * PT_S, "cpu  150 0 0 950 0 0 0 0\ncpu0 100 0 0 500 0 0 0 0\ncpu2 9 0 0 9 0 0 0 0\n",
             DEV_HEAD "eth0: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n"
                      "eth1: 5120 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
             "Tcp: RetransSegs\nTcp: 40\n");
    json_t *o = pt_host_json(a, b);
    assert_int_equal(json_integer_value(json_object_get(o, "cpus")), 2);
    assert_true(fabs(pct(o, "user_pct") - 50) < 1e-9);
    const json_t *each = json_object_get(json_object_get(o, "cpu"), "per_cpu");
    assert_int_equal(json_array_size(each), 3);
    assert_true(fabs(json_number_value(json_array_get(each, 0)) - 50) < 1e-9);
    assert_true(json_is_null(json_array_get(each, 1)));
    assert_true(json_is_null(json_array_get(each, 2)));
    for (size_t i = 0; i < json_array_size(json_object_get(o, "net")); i++) {
        const json_t *n = json_array_get(json_object_get(o, "net"), i),
                     *rx = json_object_get(n, "rx_kB_per_s");
        if (!strcmp(json_string_value(json_object_get(n, "if")), "eth1"))
            assert_true(fabs(json_number_value(rx) - 2) < 1e-9);
        else
            assert_true(json_number_value(rx) < 1); /* never a wrap's 2^63 */
    }
    struct pt_host_point p;
    pt_host_point_make(&p, a, b, 2);
    assert_int_equal(p.busiest, 0);
    assert_true(fabs(p.v[PT_HOST_RX_KB] - 2) < 1e-9); /* of eth1 alone */
    assert_true(p.v[PT_HOST_RETRANSMITS] < 0);
    json_decref(o);
    free(a);
    free(b);
}

static void a_peers_entry_is_rebuilt(void **state)
{
    (void)state;
    static const char *const useless[] = {"{}", "[]", "3", "{\"cpu\": 3}", "null"};
    for (size_t i = 0; i < PT_COUNT(useless); i++) {
        json_t *from = json_loads(useless[i], JSON_DECODE_ANY, NULL);
        assert_null(pt_host_clean(from));
        json_decref(from);
    }
    json_t *from = json_loads(
        "{\"cpu\": {\"user_pct\": 3.5, \"idle_pct\": \"much\", \"per_cpu\": [1, \"x\", null, {}]},"
        " \"evil\": {\"a\": 1}, \"load\": [1, 2, 3, 4, 5], \"memory\": 7,"
        " \"net\": [{\"if\": \"eth0\", \"rx_dropped\": -4, \"tx_dropped\": 4}, {\"if\": 3}, 9,"
        "  {\"if\": \"a-name-that-is-longer-than-any\"}],"
        " \"tcp\": {\"retransmits\": 5, \"other\": 6}, \"series\": [{\"t_s\": 1, \"z\": 2}, 5]}",
        0, NULL);
    assert_non_null(from);
    json_t *o = pt_host_clean(from);
    assert_non_null(o);
    assert_null(json_object_get(o, "evil"));
    assert_null(json_object_get(json_object_get(o, "cpu"), "idle_pct"));
    assert_int_equal(json_array_size(json_object_get(json_object_get(o, "cpu"), "per_cpu")), 4);
    assert_int_equal(json_array_size(json_object_get(o, "load")), 3);
    assert_int_equal(json_array_size(json_object_get(o, "net")), 1);
    const json_t *net = json_array_get(json_object_get(o, "net"), 0);
    assert_null(json_object_get(net, "rx_dropped"));
    assert_int_equal(json_integer_value(json_object_get(net, "tx_dropped")), 4);
    assert_int_equal(json_object_size(json_object_get(o, "tcp")), 1);
    json_decref(o);
    json_decref(from);
}

/* This machine: what is sent to a peer comes through whole, and looking costs next to nothing. */
static void a_watch_of_this_host(void **state)
{
    (void)state;
    pid_t me = getpid();
    pt_ns begin = pt_clock_now();
    struct pt_host_watch *w = pt_host_watch_open(&me, 1, begin, PT_S);
    assert_non_null(w);
    usleep(120000);
    assert_false(pt_host_watch_tick(w, pt_clock_now())); /* not due yet */
    pt_host_watch_end(w);
    json_t *o = pt_host_watch_json(w);
    assert_non_null(o);
    assert_int_equal(json_array_size(json_object_get(o, "series")), 1);
    assert_true(json_number_value(json_object_get(json_object_get(o, "memory"), "total")) > 0);
    assert_true(json_number_value(json_object_get(json_object_get(o, "process"), "res")) > 0);
    assert_true(json_array_size(json_object_get(o, "net")) > 0);
    double sum = pct(o, "user_pct") + pct(o, "nice_pct") + pct(o, "system_pct") +
                 pct(o, "iowait_pct") + pct(o, "irq_pct") + pct(o, "softirq_pct") +
                 pct(o, "steal_pct") + pct(o, "idle_pct");
    assert_true(fabs(sum - 100) < 1e-6);
    json_t *copy = pt_host_clean(o);
    assert_true(json_equal(copy, o));
    json_decref(copy);
    json_decref(o);
    pt_host_watch_free(w);
    assert_false(pt_host_watch_tick(NULL, 0));
    pt_host_watch_end(NULL);
    assert_null(pt_host_watch_json(NULL));
    pt_host_watch_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stat_is_read),
        cmocka_unit_test(odd_stat_is_survived),
        cmocka_unit_test(many_cpus),
        cmocka_unit_test(memory_as_free_counts_it),
        cmocka_unit_test(a_process_may_have_any_name),
        cmocka_unit_test(shares_add_up_and_never_go_below_nothing),
        cmocka_unit_test(what_comes_goes_or_is_reset_is_unknown),
        cmocka_unit_test(a_peers_entry_is_rebuilt),
        cmocka_unit_test(a_watch_of_this_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
