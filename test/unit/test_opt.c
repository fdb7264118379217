/* test_opt.c: one table, read from a command line, from text and from JSON, and shown as help.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "model/manual.h"
#include "model/opt.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct near {
    bool udp, quiet;
    uint32_t connections;
    uint64_t requests, size;
    pt_ns duration;
    struct pt_rate rate;
    double loss;
    int arrivals;
    char cc[8];
    struct pt_strs expect, bind;
};

struct far {
    bool ipv4;
    uint16_t ports[2];
};

static int parse_pair(const char *text, void *field, struct pt_err *e)
{
    uint16_t *pair = field;
    if (strlen(text) != 3 || text[1] != '-')
        return pt_fail(e, -EINVAL, "expected A-B");
    pair[0] = (uint16_t)(text[0] - '0');
    pair[1] = (uint16_t)(text[2] - '0');
    return 0;
}

static void print_pair(const void *field, struct pt_buf *out)
{
    const uint16_t *pair = field;
    if (pair[1])
        pt_buf_addf(out, "%u-%u", pair[0], pair[1]);
}

static const struct pt_opt_kind pair_kind = {parse_pair, print_pair};
static const char *const arrivals_names[] = {"uniform", "poisson", NULL};

static const struct pt_opt near_table[] = {
    {PT_OPT_FIELD(struct near, udp, PT_OPT_BOOL), .name = "udp", .letter = 'u',
     .flags = PT_OPT_PEER, .help = "UDP instead of TCP", .group = "Near"},
    {PT_OPT_FIELD(struct near, quiet, PT_OPT_BOOL), .name = "quiet", .letter = 'q',
     .flags = PT_OPT_LOCAL, .help = "no progress"},
    {PT_OPT_FIELD(struct near, connections, PT_OPT_U32), .name = "connections", .letter = 'c',
     .metavar = "N", .fallback = "1", .min = 1, .max = 1000, .flags = PT_OPT_PEER,
     .help = "flows in all"},
    {PT_OPT_FIELD(struct near, requests, PT_OPT_COUNT), .name = "requests", .letter = 'n',
     .metavar = "N", .help = "operations per connection"},
    {PT_OPT_FIELD(struct near, size, PT_OPT_SIZE), .name = "size", .letter = 's', .metavar = "N",
     .fallback = "64KiB", .flags = PT_OPT_PEER, .help = "message size"},
    {PT_OPT_FIELD(struct near, duration, PT_OPT_TIME), .name = "duration", .letter = 'd',
     .metavar = "T", .fallback = "10s", .max = 100 * (uint64_t)PT_S, .help = "measured time"},
    {PT_OPT_FIELD(struct near, rate, PT_OPT_RATE), .name = "rate", .letter = 'r', .metavar = "R",
     .help = "open loop"},
    {PT_OPT_FIELD(struct near, loss, PT_OPT_PERCENT), .name = "loss", .metavar = "P",
     .fallback = "0.1%", .help = "loss allowed"},
    {PT_OPT_FIELD(struct near, arrivals, PT_OPT_ENUM), .name = "arrivals", .names = arrivals_names,
     .help = "spacing"},
    {PT_OPT_FIELD(struct near, cc, PT_OPT_STRING), .name = "cc", .metavar = "NAME",
     .help = "congestion control"},
    {PT_OPT_FIELD(struct near, expect, PT_OPT_LIST), .name = "expect", .metavar = "X",
     .help = "threshold"},
    {PT_OPT_FIELD(struct near, bind, PT_OPT_LIST), .name = "bind", .metavar = "A[,…]",
     .fallback = "any", .flags = PT_OPT_COMMAS, .help = "source addresses"},
    {0},
};

static const struct pt_opt far_table[] = {
    {PT_OPT_FIELD(struct far, ipv4, PT_OPT_BOOL), .name = "ipv4", .letter = '4',
     .help = "IPv4 only", .group = "Far"},
    {PT_OPT_FIELD(struct far, ports, PT_OPT_CUSTOM), .name = "source-ports", .metavar = "A-B",
     .kind = &pair_kind, .help = "source ports"},
    {0},
};

struct both {
    struct near near;
    struct far far;
    struct pt_opts sets[2];
};

static void setup(struct both *b)
{
    memset(b, 0, sizeof(*b));
    b->sets[0] = (struct pt_opts){.table = near_table, .values = &b->near};
    b->sets[1] = (struct pt_opts){.table = far_table, .values = &b->far};
    assert_int_equal(pt_opts_init(&b->sets[0], NULL), 0);
    assert_int_equal(pt_opts_init(&b->sets[1], NULL), 0);
}

#define PARSE(b, args, e, ...)                                                                     \
    pt_opts_parse((b)->sets, 2, (int)PT_COUNT(((const char *[]){__VA_ARGS__})),                    \
                  (const char *[]){__VA_ARGS__}, args, e)

static void the_table_is_sound(void **state)
{
    (void)state;
    struct both b;
    setup(&b);
    struct pt_err e = {0};
    assert_int_equal(pt_opts_valid(b.sets, 2, &e), 0);
    static const struct pt_opt wrong_size[] = {
        {PT_OPT_FIELD(struct near, udp, PT_OPT_U32), .name = "x", .metavar = "N", .help = "x"},
        {0}};
    static const struct pt_opt bad_default[] = {{PT_OPT_FIELD(struct near, duration, PT_OPT_TIME),
                                                 .name = "x", .metavar = "T", .fallback = "soon",
                                                 .help = "x"},
                                                {0}};
    static const struct pt_opt clash[] = {
        {PT_OPT_FIELD(struct near, udp, PT_OPT_BOOL), .name = "x", .letter = '4', .help = "x"},
        {0}};
    const struct pt_opt *const bad[] = {wrong_size, bad_default, clash};
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        b.sets[0].table = bad[i];
        assert_int_equal(pt_opts_valid(b.sets, 2, &e), -EINVAL);
    }
}

static void defaults_are_set(void **state)
{
    (void)state;
    struct both b;
    setup(&b);
    assert_int_equal(b.near.connections, 1);
    assert_int_equal(b.near.size, 65536);
    assert_int_equal(b.near.duration, 10 * PT_S);
    assert_int_equal(b.near.bind.n, 1);
    assert_false(pt_opt_given(b.sets, 2, "size"));
    static const struct pt_opt_default other[] = {{"connections", "64"}, {NULL, NULL}};
    b.sets[0].defaults = other;
    assert_int_equal(pt_opts_init(&b.sets[0], NULL), 0);
    assert_int_equal(b.near.connections, 64);
}

static void reads_every_spelling(void **state)
{
    (void)state;
    struct both b;
    setup(&b);
    struct pt_args args;
    struct pt_err e = {0};
    int rc = PARSE(&b, &args, &e, "-u4c", "5", "host:7", "--size=1MiB", "--duration", "250ms",
                   "-n5", "--expect", "p99<5ms", "--expect=a,b", "--bind", "10.0.0.1,10.0.0.2",
                   "--bind", "::1", "--rate", "10gbit", "--loss", "2%", "--arrivals=poisson",
                   "--cc", "bbr", "--source-ports", "1-9", "--", "-x");
    assert_int_equal(rc, 0);
    assert_true(b.near.udp && b.far.ipv4 && !b.near.quiet);
    assert_int_equal(b.near.connections, 5);
    assert_int_equal(b.near.size, 1 << 20);
    assert_int_equal(b.near.duration, 250 * PT_MS);
    assert_int_equal(b.near.requests, 5);
    assert_int_equal(b.near.expect.n, 2);
    assert_string_equal(b.near.expect.at[1], "a,b");
    assert_int_equal(b.near.bind.n, 3);
    assert_string_equal(b.near.bind.at[0], "10.0.0.1");
    assert_string_equal(b.near.bind.at[2], "::1");
    assert_true(b.near.rate.bits && b.near.rate.per_s > 9.9e9);
    assert_int_equal(b.near.arrivals, 1);
    assert_string_equal(b.near.cc, "bbr");
    assert_int_equal(b.far.ports[1], 9);
    assert_int_equal(args.n, 2);
    assert_string_equal(args.at[0], "host:7");
    assert_string_equal(args.at[1], "-x");
    assert_true(pt_opt_given(b.sets, 2, "size") && !pt_opt_given(b.sets, 2, "quiet"));
}

static void the_last_one_wins_and_booleans_negate(void **state)
{
    (void)state;
    struct both b;
    setup(&b);
    struct pt_args args;
    assert_int_equal(PARSE(&b, &args, NULL, "-c2", "-c", "3", "-u", "--no-udp"), 0);
    assert_int_equal(b.near.connections, 3);
    assert_false(b.near.udp);
}

static void refuses(const char *arg, const char *value, const char *needle)
{
    struct both b;
    setup(&b);
    struct pt_args args;
    struct pt_err e = {0};
    const char *argv[] = {arg, value};
    assert_int_equal(pt_opts_parse(b.sets, 2, value ? 2 : 1, argv, &args, &e), -EINVAL);
    if (!strstr(e.text, needle))
        fail_msg("%s: said \"%s\", not \"%s\"", arg, e.text, needle);
}

static void refuses_with_a_sentence(void **state)
{
    (void)state;
    refuses("--conections", "5", "did you mean --connections?");
    refuses("--connection", "5", "did you mean --connections?");
    refuses("--szie=1", NULL, "did you mean --size?");
    refuses("--frobnicate", NULL, "unknown option --frobnicate; --help");
    refuses("-x", NULL, "unknown option -x");
    refuses("-uz", NULL, "unknown option -z");
    refuses("--connections", NULL, "--connections needs a value: --connections N");
    refuses("-c", NULL, "needs a value");
    refuses("-c0", NULL, "--connections must be at least 1");
    refuses("--connections=1001", NULL, "at most 1000");
    refuses("--connections=-1", NULL, "expected a whole number");
    refuses("--duration=101s", NULL, "--duration must be at most 100s");
    refuses("--duration", "5 minutes", "--duration: '5 minutes'");
    refuses("--arrivals=poison", NULL, "'poison' is none of uniform, poisson");
    refuses("--cc", "far-too-long", "longer than 7 bytes");
    refuses("--bind", "a,,b", "an entry is empty");
    refuses("--udp=maybe", NULL, "expected true or false");
    refuses("--no-udp=1", NULL, "takes no value");
    refuses("--source-ports=x", NULL, "--source-ports: expected A-B");
    refuses("--=5", NULL, "unknown option --");
}

static void a_row_left_out_is_named(void **state)
{
    (void)state;
    struct both b;
    setup(&b);
    static const char *const without[] = {"rate", NULL};
    b.sets[0].without = without;
    struct pt_args args;
    struct pt_err e = {0};
    assert_int_equal(PARSE(&b, &args, &e, "--rate", "5"), -EINVAL);
    assert_string_equal(e.text, "--rate does not apply to this command");
    assert_int_equal(PARSE(&b, &args, &e, "-r5"), -EINVAL);
    struct pt_buf help;
    pt_buf_init(&help, 1 << 20);
    const struct pt_manual m = {.command = "x", .summary = "y"};
    pt_manual_help(&m, b.sets, 2, &help);
    assert_null(strstr(pt_buf_str(&help), "--rate"));
    pt_buf_fini(&help);
    json_t *o = json_object();
    assert_int_equal(pt_opts_to_json(&b.sets[0], 0, o), 0);
    assert_null(json_object_get(o, "rate"));
    json_decref(o);
}

static void sets_by_name_and_prints_back(void **state)
{
    (void)state;
    struct both b;
    setup(&b);
    struct pt_err e = {0};
    static const char *const pairs[][2] = {
        {"udp", "true"},         {"connections", "7"}, {"size", "4KiB"},
        {"duration", "1500ms"},  {"rate", "10Gbit"},   {"loss", "0.25%"},
        {"arrivals", "poisson"}, {"cc", "reno"},       {"bind", "a,b"},
        {"source-ports", "2-3"},
    };
    for (size_t i = 0; i < PT_COUNT(pairs); i++) {
        assert_int_equal(pt_opt_set(b.sets, 2, pairs[i][0], pairs[i][1], &e), 0);
        struct pt_opt_at at = pt_opt_find(b.sets, 2, pairs[i][0]);
        struct pt_buf t;
        pt_buf_init(&t, 1000);
        pt_opt_print(at.opt, at.opts->values, &t);
        assert_string_equal(pt_buf_str(&t), pairs[i][1]);
        pt_buf_fini(&t);
    }
    assert_int_equal(pt_opt_set(b.sets, 2, "siez", "1", &e), -ENOENT);
    assert_non_null(strstr(e.text, "did you mean size?"));
}

static void json_round_trips(void **state)
{
    (void)state;
    struct both b, back;
    setup(&b);
    struct pt_args args;
    assert_int_equal(PARSE(&b, &args, NULL, "-u", "-c9", "-s", "1", "-d", "0.123456789", "-r",
                           "1.5M", "--loss=0.3", "--arrivals=poisson", "--cc=cubic", "--expect=x<1",
                           "--source-ports=4-5", "-q"),
                     0);
    json_t *o = json_object();
    assert_int_equal(pt_opts_to_json(&b.sets[0], 0, o), 0);
    assert_int_equal(pt_opts_to_json(&b.sets[1], 0, o), 0);
    assert_null(json_object_get(o, "quiet"));
    assert_non_null(json_object_get(o, "duration_s"));
    assert_string_equal(json_string_value(json_object_get(o, "source_ports")), "4-5");
    /* Through text, as it travels. */
    char *text = json_dumps(o, JSON_REAL_PRECISION(15));
    json_decref(o);
    o = json_loads(text, 0, NULL);
    free(text);
    setup(&back);
    struct pt_err e = {0};
    assert_int_equal(pt_opts_from_json(back.sets, 2, 0, o, &e), 0);
    json_decref(o);
    back.near.quiet = b.near.quiet;
    for (size_t s = 0; s < 2; s++) {
        for (const struct pt_opt *opt = b.sets[s].table; opt->name; opt++) {
            struct pt_buf was, is;
            pt_buf_init(&was, 1 << 16);
            pt_buf_init(&is, 1 << 16);
            pt_opt_print(opt, b.sets[s].values, &was);
            pt_opt_print(opt, back.sets[s].values, &is);
            assert_string_equal(pt_buf_str(&was), pt_buf_str(&is));
            pt_buf_fini(&was);
            pt_buf_fini(&is);
        }
    }
}

