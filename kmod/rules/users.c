// SPDX-License-Identifier: GPL-2.0-only
/* Ends an object without users: see users.h. */
#include <linux/bug.h>

#include "rules.h"

/* ibchan_users_get() of an object that has ended. Returns false. */
bool ibchan_users_refuse(struct ibchan_users *users)
{
	atomic_dec(&users->others);
	return false;
}

/*
 * ibchan_users_put() that found no other user. Of two callers that see that one after the other, as
 * another one became a user in between, one ends the object.
 */
bool ibchan_users_end(struct ibchan_users *users)
{
	int others = -1;

	if (likely(atomic_try_cmpxchg(&users->others, &others, IBCHAN_USERS_ENDED)))
		return true;
	/* One that is no user gives back what it does not have. */
	WARN_ON_ONCE(others < IBCHAN_USERS_ENDED);
	return false;
}
