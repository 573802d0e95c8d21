/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads of this process and of others: where they are, and when they are disturbed. */
#ifndef TEST_THREAD_H
#define TEST_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * True while thread @tid, of any process, sleeps in an ioctl or a poll: its system call has
 * begun, and waits. False for tid 0, which is that of a thread that has not begun.
 */
bool sleeps_in_kernel(pid_t tid);

/* The same for eventually(), where @tid is a pid_t that the thread itself stores. */
bool is_asleep(void *tid);

/* The same for a wait that a kill may end and no other signal does. */
bool waits_killably(void *tid);

/* How often it has blocked so far, or -errno. */
long times_asleep(pid_t tid);

/* Joins a thread that has to end soon: 0 or -ETIMEDOUT. */
int join_soon(pthread_t thread, void **result);

/*
 * Lets @us microseconds pass where nothing is waited for: whatever comes next may come at any
 * time of what others do, and each time has to be right. Never a stand-in for a condition: that
 * is what eventually() is for.
 */
void moment(unsigned int us);

#endif /* TEST_THREAD_H */
