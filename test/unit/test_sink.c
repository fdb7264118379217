/* test_sink.c: what the reports say about a made-up document, in both languages, as CSV and JSON,
 * and how they are stored.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "model/result.h"
#include "model/run_document.h"
#include "sink/progress.h"
#include "sink/say.h"
#include "sink/sink.h"
#include "stat/hist.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_path(struct pt_result *r)
{
    static const struct {
        const char *stage;
        int packets, lost;
        const char *evidence;
    } stages[] = {
        {"app_sent", 1000000, 0, NULL},
        {"kernel_sent", 1000000, 0, NULL},
        {"nic_sent", 999000, 1000, "qdisc drops of veth0 rose by 1000"},
        {"nic_received", 999000, 0, NULL},
        {"kernel_delivered", 899000, 100000,
         "UdpRcvbufErrors rose by 100000 on the receiver, which is what was missing behind the "
         "interface, so the socket buffer was too small for the rate"},
        {"app_received", 899000, 0, NULL},
    };
    for (size_t i = 0; i < PT_COUNT(stages); i++)
        pt_result_append(r, "path",
                         json_pack("{s:s, s:i, s:n, s:i, s:s?}", "stage", stages[i].stage,
                                   "packets", stages[i].packets, "bytes", "lost_here",
                                   stages[i].lost, "evidence", stages[i].evidence));
}

/* One document that has every block. */
static struct pt_result *everything(const char *workload)
{
    struct pt_result *r = pt_result_new(0);
    struct pt_hist *h = calloc(1, sizeof(*h));
    for (uint64_t i = 0; i < 2000; i++)
        pt_hist_record(h, 24000 + i);
    pt_result_str(r, "test.workload", workload);
    pt_result_str(r, "test.target", "10.0.0.2:7411");
    pt_result_str(r, "test.load.mode", "open");
    pt_result_u64(r, "test.load.connections", 64);
    pt_result_real(r, "test.load.rate", 100000);
    pt_result_str(r, "test.load.rate_unit", "operation/s");
    pt_result_str(r, "peer.host", "target-host");
    pt_result_u64(r, "test.params.mss", 1200);
    pt_result_u64(r, "sockets.local.mss", 1188);
    pt_result_u64(r, "sockets.peer.mss", 1448);
    pt_result_real(r, "duration_s", 10);
    pt_result_real(r, "warmup_s", 1);
    pt_result_u64(r, "totals.operations", 2003);
    pt_result_u64(r, "totals.ok", 2000);
    pt_result_u64(r, "totals.errors.timeout", 3);
    pt_result_u64(r, "totals.errors.reset", 0);
    pt_result_u64(r, "totals.in_flight_at_end", 0);
    pt_result_u64(r, "totals.rx_bytes", (uint64_t)110 << 30);
    pt_result_u64(r, "totals.lost_packets", 101000);
    pt_result_u64(r, "totals.reordered_packets", 7);
    pt_result_u64(r, "totals.retransmits", 12);
    pt_result_real(r, "rates.operations_per_s", 99999.5);
    pt_result_real(r, "rates.rx_bits_per_s", 94.12e9);
    pt_result_real(r, "rates.tx_bits_per_s", 94.2e9);
    pt_result_real(r, "rates.rx_packets_per_s", 1.25e6);
    pt_result_real(r, "rates.tx_packets_per_s", 1.39e6);
    pt_result_real(r, "rates.loss_pct", 10.1);
    pt_result_hist(r, "latency", h);
    pt_result_hist(r, "service_time", h);
    pt_result_hist(r, "connect_time", h);
    pt_result_real(r, "half_rtt_p50_us", 12.5);
    pt_result_real(r, "one_way.offset_us", -3);
    pt_result_real(r, "one_way.offset_error_us", 0.5);
    pt_result_append(r, "flows", json_pack("{s:i, s:f}", "id", 0, "srtt_us", 81.0));
    pt_result_real(r, "fairness.jain", 0.998);
    pt_result_real(r, "fairness.start_skew_us", 870);
    pt_result_real(r, "cost.cpu_s_per_GB", 0.151);
    pt_result_real(r, "cost.cpu_s_per_million_packets", 4.2);
    add_path(r);
    pt_result_append(r, "steps",
                     json_pack("{s:i, s:f, s:f, s:s}", "connections", 100, "operations_per_s", 5e5,
                               "p99_us", 900.0, "verdict", "pays"));
    pt_result_append(
        r, "hosts",
        json_pack("{s:s, s:s, s:{s:f, s:f}, s:[f, f, f], s:{s:I, s:I}, s:[{s:s, s:f, s:f},"
                  " {s:s, s:f, s:n}, {s:s, s:n, s:n}]}",
                  "name", "target-host", "role", "receiver", "cpu", "user_pct", 12.5, "softirq_pct",
                  44.0, "load", 123.454, 2.0, 3.0, "memory", "used", (json_int_t)3 << 29, "total",
                  (json_int_t)1 << 43, "net", "if", "lo", "rx_kB_per_s", 9.0, "tx_kB_per_s", 11.0,
                  "if", "enp129s0f1np1", "rx_kB_per_s", 12207031.4, "tx_kB_per_s", "if", "eth1",
                  "rx_kB_per_s", "tx_kB_per_s"));
    pt_result_append(r, "chosen",
                     json_pack("{s:s, s:i, s:s, s:s}", "what", "block size", "value", 1 << 20,
                               "unit", "byte", "why", "fastest of five that were tried"));
    pt_result_str(r, "generator.engine", "io_uring");
    pt_result_str(r, "placement.text", "pairs: worker 0 on CPU 0, worker 1 on CPU 1");
    pt_result_bool(r, "generator.valid", false);
    pt_result_append(r, "limited_by",
                     json_pack("{s:s, s:s, s:s, s:s}", "what", "receiver's socket buffer", "where",
                               "target-host", "evidence", "UdpRcvbufErrors", "advice",
                               "--rcvbuf 4MiB"));
    pt_result_append(r, "expect",
                     json_pack("{s:s, s:s, s:f, s:b}", "text", "p99<5ms", "path", "latency.p99_us",
                               "value", 26.0, "ok", 1));
    pt_result_warn(r, "the congestion control bbr limits a loopback test; try --cc cubic");
    pt_result_note(r, "a note");
    if (!strcmp(workload, "bw"))
        pt_result_headline(r, "received", "rates.rx_bits_per_s", "bit/s");
    else if (!strcmp(workload, "pps"))
        pt_result_headline(r, "delivered", "rates.rx_packets_per_s", "packet/s");
    else
        pt_result_headline(r, "RTT p50", "latency.p50_us", "us");
    assert_int_equal(pt_result_failed(r), 0);
    free(h);
    return r;
}

