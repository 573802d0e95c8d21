// SPDX-License-Identifier: GPL-2.0-only
/*
 * Batches of unlike requests: all elements reach their places, what one request leaves in the
 * kernel's room is nothing to the next one, and of several refusals the first in order is told.
 */
#define _GNU_SOURCE
#include "answer.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define BATCH		64
#define BYTES		64
#define LIST		4
#define HALF		32768

FIXTURE(batch)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
};

static struct side_options batch_options(void)
{
	struct side_options options = side_defaults();

	options.params.max_send_wr = BATCH;
	options.params.max_recv_wr = BATCH;
	options.params.max_send_sge = LIST;
	options.params.max_inline_data = inline_room(BYTES);
	return options;
}

FIXTURE_SETUP(batch)
{
	struct side_options options = batch_options();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_SAME_DEVICE, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
}

FIXTURE_TEARDOWN(batch)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Of BYTES, from the place of @i to the same place of the peer's. */
static struct ibchan_submit_wr transfer(const struct side *from, const struct side *to,
					unsigned int i)
{
	struct ibchan_submit_wr wr = work(from, IBCHAN_OP_WRITE, i, i * BYTES, BYTES);

	work_at(&wr, to, i * BYTES);
	return wr;
}

/* The same bytes in LIST pieces. */
static struct ibchan_submit_wr gathered(const struct side *from, const struct side *to,
					unsigned int i, struct ibchan_submit_sge *list)
{
	struct ibchan_submit_wr wr = transfer(from, to, i);
	unsigned int k;

	for (k = 0; k < LIST; k++) {
		list[k] = wr.sge;
		list[k].length = BYTES / LIST;
		list[k].offset += k * list[k].length;
	}
	work_elements(&wr, list, LIST);
	return wr;
}

/* More elements than the kernel has room for at once, wherever the lists begin. */
TEST_F(batch, lists_behind_any_number_of_single_elements_reach_their_places)
{
	static const unsigned int singles[] = { 0, 40, 48, BATCH - 1 };
	struct ibchan_submit_sge lists[BATCH][LIST];
	struct ibchan_submit_wr wrs[BATCH];
	unsigned int i, k;

	for (k = 0; k < ARRAY_SIZE(singles); k++) {
		pattern(self->a->memory, BATCH * BYTES, k + 1);
		for (i = 0; i < BATCH; i++)
			wrs[i] = i < singles[k] ? transfer(self->a, self->b, i) :
						  gathered(self->a, self->b, i, lists[i]);
		ASSERT_EQ(0, post(self->a, wrs, BATCH));
		for (i = 0; i < BATCH; i++)
			ASSERT_EQ(0, succeed(self->a, i, NULL));
		EXPECT_EQ(0, same_bytes(self->a->memory, self->b->memory, BATCH * BYTES));
	}
}

/* Opcodes and flags that <linux/ibchan.h> has not, and that read the same word in the kernel. */
TEST_F(batch, a_request_behind_an_inline_one_does_not_get_its_data)
{
	static const struct {
		int opcode, flags, error;
		unsigned int reason;
	} strange[] = {
		{ 6, 0, EINVAL, IBCHAN_REASON_OPCODE },
		{ 7, 0, EINVAL, IBCHAN_REASON_OPCODE },
		{ 8, 0, EINVAL, IBCHAN_REASON_OPCODE },
		{ IBCHAN_OP_WRITE, 0x40, EOPNOTSUPP, IBCHAN_REASON_WR_FLAGS },
		{ IBCHAN_OP_WRITE, 0x20, EOPNOTSUPP, IBCHAN_REASON_WR_FLAGS },
	};
	struct ibchan_submit_wr wrs[2];
	unsigned char data[8] = "inline";
	struct answer answer;
	unsigned int i;

	if (!self->a->params.max_inline_data)
		SKIP(return, "the device takes no inline data");
	for (i = 0; i < ARRAY_SIZE(strange); i++) {
		wrs[0] = transfer(self->a, self->b, 0);
		wrs[0].flags = IBCHAN_WR_INLINE;
		wrs[0].sge = (struct ibchan_submit_sge) {
			.offset = address(data), .length = sizeof(data), .mr = IBCHAN_MR_PLAIN,
		};
		wrs[1] = wrs[0];
		ASSERT_EQ(0, post(self->a, wrs, 2));
		ASSERT_EQ(0, succeed(self->a, 0, NULL));
		ASSERT_EQ(0, succeed(self->a, 0, NULL));
		/* In the place of the second one; the first is posted. */
		wrs[1] = work_empty(self->a, strange[i].opcode, 1);
		wrs[1].flags = strange[i].flags;
		answer = ask(self->a, wrs, 2);
		EXPECT_EQ(-strange[i].error, answer.rc);
		EXPECT_EQ(strange[i].reason, answer.cmd.reason.code);
		EXPECT_EQ(1, answer.cmd.reason.wr);
		EXPECT_EQ(1, answer.cmd.entry_num);
		EXPECT_EQ(0, succeed(self->a, 0, NULL));
		EXPECT_EQ(0, ring_surplus(self->a->ring));
	}
}

