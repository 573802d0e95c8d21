// SPDX-License-Identifier: GPL-2.0-only
/* See wr_fixture.h. */
#include <linux/kernel.h>
#include <linux/string.h>

#include "check.h"
#include "wr_fixture.h"

struct wr_fixture wr_fixture;

const u8 all_opcodes[] = {
	IBCHAN_OP_SEND, IBCHAN_OP_RECV, IBCHAN_OP_WRITE,
	IBCHAN_OP_READ, IBCHAN_OP_COMPARE_SWAP, IBCHAN_OP_FETCH_ADD,
	IBCHAN_OP_SEND_INVALIDATE,
};

static void make_mr(struct ibchan_mr *mr, struct ibchan_pd *pd, u64 length, u32 access)
{
	mr->extent.pd = pd;
	mr->extent.length = length;
	mr->extent.access = access;
	mr->extent.allows = access | IBCHAN_MAY_GATHER | IBCHAN_MAY_SINK | IBCHAN_IS_WHOLE;
	mr->num_segments = 1;
}

static void make_regions(struct wr_fixture *f)
{
	make_mr(&f->first, &f->pd, FIRST_LENGTH, IBCHAN_ACCESS_LOCAL);
	make_mr(&f->second, &f->pd, U32_MAX, IBCHAN_ACCESS_LOCAL);
	make_mr(&f->read_only, &f->pd, FIRST_LENGTH, IBCHAN_ACCESS_REMOTE_READ);
	make_mr(&f->foreign, &f->other_pd, FIRST_LENGTH, IBCHAN_ACCESS_LOCAL);
	make_mr(&f->segments, &f->pd, 600, IBCHAN_ACCESS_LOCAL);
	f->segments.extent.allows &= ~IBCHAN_IS_WHOLE;
	f->layout[1].start = 100;
	f->layout[2].start = 300;
	f->layout[3].start = 600;
	f->segments.segments = f->layout;
	f->segments.num_segments = 3;
}

/* For each case anew. */
int wr_fixture_init(struct kunit *test)
{
	struct wr_fixture *f = &wr_fixture;

	memset(f, 0, sizeof(*f));
	make_regions(f);
	f->bounds.caps = IBCHAN_DEVICE_ATOMICS | IBCHAN_DEVICE_IMMEDIATE;
	f->bounds.pd = &f->pd;
	f->bounds.max_inline = MAX_INLINE;
	f->bounds.max_message = MAX_MESSAGE;
	f->bounds.max_rd_atomic = 1;
	f->bounds.odd = ibchan_odd_head(true);
	f->bounds.max_sgl = MAX_SGE;
	f->bounds.max_sge[IBCHAN_OP_SEND] = MAX_SGE;
	f->bounds.max_sge[IBCHAN_OP_RECV] = MAX_SGE;
	f->bounds.max_sge[IBCHAN_OP_WRITE] = MAX_SGE;
	f->bounds.max_sge[IBCHAN_OP_READ] = MAX_READ_SGE;
	f->bounds.max_sge[IBCHAN_OP_COMPARE_SWAP] = 2;
	f->bounds.max_sge[IBCHAN_OP_FETCH_ADD] = 2;
	f->bounds.max_sge[IBCHAN_OP_SEND_INVALIDATE] = MAX_SGE;
	return 0;
}

/* The elements are copied, so that they may be a temporary of the caller's. */
struct ibchan_wr elements_wr(u8 opcode, const struct ibchan_sge *sges, u16 num)
{
	struct ibchan_wr wr = {
		.opcode = opcode,
		.sges = wr_fixture.sges,
		.num_sge = num,
	};

	memcpy(wr_fixture.sges, sges, num * sizeof(*sges));
	if (op_is_one_sided(opcode)) {
		wr.remote_addr = 0x10000;
		wr.remote_length = IBCHAN_REMOTE_UNCHECKED;
		wr.rkey = 0x1234;
	}
	return wr;
}

struct ibchan_wr element_wr(u8 opcode, struct ibchan_mr *mr, u64 offset, u32 length)
{
	struct ibchan_sge sge = { .mr = mr, .offset = offset, .length = length };

	return elements_wr(opcode, &sge, 1);
}

/* With one element of 8 bytes, which is right for every opcode. */
struct ibchan_wr plain_wr(u8 opcode)
{
	return element_wr(opcode, &wr_fixture.first, 0, 8);
}

static u32 device_elements(const struct ibchan_sge *sge)
{
	if (!sge->length || !sge->mr->segments)
		return !!sge->length;
	return ibchan_segments_count(sge->mr->segments, sge->mr->num_segments, sge->offset,
				     sge->length);
}

/* All checks in the order of a post. Returns the device's elements. */
int wr_check(const struct ibchan_wr *wr, struct ibchan_reason *reason)
{
	const struct ibchan_bounds *bounds = &wr_fixture.bounds;
	u32 elements = 0, i;
	u64 total = 0;
	int ret;

	ret = ibchan_check_form(bounds, wr, reason);
	if (ret)
		return ret;
	if (wr->flags & IBCHAN_WR_INLINE) {
		ret = ibchan_check_inline(bounds, wr, reason);
		return ret ?: ibchan_check_total(bounds, wr, wr->data_length, 1, reason);
	}
	for (i = 0; i < wr->num_sge; i++) {
		ret = ibchan_check_sge(bounds, &wr->sges[i].mr->extent, &wr->sges[i],
				       ibchan_ops[wr->opcode].needed, reason);
		if (ret && reason)
			reason->element = i;
		if (ret)
			return ret;
		total += wr->sges[i].length;
		elements += device_elements(&wr->sges[i]);
	}
	ret = ibchan_check_total(bounds, wr, total, elements, reason);
	return ret ?: elements;
}

void expect_accepted(struct kunit *test, const struct ibchan_wr *wr, int elements)
{
	struct ibchan_reason reason = { .wr = UNTOUCHED, .element = UNTOUCHED };

	KUNIT_EXPECT_EQ_MSG(test, wr_check(wr, &reason), elements,
			    "opcode %u", wr->opcode);
	KUNIT_EXPECT_EQ(test, reason.code, (u32)IBCHAN_REASON_NONE);
	KUNIT_EXPECT_EQ(test, wr_check(wr, NULL), elements);
}

/* The answer is the same for who does not want to know why. */
void expect_refused(struct kunit *test, const struct ibchan_wr *wr,
		    const struct refusal *refusal)
{
	struct ibchan_reason reason = { .wr = UNTOUCHED };

	KUNIT_EXPECT_EQ_MSG(test, wr_check(wr, &reason),
			    refusal->error, "opcode %u, reason %u", wr->opcode,
			    refusal->code);
	expect_reason(test, &reason, refusal);
	KUNIT_EXPECT_EQ(test, reason.wr, UNTOUCHED);
	KUNIT_EXPECT_EQ(test, wr_check(wr, NULL), refusal->error);
}
