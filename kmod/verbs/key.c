// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys that a peer has invalidated. A message may end a key of the domain that its channel is in,
 * and the receive tells which (IB_WC_WITH_INVALIDATE). The device takes no more requests on that
 * region, neither of peers nor of ours, so its domain knows its regions by their keys, and posts
 * on such a region are refused.
 *
 * A key that is no region's of the domain is of none that the channel could name: only
 * soft-RoCE, which does not look at domains, lets a peer end one.
 */
#include <linux/rbtree.h>

#include "verbs.h"

#define to_mr(rb_node)	rb_entry(rb_node, struct ibchan_mr, key_node)

static int compare_key(const void *key, const struct rb_node *node)
{
	u32 wanted = *(const u32 *)key, there = to_mr(node)->device_key;

	return wanted < there ? -1 : wanted > there;
}

static bool is_less(struct rb_node *a, const struct rb_node *b)
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
	rb_add(&mr->key_node, &pd->keys, is_less);
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
	node = rb_find(&key, &pd->keys, compare_key);
	if (node)
		WRITE_ONCE(to_mr(node)->extent.allows, 0);
	spin_unlock_bh(&pd->keys_lock);
}
