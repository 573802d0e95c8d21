/* SPDX-License-Identifier: GPL-2.0-only */
/* User pages that the module pins, and the trays that plain memory is laid out in. */
#ifndef IBCHAN_PIN_H
#define IBCHAN_PIN_H

#include <linux/list.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

#include "budget.h"

struct ib_mr;
struct ibchan_pd;
struct ibchan_reason;
struct mm_struct;

/* How far a tray is right for the pages that it held last; each includes the ones before. */
enum ibchan_tray_state {
	IBCHAN_TRAY_EMPTY,	/* nothing */
	IBCHAN_TRAY_FILLED,	/* the table */
	IBCHAN_TRAY_MAPPED,	/* the device's addresses in it */
	IBCHAN_TRAY_LISTED,	/* the device's region */
};

/**
 * struct ibchan_tray - what pages of plain memory are laid out in, see tray.c
 * @pd: where
 * @ib: invalidated region with room for all; NULL until one was needed, and while
 *	the region that the tray is with has it; guarded by the gate
 * @link: in one of the domain's lists
 * @room: pages
 * @cost: of kernel memory
 * @nents: entries of @sgl that are in use
 * @state: see there
 * @addr: of the range that it held last
 * @length: of that range
 * @pages: filled by the call that pins; becomes @last when a table was made of it
 * @last: what @sgl was made of
 * @sgl: the table
 *
 * All but @pd, @link, @room and @cost belong to the region that the tray is with.
 */
struct ibchan_tray {
	struct ibchan_pd *pd;
	struct ib_mr *ib;
	struct list_head link;
	u32 room;
	struct ibchan_cost cost;
	u32 nents;
	enum ibchan_tray_state state;
	u64 addr;
	u64 length;
	struct page **pages;
	struct page **last;
	struct scatterlist *sgl;
};

/**
 * struct ibchan_pinned - user pages that we have pinned
 * @pages: room for them
 * @num: how many
 * @tray: that @pages is part of; NULL: it was allocated
 * @mm: that is charged for them; its memory is kept; NULL: they are not pinned
 */
struct ibchan_pinned {
	struct page **pages;
	u64 num;
	struct ibchan_tray *tray;
	struct mm_struct *mm;
};

/**
 * struct ibchan_user_range - what a region of pinned pages is for
 * @addr: of the first byte
 * @length: bytes
 * @access: IBCHAN_ACCESS_*
 * @max_pieces: if it has more, the device is to know it as one; 0: in any case
 * @transient: for one work only
 */
struct ibchan_user_range {
	u64 addr;
	u64 length;
	u32 access;
	u32 max_pieces;
	int transient;
};

/* tray.c */
int ibchan_tray_get(struct ibchan_pinned *pinned, struct ibchan_pd *pd,
		    const struct ibchan_user_range *range, struct ibchan_reason *reason);
void ibchan_tray_put(struct ibchan_pinned *pinned);
void ibchan_tray_fill(const struct ibchan_pinned *pinned, const struct ibchan_user_range *range,
		      struct sg_table *sgt);
void ibchan_trays_end_regions(struct ibchan_pd *pd);
void ibchan_trays_free(struct ibchan_pd *pd);

/* pin.c */
int ibchan_refuse_memory(u64 pages, struct ibchan_reason *reason);
int ibchan_check_memlock(u64 pages, struct ibchan_reason *reason);
int ibchan_pin(struct ibchan_pinned *pinned, u64 addr, unsigned int flags,
	       struct ibchan_reason *reason);
void ibchan_unpin(struct ibchan_pinned *pinned, bool dirty);

#endif /* IBCHAN_PIN_H */
