// SPDX-License-Identifier: GPL-2.0-only
/*
 * Protection domains: memory and channels meet only inside one.
 *
 * Keys that a peer has invalidated: a message may end a key of the domain that its channel is in,
 * and the receive tells which (IB_WC_WITH_INVALIDATE). The device takes no more requests on that
 * region, neither of peers nor of ours, so its domain knows its regions by their keys, and posts
 * on such a region are refused. A key that is no region's of the domain is of none that the channel
 * could name: only soft-RoCE, which does not look at domains, lets a peer end one.
 */
#include <linux/errno.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "private.h"

/**
 * ibchan_pd_alloc - make a protection domain
 * @dev: where
 *
 * Context: process, may sleep.
 * Return: the domain, for ibchan_pd_free(); -ENODEV when the device is gone;
 * -ENOMEM; the driver's errno.
 */
struct ibchan_pd *ibchan_pd_alloc(struct ibchan_device *dev)
{
	struct ibchan_pd *pd;
	struct ib_pd *ib;

	CLASS(ibchan_command, inside)(dev);
	if (!inside)
		return ERR_PTR(-ENODEV);
	pd = kzalloc(sizeof(*pd), GFP_KERNEL_ACCOUNT);
	if (!pd)
		return ERR_PTR(-ENOMEM);
	ib = ibchan_fault_ptr(IBCHAN_FAULT_PD_ALLOC) ?: ib_alloc_pd(dev->ib, 0);
	if (IS_ERR(ib)) {
		kfree(pd);
		return ERR_CAST(ib);
	}
	pd->ib = ib;
	pd->dev = dev;
	ibchan_device_hold(dev);
	refcount_set(&pd->users, 1);
	refcount_set(&pd->keepers, 1);
	mutex_init(&pd->service_lock);
	spin_lock_init(&pd->pool_lock);
	spin_lock_init(&pd->keys_lock);
	pd->keys = RB_ROOT;
	INIT_WORK(&pd->release[0].work, ibchan_mrs_release);
	INIT_WORK(&pd->release[1].work, ibchan_mrs_release);
	scoped_guard(mutex, &dev->lock)
		list_add_tail(&pd->link, &dev->pds);
	ibchan_gauge(pds, 1);
	return pd;
}
EXPORT_SYMBOL_NS_GPL(ibchan_pd_alloc, IBCHAN_NS);

/* Before the domain is published. The user pays for what is made in it as well. */
int ibchan_pd_charge_to(struct ibchan_pd *pd, struct ibchan_budget *budget)
{
	return ibchan_cost_charge(&pd->cost, budget, IBCHAN_FOOTPRINT_PD, NULL);
}

/*
 * For an object that is made in a domain: its maker holds the domain. The counterpart is
 * ibchan_pd_put(); the owner's own reference goes last, in ibchan_pd_free().
 */
void ibchan_pd_hold(struct ibchan_pd *pd)
{
	refcount_inc(&pd->users);
}

/**
 * ibchan_pd_tryget - keep a domain for a while
 * @pd: the domain; RCU or its owner keeps its memory
 *
 * Until ibchan_pd_put() the domain is one that something is in.
 *
 * Context: any.
 * Return: false when the domain is being given back.
 */
bool ibchan_pd_tryget(struct ibchan_pd *pd)
{
	return refcount_inc_not_zero(&pd->users);
}
EXPORT_SYMBOL_NS_GPL(ibchan_pd_tryget, IBCHAN_NS);

/**
 * ibchan_pd_put - the counterpart of ibchan_pd_tryget()
 * @pd: the domain
 *
 * Context: any.
 */
void ibchan_pd_put(struct ibchan_pd *pd)
{
	refcount_dec(&pd->users);
}
EXPORT_SYMBOL_NS_GPL(ibchan_pd_put, IBCHAN_NS);

static int settle(struct ibchan_release *release)
{
	int num = atomic_read(&release->num_given_up);

	return wait_var_event_killable(&release->num_released,
				       /* Pairs with the release in ibchan_mrs_release(). */
				       smp_load_acquire(&release->num_released) - num >= 0) ?
	       -EINTR : 0;
}

/**
 * ibchan_pd_settle - wait for the regions of a domain that were given up while works used them
 * @pd: the domain
 *
 * When it returns, each region that no work used any more at the time of the call is
 * deregistered and unpinned. It waits for nothing in another domain.
 *
 * Context: process, may sleep; not from a callback.
 * Return: 0; -EINTR when the caller is killed.
 */
