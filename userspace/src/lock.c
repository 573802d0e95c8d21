// SPDX-License-Identifier: LGPL-2.1-or-later
/* The part of a lock that is rare: another thread has it. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wait.h"

/* How often to look before sleeping: the holder needs some hundred instructions. */
#define LOOKS	100

/* A thread that has slept cannot know whether others do: it takes the lock as awaited. */
void lock_wait(struct lock *lock)
{
	int i;

	for (i = 0; i < LOOKS; i++)
		if (!__atomic_load_n(&lock->state, __ATOMIC_RELAXED) && lock_try(lock))
			return;
	while (__atomic_exchange_n(&lock->state, LOCK_AWAITED, __ATOMIC_ACQUIRE) != LOCK_FREE)
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, LOCK_AWAITED, NULL, NULL, 0);
}

/* Returns -1 with errno when the time is over or a signal has come. */
static long sleep_until(struct lock *lock, const struct deadline *deadline)
{
	/* The call takes two longs on a machine of 32 bits as well. */
	const long end[2] = { deadline->end_ns / NSEC_PER_SEC, deadline->end_ns % NSEC_PER_SEC };

	return syscall(SYS_futex, &lock->state, FUTEX_WAIT_BITSET_PRIVATE, LOCK_AWAITED,
		       deadline->timeout_ns < 0 ? NULL : end, NULL, FUTEX_BITSET_MATCH_ANY);
}

int lock_take_until(struct lock *lock, const struct deadline *deadline)
{
	if (!lock_try(lock)) {
		if (!deadline->timeout_ns)
			return -ETIMEDOUT;
		while (__atomic_exchange_n(&lock->state, LOCK_AWAITED, __ATOMIC_ACQUIRE) !=
		       LOCK_FREE)
			if (sleep_until(lock, deadline) < 0 && errno != EAGAIN)
				return -errno;
	}
	if (__tsan_acquire)
		__tsan_acquire(lock);
	return 0;
}

void lock_wake(struct lock *lock)
{
	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
