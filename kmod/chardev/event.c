// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of the channels of a file: one has connected, one has broken. Each channel has
 * room for its own events, and is in the file's list while there are some: nothing is
 * allocated, and nothing overflows.
 */
#include <linux/errno.h>
#include <linux/list.h>

#include "context.h"

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

/* Ends the events of an object, and wakes callers that wait for them. */
void ibchan_object_events_end(struct ibchan_object *object)
{
	struct ibchan_context *ctx = object->ctx;
	unsigned long flags;

	spin_lock_irqsave(&ctx->event_lock, flags);
	object->events_ended = 1;
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
