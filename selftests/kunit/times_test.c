// SPDX-License-Identifier: GPL-2.0-only
/* params.c: what each code of a time stands for, and how long all tries take together. */
#include <linux/kernel.h>

#include "cases.h"

#define CODES		32
#define ENDLESS		7
#define MAX_RETRIES	6

/* As the InfiniBand specification lists them, in units of 10 us. */
static const u32 rnr_units[CODES] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
	1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152
};

static struct ibchan_times times_of(u32 ack_timeout, u32 ack_retries)
{
	const struct ibchan_params params = {
		.ack_timeout = ack_timeout, .ack_retries = ack_retries,
	};
	struct ibchan_times times;

	memset(&times, 0xa5, sizeof(times));
	ibchan_times_fill(&params, &times);
	return times;
}

static void each_code_of_the_rnr_timer_is_as_the_specification_lists_it(struct kunit *test)
{
	struct ibchan_params params = {};
	struct ibchan_times times;
	u32 code;

	for (code = 0; code < CODES; code++) {
		params.min_rnr_timer = code;
		ibchan_times_fill(&params, &times);
		KUNIT_EXPECT_EQ_MSG(test, times.rnr_timer_ns, rnr_units[code] * 10000LL,
				    "code %u", code);
	}
}

static void each_code_of_the_ack_timeout_doubles_the_one_before(struct kunit *test)
{
	s64 want = 8192;
	u32 code;

	for (code = 1; code < CODES; code++, want *= 2)
		KUNIT_EXPECT_EQ_MSG(test, times_of(code, 0).ack_timeout_ns, want, "code %u", code);
	KUNIT_EXPECT_EQ(test, times_of(31, 0).ack_timeout_ns, 8796093022208LL);
}

static void an_ack_timeout_of_0_never_ends(struct kunit *test)
{
	u32 retries;

	for (retries = 0; retries <= ENDLESS; retries++) {
		KUNIT_EXPECT_EQ(test, times_of(0, retries).ack_timeout_ns,
				(s64)IBCHAN_TIMEOUT_NEVER);
		KUNIT_EXPECT_EQ(test, times_of(0, retries).worst_case_ns,
				(s64)IBCHAN_TIMEOUT_NEVER);
	}
}

/* A device may take four times as long for each try, and the first is not a retry. */
static void the_worst_case_is_four_times_all_tries(struct kunit *test)
{
	u32 code, retries;

	for (code = 1; code < CODES; code++)
		for (retries = 0; retries <= MAX_RETRIES; retries++)
			KUNIT_EXPECT_EQ_MSG(test, times_of(code, retries).worst_case_ns,
					    (16384LL << code) * (retries + 1),
					    "code %u, %u retries", code, retries);
	KUNIT_EXPECT_EQ(test, times_of(31, MAX_RETRIES).worst_case_ns, 246290604621824LL);
}

static void seven_retries_have_no_worst_case(struct kunit *test)
{
	u32 code;

	for (code = 0; code < CODES; code++)
		KUNIT_EXPECT_EQ(test, times_of(code, ENDLESS).worst_case_ns,
				(s64)IBCHAN_TIMEOUT_NEVER);
	KUNIT_EXPECT_EQ(test, times_of(1, ENDLESS).ack_timeout_ns, 8192);
}

static void counts_are_told_as_they_are(struct kunit *test)
{
	struct ibchan_params params = {};
	struct ibchan_times times;
	u32 count;

	for (count = 0; count <= ENDLESS; count++) {
		params.ack_retries = count;
		params.rnr_retries = ENDLESS - count;
		ibchan_times_fill(&params, &times);
		KUNIT_EXPECT_EQ(test, times.ack_retries, count);
		KUNIT_EXPECT_EQ(test, times.rnr_retries, ENDLESS - count);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_code_of_the_rnr_timer_is_as_the_specification_lists_it),
	KUNIT_CASE(each_code_of_the_ack_timeout_doubles_the_one_before),
	KUNIT_CASE(an_ack_timeout_of_0_never_ends),
	KUNIT_CASE(the_worst_case_is_four_times_all_tries),
	KUNIT_CASE(seven_retries_have_no_worst_case),
	KUNIT_CASE(counts_are_told_as_they_are),
	{}
};

struct kunit_suite times_suite = {
	.name = "ibchan_times",
	.test_cases = cases,
};