static void only_what_the_peer_needs_travels(void **state)
{
    (void)state;
    struct both b;
    setup(&b);
    json_t *o = json_object();
    assert_int_equal(pt_opts_to_json(&b.sets[0], PT_OPT_PEER, o), 0);
    assert_int_equal(json_object_size(o), 3);
    json_object_set_new(o, "cc", json_string("bbr"));
    assert_int_equal(pt_opts_from_json(b.sets, 2, PT_OPT_PEER, o, NULL), -EINVAL);
    json_decref(o);
}

static void a_hostile_peer_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "[]",
        "3",
        "{\"x\":1}",
        "{\"udp\":1}",
        "{\"udp\":\"true\"}",
        "{\"udp\":null}",
        "{\"connections\":0}",
        "{\"connections\":1001}",
        "{\"connections\":-1}",
        "{\"connections\":1.0}",
        "{\"connections\":\"1\"}",
        "{\"connections\":4294967297}",
        "{\"size\":-5}",
        "{\"size\":null}",
        "{\"duration_s\":-1}",
        "{\"duration_s\":1e300}",
        "{\"duration_s\":\"1\"}",
        "{\"duration_s\":101}",
        "{\"duration\":1}",
        "{\"rate\":5}",
        "{\"rate\":{}}",
        "{\"rate\":{\"per_s\":1}}",
        "{\"rate\":{\"per_s\":-1,\"bits\":true}}",
        "{\"rate\":{\"per_s\":1,\"bits\":1}}",
        "{\"rate\":{\"per_s\":1,\"bits\":true,\"x\":1}}",
        "{\"loss\":101}",
        "{\"loss\":true}",
        "{\"arrivals\":\"x\"}",
        "{\"arrivals\":1}",
        "{\"arrivals\":null}",
        "{\"cc\":\"12345678\"}",
        "{\"cc\":[\"a\"]}",
        "{\"cc\":\"a\\u001b\"}",
        "{\"cc\":\"a\\u007f\"}",
        "{\"cc\":\"a\\n\"}",
        "{\"expect\":\"a\"}",
        "{\"expect\":[1]}",
        "{\"expect\":[\"\"]}",
        "{\"quiet\":true}",
        "{\"source_ports\":\"zz\"}",
        "{\"source_ports\":7}",
    };
    for (size_t i = 0; i < PT_COUNT(bad); i++) {
        struct both b;
        setup(&b);
        json_t *o = json_loads(bad[i], JSON_DECODE_ANY, NULL);
        assert_non_null(o);
        struct pt_err e = {0};
        if (pt_opts_from_json(b.sets, 2, 0, o, &e) != -EINVAL)
            fail_msg("accepted %s", bad[i]);
        assert_true(e.text[0]);
        json_decref(o);
    }
    struct both b;
    setup(&b);
    json_t *list = json_array();
    for (int i = 0; i <= PT_STRS_MAX; i++)
        json_array_append_new(list, json_string("x"));
    json_t *o = json_pack("{s:o}", "expect", list);
    assert_int_equal(pt_opts_from_json(b.sets, 2, 0, o, NULL), -EINVAL);
    json_decref(o);
}

