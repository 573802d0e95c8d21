// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocations are watched by tracepoints, and noted between a beginning and an end. They are
 * counted by a part of the name of the function that asks: "function+0x1/0x2 [module]".
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/kallsyms.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/kmem.h>

#include "allocations.h"

/* The whole kernel's, in the seconds that the slowest case takes on a busy debug kernel. */
#define ALLOCATIONS	16384

/* @io: to get the memory, I/O may be started, which the task's own scope has not forbidden */
static struct {
	unsigned long caller;
	bool io;
} allocations[ALLOCATIONS];
static atomic_t num_allocations;
static bool noting;

static void note(unsigned long caller, gfp_t flags)
{
	int i;

	if (!READ_ONCE(noting))
		return;
	i = (atomic_inc_return(&num_allocations) - 1) % ALLOCATIONS;
	allocations[i].caller = caller;
	allocations[i].io = current_gfp_context(flags) & __GFP_IO;
}

static void saw_kmalloc(void *data, unsigned long caller, const void *memory, size_t wanted,
			size_t given, gfp_t flags, int node)
{
	note(caller, flags);
}

static void saw_cache_alloc(void *data, unsigned long caller, const void *memory,
			    struct kmem_cache *cache, gfp_t flags, int node)
{
	note(caller, flags);
}

static struct cpumask away;

static void bring_cpus_back(struct world *w)
{
	int cpu;

	for_each_cpu(cpu, &away)
		expect_eq(w, add_cpu(cpu), 0);
}

static bool send_cpus_away(struct world *w)
{
	int cpu;

	cpumask_copy(&away, cpu_online_mask);
	cpumask_clear_cpu(0, &away);
	for_each_cpu(cpu, &away)
		if (!expect_eq(w, remove_cpu(cpu), 0))
			cpumask_clear_cpu(cpu, &away);
	if (expect_eq(w, num_online_cpus(), 1))
		return true;
	bring_cpus_back(w);
	return false;
}

/*
 * A tracepoint that comes or goes rewrites code. An emulated CPU that is about to run it
 * just then may keep an instruction that was only there in between, so the others are away.
 */
int allocations_watch(struct world *w)
{
	WRITE_ONCE(noting, false);
	if (!send_cpus_away(w))
		return -EBUSY;
	if (expect_eq(w, register_trace_kmalloc(saw_kmalloc, NULL), 0)) {
		if (expect_eq(w, register_trace_kmem_cache_alloc(saw_cache_alloc, NULL), 0))
			return 0;
		unregister_trace_kmalloc(saw_kmalloc, NULL);
	}
	bring_cpus_back(w);
	return -ENODEV;
}

void allocations_unwatch(struct world *w)
{
	unregister_trace_kmalloc(saw_kmalloc, NULL);
	unregister_trace_kmem_cache_alloc(saw_cache_alloc, NULL);
	tracepoint_synchronize_unregister();
	bring_cpus_back(w);
}

/* From here on allocations are noted, from anywhere in the kernel. */
void allocations_begin(void)
{
	atomic_set(&num_allocations, 0);
	WRITE_ONCE(noting, true);
}

/* The list has to hold them all. */
void allocations_end(struct world *w)
{
	WRITE_ONCE(noting, false);
	expect(w, atomic_read(&num_allocations) < ALLOCATIONS);
}

static int count(const char *caller, bool io_only)
{
	int num = min(atomic_read(&num_allocations), ALLOCATIONS);
	char name[KSYM_SYMBOL_LEN];
	int sum = 0;
	int i;

	for (i = 0; i < num; i++) {
		sprint_symbol(name, allocations[i].caller);
		sum += strstr(name, caller) && (allocations[i].io || !io_only);
	}
	return sum;
}

int allocations_by(const char *caller)
{
	return count(caller, false);
}

/* Those that memory reclaim must not wait for. */
int allocations_with_io_by(const char *caller)
{
	return count(caller, true);
}
