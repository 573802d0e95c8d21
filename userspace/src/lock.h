/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A mutex for what each post and each completion locks, inline where no thread waits: of
 * pthread's, a pair of calls costs 50 instructions more, a twentieth of what a post
 * costs altogether. One that is all zero is free.
 */
#ifndef _LIBIBCHAN_LOCK_H
#define _LIBIBCHAN_LOCK_H

#include <stdbool.h>

/**
 * struct lock - a mutex
 * @state: LOCK_*
 */
struct lock {
	int state;
};

enum {
	LOCK_FREE,
	LOCK_HELD,
	LOCK_AWAITED,	/* held; the holder wakes a thread when it gives the lock back */
};

/*
 * The thread sanitizer of a program knows pthread's mutexes, and what they order. It has to
 * be told of the ones here.
 */
#pragma weak __tsan_acquire
#pragma weak __tsan_release
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);

#pragma GCC visibility push(hidden)

void lock_wait(struct lock *lock);
void lock_wake(struct lock *lock);

struct deadline;

/* 0; -ETIMEDOUT; -EINTR: a signal came. For a lock that is held in a sleep. */
int lock_take_until(struct lock *lock, const struct deadline *deadline);

#pragma GCC visibility pop

static inline bool lock_try(struct lock *lock)
{
	int state = LOCK_FREE;

	return __atomic_compare_exchange_n(&lock->state, &state, LOCK_HELD, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void lock_take(struct lock *lock)
{
	if (!lock_try(lock))
		lock_wait(lock);
	if (__tsan_acquire)
		__tsan_acquire(lock);
}

static inline void lock_give(struct lock *lock)
{
	if (__tsan_release)
		__tsan_release(lock);
	if (__atomic_exchange_n(&lock->state, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_AWAITED)
		lock_wake(lock);
}

#endif /* _LIBIBCHAN_LOCK_H */
