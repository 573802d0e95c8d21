// SPDX-License-Identifier: GPL-2.0-only
/* pieces.c against looking at each byte. */
#include <linux/kernel.h>

#include "cases.h"

#define MAX_PIECES	9U
#define MAX_LENGTH	200U

/* Sorted starts, the first 0, and the end of the region behind the last. */
static u32 make_layout(struct ibchan_piece *pieces, u32 num, u32 *random)
{
	u32 start = 0, i;

	for (i = 0; i < num; i++) {
		pieces[i] = (struct ibchan_piece){ .start = start };
		start += 1 + next_random(random) % (MAX_LENGTH / MAX_PIECES - 1);
	}
	pieces[num] = (struct ibchan_piece){ .start = start };
	return start;
}

static u32 find_slowly(const struct ibchan_piece *pieces, u64 offset)
{
	u32 i = 0;

	while (offset >= pieces[i + 1].start)
		i++;
	return i;
}

static void each_byte_lies_in_the_piece_around_it(struct kunit *test)
{
	struct ibchan_piece pieces[MAX_PIECES + 1];
	u32 random = 20261121, round, num, length, offset;

	for (round = 0; round < 50; round++)
		for (num = 1; num <= MAX_PIECES; num++) {
			length = make_layout(pieces, num, &random);
			for (offset = 0; offset < length; offset++)
				KUNIT_EXPECT_EQ_MSG(test,
						    ibchan_pieces_find(pieces, num, offset),
						    find_slowly(pieces, offset),
						    "%u of %u pieces", offset, num);
		}
}

static void a_range_touches_the_pieces_of_its_bytes(struct kunit *test)
{
	struct ibchan_piece pieces[MAX_PIECES + 1];
	u32 random = 3, first, last, length, touched;

	length = make_layout(pieces, MAX_PIECES, &random);
	for (first = 0; first < length; first++)
		for (last = first; last < length; last++) {
			touched = find_slowly(pieces, last) - find_slowly(pieces, first) + 1;
			KUNIT_EXPECT_EQ_MSG(test,
					    ibchan_pieces_count(pieces, MAX_PIECES, first,
								last - first + 1),
					    touched, "%u to %u", first, last);
		}
}

static void a_region_in_one_piece_has_one_for_every_range(struct kunit *test)
{
	const struct ibchan_piece whole[] = { { .start = 0 }, { .start = U64_MAX } };

	KUNIT_EXPECT_EQ(test, ibchan_pieces_find(whole, 1, 0), 0U);
	KUNIT_EXPECT_EQ(test, ibchan_pieces_find(whole, 1, U64_MAX - 1), 0U);
	KUNIT_EXPECT_EQ(test, ibchan_pieces_count(whole, 1, 0, U64_MAX), 1U);
	KUNIT_EXPECT_EQ(test, ibchan_pieces_count(whole, 1, U64_MAX - 1, 1), 1U);
}

static void pieces_beyond_4_gib_are_found(struct kunit *test)
{
	const struct ibchan_piece pieces[] = {
		{ .start = 0 }, { .start = 1ULL << 32 }, { .start = 1ULL << 63 },
		{ .start = U64_MAX },
	};

	KUNIT_EXPECT_EQ(test, ibchan_pieces_find(pieces, 3, U32_MAX), 0U);
	KUNIT_EXPECT_EQ(test, ibchan_pieces_find(pieces, 3, 1ULL << 32), 1U);
	KUNIT_EXPECT_EQ(test, ibchan_pieces_find(pieces, 3, (1ULL << 63) - 1), 1U);
	KUNIT_EXPECT_EQ(test, ibchan_pieces_find(pieces, 3, 1ULL << 63), 2U);
	KUNIT_EXPECT_EQ(test, ibchan_pieces_count(pieces, 3, U32_MAX, 2), 2U);
	KUNIT_EXPECT_EQ(test, ibchan_pieces_count(pieces, 3, 0, U64_MAX), 3U);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_byte_lies_in_the_piece_around_it),
	KUNIT_CASE(a_range_touches_the_pieces_of_its_bytes),
	KUNIT_CASE(a_region_in_one_piece_has_one_for_every_range),
	KUNIT_CASE(pieces_beyond_4_gib_are_found),
	{}
};

struct kunit_suite pieces_suite = {
	.name = "ibchan_pieces",
	.test_cases = cases,
};