static char *render(const struct pt_sink *sink, const struct pt_result *r, bool color, bool chinese)
{
    struct pt_sink_style style = {.color = color, .chinese = chinese, .json = "out.json"};
    struct pt_buf out;
    pt_buf_init(&out, 1 << 20);
    struct pt_err e = {0};
    if (sink->render(r, &style, &out, &e) < 0)
        fail_msg("%s", e.text);
    char *text = strdup(pt_buf_str(&out));
    pt_buf_fini(&out);
    return text;
}

/* Whether one line holds both. */
static bool line_with(const char *text, const char *a, const char *b)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        char line[600];
        snprintf(line, sizeof(line), "%.*s", (int)n, text);
        if (strstr(line, a) && strstr(line, b))
            return true;
        text += n + (text[n] == '\n');
    }
    return false;
}

#define HAS(text, a, b)                                                                            \
    do {                                                                                           \
        if (!line_with(text, a, b))                                                                \
            fail_msg("no line with '%s' and '%s' in:\n%s", a, b, text);                            \
    } while (0)

static void bandwidth_says_what_matters(void **state)
{
    (void)state;
    struct pt_result *r = everything("bw");
    char *t = render(&pt_sink_text, r, false, false);
    HAS(t, "pitot bw", "10.0.0.2:7411 (target-host)");
    HAS(t, "TCP, 64 connections, open loop (100,000/s)", "measured 10.0 s");
    HAS(t, "granted", "--mss 1188 bytes, 1448 bytes there");
    HAS(t, "received", "94.1 Gbit/s");
    HAS(t, "sent", "94.2 Gbit/s");
    HAS(t, "retransmits", "12");
    HAS(t, "CPU per GB", "0.151 s");
    HAS(t, "TCP round trip", "81.0 µs");
    HAS(t, "errors", "3 timeout");
    HAS(t, "block size", "1.00 MiB (fastest of five that were tried)");
    HAS(t, "event loop", "io_uring");
    HAS(t, "JSON", "out.json");
    assert_null(strstr(t, " nice ")); /* none was measured */
    HAS(t, "p99<5ms", "held (latency.p99_us = 26.0 µs)");
    HAS(t, "  - receiver's socket buffer, target-host: UdpRcvbufErrors", "");
    HAS(t, "try: --rcvbuf 4MiB", "");
    HAS(t, "The generator was the limit", "");
    assert_null(strstr(t, "reset")); /* none happened */
    assert_null(strchr(t, '\033'));
    /* The answer comes before everything else. */
    assert_true(strstr(t, "94.1 Gbit/s") < strstr(t, "94.2 Gbit/s"));
    free(t);
    pt_result_free(r);
}

