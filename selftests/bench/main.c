// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module does its job while it is being loaded, in the context of the process that
 * loads it: insmod under SCHED_IDLE measures under SCHED_IDLE. The results are lines
 * of the kernel log:
 *
 *	time WAY.CASE SHORTEST MIDDLE		nanoseconds of one operation
 *	allocations WAY.CASE NUMBER		beyond raw verbs, in 10 000 operations
 *	failed WAY.CASE ERRNO
 *	operations NUMBER			that were done while an emulator's plugin counted
 */
#include <linux/errno.h>
#include <linux/module.h>

#include "kbench.h"

static char *job = "speed";
module_param(job, charp, 0444);
MODULE_PARM_DESC(job, "speed, setup, profile, allocations, memory_raw, memory_chan or memory_kept");

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "where");

static char *name = "kernel.unpolled.write_64_depth_1";
module_param(name, charp, 0444);
MODULE_PARM_DESC(name, "way and case to profile");

static unsigned int pairs = 1000;
module_param(pairs, uint, 0444);
MODULE_PARM_DESC(pairs, "connected pairs to hold, for the memory jobs");

bool kbench_moves = true;
module_param_named(moves, kbench_moves, bool, 0444);
MODULE_PARM_DESC(moves, "the device moves data, so see that they arrive");

static int __init kbench_init(void)
{
	if (!strcmp(job, "speed"))
		return kbench_speed(device);
	if (!strcmp(job, "setup"))
		return kbench_setup(device);
	if (!strcmp(job, "profile"))
		return kbench_profile(device, name);
	if (!strcmp(job, "allocations"))
		return kbench_allocations(device);
	if (!strcmp(job, "memory_raw"))
		return kbench_memory_raw(device, pairs);
	if (!strcmp(job, "memory_chan"))
		return kbench_memory_chan(device, pairs);
	if (!strcmp(job, "memory_kept"))
		return kbench_memory_kept(device, pairs);
	return -EINVAL;
}

static void __exit kbench_exit(void)
{
	kbench_memory_release();
}

module_init(kbench_init);
module_exit(kbench_exit);
MODULE_DESCRIPTION("What ibchan costs above raw verbs");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "IBCHAN");
