/* harness.h: what every cmocka test file includes, in the order cmocka needs it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_TEST_HARNESS_H
#define PT_TEST_HARNESS_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
