// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shows the module in debugfs: /sys/kernel/debug/ibchan/counters has one "name value" a line,
 * /sys/kernel/debug/ibchan/history the latest events of each channel on a device.
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

static int counters_show(struct seq_file *m, void *unused)
{
	atomic64_t *gauge;
	int cpu;
	u64 sum;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		sum = 0;
		for_each_possible_cpu(cpu)
			sum += *(u64 *)((void *)per_cpu_ptr(&ibchan_events, cpu) +
					events[i].offset);
		seq_printf(m, "%s %llu\n", events[i].name, sum);
	}
	for (i = 0; i < ARRAY_SIZE(gauges); i++) {
		gauge = (void *)&ibchan_gauges + gauges[i].offset;
		seq_printf(m, "%s %lld\n", gauges[i].name, atomic64_read(gauge));
	}
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
