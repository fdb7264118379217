/* test_plan_file.c: what a plan file means, and where and why it is refused.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "model/plan_file.h"
#include "model/yaml.h"
#include "workload/list.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const struct pt_plan_form *forms[8];
static struct pt_plan_file plan;

static int parse(const char *text, struct pt_err *e)
{
    return pt_plan_file_parse(&plan, "dir/p.yaml", text, strlen(text), forms, e);
}

/* Parsed and checked: what `pitot run` does with a file. */
static int take(const char *text, struct pt_err *e)
{
    int rc = parse(text, e);
    if (rc == 0 && (rc = pt_plan_file_check(&plan, e)) < 0)
        pt_plan_file_fini(&plan);
    return rc;
}

static void must(const char *text)
{
    struct pt_err e = {0};
    if (take(text, &e) < 0)
        fail_msg("%s\nrefused: %s", text, e.text);
}

#define HOSTS "hosts: {a: {}, b: {count: 3}}\n"
#define ENDS  "from: a, to: b-1"

/* What is wrong, where it is, and what the sentence must hold. */
static const struct {
    const char *text;
    unsigned line, column;
    const char *needle;
} refusals[] = {
    /* YAML itself */
    {"", 1, 1, "empty"},
    {"# only a remark\n", 1, 1, "empty"},
    {"tests: [\n", 2, 1, "expected"},
    {"tests:\n- lat: {size: 5\n  bad", 4, 1, "did not find expected"},
    {"\ttests: []\n", 1, 1, "a tab"},
    {"tests:\n  - lat: {name: \"\xff\"}\n", 2, 18, "UTF-8"},
    {"tests:\n  - lat: {name: \"a\\u0007b\"}\n", 2, 17, "control characters"},
    {"tests:\n  - lat: {name: \"a\nb\\nc\"}\n", 2, 17, "control characters"},
    {"tests: []\n---\ntests: []\n", 2, 1, "second document"},
    {"a: &x 1\n", 1, 4, "anchors"},
    {"tests: &t\n  - lat: {}\n", 1, 8, "anchors"},
    {"tests:\n  - lat: {size: *x}\n", 2, 17, "anchors"},
    {"a: &a [x,x]\nb: &b [*a,*a]\n", 1, 4, "anchors"},
    {"? [a, b]\n: c\n", 1, 3, "expected a key"},
    {"tests:\n  - lat: {size: !!int 5}\n", 2, 17, "tag"},
    {"tests:\n  - lat: {!default size: 5}\n", 2, 11, "a key has no tag"},
    {"a: [[[[[[[[[[[1]]]]]]]]]]]\n", 1, 13, "within each other"},
    {"tests:\n  - lat:\n      size: 5\n      rate: 7\n      size: 6\n", 5, 7, "in line 3"},
    {"tests: []\ntests: []\n", 2, 1, "in line 1"},
    {"name: 中文\ntests:\n\t- lat: {}\n", 3, 1, "a tab"},
    {"tests:\n  - lat: @\n", 2, 10, "token"},
    /* the plan */
    {"just words\n", 1, 1, "expected a plan"},
    {"- lat: {}\n", 1, 1, "expected a plan"},
    {"name: x\n", 1, 1, "no `tests:`"},
    {"name: [x]\ntests: [lat: {}]\n", 1, 7, "expected a name"},
    {"name:\ntests: [lat: {}]\n", 1, 6, "expected a name"},
    {"test: []\n", 1, 1, "did you mean 'tests'"},
    {"colour: red\n", 1, 1, "expected one of name, hosts, tests"},
    {"link: {rtt: 10ms}\ntests: []\n", 1, 1, "no emulated links"},
    {"tests: {lat: {}}\n", 1, 8, "expected a list of tests"},
    {"tests: []\n", 1, 8, "at least one test"},
    {"tests:\n", 1, 7, "expected a list of tests"},
    /* hosts */
    {"hosts: [a]\ntests: [lat: {}]\n", 1, 8, "expected a map of hosts"},
    {"hosts: {}\ntests: [lat: {}]\n", 1, 8, "at least one host"},
    {"hosts:\n  a: 3\n", 2, 6, "{count: N}"},
    {"hosts:\n  a: {cuont: 3}\n", 2, 7, "did you mean 'count'"},
    {"hosts:\n  a: {count: 0}\n", 2, 14, "1 to 250"},
    {"hosts:\n  a: {count: many}\n", 2, 14, "1 to 250"},
    {"hosts:\n  a: {count: [1]}\n", 2, 14, "1 to 250"},
    {"hosts:\n  a: {count: 251}\n", 2, 14, "1 to 250"},
    {"hosts:\n  a: {count: 200}\n  b: {count: 51}\n", 3, 3, "more than 250"},
    {"hosts:\n  a b: {}\n", 2, 3, "letters"},
    {"hosts: {a: {count: 2}, a-2: {}}\n", 1, 8, "two hosts are called a-2"},
    /* tests */
    {"tests:\n  - lat\n", 2, 5, "expected a test"},
    {"tests:\n  - {}\n", 2, 5, "expected a test"},
    {"tests:\n  - lta: {}\n", 2, 5, "did you mean 'lat'"},
    {"tests:\n  - ping: {}\n", 2, 5, "bw, pps, lat, together"},
    {"tests:\n  - lat:\n    size: 5\n", 3, 5, "'size' does not belong here"},
    {"tests:\n  - lat: 5\n", 2, 10, "expected its options"},
    {"tests:\n  - lat: {conections: 5}\n", 2, 11, "did you mean 'connections'"},
    {"tests:\n  - lat: {xyzzy: 5}\n", 2, 11, "pitot lat --help"},
    {"tests:\n  - lat: {json: x}\n", 2, 11, "command line"},
    {"tests:\n  - lat: {help: true}\n", 2, 11, "command line"},
    {"tests:\n  - lat: {man: true}\n", 2, 11, "unknown key 'man'"},
    {"tests:\n  - pps: {cc: bbr}\n", 2, 11, "does not apply to pps"},
    {"tests:\n  - pps: {inflight: 3}\n", 2, 11, "does not apply to pps"},
    {"tests:\n  - pps: {c: 3}\n", 2, 11, "unknown key 'c'"},
    {"tests:\n  - lat: {duration: 5 parsecs}\n", 2, 21, "expected a time"},
    {"tests:\n  - lat: {duration: 5k}\n", 2, 21, "expected a time"},
    {"tests:\n  - lat: {duration: -5s}\n", 2, 21, "expected a time"},
    {"tests:\n  - lat: {duration: 1e3}\n", 2, 21, "expected a time"},
    {"tests:\n  - lat: {size: 5s}\n", 2, 17, "expected bytes"},
    {"tests:\n  - lat: {rate: 5MiB}\n", 2, 17, "expected a rate"},
    {"tests:\n  - lat: {connections: 0}\n", 2, 24, "connections must be at least 1"},
    {"tests:\n  - lat: {connections: 99999999}\n", 2, 24, "connections must be at most"},
    {"tests:\n  - lat: {tos: 256}\n", 2, 16, "tos must be at most 255"},
    {"tests:\n  - lat: {udp: maybe}\n", 2, 16, "udp: expected true or false"},
    {"tests:\n  - lat: {udp: [true]}\n", 2, 16, "udp: expected true or false"},
    {"tests:\n  - lat: {udp: }\n", 2, 16, "udp: expected true or false"},
    {"tests:\n  - lat: {size: ~}\n", 2, 17, "size: expected one value"},
    {"tests:\n  - lat: {size: {k: v}}\n", 2, 17, "size: expected one value"},
    {"tests:\n  - lat: {size: [1, 2]}\n", 2, 17, "size: expected one value"},
    {"tests:\n  - lat: {engine: fast}\n", 2, 19, "none of auto, uring, epoll"},
    {"tests:\n  - lat: {expect: []}\n", 2, 19, "empty"},
    {"tests:\n  - lat: {expect: [p99<5ms, [x]]}\n", 2, 29, "a text, or a list"},
    {"tests:\n  - lat: {boost: \"rate:fast\"}\n", 2, 18,
     "boost: 'fast' is not a number; expected a rate"},
    {"tests:\n  - lat: {cc: \"012345678901234567890123456789012\"}\n", 2, 15, "longer than 31"},
    {"tests:\n  - lat: {from: a}\n", 2, 17, "no `hosts:`"},
    {HOSTS "tests:\n  - lat: {to: b-1}\n", 3, 5, "`from` is missing"},
    {HOSTS "tests:\n  - lat: {from: a}\n", 3, 5, "`to` is missing"},
    {HOSTS "tests:\n  - lat: {from: c, to: a}\n", 3, 17, "there is no host 'c'"},
    {HOSTS "tests:\n  - lat: {from: b-4, to: a}\n", 3, 17, "there is no host 'b-4'"},
    {HOSTS "tests:\n  - lat: {from: a, to: b}\n", 3, 24, "name one, b-1"},
    {HOSTS "tests:\n  - lat: {" ENDS ", name: \"\"}\n", 3, 35, "expected a name"},
    {"tests:\n  - lat: {name: x}\n  - bw: {name: x}\n", 3, 5, "two tests are called 'x'"},
    /* what contradicts what */
    {"tests:\n  - lat: {requests: 5, duration: 5s}\n", 2, 5, "requests and duration contradict"},
    {"tests:\n  - lat: {arrivals: poisson}\n", 2, 5, "arrivals spaces an open loop"},
    {"tests:\n  - lat: {expect: p98<1ms}\n", 2, 5, "expect: unknown figure"},
    {"tests:\n  - lat: {boost: \"conns:5\", repeat: 2}\n", 2, 5, "boost and repeat"},
    {"tests:\n  - bw: {search: \"loss<=1%\"}\n", 2, 5, "search"},
    /* together */
    {"tests:\n  - together: {lat: {}}\n", 2, 15, "expected a list of the tests"},
    {"tests:\n  - together: []\n", 2, 15, "at least one test"},
    {"tests:\n  - together:\n      - together: [lat: {}]\n", 3, 9, "within another one"},
    {"tests:\n  - together:\n      - lat: {repeat: 2}\n      - bw: {}\n", 4, 9, "repeat"},
    {"tests:\n  - together: [bw: {}, pps: {search: \"loss<=1%\"}]\n", 2, 24, "runs alone"},
    {"tests:\n  - together: [bw: {}, lat: {load: tcp}]\n", 2, 24, "runs alone"},
    {"tests:\n  - together: [bw: {}, lat: {warmup: 20s}]\n", 2, 24, "differ by 10s"},
    {"hosts: {a: {}, b: {count: 3}}\ntests:\n  - lat: {from: b, to: a, boost: \"conns:2\"}\n", 3, 5,
     "runs alone"},
    {"hosts: {a: {}, b: {count: 65}}\ntests:\n  - lat: {from: b, to: a}\n", 3, 5,
     "65 tests at once"},
};

