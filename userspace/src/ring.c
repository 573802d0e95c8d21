// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The ring that the kernel writes completions into, and the slots: which work each completion
 * is of.
 *
 * The kernel sees a slot's index in the wr_id. Reading an entry therefore finds
 * its work without a search, and so does a ticket, whatever else has completed.
 * Whichever thread reads the ring, a kept work's result lies in its slot until its owner
 * fetches it.
 *
 * All functions but the mapping ones need cq->lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "slots.h"

static bool inside(__u64 offset, __u64 bytes, size_t size)
{
	return offset <= size && bytes <= size - offset;
}

static bool ring_fits(const struct ibchan_ring *layout, size_t size)
{
	return layout->abi_version >= IBCHAN_ABI_VERSION &&
	       layout->entries &&
	       !(layout->entries & (layout->entries - 1)) &&
	       layout->entry_size >= sizeof(struct ibchan_cqe) &&
	       layout->entry_size % sizeof(__u64) == 0 &&
	       layout->tail_offset % sizeof(__u32) == 0 &&
	       layout->head_offset % sizeof(__u32) == 0 &&
	       layout->entries_offset % sizeof(__u64) == 0 &&
	       inside(layout->tail_offset, sizeof(__u32), size) &&
	       inside(layout->head_offset, sizeof(__u32), size) &&
	       inside(layout->entries_offset,
		      (__u64)layout->entries * layout->entry_size, size);
}

/* Maps the ring behind cq->fd. */
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
	layout = (const struct ibchan_ring *)base;
	if (!ring_fits(layout, size)) {
		munmap(base, size);
		return -EPROTO;
	}
	ring->base = base;
	ring->size = size;
	ring->entries = layout->entries;
	ring->entry_size = layout->entry_size;
	ring->cqes = base + layout->entries_offset;
	ring->tail = (const __u32 *)(base + layout->tail_offset);
	ring->head = (__u32 *)(base + layout->head_offset);
	cq->head = *ring->head;
	return 0;
}

void ring_unmap(struct ibchan_cq *cq)
{
	munmap(cq->ring.base, cq->ring.size);
	cq->ring.base = NULL;
}

