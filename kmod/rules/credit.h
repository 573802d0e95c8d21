/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The places of a queue: when a work may be posted, and must ask for a completion. Pure.
 *
 * A reliable connection completes each of its queues in order, so a place is a
 * number that only grows, and its slot is the number modulo a power of two.
 */
#ifndef IBCHAN_CREDIT_H
#define IBCHAN_CREDIT_H

#include <linux/compiler.h>
#include <linux/log2.h>
#include <linux/types.h>
#include <asm/barrier.h>

/**
 * struct ibchan_credit - places of a queue
 * @depth: works that may be in flight
 * @mask: @depth rounded up to a power of two, less one: the counters may wrap
 * @posted: works ever posted; written under the post lock
 * @unsignaled: works since the last one that asks for a completion; under the
 *	post lock
 * @retired: works ever retired; written by the owner of the cq
 */
struct ibchan_credit {
	u32 depth;
	u32 mask;
	u32 posted;
	u32 unsignaled;
	u32 retired;
};

static inline void ibchan_credit_init(struct ibchan_credit *credit, u32 depth)
{
	*credit = (struct ibchan_credit){
		.depth = depth,
		.mask = roundup_pow_of_two(depth) - 1,
	};
}

static inline u32 ibchan_credit_in_flight(const struct ibchan_credit *credit)
{
	/* Pairs with the retirement that gave the place back. */
	u32 retired = smp_load_acquire(&credit->retired);

	return READ_ONCE(credit->posted) - retired;
}

static inline bool ibchan_credit_is_spent(const struct ibchan_credit *credit)
{
	return ibchan_credit_in_flight(credit) >= credit->depth;
}

/*
 * Takes a place; not called when all are taken. A work that does not ask for a
 * completion gives its place back only when a later one completes, so at least
 * every second half of the queue has one that asks.
 *
 * Returns whether this work must ask.
 */
static inline bool ibchan_credit_take(struct ibchan_credit *credit, bool wants_signal)
{
	bool signal = wants_signal || 2 * (credit->unsignaled + 1) >= credit->depth;

	credit->unsignaled = signal ? 0 : credit->unsignaled + 1;
	WRITE_ONCE(credit->posted, credit->posted + 1);
	return signal;
}

/* Gives back the place that was taken last. The next work asks for a completion. */
static inline void ibchan_credit_untake(struct ibchan_credit *credit)
{
	credit->unsignaled = credit->depth;
	WRITE_ONCE(credit->posted, credit->posted - 1);
}

/* The work in the oldest place has ended, and no code looks at it there any more. */
static inline void ibchan_credit_give(struct ibchan_credit *credit)
{
	/* Pairs with ibchan_credit_in_flight(). */
	smp_store_release(&credit->retired, credit->retired + 1);
}

#endif /* IBCHAN_CREDIT_H */
