/* err.c: see err.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int pt_fail(struct pt_err *e, int code, const char *fmt, ...)
{
    if (!e)
        return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    e->code = code;
    return code;
}

int pt_fail_prefix(struct pt_err *e, const char *fmt, ...)
{
    char rest[sizeof(e->text)];
    memcpy(rest, e->text, sizeof(rest));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(e->text))
        snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", rest);
    return e->code;
}

const char *pt_strerror(int code)
{
    return strerror(code < 0 ? -code : code);
}