static void directions_replace_their_sum(void **state)
{
    (void)state;
    struct pt_result *r = everything("bw");
    pt_result_append(r, "directions",
                     json_pack("{s:s, s:{s:f}, s:{s:i}}", "name", "forward", "rates",
                               "rx_bits_per_s", 40e9, "totals", "retransmits", 3));
    char *t = render(&pt_sink_text, r, false, false);
    HAS(t, "forward", "40.0 Gbit/s");
    assert_null(strstr(t, "94.2 Gbit/s"));
    free(t);
    t = render(&pt_sink_text, r, false, true);
    HAS(t, "正向", "40.0 Gbit/s");
    free(t);
    pt_result_free(r);
}

static void packets_show_the_waterfall(void **state)
{
    (void)state;
    struct pt_result *r = everything("pps");
    char *t = render(&pt_sink_text, r, false, false);
    HAS(t, "delivered", "1.25 Mpps");
    HAS(t, "sent", "1.39 Mpps");
    HAS(t, "loss", "10.1 %");
    HAS(t, "reordered", "7");
    HAS(t, "sent by the interface", "999,000");
    HAS(t, "delivered to the socket", "100,000");
    HAS(t, "sent by the interface: qdisc drops of veth0", "");
    HAS(t, "fairness (Jain)", "0.998");
    free(t);
    pt_result_free(r);
}

static void latency_names_its_round_trips(void **state)
{
    (void)state;
    struct pt_result *r = everything("lat");
    char *t = render(&pt_sink_text, r, false, false);
    HAS(t, "RTT p50", "25.0 µs");
    HAS(t, "p99.9", "max");
    HAS(t, "round trip", "26.0 µs");
    HAS(t, "from sending", "µs");
    HAS(t, "half the round trip, p50", "12.5 µs");
    HAS(t, "clock offset", "-3.00 µs ± 500 ns");
    /* 2000 samples cannot know p99.99. */
    HAS(t, "round trip", " - ");
    free(t);
    pt_result_null(r, "test.load.arrivals");
    t = render(&pt_sink_text, r, false, false);
    assert_null(strstr(t, "from sending"));
    free(t);
    pt_result_free(r);
}

static void fits_80_columns(void **state)
{
    (void)state;
    static const char *const workloads[] = {"bw", "pps", "lat"};
    for (size_t w = 0; w < 6; w++) {
        struct pt_result *r = everything(workloads[w / 2]);
        char *t = render(&pt_sink_text, r, false, w % 2);
        for (char *line = strtok(t, "\n"); line; line = strtok(NULL, "\n")) {
            if (pt_text_columns(line) > 80)
                fail_msg("%zu columns: %s", pt_text_columns(line), line);
        }
        free(t);
        pt_result_free(r);
    }
}

static void chinese_labels_are_chinese(void **state)
{
    (void)state;
    static const char *const workloads[] = {"bw", "pps", "lat"};
    /* Names, not words; and texts that come from the document. */
    static const char *const kept[] = {"pitot ", "  p99<5ms", "  target-host", "  block size",
                                       "  pays", "  - ",      "    "};
    for (size_t w = 0; w < PT_COUNT(workloads); w++) {
        struct pt_result *r = everything(workloads[w]);
        char *t = render(&pt_sink_text, r, false, true);
        for (char *line = strtok(t, "\n"); line; line = strtok(NULL, "\n")) {
            bool skip = false, wide = false;
            for (size_t i = 0; i < PT_COUNT(kept); i++)
                skip |= !strncmp(line, kept[i], strlen(kept[i]));
            for (const char *c = line; *c; c++)
                wide |= (unsigned char)*c >= 0xe3;
            if (!skip && !wide)
                fail_msg("not translated: %s", line);
        }
        free(t);
        pt_result_free(r);
    }
}

