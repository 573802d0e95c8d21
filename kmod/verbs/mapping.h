/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a range stays mapped to the same memory: see mapping.c. */
#ifndef IBCHAN_MAPPING_H
#define IBCHAN_MAPPING_H

#include <linux/errno.h>
#include <linux/mmu_notifier.h>
#include <linux/types.h>

#include "compat.h"
#include "only.h"

#if IBCHAN_PIN_TAKES_FILES && IS_ENABLED(CONFIG_MMU_NOTIFIER)

/* A range of the caller's addresses that is watched */
struct ibchan_mapping {
	__verbs_only struct mmu_interval_notifier notifier;	/* of the range */
	/* part of it has been unmapped, or mapped to other memory */
	__verbs_only int changed;
};

int ibchan_mapping_begin(struct ibchan_mapping *mapping, u64 addr, u64 length);
bool ibchan_mapping_has_changed(const struct ibchan_mapping *mapping);
void ibchan_mapping_end(struct ibchan_mapping *mapping);

#else /* No driver pins a page of a file for writing, or none is asked to. */

struct ibchan_mapping {
};

static inline int ibchan_mapping_begin(struct ibchan_mapping *mapping, u64 addr, u64 length)
{
	return 0;
}

static inline bool ibchan_mapping_has_changed(const struct ibchan_mapping *mapping)
{
	return false;
}

static inline void ibchan_mapping_end(struct ibchan_mapping *mapping)
{
}

#endif

#endif /* IBCHAN_MAPPING_H */
