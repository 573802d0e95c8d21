// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/ibchan/counters: one "name value" a line;
 * /sys/kernel/debug/ibchan/history: what happened to each channel on a device.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "channel.h"
#include "counters.h"
#include "fault.h"
#include "init.h"

static struct dentry *debugfs_root;

struct counter {
	const char *name;
	size_t offset;
};

#define EVENT_ROW(name) { #name, offsetof(struct ibchan_events, name) },
static const struct counter events[] = {
	IBCHAN_EVENTS(EVENT_ROW)
};

#define GAUGE_ROW(name) { #name, offsetof(struct ibchan_gauges, name) },
static const struct counter gauges[] = {
	IBCHAN_GAUGES(GAUGE_ROW)
};

static u64 sum_event(size_t offset)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *(u64 *)((void *)per_cpu_ptr(&ibchan_events, cpu) + offset);
	return sum;
}

static s64 read_gauge(size_t offset)
{
	return atomic64_read((atomic64_t *)((void *)&ibchan_gauges + offset));
}

static int counters_show(struct seq_file *m, void *unused)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(events); i++)
		seq_printf(m, "%s %llu\n", events[i].name, sum_event(events[i].offset));
	for (i = 0; i < ARRAY_SIZE(gauges); i++)
		seq_printf(m, "%s %lld\n", gauges[i].name, read_gauge(gauges[i].offset));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int history_show(struct seq_file *m, void *unused)
{
	return ibchan_history_show(m);
}
DEFINE_SHOW_ATTRIBUTE(history);

/* Nothing depends on it: a kernel without debugfs has no counters to read. */
void ibchan_debugfs_init(void)
{
	debugfs_root = debugfs_create_dir("ibchan", NULL);
	debugfs_create_file("counters", 0444, debugfs_root, NULL, &counters_fops);
	debugfs_create_file("history", 0400, debugfs_root, NULL, &history_fops);
	ibchan_fault_debugfs_init(debugfs_root);
}

void ibchan_debugfs_fini(void)
{
	debugfs_remove_recursive(debugfs_root);
}
