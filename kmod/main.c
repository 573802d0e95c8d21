// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads and unloads the module: sets the floors up in their order, and down again. Shows it in
 * debugfs: /sys/kernel/debug/ibchan/counters has one "name value" a line,
 * /sys/kernel/debug/ibchan/history the latest events of each channel on a device.
 */
#include <linux/debugfs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "channel.h"
#include "context.h"
#include "counters.h"
#include "fault.h"
#include "parts.h"

static const struct ibchan_device_client *const device_clients[] = {
	&ibchan_channel_client,
	&ibchan_watch_client,
	&ibchan_linger_client,
	&ibchan_listen_client,
	NULL,
};

static const struct ibchan_channel_part *const channel_parts[] = {
	&ibchan_watch_part,
	&ibchan_cm_part,
	NULL,
};

/* Group and mode are the udev rule's to widen: 0660, group rdma. */
static struct miscdevice ibchan_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ibchan",
	.fops = &ibchan_fops,
	.mode = 0660,
};

static struct dentry *debugfs_root;

#define SHOW_EVENT(name)						\
	({								\
		u64 sum = 0;						\
									\
		for_each_possible_cpu(cpu)				\
			sum += per_cpu(ibchan_events.name, cpu);	\
		seq_printf(m, #name " %llu\n", sum);			\
	});

#define SHOW_GAUGE(name)						\
	seq_printf(m, #name " %lld\n", atomic64_read(&ibchan_gauges.name));

static int counters_show(struct seq_file *m, void *unused)
{
	int cpu;

	IBCHAN_EVENTS(SHOW_EVENT)
	IBCHAN_GAUGES(SHOW_GAUGE)
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

DEFINE_SHOW_ATTRIBUTE(ibchan_history);

static int __init ibchan_init(void)
{
	int ret;

	ret = ibchan_channels_init(channel_parts);
	if (ret)
		return ret;
	ret = ibchan_device_init(device_clients);
	if (ret)
		goto undo_channels;
	ret = ibchan_client_init();
	if (ret)
		goto undo_device;
	ret = ibchan_owner_init();
	if (ret)
		goto undo_client;
	ret = ibchan_context_init();
	if (ret)
		goto undo_owner;
	ret = misc_register(&ibchan_misc);
	if (ret)
		goto undo_context;
	/* Nothing depends on it: a kernel without debugfs has no counters to read. */
	debugfs_root = debugfs_create_dir("ibchan", NULL);
	debugfs_create_file("counters", 0444, debugfs_root, NULL, &counters_fops);
	debugfs_create_file("history", 0400, debugfs_root, NULL, &ibchan_history_fops);
	ibchan_fault_debugfs_init(debugfs_root);
	return 0;

undo_context:
	ibchan_context_fini();
undo_owner:
	ibchan_owner_fini();
undo_client:
	ibchan_client_fini();
undo_device:
	ibchan_device_fini();
undo_channels:
	ibchan_channels_fini();
	return ret;
}

/* No file is open, so the devices have none of our objects but dying ones. */
static void __exit ibchan_exit(void)
{
	debugfs_remove_recursive(debugfs_root);
	misc_deregister(&ibchan_misc);
	ibchan_context_fini();
	ibchan_client_fini();
	ibchan_device_fini();
	ibchan_owner_fini();
	ibchan_channels_fini();
}

module_init(ibchan_init);
module_exit(ibchan_exit);

MODULE_DESCRIPTION("RDMA channels for kernel consumers and user programs");
MODULE_AUTHOR("The ibchan authors");
MODULE_LICENSE("GPL");
