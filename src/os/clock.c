/* clock.c: see clock.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static pt_ns read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (pt_ns)ts.tv_sec * PT_S + ts.tv_nsec;
}

pt_ns pt_clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

pt_ns pt_clock_realtime(void)
{
    return read_clock(CLOCK_REALTIME);
}

pt_ns pt_clock_of_stamp(pt_ns realtime)
{
    pt_ns now = pt_clock_now(), age = pt_clock_realtime() - realtime;
    return age > 0 && age < 10 * PT_S ? now - age : now;
}

pt_ns pt_clock_cpu(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

int pt_clock_wait_until(pt_ns instant)
{
    struct timespec ts = {.tv_sec = (time_t)(instant / PT_S), .tv_nsec = (long)(instant % PT_S)};
    return -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

void pt_clock_sleep_until(pt_ns instant)
{
    while (pt_clock_wait_until(instant) == -EINTR)
        continue;
}

void pt_clock_rfc3339(pt_ns realtime, char out[32])
{
    time_t s = (time_t)(realtime / PT_S);
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, 32 - n, ".%03dZ", (int)(realtime % PT_S / PT_MS));
}
