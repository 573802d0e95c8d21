// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module does its job while it is being loaded, in the context of the process that
 * loads it: insmod under SCHED_IDLE measures under SCHED_IDLE. The results are lines
 * of the kernel log:
 *
 *	time WAY.CASE SHORTEST MIDDLE		nanoseconds of one operation
 *	allocations WAY.CASE NUMBER		beyond raw verbs, in 10 000 operations
 *	failed WAY.CASE ERRNO
 */
#include <linux/errno.h>
#include <linux/module.h>

#include "kbench.h"

static char *job = "speed";
module_param(job, charp, 0444);
MODULE_PARM_DESC(job, "speed, allocations, memory_raw, memory_chan or memory_kept");

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "where");

static unsigned int pairs = 1000;
module_param(pairs, uint, 0444);
MODULE_PARM_DESC(pairs, "connected pairs to hold, for the memory jobs");

static int __init kbench_init(void)
{
	if (!strcmp(job, "speed"))
		return kbench_speed(device);
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
