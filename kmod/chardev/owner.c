// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends a context with the process that opened it, even while others hold the file.
 *
 * No other process may post on the context or take what came. So a file that a child has
 * inherited, or that was sent to another process, must keep neither the peers waiting nor
 * memory pinned. A process counts as gone when its memory map goes: at the end of its last
 * thread, after a kill, and at execve().
 *
 * Each context watches a page of the map, and is told of the map's end as of any other change
 * there. The first watch in a process takes all locks of its map, and with them those of files
 * that others map, too; later ones take none, whatever has become of the first one. A notifier of
 * the whole map would take them again for each file that is opened when no other one is open.
 *
 * The first object of a context begins the watch. Opening the file does not: that takes the map's
 * lock, and the kernel opens misc devices under a mutex of all of them, so other processes would
 * wait, too. The kernel tells of the end where it may not sleep for long, so a worker ends the
 * context.
 */
#include <linux/err.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>

#include "context.h"

/* Some ends wait for devices, so it is no queue of the system's own. */
static struct workqueue_struct *owner_wq;

#if IS_ENABLED(CONFIG_MMU_NOTIFIER)

static bool map_changes(struct mmu_interval_notifier *notifier,
			const struct mmu_notifier_range *range, unsigned long seq)
{
	struct ibchan_context *ctx = container_of(notifier, struct ibchan_context, notifier);

	mmu_interval_set_seq(notifier, seq);
	if (range->event == MMU_NOTIFY_RELEASE)
		queue_work(owner_wq, &ctx->orphan_work);
	return true;
}

static const struct mmu_interval_notifier_ops owner_ops = {
	.invalidate = map_changes,
};

/*
 * From now on the context ends with its process, which is the caller. Returns -ENOMEM; -EINTR
 * when the caller is killed; -ERESTARTNOINTR for a signal: nothing has happened, and the call
 * is to be made again.
 */
int ibchan_owner_follow(struct ibchan_context *ctx)
{
	int ret = 0;

	if (likely(smp_load_acquire(&ctx->followed))) /* pairs with the release below */
		return 0;
	if (mmap_write_lock_killable(ctx->mm))
		return -EINTR;
	/* Nothing is mapped at the first page, or it rarely changes. */
	if (!ctx->followed)
		ret = mmu_interval_notifier_insert_locked(&ctx->notifier, ctx->mm, 0, PAGE_SIZE,
							  &owner_ops);
	if (!ret)
		smp_store_release(&ctx->followed, 1); /* for the look without the lock */
	mmap_write_unlock(ctx->mm);
	/* The kernel looks at signals between two mappings; nothing has been done then. */
	return ret == -EINTR ? -ERESTARTNOINTR : ret;
}

/* Ends the watch for the last user of the context, and waits for an end that is under way. */
void ibchan_owner_leave(struct ibchan_context *ctx)
{
	if (!ctx->followed)
		return;
	mmu_interval_notifier_remove(&ctx->notifier);
	cancel_work_sync(&ctx->orphan_work);
}

#else /* Without notifiers a context ends with its file. */

int ibchan_owner_follow(struct ibchan_context *ctx)
{
	return 0;
}

void ibchan_owner_leave(struct ibchan_context *ctx)
{
}

#endif /* CONFIG_MMU_NOTIFIER */

int ibchan_owner_init(void)
{
	owner_wq = alloc_workqueue("ibchan_owner", WQ_UNBOUND, 0);
	return owner_wq ? 0 : -ENOMEM;
}

/* No file is open. */
void ibchan_owner_fini(void)
{
	destroy_workqueue(owner_wq);
}
