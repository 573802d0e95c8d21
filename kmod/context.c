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

/* How often, in seconds, who ends a context looks for what others end. */
#define ORPHAN_LOOKS	30

static unsigned int max_handles = 16384;
module_param(max_handles, uint, 0644);
MODULE_PARM_DESC(max_handles, "Objects that one open file may hold (default 16384)");

/* One of our own: a file may hold so many channels that breaking them takes a while. */
static struct workqueue_struct *break_wq;

int ibchan_context_init(void)
{
	break_wq = alloc_workqueue("ibchan_break", WQ_UNBOUND, 0);
	return break_wq ? 0 : -ENOMEM;
}

void ibchan_context_fini(void)
{
	destroy_workqueue(break_wq);
}

u32 ibchan_context_max_objects(void)
{
	return READ_ONCE(max_handles);
}

static bool count_object(struct ibchan_context *ctx)
{
	bool has_room;

	spin_lock(&ctx->lock);
	has_room = ctx->num_objects < ibchan_context_max_objects();
	if (has_room)
		ctx->num_objects++;
	spin_unlock(&ctx->lock);
	return has_room;
}

static void uncount_object(struct ibchan_context *ctx)
{
	spin_lock(&ctx->lock);
	ctx->num_objects--;
	spin_unlock(&ctx->lock);
}

/**
 * ibchan_object_reserve - a handle without an object
 * @ctx: the context
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

	ret = ibchan_owner_follow(ctx);
	if (ret)
		return ERR_PTR(ret);
	if (!count_object(ctx))
		return ERR_PTR(-EMFILE);
	object = kzalloc(sizeof(*object), GFP_KERNEL_ACCOUNT);
	if (!object) {
		uncount_object(ctx);
		return ERR_PTR(-ENOMEM);
	}
	object->type = type;
	object->ctx = ctx;
	INIT_LIST_HEAD(&object->event_link);
	ret = xa_alloc_cyclic(&ctx->objects, &object->id, NULL,
			      XA_LIMIT(1, INT_MAX), &ctx->next_id, GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		uncount_object(ctx);
		kfree(object);
		return ERR_PTR(ret);
	}
	return object;
}

/* Under the lock. */
static void account(struct ibchan_context *ctx, struct ibchan_object *object)
{
	if (object->type == OBJECT_MR)
		ctx->pinned_bytes += ibchan_mr_pages(object->mr) << PAGE_SHIFT;
}

static void break_channel(struct ibchan_object *object, int error)
{
	ibchan_channel_break(object->channel, error);
}

/* Cannot fail: the slot is there already. Others may end the object from then on. */
void ibchan_object_publish(struct ibchan_context *ctx, struct ibchan_object *object)
{
	rcu_read_lock();
	spin_lock(&ctx->lock);
	account(ctx, object);
	xa_store(&ctx->objects, object->id, object, 0);
	rcu_assign_pointer(*ibchan_object_place(ctx, object->id), object);
	spin_unlock(&ctx->lock);
	/* Pairs with ibchan_context_break(), whose walk may have been too early for it. */
	smp_mb();
	if (READ_ONCE(ctx->broken) && object->type == OBJECT_CHANNEL)
		break_channel(object, -EPROTO);
	rcu_read_unlock();
}

/* @parent cannot be destroyed as long as @child exists. */
void ibchan_object_adopt(struct ibchan_object *child, struct ibchan_object *parent)
{
	child->parent = parent;
	spin_lock(&parent->ctx->lock);
	parent->children++;
	spin_unlock(&parent->ctx->lock);
}

/*
 * For who works on an object of any type, -1, or of one: 0, or why not. An answer that
 * fails leaves the request as it was.
 */
static int object_check(const struct ibchan_object *object, int type)
{
	if (!object || (type >= 0 && object->type != type))
		return -ENOENT;
	if (object->claimed)
		return object->type == OBJECT_REQUEST ? -EBUSY : -ENOENT;
	return 0;
}

/**
 * ibchan_call_find - hold an object until the command's body has returned
 * @call: the command
 * @id: the handle
 * @type: what it must be
 *
 * Return: the object; -ENOENT; -EBUSY for a request that another one answers.
 */
