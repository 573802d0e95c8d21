// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many allocations a work takes: the kernel's own tracepoints are counted
 * while one thread works, softirqs that run on its back included. soft-RoCE
 * allocates packets; what ibchan adds is the difference to the baseline.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "kbench.h"

#define RUNS	3

static const struct kbench_case cases[] = {
	{ "write_64_depth_1", KBENCH_WRITE, 64, 1, 0, 10000 },
	{ "write_64_chain_16", KBENCH_WRITE, 64, 16, 1, 10000 },
	{ "send_64_depth_1", KBENCH_SEND, 64, 1, 0, 10000 },
};

/* Not every kernel has all of them: those for one node went away. */
static const char * const events[] = {
	"kmalloc", "kmalloc_node", "kmem_cache_alloc", "kmem_cache_alloc_node", "mm_page_alloc",
};

struct counter {
	struct task_struct *task;
	struct tracepoint *points[ARRAY_SIZE(events)];
	u32 num_points;
	u64 count;
};

/*
 * The arguments of the event come after the first one. They differ between
 * events and kernels, and do not matter here.
 */
static void probe(void *data)
{
	struct counter *counter = data;

	if (current == counter->task)
		counter->count++;
}

static void find_point(struct tracepoint *point, void *data)
{
	struct counter *counter = data;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(point->name, events[i]) &&
		    counter->num_points < ARRAY_SIZE(events))
			counter->points[counter->num_points++] = point;
}

static void counter_stop(struct counter *counter)
{
	while (counter->num_points--)
		tracepoint_probe_unregister(counter->points[counter->num_points],
					    (void *)probe, counter);
	tracepoint_synchronize_unregister();
}

/* A counter that sees nothing would prove nothing. */
static int counter_check(struct counter *counter)
{
	void *memory = kmalloc(SZ_64, GFP_KERNEL);
	u64 seen = counter->count;

	kfree(memory);
	return memory && seen ? 0 : -EOPNOTSUPP;
}

static int counter_start(struct counter *counter)
{
	struct tracepoint *points[ARRAY_SIZE(events)];
	u32 num, i;
	int ret = 0;

	*counter = (struct counter){ .task = current };
	for_each_kernel_tracepoint(find_point, counter);
	num = counter->num_points;
	memcpy(points, counter->points, sizeof(points));
	counter->num_points = 0;
	for (i = 0; i < num && !ret; i++) {
		ret = tracepoint_probe_register(points[i], (void *)probe, counter);
		if (!ret)
			counter->points[counter->num_points++] = points[i];
	}
	if (!ret)
		ret = counter_check(counter);
	if (ret)
		counter_stop(counter);
	return ret;
}

/* Interrupts only add to it: the smallest of some runs is the way's own. */
static int count_way(struct kbench_world *world, const struct kbench_case *test,
		     const struct kbench_way *way, u64 *least)
{
	struct counter counter;
	u64 before, ns;
	int ret, run;

	*least = U64_MAX;
	ret = counter_start(&counter);
	if (ret)
		return ret;
	for (run = 0; run < RUNS && !ret; run++) {
		before = counter.count;
		ret = kbench_case_run(world, test, way, &ns);
		*least = min(*least, counter.count - before);
	}
	counter_stop(&counter);
	return ret;
}

/* The baseline works in the caller's own context, as ibchan does: bottom halves off. */
static int count_case(struct kbench_world *world, const struct kbench_case *test)
{
	u64 raw, own;
	int ret;
	u32 i;

	ret = count_way(world, test, &kbench_raw_ways[1], &raw);
	if (ret)
		return ret;
	pr_info("note allocations raw.%s %llu\n", test->name, raw);
	for (i = 0; i < kbench_chan_num_ways && !ret; i++) {
		const struct kbench_way *way = &kbench_chan_ways[i];

		if (!kbench_can(way, test))
			continue;
		ret = count_way(world, test, way, &own);
		if (!ret)
			pr_info("allocations %s.%s %lld\n", way->name, test->name,
				(s64)(own - raw));
	}
	return ret;
}

/**
 * kbench_allocations - count allocations of all ways, beyond the baseline's
 * @device: where, by name
 *
 * Return: 0; the errno of the first run that failed; -EOPNOTSUPP when the kernel
 * does not show its allocations.
 */
int kbench_allocations(const char *device)
{
	struct kbench_world world;
	int ret = kbench_world_open(&world, device);
	u32 i;

	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(cases) && !ret; i++)
		ret = count_case(&world, &cases[i]);
	kbench_world_close(&world);
	return ret;
}
