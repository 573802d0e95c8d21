// SPDX-License-Identifier: GPL-2.0-only
/* status.c: all pairs of states, and what a post answers in each. */
#include <linux/kernel.h>

#include "cases.h"

#define STATES		(IBCHAN_CHANNEL_CLOSED + 1)

/* Row: from; column: to. */
static const char * const allowed[STATES] = {
	[IBCHAN_CHANNEL_PREPARED] =	"-C-BX",
	[IBCHAN_CHANNEL_CONNECTING] =	"P-RBX",
	[IBCHAN_CHANNEL_CONNECTED] =	"---BX",
	[IBCHAN_CHANNEL_BROKEN] =	"----X",
	[IBCHAN_CHANNEL_CLOSED] =	"-----",
};

static void each_of_the_25_transitions_is_as_drawn(struct kunit *test)
{
	u32 from, to;

	for (from = 0; from < STATES; from++)
		for (to = 0; to < STATES; to++)
			KUNIT_EXPECT_EQ_MSG(test, ibchan_state_may(from, to),
					    allowed[from][to] != '-', "%u to %u", from, to);
}

static void nothing_comes_from_or_goes_to_an_unknown_state(struct kunit *test)
{
	static const u32 far[] = { 32, 255, 256, 1U << 31, U32_MAX };
	u32 state, unknown;
	int i;

	for (state = 0; state < STATES; state++) {
		for (unknown = STATES; unknown < 32; unknown++) {
			KUNIT_EXPECT_FALSE(test, ibchan_state_may(unknown, state));
			KUNIT_EXPECT_FALSE(test, ibchan_state_may(state, unknown));
		}
		for (i = 0; i < ARRAY_SIZE(far); i++)
			KUNIT_EXPECT_FALSE(test, ibchan_state_may(far[i], state));
	}
}

static void only_a_connected_channel_takes_work(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ibchan_state_error(IBCHAN_CHANNEL_CONNECTED, 0), 0);
	KUNIT_EXPECT_EQ(test, ibchan_state_error(IBCHAN_CHANNEL_PREPARED, 0), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, ibchan_state_error(IBCHAN_CHANNEL_CONNECTING, 0), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, ibchan_state_error(IBCHAN_CHANNEL_BROKEN, 0), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, ibchan_state_error(IBCHAN_CHANNEL_CLOSED, 0), -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, ibchan_state_error(U32_MAX, 0), -ESHUTDOWN);
}

static void a_device_that_is_gone_is_told_from_a_broken_channel(struct kunit *test)
{
	static const u32 ended[] = { IBCHAN_CHANNEL_BROKEN, IBCHAN_CHANNEL_CLOSED };
	u32 error;
	int i;

	for (i = 0; i < ARRAY_SIZE(ended); i++)
		for (error = 0; error < 140; error++)
			KUNIT_EXPECT_EQ_MSG(test, ibchan_state_error(ended[i], error),
					    error == ENODEV ? -ENODEV : -ESHUTDOWN,
					    "state %u, error %u", ended[i], error);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_of_the_25_transitions_is_as_drawn),
	KUNIT_CASE(nothing_comes_from_or_goes_to_an_unknown_state),
	KUNIT_CASE(only_a_connected_channel_takes_work),
	KUNIT_CASE(a_device_that_is_gone_is_told_from_a_broken_channel),
	{}
};

struct kunit_suite state_suite = {
	.name = "ibchan_state",
	.test_cases = cases,
};
