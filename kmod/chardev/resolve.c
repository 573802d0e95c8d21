// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submit, next to last step: handles become what they stand for.
 *
 * RCU is held throughout, until the post has taken references of its own.
 */
#include <linux/errno.h>

#include "submit.h"

static noinline int refuse(struct ibchan_reason *reason, u32 code, u32 handle, u32 element)
{
	ibchan_submit_refuse(reason, code, handle, 0);
	reason->element = element;
	return -ENOENT;
}

/* The regions of the elements from @place to @end. Returns the first that is none, or @end. */
static __always_inline u32 find_regions(struct ibchan_context *ctx,
					struct ibchan_submit_scratch *s, u32 place, u32 end)
{
	for (; place < end; place++) {
		struct ibchan_object *object;

		/* Those of plain memory are there. */
		if (unlikely(s->mrs[place] == IBCHAN_MR_PLAIN))
			continue;
		object = ibchan_object_find(ctx, s->mrs[place], OBJECT_MR);
		if (unlikely(!object))
			break;
		s->sges[place].mr = object->mr;
	}
	return place;
}

/**
 * ibchan_submit_resolve - make a chunk's requests the kernel's own
 * @ctx: the context
 * @s: copied, and pinned
 * @num: how many of them
 * @reason: why one was refused
 * @error: of the first refused one; else as it was
 *
 * The elements of all requests lie one behind the other.
 *
 * Context: under RCU.
 * Return: how many leading ones are resolved.
 */
u32 ibchan_submit_resolve(struct ibchan_context *ctx, struct ibchan_submit_scratch *s,
			  u32 num, struct ibchan_reason *reason, int *error)
{
	u32 i, end, place = 0;

	for (i = 0; i < num; i++) {
		struct ibchan_object *object = ibchan_object_find(ctx, s->handles[i],
								  OBJECT_CHANNEL);

		if (unlikely(!object)) {
			*error = refuse(reason, IBCHAN_REASON_CHANNEL_HANDLE, s->handles[i], 0);
			break;
		}
		s->channels[i] = object->channel;
		end = place + s->wrs[i].num_sge;
		place = find_regions(ctx, s, place, end);
		if (unlikely(place < end)) {
			*error = refuse(reason, IBCHAN_REASON_MR_HANDLE, s->mrs[place],
					s->element[place]);
			break;
		}
	}
	return i;
}

/**
 * ibchan_submit_translate - a refusal of a post in the contract's terms
 * @s: resolved
 * @index: the entry that was refused
 * @reason: why
 *
 * Context: any.
 */
void ibchan_submit_translate(const struct ibchan_submit_scratch *s, u32 index,
			     struct ibchan_reason *reason)
{
	const struct ibchan_wr *wr = &s->wrs[index];

	if (reason->code == IBCHAN_REASON_WR_FLAGS) {
		reason->value[0] = wr->flags ^ IBCHAN_WR_UNCHECKED;
		reason->value[1] = (reason->value[1] | IBCHAN_WR_UNCHECKED) & IBCHAN_WR_FLAGS;
	}
	if (reason->element < wr->num_sge)
		reason->element = s->element[wr->sges - s->sges + reason->element];
}
