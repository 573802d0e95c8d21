// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limit of inline data, for which drivers have no attribute to show. The driver's answer for
 * a queue pair that it made is the truth, and the largest of these is shown as the device's.
 * Whether it takes more is not known until a caller asks for more. A refusal is never
 * remembered: it may come from another part of the request, or from a lack of memory, and would
 * let one user decide what another may have.
 */
#include <linux/errno.h>
#include <linux/minmax.h>

#include "verbs.h"

/* The device has made a queue pair and said how many bytes of inline data it takes. */
void ibchan_limits_learn_inline(struct ibchan_device *dev, u32 given)
{
	u32 known = READ_ONCE(dev->max_inline);

	while (known == IBCHAN_AUTO || known < given)
		if (try_cmpxchg(&dev->max_inline, &known, given))
			break;
}

int ibchan_limits_refuse_inline(const struct ibchan_qp *qp, u32 most,
				struct ibchan_reason *reason)
{
	return ibchan_refuse_parameter(reason, IBCHAN_PARAMETER_MAX_INLINE_DATA,
				       qp->params.max_inline_data, 0, most);
}

/* A queue pair that is as the channel's should be but for @bytes, and ends at once. */
static int try(struct ibchan_qp *qp, u32 bytes, u32 *given)
{
	int ret = ibchan_qp_make(qp, bytes, given);

	if (!ret)
		ret = ibchan_qp_destroy(qp);
	if (!ret)
		qp->ib = NULL;
	return ret;
}

/*
 * The device has refused to make @qp, with -EINVAL. Returns -EINVAL, and the most that the device
 * takes in @reason, if that was for its inline data, else 0. A device that does not let go of a
 * queue pair that was made to find out leaves it to @qp.
 */
int ibchan_limits_find_inline(struct ibchan_qp *qp, struct ibchan_reason *reason)
{
	u32 refused = qp->params.max_inline_data;
	u32 most, given, middle;
	int ret;

	if (try(qp, 0, &most))
		return 0;
	most = min(most, refused - 1);
	while (refused - most > 1) {
		middle = most + (refused - most) / 2;
		ret = try(qp, middle, &given);
		if (ret && (ret != -EINVAL || qp->ib))
			break;
		if (!ret && given >= middle)
			most = min(given, refused - 1);
		else
			refused = middle;
	}
	return ibchan_limits_refuse_inline(qp, most, reason);
}
