// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The ring that the kernel writes completions into, and the slots of kept works: those of blocking
 * calls and pending works, which the kernel knows by the number of their slot.
 *
 * A poll copies entries. The completion of a kept work goes to its slot, whichever thread meets it,
 * and stays there until its owner fetches it. All others stay in the ring until a poll takes them,
 * so that a caller that never polls is refused new works by the kernel. An entry that is taken out
 * of the middle of the ring is marked silent, as those are that the kernel shows nobody: the place
 * is free when the entries before it are taken, or when ring_make_room() moves them up.
 *
 * All functions need cq->lock, but ring_map() and cq_orphan().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slots.h"

static bool inside(__u64 offset, __u64 bytes, size_t size)
{
	return offset <= size && bytes <= size - offset;
}

static bool ring_fits(const struct ibchan_ring *layout, size_t size)
{
	return layout->abi_version >= IBCHAN_ABI_VERSION &&
	       layout->entries && !(layout->entries & (layout->entries - 1)) &&
	       layout->entry_size >= sizeof(struct ibchan_cqe) &&
	       layout->entry_size % sizeof(__u64) == 0 &&
	       layout->tail_offset % sizeof(__u32) == 0 &&
	       layout->head_offset % sizeof(__u32) == 0 &&
	       layout->entries_offset % sizeof(__u64) == 0 &&
	       inside(layout->tail_offset, sizeof(__u32), size) &&
	       inside(layout->head_offset, sizeof(__u32), size) &&
	       inside(layout->entries_offset, (__u64)layout->entries * layout->entry_size, size);
}

/* The bits of a slot's number: a ring has 32 Ki entries. */
#define INDEX_BITS	16

/*
 * Maps the ring behind cq->fd, and makes room for a slot for each of its entries. On an error the
 * caller lets the cq go, and with it what is there.
 */
int ring_map(struct ibchan_cq *cq, size_t size)
{
	struct ring_map *ring = &cq->ring;
	const struct ibchan_ring *layout;
	unsigned char *base;

	if (size < sizeof(*layout))
		return -EPROTO;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, cq->fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	ring->base = base;
	ring->size = size;
	layout = (const struct ibchan_ring *)base;
	if (!ring_fits(layout, size))
		return -EPROTO;
	ring->entries = layout->entries;
	ring->entry_size = layout->entry_size;
	ring->cqes = base + layout->entries_offset;
	ring->tail = (const __u32 *)(base + layout->tail_offset);
	ring->head = (__u32 *)(base + layout->head_offset);
	/* At most 3 MiB, of which no page is touched before it is used. */
	cq->slots = malloc((size_t)ring->entries * sizeof(*cq->slots));
	if (!cq->slots)
		return -ENOMEM;
	cq->head = *ring->head;
	cq->sorted = cq->head;
	cq->free = SLOT_NONE;
	cq->stale_first = SLOT_NONE;
	cq->stale_last = SLOT_NONE;
	/*
	 * A program that takes its wr_ids from anywhere but here meets one of a slot's once in
	 * 2^48. Each queue of a context has another tag.
	 */
	cq->tag = (cq->object.context->seed ^ cq->object.handle * 0x9e3779b97f4a7c15ULL)
		  << INDEX_BITS;
	return 0;
}

/* The next one that has never been used, or SLOT_NONE. */
__u32 slot_fresh(struct ibchan_cq *cq)
{
	if (cq->used == cq->ring.entries)
		return SLOT_NONE;
	memset(&cq->slots[cq->used], 0, sizeof(*cq->slots));
	return cq->used++;
}

/* The oldest is the first one that is used again. */
static void make_stale(struct ibchan_cq *cq, struct slot *slot)
{
	const __u32 index = (__u32)(slot - cq->slots);

	slot->state = SLOT_STALE;
	slot->next = SLOT_NONE;
	if (cq->stale_first == SLOT_NONE)
		cq->stale_first = index;
	else
		cq->slots[cq->stale_last].next = index;
	cq->stale_last = index;
}

/*
 * All works of the channel, which is closed, are in the ring. The slots of its results may be used
 * again, except while the kernel may still speak of them.
 */
