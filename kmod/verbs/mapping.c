// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a range of addresses stays mapped to the same memory.
 *
 * A driver pins the pages of a range by itself and tells nobody which they are. The module judges
 * them by the mapping, and another thread may replace that between the look and the pin.
 * So the range is watched from before the look until the driver is through: if nothing in it was
 * unmapped meanwhile, the driver has pinned pages of the mapping that was looked at. Pages that
 * come, are copied, or are swapped out and in again are still of that mapping.
 */
#include <linux/mmu_notifier.h>
#include <linux/sched.h>

#include "mapping.h"
#include "verbs.h"

#if IBCHAN_PIN_TAKES_FILES && IS_ENABLED(CONFIG_MMU_NOTIFIER)

/* The map's lock is held for writing, so this comes before what is mapped next. */
static bool range_changes(struct mmu_interval_notifier *notifier,
			  const struct mmu_notifier_range *range, unsigned long seq)
{
	struct ibchan_mapping *mapping = container_of(notifier, struct ibchan_mapping, notifier);

	mmu_interval_set_seq(notifier, seq);
	if (range->event == MMU_NOTIFY_UNMAP)
		WRITE_ONCE(mapping->changed, 1);
	return true;
}

static const struct mmu_interval_notifier_ops mapping_ops = {
	.invalidate = range_changes,
};

/*
 * The first time in a process the kernel takes all locks of its memory map. -ERESTARTNOINTR for a
 * signal: nothing has happened, and the caller makes the call again.
 */
int ibchan_mapping_begin(struct ibchan_mapping *mapping, u64 addr, u64 length)
{
	int ret;

	mapping->changed = 0;
	ret = mmu_interval_notifier_insert(&mapping->notifier, current->mm, addr, length,
					   &mapping_ops);
	if (ret)
		return ret == -EINTR ? -ERESTARTNOINTR : ret;
	/* The notifier is not told of an unmapping that has begun already. */
	mmu_interval_read_begin(&mapping->notifier);
	return 0;
}

/* A page that is mapped only after the first look is no change. */
bool ibchan_mapping_has_changed(const struct ibchan_mapping *mapping)
{
	return READ_ONCE(mapping->changed);
}

/* The counterpart of ibchan_mapping_begin(). Process context, may sleep. */
void ibchan_mapping_end(struct ibchan_mapping *mapping)
{
	mmu_interval_notifier_remove(&mapping->notifier);
}

#endif