static bool is_refused(const char *text, unsigned line, unsigned column, const char *needle)
{
    struct pt_err e = {0};
    char where[60];
    if (take(text, &e) == 0) {
        pt_plan_file_fini(&plan);
        printf("# taken:\n%s\n", text);
        return false;
    }
    snprintf(where, sizeof(where), "dir/p.yaml:%u:%u: ", line, column);
    bool good = !strncmp(e.text, where, strlen(where)) && strstr(e.text, needle) &&
                !strchr(e.text, '\n') && !plan.tests;
    if (!good)
        printf("# %s# expected %s... %s ...\n# but got  %s\n", text, where, needle, e.text);
    return good;
}

static void every_refusal_says_where_and_why(void **state)
{
    (void)state;
    unsigned bad = 0;
    for (size_t i = 0; i < PT_COUNT(refusals); i++)
        bad +=
            !is_refused(refusals[i].text, refusals[i].line, refusals[i].column, refusals[i].needle);
    assert_int_equal(bad, 0);
}

static void refused(const char *text, size_t n, const char *needle)
{
    struct pt_err e = {0};
    assert_int_equal(pt_plan_file_parse(&plan, "p", text, n, forms, &e), -EINVAL);
    if (!strstr(e.text, needle) || strncmp(e.text, "p:", 2) != 0)
        fail_msg("expected %s, got %s", needle, e.text);
}

