// SPDX-License-Identifier: GPL-2.0-only
/*
 * The short way of a post checks everything at once. It has to agree with the long
 * one: here for every combination of what matters.
 */
#include <linux/kernel.h>

#include "check.h"
#include "wr_fixture.h"

static const u64 offsets[] = { 0, 1, FIRST_LENGTH - 1, FIRST_LENGTH, U64_MAX };
static const u32 lengths[] = { 0, 1, 8, FIRST_LENGTH, MAX_MESSAGE + 1, U32_MAX };
static const u64 remote_lengths[] = { 0, 1, 8, IBCHAN_REMOTE_UNCHECKED };

/* What the two short ways let pass: for who brings a work, and by wr_id. */
static const u8 passing[] = { 0, IBCHAN_WR_EXCLUSIVE };

static bool is_plain(const struct ibchan_wr *wr, u8 flags)
{
	return wr->opcode == IBCHAN_OP_RECV ?
	       ibchan_recv_is_plain(&wr_fixture.ch, wr, flags) :
	       ibchan_send_is_plain(&wr_fixture.ch, wr, flags);
}

/* What the short way is for. */
static bool may_be_plain(const struct ibchan_wr *wr, u8 flags)
{
	return wr->num_sge == 1 && !(wr->flags & ~flags) && wr->opcode <= IBCHAN_OP_READ &&
	       wr->sges[0].length && !wr->sges[0].mr->pieces;
}

typedef void (*visit_fn)(struct kunit *test, const struct ibchan_wr *wr);

static void visit_ranges(struct kunit *test, struct ibchan_wr *wr, visit_fn visit)
{
	struct ibchan_sge *sge = &wr->sges[0];
	int i, j, k;

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		sge->offset = offsets[i];
		for (j = 0; j < ARRAY_SIZE(lengths); j++) {
			sge->length = lengths[j];
			for (k = 0; k < ARRAY_SIZE(remote_lengths); k++) {
				wr->remote_length = remote_lengths[k];
				visit(test, wr);
			}
		}
	}
}

static void visit_all(struct kunit *test, visit_fn visit)
{
	struct wr_fixture *f = &wr_fixture;
	struct ibchan_mr *const regions[] = {
		&f->first, &f->second, &f->read_only, &f->foreign, &f->pieces,
	};
	struct ibchan_wr wr;
	u32 opcode, flags, region;

	for (opcode = 0; opcode <= IBCHAN_OPS; opcode++)
		for (flags = 0; flags <= BIT(7); flags = flags ? flags << 1 : 1)
			for (region = 0; region < ARRAY_SIZE(regions); region++) {
				wr = element_wr(opcode, regions[region], 0, 8);
				wr.flags = flags;
				for (wr.num_sge = 0; wr.num_sge <= 2; wr.num_sge++)
					visit_ranges(test, &wr, visit);
			}
}

static u32 seen;

static void expect_accepted_if_plain(struct kunit *test, const struct ibchan_wr *wr)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(passing); i++) {
		if (!is_plain(wr, passing[i]))
			continue;
		seen++;
		KUNIT_EXPECT_EQ_MSG(test, wr_check(wr, NULL), 1, "opcode %u", wr->opcode);
	}
}

static void a_plain_request_is_one_that_all_checks_accept(struct kunit *test)
{
	seen = 0;
	visit_all(test, expect_accepted_if_plain);
	KUNIT_EXPECT_TRUE(test, seen > 0);
}

static void expect_plain_if_accepted(struct kunit *test, const struct ibchan_wr *wr)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(passing); i++) {
		if (!may_be_plain(wr, passing[i]) || wr_check(wr, NULL) < 0)
			continue;
		seen++;
		KUNIT_EXPECT_TRUE_MSG(test, is_plain(wr, passing[i]), "opcode %u, length %u",
				      wr->opcode, wr->sges[0].length);
	}
}

static void an_ordinary_request_that_is_accepted_is_plain(struct kunit *test)
{
	seen = 0;
	visit_all(test, expect_plain_if_accepted);
	KUNIT_EXPECT_TRUE(test, seen > 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_plain_request_is_one_that_all_checks_accept),
	KUNIT_CASE(an_ordinary_request_that_is_accepted_is_plain),
	{}
};

struct kunit_suite wr_plain_suite = {
	.name = "ibchan_wr_plain",
	.init = wr_fixture_init,
	.test_cases = cases,
};
