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
 * struct ibchan_cq_fifo - completions that were not taken yet
 * @sink: the consumer's, for events
 * @priv: the consumer's
 * @lock: guards the counters; bottom halves off
 * @mask: number of entries, a power of two, less one
 * @reserved: works that have ever taken room, less the works that gave it back
 * @tail: completions that ever came
 * @head: completions that were ever taken
 * @entries: the ring
 */
struct ibchan_cq_fifo {
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
struct ibchan_cq_fifo *ibchan_cq_fifo_alloc(u32 entries, const struct ibchan_sink *sink,
					    void *priv)
{
	u32 size = roundup_pow_of_two(entries);
	struct ibchan_cq_fifo *fifo = kvzalloc(struct_size(fifo, entries, size),
					       GFP_KERNEL_ACCOUNT);

	if (!fifo)
		return NULL;
	fifo->sink = sink;
	fifo->priv = priv;
	spin_lock_init(&fifo->lock);
	fifo->mask = size - 1;
	return fifo;
}

void ibchan_cq_fifo_free(struct ibchan_cq_fifo *fifo)
{
	kvfree(fifo);
}

/* Oldest first; how many. */
int ibchan_cq_fifo_take(struct ibchan_cq_fifo *fifo, struct ibchan_completion *completions,
			int num)
{
	int taken = 0;

	spin_lock_bh(&fifo->lock);
	for (; taken < num && fifo->head != fifo->tail; fifo->head++)
		completions[taken++] = fifo->entries[fifo->head & fifo->mask];
	spin_unlock_bh(&fifo->lock);
	return taken;
}

static int fifo_reserve(void *priv, u32 num)
{
	struct ibchan_cq_fifo *fifo = priv;

	spin_lock(&fifo->lock);
	num = min(num, fifo->mask + 1 - (fifo->reserved - fifo->head));
	fifo->reserved += num;
	spin_unlock(&fifo->lock);
	return num ?: -EAGAIN;
}

static void fifo_cancel(void *priv, u32 num)
{
	struct ibchan_cq_fifo *fifo = priv;

	spin_lock(&fifo->lock);
	fifo->reserved -= num;
	spin_unlock(&fifo->lock);
}

static void fifo_done(void *priv, const struct ibchan_completion *completion)
{
	struct ibchan_cq_fifo *fifo = priv;

	spin_lock(&fifo->lock);
	fifo->entries[fifo->tail++ & fifo->mask] = *completion;
	spin_unlock(&fifo->lock);
}

static void fifo_notify(void *priv)
{
	struct ibchan_cq_fifo *fifo = priv;

	if (fifo->sink->notify)
		fifo->sink->notify(fifo->priv);
}

static void fifo_gone(void *priv)
{
	struct ibchan_cq_fifo *fifo = priv;

	if (fifo->sink->gone)
		fifo->sink->gone(fifo->priv);
}

const struct ibchan_sink ibchan_cq_fifo_sink = {
	.reserve = fifo_reserve,
	.cancel = fifo_cancel,
	.done = fifo_done,
	.notify = fifo_notify,
	.gone = fifo_gone,
};