int ibchan_pd_settle(struct ibchan_pd *pd)
{
	return settle(&pd->release[0]) ?: settle(&pd->release[1]);
}
EXPORT_SYMBOL_NS_GPL(ibchan_pd_settle, IBCHAN_NS);

/**
 * ibchan_pd_flush - as ibchan_pd_settle(), at the end of a context, which cannot give up
 * @pd: the domain
 *
 * Context: process, may sleep; not from a callback.
 */
void ibchan_pd_flush(struct ibchan_pd *pd)
{
	flush_work(&pd->release[0].work);
	flush_work(&pd->release[1].work);
}
EXPORT_SYMBOL_NS_GPL(ibchan_pd_flush, IBCHAN_NS);

#define to_mr(rb_node)	rb_entry(rb_node, struct ibchan_mr, key_node)

static bool key_is_less(struct rb_node *a, const struct rb_node *b)
{
	return to_mr(a)->device_key < to_mr(b)->device_key;
}

/* Before @mr is published. A region that the domain's own key serves needs no place in the list. */
void ibchan_key_list(struct ibchan_mr *mr)
{
	struct ibchan_pd *pd = mr->extent.pd;

	/* Some drivers tell no remote key of a region that peers may not reach. */
	if (mr->ib)
		mr->device_key = mr->ib->rkey ?: mr->ib->lkey;
	if (!mr->device_key)
		return;
	spin_lock_bh(&pd->keys_lock);
	rb_add(&mr->key_node, &pd->keys, key_is_less);
	spin_unlock_bh(&pd->keys_lock);
}

void ibchan_key_unlist(struct ibchan_mr *mr)
{
	struct ibchan_pd *pd = mr->extent.pd;

	if (!mr->device_key)
		return;
	spin_lock_bh(&pd->keys_lock);
	rb_erase(&mr->key_node, &pd->keys);
	spin_unlock_bh(&pd->keys_lock);
}

/* A message on a channel of @pd has ended @key. Context: any with interrupts on. */
void ibchan_key_invalidated(struct ibchan_pd *pd, u32 key)
{
	struct rb_node *node;

	spin_lock_bh(&pd->keys_lock);
	node = pd->keys.rb_node;
	while (node && to_mr(node)->device_key != key)
		node = key < to_mr(node)->device_key ? node->rb_left : node->rb_right;
	if (node)
		WRITE_ONCE(to_mr(node)->extent.allows, 0);
	spin_unlock_bh(&pd->keys_lock);
}

/* Inside the gate, or it is closed. */
void ibchan_pd_release_verbs(struct ibchan_pd *pd)
{
	unsigned int tries = 0;
	struct ib_pd *ib;
	int ret;

	ibchan_pool_end(pd);
	ib = xchg(&pd->ib, NULL);
	if (!ib || pd->leaked)
		return;
	do {
		ret = ib_dealloc_pd_user(ib, NULL);
	} while (ibchan_device_insist(pd->dev, ret, &tries));
	if (ret)
		ibchan_gauge(leaked, 1);
}

/*
 * The owner, or a registration that was being taken back, is done with the domain, which goes with
 * the last of them. Process context, may sleep; without the gate.
 */
void ibchan_pd_unkeep(struct ibchan_pd *pd)
{
	struct ibchan_device *dev = pd->dev;

	if (!refcount_dec_and_test(&pd->keepers))
		return;
	guard(ibchan_noio)();
	/* The work may have just released the last region. */
	ibchan_pd_flush(pd);
	/* Where that stays, so does all that it needs. */
	if (pd->service && !pd->service_end(pd->service))
		return;
	ibchan_device_enter_to_end(dev);
	scoped_guard(mutex, &dev->lock)
		list_del(&pd->link);
	ibchan_pd_release_verbs(pd);
	ibchan_device_exit(dev);
	ibchan_cost_pay_back(&pd->cost);
	kfree_rcu(pd, rcu);
	ibchan_gauge(pds, -1);
	ibchan_device_put(dev);
}

/**
 * ibchan_pd_free - give a protection domain back
 * @pd: the domain
 *
 * Its memory stays readable for one RCU grace period more.
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY, with nothing changed, while a region or a channel is in it.
 */
int ibchan_pd_free(struct ibchan_pd *pd)
{
	might_sleep();
	if (!refcount_dec_if_one(&pd->users))
		return -EBUSY;
	ibchan_pd_unkeep(pd);
	return 0;
}
EXPORT_SYMBOL_NS_GPL(ibchan_pd_free, IBCHAN_NS);
