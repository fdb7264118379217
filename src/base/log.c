/* log.c: see log.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static pt_log_sink *log_sink;
static void *log_ctx;
static enum pt_log_level log_most;

void pt_log_init(pt_log_sink *sink, void *ctx, enum pt_log_level most)
{
    log_sink = sink;
    log_ctx = ctx;
    log_most = most;
}

void pt_log(enum pt_log_level level, const char *fmt, ...)
{
    if (!log_sink || level > log_most)
        return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    log_sink(log_ctx, level, line);
}

const char *pt_log_quote(char *out, size_t cap, const void *bytes, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *p = bytes;
    size_t at = 0;
    if (!cap)
        return out;
    for (size_t i = 0; i < n; i++) {
        bool plain = p[i] >= 0x20 && p[i] < 0x7f && p[i] != '\\';
        if (at + (plain ? 1 : 4) + 4 > cap) {
            if (cap >= 4 && at + 4 <= cap) {
                out[at++] = '.';
                out[at++] = '.';
                out[at++] = '.';
            }
            break;
        }
        if (plain) {
            out[at++] = (char)p[i];
        } else {
            out[at++] = '\\';
            out[at++] = 'x';
            out[at++] = hex[p[i] >> 4];
            out[at++] = hex[p[i] & 15];
        }
    }
    out[at < cap ? at : cap - 1] = '\0';
    return out;
}
