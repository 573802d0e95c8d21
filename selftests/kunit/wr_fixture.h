/* SPDX-License-Identifier: GPL-2.0-only */
/* A channel and regions that exist only as far as the checks of a post look. */
#ifndef IBCHAN_KUNIT_WR_FIXTURE_H
#define IBCHAN_KUNIT_WR_FIXTURE_H

#include "cases.h"

#define FIRST_LENGTH	4096U
#define MAX_MESSAGE	10000U
#define MAX_INLINE	64U
#define MAX_SGE		4U		/* of a channel, but for reads and atomics */
#define MAX_READ_SGE	3U

/**
 * struct wr_fixture - what the cases work on
 * @pd: of the channel
 * @other_pd: of nobody but @foreign
 * @bounds: of the channel, on a device that has atomics
 * @first: a region that the device may write
 * @second: the same, 4 GiB - 1 long
 * @read_only: a region that the device may only read; peers may do the same
 * @foreign: a region of @other_pd
 * @segments: a region in three segments of 100, 200 and 300 bytes
 * @layout: of @segments
 * @sges: elements for the requests
 */
struct wr_fixture {
	struct ibchan_pd pd;
	struct ibchan_pd other_pd;
	struct ibchan_bounds bounds;
	struct ibchan_mr first;
	struct ibchan_mr second;
	struct ibchan_mr read_only;
	struct ibchan_mr foreign;
	struct ibchan_mr segments;
	struct ibchan_segment layout[4];
	struct ibchan_sge sges[IBCHAN_MAX_SGE];
};

extern struct wr_fixture wr_fixture;

int wr_fixture_init(struct kunit *test);
struct ibchan_wr plain_wr(u8 opcode);
struct ibchan_wr elements_wr(u8 opcode, const struct ibchan_sge *sges, u16 num);
struct ibchan_wr element_wr(u8 opcode, struct ibchan_mr *mr, u64 offset, u32 length);
int wr_check(const struct ibchan_wr *wr, struct ibchan_reason *reason);
void expect_accepted(struct kunit *test, const struct ibchan_wr *wr, int elements);
void expect_refused(struct kunit *test, const struct ibchan_wr *wr,
		    const struct refusal *refusal);

#define REFUSED(test, wr, ...)						\
	expect_refused(test, wr, &(struct refusal){ __VA_ARGS__ })

static inline bool op_is_one_sided(u8 opcode)
{
	return opcode != IBCHAN_OP_SEND && opcode != IBCHAN_OP_RECV &&
	       opcode != IBCHAN_OP_SEND_INVALIDATE;
}

static inline bool op_is_atomic(u8 opcode)
{
	return opcode == IBCHAN_OP_COMPARE_SWAP || opcode == IBCHAN_OP_FETCH_ADD;
}

extern const u8 all_opcodes[7];

#define for_each_opcode(opcode, i)					\
	for (i = 0; i < ARRAY_SIZE(all_opcodes) && (opcode = all_opcodes[i], true); i++)

#endif /* IBCHAN_KUNIT_WR_FIXTURE_H */
