// SPDX-License-Identifier: GPL-2.0-only
/* check.h and wr.c: elements, bounds, access, lengths. */
#include <linux/kernel.h>

#include "check.h"
#include "wr_fixture.h"

static void a_range_fits_when_its_bytes_are_inside(struct kunit *test)
{
	static const struct {
		u64 offset, length, size;
		bool fits;
	} rows[] = {
		{ 0, 0, 0, true },
		{ 0, 1, 0, false },
		{ 1, 0, 0, false },
		{ 0, U64_MAX, U64_MAX, true },
		{ 1, U64_MAX, U64_MAX, false },
		{ U64_MAX, U64_MAX, U64_MAX, false },
		{ U64_MAX, 0, U64_MAX, true },
		{ U64_MAX, 1, U64_MAX, false },
		{ U64_MAX, 2, 1, false },
		{ 1ULL << 63, 1ULL << 63, U64_MAX, false },
		{ 1ULL << 63, (1ULL << 63) - 1, U64_MAX, true },
		{ 4095, 1, 4096, true },
		{ 4095, 2, 4096, false },
		{ 4096, 0, 4096, true },
		{ 4097, 0, 4096, false },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, ibchan_range_fits(rows[i].offset, rows[i].length,
							    rows[i].size),
				    rows[i].fits, "row %d", i);
}

static void small_ranges_fit_as_arithmetic_without_wrapping_says(struct kunit *test)
{
	u64 offset, length, size;

	for (size = 0; size < 12; size++)
		for (offset = 0; offset < 14; offset++)
			for (length = 0; length < 14; length++)
				KUNIT_EXPECT_EQ_MSG(test,
						    ibchan_range_fits(offset, length, size),
						    offset + length <= size,
						    "%llu+%llu in %llu", offset, length,
						    size);
}

/* Every opcode that takes elements of any length. */
static const u8 free_opcodes[] = {
	IBCHAN_OP_SEND, IBCHAN_OP_RECV, IBCHAN_OP_WRITE, IBCHAN_OP_READ,
};

static void an_element_may_end_where_its_region_ends(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(free_opcodes); i++) {
		struct ibchan_wr wr;

		wr = element_wr(free_opcodes[i], &wr_fixture.first, 0, FIRST_LENGTH);
		expect_accepted(test, &wr, 1);
		wr = element_wr(free_opcodes[i], &wr_fixture.first, FIRST_LENGTH - 1, 1);
		expect_accepted(test, &wr, 1);
		wr = element_wr(free_opcodes[i], &wr_fixture.first, FIRST_LENGTH, 0);
		expect_accepted(test, &wr, 0);
	}
}

static void expect_outside(struct kunit *test, u8 opcode, u64 offset, u32 length)
{
	struct ibchan_wr wr = element_wr(opcode, &wr_fixture.first, offset, length);

	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_OUT_OF_BOUNDS, 0,
		{ offset, length, FIRST_LENGTH });
}

static void an_element_one_byte_outside_is_refused(struct kunit *test)
{
	u8 opcode;
	int i;

	for_each_opcode(opcode, i) {
		expect_outside(test, opcode, 0, FIRST_LENGTH + 1);
		expect_outside(test, opcode, 1, FIRST_LENGTH);
		expect_outside(test, opcode, FIRST_LENGTH, 1);
		expect_outside(test, opcode, FIRST_LENGTH + 1, 0);
	}
}

static void an_element_that_would_wrap_is_refused(struct kunit *test)
{
	u8 opcode;
	int i;

	for_each_opcode(opcode, i) {
		expect_outside(test, opcode, U64_MAX, 0);
		expect_outside(test, opcode, U64_MAX, 1);
		expect_outside(test, opcode, U64_MAX, U32_MAX);
		expect_outside(test, opcode, U64_MAX - 7, 8);
		expect_outside(test, opcode, U64_MAX - 7, 16);
		expect_outside(test, opcode, 1ULL << 32, 8);
		expect_outside(test, opcode, 0, U32_MAX);
	}
}