/* The interface is the one whose busier direction carried most; what is not known is no 0. */
static void hosts_show_load_memory_and_the_busiest_interface(void **state)
{
    (void)state;
    struct pt_result *r = everything("bw");
    pt_result_append(r, "hosts",
                     json_pack("{s:s, s:{s:n}, s:[n, n, n], s:{s:n, s:n}, s:[]}", "name", "dark",
                               "cpu", "user_pct", "load", "memory", "used", "total", "net"));
    char *t = render(&pt_sink_text, r, false, false), *at = strstr(t, "Load, memory in use");
    assert_non_null(at);
    HAS(at, "  target-host  123.45  1.5 / 8192.0  enp129s0f1np1  12207031       -", "");
    char *dark = strstr(at, "\n  dark ");
    assert_non_null(dark);
    *strchr(dark + 1, '\n') = 0;
    HAS(dark, " - / - ", "");
    assert_null(strchr(dark, '0'));
    free(t);
    pt_result_free(r);
    /* A document of before has none of it, and no empty table either. */
    r = pt_result_new(0);
    pt_result_append(r, "hosts",
                     json_pack("{s:s, s:{s:f, s:f, s:f}}", "name", "a", "cpu", "idle_pct", 9.0,
                               "nice_pct", 22.0, "irq_pct", 0.1));
    t = render(&pt_sink_text, r, false, false);
    assert_non_null(strstr(t, "CPU of the hosts"));
    HAS(t, "user  nice", "steal  idle"); /* the rare kinds where there is something of them */
    assert_null(strstr(t, "  irq"));
    assert_null(strstr(t, "busiest interface"));
    free(t);
    pt_result_free(r);
}

static void colour_only_when_asked(void **state)
{
    (void)state;
    struct pt_result *r = everything("bw");
    char *t = render(&pt_sink_text, r, true, false);
    const char *bold = strstr(t, "\033[1m  received");
    assert_non_null(bold);
    assert_true(strstr(t, "94.1 Gbit/s") > bold);
    HAS(t, "\033[33m  - the congestion control", "");
    free(t);
    pt_result_free(r);
}

static void a_document_cannot_write_to_the_terminal(void **state)
{
    (void)state;
    struct pt_result *r = pt_result_new(0);
    pt_result_warn(r, "a\033]0;title\007b\xc2\x9b"
                      "31m\rc");
    pt_result_str(r, "test.target", "x\033[2Jy");
    pt_result_append(r, "headline",
                     json_pack("{s:s, s:s, s:f, s:s}", "name", "n\033[1m", "path", "x", "value",
                               1.0, "unit", "\033[5mu"));
    pt_result_append(r, "chosen", json_pack("{s:s, s:s}", "what", "w\x1b", "value", "v\n\n\x1b"));
    char *t = render(&pt_sink_text, r, false, false);
    assert_null(strchr(t, '\033'));
    assert_null(strchr(t, '\007'));
    assert_null(strchr(t, '\r'));
    assert_null(strstr(t, "\xc2\x9b"));
    free(t);
    pt_result_free(r);
}

static void an_empty_document_still_reads(void **state)
{
    (void)state;
    struct pt_result *r = pt_result_new(0);
    pt_result_status(r, PT_RESULT_FAILED);
    pt_result_warn(r, "no operation succeeded");
    char *t = render(&pt_sink_text, r, false, false);
    HAS(t, "status", "failed");
    HAS(t, "no operation succeeded", "");
    free(t);
    pt_result_free(r);
}

static void json_comes_back_the_same(void **state)
{
    (void)state;
    struct pt_result *r = everything("lat"), *back = NULL;
    const char *comma = setlocale(LC_NUMERIC, "de_DE.UTF-8");
    char *t = render(&pt_sink_json, r, false, false);
    if (comma)
        setlocale(LC_NUMERIC, "C");
    struct pt_err e = {0};
    if (pt_result_parse(t, strlen(t), &back, &e) < 0)
        fail_msg("%s", e.text);
    double a = 0, b = 1;
    assert_true(pt_result_get_real(r, "rates.operations_per_s", &a));
    assert_true(pt_result_get_real(back, "rates.operations_per_s", &b));
    assert_memory_equal(&a, &b, sizeof(a));
    assert_string_equal(pt_result_get_str(back, "latency.hdr"),
                        pt_result_get_str(r, "latency.hdr"));
    assert_int_equal(t[strlen(t) - 1], '\n');
    free(t);
    pt_result_free(r);
    pt_result_free(back);
}

