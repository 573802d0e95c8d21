// SPDX-License-Identifier: GPL-2.0-only
/*
 * ibchan_kclient: a consumer of the kernel API that does nothing but test it.
 *
 *	insmod ibchan_kclient.ko [suite=NAME,...] [devices=rxe0,rxe1]
 *				 [patience=MS] [cycles=N] [worlds=N] [seconds=N]
 *				 [netns=FD]
 *
 * Runs the suites within insmod and writes KTAP to the kernel log; the last line
 * is "# kclient: N passed, N failed, N skipped". insmod succeeds also when cases
 * fail. The two devices reach each other. selftests/kernel-tests does all that.
 *
 *	suite		default: all that need nothing else; the names are in suites.h
 *	patience	milliseconds to wait for what is sure to come
 *	cycles		channels that the suite "cycles" builds and closes
 *	worlds		how often it builds and tears down everything from the device on
 *	seconds		of the suite "stress"
 *	netns		file of another network namespace, for the suites "netns_shared"
 *			and "netns_exclusive"; netns.c says more
 *
 * The suites in which a device leaves are begun by insmod and told about from outside:
 * departure.h says how.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/panic.h>
#include <linux/string.h>

#include "departure.h"

static char *suite;
module_param(suite, charp, 0444);
MODULE_PARM_DESC(suite, "suites to run, with commas between them");

char *device_names[2] = { "rxe0", "rxe1" };
module_param_array_named(devices, device_names, charp, NULL, 0444);
MODULE_PARM_DESC(devices, "two devices that reach each other");

unsigned int patience = 10000;
module_param(patience, uint, 0444);
MODULE_PARM_DESC(patience, "milliseconds to wait for what is sure to come");

struct entry {
	const struct suite *suite;
	bool by_default;
};

#define BY_DEFAULT(name) { &name##_suite, true },
#define ON_DEMAND(name) { &name##_suite, false },
static const struct entry entries[] = {
	DEFAULT_SUITES(BY_DEFAULT)
	OTHER_SUITES(ON_DEMAND)
#ifdef IBCHAN_FAULTS
	FAULT_SUITES(ON_DEMAND)
#endif
};

static unsigned int passed, failed, skipped;

/* Is the name one of those between the commas? */
static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);
	const char *at = list;

	while ((at = strstr(at, name))) {
		if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
			return true;
		at += length;
	}
	return false;
}

static bool is_wanted(const struct entry *entry)
{
	return suite ? is_listed(suite, entry->suite->name) : entry->by_default;
}

static void tell(const char *name, const struct test_case *test, const struct world *w)
{
	unsigned int number = passed + failed + skipped + 1;

	if (w->failures) {
		failed++;
		pr_info("not ok %u %s.%s\n", number, name, test->name);
	} else if (w->skipped) {
		skipped++;
		pr_info("ok %u %s.%s # SKIP %s\n", number, name, test->name, w->skipped);
	} else {
		passed++;
		pr_info("ok %u %s.%s\n", number, name, test->name);
	}
}

static bool is_ethernet(struct world *w)
{
	struct ibchan_device *dev = world_device(w, 0);
	struct ibchan_port_attr attr = {};

	/* The case fails of it. */
	if (!dev)
		return true;
	expect_eq(w, ibchan_port_query(dev, 1, &init_net, &attr), 0);
	return attr.link_layer == IBCHAN_LINK_LAYER_ETHERNET;
}

/*
 * What is left over when the world ends is a failure of its case, and so is a kernel that has
 * warned; of a later warning it does not tell.
 */
static void run_case(const char *name, const struct test_case *test)
{
	struct world *w = world_new(test->name);
	int has_warned = test_taint(TAINT_WARN);

	if (!w) {
		failed++;
		pr_info("not ok %u %s.%s\n", passed + failed + skipped, name, test->name);
		return;
	}
	schedule_delayed_work(&w->watchdog, msecs_to_jiffies(8 * patience));
	if (!test->needs_ethernet || is_ethernet(w))
		test->run(w);
	else
		world_skip(w, "for Ethernet ports");
	cancel_delayed_work_sync(&w->watchdog);
	world_give_back(w);
	expect_eq(w, test_taint(TAINT_WARN), has_warned);
	tell(name, test, w);
	world_free(w);
}

static unsigned int planned(void)
{
	unsigned int num = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(entries); i++)
		if (is_wanted(&entries[i]))
			num += entries[i].suite->num;
	return num;
}

static void run_suite(const struct suite *s)
{
	unsigned int i;

	for (i = 0; i < s->num; i++)
		run_case(s->name, &s->cases[i]);
}

static void run_all(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(entries); i++)
		if (is_wanted(&entries[i]))
			run_suite(entries[i].suite);
}

static const struct departure *const departures[] = {
	&removal_departure, &removal_by_address_departure, &unplug_departure
};

static int __init kclient_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(departures); i++)
		if (suite && is_listed(suite, departures[i]->name))
			return departure_begin(departures[i]);
	pr_info("KTAP version 1\n");
	pr_info("1..%u\n", planned());
	run_all();
	pr_info("# kclient: %u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return 0;
}

static void __exit kclient_exit(void)
{
	departure_end();
}

module_init(kclient_init);
module_exit(kclient_exit);

MODULE_DESCRIPTION("Tests of the ibchan kernel API");
MODULE_AUTHOR("The ibchan authors");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "IBCHAN");
