// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, second step, where requests name memory that is not registered: makes a region of
 * each such element, which lives as long as its work.
 *
 * The channel's domain is kept while its pages are faulted in, and no lock is: a fault
 * takes as long as the server of the page likes. Once the works are posted, they are the regions'
 * users, and the regions go with them. The region of an element that was not posted, or whose
 * work has completed already, goes at once.
 */
#include <linux/errno.h>

#include "submit.h"

/* Keeps the domain of the entry's channel, and tells how many elements that channel takes. */
static struct ibchan_pd *get_pd(struct ibchan_context *ctx, u32 handle, struct ibchan_plain *plain)
{
	struct ibchan_pd *pd = NULL;
	struct ibchan_object *object;

	rcu_read_lock();
	object = ibchan_object_find(ctx, handle, OBJECT_CHANNEL);
	if (object && ibchan_pd_tryget(object->pd_of_channel)) {
		pd = object->pd_of_channel;
		plain->max_sge = ibchan_channel_max_sge(object->channel, plain->opcode);
	}
	rcu_read_unlock();
	return pd;
}

/* Tries again where works that have completed had not let go of their pages yet. */
static struct ibchan_mr *pin(struct ibchan_context *ctx, struct ibchan_pd *pd,
			     const struct ibchan_plain *plain, struct ibchan_reason *reason)
{
	struct ibchan_mr *mr = ibchan_mr_pin_user(pd, plain, reason);

	if (mr != ERR_PTR(-ENOMEM) || !ibchan_context_settle(ctx))
		return mr;
	*reason = (struct ibchan_reason) {};
	return ibchan_mr_pin_user(pd, plain, reason);
}

static int pin_elements(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			const struct ibchan_wr *wr, struct ibchan_pd *pd,
			struct ibchan_plain *plain, struct ibchan_reason *reason)
{
	u32 place = ibchan_submit_place(s, wr), end = place + wr->num_sge;
	struct ibchan_mr *mr;

	for (; place < end; place++) {
		union ibchan_submit_element *element = &s->elements[place];

		if (element->user.mr != IBCHAN_MR_PLAIN)
			continue;
		plain->addr = element->user.offset;
		plain->length = element->user.length;
		mr = pin(ctx, pd, plain, reason);
		if (IS_ERR(mr)) {
			reason->element = s->index[place];
			return PTR_ERR(mr);
		}
		s->pinned[s->num_pinned++] = mr;
		element->sge.mr = mr;
		element->sge.offset = 0;
	}
	return 0;
}

static int pin_entry(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 index,
		     struct ibchan_reason *reason)
{
	const struct ibchan_wr *wr = &s->wrs[index];
	struct ibchan_plain plain = { .num_sge = wr->num_sge, .opcode = wr->opcode };
	struct ibchan_pd *pd = get_pd(ctx, s->handles[index], &plain);
	struct ibchan_reason why = {};
	int ret;

	if (!pd) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_CHANNEL_HANDLE, s->handles[index], 0);
		return -ENOENT;
	}
	ret = pin_elements(ctx, s, wr, pd, &plain, &why);
	ibchan_pd_put(pd);
	/* A failure without a reason clears @reason. */
	if (ret)
		*reason = why;
	return ret;
}

/*
 * Makes regions of the plain memory that the first @num entries of a chunk name, and returns how
 * many leading entries may be posted; @reason and @error tell of the first one that may not.
 * ibchan_submit_unpin() is called in any case.
 */
u32 ibchan_submit_pin(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 num,
		      struct ibchan_reason *reason, int *error)
{
	u32 done = 0;
	int ret = 0;

	s->num_pinned = 0;
	WRITE_ONCE(ctx->had_plain, 1);
	while (done < num && !ret) {
		ret = pin_entry(ctx, s, done, reason);
		done += !ret;
	}
	if (ret)
		*error = ret;
	return done;
}

/* Leaves the regions to the works that were posted. */
void ibchan_submit_unpin(struct ibchan_submit_scratch *s)
{
	u32 i;

	for (i = 0; i < s->num_pinned; i++)
		ibchan_mr_put(s->pinned[i], NULL, NULL);
}
