// SPDX-License-Identifier: GPL-2.0-only
/*
 * One open file: its handles, and how they end.
 *
 * A handle is reserved first, and reads as none; the command builds the object
 * and answers the caller; only then is the handle published, and nothing fails
 * after that. The dispatcher undoes what is reserved when a command fails.
 *
 * Closing gives everything up in the order of enum ibchan_object_type: channels
 * end all work, so that nothing is busy behind them. So does the end of the process
 * that opened the file, which owner.c tells of, whoever else holds the file.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ibchan_connect.h>

#include "connect.h"
#include "counters.h"
#include "fault.h"

static unsigned int max_handles = 16384;
module_param(max_handles, uint, 0644);
MODULE_PARM_DESC(max_handles, "Objects that one open file may hold (default 16384)");

u32 ibchan_context_max_objects(void)
{
	return READ_ONCE(max_handles);
}

/**
 * ibchan_object_reserve - a handle without an object
 * @ctx: the context, locked
 * @type: what it will be
 *
 * Ids go round, so that a stale handle misses.
 *
 * Return: the object, to be published or aborted; -EMFILE; -ENOMEM; what
 * ibchan_owner_follow() answers.
 */
struct ibchan_object *ibchan_object_reserve(struct ibchan_context *ctx,
					    enum ibchan_object_type type)
{
	struct ibchan_object *object;
	int ret;

	if (ctx->num_objects >= ibchan_context_max_objects())
		return ERR_PTR(-EMFILE);
	ret = ibchan_owner_follow(ctx);
	if (ret)
		return ERR_PTR(ret);
	object = kzalloc(sizeof(*object), GFP_KERNEL_ACCOUNT);
	if (!object)
		return ERR_PTR(-ENOMEM);
	object->type = type;
	object->ctx = ctx;
	INIT_LIST_HEAD(&object->event_link);
	ret = xa_alloc_cyclic(&ctx->objects, &object->id, NULL,
			      XA_LIMIT(1, INT_MAX), &ctx->next_id, GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		kfree(object);
		return ERR_PTR(ret);
	}
	ctx->num_objects++;
	return object;
}

static void account(struct ibchan_context *ctx, struct ibchan_object *object)
{
	if (object->type == OBJECT_MR)
		ctx->pinned_bytes += ibchan_mr_pages(object->mr) << PAGE_SHIFT;
}

/* Cannot fail: the slot is there already. */
void ibchan_object_publish(struct ibchan_context *ctx, struct ibchan_object *object)
{
	account(ctx, object);
	xa_store(&ctx->objects, object->id, object, GFP_KERNEL_ACCOUNT);
	rcu_assign_pointer(*ibchan_object_place(ctx, object->id), object);
}

/* @parent cannot be destroyed as long as @child exists. */
void ibchan_object_adopt(struct ibchan_object *child, struct ibchan_object *parent)
{
	child->parent = parent;
	parent->children++;
}

/*
 * The slot of the last one that went stays reserved until another one goes: where objects
 * come and go one by one, the table needs no new nodes each time.
 */
static void give_slot(struct ibchan_context *ctx, u32 id)
{
	xa_store(&ctx->objects, id, NULL, 0);
	if (ctx->last_id)
		xa_erase(&ctx->objects, ctx->last_id);
	ctx->last_id = id;
}

/* Nobody finds it any more; what it stands for is the caller's to end. */
static void object_hide(struct ibchan_context *ctx, struct ibchan_object *object)
{
	struct ibchan_object __rcu **place = ibchan_object_place(ctx, object->id);

	if (rcu_access_pointer(*place) == object)
		RCU_INIT_POINTER(*place, NULL);
	give_slot(ctx, object->id);
	ctx->num_objects--;
	if (object->parent)
		object->parent->children--;
}

/* What it stood for has ended. */
static void object_free(struct ibchan_object *object)
{
	ibchan_device_uncharge(&object->charge);
	kfree_rcu(object, rcu);
}

/* What it stood for is gone, or somebody else's. */
void ibchan_object_forget(struct ibchan_context *ctx, struct ibchan_object *object)
{
	object_hide(ctx, object);
	object_free(object);
}