/* Some drivers count its bytes in an int, and break the channel at the first message. */
static void a_receive_has_less_than_two_gibibytes(struct kunit *test)
{
	struct ibchan_wr wr = element_wr(IBCHAN_OP_RECV, &wr_fixture.second, 0,
					 IBCHAN_MAX_MESSAGE);
	struct ibchan_sge sges[] = {
		{ .mr = &wr_fixture.second, .length = IBCHAN_MAX_MESSAGE },
		{ .mr = &wr_fixture.second, .length = 1 },
	};

	expect_accepted(test, &wr, 1);
	wr_fixture.sges[0].length++;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_MESSAGE_TOO_LONG, 0,
		{ IBCHAN_MAX_MESSAGE + 1ULL, IBCHAN_MAX_MESSAGE });
	wr = elements_wr(IBCHAN_OP_RECV, sges, 2);
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_MESSAGE_TOO_LONG, 0,
		{ IBCHAN_MAX_MESSAGE + 1ULL, IBCHAN_MAX_MESSAGE });
}

static void the_reason_names_the_first_bad_element(struct kunit *test)
{
	struct ibchan_sge sges[MAX_SGE];
	u32 bad, i;

	for (bad = 0; bad < MAX_SGE; bad++) {
		struct ibchan_wr wr;

		for (i = 0; i < MAX_SGE; i++)
			sges[i] = ibchan_sge_unchecked(&wr_fixture.first,
						       i < bad ? 0 : FIRST_LENGTH, 2);
		wr = elements_wr(IBCHAN_OP_SEND, sges, MAX_SGE);
		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_OUT_OF_BOUNDS, bad,
			{ FIRST_LENGTH, 2, FIRST_LENGTH });
	}
}

static void a_request_has_as_many_elements_as_its_opcode_may(struct kunit *test)
{
	struct ibchan_sge sges[MAX_SGE + 1];
	u32 i;

	for (i = 0; i <= MAX_SGE; i++)
		sges[i] = ibchan_sge_unchecked(&wr_fixture.first, 8 * i, 8);
	for (i = 0; i < ARRAY_SIZE(free_opcodes); i++) {
		u32 max = free_opcodes[i] == IBCHAN_OP_READ ? MAX_READ_SGE : MAX_SGE;
		struct ibchan_wr wr = elements_wr(free_opcodes[i], sges, max);

		expect_accepted(test, &wr, max);
		wr.num_sge = max + 1;
		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS, 0,
			{ max + 1, max });
		wr.num_sge = U16_MAX;
		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS, 0,
			{ U16_MAX, max });
	}
}

static void a_region_of_another_domain_is_refused(struct kunit *test)
{
	u8 opcode;
	int i;

	for_each_opcode(opcode, i) {
		struct ibchan_sge sges[2] = {
			{ .mr = &wr_fixture.first },
			{ .mr = &wr_fixture.foreign, .length = 8 },
		};
		struct ibchan_wr wr = elements_wr(opcode, sges, 2);

		REFUSED(test, &wr, -EXDEV, IBCHAN_REASON_OTHER_PD, 1);
		/* Nothing of it would be touched, and it is as wrong. */
		wr_fixture.sges[1].length = 0;
		REFUSED(test, &wr, -EXDEV, IBCHAN_REASON_OTHER_PD, 1);
		wr_fixture.foreign.extent.pd = &wr_fixture.pd;
		wr_fixture.sges[1].length = 8;
		expect_accepted(test, &wr, 1);
		wr_fixture.foreign.extent.pd = &wr_fixture.other_pd;
	}
}

static void what_the_device_writes_must_be_writable(struct kunit *test)
{
	u8 opcode;
	int i;

	for_each_opcode(opcode, i) {
		struct ibchan_wr wr = element_wr(opcode, &wr_fixture.read_only, 0, 8);

		if (opcode == IBCHAN_OP_SEND || opcode == IBCHAN_OP_WRITE ||
		    opcode == IBCHAN_OP_SEND_INVALIDATE)
			expect_accepted(test, &wr, 1);
		else
			REFUSED(test, &wr, -EACCES, IBCHAN_REASON_MR_ACCESS, 0,
				{ IBCHAN_ACCESS_LOCAL_WRITE, IBCHAN_ACCESS_REMOTE_READ });
		wr_fixture.read_only.extent.allows |= IBCHAN_ACCESS_LOCAL_WRITE;
		expect_accepted(test, &wr, 1);
		wr_fixture.read_only.extent.allows &= ~IBCHAN_ACCESS_LOCAL_WRITE;
	}
}

