// SPDX-License-Identifier: GPL-2.0-only
/* busy.h: an object ends with its last user, and takes no more behind that. */
#include <linux/kernel.h>

#include "cases.h"

static void an_object_ends_with_its_last_user(struct kunit *test)
{
	struct ibchan_users users;
	int i;

	ibchan_users_init(&users);
	KUNIT_EXPECT_EQ(test, ibchan_users_count(&users), 1U);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_TRUE(test, ibchan_users_get(&users));
	KUNIT_EXPECT_EQ(test, ibchan_users_count(&users), 4U);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_FALSE(test, ibchan_users_put(&users));
	KUNIT_EXPECT_EQ(test, ibchan_users_count(&users), 1U);
	KUNIT_EXPECT_TRUE(test, ibchan_users_put(&users));
	KUNIT_EXPECT_EQ(test, ibchan_users_count(&users), 0U);
}

static void an_ended_object_takes_no_user(struct kunit *test)
{
	struct ibchan_users users;
	int i;

	ibchan_users_init(&users);
	KUNIT_EXPECT_TRUE(test, ibchan_users_put(&users));
	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_FALSE(test, ibchan_users_get(&users));
	KUNIT_EXPECT_EQ(test, ibchan_users_count(&users), 0U);
	KUNIT_EXPECT_EQ(test, atomic_read(&users.others), IBCHAN_USERS_ENDED);
	KUNIT_EXPECT_FALSE(test, ibchan_users_put_if_one(&users));
}

static void only_a_lone_user_ends_it_at_once(struct kunit *test)
{
	struct ibchan_users users;

	ibchan_users_init(&users);
	KUNIT_EXPECT_TRUE(test, ibchan_users_get(&users));
	KUNIT_EXPECT_FALSE(test, ibchan_users_put_if_one(&users));
	KUNIT_EXPECT_EQ(test, ibchan_users_count(&users), 2U);
	KUNIT_EXPECT_FALSE(test, ibchan_users_put(&users));
	KUNIT_EXPECT_TRUE(test, ibchan_users_put_if_one(&users));
	KUNIT_EXPECT_FALSE(test, ibchan_users_get(&users));
}

/* Two threads, step by step: the last user has counted itself out, and ended nothing yet. */
static void a_user_that_comes_before_the_end_puts_it_off(struct kunit *test)
{
	struct ibchan_users users;

	ibchan_users_init(&users);
	KUNIT_EXPECT_TRUE(test, atomic_add_negative(-1, &users.others));
	KUNIT_EXPECT_TRUE(test, ibchan_users_get(&users));
	KUNIT_EXPECT_FALSE(test, ibchan_users_end(&users));
	KUNIT_EXPECT_EQ(test, ibchan_users_count(&users), 1U);
	KUNIT_EXPECT_TRUE(test, ibchan_users_put(&users));
}

/* The same, and the newcomer counts itself out as well: one of the two ends the object. */
static void of_two_last_users_one_ends_it(struct kunit *test)
{
	struct ibchan_users users;

	ibchan_users_init(&users);
	KUNIT_EXPECT_TRUE(test, atomic_add_negative(-1, &users.others));
	KUNIT_EXPECT_TRUE(test, ibchan_users_get(&users));
	KUNIT_EXPECT_TRUE(test, atomic_add_negative(-1, &users.others));
	KUNIT_EXPECT_TRUE(test, ibchan_users_end(&users));
	KUNIT_EXPECT_FALSE(test, ibchan_users_end(&users));
	KUNIT_EXPECT_FALSE(test, ibchan_users_get(&users));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(an_object_ends_with_its_last_user),
	KUNIT_CASE(an_ended_object_takes_no_user),
	KUNIT_CASE(only_a_lone_user_ends_it_at_once),
	KUNIT_CASE(a_user_that_comes_before_the_end_puts_it_off),
	KUNIT_CASE(of_two_last_users_one_ends_it),
	{}
};

struct kunit_suite users_suite = {
	.name = "ibchan_users",
	.test_cases = cases,
};
