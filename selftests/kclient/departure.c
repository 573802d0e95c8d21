// SPDX-License-Identifier: GPL-2.0-only
/* How the suites run in which a device leaves. */
#include <linux/moduleparam.h>

#include "departure.h"

static const struct departure *current_departure;
static struct world *world;
static int told;

static void give_back(void)
{
	current_departure->end(world);
	world_give_back(world);
}

static void forget(void)
{
	world_free(world);
	world = NULL;
}

int departure_begin(const struct departure *departure)
{
	int ret;

	world = world_new(departure->name);
	if (!world)
		return -ENOMEM;
	current_departure = departure;
	ret = departure->begin(world);
	if (!ret) {
		pr_info("# %s: %s may leave\n", departure->name, device_names[0]);
		return 0;
	}
	give_back();
	forget();
	return ret;
}

static int run_case(const struct test_case *test)
{
	world->failures = 0;
	test->run(world);
	return !!world->failures;
}

/* What has not come when the removal has returned does not come any more. */
static void verdict(void)
{
	const struct departure *departure = current_departure;
	u32 failed = 0;
	u32 i;

	if (!world || told)
		return;
	told = 1;
	departure->settle(world);
	pr_info("KTAP version 1\n");
	pr_info("1..%u\n", departure->num);
	for (i = 0; i < departure->num; i++) {
		int wrong = run_case(&departure->cases[i]);

		failed += wrong;
		pr_info("%sok %u %s.%s\n", wrong ? "not " : "", i + 1, departure->name,
			departure->cases[i].name);
	}
	pr_info("# kclient: %u passed, %u failed, 0 skipped\n", departure->num - failed, failed);
}

static int set_verdict(const char *value, const struct kernel_param *param)
{
	verdict();
	return 0;
}

static const struct kernel_param_ops verdict_ops = { .set = set_verdict };
module_param_cb(verdict, &verdict_ops, NULL, 0200);
MODULE_PARM_DESC(verdict, "a write tells how a suite has ended in which a device leaves");

void departure_end(void)
{
	if (!world)
		return;
	verdict();
	give_back();
	if (world->failures)
		pr_info("not ok %s.everything_can_be_given_back\n", current_departure->name);
	forget();
}