static void only_a_read_needs_a_sink(struct kunit *test)
{
	u8 opcode;
	int i;

	for_each_opcode(opcode, i) {
		struct ibchan_wr wr = element_wr(opcode, &wr_fixture.first, 0, 8);

		wr_fixture.first.extent.allows &= ~IBCHAN_MAY_SINK;
		if (opcode == IBCHAN_OP_READ)
			REFUSED(test, &wr, -EOPNOTSUPP, IBCHAN_REASON_IWARP, 0, { 1 });
		else
			expect_accepted(test, &wr, 1);
		wr_fixture.first.extent.allows |= IBCHAN_MAY_SINK;
	}
}

static void a_region_that_allows_nothing_was_invalidated(struct kunit *test)
{
	u32 allows = wr_fixture.first.extent.allows;
	u8 opcode;
	int i;

	for_each_opcode(opcode, i) {
		struct ibchan_wr wr = element_wr(opcode, &wr_fixture.first, 0, 8);

		wr_fixture.first.extent.allows = 0;
		REFUSED(test, &wr, -EKEYREVOKED, IBCHAN_REASON_MR_INVALIDATED, 0, {});
		wr_fixture.first.extent.allows = allows;
		expect_accepted(test, &wr, 1);
	}
}

static void an_opcode_scatters_when_the_device_writes_its_elements(struct kunit *test)
{
	u32 opcode;

	for (opcode = 0; opcode < IBCHAN_OPS; opcode++)
		KUNIT_EXPECT_EQ_MSG(test, ibchan_op_scatters(opcode),
				    opcode == IBCHAN_OP_RECV || opcode == IBCHAN_OP_READ ||
				    op_is_atomic(opcode), "opcode %u", opcode);
}

static void a_message_is_as_long_as_the_channel_allows(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(free_opcodes); i++) {
		struct ibchan_wr wr = element_wr(free_opcodes[i], &wr_fixture.second, 0,
						 MAX_MESSAGE);

		expect_accepted(test, &wr, 1);
		wr_fixture.sges[0].length++;
		if (free_opcodes[i] == IBCHAN_OP_RECV)
			expect_accepted(test, &wr, 1);
		else
			REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_MESSAGE_TOO_LONG, 0,
				{ MAX_MESSAGE + 1, MAX_MESSAGE });
	}
}

/* 4 * (2^32 - 1) is a small number in 32 bits. */
static void the_sum_of_the_elements_does_not_wrap(struct kunit *test)
{
	struct ibchan_sge sges[MAX_SGE];
	struct ibchan_wr wr;
	u32 i;

	for (i = 0; i < MAX_SGE; i++)
		sges[i] = ibchan_sge_unchecked(&wr_fixture.second, 0, U32_MAX);
	wr = elements_wr(IBCHAN_OP_SEND, sges, MAX_SGE);
	wr_fixture.bounds.max_message = U32_MAX;
	REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_MESSAGE_TOO_LONG, 0,
		{ 4ULL * U32_MAX, U32_MAX });
	wr.num_sge = 1;
	expect_accepted(test, &wr, 1);
}

static void a_request_stays_inside_the_remote_region(struct kunit *test)
{
	static const u8 opcodes[] = { IBCHAN_OP_WRITE, IBCHAN_OP_READ };
	int i;

	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibchan_wr wr = element_wr(opcodes[i], &wr_fixture.first, 0, 100);

		wr.remote_length = 100;
		expect_accepted(test, &wr, 1);
		wr.remote_length = IBCHAN_REMOTE_UNCHECKED;
		expect_accepted(test, &wr, 1);
		wr.remote_length = 99;
		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_REMOTE_BOUNDS, 0, { 100, 99 });
		wr.remote_length = 1;
		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_REMOTE_BOUNDS, 0, { 100, 1 });
		wr.remote_length = 0;
		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_REMOTE_BOUNDS, 0, { 100, 0 });
	}
}