struct ibchan_object *ibchan_call_find(struct ibchan_call *call, u32 id,
				       enum ibchan_object_type type)
{
	struct ibchan_context *ctx = call->ctx;
	struct ibchan_object *object;
	int ret;

	spin_lock(&ctx->lock);
	object = ibchan_object_find(ctx, id, type);
	ret = object_check(object, type);
	if (!ret) {
		object->users++;
		call->held[call->num_held++] = object;
	}
	spin_unlock(&ctx->lock);
	return ret ? ERR_PTR(ret) : object;
}

/* A command that touches the caller's memory does so behind that. Done twice, it does nothing. */
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

/* Who holds one of these is soon done, once a channel is broken. */
static bool is_waited_for(const struct ibchan_object *object)
{
	return object->type == OBJECT_CHANNEL || object->type == OBJECT_LISTENER;
}

static int claim_check(const struct ibchan_object *object, int type)
{
	int ret = object_check(object, type);

	if (ret)
		return ret;
	if (object->children || (object->users && !is_waited_for(object)))
		return -EBUSY;
	return 0;
}

static bool is_idle(struct ibchan_context *ctx, const struct ibchan_object *object)
{
	bool idle;

	spin_lock(&ctx->lock);
	idle = !object->users;
	spin_unlock(&ctx->lock);
	return idle;
}

/* Nobody comes in who would hold it. */
static int await_idle(struct ibchan_context *ctx, struct ibchan_object *object)
{
	if (is_idle(ctx, object))
		return 0;
	if (object->type == OBJECT_CHANNEL)
		break_channel(object, -ECANCELED);
	return wait_event_killable(ctx->idle_wait, is_idle(ctx, object)) ? -EINTR : 0;
}

/* It is there again for everybody. */
void ibchan_object_unclaim(struct ibchan_context *ctx, struct ibchan_object *object)
{
	spin_lock(&ctx->lock);
	object->claimed = 0;
	spin_unlock(&ctx->lock);
}

/**
 * ibchan_object_claim - have an object for oneself
 * @ctx: the context
 * @id: the handle
 * @type: what it must be; negative: anything
 *
 * Return: the object, to be ended, or given back with ibchan_object_unclaim(); -ENOENT;
 * -EBUSY while another object or a command needs it; -EINTR when the caller is killed.
 */
struct ibchan_object *ibchan_object_claim(struct ibchan_context *ctx, u32 id, int type)
{
	struct ibchan_object *object;
	int ret;

	spin_lock(&ctx->lock);
	object = xa_load(&ctx->objects, id);
	ret = claim_check(object, type);
	if (!ret)
		object->claimed = 1;
	spin_unlock(&ctx->lock);
	if (ret)
		return ERR_PTR(ret);
	ret = await_idle(ctx, object);
	if (!ret)
		return object;
	ibchan_object_unclaim(ctx, object);
	return ERR_PTR(ret);
}

/*
 * Under the lock. The slot of the last one that went stays reserved until another one goes:
 * where objects come and go one by one, the table needs no new nodes each time.
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

	spin_lock(&ctx->lock);
	if (rcu_access_pointer(*place) == object)
		RCU_INIT_POINTER(*place, NULL);
	give_slot(ctx, object->id);
	ctx->num_objects--;
	if (object->parent)
		object->parent->children--;
	spin_unlock(&ctx->lock);
	if (wq_has_sleeper(&ctx->idle_wait))
		wake_up_all(&ctx->idle_wait);
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
	spin_lock(&ctx->lock);
	ctx->pinned_bytes -= bytes;
	spin_unlock(&ctx->lock);
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
	int ret = free_pd(ctx, object->pd);

	if (!ret)
		ibchan_object_forget(ctx, object);
	return ret;
}

static int destroy_device(struct ibchan_context *ctx, struct ibchan_object *object)
{
	ibchan_device_put(object->device);
	put_net(object->net);
	ibchan_object_forget(ctx, object);
	return 0;
}

/* Of one that is claimed, or that nobody has seen or sees any more. */
static int end_object(struct ibchan_context *ctx, struct ibchan_object *object)
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

/**
 * ibchan_object_destroy - give an object back
 * @ctx: the context
 * @id: the handle
 *
 * Return: 0; -ENOENT; -EBUSY, with nothing changed; -EINTR when the caller is killed.
 */
