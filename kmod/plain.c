// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, second step, where requests name memory that is not registered: each such
 * element becomes a region of its own, which lives as long as its work.
 *
 * The context's lock keeps the channel and its domain in place while pages are
 * faulted in. Once the works are posted, they are the regions' users, and the regions
 * go with them; what was not posted, or has completed already, goes at once.
 */
#include <linux/errno.h>
#include <linux/sched/signal.h>

#include "submit.h"

static int pin_element(struct ibchan_object *channel, const struct ibchan_submit_wr *entry,
		       const struct ibchan_submit_sge *sge, struct ibchan_mr **pinned,
		       struct ibchan_reason *reason)
{
	const struct ibchan_plain plain = {
		.addr = sge->offset,
		.length = sge->length,
		.num_sge = entry->num_sge,
		.opcode = entry->opcode,
	};
	struct ibchan_mr *mr;

	if (sge->mr != IBCHAN_MR_PLAIN || !sge->length)
		return 0;
	mr = ibchan_mr_pin_user(channel->channel, channel->parent->pd, &plain, reason);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	*pinned = mr;
	return 0;
}

static int pin_elements(struct ibchan_submit_scratch *s, u32 index,
			struct ibchan_object *channel, struct ibchan_reason *reason)
{
	const struct ibchan_submit_sge *sges = ibchan_entry_sges(s, index);
	int ret = 0;
	u32 i;

	for (i = 0; i < s->entries[index].num_sge && !ret; i++) {
		s->pinned[s->num_pinned] = NULL;
		ret = pin_element(channel, &s->entries[index], &sges[i],
				  &s->pinned[s->num_pinned++], reason);
		if (ret)
			reason->element = i;
	}
	return ret;
}

static int pin_entry(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 index,
		     struct ibchan_reason *reason)
{
	const struct ibchan_submit_wr *entry = &s->entries[index];
	struct ibchan_object *channel = ibchan_object_find(ctx, entry->channel, OBJECT_CHANNEL);

	if (ibchan_entry_is_inline(entry))
		return 0;
	if (!channel) {
		ibchan_submit_refuse(reason, IBCHAN_REASON_CHANNEL_HANDLE, entry->channel, 0);
		return -ENOENT;
	}
	return pin_elements(s, index, channel, reason);
}

/**
 * ibchan_submit_pin - make regions of the plain memory in a chunk
 * @ctx: the context, not locked
 * @s: copied
 * @num: how many entries of it
 * @reason: why one was refused
 * @error: of the first refused one; else as it was
 *
 * Context: process, may sleep; ibchan_submit_unpin() is called in any case.
 * Return: how many leading entries may be posted.
 */
u32 ibchan_submit_pin(struct ibchan_context *ctx, struct ibchan_submit_scratch *s, u32 num,
		      struct ibchan_reason *reason, int *error)
{
	u32 done = 0;
	int ret = 0;

	s->num_pinned = 0;
	if (mutex_lock_killable(&ctx->lock)) {
		*error = -EINTR;
		return 0;
	}
	ctx->had_plain = 1;
	while (done < num && !ret) {
		ret = pin_entry(ctx, s, done, reason);
		done += !ret;
	}
	mutex_unlock(&ctx->lock);
	if (ret)
		*error = ret;
	return done;
}

/**
 * ibchan_submit_unpin - leave the regions to the works that were posted
 * @s: after the posts
 *
 * Context: process, may sleep.
 */
void ibchan_submit_unpin(struct ibchan_submit_scratch *s)
{
	u32 i;

	for (i = 0; i < s->num_pinned; i++) {
		if (!s->pinned[i])
			continue;
		ibchan_mr_try_dereg(s->pinned[i]);
		ibchan_mr_put(s->pinned[i]);
	}
}
