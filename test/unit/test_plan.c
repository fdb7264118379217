/* test_plan.c: the common options, what contradicts what, and what travels to the peer.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "model/plan.h"

#include <errno.h>
#include <string.h>

struct probe_params {
    bool udp;
    pt_ns gap;
};

static const struct pt_opt probe_opts[] = {
    {PT_OPT_FIELD(struct probe_params, udp, PT_OPT_BOOL), .name = "udp", .letter = 'u',
     .flags = PT_OPT_PEER, .group = "Probe", .help = "UDP instead of TCP"},
    {PT_OPT_FIELD(struct probe_params, gap, PT_OPT_TIME), .name = "gap", .metavar = "T",
     .help = "pause between two operations"},
    {0},
};

static int no_gap_over_udp(const struct pt_plan *p, struct pt_err *e)
{
    const struct probe_params *q = p->params;
    return q->udp && q->gap ? pt_fail(e, -EINVAL, "--gap needs TCP") : 0;
}

static const struct pt_opt_default probe_defaults[] = {{"connections", "64"}, {NULL, NULL}};
static const char *const probe_without[] = {"mss", NULL};
static const struct pt_plan_form probe = {
    .manual = {.command = "probe", .summary = "made up", .usage = "[HOST] [options]"},
    .opts = probe_opts,
    .params_size = sizeof(struct probe_params),
    .defaults = probe_defaults,
    .without = probe_without,
    .check = no_gap_over_udp,
};

#define PARSE(p, e, ...)                                                                           \
    pt_plan_parse(p, (int)PT_COUNT(((const char *[]){__VA_ARGS__})),                               \
                  (const char *[]){__VA_ARGS__}, e)

static void the_tables_are_sound(void **state)
{
    (void)state;
    struct pt_plan p;
    struct pt_err e = {0};
    assert_int_equal(pt_plan_init(&p, &probe, &e), 0);
    if (pt_opts_valid(p.sets, 2, &e) < 0)
        fail_msg("%s", e.text);
    pt_plan_fini(&p);
}

static void defaults_are_those_of_the_contract(void **state)
{
    (void)state;
    struct pt_plan p;
    assert_int_equal(pt_plan_init(&p, &probe, NULL), 0);
    assert_int_equal(p.common.connections, 64);
    assert_int_equal(p.common.duration, 10 * PT_S);
    assert_int_equal(p.common.warmup, PT_S);
    assert_int_equal(p.common.timeout, 10 * PT_S);
    assert_int_equal(p.common.interval, PT_S);
    assert_int_equal(p.common.inflight, 1);
    assert_int_equal(p.common.repeat, 1);
    assert_int_equal(p.common.boost.every, 0);
    assert_true(p.common.rate.per_s < 1e-9);
    assert_false(pt_plan_given(&p, "connections"));
    pt_plan_fini(&p);
}

static void reads_a_whole_command_line(void **state)
{
    (void)state;
    struct pt_plan p;
    struct pt_err e = {0};
    assert_int_equal(pt_plan_init(&p, &probe, NULL), 0);
    int rc = PARSE(&p, &e, "-u", "[fe80::1%eth0]:7411", "-c8", "-t", "3", "--rate", "100k", "-6",
                   "--arrivals", "poisson", "--bind", "10.0.0.1,10.0.0.2", "--ports", "40000-40010",
                   "--cpus", "3,0-1", "--tos", "0xb8", "--expect", "p99<5ms", "--boost",
                   "rate:50k,every:30s,until:p99>50ms|flat", "--lang", "zh");
    if (rc < 0)
        fail_msg("%s", e.text);
    assert_string_equal(p.target, "[fe80::1%eth0]:7411");
    assert_true(((struct probe_params *)p.params)->udp);
    assert_true(p.common.ipv6 && pt_plan_given(&p, "workers"));
    assert_int_equal(p.common.workers, 3);
    assert_int_equal(p.common.bind.n, 2);
    assert_int_equal(p.common.ports.first, 40000);
    assert_int_equal(p.common.ports.last, 40010);
    assert_int_equal(p.common.cpus.n, 3);
    assert_int_equal(p.common.cpus.cpu[0], 3);
    assert_int_equal(p.common.tos, 0xb8);
    assert_int_equal(p.common.boost.every, 30 * PT_S);
    assert_int_equal(p.common.boost.until_p99, 50 * PT_MS);
    assert_true(p.common.boost.until_flat && p.common.boost.rate.per_s > 49999);
    assert_int_equal(p.report.lang, PT_LANG_ZH);
    pt_plan_fini(&p);
}

static void a_count_replaces_the_duration(void **state)
{
    (void)state;
    struct pt_plan p;
    assert_int_equal(pt_plan_init(&p, &probe, NULL), 0);
    assert_int_equal(PARSE(&p, NULL, "-n", "1", "--warmup", "0s"), 0);
    assert_int_equal(p.common.requests, 1);
    assert_int_equal(p.common.duration, 0);
    assert_int_equal(p.common.warmup, 0);
    pt_plan_fini(&p);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *argv[6], *needle;
    } bad[] = {
        {{"-n5", "-d5s"}, "--requests and --duration contradict"},
        {{"-d0"}, "--duration must be at least 1ms"},
        {{"-d100us"}, "--duration must be at least 1ms"},
        {{"--secret-file=x"}, "name HOST"},
        {{"--json="}, "--json needs the name of a file"},
        {{"--csv="}, "--csv needs the name of a file"},
        {{"--html="}, "--html needs the name of a file"},
        {{"--expect=p99<5mbit"}, "--expect: "},
        {{"--arrivals=poisson"}, "it needs --rate R"},
        {{"--inflight=4", "-r100"}, "--inflight limits a closed loop"},
        {{"-r0"}, "--rate must be more than 0"},
        {{"-4", "-6"}, "-4 and -6 contradict"},
        {{"--boost=conns:5", "-n5"}, "--boost and --requests contradict"},
        {{"--boost=conns:5", "-d5"}, "--boost and --duration contradict"},
        {{"--boost=conns:5", "--repeat=2"}, "--boost and --repeat"},
        {{"--boost=conns:5", "-r5"}, "no step would differ"},
        {{"--boost=rate:5mbit", "-r5"}, "must both be operations or both be bits"},
        {{"--boost=every:5s"}, "a step needs conns:N, rate:R or both"},
        {{"--boost=conns:0"}, "expected 1 to 1000000"},
        {{"--boost=conns:5,until:never"}, "until: expected"},
        {{"--boost=conns:5,until:flat|"}, "nothing behind |"},
        {{"--boost=conns:5,every:1ms"}, "every: expected 100ms"},
        {{"--boost=foo:5"}, "expected conns:N"},
        {{"--ports=5-4"}, "expected a range of ports"},
        {{"--ports=0-4"}, "0 is no port"},
        {{"--ports=1-70000"}, "expected a range of ports"},
        {{"--ports=1-"}, "expected a range of ports"},
        {{"--ports=1-2-3"}, "expected a range of ports"},
        {{"--cpus=x"}, "--cpus"},
        {{"--tos=256"}, "--tos must be at most 255"},
        {{"--interval=1ms"}, "--interval must be at least 10ms"},
        {{"--json=-", "--csv=-"}, "cannot both go to stdout"},
        {{"--json=a", "--csv=a"}, "the same file"},
        {{"--json=-", "--html=-"}, "--json and --html cannot both go to stdout"},
        {{"--csv=a", "--html=a"}, "--csv and --html name the same file"},
        {{"--expect=p98<5ms"}, "unknown figure 'p98'"},
        {{"--mss=1400"}, "--mss does not apply to this command"},
        {{"-u", "--gap=1s"}, "--gap needs TCP"},
        {{"a", "b"}, "one target at a time"},
        {{""}, "the target is empty"},
        {{"--htlm=x"}, "unknown option --htlm"},
        {{"--connect=5"}, "did you mean --connections?"},
    };
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        struct pt_plan p;
        struct pt_err e = {0};
        int argc = 0;
        while (bad[i].argv[argc])
            argc++;
        assert_int_equal(pt_plan_init(&p, &probe, NULL), 0);
        if (pt_plan_parse(&p, argc, bad[i].argv, &e) != -EINVAL || !strstr(e.text, bad[i].needle))
            fail_msg("%s: said \"%s\", not \"%s\"", bad[i].argv[0], e.text, bad[i].needle);
        pt_plan_fini(&p);
    }
}

static void help_skips_the_checks(void **state)
{
    (void)state;
    struct pt_plan p;
    assert_int_equal(pt_plan_init(&p, &probe, NULL), 0);
    assert_int_equal(PARSE(&p, NULL, "-4", "-6", "--help"), 0);
    assert_true(p.report.help);
    pt_plan_fini(&p);
}

static void params_hold_every_value(void **state)
{
    (void)state;
    struct pt_plan p;
    assert_int_equal(pt_plan_init(&p, &probe, NULL), 0);
    assert_int_equal(PARSE(&p, NULL, "--boost=conns:5,until:p99>1s", "--cpus=2,1", "--ports=7-9"),
                     0);
    json_t *o = pt_plan_params(&p);
    assert_non_null(json_object_get(o, "gap_s"));
    assert_non_null(json_object_get(o, "duration_s"));
    assert_null(json_object_get(o, "mss"));
    assert_null(json_object_get(o, "json"));
    assert_null(json_object_get(o, "man"));
    assert_true(json_is_null(json_object_get(o, "via")));
    assert_string_equal(json_string_value(json_object_get(o, "boost")),
                        "conns:5,every:10s,until:p99>1s");
    assert_string_equal(json_string_value(json_object_get(o, "ports")), "7-9");
    assert_string_equal(json_string_value(json_object_get(o, "cpus")), "2,1");
    json_decref(o);
    pt_plan_fini(&p);
}

static void the_peer_gets_its_share_and_no_more(void **state)
{
    (void)state;
    struct pt_plan p, q;
    struct pt_err e = {0};
    assert_int_equal(pt_plan_init(&p, &probe, NULL), 0);
    assert_int_equal(pt_plan_init(&q, &probe, NULL), 0);
    assert_int_equal(PARSE(&p, NULL, "-u", "-c3", "-r", "10gbit", "-n7", "--secret-file=x", "h"),
                     0);
    json_t *o = pt_plan_to_peer(&p);
    assert_null(json_object_get(o, "secret_file"));
    assert_null(json_object_get(o, "expect"));
    assert_int_equal(pt_plan_from_peer(&q, o, &e), 0);
    assert_true(((struct probe_params *)q.params)->udp);
    assert_int_equal(q.common.connections, 3);
    assert_int_equal(q.common.requests, 7);
    assert_int_equal(q.common.duration, 0);
    assert_true(q.common.rate.bits);
    json_object_set_new(o, "gap_s", json_real(1));
    assert_int_equal(pt_plan_from_peer(&q, o, &e), -EINVAL);
    json_decref(o);
    pt_plan_fini(&p);
    pt_plan_fini(&q);
}

static void two_plans_share_nothing(void **state)
{
    (void)state;
    struct pt_plan p, q;
    assert_int_equal(pt_plan_init(&p, &probe, NULL), 0);
    assert_int_equal(pt_plan_init(&q, &probe, NULL), 0);
    assert_int_equal(PARSE(&p, NULL, "-c3", "--gap=5ms", "a"), 0);
    assert_int_equal(PARSE(&q, NULL, "-c4", "b"), 0);
    assert_int_equal(p.common.connections, 3);
    assert_int_equal(q.common.connections, 4);
    assert_int_equal(((struct probe_params *)q.params)->gap, 0);
    assert_string_equal(p.target, "a");
    pt_plan_fini(&p);
    pt_plan_fini(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_are_sound),
        cmocka_unit_test(defaults_are_those_of_the_contract),
        cmocka_unit_test(reads_a_whole_command_line),
        cmocka_unit_test(a_count_replaces_the_duration),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(help_skips_the_checks),
        cmocka_unit_test(params_hold_every_value),
        cmocka_unit_test(the_peer_gets_its_share_and_no_more),
        cmocka_unit_test(two_plans_share_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
