// SPDX-License-Identifier: GPL-2.0-only
/*
 * User pages that this module pins itself: plain memory, which is pinned for one work; and on
 * devices whose drivers cannot register user memory for the kernel, all user memory.
 *
 * Not ib_umem: its table covers whole pages, while a key must not reach past the
 * range, and in 6.1 it refuses shared mappings that are read-only. Accounting is the
 * same: pages count in mm->pinned_vm against RLIMIT_MEMLOCK, unless the caller has
 * CAP_IPC_LOCK; and they are taken off the mm that was charged, in whichever process.
 *
 * A driver that pins the pages of a range by itself tells nobody which they are. The module judges
 * them by the mapping, and another thread may replace that between the look and the pin. So the
 * range is watched from before the look until the driver is through (struct ibchan_mapping): if
 * nothing in it was unmapped meanwhile, the driver has pinned pages of the mapping that was looked
 * at. Pages that come, are copied, or are swapped out and in again are still of that mapping.
 */
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "private.h"

/*
 * Refuses what RLIMIT_MEMLOCK cannot allow, with -ENOMEM: before any work is done, as the call that
 * pins asks again and charges; or behind an -ENOMEM, to tell whether that was for the limit.
 */
int ibchan_check_memlock(u64 pages, struct ibchan_reason *reason)
{
	u64 limit = rlimit(RLIMIT_MEMLOCK);
	u64 used = (u64)atomic64_read(&current->mm->pinned_vm) << PAGE_SHIFT;
	u64 needed = pages << PAGE_SHIFT;

	if (used + needed <= limit || capable(CAP_IPC_LOCK))
		return 0;
	return ibchan_refuse_values(reason, IBCHAN_REASON_MEMLOCK, -ENOMEM,
				    (u64[3]) { used, limit, needed });
}

/* How often a page may go between its fault and its pin. */
#define MAX_FAULTS	64

/*
 * A long-term pin that cannot be killed in a fault takes none. Pages that it finds missing are
 * faulted in first, until the caller is killed, and again if they go meanwhile.
 */
static int pin_for_long(u64 start, u64 num, unsigned int flags, struct page **pages)
{
	int ret, tries = MAX_FAULTS;
	long got;

	if (!IBCHAN_PIN_IS_UNKILLABLE)
		return pin_user_pages_fast(start, num, flags | FOLL_LONGTERM, pages);
	do {
		ret = pin_user_pages_fast(start, num, flags | FOLL_LONGTERM | FOLL_NOFAULT, pages);
		if (ret != -EFAULT)
			return ret;
		got = pin_user_pages_unlocked(start, num, pages, flags);
		if (got > 0)
			unpin_user_pages(pages, got);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	} while (got > 0 && --tries);
	return got < 0 ? got : -EFAULT;
}

/* All pages or none. */
static int pin_pages(struct ibchan_pinned *pinned, u64 addr, unsigned int flags)
{
	u64 start = PAGE_ALIGN_DOWN(addr), at;
	u64 done = 0;
	int ret = 0;

	while (done < pinned->num) {
		at = start + (done << PAGE_SHIFT);
		ret = pin_for_long(at, pinned->num - done, flags, &pinned->pages[done]);
		/*
		 * A pin that asks to write by force may meet a mapping that is shared and
		 * read-only: that refuses it, and has no other page that the process could get.
		 */
		if (ret == -EFAULT && flags & FOLL_FORCE)
			ret = pin_for_long(at, 1, 0, &pinned->pages[done]);
		if (ret <= 0)
			break;
		done += ret;
		cond_resched();
	}
	if (done == pinned->num)
		return 0;
	unpin_user_pages(pinned->pages, done);
	if (fatal_signal_pending(current))
		return -EINTR;
	return ret ?: -EFAULT;
}

/*
 * Later kernels refuse to pin for long, and for writing, what a file system writes back. The
 * file system may not expect to hear that such a page is dirty. And the thread that tells it
 * waits for the page's lock, for as long as the server of the file likes.
 */
static int check_stored(const struct ibchan_pinned *pinned)
{
	struct page **page, **end = pinned->pages + pinned->num;
	struct folio *folio;

	for (page = pinned->pages; page < end; page++) {
		folio = page_folio(*page);
		/* A page that has just left its file is not stored. */
		if (!folio_test_swapbacked(folio) && !folio_test_anon(folio) &&
		    !folio_test_hugetlb(folio) && READ_ONCE(folio->mapping))
			return -EFAULT;
	}
	return 0;
}

static int charge_and_pin(struct ibchan_pinned *pinned, u64 addr, unsigned int flags,
			  struct ibchan_reason *reason)
{
	atomic64_t *account = &current->mm->pinned_vm;
	int ret;

	if (atomic64_add_return(pinned->num, account) > rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT &&
	    !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pinned->num, account);
		return ibchan_check_memlock(pinned->num, reason) ?: -ENOMEM;
	}
	ret = pin_pages(pinned, addr, flags);
	if (!ret && IBCHAN_PIN_TAKES_FILES && flags == FOLL_WRITE) {
		ret = check_stored(pinned);
		if (ret)
			unpin_user_pages(pinned->pages, pinned->num);
	}
	if (ret)
		atomic64_sub(pinned->num, account);
	return ret;
}

/*
 * Pins a range of the caller's memory, and may wait for as long as a page fault may. @flags:
 * FOLL_WRITE: the device is going to write; FOLL_WRITE | FOLL_FORCE: it only reads, but later than
 * the process may write: then the page must not be one that a write replaces, like that of zeros
 * (6.1 sees to that for writers alone); 0: it only reads, and what is there now. -EFAULT for
 * memory that is not there, or not writable, or that a file system would have to write back;
 * -ENOMEM, also for RLIMIT_MEMLOCK, which @reason tells; -EINTR when the caller is killed. On an
 * error @pinned is all zero.
 */
int ibchan_pin(struct ibchan_pinned *pinned, const struct ibchan_user_range *range,
	       unsigned int flags, struct ibchan_reason *reason)
{
	int ret;

	pinned->num = ibchan_pages_spanned(range->addr, range->length);
	pinned->pages = kvmalloc_array(pinned->num, sizeof(*pinned->pages), GFP_KERNEL_ACCOUNT);
	ret = pinned->pages ? charge_and_pin(pinned, range->addr, flags, reason) : -ENOMEM;
	if (ret) {
		kvfree(pinned->pages);
		*pinned = (struct ibchan_pinned) {};
		return ret;
	}
	pinned->mm = current->mm;
	mmgrab(pinned->mm);
	return 0;
}

/* @pinned may never have been pinned. @dirty: the device may have written. */
void ibchan_unpin(struct ibchan_pinned *pinned, bool dirty)
{
	if (!pinned->mm)
		return;
	unpin_user_pages_dirty_lock(pinned->pages, pinned->num, dirty);
	atomic64_sub(pinned->num, &pinned->mm->pinned_vm);
	mmdrop(pinned->mm);
	kvfree(pinned->pages);
	*pinned = (struct ibchan_pinned) {};
}

#ifdef IBCHAN_WATCHES_MAPPINGS

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

/* The counterpart of ibchan_mapping_begin(). Process context, may sleep. */
void ibchan_mapping_end(struct ibchan_mapping *mapping)
{
	mmu_interval_notifier_remove(&mapping->notifier);
}

#endif