/* Room for one slot for each entry of the mapped ring; none has been used. */
int slots_alloc(struct ibchan_cq *cq)
{
	/* At most 2 MiB: a ring has 32 Ki entries. */
	cq->slots = malloc((size_t)cq->ring.entries * sizeof(*cq->slots));
	if (!cq->slots)
		return -ENOMEM;
	cq->used = 0;
	cq->free = SLOT_NONE;
	cq->aside_first = SLOT_NONE;
	cq->aside_last = SLOT_NONE;
	cq->stale_first = SLOT_NONE;
	cq->stale_last = SLOT_NONE;
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

/* Two lists go through slot->next, oldest first: set aside, and stale. */
static void list_add(struct ibchan_cq *cq, __u32 *first, __u32 *last,
		     __u32 index)
{
	cq->slots[index].next = SLOT_NONE;
	if (*first == SLOT_NONE)
		*first = index;
	else
		cq->slots[*last].next = index;
	*last = index;
}

static void make_stale(struct ibchan_cq *cq, __u32 index)
{
	cq->slots[index].state = SLOT_STALE;
	list_add(cq, &cq->stale_first, &cq->stale_last, index);
}

/*
 * A closed channel's completions must not name it any more. Their slots may be
 * used again, except while the kernel may still speak of them.
 */
void slots_orphan(struct ibchan_cq *cq, const struct ibchan_channel *channel)
{
	__u32 i;

	for (i = 0; i < cq->used; i++) {
		struct slot *slot = &cq->slots[i];

		if (slot->channel != channel)
			continue;
		slot->channel = NULL;
		if (slot->state == SLOT_DONE)
			make_stale(cq, i);
	}
}

static void complete(struct ibchan_cq *cq, __u32 index,
		     const struct ibchan_cqe *cqe,
		     struct ibchan_completion *completion)
{
	fill(completion, &cq->slots[index], cqe);
	slot_free(cq, index);
}

static void set_aside(struct ibchan_cq *cq, __u32 index,
		      const struct ibchan_cqe *cqe)
{
	struct slot *slot = &cq->slots[index];

	slot->cqe = *cqe;
	if (slot->state == SLOT_KEPT) {
		slot->state = SLOT_DONE;
		if (!slot->channel)
			make_stale(cq, index);
		return;
	}
	slot->state = SLOT_ASIDE;
	list_add(cq, &cq->aside_first, &cq->aside_last, index);
}

static void take_aside(struct ibchan_cq *cq,
		       struct ibchan_completion *completion)
{
	__u32 index = list_take(cq, &cq->aside_first);

	complete(cq, index, &cq->slots[index].cqe, completion);
}

/*
 * The result of a kept work. Returns 1; 0 while it is in flight; -ESTALE if its
 * channel was closed and another work has the slot, or if the ring went away with
 * the work in flight. Any answer but 0 takes the ticket back: it is not asked again.
 */
int ticket_fetch(const struct ticket *ticket,
		 struct ibchan_completion *completion)
{
	struct ibchan_cq *cq = ticket->cq;
	struct slot *slot = &cq->slots[ticket->index];

	if (slot->generation != ticket->generation) {
		cq->kept--;
		return -ESTALE;
	}
	switch (slot->state) {
	case SLOT_KEPT:
		if (cq->ring.base)
			return 0;
		slot_free(cq, ticket->index);
		return -ESTALE;
	case SLOT_DONE:
		complete(cq, ticket->index, &slot->cqe, completion);
		return 1;
	case SLOT_STALE:
		fill(completion, slot, &slot->cqe);
		cq->kept--;
		return 1;
	default:
		return -ESTALE;
	}
}

/*
 * Gives the ticket back: from here on the completion goes to any poll.
 * Returns 1 if it was there already; then it went to @completion.
 */
int ticket_leave(const struct ticket *ticket,
		 struct ibchan_completion *completion)
{
	int ret = ticket_fetch(ticket, completion);

	if (ret)
		return ret;
	ticket->cq->slots[ticket->index].state = SLOT_POSTED;
	ticket->cq->kept--;
	return 0;
}

static bool is_expected(const struct ibchan_cq *cq, __u64 wr_id, __u32 *index)
{
	return slot_of_wr_id(cq, wr_id, index) &&
	       (cq->slots[*index].state == SLOT_POSTED ||
		cq->slots[*index].state == SLOT_KEPT);
}

/*
 * Looks at the oldest entry. That of a kept work goes into its slot, a silent one
 * nowhere; another goes to @completion, or is set aside if that is NULL. Returns 1
 * if @completion was filled, or -EPROTO for an entry that answers no post of ours.
 */
static int ring_read(struct ibchan_cq *cq, struct ibchan_completion *completion)
{
	const struct ibchan_cqe *cqe = ring_entry(cq, cq->head);
	__u32 index;

	if (!is_expected(cq, cqe->wr_id, &index))
		return -EPROTO;
	cq->head++;
	if (cqe->flags & IBCHAN_CQE_SILENT) {
		slot_free(cq, index);
	} else if (!completion || cq->slots[index].state == SLOT_KEPT) {
		set_aside(cq, index, cqe);
	} else {
		complete(cq, index, cqe, completion);
		return 1;
	}
	return 0;
}

/* As ring_take(), with whatever may lie there; the first @got are filled. */
int ring_take_any(struct ibchan_cq *cq, struct ibchan_completion *completions,
		  __u32 n, __u32 got)
{
	__u32 tail = ring_tail(cq);
	int ret = 0;

	while (got < n && cq->aside_first != SLOT_NONE)
		take_aside(cq, &completions[got++]);
	for (;;) {
		got += read_plain(cq, tail, &completions[got], n - got);
		if (got == n || ret < 0 || cq->head == tail)
			break;
		ret = ring_read(cq, &completions[got]);
		if (ret > 0)
			got++;
	}
	ring_release(cq);
	event_update(cq);
	return got || ret > 0 ? (int)got : ret;
}

/*
 * Gives back the places of unsignaled works that have ended in silence, up to the first entry
 * that a caller has to see. Returns whether there were some.
 */
bool ring_skip_silent(struct ibchan_cq *cq)
{
	__u32 head = cq->head;
	__u32 tail;

	if (!cq->ring.base)
		return false;
	tail = ring_tail(cq);
	while (cq->head != tail && ring_entry(cq, cq->head)->flags & IBCHAN_CQE_SILENT &&
	       !ring_read(cq, NULL))
		;
	ring_release(cq);
	return cq->head != head;
}

/* Empties the ring: tickets get theirs, the rest is kept for ring_take(). */
int ring_set_aside(struct ibchan_cq *cq)
{
	__u32 tail;
	int ret = 0;

	if (!cq->ring.base)
		return 0;
	tail = ring_tail(cq);
	while (ret >= 0 && cq->head != tail)
		ret = ring_read(cq, NULL);
	ring_release(cq);
	event_update(cq);
	return ret;
}
