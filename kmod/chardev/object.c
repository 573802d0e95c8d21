// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handles of a file, and the commands that hold the objects behind them.
 *
 * A handle is reserved first, and reads as none; the command builds the object
 * and answers the caller; only then is the handle published, and nothing fails
 * after that. The dispatcher undoes what is reserved when a command fails.
 *
 * A command holds the objects that it works on. A command that ends an object, or gives it
 * away, claims it first.
 */
#include <linux/errno.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "context.h"

unsigned int ibchan_max_handles = 16384;
module_param_named(max_handles, ibchan_max_handles, uint, 0644);
MODULE_PARM_DESC(max_handles, "Objects that one open file may hold (default 16384)");

/*
 * Makes a handle of @type, which goes into the answer and names nothing until it is published; the
 * dispatcher aborts it if the command fails. Ids go round, so that a stale handle misses. Each call
 * takes the index that the call before has reserved, and reserves the next one: this neighbour
 * keeps the nodes of the tree that the object is in, also when no other object is near. For an
 * object on @device (or NULL) the caller's cgroup is charged. Returns -EMFILE, -ENOMEM, and the
 * errors of ibchan_owner_follow() and ibchan_device_charge().
 */
int ibchan_call_reserve(struct ibchan_call *call, enum ibchan_object_type type, __u32 *handle,
			struct ibchan_object *device, struct ibchan_reason *reason)
{
	struct ibchan_context *ctx = call->ctx;
	struct ibchan_object *object;
	u32 index;
	int ret = ibchan_owner_follow(ctx);

	if (ret)
		return ret;
	scoped_guard(spinlock, &ctx->lock) {
		if (ctx->num_objects >= READ_ONCE(ibchan_max_handles))
			return -EMFILE;
		ctx->num_objects++;
	}
	object = kzalloc(sizeof(*object), GFP_KERNEL_ACCOUNT);
	do
		ret = !object ? -ENOMEM :
		      xa_alloc_cyclic(&ctx->objects, &index, NULL, XA_LIMIT(1, INT_MAX),
				      &ctx->next_id, GFP_KERNEL_ACCOUNT);
	while (ret >= 0 && !(index = xchg(&ctx->spare_index, index)));
	if (ret < 0) {
		kfree(object);
		guard(spinlock)(&ctx->lock);
		ctx->num_objects--;
		return ret;
	}
	object->type = type;
	object->ctx = ctx;
	object->id = ctx->first_handle + index;
	INIT_LIST_HEAD(&object->event_link);
	call->new = object;
	*handle = object->id;
	return device ? ibchan_device_charge(device->device, IBCHAN_CHARGE_OBJECT, &object->charge,
					     reason) : 0;
}

/* Publishing cannot fail: the slot is there already. Others may end the object from then on. */
void ibchan_object_publish(struct ibchan_context *ctx, struct ibchan_object *object)
{
	u32 index = ibchan_object_index(ctx, object->id);

	rcu_read_lock();
	spin_lock(&ctx->lock);
	if (object->type == OBJECT_MR)
		ctx->pinned_bytes += ibchan_mr_pages(object->mr) << PAGE_SHIFT;
	xa_store(&ctx->objects, index, object, 0);
	if (object->type == OBJECT_PD)
		xa_set_mark(&ctx->objects, index, IBCHAN_PD_MARK);
	rcu_assign_pointer(*ibchan_object_place(ctx, object->id), object);
	spin_unlock(&ctx->lock);
	/*
	 * Pairs with ibchan_context_break(), which sets @broken and then breaks all published
	 * channels: it breaks this one, or @broken is seen here.
	 */
	smp_mb();
	if (READ_ONCE(ctx->broken) && object->type == OBJECT_CHANNEL)
		ibchan_channel_break(object->channel, -EPROTO);
	rcu_read_unlock();
}

/* @parent cannot be destroyed as long as @child exists. */
void ibchan_object_adopt(struct ibchan_object *child, struct ibchan_object *parent)
{
	guard(spinlock)(&parent->ctx->lock);
	child->parent = parent;
	parent->children++;
}

/*
 * Whether a command may hold an object as one of @type; -1: of any. 0, or why not. A request
 * that is being answered is busy and not gone: an answer that fails leaves it as it was.
 */
static int object_check(const struct ibchan_object *object, int type)
{
	if (!object || (type >= 0 && object->type != type))
		return -ENOENT;
	if (object->claimed)
		return object->type == OBJECT_REQUEST ? -EBUSY : -ENOENT;
	return 0;
}