void cq_orphan(struct ibchan_cq *cq, const struct ibchan_channel *channel)
{
	__u32 i;

	lock_take(&cq->lock);
	ring_sort(cq);
	for (i = 0; i < cq->used; i++) {
		struct slot *slot = &cq->slots[i];

		if (slot->channel != channel)
			continue;
		slot->channel = NULL;
		if (slot->state == SLOT_DONE)
			make_stale(cq, slot);
	}
	lock_give(&cq->lock);
}

/*
 * The result of a kept work. Returns 1; 0 while it is in flight; -ESTALE if its channel was closed
 * and another work has the slot, or if the ring went away with the work in flight. Any answer but
 * 0 takes the ticket back: it is not asked again.
 */
int ticket_fetch(const struct ticket *ticket, struct ibchan_cqe *completion)
{
	struct ibchan_cq *cq = ticket->cq;
	struct slot *slot = &cq->slots[ticket->index];

	if (slot->generation != ticket->generation) {
		cq->kept--;
		return -ESTALE;
	}
	if (slot->state == SLOT_KEPT) {
		if (cq->ring.base)
			return 0;
		slot_free(cq, slot);
		return -ESTALE;
	}
	if (slot->state != SLOT_DONE && slot->state != SLOT_STALE)
		return -ESTALE;
	*completion = slot->cqe;
	completion->wr_id = slot->wr_id;
	/* A stale one is in the list of those. */
	if (slot->state == SLOT_STALE)
		cq->kept--;
	else
		slot_free(cq, slot);
	return 1;
}

/*
 * Gives the ticket back: from here on the completion goes to any poll.
 * Returns 1 if it was there already; then it went to @completion.
 */
int ticket_leave(const struct ticket *ticket, struct ibchan_cqe *completion)
{
	int ret = ticket_fetch(ticket, completion);

	if (ret)
		return ret;
	ticket->cq->slots[ticket->index].state = SLOT_LEFT;
	ticket->cq->kept--;
	return 0;
}

/*
 * Whether an entry is of a kept work: then it goes to the slot. One of a work that was left becomes
 * that of any other.
 */
static bool is_kept(struct ibchan_cq *cq, struct ibchan_cqe *cqe)
{
	struct slot *slot = slot_of_wr_id(cq, cqe->wr_id);

	if (!slot)
		return false;
	if (slot->state == SLOT_LEFT) {
		cqe->wr_id = slot->wr_id;
		slot_free(cq, slot);
	}
	if (slot->state != SLOT_KEPT)
		return false;
	slot->cqe = *cqe;
	slot->state = SLOT_DONE;
	if (!slot->channel)
		make_stale(cq, slot);
	return true;
}

/* As ring_take(), with whatever may lie there; @got are filled. */
__u32 ring_take_any(struct ibchan_cq *cq, struct ibchan_cqe *completion, __u32 n, __u32 got)
{
	const __u32 tail = ring_tail(cq);
	__u32 at;

	for (at = cq->head; at != tail; at++) {
		struct ibchan_cqe *cqe = ring_entry(cq, at);

		if (is_silent(cqe) || is_kept(cq, cqe))
			continue;
		if (got == n)
			break;
		*completion++ = *cqe;
		got++;
	}
	ring_advance(cq, at);
	ring_release(cq);
	return got;
}

/* Tickets get what is theirs, the rest stays for polls. */
void ring_sort(struct ibchan_cq *cq)
{
	__u32 tail;

	if (!cq->ring.base)
		return;
	for (tail = ring_tail(cq); cq->sorted != tail; cq->sorted++) {
		struct ibchan_cqe *cqe = ring_entry(cq, cq->sorted);

		if (!is_silent(cqe) && is_kept(cq, cqe))
			cqe->flags |= IBCHAN_CQE_SILENT;
	}
	while (cq->head != cq->sorted && is_silent(ring_entry(cq, cq->head)))
		cq->head++;
	ring_release(cq);
}

/* Gives back the places of all entries that nobody is shown: the others move up, in their order. */
void ring_make_room(struct ibchan_cq *cq)
{
	__u32 from, to;

	if (!cq->ring.base)
		return;
	ring_sort(cq);
	for (from = to = cq->sorted; from != cq->head;) {
		const struct ibchan_cqe *cqe = ring_entry(cq, --from);

		if (!is_silent(cqe) && --to != from)
			*ring_entry(cq, to) = *cqe;
	}
	cq->head = to;
	ring_release(cq);
}
