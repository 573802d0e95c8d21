/* SPDX-License-Identifier: GPL-2.0-only */
/* User pages that the module pins, and how the device is told of them. */
#ifndef IBCHAN_PIN_H
#define IBCHAN_PIN_H

#include <linux/list.h>
#include <linux/types.h>

#include "budget.h"
#include "only.h"

struct ib_mr;
struct ibchan_mapping;
struct ibchan_reason;
struct mm_struct;

/**
 * struct ibchan_pooled - a fast-registration region of a domain's pool, see pool.c
 * @ib: invalidated; NULL while a region of ours (struct ibchan_mr) has it
 * @cost: of kernel memory, while it is idle
 * @link: in the pool, while it is idle
 */
struct ibchan_pooled {
	__verbs_only struct ib_mr *ib;
	__verbs_only struct ibchan_cost cost;
	__verbs_only struct list_head link;
};

/**
 * struct ibchan_pinned - user pages that we have pinned
 * @pages: the list of them
 * @num: how many
 * @mm: that is charged for them; its memory is kept; NULL: they are not pinned
 */
struct ibchan_pinned {
	__verbs_only struct page **pages;
	__verbs_only u64 num;
	__verbs_only struct mm_struct *mm;
};

/**
 * struct ibchan_user_range - a range of user memory to register
 * @addr: of the first byte
 * @length: bytes
 * @access: IBCHAN_ACCESS_*
 * @mapping: of the range, which must not change while a driver registers it; NULL: it may
 * @max_segments: if it has more, the device is to know it as one; 0: in any case
 * @transient: for one work only
 */
struct ibchan_user_range {
	u64 addr;
	u64 length;
	u32 access;
	u32 max_segments;
	int transient;
	const struct ibchan_mapping *mapping;
};

/* pin.c */
int ibchan_refuse_memory(u64 pages, struct ibchan_reason *reason);
int ibchan_check_memlock(u64 pages, struct ibchan_reason *reason);
int ibchan_pin(struct ibchan_pinned *pinned, const struct ibchan_user_range *range,
	       unsigned int flags, struct ibchan_reason *reason);
void ibchan_unpin(struct ibchan_pinned *pinned, bool dirty);

#endif /* IBCHAN_PIN_H */
