/* fuzz_plan_file.c: plan files from anywhere: what is refused has a place and a sentence of one
 * line, and what is taken prints to a text that parses and prints the same.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/plan_file.h"
#include "model/yaml.h"
#include "workload/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void print(const struct pt_plan_file *f, struct pt_buf *out)
{
    pt_buf_init(out, (size_t)64 << 20);
    pt_plan_file_print(f, out);
    must(out->failed == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pt_plan_file f, again;
    const struct pt_plan_form *forms[8] = {0};
    struct pt_err e = {0};
    struct pt_buf first, second;
    unsigned line = 0, column = 0;
    for (size_t i = 0; pt_workloads[i]; i++)
        forms[i] = &pt_workloads[i]->form;
    if (pt_plan_file_parse(&f, "p", (const char *)data, size, forms, &e) < 0) {
        must(sscanf(e.text, "p:%u:%u: ", &line, &column) == 2 && line && column);
        for (const char *c = e.text; *c; c++)
            must((unsigned char)*c >= 0x20);
        must(f.tests == 0);
        return 0;
    }
    (void)!pt_plan_file_set(&f, "duration=5s", &e);
    print(&f, &first);
    /* Defaults make the text longer than a plan may be: that is a refusal too. */
    if (first.len <= PT_YAML_BYTES &&
        pt_plan_file_parse(&again, "p", pt_buf_str(&first), first.len, forms, &e) == 0) {
        print(&again, &second);
        must(first.len == second.len && !memcmp(first.bytes, second.bytes, first.len));
        must(pt_plan_file_check(&f, NULL) == pt_plan_file_check(&again, NULL));
        pt_buf_fini(&second);
        pt_plan_file_fini(&again);
    } else {
        must(first.len > PT_YAML_BYTES);
    }
    pt_buf_fini(&first);
    pt_plan_file_fini(&f);
    return 0;
}
