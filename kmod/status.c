// SPDX-License-Identifier: GPL-2.0-only
/* Work completion statuses. The one table is IBCHAN_STATUSES. Pure. */
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>

#include "internal.h"

/* The contract's numbers are the verbs' own. */
#define STATUS_ASSERT(nr, NAME, error, CLASS) \
	static_assert((int)IB_WC_##NAME == (nr));
IBCHAN_STATUSES(STATUS_ASSERT)

static_assert((int)IBCHAN_ACCESS_LOCAL_WRITE == IB_ACCESS_LOCAL_WRITE);
static_assert((int)IBCHAN_ACCESS_REMOTE_WRITE == IB_ACCESS_REMOTE_WRITE);
static_assert((int)IBCHAN_ACCESS_REMOTE_READ == IB_ACCESS_REMOTE_READ);
static_assert((int)IBCHAN_ACCESS_REMOTE_ATOMIC == IB_ACCESS_REMOTE_ATOMIC);
static_assert(IBCHAN_LINK_LAYER_INFINIBAND == IB_LINK_LAYER_INFINIBAND);
static_assert(IBCHAN_LINK_LAYER_ETHERNET == IB_LINK_LAYER_ETHERNET);

#define STATUS_ERROR(nr, NAME, error, CLASS) \
	[nr] = (error),
static const u8 status_errors[] = {
	IBCHAN_STATUSES(STATUS_ERROR)
};

/**
 * ibchan_status_error - errno of a work completion status
 * @status: enum ibchan_status
 *
 * Return: positive; 0 for success; EIO for a status that the table lacks.
 */
u32 ibchan_status_error(u32 status)
{
	return status < ARRAY_SIZE(status_errors) ? status_errors[status] : EIO;
}
