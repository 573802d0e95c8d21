// SPDX-License-Identifier: GPL-2.0-only
/*
 * A context ends with the process that opened it, even while others hold the file.
 *
 * No other process may post on the context or take what came. So a file that a child has
 * inherited, or that was sent to another process, must keep neither the peers waiting nor
 * memory pinned. A process counts as gone when its memory map goes: at the end of its last
 * thread, after a kill, and at execve().
 *
 * One notifier serves all contexts of a process. The first object of a context sets it up.
 * Opening the file does not: that takes the map's lock, and the kernel opens misc devices
 * under a mutex of all of them, so other processes would wait, too. The kernel calls the
 * notifier where it may not sleep for long, so the notifier only queues work for the contexts
 * of the process; a worker ends them.
 *
 * ibchan_owner.lock is innermost.
 */
#include <linux/err.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "context.h"

/* Some ends wait for devices, so it is no queue of the system's own. */
static struct workqueue_struct *owner_wq;

#if IS_ENABLED(CONFIG_MMU_NOTIFIER)

/**
 * struct ibchan_owner - a process with contexts
 * @notifier: tells of its end
 * @lock: guards @contexts
 * @contexts: of the process, as far as they have objects
 */
struct ibchan_owner {
	struct mmu_notifier notifier;
	spinlock_t lock;		/* contexts */
	struct list_head contexts;
};

static struct ibchan_owner *owner_of(struct mmu_notifier *notifier)
{
	return container_of(notifier, struct ibchan_owner, notifier);
}

static void owner_ended(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct ibchan_owner *owner = owner_of(notifier);
	struct ibchan_context *ctx;

	spin_lock(&owner->lock);
	list_for_each_entry(ctx, &owner->contexts, owned)
		queue_work(owner_wq, &ctx->orphan_work);
	spin_unlock(&owner->lock);
}

static struct mmu_notifier *owner_alloc(struct mm_struct *mm)
{
	struct ibchan_owner *owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);

	if (!owner)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&owner->lock);
	INIT_LIST_HEAD(&owner->contexts);
	return &owner->notifier;
}

static void owner_free(struct mmu_notifier *notifier)
{
	kfree(owner_of(notifier));
}

static const struct mmu_notifier_ops owner_ops = {
	.release = owner_ended,
	.alloc_notifier = owner_alloc,
	.free_notifier = owner_free,
};

/* Under the map's lock, so that one of several threads does it. */
static int follow(struct ibchan_context *ctx)
{
	struct mmu_notifier *notifier = mmu_notifier_get_locked(&owner_ops, ctx->mm);
	struct ibchan_owner *owner;

	if (IS_ERR(notifier))
		return PTR_ERR(notifier);
	owner = owner_of(notifier);
	spin_lock(&owner->lock);
	list_add(&ctx->owned, &owner->contexts);
	spin_unlock(&owner->lock);
	/* Pairs with the look without the lock. */
	smp_store_release(&ctx->owner, owner);
	return 0;
}

/**
 * ibchan_owner_follow - from now on the context ends with its process
 * @ctx: the context; the caller is its process
 *
 * Return: 0, also when it does so already; -ENOMEM; -EINTR when the caller is killed;
 * -ERESTARTNOINTR for a signal: nothing has happened, and the call is to be made again.
 */
int ibchan_owner_follow(struct ibchan_context *ctx)
{
	int ret;

	if (likely(smp_load_acquire(&ctx->owner))) /* see follow() */
		return 0;
	if (mmap_write_lock_killable(ctx->mm))
		return -EINTR;
	ret = ctx->owner ? 0 : follow(ctx);
	mmap_write_unlock(ctx->mm);
	/* The kernel looks at signals between two mappings; nothing has been done then. */
	return ret == -EINTR ? -ERESTARTNOINTR : ret;
}

/**
 * ibchan_owner_leave - the context ends by itself
 * @ctx: the context; the caller is its last user
 *
 * Context: process, may sleep: it waits for an end that is under way.
 */
void ibchan_owner_leave(struct ibchan_context *ctx)
{
	struct ibchan_owner *owner = ctx->owner;

	if (!owner)
		return;
	spin_lock(&owner->lock);
	list_del(&ctx->owned);
	spin_unlock(&owner->lock);
	cancel_work_sync(&ctx->orphan_work);
	mmu_notifier_put(&owner->notifier);
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

/*
 * No file is open, no region is left. Notifiers that were put are freed a little later, by
 * code of this module.
 */
void ibchan_owner_fini(void)
{
	mmu_notifier_synchronize();
	destroy_workqueue(owner_wq);
}
