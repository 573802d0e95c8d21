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
	if (history->more)
		return &history->more[number % IBCHAN_HISTORY_MAX];
	return &history->few[number % IBCHAN_HISTORY_FEW];
}

/* Most channels live and end with few events, so that room for more comes late. */
static void grow(struct ibchan_history *history)
{
	struct ibchan_history_event *more;
	u32 number;

	more = kcalloc(IBCHAN_HISTORY_MAX, sizeof(*more), GFP_ATOMIC | __GFP_NOWARN);
	if (!more)
		return;
	for (number = history->oldest; number != history->num; number++)
		more[number % IBCHAN_HISTORY_MAX] = *event_at(history, number);
	history->more = more;
}

/* The caller holds the lock. The next place, or the last one where a row goes on. */
static u32 pick_number(struct ibchan_history *history, u32 kind)
{
	u32 num = history->num, kept = num - history->oldest;

	if (kind == IBCHAN_HISTORY_PROBES && num &&
	    event_at(history, num - 1)->kind == IBCHAN_HISTORY_PROBES)
		return num - 1;
	if (kept == IBCHAN_HISTORY_FEW && !history->more)
		grow(history);
	/* Without memory for more, the oldest event goes early. */
	if (kept == (history->more ? IBCHAN_HISTORY_MAX : IBCHAN_HISTORY_FEW))
		history->oldest++;
	history->num = num + 1;
	return num;
}

/* @kind says what the rest is. @error: errno, of either sign; 0: none. Any context but NMI. */
void ibchan_history_add(struct ibchan_channel *ch, u32 kind, u32 error, u32 detail, u64 value)
{
	struct ibchan_history *history = &ch->history;
	unsigned long flags;
	u32 number;

	spin_lock_irqsave(&history->lock, flags);
	number = pick_number(history, kind);
	*event_at(history, number) = (struct ibchan_history_event){
		.time_ns = ktime_get_ns(),
		.number = number,
		.kind = kind,
		.error = abs((s32)error),
		.detail = detail,
		.value = value,
	};
	if (kind == IBCHAN_HISTORY_CONNECTED)
		history->connected_ns = event_at(history, number)->time_ns;
	spin_unlock_irqrestore(&history->lock, flags);
}

/* A work has failed, and not because another one had. Any context but NMI. */
void ibchan_history_failed(struct ibchan_channel *ch, const struct ibchan_completion *completion)
{
	unsigned long flags;

	spin_lock_irqsave(&ch->history.lock, flags);
	if (!ch->history.failed.error)
		ch->history.failed = *completion;
	spin_unlock_irqrestore(&ch->history.lock, flags);
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
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&history->lock, flags);
	num = min(num, history->num - history->oldest);
	for (i = 0; i < num; i++)
		events[i] = *event_at(history, history->num - num + i);
	spin_unlock_irqrestore(&history->lock, flags);
	return num;
}
EXPORT_SYMBOL_NS_GPL(ibchan_channel_history, IBCHAN_NS);

/* Reports the device, the peer and the failed work of a channel. Without the qp lock. */
void ibchan_facts_fill(struct ibchan_channel *ch, struct ibchan_facts *facts)
{
	struct ibchan_history *history = &ch->history;
	unsigned long flags;

	*facts = (struct ibchan_facts){ .failed_opcode = IBCHAN_FACTS_NO_OPCODE };
	ibchan_device_name(ch->qp.dev, facts->device);
	spin_lock_irqsave(&history->lock, flags);
	if (history->failed.error) {
		facts->failed_wr_id = history->failed.wr_id;
		facts->failed_opcode = history->failed.opcode;
		facts->failed_vendor_err = history->failed.vendor_err;
	}
	if (history->connected_ns)
		facts->age_ns = ktime_get_ns() - history->connected_ns;
	spin_unlock_irqrestore(&history->lock, flags);
	ibchan_qp_lock(&ch->qp);
	ibchan_parts_call(fill_facts, ch, facts);
	facts->peer_qpn = be32_to_cpu(ch->peer.qpn);
	memcpy(facts->peer_gid, ch->peer.gid, sizeof(facts->peer_gid));
	if (ch->qp.params.ack_timeout)
		facts->ack_timeout_ns = 4096ULL << ch->qp.params.ack_timeout;
	ibchan_qp_unlock(&ch->qp);
}

/* A file, and room for the events of one channel. */
struct history_page {
	struct seq_file *m;	/* the file */
	struct ibchan_history_event events[IBCHAN_HISTORY_MAX];	/* of one channel */
};

#define KIND_NAME(nr, NAME)	\
	[nr] = #NAME,
static const char * const kind_names[] = {
	IBCHAN_HISTORY_KINDS(KIND_NAME)
};

static void show_event(struct seq_file *m, const struct ibchan_history_event *event)
{
	u32 ns;
	u64 seconds = div_u64_rem(event->time_ns, NSEC_PER_SEC, &ns);

	seq_printf(m, " %llu.%06u #%u %s error %u detail %#x value %#llx\n", seconds,
		   (u32)(ns / NSEC_PER_USEC), event->number, kind_names[event->kind],
		   event->error, event->detail, event->value);
}

/* A channel that does not fit is shown again from the beginning, with more room. */
static void show_device(struct ibchan_device *dev, void *arg)
{
	struct history_page *page = arg;
	struct ibchan_channel *ch;
	u32 num, i;

	guard(mutex)(&dev->lock);
	list_for_each_entry(ch, &dev->channels, link) {
		if (ch->bounds.service || seq_has_overflowed(page->m))
			continue;
		num = ibchan_channel_history(ch, page->events, IBCHAN_HISTORY_MAX);
		seq_printf(page->m, "%s qpn %#x state %u\n", ch->qp.dev->attr.name,
			   be32_to_cpu(ch->qp.endpoint.qpn), READ_ONCE(ch->state));
		for (i = 0; i < num; i++)
			show_event(page->m, &page->events[i]);
	}
}

/* For debugfs: a line for each channel, and below it one for each event. */
int ibchan_history_show(struct seq_file *m)
{
	struct history_page *page = kzalloc(sizeof(*page), GFP_KERNEL);

	if (!page)
		return -ENOMEM;
	page->m = m;
	ibchan_device_each(show_device, page);
	kfree(page);
	return 0;
}
