/* SPDX-License-Identifier: GPL-2.0-only */
/* User pages that the module pins, or whose mapping it watches, see pin.c. */
#ifndef IBCHAN_PIN_H
#define IBCHAN_PIN_H

#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/types.h>

#include "budget.h"
#include "compat.h"
#include "only.h"

struct ibchan_reason;
struct mm_struct;

/* User pages that we have pinned */
struct ibchan_pinned {
	__verbs_only struct page **pages;	/* the list of them */
	__verbs_only u64 num;	/* how many */
	/* that is charged for them; its memory is kept; NULL: they are not pinned */
	__verbs_only struct mm_struct *mm;
};

/* A range of user memory to register. */
struct ibchan_user_range {
	u64 addr;	/* of the first byte */
	u64 length;	/* bytes */
	u32 access;	/* IBCHAN_ACCESS_* */
	u32 max_segments; /* if it has more, the device is to know it as one; 0: in any case */
	int transient;	/* for one work only */
	/* of the range, which must not change while a driver registers it; NULL: it may */
	const struct ibchan_mapping *mapping;
};

/* No driver pins a page of a file for writing elsewhere, or none is asked to. */
#if IBCHAN_PIN_TAKES_FILES && IS_ENABLED(CONFIG_MMU_NOTIFIER)
#define IBCHAN_WATCHES_MAPPINGS
#endif

/* A range of the caller's addresses that is watched */
struct ibchan_mapping {
#ifdef IBCHAN_WATCHES_MAPPINGS
	__verbs_only struct mmu_interval_notifier notifier;	/* of the range */
#endif
	__verbs_only int changed;	/* part of it was unmapped, or mapped to other memory */
};

#ifdef IBCHAN_WATCHES_MAPPINGS
int ibchan_mapping_begin(struct ibchan_mapping *mapping, u64 addr, u64 length);
void ibchan_mapping_end(struct ibchan_mapping *mapping);
#else
static inline int ibchan_mapping_begin(struct ibchan_mapping *mapping, u64 addr, u64 length)
{
	*mapping = (struct ibchan_mapping) {};
	return 0;
}

static inline void ibchan_mapping_end(struct ibchan_mapping *mapping)
{
}
#endif

int ibchan_check_memlock(u64 pages, struct ibchan_reason *reason);
int ibchan_pin(struct ibchan_pinned *pinned, const struct ibchan_user_range *range,
	       unsigned int flags, struct ibchan_reason *reason);
void ibchan_unpin(struct ibchan_pinned *pinned, bool dirty);

#endif /* IBCHAN_PIN_H */
