// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long an operation takes. Where the clock counts instructions, a run
 * differs from the next by what interrupts it: the shortest is the figure, the
 * middle one says how far that can be trusted. The ways take turns, so that
 * what changes over time changes for all of them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "kbench.h"

#define RUNS	7

static const struct kbench_case cases[] = {
	{ "write_64_depth_1", KBENCH_WRITE, 64, 1, 0, 2000 },
	{ "write_64_depth_16", KBENCH_WRITE, 64, 16, 0, 2000 },
	{ "write_64_chain_16", KBENCH_WRITE, 64, 16, 1, 2000 },
	{ "send_64_depth_1", KBENCH_SEND, 64, 1, 0, 2000 },
	{ "read_4k_depth_1", KBENCH_READ, SZ_4K, 1, 0, 500 },
	{ "write_64k_depth_1", KBENCH_WRITE, SZ_64K, 1, 0, 60 },
	{ "write_64k_depth_4", KBENCH_WRITE, SZ_64K, 4, 0, 60 },
};

/* --- one run --- */

static void fill(u8 *bytes, u32 length, u8 seed)
{
	u32 i;

	for (i = 0; i < length; i++)
		bytes[i] = (u8)(i * 31 + (i >> 8) * 7 + seed);
}

static void *source_of(const struct kbench_world *world, const struct kbench_case *test)
{
	return test->operation == KBENCH_READ ? world->buffers.far : world->buffers.near;
}

static void *target_of(const struct kbench_world *world, const struct kbench_case *test)
{
	return test->operation == KBENCH_READ ? world->buffers.near : world->buffers.far;
}

/**
 * kbench_case_run - do a case once, one way, and verify what has arrived, if anything can
 * @world: where
 * @test: the case
 * @way: how
 * @ns: how long it took
 *
 * Return: 0; -EILSEQ when the bytes are not there; what the way answers.
 */
int kbench_case_run(struct kbench_world *world, const struct kbench_case *test,
		    const struct kbench_way *way, u64 *ns)
{
	u32 length = test->bytes * test->depth;
	void *source = source_of(world, test);
	void *target = target_of(world, test);
	static u8 seed;
	u64 start;
	int ret;

	/* While ksoftirqd waits for this cpu, local_bh_enable() takes longer. */
	cond_resched();
	fill(source, length, ++seed);
	memset(target, ~seed, length);
	start = ktime_get_ns();
	ret = way->run(world, test);
	*ns = ktime_get_ns() - start;
	if (!ret && kbench_moves && memcmp(source, target, length))
		ret = -EILSEQ;
	if (ret)
		pr_err("failed %s.%s %d\n", way->name, test->name, ret);
	return ret;
}

/* Is this way made for this case? */
int kbench_can(const struct kbench_way *way, const struct kbench_case *test)
{
	return test->depth <= way->max_depth && (way->chains || !test->chained);
}

/* --- all runs of a case --- */

/* A way and its times; every way of a case. */
struct series {
	const struct kbench_way *way;
	u64 ns[RUNS];
};

static int compare_ns(const void *a, const void *b)
{
	u64 left = *(const u64 *)a;
	u64 right = *(const u64 *)b;

	return left < right ? -1 : left > right;
}

static void print_series(struct series *series, const struct kbench_case *test)
{
	sort(series->ns, RUNS, sizeof(*series->ns), compare_ns, NULL);
	pr_info("time %s.%s %llu %llu\n", series->way->name, test->name,
		DIV_ROUND_CLOSEST_ULL(series->ns[0], test->ops),
		DIV_ROUND_CLOSEST_ULL(series->ns[RUNS / 2], test->ops));
}

static int run_case(struct kbench_world *world, struct series *series, u32 num,
		    const struct kbench_case *test)
{
	int ret = 0;
	u32 run, i;

	for (run = 0; run < RUNS; run++)
		for (i = 0; i < num && !ret; i++)
			if (kbench_can(series[i].way, test))
				ret = kbench_case_run(world, test, series[i].way,
						      &series[i].ns[run]);
	for (i = 0; i < num && !ret; i++)
		if (kbench_can(series[i].way, test))
			print_series(&series[i], test);
	return ret;
}

/* --- one case, for a profile --- */