int ibchan_object_destroy(struct ibchan_context *ctx, u32 id)
{
	struct ibchan_object *object = ibchan_object_claim(ctx, id, -1);
	int ret;

	if (IS_ERR(object))
		return PTR_ERR(object);
	ret = end_object(ctx, object);
	if (ret)
		ibchan_object_unclaim(ctx, object);
	return ret;
}

/* Undoes a reservation, with or without an object behind it that nobody has seen. */
void ibchan_object_abort(struct ibchan_context *ctx, struct ibchan_object *object)
{
	if (!object->any) {
		ibchan_object_forget(ctx, object);
		return;
	}
	spin_lock(&ctx->lock);
	account(ctx, object);
	spin_unlock(&ctx->lock);
	WARN_ON_ONCE(end_object(ctx, object));
}

/* Without a lock, so that it may be long: what is found lives on for its visit, under RCU. */
static void visit_objects(struct ibchan_context *ctx, enum ibchan_object_type type,
			  void (*visit)(struct ibchan_object *object, int error), int error)
{
	struct ibchan_object *object;
	unsigned long id = 0;

	do {
		rcu_read_lock();
		object = xa_find(&ctx->objects, &id, ULONG_MAX, XA_PRESENT);
		if (object && object->type == type)
			visit(object, error);
		rcu_read_unlock();
		id++;
		cond_resched();
	} while (object);
}

static void wake_ring(struct ibchan_object *object, int error)
{
	ibchan_cq_wake(object->ring->cq);
	wake_up_all(&object->ring->wait);
}

static void context_break_work(struct work_struct *work)
{
	struct ibchan_context *ctx = container_of(work, struct ibchan_context, break_work);

	visit_objects(ctx, OBJECT_CHANNEL, break_channel, -EPROTO);
	/* Those who wait or poll find the context broken. */
	visit_objects(ctx, OBJECT_CQ, wake_ring, 0);
	wake_up_all(&ctx->event_wait);
}

/* The caller damaged a ring: nothing is done for it any more. Any context. */
void ibchan_context_break(struct ibchan_context *ctx)
{
	/* Pairs with ibchan_object_publish(): what the walk does not find sees this. */
	if (!xchg(&ctx->broken, 1))
		queue_work(break_wq, &ctx->break_work);
}

/* Somebody else may be about to end it. Busy is only what a device may still use that failed. */
static void end_by_id(struct ibchan_context *ctx, u32 id, enum ibchan_object_type type)
{
	struct ibchan_object *object = ibchan_object_claim(ctx, id, type);

	if (!IS_ERR(object) && end_object(ctx, object))
		ibchan_object_forget(ctx, object);
}

static void destroy_type(struct ibchan_context *ctx, enum ibchan_object_type type)
{
	struct ibchan_object *object;
	unsigned long id;

	xa_for_each(&ctx->objects, id, object)
		end_by_id(ctx, id, type);
}

/* All channels break first, so that they flush together. */
static void end_objects(struct ibchan_context *ctx)
{
	enum ibchan_object_type type;

	visit_objects(ctx, OBJECT_CHANNEL, break_channel, -ECANCELED);
	for (type = 0; type < OBJECT_TYPES; type++)
		destroy_type(ctx, type);
}

static bool is_empty(struct ibchan_context *ctx)
{
	bool empty;

	spin_lock(&ctx->lock);
	empty = !ctx->num_objects;
	spin_unlock(&ctx->lock);
	return empty;
}

/*
 * The process that opened the file has gone: who still has it finds nothing there. Nobody
 * makes anything any more; another process may be about to end a thing, which then keeps what
 * it needs for a while.
 */
static void context_orphan_work(struct work_struct *work)
{
	struct ibchan_context *ctx = container_of(work, struct ibchan_context, orphan_work);
	int looks = ORPHAN_LOOKS;

	WRITE_ONCE(ctx->broken, 1);
	do
		end_objects(ctx);
	while (!wait_event_timeout(ctx->idle_wait, is_empty(ctx), HZ) && --looks);
	wake_up_all(&ctx->event_wait);
}

static int context_open(struct inode *inode, struct file *file)
{
	struct ibchan_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return -ENOMEM;
	spin_lock_init(&ctx->lock);
	init_waitqueue_head(&ctx->idle_wait);
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
