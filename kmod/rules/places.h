/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The places of a queue: when a work may be posted, and must ask for a completion. Pure.
 *
 * A reliable connection completes each of its queues in order, so a place is a
 * number that only grows, and its slot is the number modulo a power of two.
 */
#ifndef IBCHAN_PLACES_H
#define IBCHAN_PLACES_H

#include <linux/compiler.h>
#include <linux/log2.h>
#include <linux/types.h>
#include <asm/barrier.h>

/* Places of a queue */
struct ibchan_places {
	u32 depth;	/* works that may be in flight */
	u32 mask;	/* @depth rounded up to a power of two, less one: the counters may wrap */
	u32 posted;	/* works ever posted; written under the post lock */
	/* works since the last one that asks for a completion; under the post lock */
	u32 unsignaled;
	u32 retired;	/* works ever retired; written by the owner of the cq */
};

static inline void ibchan_places_init(struct ibchan_places *places, u32 depth)
{
	*places = (struct ibchan_places){
		.depth = depth,
		.mask = roundup_pow_of_two(depth) - 1,
	};
}

/* How many places are taken, where @posted is the number of the next one. */
static inline u32 ibchan_places_taken(const struct ibchan_places *places, u32 posted)
{
	/* Pairs with the retirement that gave the place back. */
	return posted - smp_load_acquire(&places->retired);
}

static inline u32 ibchan_places_in_flight(const struct ibchan_places *places)
{
	u32 retired = smp_load_acquire(&places->retired); /* as above */

	return READ_ONCE(places->posted) - retired;
}

/*
 * Takes a place; not called when all are taken. A work that does not ask for a
 * completion gives its place back only when a later one completes, so at least
 * every second half of the queue has one that asks.
 *
 * Returns whether this work must ask.
 */
static inline bool ibchan_places_take(struct ibchan_places *places, bool wants_signal)
{
	bool signal = wants_signal || 2 * (places->unsignaled + 1) >= places->depth;

	places->unsignaled = signal ? 0 : places->unsignaled + 1;
	WRITE_ONCE(places->posted, places->posted + 1);
	return signal;
}

/* Gives back the place that was taken last. The next work asks for a completion. */
static inline void ibchan_places_untake(struct ibchan_places *places)
{
	places->unsignaled = places->depth;
	WRITE_ONCE(places->posted, places->posted - 1);
}

/* The work in the oldest place has ended, and no code looks at it there any more. */
static inline void ibchan_places_give(struct ibchan_places *places)
{
	/* Pairs with ibchan_places_taken() and ibchan_places_in_flight(). */
	smp_store_release(&places->retired, places->retired + 1);
}

#endif /* IBCHAN_PLACES_H */
