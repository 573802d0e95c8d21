// SPDX-License-Identifier: GPL-2.0-only
/* places.h: places of a queue, their slots, and which work has to ask for a completion. */
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>

#include "cases.h"

static const u32 depths[] = { 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 100, 1023, 1024, 1025 };

/* Close enough to the end that a few rounds of any depth cross it. */
static struct ibchan_places places_near_the_end(u32 depth)
{
	struct ibchan_places places;

	ibchan_places_init(&places, depth);
	places.posted = U32_MAX - depth / 2;
	places.retired = places.posted;
	return places;
}

static bool is_full(const struct ibchan_places *places)
{
	return ibchan_places_in_flight(places) == places->depth;
}

static void slots_are_the_next_power_of_two(struct kunit *test)
{
	struct ibchan_places places;
	int i;

	for (i = 0; i < ARRAY_SIZE(depths); i++) {
		ibchan_places_init(&places, depths[i]);
		KUNIT_EXPECT_TRUE(test, is_power_of_2(places.mask + 1));
		KUNIT_EXPECT_TRUE_MSG(test, places.mask + 1 >= depths[i] &&
				      (places.mask + 1) / 2 < depths[i], "depth %u", depths[i]);
	}
}

static void the_counters_may_wrap(struct kunit *test)
{
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(depths); i++) {
		struct ibchan_places places = places_near_the_end(depths[i]);

		KUNIT_EXPECT_EQ(test, ibchan_places_in_flight(&places), 0U);
		for (n = 0; n < depths[i]; n++)
			ibchan_places_take(&places, true);
		KUNIT_EXPECT_EQ(test, ibchan_places_in_flight(&places), depths[i]);
		KUNIT_EXPECT_TRUE(test, is_full(&places));
		for (n = depths[i]; n--; ) {
			ibchan_places_give(&places);
			KUNIT_EXPECT_EQ(test, ibchan_places_in_flight(&places), n);
		}
		KUNIT_EXPECT_TRUE_MSG(test, places.retired < depths[i], "it has wrapped");
	}
}

/* Also while the numbers wrap: the slots' count divides 2^32. */
static void no_two_places_in_flight_share_a_slot(struct kunit *test)
{
	static u8 taken[2048];
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(depths); i++) {
		struct ibchan_places places = places_near_the_end(depths[i]);

		memset(taken, 0, sizeof(taken));
		for (n = 0; n < 4 * depths[i]; n++) {
			if (is_full(&places)) {
				taken[places.retired & places.mask] = 0;
				ibchan_places_give(&places);
			}
			KUNIT_EXPECT_EQ(test, taken[places.posted & places.mask], (u8)0);
			taken[places.posted & places.mask] = 1;
			ibchan_places_take(&places, true);
		}
	}
}

static void who_wants_a_completion_asks_for_it(struct kunit *test)
{
	u32 i, n;

	for (i = 0; i < ARRAY_SIZE(depths); i++) {
		struct ibchan_places places;

		ibchan_places_init(&places, depths[i]);
		for (n = 0; n < depths[i]; n++)
			KUNIT_EXPECT_TRUE(test, ibchan_places_take(&places, true));
	}
}

static void a_deep_queue_lets_works_go_without(struct kunit *test)
{
	struct ibchan_places places;

	ibchan_places_init(&places, 16);
	KUNIT_EXPECT_FALSE(test, ibchan_places_take(&places, false));
	KUNIT_EXPECT_FALSE(test, ibchan_places_take(&places, false));
	KUNIT_EXPECT_TRUE(test, ibchan_places_take(&places, true));
	KUNIT_EXPECT_FALSE(test, ibchan_places_take(&places, false));
}

/*
 * The device ends works up to some that asked; all before it go with it. Whatever
 * a caller asks for, a full queue then always has a work that ends it.
 */
static void a_queue_never_fills_with_works_that_none_ends(struct kunit *test)
{
	static u8 asked[2048];
	u32 random = 7, i, n;

	for (i = 0; i < ARRAY_SIZE(depths); i++) {
		struct ibchan_places places = places_near_the_end(depths[i]);

		for (n = 0; n < 20 * depths[i]; n++) {
			u32 slot = places.posted & places.mask;

			asked[slot] = ibchan_places_take(&places, !(next_random(&random) % 64));
			if (!is_full(&places))
				continue;
			while (ibchan_places_in_flight(&places) &&
			       !asked[places.retired & places.mask])
				ibchan_places_give(&places);
			KUNIT_EXPECT_TRUE_MSG(test, ibchan_places_in_flight(&places),
					      "depth %u", depths[i]);
			if (!ibchan_places_in_flight(&places))
				return;
			ibchan_places_give(&places);
		}
	}
}

static void an_undone_work_leaves_its_place_and_lets_the_next_ask(struct kunit *test)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(depths); i++) {
		struct ibchan_places places = places_near_the_end(depths[i]);
		u32 before = places.posted;

		ibchan_places_take(&places, true);
		ibchan_places_untake(&places);
		KUNIT_EXPECT_EQ(test, places.posted, before);
		KUNIT_EXPECT_EQ(test, ibchan_places_in_flight(&places), 0U);
		/* The undone one may have been the one that asked. */
		KUNIT_EXPECT_TRUE(test, ibchan_places_take(&places, false));
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(slots_are_the_next_power_of_two),
	KUNIT_CASE(the_counters_may_wrap),
	KUNIT_CASE(no_two_places_in_flight_share_a_slot),
	KUNIT_CASE(who_wants_a_completion_asks_for_it),
	KUNIT_CASE(a_deep_queue_lets_works_go_without),
	KUNIT_CASE(a_queue_never_fills_with_works_that_none_ends),
	KUNIT_CASE(an_undone_work_leaves_its_place_and_lets_the_next_ask),
	{}
};

struct kunit_suite places_suite = {
	.name = "ibchan_places",
	.test_cases = cases,
};
