/* types.h: the few scalar names that every layer shares.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_BASE_TYPES_H
#define PT_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Nanoseconds. An instant is on CLOCK_MONOTONIC unless its name says otherwise; signed, so that
 * differences need no care. */
typedef int64_t pt_ns;

#define PT_US     ((pt_ns)1000)
#define PT_MS     ((pt_ns)1000000)
#define PT_S      ((pt_ns)1000000000)
#define PT_NS_MAX INT64_MAX

#define PT_MUST_USE        __attribute__((warn_unused_result))
#define PT_PRINTF(fmt, at) __attribute__((format(printf, fmt, at)))
#define PT_LIKELY(x)       __builtin_expect(!!(x), 1)
#define PT_UNLIKELY(x)     __builtin_expect(!!(x), 0)
#define PT_COUNT(array)    (sizeof(array) / sizeof((array)[0]))
#define PT_CACHE_LINE      64

/* The struct of which `ptr` points to `member`. */
#define PT_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
