// SPDX-License-Identifier: GPL-2.0-only
/* check.h and wr.c: opcodes, flags, inline data. */
#include <linux/bits.h>
#include <linux/kernel.h>

#include "wr_fixture.h"

#define OUTGOING	(IBCHAN_WR_FENCE | IBCHAN_WR_UNSIGNALED | IBCHAN_WR_EXCLUSIVE)
#define MESSAGE		(OUTGOING | IBCHAN_WR_IMM | IBCHAN_WR_SOLICITED | IBCHAN_WR_INLINE)
#define UNKNOWN_FLAGS	(0xff & ~IBCHAN_WR_ALL_FLAGS)

/* What <rdma/ibchan.h> says, apart from the table in wr.c. */
static u8 documented_flags(u8 opcode)
{
	switch (opcode) {
	case IBCHAN_OP_SEND:
		return MESSAGE;
	case IBCHAN_OP_WRITE:
		return MESSAGE | IBCHAN_WR_SGL;
	case IBCHAN_OP_READ:
		return OUTGOING | IBCHAN_WR_SGL;
	case IBCHAN_OP_SEND_INVALIDATE:
		return MESSAGE & ~IBCHAN_WR_IMM;
	case IBCHAN_OP_RECV:
		return IBCHAN_WR_EXCLUSIVE;
	default:
		return OUTGOING;
	}
}

/* Inline data stands in for elements. */
static struct ibchan_wr flagged_wr(u8 opcode, u8 flags)
{
	struct ibchan_wr wr = plain_wr(opcode);

	wr.flags = flags;
	if (flags & IBCHAN_WR_INLINE)
		wr.num_sge = 0;
	return wr;
}

static void every_opcode_is_accepted_with_one_element(struct kunit *test)
{
	u8 opcode;
	int i;

	for_each_opcode(opcode, i) {
		struct ibchan_wr wr = plain_wr(opcode);

		expect_accepted(test, &wr, 1);
	}
}

static void all_but_an_atomic_may_have_no_element(struct kunit *test)
{
	u8 opcode;
	int i;

	for_each_opcode(opcode, i) {
		struct ibchan_wr wr = plain_wr(opcode);

		wr.num_sge = 0;
		wr.sges = NULL;
		if (op_is_atomic(opcode))
			REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_ATOMIC_FORM, 0,
				{ 0, wr.remote_addr });
		else
			expect_accepted(test, &wr, 0);
	}
}

static void an_opcode_behind_the_last_is_refused(struct kunit *test)
{
	u32 opcode;

	for (opcode = IBCHAN_OP_FETCH_ADD + 1; opcode <= U8_MAX; opcode++) {
		struct ibchan_wr wr = plain_wr(opcode);

		if (opcode == IBCHAN_OP_SEND_INVALIDATE)
			continue;
		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_OPCODE, 0, { opcode });
	}
}

static void a_service_channel_takes_two_opcodes_more(struct kunit *test)
{
	struct ibchan_wr wr = { .opcode = IBCHAN_OP_REGISTER };

	wr_fixture.bounds.service = 1;
	expect_accepted(test, &wr, 0);
	wr.opcode = IBCHAN_OP_INVALIDATE;
	expect_accepted(test, &wr, 0);
	wr.opcode = IBCHAN_OPS;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_OPCODE, 0, { IBCHAN_OPS });
	wr.opcode = U8_MAX;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_OPCODE, 0, { U8_MAX });
}

static void a_device_without_atomics_refuses_them_and_nothing_else(struct kunit *test)
{
	u8 opcode;
	int i;

	wr_fixture.bounds.caps = ~IBCHAN_DEVICE_ATOMICS;
	for_each_opcode(opcode, i) {
		struct ibchan_wr wr = plain_wr(opcode);

		if (op_is_atomic(opcode))
			REFUSED(test, &wr, -EOPNOTSUPP, IBCHAN_REASON_OPCODE, 0, { opcode });
		else
			expect_accepted(test, &wr, 1);
	}
}

static void a_peer_without_resources_gets_no_reads_and_atomics_and_all_else(struct kunit *test)
{
	u8 opcode;
	int i;

	wr_fixture.bounds.max_rd_atomic = 0;
	for_each_opcode(opcode, i) {
		struct ibchan_wr wr = plain_wr(opcode);

		if (op_is_atomic(opcode) || opcode == IBCHAN_OP_READ)
			REFUSED(test, &wr, -EOPNOTSUPP, IBCHAN_REASON_PEER_NO_READS, 0, { opcode });
		else
			expect_accepted(test, &wr, 1);
	}
}

static void an_opcode_takes_each_flag_that_is_its_own(struct kunit *test)
{
	u8 opcode, flag;
	int i, bit;

	for_each_opcode(opcode, i) {
		for (bit = 0; bit < 8; bit++) {
			struct ibchan_wr wr;

			flag = BIT(bit);
			if (!(documented_flags(opcode) & flag))
				continue;
			/* A write wakes somebody only with an immediate. */
			if (opcode == IBCHAN_OP_WRITE && flag == IBCHAN_WR_SOLICITED)
				flag |= IBCHAN_WR_IMM;
			wr = flagged_wr(opcode, flag);
			expect_accepted(test, &wr, flag & IBCHAN_WR_INLINE ? 0 : 1);
		}
	}
}

