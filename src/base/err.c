/* err.c: see err.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at `c` that may be printed as it is; 0 for a control character, for
 * what is no UTF-8, and for what was cut. */
static size_t printable(const unsigned char *c)
{
    size_t n = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
    if (*c < 0x20 || *c == 0x7f)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    }
    bool c1 = c[0] == 0xc2 && c[1] < 0xa0;
    bool overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
    bool no_character = (c[0] == 0xed && c[1] >= 0xa0) || (c[0] == 0xf4 && c[1] >= 0x90);
    return c1 || overlong || no_character ? 0 : n;
}

/* A sentence quotes file names, documents and peers: none of them may forge a line, drive the
 * terminal, or keep the sentence out of a JSON document. */
static void make_printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c;) {
        size_t n = printable(c);
        if (!n)
            *c = '?';
        c += n ? n : 1;
    }
}

int pt_fail(struct pt_err *e, int code, const char *fmt, ...)
{
    if (!e)
        return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    make_printable(e->text);
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
    make_printable(e->text);
    return e->code;
}

const char *pt_strerror(int code)
{
    return strerror(code < 0 ? -code : code);
}