/* Room in the ring for a whole chain that ends early is there for others. */
TEST_F(batch, a_refusal_leaves_the_rest_of_the_ring_to_other_channels)
{
	struct side_options options = batch_options();
	struct ibchan_submit_wr wrs[16];
	struct answer answer;
	struct pair pair;
	unsigned int i;

	options.ring_entries = ARRAY_SIZE(wrs);
	ASSERT_EQ(0, pair_open(&pair, PAIR_ONE_CQ, &options));
	for (i = 0; i < ARRAY_SIZE(wrs); i++)
		wrs[i] = work(pair.a, IBCHAN_OP_RECV, i, i * BYTES, BYTES);
	wrs[1].sge.offset = pair.a->length;
	answer = ask(pair.a, wrs, ARRAY_SIZE(wrs));
	EXPECT_EQ(-EINVAL, answer.rc);
	EXPECT_EQ(1, answer.cmd.entry_num);
	for (i = 0; i < ARRAY_SIZE(wrs); i++)
		wrs[i] = work(pair.b, IBCHAN_OP_RECV, 100 + i, HALF + i * BYTES, BYTES);
	/* All but the one that the first channel has. */
	answer = ask(pair.b, wrs, ARRAY_SIZE(wrs));
	EXPECT_EQ(-EAGAIN, answer.rc);
	EXPECT_EQ(IBCHAN_REASON_RING_FULL, answer.cmd.reason.code);
	EXPECT_EQ(ARRAY_SIZE(wrs) - 1, answer.cmd.entry_num);
	pair_close(&pair);
}

/* The place of the element had one of this file's regions before. */
TEST_F(batch, a_region_of_another_file_is_not_found)
{
	struct side_options options = batch_options();
	struct ibchan_submit_sge list[LIST];
	struct ibchan_submit_wr wrs[2];
	struct answer answer;
	struct side other;

	ASSERT_EQ(0, side_open(&other, &options));
	wrs[0] = transfer(self->a, self->b, 0);
	wrs[1] = gathered(self->a, self->b, 1, list);
	ASSERT_EQ(0, post(self->a, wrs, 2));
	ASSERT_EQ(0, succeed(self->a, 0, NULL));
	ASSERT_EQ(0, succeed(self->a, 1, NULL));
	list[2].mr = other.mr;
	answer = ask(self->a, wrs, 2);
	EXPECT_EQ(-ENOENT, answer.rc);
	EXPECT_EQ(1, answer.cmd.entry_num);
	EXPECT_EQ(IBCHAN_REASON_MR_HANDLE, answer.cmd.reason.code);
	EXPECT_EQ(1, answer.cmd.reason.wr);
	EXPECT_EQ(2, answer.cmd.reason.element);
	EXPECT_EQ(0, succeed(self->a, 0, NULL));
	EXPECT_EQ(0, ring_surplus(self->a->ring));
	side_close(&other);
}

/* The kernel finds these in steps of its own, each through all of the batch. */
enum fault {
	FAULT_POINTER,		/* cannot be copied */
	FAULT_SURPLUS,		/* says what its opcode does not use */
	FAULT_PAGES,		/* cannot be pinned */
	FAULT_CHANNEL,		/* cannot be found */
	FAULT_REGION,
	FAULT_BOUNDS,		/* cannot be posted */
	FAULTS
};

static struct ibchan_submit_wr faulty(const struct side *from, const struct side *to,
				      enum fault fault)
{
	struct ibchan_submit_wr wr = transfer(from, to, fault);

	switch (fault) {
	case FAULT_POINTER:
		work_elements(&wr, (void *)4096, 2);
		break;
	case FAULT_SURPLUS:
		wr.operand = 1;
		break;
	case FAULT_PAGES:
		wr.sge = (struct ibchan_submit_sge) { 4096, BYTES, IBCHAN_MR_PLAIN };
		break;
	case FAULT_CHANNEL:
		wr.channel = 0x7fffffff;
		break;
	case FAULT_REGION:
		wr.sge.mr = 0x7ffffffe;
		break;
	default:
		wr.sge.offset = from->length;
		break;
	}
	return wr;
}

TEST_F(batch, of_two_refusals_the_first_in_order_is_told)
{
	static const struct {
		int error;
		unsigned int reason;
	} told[FAULTS] = {
		[FAULT_POINTER] = { EFAULT, IBCHAN_REASON_ELEMENT_POINTER },
		[FAULT_SURPLUS] = { EINVAL, IBCHAN_REASON_RESERVED },
		[FAULT_PAGES] = { EFAULT, IBCHAN_REASON_MEMORY_NOT_THERE },
		[FAULT_CHANNEL] = { ENOENT, IBCHAN_REASON_CHANNEL_HANDLE },
		[FAULT_REGION] = { ENOENT, IBCHAN_REASON_MR_HANDLE },
		[FAULT_BOUNDS] = { EINVAL, IBCHAN_REASON_OUT_OF_BOUNDS },
	};
	struct ibchan_submit_wr wrs[3];
	struct answer answer;
	unsigned int i;

	for (i = 0; i < FAULTS * FAULTS; i++) {
		const unsigned int first = i / FAULTS, second = i % FAULTS;

		wrs[0] = transfer(self->a, self->b, FAULTS);
		wrs[1] = faulty(self->a, self->b, first);
		wrs[2] = faulty(self->a, self->b, second);
		answer = ask(self->a, wrs, 3);
		EXPECT_EQ(-told[first].error, answer.rc);
		EXPECT_EQ(told[first].reason, answer.cmd.reason.code);
		EXPECT_EQ(1, answer.cmd.reason.wr);
		EXPECT_EQ(0, answer.cmd.reason.element);
		EXPECT_EQ(1, answer.cmd.entry_num);
		ASSERT_EQ(0, succeed(self->a, FAULTS, NULL));
	}
	EXPECT_EQ(0, ring_surplus(self->a->ring));
}

TEST_HARNESS_MAIN
