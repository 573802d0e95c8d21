/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The nth allocation, or copy from or to user space, that the kernel makes for this thread
 * fails. What its workers and interrupts do for the thread is not counted.
 */
#ifndef TEST_FAIL_NTH_H
#define TEST_FAIL_NTH_H

/* Of the calling thread alone: a descriptor to close, or -ENOENT on a kernel without it. */
int fail_nth_open(void);

/* The @nth one from now on fails; what the caller does until disarm should be one call. */
int fail_nth_arm(int fd, unsigned int nth);

/* 1 if it has failed since, 0 if there were not so many, or -errno. */
int fail_nth_disarm(int fd);

#endif /* TEST_FAIL_NTH_H */
