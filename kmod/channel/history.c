// SPDX-License-Identifier: GPL-2.0-only
/*
 * The flight recorder of a channel: its latest events, for the search for a failure's cause.
 *
 * It is written where something goes wrong or a channel changes its state, never by a
 * work that succeeds. Repetitions count in one event, so that they do not push out older
 * ones: probes, a post that is tried again, works that flush.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "channel.h"
#include "compat.h"

static struct ibchan_history_event *event_at(struct ibchan_history *history, u32 number)
{
	return &history->events[number % history->room];
}

/*
 * Most channels live and end with few events, so the array begins small. It grows where the oldest
 * event has the first place, because all keep their places then.
 */
static void grow(struct ibchan_history *history)
{
	u32 room = 2 * history->room ?: IBCHAN_HISTORY_FEW;
	struct ibchan_history_event *events;

	if (room > IBCHAN_HISTORY_MAX || (history->room && history->oldest % room))
		return;
	events = krealloc_array(history->events, room, sizeof(*events), GFP_ATOMIC | __GFP_NOWARN);
	if (!events)
		return;
	history->events = events;
	history->room = room;
}

/* The caller holds the lock. The next place, or the last one where a row goes on. */
static u32 pick_number(struct ibchan_history *history, u32 kind)
{
	u32 num = history->num, kept = num - history->oldest;

	if (kind == IBCHAN_HISTORY_PROBES && kept &&
	    event_at(history, num - 1)->kind == IBCHAN_HISTORY_PROBES)
		return num - 1;
	if (kept == history->room)
		grow(history);
	/* Without memory for more, the oldest event goes early. */
	if (kept == history->room)
		history->oldest++;
	history->num = num + 1;
	return num;
}

/* @kind says what the rest is. @error: errno, of either sign; 0: none. Any context but NMI. */
void ibchan_history_add(struct ibchan_channel *ch, u32 kind, u32 error, u32 detail, u64 value)
{
	struct ibchan_history *history = &ch->history;
	u64 now;
	u32 number;

	guard(spinlock_irqsave)(&history->lock);
	number = pick_number(history, kind);
	now = ktime_get_ns();
	/* Without memory for any, an event only counts. */
	if (history->room)
		*event_at(history, number) = (struct ibchan_history_event){
			.time_ns = now,
			.number = number,
			.kind = kind,
			.error = abs((s32)error),
			.detail = detail,
			.value = value,
		};
	if (kind == IBCHAN_HISTORY_CONNECTED)
		history->connected_ns = now;
}

/* A work has failed, and not because another one had. Any context but NMI. */
void ibchan_history_failed(struct ibchan_channel *ch, const struct ibchan_completion *completion)
{
	scoped_guard(spinlock_irqsave, &ch->history.lock)
		if (!ch->history.failed.error)
			ch->history.failed = *completion;
	ibchan_history_add(ch, IBCHAN_HISTORY_WORK_FAILED, completion->error,
			   completion->status | completion->opcode << 16, completion->wr_id);
	if (completion->vendor_err)
		ibchan_history_add(ch, IBCHAN_HISTORY_VENDOR_ERROR, 0, completion->vendor_err, 0);
}

/* The channel's address has gone, or it has this one now. Process, under the qp lock. */
void ibchan_history_address(struct ibchan_channel *ch, u32 error)
{
	ibchan_history_add(ch, IBCHAN_HISTORY_ADDRESS, error, ch->qp.gid.index, ch->qp.gid.port);
}

/* A post was refused; noted when it is for another reason than the last time. */
void ibchan_history_refused(struct ibchan_channel *ch, int error, u32 code, u64 wr_id)
{
	u64 refused = (u64)-error << 32 | code;

	lockdep_assert_held(&ch->post_lock);
	if (ch->history.refused == refused)
		return;
	ch->history.refused = refused;
	ibchan_history_add(ch, IBCHAN_HISTORY_POST_REFUSED, error, code, wr_id);
}

/**
 * ibchan_channel_history - the latest events of a channel
 * @ch: the channel, in any state: broken channels and channels of removed devices too
 * @events: filled with the youngest ones, in the order in which they happened
 * @num: how many there is room for; IBCHAN_HISTORY_MAX is enough
 *
 * Context: any but NMI.
 * Return: how many were written.
 */
u32 ibchan_channel_history(struct ibchan_channel *ch, struct ibchan_history_event *events, u32 num)
{
	struct ibchan_history *history = &ch->history;
	u32 i;

	guard(spinlock_irqsave)(&history->lock);
	num = min(num, history->num - history->oldest);
	for (i = 0; i < num; i++)
		events[i] = *event_at(history, history->num - num + i);
	return num;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_history, IBCHAN_NS);

#define KIND_NAME(nr, NAME)	\
	[nr] = #NAME,
static const char * const kind_names[] = {
	IBCHAN_HISTORY_KINDS(KIND_NAME)
};

/* A channel that does not fit is shown again from the beginning, with more room. */
static void show_device(struct ibchan_device *dev, void *arg)
{
	struct ibchan_history_event *event, *end;
	struct seq_file *m = arg;
	struct ibchan_channel *ch;
	u64 seconds;
	u32 ns;

	guard(mutex)(&dev->lock);
	list_for_each_entry(ch, &dev->channels, link) {
		if (ch->bounds.service || seq_has_overflowed(m))
			continue;
		event = m->private;
		end = event + ibchan_channel_history(ch, event, IBCHAN_HISTORY_MAX);
		seq_printf(m, "%s qpn %#x state %u\n", dev->attr.name,
			   be32_to_cpu(ch->qp.endpoint.qpn), READ_ONCE(ch->state));
		for (; event < end; event++) {
			seconds = div_u64_rem(event->time_ns, NSEC_PER_SEC, &ns);
			seq_printf(m, " %llu.%06u #%u %s error %u detail %#x value %#llx\n",
				   seconds, (u32)(ns / NSEC_PER_USEC), event->number,
				   kind_names[event->kind], event->error, event->detail,
				   event->value);
		}
	}
}

/* For debugfs: a line for each channel, and below it one for each event. */
int ibchan_history_show(struct seq_file *m, void *unused)
{
	m->private = kcalloc(IBCHAN_HISTORY_MAX, sizeof(struct ibchan_history_event), GFP_KERNEL);
	if (!m->private)
		return -ENOMEM;
	ibchan_device_each(show_device, m);
	kfree(m->private);
	return 0;
}