static const u8 atomic_opcodes[] = { IBCHAN_OP_COMPARE_SWAP, IBCHAN_OP_FETCH_ADD };

static void an_atomic_has_eight_bytes(struct kunit *test)
{
	u32 length;
	int i;

	for (i = 0; i < ARRAY_SIZE(atomic_opcodes); i++)
		for (length = 0; length <= 16; length++) {
			struct ibchan_wr wr = element_wr(atomic_opcodes[i],
							 &wr_fixture.first, 0, length);

			if (length == 8)
				expect_accepted(test, &wr, 1);
			else
				REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_ATOMIC_FORM, 0,
					{ length, wr.remote_addr });
		}
}

static void an_atomic_has_them_in_one_segment(struct kunit *test)
{
	const struct ibchan_sge halves[] = {
		{ .mr = &wr_fixture.first, .offset = 0, .length = 4 },
		{ .mr = &wr_fixture.first, .offset = 4, .length = 4 },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(atomic_opcodes); i++) {
		struct ibchan_wr wr = elements_wr(atomic_opcodes[i], halves, 2);

		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_ATOMIC_FORM, 0,
			{ 8, wr.remote_addr });
		wr = element_wr(atomic_opcodes[i], &wr_fixture.segments, 96, 8);
		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_ATOMIC_FORM, 0,
			{ 8, wr.remote_addr });
		wr = element_wr(atomic_opcodes[i], &wr_fixture.segments, 92, 8);
		expect_accepted(test, &wr, 1);
	}
}

static void an_atomic_names_an_aligned_word(struct kunit *test)
{
	u64 addr;
	int i;

	for (i = 0; i < ARRAY_SIZE(atomic_opcodes); i++)
		for (addr = U64_MAX - 23; addr; addr++) {
			struct ibchan_wr wr = plain_wr(atomic_opcodes[i]);

			wr.remote_addr = addr;
			if (addr % 8)
				REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_ATOMIC_FORM, 0,
					{ 8, addr });
			else
				expect_accepted(test, &wr, 1);
		}
}

static void an_atomic_stays_inside_the_remote_region(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(atomic_opcodes); i++) {
		struct ibchan_wr wr = plain_wr(atomic_opcodes[i]);

		wr.remote_length = 8;
		expect_accepted(test, &wr, 1);
		wr.remote_length = 7;
		REFUSED(test, &wr, -EINVAL, IBCHAN_REASON_REMOTE_BOUNDS, 0, { 8, 7 });
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_range_fits_when_its_bytes_are_inside),
	KUNIT_CASE(small_ranges_fit_as_arithmetic_without_wrapping_says),
	KUNIT_CASE(an_element_may_end_where_its_region_ends),
	KUNIT_CASE(an_element_one_byte_outside_is_refused),
	KUNIT_CASE(an_element_that_would_wrap_is_refused),
	KUNIT_CASE(a_receive_has_less_than_two_gibibytes),
	KUNIT_CASE(the_reason_names_the_first_bad_element),
	KUNIT_CASE(a_request_has_as_many_elements_as_its_opcode_may),
	KUNIT_CASE(a_region_of_another_domain_is_refused),
	KUNIT_CASE(what_the_device_writes_must_be_writable),
	KUNIT_CASE(only_a_read_needs_a_sink),
	KUNIT_CASE(a_region_that_allows_nothing_was_invalidated),
	KUNIT_CASE(an_opcode_scatters_when_the_device_writes_its_elements),
	KUNIT_CASE(a_message_is_as_long_as_the_channel_allows),
	KUNIT_CASE(the_sum_of_the_elements_does_not_wrap),
	KUNIT_CASE(a_request_stays_inside_the_remote_region),
	KUNIT_CASE(an_atomic_has_eight_bytes),
	KUNIT_CASE(an_atomic_has_them_in_one_segment),
	KUNIT_CASE(an_atomic_names_an_aligned_word),
	KUNIT_CASE(an_atomic_stays_inside_the_remote_region),
	{}
};

struct kunit_suite wr_range_suite = {
	.name = "ibchan_wr_range",
	.init = wr_fixture_init,
	.test_cases = cases,
};
