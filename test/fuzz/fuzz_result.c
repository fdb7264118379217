/* fuzz_result.c: result documents, and runs of several, from anywhere: what is accepted can be
 * printed by every sink, and the text cannot write to the terminal what it likes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/expect.h"
#include "model/run_document.h"
#include "sink/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static size_t parts(const struct pt_buf *text, const char *part)
{
    size_t n = 0;
    for (const char *at = pt_buf_str(text); (at = strstr(at, part)); at++)
        n++;
    return n;
}

static void print(const struct pt_result *r, const struct pt_sink *sink, bool chinese)
{
    struct pt_sink_style style = {.chinese = chinese};
    struct pt_buf out;
    pt_buf_init(&out, (size_t)64 << 20);
    must(sink->render(r, &style, &out, NULL) == 0);
    if (sink == &pt_sink_html)
        must(parts(&out, "<script") == 5 && parts(&out, "</script") == 5);
    if (sink == &pt_sink_text || sink == &pt_sink_run_text) {
        for (size_t i = 0; i < out.len; i++)
            must((unsigned char)out.bytes[i] >= 0x20 || out.bytes[i] == '\n');
    }
    pt_buf_fini(&out);
}

static void use(struct pt_result *r)
{
    static const char *const texts[] = {"p99<5ms", "errors==0", "rx_bits_per_s>=1gbit",
                                        "steps.0.p99_us<5"};
    print(r, &pt_sink_text, false);
    print(r, &pt_sink_text, true);
    print(r, &pt_sink_json, false);
    print(r, &pt_sink_csv, false);
    print(r, &pt_sink_csv_series, false);
    print(r, &pt_sink_html, false);
    for (size_t i = 0; i < PT_COUNT(texts); i++) {
        struct pt_expect x;
        double v;
        bool present;
        must(pt_expect_parse(texts[i], &x, NULL) == 0);
        (void)pt_expect_holds(&x, r, &v, &present);
    }
    struct pt_err e;
    int balanced = pt_result_balance(r, &e);
    must(balanced == 0 || balanced == -EINVAL);
    struct pt_result *runs[3] = {r, r, r}, *both = NULL;
    if (pt_result_repeat(runs, 3, &both, &e) == 0) {
        print(both, &pt_sink_text, false);
        pt_result_free(both);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pt_result *r = NULL;
    struct pt_err e = {0};
    if (pt_document_parse((const char *)data, size, &r, &e) < 0) {
        must(r == NULL && e.text[0]);
        return 0;
    }
    if (pt_run_is(r)) {
        print(r, &pt_sink_run_text, true);
        print(r, &pt_sink_run_csv, false);
        print(r, &pt_sink_run_csv_series, false);
    } else {
        use(r);
    }
    pt_result_free(r);
    return 0;
}