static int destroy_listener(struct ibchan_context *ctx, struct ibchan_object *object)
{
	ibchan_user_listener_end(object->listener);
	ibchan_object_forget(ctx, object);
	return 0;
}

static int destroy_request(struct ibchan_context *ctx, struct ibchan_object *object)
{
	ibchan_request_reject(object->request, NULL, 0);
	ibchan_object_forget(ctx, object);
	return 0;
}

/* Events come until it is closed. */
static int destroy_channel(struct ibchan_context *ctx, struct ibchan_object *object)
{
	object_hide(ctx, object);
	ibchan_fault_linger(IBCHAN_WINDOW_HIDDEN);
	ibchan_channel_close(object->channel);
	ibchan_object_events_end(object);
	object_free(object);
	return 0;
}

static int destroy_mr(struct ibchan_context *ctx, struct ibchan_object *object)
{
	struct ibchan_mr *mr = object->mr;
	u64 bytes = ibchan_mr_pages(mr) << PAGE_SHIFT;
	int ret = ibchan_mr_try_dereg(mr);

	if (ret)
		return ret;
	object_hide(ctx, object);
	ctx->pinned_bytes -= bytes;
	ibchan_mr_put(mr);
	object_free(object);
	return 0;
}

static int destroy_cq(struct ibchan_context *ctx, struct ibchan_object *object)
{
	struct ibchan_user_ring *ring = object->ring;
	int ret = ibchan_cq_try_destroy(ring->cq);

	if (ret)
		return ret;
	object_hide(ctx, object);
	ibchan_cq_put(ring->cq);
	ibchan_ring_end(ring);
	ibchan_ring_put(ring);
	object_free(object);
	return 0;
}

/**
 * ibchan_context_settle - wait until plain memory of works that have ended is free
 * @ctx: the context
 *
 * A work that completes leaves the region of its plain memory to a worker.
 *
 * Context: process, may sleep.
 * Return: whether there may have been any.
 */
bool ibchan_context_settle(struct ibchan_context *ctx)
{
	if (!READ_ONCE(ctx->had_plain))
		return false;
	ibchan_flush();
	return true;
}

static int free_pd(struct ibchan_context *ctx, struct ibchan_pd *pd)
{
	int ret = ibchan_pd_free(pd);

	return ret == -EBUSY && ibchan_context_settle(ctx) ? ibchan_pd_free(pd) : ret;
}

static int destroy_pd(struct ibchan_context *ctx, struct ibchan_object *object)
{
	int ret = object->children ? -EBUSY : free_pd(ctx, object->pd);

	if (!ret)
		ibchan_object_forget(ctx, object);
	return ret;
}

static int destroy_device(struct ibchan_context *ctx, struct ibchan_object *object)
{
	if (object->children)
		return -EBUSY;
	ibchan_device_put(object->device);
	put_net(object->net);
	ibchan_object_forget(ctx, object);
	return 0;
}

/**
 * ibchan_object_destroy - give an object back
 * @ctx: the context, locked
 * @object: the object
 *
 * Return: 0; -EBUSY, with nothing changed.
 */
int ibchan_object_destroy(struct ibchan_context *ctx, struct ibchan_object *object)
{
	static int (*const destroy[OBJECT_TYPES])(struct ibchan_context *ctx,
						   struct ibchan_object *object) = {
		[OBJECT_LISTENER] = destroy_listener,
		[OBJECT_REQUEST] = destroy_request,
		[OBJECT_CHANNEL] = destroy_channel,
		[OBJECT_MR] = destroy_mr,
		[OBJECT_CQ] = destroy_cq,
		[OBJECT_PD] = destroy_pd,
		[OBJECT_DEVICE] = destroy_device,
	};

	return destroy[object->type](ctx, object);
}

/* Undoes a reservation, with or without an object behind it that nobody has seen. */
void ibchan_object_abort(struct ibchan_context *ctx, struct ibchan_object *object)
{
	if (!object->any) {
		ibchan_object_forget(ctx, object);
		return;
	}
	account(ctx, object);
	WARN_ON_ONCE(ibchan_object_destroy(ctx, object));
}

