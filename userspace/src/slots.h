/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The steps of each post and each completion. Those on the ring and on slots need cq->lock, but
 * ring_tail() and slot_wr_id(); see ring.c.
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
 * For a kept work. SLOT_NONE if there are as many of them as the ring has entries. The results of
 * closed channels make room last.
 */
static inline __u32 slot_take(struct ibchan_cq *cq)
{
	__u32 index = list_take(cq, &cq->free);

	if (index == SLOT_NONE)
		index = slot_fresh(cq);
	if (index == SLOT_NONE)
		index = list_take(cq, &cq->stale_first);
	if (index == SLOT_NONE)
		return index;
	cq->slots[index].state = SLOT_KEPT;
	cq->slots[index].generation++;
	cq->kept++;
	return index;
}

/* A tag has zeros where an index has its bits. */
static inline __u64 slot_wr_id(const struct ibchan_cq *cq, __u32 index)
{
	return cq->tag | index;
}

/* The slot that the kernel knows by that number, or NULL: nearly all numbers are of programs. */
static inline struct slot *slot_of_wr_id(const struct ibchan_cq *cq, __u64 wr_id)
{
	const __u64 index = wr_id - cq->tag;

	return likely(index >= cq->used) ? NULL : &cq->slots[index];
}

static inline void slot_free(struct ibchan_cq *cq, struct slot *slot)
{
	if (slot->state == SLOT_KEPT || slot->state == SLOT_DONE)
		cq->kept--;
	slot->state = SLOT_FREE;
	slot->channel = NULL;
	slot->next = cq->free;
	cq->free = (__u32)(slot - cq->slots);
}

static inline struct ibchan_cqe *ring_entry(const struct ibchan_cq *cq, __u32 at)
{
	const struct ring_map *ring = &cq->ring;
	size_t place = at & (ring->entries - 1);

	return (struct ibchan_cqe *)(ring->cqes + place * ring->entry_size);
}

/* Nobody is shown it: the kernel says so, or whoever took it out of the middle. */
static inline bool is_silent(const struct ibchan_cqe *cqe)
{
	return cqe->flags & IBCHAN_CQE_SILENT;
}

/* The entries before @head were taken. */
static inline void ring_advance(struct ibchan_cq *cq, __u32 head)
{
	cq->head = head;
	if ((__s32)(head - cq->sorted) > 0)
		cq->sorted = head;
}

/* The entries were copied: let the kernel write over them. */
static inline void ring_release(struct ibchan_cq *cq)
{
	__atomic_store_n(cq->ring.head, cq->head, __ATOMIC_RELEASE);
}

/*
 * Fills up to @n completions; returns how many. With @tail, that becomes where to wait for more
 * from. Nearly all entries are of works that callers poll for, and wanted.
 */
static forced_inline __u32 cq_take(struct ibchan_cq *cq, struct ibchan_cqe *completion, __u32 n,
				   __u32 *tail)
{
	__u32 at, end, got, last;

	lock_take(&cq->lock);
	last = ring_tail(cq);
	end = cq->head + min(n, last - cq->head);
	for (at = cq->head; at != end; at++, completion++) {
		const struct ibchan_cqe *cqe = ring_entry(cq, at);

		if (unlikely(is_silent(cqe) || slot_of_wr_id(cq, cqe->wr_id)))
			break;
		*completion = *cqe;
	}
	got = at - cq->head;
	ring_advance(cq, at);
	if (unlikely(at != last))
		got = ring_take_any(cq, completion, n, got);
	else
		ring_release(cq);
	if (tail)
		*tail = cq->head;
	lock_give(&cq->lock);
	return got;
}

/*
 * Nearly always the oldest entry is that of the ticket's own work. Returns whether @completion was
 * filled; that takes the ticket back.
 */
static forced_inline bool ticket_read(struct ibchan_cq *cq, const struct ticket *ticket,
				      struct ibchan_cqe *completion)
{
	const __u32 index = ticket->index, head = cq->head;
	const struct ibchan_cqe *cqe;
	struct slot *slot;

	if (!cq->ring.base || head == ring_tail(cq))
		return false;
	slot = &cq->slots[index];
	cqe = ring_entry(cq, head);
	if (slot->generation != ticket->generation || slot->state != SLOT_KEPT ||
	    cqe->wr_id != slot_wr_id(cq, index))
		return false;
	slot_free(cq, slot);
	ring_advance(cq, head + 1);
	*completion = *cqe;
	completion->wr_id = slot->wr_id;
	ring_release(cq);
	return true;
}

/* Behind a look with a ticket. The holder of the last ticket of a closed cq ends that cq. */
static inline void ticket_unlock(struct ibchan_cq *cq)
{
	if (unlikely(cq->closed) && !cq->kept)
		unlock_last(cq);
	else
		lock_give(&cq->lock);
}

/* Where a request of a channel completes. */
static inline struct ibchan_cq *completes_on(const struct ibchan_channel *channel,
					     const struct ibchan_submit_wr *wr)
{
	return wr->opcode == IBCHAN_OP_RECV ? channel->recv_cq : channel->send_cq;
}

/* All of @cmd but what the post fills in, and the reason, which is there behind an error. */
static inline void await_nothing(struct ibchan_cmd_submit *cmd)
{
	cmd->flags = 0;
	cmd->cq = 0;
	cmd->min_complete = 0;
	cmd->timeout_ns = 0;
	cmd->out_ready = 0;
	cmd->tail = 0;
}

#endif /* _LIBIBCHAN_SLOTS_H */