static const struct pt_manual manual = {
    .command = "probe",
    .summary = "a made-up command",
    .usage = "[HOST] [options]",
    .about =
        "A first paragraph that is long enough to be broken somewhere before the eightieth column "
        "of the `terminal`.\n\n.starts with a dot and has a back\\slash",
    .examples = "pitot probe -u\twith UDP\npitot probe host",
};

static void help_fits_the_terminal_and_names_every_option(void **state)
{
    (void)state;
    struct both b;
    setup(&b);
    struct pt_buf help;
    pt_buf_init(&help, 1 << 20);
    pt_manual_help(&manual, b.sets, 2, &help);
    const char *text = pt_buf_str(&help);
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        assert_true(n <= 82); /* bytes: one metavar holds a three-byte character */
        line += n + 1;
    }
    assert_non_null(strstr(text, "usage: pitot probe [HOST] [options]\n"));
    assert_non_null(strstr(text, "\nNear\n"));
    assert_non_null(strstr(text, "\nFar\n"));
    assert_non_null(strstr(text, "-c, --connections N"));
    assert_non_null(strstr(text, "message size (default 64KiB)"));
    assert_non_null(strstr(text, "--arrivals uniform|poisson"));
    for (size_t s = 0; s < 2; s++) {
        for (const struct pt_opt *opt = b.sets[s].table; opt->name; opt++)
            assert_non_null(strstr(text, opt->name));
    }
    pt_buf_fini(&help);
}

