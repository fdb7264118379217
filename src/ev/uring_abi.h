/* uring_abi.h: constants of the io_uring ABI that are newer than liburing 2.3, with the kernel that
 * brought them. Feature bits are probed, never assumed.
 *
 * IORING_SETUP_NO_SQARRAY (6.6) must not be used: liburing 2.3 would write its index array over the
 * head of the ring.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PT_EV_URING_ABI_H
#define PT_EV_URING_ABI_H

#ifndef IORING_FEAT_NO_IOWAIT
#define IORING_FEAT_NO_IOWAIT (1U << 17) /* 6.15 */
#endif
#ifndef IORING_ENTER_NO_IOWAIT
/* 6.15: a wait for completions is not booked as iowait, which it is not: without this the CPU
 * shares of a waiting generator read as a busy disk. */
#define IORING_ENTER_NO_IOWAIT (1U << 7)
#endif

#endif
