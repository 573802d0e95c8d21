// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens to the channels of a file by itself. Each channel has room for its own
 * events, and is in the file's list while there are some: nothing is allocated, and
 * nothing overflows.
 */
#include <linux/errno.h>
#include <linux/list.h>

#include "connect.h"

/**
 * ibchan_object_event - something has happened to a channel
 * @object: the channel
 * @events: IBCHAN_EVENT_*
 *
 * Context: any but NMI.
 */
void ibchan_object_event(struct ibchan_object *object, u32 events)
{
	struct ibchan_context *ctx = object->ctx;
	unsigned long flags;

	spin_lock_irqsave(&ctx->event_lock, flags);
	object->events |= events;
	if (list_empty(&object->event_link))
		list_add_tail(&object->event_link, &ctx->events);
	spin_unlock_irqrestore(&ctx->event_lock, flags);
	wake_up_all(&ctx->event_wait);
}

/* Nothing happens to it any more, and who waits for it should know. */
void ibchan_object_events_end(struct ibchan_object *object)
{
	struct ibchan_context *ctx = object->ctx;
	unsigned long flags;

	spin_lock_irqsave(&ctx->event_lock, flags);
	list_del_init(&object->event_link);
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

static struct ibchan_object *pop_object(struct ibchan_context *ctx, u32 *events)
{
	struct ibchan_object *object;

	spin_lock_irq(&ctx->event_lock);
	object = list_first_entry_or_null(&ctx->events, struct ibchan_object, event_link);
	if (object) {
		list_del_init(&object->event_link);
		*events = object->events;
		object->events = 0;
	}
	spin_unlock_irq(&ctx->event_lock);
	return object;
}

/* The context's lock keeps the object until the answer has been written. */
int ibchan_run_event_take(struct ibchan_call *call)
{
	struct ibchan_cmd_event_take *cmd = call->cmd;
	struct ibchan_object *object = pop_object(call->ctx, &call->events);

	if (!object)
		return -EAGAIN;
	call->told = object;
	cmd->out_channel = object->id;
	cmd->out_events = call->events;
	return 0;
}
