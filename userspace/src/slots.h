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
	return wr_id - slot_wr_id(cq, 0) < cq->used;
}

/* The slot of a work without a ticket. */
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

static inline const struct ibchan_cqe *ring_entry(const struct ibchan_cq *cq,
						  __u32 head)
{
	const struct ring_map *ring = &cq->ring;
	size_t place = head & (ring->entries - 1);

	return (const struct ibchan_cqe *)(ring->cqes +
					   place * ring->entry_size);
}

static inline void fill(struct ibchan_completion *completion,
			const struct slot *slot, const struct ibchan_cqe *cqe)
{
	completion->wr_id = slot->wr_id;
	completion->channel = slot->channel;
	completion->error = -(int)cqe->error;
	completion->status = cqe->status;
	completion->opcode = cqe->opcode;
	completion->flags = cqe->flags;
	completion->bytes = cqe->bytes;
	completion->imm = cqe->imm;
	completion->vendor_err = cqe->vendor_err;
	completion->reserved = 0;
}

/*
 * Nearly all entries are of works that callers poll for, and wanted. Fills up to @n
 * completions with leading entries of that kind; returns how many.
 */
static forced_inline __u32
read_plain(struct ibchan_cq *cq, __u32 tail,
	   struct ibchan_completion *completion, __u32 n)
{
	struct slot *const slots = cq->slots;
	const __u32 head = cq->head;
	__u32 left = min(n, tail - head);
	__u32 free = cq->free;
	__u32 at, end = head + left;

	for (at = head; at != end; at++, completion++) {
		const struct ibchan_cqe *cqe = ring_entry(cq, at);
		struct slot *slot;
		__u32 index;

		if (!slot_of_wr_id(cq, cqe->wr_id, &index))
			break;
		slot = &slots[index];
		if (slot->state != SLOT_POSTED || cqe->flags & IBCHAN_CQE_SILENT)
			break;
		fill(completion, slot, cqe);
		slot->state = SLOT_FREE;
		slot->channel = NULL;
		slot->next = free;
		free = index;
	}
	cq->head = at;
	cq->free = free;
	return at - head;
}

/* The entries were copied: let the kernel write over them. */
static inline void ring_release(struct ibchan_cq *cq)
{
	__atomic_store_n(cq->ring.head, cq->head, __ATOMIC_RELEASE);
}

/*
 * Fills up to @n completions, the ones set aside first. Returns how many, or -EPROTO for
 * an entry that answers no post of ours.
 */
static forced_inline int
ring_take(struct ibchan_cq *cq, struct ibchan_completion *completions, __u32 n)
{
	__u32 tail, got;

	if (unlikely(cq->aside_first != SLOT_NONE || cq->event_raised))
		return ring_take_any(cq, completions, n, 0);
	tail = ring_tail(cq);
	got = read_plain(cq, tail, completions, n);
	if (unlikely(got != n && cq->head != tail))
		return ring_take_any(cq, completions, n, got);
	ring_release(cq);
	return (int)got;
}

/*
 * Nearly always the oldest entry is that of the ticket's own work. Returns whether
 * @completion was filled; that takes the ticket back.
 */
static inline bool ticket_read(const struct ticket *ticket,
			       struct ibchan_completion *completion)
{
	struct ibchan_cq *cq = ticket->cq;
	struct slot *slot = &cq->slots[ticket->index];
	const struct ibchan_cqe *cqe;

	if (slot->generation != ticket->generation || slot->state != SLOT_KEPT ||
	    !cq->ring.base || cq->head == ring_tail(cq))
		return false;
	cqe = ring_entry(cq, cq->head);
	if (cqe->wr_id != slot_wr_id(cq, ticket->index) ||
	    cqe->flags & IBCHAN_CQE_SILENT)
		return false;
	fill(completion, slot, cqe);
	cq->kept--;
	slot_give(cq, slot, ticket->index);
	cq->head++;
	ring_release(cq);
	return true;
}

/*
 * Unlocks behind a look with a ticket. The holder of the last ticket of a closed cq
 * ends that cq.
 */
static inline void ticket_unlock(struct ibchan_cq *cq)
{
	const bool is_last = unlikely(cq->closed) && !cq->kept;

	if (unlikely(is_last))
		unlock_last(cq);
	else
		lock_give(&cq->lock);
}

#endif /* _LIBIBCHAN_SLOTS_H */