static void a_device_without_immediates_refuses_them_and_nothing_else(struct kunit *test)
{
	u8 opcode, flag, impossible, allowed;
	int i, bit;

	wr_fixture.bounds.caps &= ~IBCHAN_DEVICE_IMMEDIATE;
	for_each_opcode(opcode, i) {
		impossible = opcode == IBCHAN_OP_READ ? IBCHAN_WR_FENCE : IBCHAN_WR_IMM;
		allowed = documented_flags(opcode);
		for (bit = 0; bit < 8; bit++) {
			struct ibchan_wr wr = flagged_wr(opcode, BIT(bit));

			flag = BIT(bit);
			if (!(documented_flags(opcode) & flag) || flag == IBCHAN_WR_SOLICITED)
				continue;
			if (flag == impossible)
				REFUSED(test, &wr, -EOPNOTSUPP, IBCHAN_REASON_WR_FLAGS, 0,
					{ flag, allowed & ~impossible });
			else
				expect_accepted(test, &wr, flag & IBCHAN_WR_INLINE ? 0 : 1);
		}
	}
}

static void a_channel_without_exclusive_ranges_refuses_them_and_nothing_else(struct kunit *test)
{
	u8 opcode;
	int i;

	wr_fixture.bounds.odd = ibchan_odd_head(false);
	for_each_opcode(opcode, i) {
		u8 others = documented_flags(opcode) & ~(IBCHAN_WR_SGL | IBCHAN_WR_EXCLUSIVE);
		struct ibchan_wr wr = flagged_wr(opcode, others);

		expect_accepted(test, &wr, wr.num_sge);
		wr.flags |= IBCHAN_WR_EXCLUSIVE;
		REFUSED(test, &wr, -EOPNOTSUPP, IBCHAN_REASON_WR_FLAGS, 0,
			{ wr.flags, documented_flags(opcode) & ~IBCHAN_WR_EXCLUSIVE });
	}
}

static void a_list_takes_neither_data_nor_exclusive_ranges(struct kunit *test)
{
	const u8 wrong = IBCHAN_WR_INLINE | IBCHAN_WR_EXCLUSIVE;
	u8 opcode, allowed;
	int i, bit;

	for_each_opcode(opcode, i) {
		struct ibchan_wr wr = plain_wr(opcode);

		allowed = documented_flags(opcode);
		if (!(allowed & IBCHAN_WR_SGL))
			continue;
		wr.flags = allowed & ~wrong;
		expect_accepted(test, &wr, 1);
		for (bit = 0; bit < 8; bit++) {
			if (!(BIT(bit) & wrong))
				continue;
			wr.flags = IBCHAN_WR_SGL | BIT(bit);
			if (opcode == IBCHAN_OP_WRITE)
				wr.flags |= IBCHAN_WR_IMM;
			REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_WR_FLAGS, 0,
				{ wr.flags, allowed & ~wrong });
		}
	}
}

static void a_list_has_as_many_entries_as_the_channel_takes(struct kunit *test)
{
	struct ibchan_wr wr = plain_wr(IBCHAN_OP_WRITE);

	wr.flags = IBCHAN_WR_SGL;
	wr_fixture.bounds.max_sgl = 1;
	expect_accepted(test, &wr, 1);
	wr_fixture.bounds.max_sgl = 0;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS, 0, { 1, 0 });
}

static void an_opcode_refuses_each_flag_of_another(struct kunit *test)
{
	u8 opcode;
	int i, bit;

	for_each_opcode(opcode, i) {
		u8 allowed = documented_flags(opcode);

		if (opcode == IBCHAN_OP_WRITE)
			allowed &= ~IBCHAN_WR_SOLICITED;
		for (bit = 0; bit < 8; bit++) {
			struct ibchan_wr wr = flagged_wr(opcode, BIT(bit));

			if (!(BIT(bit) & ~allowed & IBCHAN_WR_ALL_FLAGS))
				continue;
			REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_WR_FLAGS, 0,
				{ BIT(bit), allowed });
		}
	}
}

static void an_unknown_flag_is_told_from_a_wrong_one(struct kunit *test)
{
	int bit;

	for (bit = 0; bit < 8; bit++) {
		struct ibchan_wr wr = flagged_wr(IBCHAN_OP_SEND, BIT(bit));

		if (!(BIT(bit) & UNKNOWN_FLAGS))
			continue;
		REFUSED(test, &wr, -EOPNOTSUPP, IBCHAN_REASON_WR_FLAGS, 0,
			{ BIT(bit), MESSAGE });
		wr.flags |= IBCHAN_WR_FENCE;
		REFUSED(test, &wr, -EOPNOTSUPP, IBCHAN_REASON_WR_FLAGS, 0,
			{ BIT(bit) | IBCHAN_WR_FENCE, MESSAGE });
	}
}