/* `n` times `piece` between a head and a tail. */
static void repeated(const char *head, const char *piece, size_t n, const char *needle)
{
    struct pt_buf b;
    pt_buf_init(&b, 8 << 20);
    pt_buf_adds(&b, head);
    for (size_t i = 0; i < n; i++)
        pt_buf_adds(&b, piece);
    refused(pt_buf_str(&b), b.len, needle);
    pt_buf_fini(&b);
}

static void what_is_over_a_limit_is_refused(void **state)
{
    (void)state;
    repeated("# ", "x", PT_YAML_BYTES, "bytes");
    repeated("name: ", "x", PT_YAML_SCALAR + 1, "bytes");
    repeated("name: ", "x", PT_PLAN_NAME, "a name of");
    repeated("tests: ", "[", 1000, "within each other");
    repeated("tests: ", "- ", 1000, "");
    repeated("tests:\n", "  - lat: {}\n", PT_PLAN_TESTS + 1, "more than 128 tests");
    repeated("tests:\n", "  - lat: {}\n", PT_YAML_CHILDREN + 1, "512 entries");
    repeated("tests: [",
             "[a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,a,b,c,d,e,f,g,h,i,j,"
             "k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z],",
             500, "20000 values");
    struct pt_buf keys;
    pt_buf_init(&keys, 1 << 20);
    for (unsigned i = 0; i <= PT_YAML_CHILDREN; i++)
        pt_buf_addf(&keys, "k%u: 1\n", i);
    refused(pt_buf_str(&keys), keys.len, "512 keys");
    pt_buf_fini(&keys);
    refused("name: a\0b\ntests: []", 20, "");
}

