// SPDX-License-Identifier: LGPL-2.1-or-later
/* The part of a lock that is rare: another thread has it. */
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lock.h"

/* How often to look before sleeping: the holder needs some hundred instructions. */
#define LOOKS	100

static bool try_for_a_moment(struct lock *lock)
{
	int i;

	for (i = 0; i < LOOKS; i++) {
		int state = LOCK_FREE;

		if (!__atomic_load_n(&lock->state, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&lock->state, &state, LOCK_HELD,
						false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* A thread that has slept cannot know whether others do: it takes the lock as awaited. */
void lock_wait(struct lock *lock)
{
	if (try_for_a_moment(lock))
		return;
	while (__atomic_exchange_n(&lock->state, LOCK_AWAITED, __ATOMIC_ACQUIRE) !=
	       LOCK_FREE)
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, LOCK_AWAITED,
			NULL, NULL, 0);
}

void lock_wake(struct lock *lock)
{
	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