static void the_man_page_is_escaped(void **state)
{
    (void)state;
    struct both b;
    setup(&b);
    struct pt_buf man;
    pt_buf_init(&man, 1 << 20);
    pt_manual_man(&manual, b.sets, 2, &man);
    const char *text = pt_buf_str(&man);
    assert_int_equal(strncmp(text, ".TH \"pitot\\-probe\" 1", 20), 0);
    assert_non_null(strstr(text, " of the \\fBterminal\\fR.\n.PP\n"));
    assert_non_null(strstr(text, "\n\\&.starts with a dot and has a back\\eslash\n"));
    assert_non_null(strstr(text, "\\fB\\-\\-source\\-ports\\fR \\fIA\\-B\\fR"));
    assert_non_null(strstr(text, ".SH EXAMPLES"));
    pt_buf_fini(&man);
}

static void near_words_are_found(void **state)
{
    (void)state;
    static const char *const names[] = {"bw", "pps", "lat", "serve", "truth", NULL};
    assert_string_equal(pt_nearest("sevre", names), "serve");
    assert_string_equal(pt_nearest("thruth", names), "truth");
    assert_string_equal(pt_nearest("pp", names), "pps");
    assert_null(pt_nearest("http", names));
    assert_null(pt_nearest("a-word-that-is-much-longer-than-any-name-there-is", names));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(defaults_are_set),
        cmocka_unit_test(reads_every_spelling),
        cmocka_unit_test(the_last_one_wins_and_booleans_negate),
        cmocka_unit_test(refuses_with_a_sentence),
        cmocka_unit_test(a_row_left_out_is_named),
        cmocka_unit_test(sets_by_name_and_prints_back),
        cmocka_unit_test(json_round_trips),
        cmocka_unit_test(only_what_the_peer_needs_travels),
        cmocka_unit_test(a_hostile_peer_is_refused),
        cmocka_unit_test(help_fits_the_terminal_and_names_every_option),
        cmocka_unit_test(the_man_page_is_escaped),
        cmocka_unit_test(near_words_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
