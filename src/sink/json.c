/* json.c: the result document itself.
 *
 * jansson writes a decimal point whatever the locale says, and refuses what is not finite.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "sink/sink.h"

#include <errno.h>

static int add(const char *bytes, size_t n, void *ctx)
{
    return pt_buf_add(ctx, bytes, n);
}

static int render(const struct pt_result *r, const struct pt_sink_style *style, struct pt_buf *out,
                  struct pt_err *e)
{
    (void)style;
    /* 15 digits: every decimal figure comes back as it was written. */
    size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(15);
    if (json_dump_callback(r->root, add, out, flags) < 0 || pt_buf_adds(out, "\n") < 0)
        return pt_fail(e, out->failed ? out->failed : -ENOMEM,
                       "the document cannot be written as JSON: it is too large or memory ran out");
    return 0;
}

const struct pt_sink pt_sink_json = {.name = "json", .render = render};
