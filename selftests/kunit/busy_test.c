// SPDX-License-Identifier: GPL-2.0-only
/* busy.c: pairs of ranges in every position, and many against a slow oracle. */
#include <linux/bottom_half.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "busy.h"
#include "cases.h"

#define WR_ID(i)	(0x1000000000ULL + (i))

static struct ibchan_busy busy;

static int busy_suite_init(struct kunit *test)
{
	ibchan_busy_init(&busy);
	return 0;
}

/* A range, and how it is claimed. */
struct claim {
	struct ibchan_range range;
	bool writes;
	bool held;
};

static struct claim claim_of(u64 offset, u32 length, bool writes)
{
	return (struct claim){
		.range = { .offset = offset, .length = length, .wr_id = WR_ID(offset) },
		.writes = writes,
	};
}

static int take(struct claim *claim, struct ibchan_reason *reason)
{
	int ret;

	local_bh_disable();
	ret = ibchan_busy_take(&busy, &claim->range, claim->writes, reason);
	local_bh_enable();
	claim->held = !ret;
	return ret;
}

static void release(struct claim *claim)
{
	local_bh_disable();
	ibchan_busy_release(&busy, &claim->range);
	local_bh_enable();
	claim->held = false;
}

static bool overlap(const struct claim *a, const struct claim *b)
{
	return a->range.offset < b->range.offset + b->range.length &&
	       b->range.offset < a->range.offset + a->range.length;
}

static bool conflict(const struct claim *a, const struct claim *b)
{
	return (a->writes || b->writes) && overlap(a, b);
}

/* The second of two must be refused, with the first as the reason, or taken. */
static void expect_pair(struct kunit *test, struct claim a, struct claim b, bool refused)
{
	struct ibchan_reason reason = { .wr = UNTOUCHED, .element = UNTOUCHED };

	KUNIT_EXPECT_EQ(test, take(&a, &reason), 0);
	KUNIT_EXPECT_EQ(test, reason.code, (u32)IBCHAN_REASON_NONE);
	KUNIT_EXPECT_EQ_MSG(test, take(&b, &reason), refused ? -EBUSY : 0,
			    "%llu+%u %d, then %llu+%u %d", a.range.offset, a.range.length,
			    a.writes, b.range.offset, b.range.length, b.writes);
	if (refused)
		expect_reason(test, &reason, &(struct refusal){
			-EBUSY, IBCHAN_REASON_BUSY, UNTOUCHED,
			{ a.range.offset, a.range.length, a.range.wr_id },
		});
	KUNIT_EXPECT_EQ(test, reason.wr, UNTOUCHED);
	release(&a);
	/* What was in the way is gone. */
	if (refused)
		KUNIT_EXPECT_EQ(test, take(&b, NULL), 0);
	if (b.held)
		release(&b);
}

/* In both orders, for every kind of pair. */
static void expect_overlap(struct kunit *test, u64 offset, u32 length, bool overlaps)
{
	int kinds;

	for (kinds = 0; kinds < 4; kinds++) {
		bool writes = kinds & 1, also = kinds & 2;
		struct claim fixed = claim_of(1000, 100, writes);
		struct claim other = claim_of(offset, length, also);
		bool refused = overlaps && (writes || also);

		expect_pair(test, fixed, other, refused);
		expect_pair(test, other, fixed, refused);
	}
}

static void ranges_overlap_when_they_have_a_byte_in_common(struct kunit *test)
{
	expect_overlap(test, 1000, 100, true);
	expect_overlap(test, 999, 102, true);
	expect_overlap(test, 0, U32_MAX, true);
	expect_overlap(test, 0, 1001, true);
	expect_overlap(test, 0, 1000, false);
	expect_overlap(test, 1099, U32_MAX, true);
	expect_overlap(test, 1100, U32_MAX, false);
}

static void each_position_of_a_small_range_is_judged_right(struct kunit *test)
{
	u64 offset;
	u32 length;

	for (offset = 990; offset < 1110; offset++)
		for (length = 1; length < 15; length += 3)
			expect_overlap(test, offset, length,
				       offset < 1100 && offset + length > 1000);
}

static void ranges_at_the_end_of_64_bits_do_not_wrap(struct kunit *test)
{
	struct claim last = claim_of(U64_MAX - 1, 1, true);
	struct claim before = claim_of(U64_MAX - U32_MAX - 1, U32_MAX, true);
	struct claim first = claim_of(0, U32_MAX, true);

	expect_pair(test, last, before, false);
	expect_pair(test, last, first, false);
	expect_pair(test, before, first, false);
	before.range.offset++;
	expect_pair(test, last, before, true);
}

static void readers_share_and_a_writer_waits_for_all_of_them(struct kunit *test)
{
	static struct claim readers[20];
	struct claim writer = claim_of(50, 10, true);
	int i;

	for (i = 0; i < ARRAY_SIZE(readers); i++) {
		readers[i] = claim_of(i, 100, false);
		KUNIT_EXPECT_EQ(test, take(&readers[i], NULL), 0);
	}
	for (i = 0; i < ARRAY_SIZE(readers); i++) {
		KUNIT_EXPECT_EQ(test, take(&writer, NULL), -EBUSY);
		release(&readers[i]);
	}
	KUNIT_EXPECT_EQ(test, take(&writer, NULL), 0);
	release(&writer);
}

