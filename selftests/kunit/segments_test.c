// SPDX-License-Identifier: GPL-2.0-only
/* segments.c against looking at each byte. */
#include <linux/kernel.h>

#include "cases.h"

#define MAX_SEGMENTS	9U
#define MAX_LENGTH	200U

/* Sorted starts, the first 0, and the end of the region behind the last. */
static u32 make_layout(struct ibchan_segment *segments, u32 num, u32 *random)
{
	u32 start = 0, i;

	for (i = 0; i < num; i++) {
		segments[i] = (struct ibchan_segment){ .start = start };
		start += 1 + next_random(random) % (MAX_LENGTH / MAX_SEGMENTS - 1);
	}
	segments[num] = (struct ibchan_segment){ .start = start };
	return start;
}

static u32 find_slowly(const struct ibchan_segment *segments, u64 offset)
{
	u32 i = 0;

	while (offset >= segments[i + 1].start)
		i++;
	return i;
}

static void each_byte_lies_in_the_segment_around_it(struct kunit *test)
{
	struct ibchan_segment segments[MAX_SEGMENTS + 1];
	u32 random = 20261121, round, num, length, offset;

	for (round = 0; round < 50; round++)
		for (num = 1; num <= MAX_SEGMENTS; num++) {
			length = make_layout(segments, num, &random);
			for (offset = 0; offset < length; offset++)
				KUNIT_EXPECT_EQ_MSG(test,
						    ibchan_segments_find(segments, num, offset),
						    find_slowly(segments, offset),
						    "%u of %u segments", offset, num);
		}
}

static void a_range_touches_the_segments_of_its_bytes(struct kunit *test)
{
	struct ibchan_segment segments[MAX_SEGMENTS + 1];
	u32 random = 3, first, last, length, touched;

	length = make_layout(segments, MAX_SEGMENTS, &random);
	for (first = 0; first < length; first++)
		for (last = first; last < length; last++) {
			touched = find_slowly(segments, last) - find_slowly(segments, first) + 1;
			KUNIT_EXPECT_EQ_MSG(test,
					    ibchan_segments_count(segments, MAX_SEGMENTS, first,
								  last - first + 1),
					    touched, "%u to %u", first, last);
		}
}

static void a_region_in_one_segment_has_one_for_every_range(struct kunit *test)
{
	const struct ibchan_segment whole[] = { { .start = 0 }, { .start = U64_MAX } };

	KUNIT_EXPECT_EQ(test, ibchan_segments_find(whole, 1, 0), 0U);
	KUNIT_EXPECT_EQ(test, ibchan_segments_find(whole, 1, U64_MAX - 1), 0U);
	KUNIT_EXPECT_EQ(test, ibchan_segments_count(whole, 1, 0, U64_MAX), 1U);
	KUNIT_EXPECT_EQ(test, ibchan_segments_count(whole, 1, U64_MAX - 1, 1), 1U);
}

static void segments_beyond_4_gib_are_found(struct kunit *test)
{
	const struct ibchan_segment segments[] = {
		{ .start = 0 }, { .start = 1ULL << 32 }, { .start = 1ULL << 63 },
		{ .start = U64_MAX },
	};

	KUNIT_EXPECT_EQ(test, ibchan_segments_find(segments, 3, U32_MAX), 0U);
	KUNIT_EXPECT_EQ(test, ibchan_segments_find(segments, 3, 1ULL << 32), 1U);
	KUNIT_EXPECT_EQ(test, ibchan_segments_find(segments, 3, (1ULL << 63) - 1), 1U);
	KUNIT_EXPECT_EQ(test, ibchan_segments_find(segments, 3, 1ULL << 63), 2U);
	KUNIT_EXPECT_EQ(test, ibchan_segments_count(segments, 3, U32_MAX, 2), 2U);
	KUNIT_EXPECT_EQ(test, ibchan_segments_count(segments, 3, 0, U64_MAX), 3U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_byte_lies_in_the_segment_around_it),
	KUNIT_CASE(a_range_touches_the_segments_of_its_bytes),
	KUNIT_CASE(a_region_in_one_segment_has_one_for_every_range),
	KUNIT_CASE(segments_beyond_4_gib_are_found),
	{}
};

struct kunit_suite segments_suite = {
	.name = "ibchan_segments",
	.test_cases = cases,
};