static void hosts_and_ends_are_found(void **state)
{
    (void)state;
    char name[PT_PLAN_NAME];
    must("tests:\n  - pps: {from: b, to: a}\n  - lat: {from: b-3, to: b-1}\n  - bw: {from: a, to: "
         "a}\n"
         "hosts: {a: , b: {count: 3}, c: {count: 1}}\n");
    assert_int_equal(plan.hosts, 5);
    assert_string_equal(pt_plan_file_host(&plan, 0, name), "a");
    assert_string_equal(pt_plan_file_host(&plan, 3, name), "b-3");
    assert_string_equal(pt_plan_file_host(&plan, 4, name), "c");
    assert_string_equal(pt_plan_file_host(&plan, 5, name), "");
    assert_string_equal(plan.name, "p");
    assert_int_equal(plan.groups, 3);
    assert_int_equal(plan.test[0]->sender, 1);
    assert_int_equal(plan.test[0]->senders, 3);
    assert_int_equal(plan.test[0]->target, 0);
    assert_int_equal(plan.test[1]->sender, 3);
    assert_int_equal(plan.test[1]->senders, 1);
    assert_int_equal(plan.test[1]->target, 1);
    pt_plan_file_fini(&plan);
}

static void values_are_those_of_the_command_line(void **state)
{
    (void)state;
    must("tests:\n"
         "  - lat: {connections: 2k, duration: 1m, rate: 5k, arrivals: poisson, 'udp': yes, tos: "
         "0x2e,\n"
         "          expect: ['p99<5ms', errors==0], bind: \"127.0.0.1,127.0.0.2\", engine: epoll}\n"
         "  - bw: {expect: rx_bits_per_s>=1gbit, bytes: 1MiB}\n");
    const struct pt_common *c = &plan.test[0]->plan.common;
    assert_int_equal(c->connections, 2000);
    assert_true(c->duration == 60 * PT_S);
    assert_int_equal((int)c->rate.per_s, 5000);
    assert_int_equal(c->arrivals, PT_ARRIVALS_POISSON);
    assert_int_equal(c->tos, 0x2e);
    assert_int_equal(c->expect.n, 2);
    assert_string_equal(c->expect.at[1], "errors==0");
    assert_int_equal(c->bind.n, 2);
    assert_true(pt_plan_given(&plan.test[0]->plan, "udp"));
    assert_false(pt_plan_given(&plan.test[0]->plan, "warmup"));
    assert_true(c->warmup == PT_S);
    assert_int_equal(plan.test[1]->plan.common.expect.n, 1);
    pt_plan_file_fini(&plan);
}

static void tests_without_a_name_get_one(void **state)
{
    (void)state;
    must("tests:\n  - lat: {}\n  - lat: {name: lat}\n  - together: [lat: , lat: {name: lat-3}]\n  "
         "- bw:\n");
    static const char *const names[] = {"lat-2", "lat", "lat-4", "lat-3", "bw"};
    static const unsigned groups[] = {0, 1, 2, 2, 3};
    assert_int_equal(plan.tests, 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_string_equal(plan.test[i]->name, names[i]);
        assert_int_equal(plan.test[i]->group, groups[i]);
    }
    pt_plan_file_fini(&plan);
}

static void set_overrides_every_test_that_has_the_option(void **state)
{
    (void)state;
    struct pt_err e = {0};
    assert_int_equal(
        parse("tests:\n  - lat: {duration: 60s, expect: [p99<1ms, p50<1ms]}\n  - pps: {}\n", &e),
        0);
    assert_int_equal(pt_plan_file_set(&plan, "duration=5s", &e), 0);
    assert_int_equal(pt_plan_file_set(&plan, "inflight=7", &e), 0); /* pps has none */
    assert_int_equal(pt_plan_file_set(&plan, "expect=p50<2ms", &e), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(plan.test[i]->plan.common.duration == 5 * PT_S);
        assert_true(pt_plan_given(&plan.test[i]->plan, "duration"));
        assert_int_equal(plan.test[i]->plan.common.expect.n, 1);
    }
    assert_int_equal(plan.test[0]->plan.common.inflight, 7);
    static const char *const wrong[][2] = {
        {"duration", "KEY=VALUE"},
        {"=5", "KEY=VALUE"},
        {"", "KEY=VALUE"},
        {"duration=5parsecs", "test lat: --duration: '5parsecs'"},
        {"duratoin=5s", "did you mean 'duration'"},
        {"json=x", "no test has"},
        {"from=a", "no test has"},
        {"cc=a\nb", "one line"},
        {"cc=\xff", "one line"},
    };
    for (size_t i = 0; i < PT_COUNT(wrong); i++) {
        assert_int_equal(pt_plan_file_set(&plan, wrong[i][0], &e), -EINVAL);
        if (!strstr(e.text, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], e.text);
    }
    pt_plan_file_fini(&plan);
}