static void regions_do_not_know_of_each_other(struct kunit *test)
{
	struct claim ours = claim_of(0, 10, true), theirs = claim_of(0, 10, true);
	struct ibchan_busy other;

	ibchan_busy_init(&other);
	KUNIT_EXPECT_EQ(test, take(&ours, NULL), 0);
	local_bh_disable();
	KUNIT_EXPECT_EQ(test, ibchan_busy_take(&other, &theirs.range, true, NULL), 0);
	ibchan_busy_release(&other, &theirs.range);
	local_bh_enable();
	release(&ours);
}

#define CLAIMS	64

static struct claim claims[CLAIMS];

static bool oracle_refuses(const struct claim *claim)
{
	int i;

	for (i = 0; i < CLAIMS; i++)
		if (claims[i].held && conflict(&claims[i], claim))
			return true;
	return false;
}

/* Is the range in the reason one that is held and in the way? */
static bool reason_is_true(const struct claim *claim, const struct ibchan_reason *reason)
{
	int i;

	for (i = 0; i < CLAIMS; i++)
		if (claims[i].held && conflict(&claims[i], claim) &&
		    claims[i].range.offset == reason->value[0] &&
		    claims[i].range.length == reason->value[1] &&
		    claims[i].range.wr_id == reason->value[2])
			return true;
	return false;
}

static void step(struct kunit *test, u32 *random, u32 num)
{
	u32 i = next_random(random) % num;
	struct ibchan_reason reason = {};
	struct claim claim;
	bool refused;
	int ret;

	if (claims[i].held) {
		release(&claims[i]);
		return;
	}
	claim = claim_of(next_random(random) % 600, 1 + next_random(random) % 30,
			 next_random(random) % 3 == 0);
	claim.range.wr_id = WR_ID(i);
	refused = oracle_refuses(&claim);
	claims[i] = claim;
	ret = take(&claims[i], &reason);
	KUNIT_EXPECT_EQ_MSG(test, ret, refused ? -EBUSY : 0, "%llu+%u",
			    claim.range.offset, claim.range.length);
	if (ret)
		KUNIT_EXPECT_TRUE(test, reason_is_true(&claim, &reason));
}

static void judge_at_random(struct kunit *test, u32 num)
{
	struct claim all = claim_of(0, 1000, true);
	u32 random = 0x1bc4a11, n;

	memset(claims, 0, sizeof(claims));
	for (n = 0; n < 50000; n++)
		step(test, &random, num);
	for (n = 0; n < num; n++)
		if (claims[n].held)
			release(&claims[n]);
	KUNIT_EXPECT_EQ(test, take(&all, NULL), 0);
	release(&all);
}

static void many_ranges_are_judged_as_by_looking_at_each(struct kunit *test)
{
	judge_at_random(test, CLAIMS);
}

/* So few that one is often alone, and comes and goes beside each kind of another. */
static void few_ranges_are_judged_as_by_looking_at_each(struct kunit *test)
{
	judge_at_random(test, 3);
}

/* More than wait unsorted; each by itself is in the way of a writer, wherever it waits. */
#define READERS	(IBCHAN_BUSY_MAX_LISTED + 6)

static void a_writer_meets_each_of_many_readers(struct kunit *test)
{
	static struct claim readers[READERS];
	struct claim writer, all = claim_of(0, 8 * READERS, true);
	int i;

	for (i = 0; i < READERS; i++) {
		readers[i] = claim_of(8 * i, 8, false);
		KUNIT_EXPECT_EQ(test, take(&readers[i], NULL), 0);
	}
	for (i = 0; i < READERS; i++) {
		writer = claim_of(8 * i + 7, 1, true);
		KUNIT_EXPECT_EQ(test, take(&writer, NULL), -EBUSY);
	}
	/* Some were sorted by that, and others come behind them. */
	for (i = 0; i < READERS; i += 2) {
		release(&readers[i]);
		KUNIT_EXPECT_EQ(test, take(&readers[i], NULL), 0);
	}
	for (i = 0; i < READERS; i++) {
		KUNIT_EXPECT_EQ(test, take(&all, NULL), -EBUSY);
		release(&readers[i]);
	}
	KUNIT_EXPECT_EQ(test, take(&all, NULL), 0);
	release(&all);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(few_ranges_are_judged_as_by_looking_at_each),
	KUNIT_CASE(a_writer_meets_each_of_many_readers),
	KUNIT_CASE(ranges_overlap_when_they_have_a_byte_in_common),
	KUNIT_CASE(each_position_of_a_small_range_is_judged_right),
	KUNIT_CASE(ranges_at_the_end_of_64_bits_do_not_wrap),
	KUNIT_CASE(readers_share_and_a_writer_waits_for_all_of_them),
	KUNIT_CASE(regions_do_not_know_of_each_other),
	KUNIT_CASE(many_ranges_are_judged_as_by_looking_at_each),
	{}
};

struct kunit_suite busy_suite = {
	.name = "ibchan_busy",
	.init = busy_suite_init,
	.test_cases = cases,
};
