// SPDX-License-Identifier: GPL-2.0-only
/*
 * The histories of all channels, for debugfs: a line for each channel, and below it one
 * for each event.
 */
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "channel.h"
#include "compat.h"

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
static void show_channel(struct ibchan_channel *ch, void *arg)
{
	struct history_page *page = arg;
	u32 num, i;

	if (ch->bounds.service || seq_has_overflowed(page->m))
		return;
	num = ibchan_channel_history(ch, page->events, IBCHAN_HISTORY_MAX);
	seq_printf(page->m, "%s qpn %#x state %u\n", ch->qp.dev->attr.name,
		   be32_to_cpu(ch->qp.endpoint.qpn), READ_ONCE(ch->state));
	for (i = 0; i < num; i++)
		show_event(page->m, &page->events[i]);
}

static void show_device(struct ibchan_device *dev, void *arg)
{
	struct ibchan_channel *ch;

	guard(mutex)(&dev->lock);
	list_for_each_entry(ch, &dev->channels, link)
		show_channel(ch, arg);
}

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
