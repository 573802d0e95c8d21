// SPDX-License-Identifier: GPL-2.0-only
/*
 * The counted program: main CASE. The module's own object, the library and the stubs of the kernel
 * are linked into a static program, whose per-cpu data lie where the GS register says. It does
 * the operation of the case twice; `step` counts the second one, which starts with a breakpoint.
 */
#include <asm/prctl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "count.h"

/* Symbols of per-cpu data are offsets from here: of those of this program all are below. */
#define PER_CPU		0x10000000UL
#define PER_CPU_SIZE	0x2000000UL

/* Where `count` has put the kernel's current_task. */
#define CURRENT_TASK	0x108

#define TASK_SIZE	65536

static const struct count_shape kernel_shapes[] = {
	{ .name = "kernel.write", .works = 1, .chain = 1 },
	{ .name = "kernel.write_exclusive", .works = 1, .chain = 1, .exclusive = 1 },
	{ .name = "kernel.chain_16", .works = 16, .chain = 16 },
	{ .name = "kernel.qp", .works = 1, .chain = 1, .by_wr_id = 1 },
	{ .name = "kernel.qp_chain_16", .works = 16, .chain = 16, .by_wr_id = 1 },
};

static const struct count_shape user_shapes[] = {
	{ .name = "user.write", .works = 1, .chain = 1, .exclusive = 1 },
	{ .name = "user.blocking", .works = 1, .chain = 1, .exclusive = 1, .blocking = 1 },
	{ .name = "user.in_flight_16", .works = 16, .chain = 1, .exclusive = 1 },
	{ .name = "user.chain_16", .works = 16, .chain = 16, .exclusive = 1 },
};

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static char task[TASK_SIZE] COUNT_ATTRIBUTE(aligned, 64);
static int counting;

/* Of this table the module calls one function only. */
void *pv_ops[64];

/* The kernel's, which the module looks at when it makes a completion queue. */
void *kmalloc_caches[256];
unsigned long _totalram_pages;

void *kvmalloc_node(size_t size, unsigned int flags, int node)
{
	(void)flags;
	(void)node;
	return calloc(1, size);
}

void kvfree(const void *memory)
{
	free((void *)memory);
}

void *kmalloc_node_trace(void *cache, unsigned int flags, int node, size_t size)
{
	(void)cache;
	return kvmalloc_node(size, flags, node);
}

int ioctl(int fd, unsigned long request, ...)
{
	unsigned long arg;
	va_list args;
	long ret;

	(void)fd;
	va_start(args, request);
	arg = va_arg(args, unsigned long);
	va_end(args);
	ret = count_ioctl(request, arg);
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

void COUNT_ATTRIBUTE(noinline) count_begin(void)
{
	if (counting)
		__asm__ volatile("int3");
}

void COUNT_ATTRIBUTE(noinline) count_end(void)
{
	__asm__ volatile("");
}

static void set_up_cpu(void)
{
	void *per_cpu = mmap((void *)PER_CPU, PER_CPU_SIZE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	unsigned int i;

	if (per_cpu != (void *)PER_CPU || syscall(SYS_arch_prctl, ARCH_SET_GS, per_cpu)) {
		perror("count: the per-cpu data");
		exit(1);
	}
	*(void **)(PER_CPU + CURRENT_TASK) = task;
	for (i = 0; i < ARRAY_SIZE(pv_ops); i++)
		pv_ops[i] = count_save_flags;
}

static int run_twice(const struct count_shape *shape, int (*run)(const struct count_shape *shape))
{
	int ret = run(shape);

	counting = ret == shape->works;
	if (counting)
		ret = run(shape);
	if (ret == shape->works)
		return 0;
	fprintf(stderr, "count: %s: %d\n", shape->name, ret);
	return 1;
}

static const struct count_shape *find(const struct count_shape *shapes, size_t num,
				      const char *name)
{
	size_t i;

	for (i = 0; i < num; i++)
		if (!strcmp(shapes[i].name, name))
			return &shapes[i];
	return NULL;
}

static int list_cases(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kernel_shapes); i++)
		printf("%s %d\n", kernel_shapes[i].name, kernel_shapes[i].works);
	for (i = 0; i < ARRAY_SIZE(user_shapes); i++)
		printf("%s %d\n", user_shapes[i].name, user_shapes[i].works);
	return 0;
}

/* Without a case: lists them, each with its number of works. */
int main(int argc, char **argv)
{
	const struct count_shape *shape;

	if (argc < 2)
		return list_cases();
	set_up_cpu();
	shape = find(kernel_shapes, ARRAY_SIZE(kernel_shapes), argv[1]);
	if (shape)
		return count_module_init(task, 0, shape->by_wr_id) ||
		       run_twice(shape, count_kernel);
	shape = find(user_shapes, ARRAY_SIZE(user_shapes), argv[1]);
	if (!shape)
		return 2;
	if (count_module_init(task, 1, 0))
		return 1;
	count_user_init();
	return run_twice(shape, count_user);
}
