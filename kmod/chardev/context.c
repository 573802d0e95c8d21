// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens and closes a file of /dev/ibchan, and ends its objects. The file is readable while an event
 * of a channel can be taken: one has connected, one has broken. Each channel has room for its own
 * events, and is in the file's list while there are some: nothing is allocated or overflows.
 *
 * Closing gives everything up in the order of enum ibchan_object_type: channels
 * end all work, so that nothing is busy behind them. So does the end of the process
 * that opened the file, which owner.c tells of, even while others hold the file.
 */
#include <linux/errno.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ibchan_connect.h>

#include "context.h"
#include "counters.h"
#include "fault.h"

/* The worker that ends a context looks so often, once a second, for objects that others end. */
#define ORPHAN_LOOKS	30

/* Not a queue of the system: a file may hold so many channels that breaking them takes long. */
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

/* The first domain from an index on, which is moved behind it; NULL: there is none. */
static struct ibchan_pd *get_next_pd(struct ibchan_context *ctx, unsigned long *index)
{
	struct ibchan_object *object;

	guard(rcu)();
	while ((object = xa_find(&ctx->objects, index, INT_MAX, IBCHAN_PD_MARK))) {
		++*index;
		if (ibchan_pd_tryget(object->pd))
			return object->pd;
	}
	return NULL;
}

/*
 * Waits until the plain memory of the context's works that have ended is free: a work that
 * completes leaves the region of that memory to a worker. Returns whether there may have
 * been any; false when the caller is killed.
 */
bool ibchan_context_settle(struct ibchan_context *ctx)
{
	struct ibchan_pd *pd;
	unsigned long index = 0;
	int ret = 0;

	if (!READ_ONCE(ctx->had_plain))
		return false;
	while (!ret && (pd = get_next_pd(ctx, &index))) {
		ret = ibchan_pd_settle(pd);
		ibchan_pd_put(pd);
	}
	return !ret;
}

static int destroy_pd(struct ibchan_context *ctx, struct ibchan_object *object)
{
	u32 index = ibchan_object_index(ctx, object->id);
	int ret;

	/* ibchan_context_settle() finds a domain by its mark, until its memory begins to go. */
	xa_clear_mark(&ctx->objects, index, IBCHAN_PD_MARK);
	ret = ibchan_pd_free(object->pd);
	if (ret == -EBUSY && READ_ONCE(ctx->had_plain) && !ibchan_pd_settle(object->pd))
		ret = ibchan_pd_free(object->pd);
	if (ret)
		xa_set_mark(&ctx->objects, index, IBCHAN_PD_MARK);
	return ret;
}

/*
 * The object is claimed, or its handle is not published yet. First comes what may refuse, or what
 * others may still find; then the handle goes; then what only those who have found it may use.
 */
static int end_object(struct ibchan_context *ctx, struct ibchan_object *object)
{
	int ret = 0;

	switch (object->type) {
	case OBJECT_LISTENER:
		ibchan_user_listener_end(object->listener);
		break;
	case OBJECT_REQUEST:
		ibchan_request_reject(object->request, NULL, 0);
		break;
	case OBJECT_MR:
		ret = ibchan_mr_try_dereg(object->mr);
		break;
	case OBJECT_CQ:
		ret = ibchan_cq_try_destroy(object->ring->cq);
		break;
	case OBJECT_PD:
		ret = destroy_pd(ctx, object);
		break;
	case OBJECT_DEVICE:
		ibchan_device_put(object->device);
		put_net(object->net);
		break;
	}
	if (ret)
		return ret;
	ibchan_object_hide(ctx, object);
	switch (object->type) {
	case OBJECT_CHANNEL:
		ibchan_fault_linger(IBCHAN_WINDOW_HIDDEN);
		/* Events come until the channel is closed. */
		ibchan_channel_close(object->channel);
		scoped_guard(spinlock_irq, &ctx->event_lock) {
			object->events_ended = 1;
			list_del_init(&object->event_link);
		}
		wake_up_all(&ctx->event_wait);
		break;
	case OBJECT_MR:
		ibchan_mr_put(object->mr, NULL, NULL);
		break;
	case OBJECT_CQ:
		ibchan_cq_put(object->ring->cq);
		ibchan_ring_end(object->ring);
		ibchan_ring_put(object->ring);
		break;
	}
	ibchan_object_free(object);
	return 0;
}

/* Returns -EBUSY with nothing changed, and the errors of ibchan_object_claim(). */
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

/* Undoes a reservation, with or without an object behind it. No command has seen it. */
void ibchan_object_abort(struct ibchan_context *ctx, struct ibchan_object *object)
{
	if (object->any)
		WARN_ON_ONCE(end_object(ctx, object));
	else
		ibchan_object_forget(ctx, object);
}

/*
 * Breaks all channels, and wakes callers that wait on rings: they look whether the context is
 * broken. The walk takes no lock, so it may be long. RCU keeps each object for its visit.
 */
static void break_objects(struct ibchan_context *ctx, int error)
{
	struct ibchan_object *object;
	unsigned long index = 0;

	do {
		rcu_read_lock();
		object = xa_find(&ctx->objects, &index, ULONG_MAX, XA_PRESENT);
		if (object && object->type == OBJECT_CHANNEL) {
			ibchan_channel_break(object->channel, error);
		} else if (object && object->type == OBJECT_CQ) {
			ibchan_cq_wake(object->ring->cq);
			wake_up_all(&object->ring->wait);
		}
		rcu_read_unlock();
		index++;
		cond_resched();
	} while (object);
}

