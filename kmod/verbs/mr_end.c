// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a memory region: the only place that deregisters.
 *
 * A region's users are its owner, each element of a work in flight, and a channel that has it
 * parked. The owner's ibchan_mr_try_dereg() is refused while works use the region; ibchan_mr_put()
 * leaves it to the last work then. Works end in softirq context, where nothing may be unpinned, so
 * the last work hands the region to its domain's worker.
 */
#include <linux/errno.h>
#include <linux/llist.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "private.h"

/*
 * Also of one that no region of ours has. The gate is held, or the caller is a guest. False: the
 * device keeps it, and with it the domain, and we count that.
 */
bool ibchan_mr_end_region(struct ibchan_pd *pd, struct ib_mr *ib)
{
	int ret = ibchan_fault(IBCHAN_FAULT_MR_DEREG);
	unsigned int tries = 0;

	if (!ret)
		do {
			ret = ib_dereg_mr(ib);
		} while (ibchan_device_insist(pd->dev, ret, &tries));
	if (!ret)
		return true;
	pd->leaked = 1;
	ibchan_gauge(leaked, 1);
	return false;
}

/* Inside the gate, or it is closed. Done once. Returns whether the driver has let go of it. */
bool ibchan_mr_release_verbs(struct ibchan_mr *mr)
{
	struct ib_mr *ib;
	bool gone;

	if (mr->released)
		return true;
	mr->released = 1;
	ib = xchg(&mr->ib, NULL);
	gone = !ib || ibchan_mr_end_region(mr->extent.pd, ib);
	/* Where the device may still use it, it stays mapped. */
	if (gone)
		ibchan_mr_unmap_table(mr);
	else
		mr->leaked = 1;
	ibchan_gauge(mrs_registered, -1);
	ibchan_gauge(mr_pages, -(s64)mr->pages);
	return gone;
}

static void mr_dereg(struct ibchan_mr *mr)
{
	struct ibchan_device *dev = mr->extent.pd->dev;
	bool invalid, gone;

	guard(ibchan_noio)();
	/* Hardware may take it for an error to invalidate a key twice. */
	invalid = mr->invalidate && (ibchan_mr_is_invalidated(mr) || mr->invalidate(mr));
	ibchan_fault_rest(IBCHAN_WINDOW_UNUSED);
	ibchan_device_enter_to_end(dev);
	scoped_guard(mutex, &dev->lock)
		list_del(&mr->link);
	ibchan_key_unlist(mr);
	if (invalid && !mr->parked)
		ibchan_pool_put(mr);
	gone = ibchan_mr_release_verbs(mr);
	ibchan_device_exit(dev);
	/* May wait for a page or an exporter, hence without the gate. */
	if (!mr->leaked)
		ibchan_unpin(&mr->pinned, mr->extent.access & IBCHAN_ACCESS_LOCAL_WRITE);
	if (!mr->leaked && mr->backing)
		mr->backing->release(mr->backing);
	if (gone)
		ibchan_pd_put(mr->extent.pd);
}

/* It has ended. Memory that the device may still use is its owner's no more. */
static void tell_and_free(struct ibchan_mr *mr)
{
	if (mr->gone && !mr->leaked)
		mr->gone(mr->gone_priv);
	kvfree(mr->segments);
	if (!mr->leaked)
		ibchan_cost_pay_back(&mr->cost);
	kfree_rcu(mr, rcu);
}

/*
 * Ends the given up regions of one domain. Each domain has workers of its own, so a region
 * that takes long holds up no other domain. A region keeps its domain until it is
 * deregistered, and the domain's end waits for these workers.
 */
void ibchan_mrs_release(struct work_struct *work)
{
	struct ibchan_release *release = container_of(work, struct ibchan_release, work);
	struct llist_node *list = llist_reverse_order(llist_del_all(&release->given_up));
	struct ibchan_mr *mr, *next;

	llist_for_each_entry_safe(mr, next, list, free_link) {
		mr_dereg(mr);
		tell_and_free(mr);
		/* Pairs with ibchan_pd_settle(): the domain is rid of it. */
		smp_store_release(&release->num_released, release->num_released + 1);
		/* wake_up_var() looks for waiters without a lock: the store comes first. */
		smp_mb();
		wake_up_var(&release->num_released);
	}
}

/*
 * The last work is done with the region, which its owner has given up. The caller that finds
 * the list empty queues the worker; until that has run the region keeps the domain. Pages of a
 * user may have to be locked to be unpinned, and an exporter may allocate: such regions have a
 * worker that has no rescuer to hold up. Any context.
 */
void ibchan_mr_last_drop(struct ibchan_mr *mr)
{
	struct ibchan_release *release = &mr->extent.pd->release[mr->foreign];

	atomic_inc(&release->num_given_up);
	if (llist_add(&mr->free_link, &release->given_up))
		queue_work(mr->foreign ? ibchan_slow_wq : ibchan_free_wq, &release->work);
}

