// SPDX-License-Identifier: GPL-2.0-only
/* Runs the cases where the kernel has no KUnit, and says how they went. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>

#include "plain.h"

/* A case that goes wrong in a loop need not fill the log. */
#define FAILURES_SHOWN	8

/**
 * plain_fail - an expectation did not hold
 * @test: the case
 * @file: where
 * @line: where
 * @format: what was expected
 */
void plain_fail(struct kunit *test, const char *file, int line, const char *format, ...)
{
	struct va_format text = { .fmt = format };
	va_list arguments;

	if (++test->failures > FAILURES_SHOWN)
		return;
	va_start(arguments, format);
	text.va = &arguments;
	pr_info("    # %s: %s:%d: expected %pV\n", test->name, kbasename(file), line, &text);
	va_end(arguments);
}

static bool run_case(const struct kunit_suite *suite, const struct kunit_case *one,
		     unsigned int number)
{
	struct kunit test = { .name = one->name };

	if (suite->init && suite->init(&test))
		plain_fail(&test, __FILE__, __LINE__, "the suite to set up");
	else
		one->run_case(&test);
	pr_info("    %s %u %s\n", test.failures ? "not ok" : "ok", number, one->name);
	return !test.failures;
}

static bool run_suite(const struct kunit_suite *suite)
{
	const struct kunit_case *one;
	unsigned int number = 0;
	bool good = true;

	for (one = suite->test_cases; one->run_case; one++)
		number++;
	pr_info("    KTAP version 1\n");
	pr_info("    # Subtest: %s\n", suite->name);
	pr_info("    1..%u\n", number);
	for (one = suite->test_cases, number = 1; one->run_case; one++, number++)
		good &= run_case(suite, one, number);
	return good;
}

/**
 * plain_run - run all cases
 * @suites: of the module
 * @num: how many
 */
void plain_run(struct kunit_suite * const *suites, unsigned int num)
{
	unsigned int i;

	pr_info("KTAP version 1\n");
	pr_info("1..%u\n", num);
	for (i = 0; i < num; i++)
		pr_info("%s %u %s\n", run_suite(suites[i]) ? "ok" : "not ok", i + 1,
			suites[i]->name);
}