static void a_write_is_solicited_only_with_an_immediate(struct kunit *test)
{
	struct ibchan_wr wr = flagged_wr(IBCHAN_OP_WRITE, IBCHAN_WR_SOLICITED);

	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_WR_FLAGS, 0,
		{ IBCHAN_WR_SOLICITED, (MESSAGE & ~IBCHAN_WR_SOLICITED) | IBCHAN_WR_SGL });
	wr.flags |= IBCHAN_WR_IMM;
	expect_accepted(test, &wr, 1);
}

static void inline_data_and_elements_exclude_each_other(struct kunit *test)
{
	struct ibchan_wr wr = plain_wr(IBCHAN_OP_SEND);
	static const u8 bytes[8];

	wr.flags = IBCHAN_WR_INLINE;
	wr.data = bytes;
	wr.data_length = sizeof(bytes);
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS, 0, { 1, 0 });
	wr.num_sge = 0;
	expect_accepted(test, &wr, 0);
}

static void inline_data_is_as_long_as_the_channel_allows(struct kunit *test)
{
	struct ibchan_wr wr = flagged_wr(IBCHAN_OP_SEND, IBCHAN_WR_INLINE);
	static const u8 bytes[MAX_INLINE];

	wr.data = bytes;
	wr.data_length = MAX_INLINE;
	expect_accepted(test, &wr, 0);
	wr.data_length = MAX_INLINE + 1;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_INLINE_TOO_LONG, 0,
		{ MAX_INLINE + 1, MAX_INLINE });
	wr.data_length = U32_MAX;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_INLINE_TOO_LONG, 0,
		{ U32_MAX, MAX_INLINE });
}

static void a_channel_without_inline_data_takes_only_the_empty_one(struct kunit *test)
{
	struct ibchan_wr wr = flagged_wr(IBCHAN_OP_WRITE, IBCHAN_WR_INLINE);
	static const u8 byte;

	wr_fixture.bounds.max_inline = 0;
	expect_accepted(test, &wr, 0);
	wr.data = &byte;
	wr.data_length = 1;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_INLINE_TOO_LONG, 0, { 1, 0 });
}

static void inline_data_stays_inside_the_remote_region(struct kunit *test)
{
	struct ibchan_wr wr = flagged_wr(IBCHAN_OP_WRITE, IBCHAN_WR_INLINE);
	static const u8 bytes[MAX_INLINE];

	wr.data = bytes;
	wr.data_length = 16;
	wr.remote_length = 16;
	expect_accepted(test, &wr, 0);
	wr.remote_length = 15;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_REMOTE_BOUNDS, 0, { 16, 15 });
	wr.remote_length = IBCHAN_REMOTE_UNCHECKED;
	expect_accepted(test, &wr, 0);
}

static void inline_data_is_no_longer_than_a_message(struct kunit *test)
{
	struct ibchan_wr wr = flagged_wr(IBCHAN_OP_SEND, IBCHAN_WR_INLINE);
	static const u8 bytes[MAX_INLINE];

	wr_fixture.bounds.max_message = 32;
	wr.data = bytes;
	wr.data_length = 32;
	expect_accepted(test, &wr, 0);
	wr.data_length = 33;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_MESSAGE_TOO_LONG, 0, { 33, 32 });
}

static struct kunit_case cases[] = {
	KUNIT_CASE(every_opcode_is_accepted_with_one_element),
	KUNIT_CASE(all_but_an_atomic_may_have_no_element),
	KUNIT_CASE(an_opcode_behind_the_last_is_refused),
	KUNIT_CASE(a_service_channel_takes_two_opcodes_more),
	KUNIT_CASE(a_device_without_atomics_refuses_them_and_nothing_else),
	KUNIT_CASE(a_peer_without_resources_gets_no_reads_and_atomics_and_all_else),
	KUNIT_CASE(a_device_without_immediates_refuses_them_and_nothing_else),
	KUNIT_CASE(a_channel_without_exclusive_ranges_refuses_them_and_nothing_else),
	KUNIT_CASE(an_opcode_takes_each_flag_that_is_its_own),
	KUNIT_CASE(a_list_takes_neither_data_nor_exclusive_ranges),
	KUNIT_CASE(a_list_has_as_many_entries_as_the_channel_takes),
	KUNIT_CASE(an_opcode_refuses_each_flag_of_another),
	KUNIT_CASE(an_unknown_flag_is_told_from_a_wrong_one),
	KUNIT_CASE(a_write_is_solicited_only_with_an_immediate),
	KUNIT_CASE(inline_data_and_elements_exclude_each_other),
	KUNIT_CASE(inline_data_is_as_long_as_the_channel_allows),
	KUNIT_CASE(a_channel_without_inline_data_takes_only_the_empty_one),
	KUNIT_CASE(inline_data_stays_inside_the_remote_region),
	KUNIT_CASE(inline_data_is_no_longer_than_a_message),
	{}
};

struct kunit_suite wr_form_suite = {
	.name = "ibchan_wr_form",
	.init = wr_fixture_init,
	.test_cases = cases,
};