/* The JSON of an element of the page; parsed as a browser would hand it to a script. */
static json_t *element(const char *page, const char *id)
{
    char begin[80];
    snprintf(begin, sizeof(begin), "<script type=\"application/json\" id=\"%s\">", id);
    const char *from = strstr(page, begin);
    assert_non_null(from);
    from += strlen(begin);
    const char *end = strstr(from, "</script>");
    assert_non_null(end);
    json_t *value = json_loadb(from, (size_t)(end - from), JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    return value;
}

static size_t times(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        n++;
    return n;
}

static void a_page_holds_the_document_and_nothing_gets_out_of_it(void **state)
{
    (void)state;
    struct pt_result *r = everything("lat"), *stored = NULL;
    pt_result_str(r, "peer.host", "</script><script>x()</script><!-- & \u2028 \U0001f600");
    char *json = render(&pt_sink_json, r, false, false);
    assert_int_equal(pt_result_parse(json, strlen(json), &stored, NULL), 0);
    char *t = render(&pt_sink_html, r, false, false), *zh = render(&pt_sink_html, r, false, true);
    char *again = render(&pt_sink_html, stored, false, false);
    assert_string_equal(t, again);
    json_t *in_page = element(t, "document");
    assert_true(json_equal(in_page, stored->root));
    json_decref(in_page);
    assert_int_equal(times(t, "<script"), 5);
    assert_int_equal(times(t, "</script"), 5);
    assert_int_equal(times(t, "<!--"), 0);
    assert_int_equal(times(t, "\u2028"), 0);
    json_t *curves = element(t, "curves"), *words = element(t, "words");
    assert_int_equal(json_array_size(curves), 1);
    assert_int_equal(json_object_size(json_array_get(curves, 0)), 3);
    assert_true(json_object_size(words) > 200);
    json_decref(curves);
    json_decref(words);
    assert_non_null(strstr(t, "<html lang=\"en\">"));
    assert_non_null(strstr(zh, "<html lang=\"zh\">"));
    free(json);
    free(t);
    free(zh);
    free(again);
    pt_result_free(r);
    pt_result_free(stored);
}

static size_t fields(const char *line)
{
    size_t n = 1;
    bool quoted = false;
    for (; *line && *line != '\r'; line++) {
        quoted ^= *line == '"';
        n += *line == ',' && !quoted;
    }
    return n;
}

static void csv_rows_match_their_header(void **state)
{
    (void)state;
    struct pt_result *r = everything("lat");
    pt_result_append(
        r, "series",
        json_pack("{s:f, s:i, s:n, s:f}", "t_s", 1.0, "ok", 99, "rx_bytes", "p99_us", 26.25));
    pt_result_str(r, "test.target", "a,\"b\"\nc");
    char *t = render(&pt_sink_csv_series, r, false, false);
    const char *row = strstr(t, "\r\n") + 2;
    assert_int_equal(strncmp(t, "t_s,operations,ok,errors,tx_bytes,rx_bytes,", 43), 0);
    assert_int_equal(strncmp(row, "1,,99,,,,", 9), 0);
    assert_int_equal(fields(t), fields(row));
    assert_non_null(strstr(row, ",26.25,"));
    free(t);
    t = render(&pt_sink_csv, r, false, false);
    row = strstr(t, "\r\n") + 2;
    assert_int_equal(fields(t), fields(row));
    assert_non_null(strstr(row, ",\"a,\"\"b\"\"\nc\","));
    free(t);
    pt_result_free(r);
}

static void the_page_of_a_run_has_the_curves_of_each_test(void **state)
{
    (void)state;
    struct pt_result *a = everything("lat"), *b = everything("bw"), *run = pt_run_new("two", 0);
    pt_run_add(run, a);
    pt_run_add(run, b);
    char *t = render(&pt_sink_html, run, false, false);
    json_t *curves = element(t, "curves");
    assert_int_equal(json_array_size(curves), 2);
    json_decref(curves);
    free(t);
    pt_result_free(run);
}

static void stores_all_or_nothing(void **state)
{
    (void)state;
    char dir[] = "/tmp/pitot-test-XXXXXX", path[64], link[64], got[64] = "";
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/r.json", dir);
    snprintf(link, sizeof(link), "%s/link", dir);
    struct pt_buf b;
    struct pt_err e = {0};
    pt_buf_init(&b, 100);
    pt_buf_adds(&b, "first");
    assert_int_equal(pt_sink_store(path, &b, &e), 0);
    assert_int_equal(symlink(path, link), 0);
    pt_buf_reset(&b);
    pt_buf_adds(&b, "second");
    assert_int_equal(pt_sink_store(link, &b, &e), 0);
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    FILE *f = fopen(path, "r");
    assert_non_null(fgets(got, sizeof(got), f));
    fclose(f);
    assert_string_equal(got, "second");
    assert_int_equal(pt_sink_store("/dev/null", &b, &e), 0);
    assert_int_equal(pt_sink_store("/dev/full", &b, &e), -ENOSPC);
    assert_non_null(strstr(e.text, "/dev/full: No space left on device"));
    assert_int_equal(pt_sink_store(dir, &b, &e), -EISDIR);
    assert_int_equal(pt_sink_store("/nonexistent/x", &b, &e), -ENOENT);
    pt_buf_fini(&b);
    unlink(link);
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* no temporary file is left */
}

static void progress_is_lines_and_on_a_terminal_a_bar(void **state)
{
    (void)state;
    struct pt_progress p = {0};
    struct pt_buf out;
    pt_buf_init(&out, 10000);
    const struct pt_progress_figure f[] = {{"received", 94.1e9, "bit/s"},
                                           {"retransmits", (double)NAN, ""}};
    pt_progress_line(&p, 3 * PT_S, f, 2, &out);
    pt_progress_bar(&p, 3 * PT_S, 11 * PT_S, &out);
    HAS(pt_buf_str(&out), "3 s", "94.1 Gbit/s received");
    HAS(pt_buf_str(&out), "- retransmits", "");
    assert_null(strchr(pt_buf_str(&out), '\033'));
    assert_null(strchr(pt_buf_str(&out), '['));
    pt_buf_reset(&out);
    p.terminal = true;
    pt_progress_bar(&p, 3 * PT_S, 12 * PT_S, &out);
    HAS(pt_buf_str(&out), "[==========>", "25 %  9 s left");
    pt_buf_reset(&out);
    pt_progress_line(&p, -PT_S, f, 1, &out);
    assert_int_equal(strncmp(pt_buf_str(&out), "\r\033[K", 4), 0);
    HAS(pt_buf_str(&out), "warm-up", "94.1 Gbit/s");
    pt_buf_reset(&out);
    pt_progress_end(&p, &out);
    assert_int_equal(out.len, 0);
    pt_buf_fini(&out);
}

static void wide_characters_take_two_columns(void **state)
{
    (void)state;
    assert_int_equal(pt_text_columns("abc"), 3);
    assert_int_equal(pt_text_columns("µs"), 2);
    assert_int_equal(pt_text_columns("往返 p50"), 8);
    assert_int_equal(pt_text_columns("\xe5\xbe"), 1); /* cut short: still ends */
    assert_string_equal(pt_say(true, "received"), "接收");
    assert_string_equal(pt_say(true, "no such text"), "no such text");
    assert_string_equal(pt_say(false, "received"), "received");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bandwidth_says_what_matters),
        cmocka_unit_test(directions_replace_their_sum),
        cmocka_unit_test(packets_show_the_waterfall),
        cmocka_unit_test(latency_names_its_round_trips),
        cmocka_unit_test(fits_80_columns),
        cmocka_unit_test(chinese_labels_are_chinese),
        cmocka_unit_test(hosts_show_load_memory_and_the_busiest_interface),
        cmocka_unit_test(colour_only_when_asked),
        cmocka_unit_test(a_document_cannot_write_to_the_terminal),
        cmocka_unit_test(an_empty_document_still_reads),
        cmocka_unit_test(json_comes_back_the_same),
        cmocka_unit_test(a_page_holds_the_document_and_nothing_gets_out_of_it),
        cmocka_unit_test(csv_rows_match_their_header),
        cmocka_unit_test(the_page_of_a_run_has_the_curves_of_each_test),
        cmocka_unit_test(stores_all_or_nothing),
        cmocka_unit_test(progress_is_lines_and_on_a_terminal_a_bar),
        cmocka_unit_test(wide_characters_take_two_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
