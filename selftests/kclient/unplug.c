// SPDX-License-Identifier: GPL-2.0-only
/*
 * The load of selftests/unplug: threads that use both devices, of which one or both leave,
 * whose ports go down, or none of it, at some moment. departure.h says how it begins and ends.
 */
#include <linux/sched.h>

#include "builder.h"
#include "departure.h"

#define BUILDERS	3

static struct builder builders[BUILDERS];

/* What a port that is down, or has lost its addresses, may cause. */
static int is_of_network(int error)
{
	return error == -EADDRNOTAVAIL || error == -ENETDOWN || error == -EHOSTUNREACH ||
	       error == -ENETUNREACH;
}

/* One of them crosses from the first device to the second, one back, one stays. */
static int begin(struct world *w)
{
	struct side *first = &w->side[0], *second = &w->side[1];
	struct side *const near[BUILDERS] = { first, second, first };
	struct side *const far[BUILDERS] = { second, first, NULL };
	struct pair_init init;
	int i, ret = 0;

	pair_defaults(&init);
	if (world_sides(w, &init))
		return -ENODEV;
	for (i = 0; i < BUILDERS && !ret; i++) {
		builders[i] = (struct builder){
			.near = near[i], .far = far[i], .bears = is_of_network,
		};
		ret = builder_start(&builders[i]);
		/* The moments are the script's: of few CPUs it comes first. */
		if (!ret)
			set_user_nice(builders[i].thread.task, 10);
	}
	return ret;
}

/* What it closes is checked there. */
static void end_builder(struct world *w, struct builder *builder)
{
	int ret;

	if (builder->started) {
		ret = builder_join(builder);
		if (!expect(w, ret == -ETIME || ret == -ENODEV))
			builder->wrong++;
	}
	builder_close(builder);
}

static void end(struct world *w)
{
	int i;

	w->failures = 0;
	for (i = 0; i < BUILDERS; i++)
		builder_stop(&builders[i]);
	for (i = 0; i < BUILDERS; i++)
		end_builder(w, &builders[i]);
}

static void settle(struct world *w)
{
	u32 rounds = 0;
	int i;

	end(w);
	for (i = 0; i < BUILDERS; i++)
		rounds += builders[i].rounds;
	pr_info("# unplug: %u channels were built and posted on\n", rounds);
}

static void threads_end_when_told_or_with_enodev(struct world *w)
{
	int i;

	for (i = 0; i < BUILDERS; i++)
		expect_eq(w, builders[i].wrong, 0);
}

static void a_cq_is_told_once_if_its_device_has_left(struct world *w)
{
	struct ibchan_device_attr device;
	int i;

	for (i = 0; i < 2; i++) {
		struct side *side = &w->side[i];
		int left = ibchan_device_query(side->dev, &device) == -ENODEV;

		expect_eq(w, atomic_read(&side->gone), left);
	}
}

static const struct test_case unplug_cases[] = {
	CASE(threads_end_when_told_or_with_enodev),
	CASE(a_cq_is_told_once_if_its_device_has_left),
};

const struct departure unplug_departure = {
	.name = "unplug",
	.cases = unplug_cases,
	.num = ARRAY_SIZE(unplug_cases),
	.begin = begin,
	.settle = settle,
	.end = end,
};