/*
 * A work of a channel uses the region: it stays until the channel has let go of it. Any context
 * but NMI.
 */
void ibchan_mr_park(struct ibchan_mr *mr, struct llist_head *parked)
{
	if (xchg(&mr->parked, 1))
		return;
	WARN_ON_ONCE(!ibchan_users_get(&mr->users));
	llist_add(&mr->free_link, parked);
}

/* The queue pair of the channel is destroyed. */
void ibchan_mr_unpark(struct llist_head *parked)
{
	struct llist_node *list = llist_del_all(parked);
	struct ibchan_mr *mr, *next;

	guard(rcu)();
	llist_for_each_entry_safe(mr, next, list, free_link)
		ibchan_mr_drop(mr);
}

/**
 * ibchan_mr_try_dereg - deregister, unless works use the region
 * @mr: the region
 *
 * On success the pages are unpinned and the region is an empty shell: no post
 * takes it, and only ibchan_mr_put() may still be called.
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY, with nothing changed, while a work uses the region.
 */
int ibchan_mr_try_dereg(struct ibchan_mr *mr)
{
	might_sleep();
	if (!ibchan_users_put_if_one(&mr->users))
		return -EBUSY;
	mr_dereg(mr);
	WRITE_ONCE(mr->shell, 1);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_try_dereg, IBCHAN_NS);

/**
 * ibchan_mr_put - the owner is done with the region
 * @mr: the region, or the shell that ibchan_mr_try_dereg() left
 * @gone: called once when neither the device nor a peer can reach the memory any more, so that it
 *	may be freed; NULL: the caller knows that no work uses the region, or has no need to hear
 * @priv: for @gone
 *
 * A region that no work uses is deregistered, and @gone called, before this returns. Else it is
 * when the last of its works has completed, by a worker that ends other regions of the domain
 * behind it: there @gone should not wait for long, and not for the end of the domain or of
 * regions. Until then peers that have the key reach the memory, which must stay. Where the driver
 * does not let go of the region @gone is not called: its memory never is free again.
 *
 * Where the works have ended, ibchan_pd_settle() waits for the worker and for @gone. The memory of
 * @mr itself stays readable for one RCU grace period more. A region that has ended has no owner any
 * more: a caller that gives it back again is told in the log, and nothing happens.
 *
 * Context: process, may sleep.
 */
void ibchan_mr_put(struct ibchan_mr *mr, void (*gone)(void *priv), void *priv)
{
	bool is_shell = xchg(&mr->shell, 0);

	might_sleep();
	if (!is_shell && !ibchan_users_count(&mr->users)) {
		pr_warn_once("ibchan: a region that has ended is given back, at %pS\n",
			     __builtin_return_address(0));
		return;
	}
	mr->gone = gone;
	mr->gone_priv = priv;
	if (!is_shell) {
		scoped_guard(rcu) {
			if (!ibchan_users_put(&mr->users))
				return;
		}
		mr_dereg(mr);
	}
	tell_and_free(mr);
}
EXPORT_SYMBOL_NS_GPL(ibchan_mr_put, IBCHAN_NS);

/*
 * Gives back a region that a driver has registered while another thread replaced the mapping.
 *
 * Any pages may be pinned then, also some of a file whose server never answers. The driver
 * locks such a page to unpin it, and a writer that waits for the server holds that lock. So a
 * worker does this, as a guest of the device: the worker holds nothing that others need, only
 * removal waits for it, and the process that has registered can be killed. The region stays
 * charged, and keeps its domain, until the driver has let go of it.
 */

/* A registration that is taken back */
struct ibchan_undo {
	struct work_struct work;	/* does that */
	struct ibchan_guest guest;	/* in the gate's list */
	struct ibchan_mr *mr;	/* never published */
};

static void undo_work(struct work_struct *work)
{
	struct ibchan_undo *undo = container_of(work, struct ibchan_undo, work);
	struct ibchan_pd *pd = undo->mr->extent.pd;

	ibchan_mr_discard(undo->mr);
	ibchan_gate_dismiss(pd->dev, &undo->guest);
	ibchan_pd_unkeep(pd);
	kfree(undo);
}

/*
 * The worker takes a registration back, of a call that is no guest any more. The caller has the
 * domain from its owner.
 */
void ibchan_mr_undo(struct ibchan_mr *mr, struct ibchan_guest *guest)
{
	struct ibchan_undo *undo = kmalloc(sizeof(*undo), GFP_KERNEL | __GFP_NOFAIL);

	undo->mr = mr;
	ibchan_gate_hand_over(mr->extent.pd->dev, guest, &undo->guest);
	refcount_inc(&mr->extent.pd->keepers);
	INIT_WORK(&undo->work, undo_work);
	queue_work(ibchan_undo_wq, &undo->work);
}
