/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Users of an object that others find under RCU. To count one more or one less is one locked
 * instruction, as with <linux/rcuref.h>, which not all kernels have, and which cannot end an object
 * of one user. Pure.
 *
 * A count that becomes negative is that of an object without users, which users.c ends. Until it has,
 * another one may still become its user; behind that the count is far below zero, and stays there.
 */
#ifndef IBCHAN_USERS_H
#define IBCHAN_USERS_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/types.h>

/* A count of an object that has ended. As many threads as there can be do not lift it to 0. */
#define IBCHAN_USERS_ENDED	(INT_MIN / 2)

/* Users of an object */
struct ibchan_users {
	atomic_t others;	/* all but one */
};

bool ibchan_users_refuse(struct ibchan_users *users);
bool ibchan_users_end(struct ibchan_users *users);

/* The caller is the only user. */
static inline void ibchan_users_init(struct ibchan_users *users)
{
	atomic_set(&users->others, 0);
}

/* How many there are. */
static inline u32 ibchan_users_count(const struct ibchan_users *users)
{
	return max(atomic_read(&users->others), -1) + 1;
}

/* Makes the caller a user; false: the object has ended. Under RCU, or for a user. Any context. */
static inline bool ibchan_users_get(struct ibchan_users *users)
{
	return likely(!atomic_add_negative(1, &users->others)) || ibchan_users_refuse(users);
}

/*
 * The caller is no user any more; true: it was the last one, and the object has ended. Under RCU.
 * Any context.
 */
static inline bool ibchan_users_put(struct ibchan_users *users)
{
	return unlikely(atomic_add_negative(-1, &users->others)) && ibchan_users_end(users);
}

/* Ends the object if the caller is its only user. Any context. */
static inline bool ibchan_users_put_if_one(struct ibchan_users *users)
{
	return atomic_cmpxchg(&users->others, 0, IBCHAN_USERS_ENDED) == 0;
}

#endif /* IBCHAN_USERS_H */