static void only_takes_names_of_tests(void **state)
{
    (void)state;
    struct pt_err e = {0};
    struct pt_strs names = {.n = 1, .at = {"bw"}};
    must("tests:\n  - lat: {}\n  - together: [bw: {}, lat: {name: under load}]\n");
    assert_int_equal(pt_plan_file_only(&plan, &names, &e), 0);
    assert_true(plan.test[0]->left_out && !plan.test[1]->left_out && plan.test[2]->left_out);
    names = (struct pt_strs){.n = 2, .at = {"lat", "under lod"}};
    assert_int_equal(pt_plan_file_only(&plan, &names, &e), -EINVAL);
    assert_non_null(strstr(e.text, "did you mean 'under load'"));
    names.n = 0;
    assert_int_equal(pt_plan_file_only(&plan, &names, &e), 0);
    assert_false(plan.test[0]->left_out);
    pt_plan_file_fini(&plan);
}

static void what_is_printed_is_whole_and_parses_to_the_same(void **state)
{
    (void)state;
    struct pt_buf first, second;
    struct pt_err e = {0};
    pt_buf_init(&first, 1 << 20);
    pt_buf_init(&second, 1 << 20);
    must("name: '#: \"odd\\ name'\n" HOSTS "tests:\n  - lat: {" ENDS
         ", requests: 5, udp: true, expect: ['p99<5ms']}\n"
         "  - together: [bw: {" ENDS "}, pps: {from: b, to: a, warmup: 1s}]\n");
    pt_plan_file_print(&plan, &first);
    pt_plan_file_fini(&plan);
    const char *text = pt_buf_str(&first);
    static const char *const held[] = {"warmup: !default 1s\n",
                                       "warmup: 1s\n",
                                       "requests: 5\n",
                                       "udp: true\n",
                                       "duration: !default 10s\n",
                                       "expect: [p99<5ms]\n",
                                       "connections: !default 64\n",
                                       "b: {count: 3}\n",
                                       "from: a\n",
                                       "  - together:\n      - bw:\n          name: bw\n"};
    for (size_t i = 0; i < PT_COUNT(held); i++)
        if (!strstr(text, held[i]))
            fail_msg("no %s in\n%s", held[i], text);
    must(text);
    assert_true(pt_plan_given(&plan.test[0]->plan, "requests"));
    assert_false(pt_plan_given(&plan.test[0]->plan, "duration"));
    pt_plan_file_print(&plan, &second);
    assert_string_equal(text, pt_buf_str(&second));
    assert_int_equal(pt_plan_file_check(&plan, &e), 0);
    pt_plan_file_fini(&plan);
    pt_buf_fini(&first);
    pt_buf_fini(&second);
}

static void files_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    struct pt_err e = {0};
    assert_int_equal(pt_plan_file_load(&plan, "/nonexistent/p.yaml", forms, &e), -ENOENT);
    assert_non_null(strstr(e.text, "/nonexistent/p.yaml"));
    assert_int_equal(pt_plan_file_load(&plan, "/", forms, &e), -EISDIR);
    assert_int_equal(pt_plan_file_load(&plan, "/dev/zero", forms, &e), -EFBIG);
    assert_int_equal(pt_plan_file_load(&plan, "/dev/null", forms, &e), -EINVAL);
    assert_non_null(strstr(e.text, "/dev/null:1:1: "));
}

int main(void)
{
    for (size_t i = 0; pt_workloads[i]; i++)
        forms[i] = &pt_workloads[i]->form;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_refusal_says_where_and_why),
        cmocka_unit_test(what_is_over_a_limit_is_refused),
        cmocka_unit_test(hosts_and_ends_are_found),
        cmocka_unit_test(values_are_those_of_the_command_line),
        cmocka_unit_test(tests_without_a_name_get_one),
        cmocka_unit_test(set_overrides_every_test_that_has_the_option),
        cmocka_unit_test(only_takes_names_of_tests),
        cmocka_unit_test(what_is_printed_is_whole_and_parses_to_the_same),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
