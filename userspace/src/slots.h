/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What each post and each completion does with its slot; see ring.c. All of it needs
 * cq->lock but ring_tail(), slot_wr_id() and slot_of_wr_id().
 */
#ifndef _LIBIBCHAN_SLOTS_H
#define _LIBIBCHAN_SLOTS_H

#include "internal.h"

/* How many entries the kernel has ever put into the ring. */
static inline __u32 ring_tail(const struct ibchan_cq *cq)
{
	return __atomic_load_n(cq->ring.tail, __ATOMIC_ACQUIRE);
}

/* The oldest of a list that goes through slot->next, or SLOT_NONE. */
static inline __u32 list_take(const struct ibchan_cq *cq, __u32 *first)
{
	__u32 index = *first;

	if (index != SLOT_NONE)
		*first = cq->slots[index].next;
	return index;
}

/*
 * For a work in @state. SLOT_NONE if as many works as the ring has entries are in
 * flight or unread. The results of closed channels make room last.
 */
static inline __u32 slot_take(struct ibchan_cq *cq, __u32 state)
{
	__u32 index = list_take(cq, &cq->free);

	if (index == SLOT_NONE)
		index = slot_fresh(cq);
	if (index == SLOT_NONE)
		index = list_take(cq, &cq->stale_first);
	if (index == SLOT_NONE)
		return index;
	cq->slots[index].state = state;
	cq->slots[index].generation++;
	if (state == SLOT_KEPT)
		cq->kept++;
	return index;
}

/* The kernel may name a work by it that is another cq's. */
static inline __u64 slot_wr_id(const struct ibchan_cq *cq, __u32 index)
{
	return (__u64)cq->object.handle << 32 | index;
}

static inline bool slot_of_wr_id(const struct ibchan_cq *cq, __u64 wr_id,
				 __u32 *index)
{
	*index = (__u32)wr_id;
	return wr_id >> 32 == cq->object.handle && *index < cq->used;
}

/* The slot of a work that nobody has a ticket for. */
static inline void slot_give(struct ibchan_cq *cq, struct slot *slot,
			     __u32 index)
{
	slot->state = SLOT_FREE;
	slot->channel = NULL;
	slot->next = cq->free;
	cq->free = index;
}

static inline void slot_free(struct ibchan_cq *cq, __u32 index)
{
	struct slot *slot = &cq->slots[index];

	if (slot->state == SLOT_KEPT || slot->state == SLOT_DONE)
		cq->kept--;
	slot_give(cq, slot, index);
}

#endif /* _LIBIBCHAN_SLOTS_H */