static void context_break_work(struct work_struct *work)
{
	struct ibchan_context *ctx = container_of(work, struct ibchan_context, break_work);

	break_objects(ctx, -EPROTO);
	wake_up_all(&ctx->event_wait);
}

/* The caller damaged a ring: no command does anything for it any more. Any context. */
void ibchan_context_break(struct ibchan_context *ctx)
{
	/* Pairs with ibchan_object_publish(): a channel that the walk misses sees @broken. */
	if (!xchg(&ctx->broken, 1))
		queue_work(break_wq, &ctx->break_work);
}

/*
 * Ends all objects; all channels break first, so that they flush together. An object is busy while
 * another process still ends what needs it: with @may_be_shared it stays for the next look.
 * Without, only a device that failed may still use it: the handle goes and leaves the object to the
 * device.
 */
static void end_objects(struct ibchan_context *ctx, bool may_be_shared)
{
	enum ibchan_object_type type;
	struct ibchan_object *object;
	unsigned long index;

	break_objects(ctx, -ECANCELED);
	for (type = 0; type < OBJECT_TYPES; type++)
		xa_for_each(&ctx->objects, index, object) {
			object = ibchan_object_claim(ctx, ctx->first_handle + index, type);
			if (IS_ERR(object))
				continue;
			/* All works have ended, so the last regions are on their way. */
			if (type == OBJECT_PD)
				ibchan_pd_flush(object->pd);
			if (!end_object(ctx, object))
				continue;
			if (may_be_shared)
				ibchan_object_unclaim(ctx, object);
			else
				ibchan_object_forget(ctx, object);
		}
}

/*
 * The process that opened the file has gone: other holders of the file find nothing there.
 * No command makes an object any more. Another process may be about to end an object, which
 * then keeps what it needs for a while.
 */
static void context_orphan_work(struct work_struct *work)
{
	struct ibchan_context *ctx = container_of(work, struct ibchan_context, orphan_work);
	int looks = ORPHAN_LOOKS;

	WRITE_ONCE(ctx->broken, 1);
	do
		end_objects(ctx, true);
	while (!wait_event_timeout(ctx->idle_wait, !READ_ONCE(ctx->num_objects), HZ) && --looks);
	wake_up_all(&ctx->event_wait);
}

int ibchan_context_open(struct inode *inode, struct file *file)
{
	struct ibchan_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return -ENOMEM;
	ctx->budget = ibchan_budget_get();
	if (!ctx->budget) {
		kfree(ctx);
		return -ENOMEM;
	}
	spin_lock_init(&ctx->lock);
	init_waitqueue_head(&ctx->idle_wait);
	/* Together with the largest index still less than IBCHAN_MR_PLAIN. */
	ctx->first_handle = get_random_u32() & INT_MAX;
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

/* The last reference to the file and to every ring is gone: no call waits, maps or posts. */
int ibchan_context_release(struct inode *inode, struct file *file)
{
	struct ibchan_context *ctx = file->private_data;

	ibchan_owner_leave(ctx);
	cancel_work_sync(&ctx->break_work);
	end_objects(ctx, false);
	xa_destroy(&ctx->objects);
	kvfree(ctx->scratch);
	mmdrop(ctx->mm);
	ibchan_budget_put(ctx->budget);
	kfree(ctx);
	ibchan_gauge(contexts, -1);
	return 0;
}

__poll_t ibchan_context_poll(struct file *file, poll_table *table)
{
	struct ibchan_context *ctx = file->private_data;

	poll_wait(file, &ctx->event_wait, table);
	if (READ_ONCE(ctx->broken))
		return EPOLLERR | EPOLLHUP;
	return list_empty_careful(&ctx->events) ? 0 : EPOLLIN | EPOLLRDNORM;
}

/* Adds events, IBCHAN_EVENT_*, to those of a channel. Any context but NMI. */
void ibchan_object_event(struct ibchan_object *object, u32 events)
{
	struct ibchan_context *ctx = object->ctx;
	unsigned long flags;

	spin_lock_irqsave(&ctx->event_lock, flags);
	if (!object->events_ended) {
		object->events |= events;
		if (list_empty(&object->event_link))
			list_add_tail(&object->event_link, &ctx->events);
	}
	spin_unlock_irqrestore(&ctx->event_lock, flags);
	wake_up_all(&ctx->event_wait);
}

void ibchan_user_connected(void *priv)
{
	ibchan_object_event(priv, IBCHAN_EVENT_CONNECTED);
}

void ibchan_user_broken(void *priv, int error)
{
	ibchan_object_event(priv, IBCHAN_EVENT_BROKEN);
}

/* Takes the first channel out of the list, with all its events. */
int ibchan_run_event_take(struct ibchan_call *call)
{
	struct ibchan_cmd_event_take *cmd = call->cmd;
	struct ibchan_context *ctx = call->ctx;
	struct ibchan_object *object;

	guard(spinlock_irq)(&ctx->event_lock);
	object = list_first_entry_or_null(&ctx->events, struct ibchan_object, event_link);
	if (!object)
		return -EAGAIN;
	list_del_init(&object->event_link);
	cmd->out_channel = object->id;
	cmd->out_events = object->events;
	call->events = object->events;
	object->events = 0;
	return 0;
}
