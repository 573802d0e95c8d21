// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions that stay in the kernel until the consumer polls for them: a sink with
 * a ring behind it. Like that of user space it cannot overflow: room is taken
 * before the post.
 */
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "verbs.h"

/**
 * struct ibchan_kept - completions that were not taken yet
 * @sink: the consumer's, for events
 * @priv: the consumer's
 * @lock: guards the counters; bottom halves off
 * @mask: number of entries, a power of two, less one
 * @reserved: works that have ever taken room, less the works that gave it back
 * @tail: completions that ever came
 * @head: completions that were ever taken
 * @entries: the ring
 */
struct ibchan_kept {
	const struct ibchan_sink *sink;
	void *priv;
	spinlock_t lock;		/* the counters */
	u32 mask;
	u32 reserved;
	u32 tail;
	u32 head;
	struct ibchan_completion entries[];
};

/* Room for as many completions as the cq has entries; the sink is for events only. */
struct ibchan_kept *ibchan_kept_alloc(u32 entries, const struct ibchan_sink *sink, void *priv)
{
	u32 size = roundup_pow_of_two(entries);
	struct ibchan_kept *kept = kvzalloc(struct_size(kept, entries, size),
					    GFP_KERNEL_ACCOUNT);

	if (!kept)
		return NULL;
	kept->sink = sink;
	kept->priv = priv;
	spin_lock_init(&kept->lock);
	kept->mask = size - 1;
	return kept;
}

void ibchan_kept_free(struct ibchan_kept *kept)
{
	kvfree(kept);
}

/* Oldest first; how many. */
int ibchan_kept_take(struct ibchan_kept *kept, struct ibchan_completion *completions,
		     int num)
{
	int taken = 0;

	spin_lock_bh(&kept->lock);
	for (; taken < num && kept->head != kept->tail; kept->head++)
		completions[taken++] = kept->entries[kept->head & kept->mask];
	spin_unlock_bh(&kept->lock);
	return taken;
}

static int kept_reserve(void *priv)
{
	struct ibchan_kept *kept = priv;
	int ret = -EAGAIN;

	spin_lock(&kept->lock);
	if (kept->reserved - kept->head <= kept->mask) {
		kept->reserved++;
		ret = 0;
	}
	spin_unlock(&kept->lock);
	return ret;
}

static void kept_cancel(void *priv)
{
	struct ibchan_kept *kept = priv;

	spin_lock(&kept->lock);
	kept->reserved--;
	spin_unlock(&kept->lock);
}

static void kept_done(void *priv, const struct ibchan_completion *completion)
{
	struct ibchan_kept *kept = priv;

	spin_lock(&kept->lock);
	kept->entries[kept->tail++ & kept->mask] = *completion;
	spin_unlock(&kept->lock);
}

static void kept_notify(void *priv)
{
	struct ibchan_kept *kept = priv;

	if (kept->sink->notify)
		kept->sink->notify(kept->priv);
}

static void kept_gone(void *priv)
{
	struct ibchan_kept *kept = priv;

	if (kept->sink->gone)
		kept->sink->gone(kept->priv);
}

const struct ibchan_sink ibchan_kept_sink = {
	.reserve = kept_reserve,
	.cancel = kept_cancel,
	.done = kept_done,
	.notify = kept_notify,
	.gone = kept_gone,
};