/* Long ones without effect, which the plugin of profile/ looks for. */
#define MARK(byte) \
	asm volatile(".byte 0x0f, 0x1f, 0x84, 0, " #byte ", 0x56, 0x34, 0x12")

static int profile_case(struct kbench_world *world, const struct kbench_case *test,
			const struct kbench_way *way)
{
	u64 ns;
	int ret = kbench_case_run(world, test, way, &ns);

	if (ret)
		return ret;
	cond_resched();
	MARK(0x78);
	ret = way->run(world, test);
	MARK(0x79);
	pr_info("operations %u\n", test->ops);
	return ret;
}

static bool is_named(const char *name, const struct kbench_way *way,
		     const struct kbench_case *test)
{
	size_t length = strlen(way->name);

	return !strncmp(name, way->name, length) && name[length] == '.' &&
	       !strcmp(name + length + 1, test->name) && kbench_can(way, test);
}

static int profile_named(struct kbench_world *world, const char *name)
{
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (j = 0; j < kbench_raw_num_ways; j++)
			if (is_named(name, &kbench_raw_ways[j], &cases[i]))
				return profile_case(world, &cases[i], &kbench_raw_ways[j]);
		for (j = 0; j < kbench_chan_num_ways; j++)
			if (is_named(name, &kbench_chan_ways[j], &cases[i]))
				return profile_case(world, &cases[i], &kbench_chan_ways[j]);
	}
	return -ENOENT;
}

/* --- the world --- */

static int buffers_alloc(struct kbench_buffers *buffers)
{
	buffers->near = alloc_pages_exact(KBENCH_BYTES, GFP_KERNEL | __GFP_ZERO);
	if (!buffers->near)
		return -ENOMEM;
	buffers->far = alloc_pages_exact(KBENCH_BYTES, GFP_KERNEL | __GFP_ZERO);
	if (buffers->far)
		return 0;
	free_pages_exact(buffers->near, KBENCH_BYTES);
	return -ENOMEM;
}

static void buffers_free(struct kbench_buffers *buffers)
{
	free_pages_exact(buffers->near, KBENCH_BYTES);
	free_pages_exact(buffers->far, KBENCH_BYTES);
}

static int open_pairs(struct kbench_world *world, const char *device)
{
	int ret;

	world->raw = kbench_raw_open(world->dev, &world->buffers);
	if (IS_ERR(world->raw)) {
		ret = PTR_ERR(world->raw);
		pr_err("failed raw.open %d\n", ret);
		return ret;
	}
	world->chan = kbench_chan_open(device, &world->buffers);
	if (!IS_ERR(world->chan))
		return 0;
	ret = PTR_ERR(world->chan);
	pr_err("failed kernel.open %d\n", ret);
	kbench_raw_close(world->raw);
	return ret;
}

static int world_fill(struct kbench_world *world, const char *device)
{
	int ret = kbench_age(world->dev);

	if (ret)
		return ret;
	ret = buffers_alloc(&world->buffers);
	if (ret)
		return ret;
	ret = open_pairs(world, device);
	if (ret)
		buffers_free(&world->buffers);
	return ret;
}

/**
 * kbench_world_open - everything that runs need, on an aged device
 * @world: filled on success, for kbench_world_close()
 * @device: by name
 *
 * Return: 0 or an errno.
 */
int kbench_world_open(struct kbench_world *world, const char *device)
{
	int ret;

	world->dev = kbench_device_find(device);
	if (IS_ERR(world->dev))
		return PTR_ERR(world->dev);
	ret = world_fill(world, device);
	if (ret)
		kbench_device_release();
	return ret;
}

void kbench_world_close(struct kbench_world *world)
{
	kbench_chan_close(world->chan);
	kbench_raw_close(world->raw);
	buffers_free(&world->buffers);
	kbench_device_release();
}

/**
 * kbench_speed - measure all cases in all ways
 * @device: where, by name
 *
 * Return: 0; the errno of the first run that failed.
 */
int kbench_speed(const char *device)
{
	u32 num = kbench_raw_num_ways + kbench_chan_num_ways;
	struct kbench_world world;
	struct series *series;
	int ret;
	u32 i;

	series = kcalloc(num, sizeof(*series), GFP_KERNEL);
	if (!series)
		return -ENOMEM;
	for (i = 0; i < num; i++)
		series[i].way = i < kbench_raw_num_ways ? &kbench_raw_ways[i] :
				&kbench_chan_ways[i - kbench_raw_num_ways];
	ret = kbench_world_open(&world, device);
	if (!ret) {
		for (i = 0; i < ARRAY_SIZE(cases) && !ret; i++)
			ret = run_case(&world, series, num, &cases[i]);
		kbench_world_close(&world);
	}
	kfree(series);
	return ret;
}

/**
 * kbench_profile - do one case, one way, between two marks
 * @device: where, by name
 * @name: WAY.CASE
 *
 * Return: 0; -ENOENT for a name that there is not; what the way answers.
 */
int kbench_profile(const char *device, const char *name)
{
	struct kbench_world world;
	int ret = kbench_world_open(&world, device);

	if (ret)
		return ret;
	ret = profile_named(&world, name);
	kbench_world_close(&world);
	return ret;
}
