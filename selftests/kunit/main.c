// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suites for all that is pure in ibchan. Where the kernel has KUnit they are
 * KUnit suites; elsewhere the same cases run when this module is loaded.
 */
#include <linux/kernel.h>
#include <linux/module.h>

#include "cases.h"

#if IS_ENABLED(CONFIG_KUNIT)
kunit_test_suites(&wr_form_suite, &wr_range_suite, &params_suite, &endpoint_suite,
		  &state_suite, &status_suite, &times_suite, &busy_suite, &segments_suite,
		  &places_suite, &users_suite, &wire_suite);
#else
static struct kunit_suite * const suites[] = {
	&wr_form_suite, &wr_range_suite, &params_suite, &endpoint_suite,
	&state_suite, &status_suite, &times_suite, &busy_suite, &segments_suite, &places_suite,
	&users_suite, &wire_suite,
};

static int __init ibchan_kunit_init(void)
{
	plain_run(suites, ARRAY_SIZE(suites));
	return 0;
}

static void __exit ibchan_kunit_exit(void)
{
}

module_init(ibchan_kunit_init);
module_exit(ibchan_kunit_exit);
#endif

MODULE_DESCRIPTION("Tests of what is pure in ibchan");
MODULE_LICENSE("GPL");
