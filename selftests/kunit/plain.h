/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of <kunit/test.h> as our cases use, for kernels without KUnit. Results
 * are printed as KTAP when the module is loaded.
 */
#ifndef IBCHAN_KUNIT_PLAIN_H
#define IBCHAN_KUNIT_PLAIN_H

#include <linux/printk.h>
#include <linux/string.h>
#include <linux/types.h>

/**
 * struct kunit - a case that runs
 * @priv: the suite's
 * @name: of the case
 * @failures: expectations that did not hold
 */
struct kunit {
	void *priv;
	const char *name;
	unsigned int failures;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
};

#define KUNIT_CASE(test_name) { .run_case = test_name, .name = #test_name }

struct kunit_suite {
	const char name[64];
	int (*init)(struct kunit *test);
	struct kunit_case *test_cases;
};

__printf(4, 5)
void plain_fail(struct kunit *test, const char *file, int line, const char *format, ...);
void plain_run(struct kunit_suite * const *suites, unsigned int num);

/* A failed expectation is noted, and the case goes on. */
#define PLAIN_CHECK(test, holds, format, ...)				\
	({								\
		bool __holds = (holds);					\
									\
		if (!__holds)						\
			plain_fail(test, __FILE__, __LINE__, format, ##__VA_ARGS__); \
		__holds;						\
	})

#define PLAIN_EQ(test, left, right, format, ...)			\
	({								\
		typeof(left) __left = (left);				\
		typeof(right) __right = (right);			\
									\
		PLAIN_CHECK(test, __left == __right,			\
			    #left " == " #right ": %lld, %lld " format,	\
			    (long long)__left, (long long)__right, ##__VA_ARGS__); \
	})

#define KUNIT_EXPECT_EQ_MSG(test, left, right, format, ...)		\
	((void)PLAIN_EQ(test, left, right, format, ##__VA_ARGS__))
#define KUNIT_EXPECT_EQ(test, left, right)				\
	KUNIT_EXPECT_EQ_MSG(test, left, right, "")
#define KUNIT_EXPECT_TRUE_MSG(test, condition, format, ...)		\
	((void)PLAIN_CHECK(test, condition, #condition " " format, ##__VA_ARGS__))
#define KUNIT_EXPECT_TRUE(test, condition)				\
	KUNIT_EXPECT_TRUE_MSG(test, condition, "")
#define KUNIT_EXPECT_FALSE_MSG(test, condition, format, ...)		\
	((void)PLAIN_CHECK(test, !(condition), "not " #condition " " format, ##__VA_ARGS__))
#define KUNIT_EXPECT_FALSE(test, condition)				\
	KUNIT_EXPECT_FALSE_MSG(test, condition, "")
#define KUNIT_EXPECT_STREQ(test, left, right)				\
	((void)PLAIN_CHECK(test, !strcmp(left, right), "\"%s\" is \"%s\"", left, right))

#endif /* IBCHAN_KUNIT_PLAIN_H */