static void break_channels(struct ibchan_context *ctx, int error)
{
	struct ibchan_object *object;
	unsigned long id;

	xa_for_each(&ctx->objects, id, object)
		if (object->type == OBJECT_CHANNEL)
			ibchan_channel_break(object->channel, error);
}

/* Those who wait or poll find the context broken. */
static void wake_rings(struct ibchan_context *ctx)
{
	struct ibchan_object *object;
	unsigned long id;

	xa_for_each(&ctx->objects, id, object) {
		if (object->type != OBJECT_CQ)
			continue;
		ibchan_cq_wake(object->ring->cq);
		wake_up_all(&object->ring->wait);
	}
}

static void context_break_work(struct work_struct *work)
{
	struct ibchan_context *ctx = container_of(work, struct ibchan_context, break_work);

	mutex_lock(&ctx->lock);
	break_channels(ctx, -EPROTO);
	wake_rings(ctx);
	wake_up_all(&ctx->event_wait);
	mutex_unlock(&ctx->lock);
}

/* The caller damaged a ring: nothing is done for it any more. Any context. */
void ibchan_context_break(struct ibchan_context *ctx)
{
	if (!xchg(&ctx->broken, 1))
		schedule_work(&ctx->break_work);
}

static void destroy_type(struct ibchan_context *ctx, enum ibchan_object_type type)
{
	struct ibchan_object *object;
	unsigned long id;

	/* Busy is only what a device that failed to destroy a channel may still use. */
	xa_for_each(&ctx->objects, id, object)
		if (object->type == type && ibchan_object_destroy(ctx, object))
			ibchan_object_forget(ctx, object);
}

/* All channels break first, so that they flush together. */
static void end_objects(struct ibchan_context *ctx)
{
	enum ibchan_object_type type;

	break_channels(ctx, -ECANCELED);
	for (type = 0; type < OBJECT_TYPES; type++)
		destroy_type(ctx, type);
}

/* The process that opened the file has gone: who still has it finds nothing there. */
static void context_orphan_work(struct work_struct *work)
{
	struct ibchan_context *ctx = container_of(work, struct ibchan_context, orphan_work);

	mutex_lock(&ctx->lock);
	WRITE_ONCE(ctx->broken, 1);
	end_objects(ctx);
	wake_up_all(&ctx->event_wait);
	mutex_unlock(&ctx->lock);
}

static int context_open(struct inode *inode, struct file *file)
{
	struct ibchan_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return -ENOMEM;
	mutex_init(&ctx->lock);
	xa_init_flags(&ctx->objects, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	INIT_WORK(&ctx->break_work, context_break_work);
	INIT_WORK(&ctx->orphan_work, context_orphan_work);
	spin_lock_init(&ctx->event_lock);
	INIT_LIST_HEAD(&ctx->events);
	init_waitqueue_head(&ctx->event_wait);
	ctx->mm = current->mm;
	mmgrab(ctx->mm);
	file->private_data = ctx;
	ibchan_gauge(contexts, 1);
	return stream_open(inode, file);
}

/* The last reference to the file and to every ring is gone: nobody waits, maps or posts. */
static int context_release(struct inode *inode, struct file *file)
{
	struct ibchan_context *ctx = file->private_data;

	ibchan_owner_leave(ctx);
	cancel_work_sync(&ctx->break_work);
	end_objects(ctx);
	xa_destroy(&ctx->objects);
	ibchan_submit_scratch_free(ctx);
	ibchan_ring_page_free(ctx);
	mmdrop(ctx->mm);
	kfree(ctx);
	ibchan_gauge(contexts, -1);
	return 0;
}

/* Readable while an event can be taken. */
static __poll_t context_poll(struct file *file, poll_table *table)
{
	struct ibchan_context *ctx = file->private_data;

	poll_wait(file, &ctx->event_wait, table);
	if (READ_ONCE(ctx->broken))
		return EPOLLERR | EPOLLHUP;
	return list_empty_careful(&ctx->events) ? 0 : EPOLLIN | EPOLLRDNORM;
}

const struct file_operations ibchan_fops = {
	.owner = THIS_MODULE,
	.open = context_open,
	.release = context_release,
	.poll = context_poll,
	.unlocked_ioctl = ibchan_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};