/* Looks in the tree, for ibchan_object_find(), where another handle leads to the place. */
struct ibchan_object *ibchan_object_walk(struct ibchan_context *ctx, u32 id)
{
	return xa_load(&ctx->objects, ibchan_object_index(ctx, id));
}

/*
 * Holds an object of @type until the command's body has returned. Returns -ENOENT, and -EBUSY
 * for a request that another command answers.
 */
struct ibchan_object *ibchan_call_find(struct ibchan_call *call, u32 id,
				       enum ibchan_object_type type)
{
	struct ibchan_object *object;
	int ret;

	guard(spinlock)(&call->ctx->lock);
	object = ibchan_object_find(call->ctx, id, type);
	ret = object_check(object, type);
	if (ret)
		return ERR_PTR(ret);
	object->users++;
	call->held[call->num_held++] = object;
	return object;
}

/* A command releases its objects before it touches the caller's memory; then again, for nothing. */
void ibchan_call_release(struct ibchan_call *call)
{
	struct ibchan_context *ctx = call->ctx;
	bool wakes = false;

	if (!call->num_held)
		return;
	spin_lock(&ctx->lock);
	while (call->num_held) {
		struct ibchan_object *object = call->held[--call->num_held];

		object->users--;
		wakes |= object->claimed;
	}
	spin_unlock(&ctx->lock);
	if (wakes)
		wake_up_all(&ctx->idle_wait);
}

static bool is_idle(struct ibchan_context *ctx, const struct ibchan_object *object)
{
	guard(spinlock)(&ctx->lock);
	return !object->users;
}

/* Commands may hold the object again. */
void ibchan_object_unclaim(struct ibchan_context *ctx, struct ibchan_object *object)
{
	guard(spinlock)(&ctx->lock);
	object->claimed = 0;
}

/*
 * Claims an object of @type (negative: of any) for the caller. The caller ends the object or calls
 * ibchan_object_unclaim(). Commands that hold a channel, which end soon once it is broken, or a
 * listener are waited for. Returns -ENOENT; -EBUSY while another object or a command needs it;
 * -EINTR when the caller is killed.
 */
struct ibchan_object *ibchan_object_claim(struct ibchan_context *ctx, u32 id, int type)
{
	struct ibchan_object *object;
	bool held = false;
	int ret;

	scoped_guard(spinlock, &ctx->lock) {
		object = xa_load(&ctx->objects, ibchan_object_index(ctx, id));
		ret = object_check(object, type);
		if (ret)
			return ERR_PTR(ret);
		held = object->users;
		if (object->children || (held && object->type != OBJECT_CHANNEL &&
					 object->type != OBJECT_LISTENER))
			return ERR_PTR(-EBUSY);
		object->claimed = 1;
	}
	if (!held)
		return object;
	/* No other command begins to hold the object from here on. */
	if (object->type == OBJECT_CHANNEL)
		ibchan_channel_break(object->channel, -ECANCELED);
	if (!wait_event_killable(ctx->idle_wait, is_idle(ctx, object)))
		return object;
	ibchan_object_unclaim(ctx, object);
	return ERR_PTR(-EINTR);
}

/* Takes the handle away: no command finds the object any more, and the caller ends it. */
void ibchan_object_hide(struct ibchan_context *ctx, struct ibchan_object *object)
{
	struct ibchan_object __rcu **place = ibchan_object_place(ctx, object->id);
	bool published;

	spin_lock(&ctx->lock);
	if (rcu_access_pointer(*place) == object)
		RCU_INIT_POINTER(*place, NULL);
	published = xa_erase(&ctx->objects, ibchan_object_index(ctx, object->id));
	if (published && object->type == OBJECT_MR)
		ctx->pinned_bytes -= ibchan_mr_pages(object->mr) << PAGE_SHIFT;
	/* A worker of the context looks at this without the lock. */
	WRITE_ONCE(ctx->num_objects, ctx->num_objects - 1);
	if (object->parent)
		object->parent->children--;
	spin_unlock(&ctx->lock);
	if (wq_has_sleeper(&ctx->idle_wait))
		wake_up_all(&ctx->idle_wait);
}

/* The object has ended: frees the memory that its handle stood for. */
void ibchan_object_free(struct ibchan_object *object)
{
	ibchan_device_uncharge(&object->charge);
	kfree_rcu(object, rcu);
}

/* Takes the handle of an object away that is gone, or belongs to another owner now. */
void ibchan_object_forget(struct ibchan_context *ctx, struct ibchan_object *object)
{
	ibchan_object_hide(ctx, object);
	ibchan_object_free(object);
}
