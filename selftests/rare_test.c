// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a work request may ask for besides moving bytes: atomics, fences, solicited
 * messages, inline data, no signal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "answer.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define WORD		8
#define INLINE_ROOM	256
#define DEPTH		32

FIXTURE(rare)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
};

static struct side_options rare_options(void)
{
	struct side_options options = side_defaults();

	options.ring_entries = 4 * DEPTH;
	options.mr_access = IBCHAN_ACCESS_ALL;
	options.params.access = IBCHAN_ACCESS_ALL;
	options.params.max_send_wr = DEPTH;
	options.params.max_recv_wr = DEPTH;
	options.params.max_inline_data = inline_room(INLINE_ROOM);
	return options;
}

FIXTURE_SETUP(rare)
{
	struct side_options options = rare_options();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
}

FIXTURE_TEARDOWN(rare)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static __u64 *word_at(const struct side *side, __u64 offset)
{
	return (__u64 *)(side->memory + offset);
}

static struct ibchan_submit_wr fetch_add(struct pair *pair, __u64 wr_id, __u64 offset,
					 __u64 add)
{
	struct ibchan_submit_wr wr = work(pair->a, IBCHAN_OP_FETCH_ADD, wr_id, offset, WORD);

	work_at(&wr, pair->b, 0);
	wr.operand = add;
	return wr;
}

/* 0 if @wr is refused so and leaves nothing behind. */
static int refused(const struct side *side, const struct ibchan_submit_wr *wr, int error,
		   unsigned int code)
{
	struct answer answer = ask_one(side, wr);

	return is_refusal(&answer, error, code);
}

TEST_F(rare, additions_of_many_works_add_up)
{
	__u64 total = 0;
	unsigned int i;

	*word_at(self->b, 0) = 0;
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, post_one(self->a, fetch_add(&self->pair, i, 64 + i * WORD, i)));
	for (i = 0; i < DEPTH; i++) {
		ASSERT_EQ(0, succeed(self->a, i, NULL));
		EXPECT_EQ(total, *word_at(self->a, 64 + i * WORD));
		total += i;
	}
	EXPECT_EQ(total, *word_at(self->b, 0));
}

TEST_F(rare, an_atomic_owns_the_range_that_it_fills)
{
	struct ibchan_submit_wr wrs[2] = {
		fetch_add(&self->pair, 1, 64, 1),
		fetch_add(&self->pair, 2, 64, 1),
	};
	struct answer answer = ask(self->a, wrs, 2);

	EXPECT_EQ(-EBUSY, answer.rc);
	EXPECT_EQ(IBCHAN_REASON_BUSY, answer.cmd.reason.code);
	EXPECT_EQ(1, answer.cmd.entry_num);
	EXPECT_EQ(0, succeed(self->a, 1, NULL));
}

/* A write of what a read before it brings: 0 if it was that, 1 if it was not there yet. */
static int write_what_was_read(struct pair *pair, __u8 flags)
{
	struct ibchan_submit_wr wrs[2] = {
		work(pair->a, IBCHAN_OP_READ, 1, 0, 16384),
		work(pair->a, IBCHAN_OP_WRITE, 2, 0, 16384),
	};
	int rc;

	memset(pair->a->memory, 0, 16384);
	memset(pair->b->memory + 32768, 0, 16384);
	pattern(pair->b->memory, 16384, 1);
	work_at(&wrs[0], pair->b, 0);
	work_at(&wrs[1], pair->b, 32768);
	wrs[0].flags = IBCHAN_WR_UNCHECKED;
	wrs[1].flags = IBCHAN_WR_UNCHECKED | flags;
	rc = post(pair->a, wrs, 2);
	if (!rc)
		rc = succeed(pair->a, 1, NULL);
	if (!rc)
		rc = succeed(pair->a, 2, NULL);
	return rc ? rc : !!memcmp(pair->b->memory, pair->b->memory + 32768, 16384);
}

/* Without a fence the read may be done in time, so only one of several has to be overtaken. */
TEST_F(rare, a_fenced_write_waits_for_the_read_before_it)
{
	int i, rc = 0;

	for (i = 0; i < 20; i++)
		EXPECT_EQ(0, write_what_was_read(&self->pair, IBCHAN_WR_FENCE));
	for (i = 0; i < 200 && !rc; i++)
		rc = write_what_was_read(&self->pair, 0);
	if (!rc && !is_soft_roce(self->a))
		SKIP(return, "the device does one work after the other, also without a fence");
	EXPECT_EQ(1, rc);
}

TEST_F(rare, a_receive_takes_none_of_the_flags_of_a_send)
{
	static const __u8 flags[] = {
		IBCHAN_WR_IMM, IBCHAN_WR_FENCE, IBCHAN_WR_SOLICITED, IBCHAN_WR_UNSIGNALED,
	};
	struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_RECV, 1, 0, 16);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		wr.flags = flags[i];
		EXPECT_EQ(0, refused(self->a, &wr, EINVAL, IBCHAN_REASON_WR_FLAGS));
	}
}

/* --- inline --- */

#define HAS_NO_ROOM	"the device takes less inline data"

static bool has_room(const struct side *side, __u32 bytes)
{
	return side->params.max_inline_data >= bytes;
}

/* A send of plain memory in the request itself. */
static struct ibchan_submit_wr inline_send(const struct side *side, __u64 wr_id,
					   const void *data, __u32 length)
{
	struct ibchan_submit_wr wr = work_empty(side, IBCHAN_OP_SEND, wr_id);

	wr.flags = IBCHAN_WR_INLINE;
	wr.num_sge = 1;
	wr.sge = (struct ibchan_submit_sge) { address(data), length, IBCHAN_MR_PLAIN };
	return wr;
}

TEST_F(rare, inline_data_are_gathered_from_several_places)
{
	char first[] = "the one ", second[] = "and ", third[] = "the other";
	struct ibchan_submit_sge sges[4] = {
		{ address(first), 8, IBCHAN_MR_PLAIN },
		{ address(second), 4, IBCHAN_MR_PLAIN },
		{ 1, 0, IBCHAN_MR_PLAIN },
		{ address(third), 9, IBCHAN_MR_PLAIN },
	};
	struct ibchan_submit_wr wr = work_empty(self->a, IBCHAN_OP_WRITE, 1);

	if (!has_room(self->a, 21))
		SKIP(return, HAS_NO_ROOM);
	work_elements(&wr, sges, 4);
	work_at(&wr, self->b, 0);
	wr.flags = IBCHAN_WR_INLINE;
	ASSERT_EQ(0, post_one(self->a, wr));
	ASSERT_EQ(0, succeed(self->a, 1, NULL));
	EXPECT_EQ(0, memcmp("the one and the other", self->b->memory, 21));
}

/* More together than one chunk of the kernel's has room for. */
TEST_F(rare, a_batch_of_inline_works_may_carry_any_amount)
{
	unsigned char data[DEPTH][INLINE_ROOM];
	struct ibchan_submit_wr wrs[DEPTH];
	unsigned int i;

	if (!has_room(self->a, INLINE_ROOM))
		SKIP(return, HAS_NO_ROOM);
	pattern(data[0], sizeof(data), 4);
	for (i = 0; i < DEPTH; i++) {
		wrs[i] = work_empty(self->a, IBCHAN_OP_WRITE, i);
		wrs[i].flags = IBCHAN_WR_INLINE;
		wrs[i].num_sge = 1;
		wrs[i].sge = (struct ibchan_submit_sge) {
			address(data[i]), INLINE_ROOM, IBCHAN_MR_PLAIN,
		};
		work_at(&wrs[i], self->b, i * INLINE_ROOM);
	}
	ASSERT_EQ(0, post(self->a, wrs, DEPTH));
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, succeed(self->a, i, NULL));
	EXPECT_EQ(0, same_bytes(data[0], self->b->memory, sizeof(data)));
}

TEST_F(rare, inline_data_have_a_limit_and_an_address)
{
	unsigned char data[4096] = { 0 };
	__u32 room = self->a->params.max_inline_data;
	struct ibchan_submit_wr wr = inline_send(self->a, 1, data, room + 1);
	struct answer answer = ask_one(self->a, &wr);

	EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_INLINE_TOO_LONG));
	EXPECT_EQ(0, has_values(&answer, room + 1, room, 0));
	wr = inline_send(self->a, 1, data, sizeof(data));
	EXPECT_EQ(0, refused(self->a, &wr, EINVAL, IBCHAN_REASON_INLINE_TOO_LONG));
	wr = inline_send(self->a, 1, data, ~0U);
	EXPECT_EQ(0, refused(self->a, &wr, EINVAL, IBCHAN_REASON_INLINE_TOO_LONG));
	if (!has_room(self->a, 8))
		SKIP(return, HAS_NO_ROOM);
	wr = inline_send(self->a, 1, (void *)8, 8);
	EXPECT_EQ(0, refused(self->a, &wr, EFAULT, IBCHAN_REASON_ELEMENT_POINTER));
	wr = inline_send(self->a, 1, (void *)0xffff888000000000UL, 8);
	EXPECT_EQ(0, refused(self->a, &wr, EFAULT, IBCHAN_REASON_ELEMENT_POINTER));
}

TEST_F(rare, inline_data_come_from_plain_memory_only)
{
	struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_SEND, 1, 0, 8);

	wr.flags = IBCHAN_WR_INLINE;
	if (!has_room(self->a, 8))
		SKIP(return, HAS_NO_ROOM);
	EXPECT_EQ(0, refused(self->a, &wr, EINVAL, IBCHAN_REASON_INLINE_ELEMENT));
	wr = work(self->a, IBCHAN_OP_READ, 1, 0, 8);
	work_at(&wr, self->b, 0);
	wr.sge = (struct ibchan_submit_sge) { address(&wr), 8, IBCHAN_MR_PLAIN };
	wr.flags = IBCHAN_WR_INLINE;
	EXPECT_EQ(0, refused(self->a, &wr, EINVAL, IBCHAN_REASON_WR_FLAGS));
}

/* --- unsignaled --- */

static struct ibchan_submit_wr write_of(struct pair *pair, __u64 wr_id, __u8 flags)
{
	struct ibchan_submit_wr wr = work(pair->a, IBCHAN_OP_WRITE, wr_id, wr_id * 16, 16);

	work_at(&wr, pair->b, wr_id * 16);
	wr.flags = flags;
	return wr;
}

TEST_F(rare, an_unsignaled_work_ends_with_the_next_signaled_one)
{
	struct ibchan_submit_wr wrs[4];
	struct ibchan_cqe cqes[4];
	unsigned int i;

	for (i = 0; i < 4; i++)
		wrs[i] = write_of(&self->pair, i, i < 3 ? IBCHAN_WR_UNSIGNALED : 0);
	ASSERT_EQ(0, post(self->a, wrs, 4));
	ASSERT_EQ(0, ring_wait(self->a->ring, 4, patience_ms()));
	ASSERT_EQ(4, ring_read(self->a->ring, cqes, 4));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(i, cqes[i].wr_id);
		EXPECT_EQ(0, cqes[i].status);
		EXPECT_EQ(i < 3 ? IBCHAN_CQE_SILENT : 0, cqes[i].flags);
	}
}

TEST_F(rare, an_unsignaled_work_says_nothing_by_itself)
{
	struct ibchan_cmd_channel_query query;
	struct ibchan_cqe cqe;

	ASSERT_EQ(0, post_one(self->a, work(self->a, IBCHAN_OP_RECV, 7, 256, 16)));
	ASSERT_EQ(0, post_one(self->a, write_of(&self->pair, 0, IBCHAN_WR_UNSIGNALED)));
	/* What comes back to the writer comes later than what it wrote. */
	ASSERT_EQ(0, post_one(self->b, work(self->b, IBCHAN_OP_SEND, 8, 64, 16)));
	ASSERT_EQ(0, ring_complete(self->a->ring, 7, &cqe));
	EXPECT_EQ(0, ring_unread(self->a->ring));
	ASSERT_EQ(0, side_query(self->a, &query));
	EXPECT_EQ(1, query.out.sends_in_flight);
	ASSERT_EQ(0, post_one(self->a, write_of(&self->pair, 1, 0)));
	ASSERT_EQ(0, succeed(self->a, 0, &cqe));
	EXPECT_EQ(IBCHAN_CQE_SILENT, cqe.flags);
	ASSERT_EQ(0, succeed(self->a, 1, NULL));
	ASSERT_EQ(0, succeed(self->b, 8, NULL));
}

TEST_F(rare, a_queue_of_unsignaled_works_never_fills_up_for_ever)
{
	unsigned int i, done = 0;
	struct ibchan_cqe cqe;

	for (i = 0; i < 8 * DEPTH; i++) {
		int rc = post_one(self->a, write_of(&self->pair, i % 64, IBCHAN_WR_UNSIGNALED));

		while (rc == -EAGAIN || rc == -EBUSY) {
			ASSERT_EQ(0, ring_wait(self->a->ring, 1, patience_ms()));
			while (ring_read(self->a->ring, &cqe, 1)) {
				EXPECT_EQ(IBCHAN_CQE_SILENT, cqe.flags);
				done++;
			}
			rc = post_one(self->a, write_of(&self->pair, i % 64, IBCHAN_WR_UNSIGNALED));
		}
		ASSERT_EQ(0, rc);
	}
	EXPECT_LE(4 * DEPTH, done);
}

TEST_F(rare, unsignaled_works_end_when_their_channel_does)
{
	struct ibchan_cqe cqe;
	unsigned int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post_one(self->a, write_of(&self->pair, i, IBCHAN_WR_UNSIGNALED)));
	ASSERT_EQ(0, destroy(self->a->fd, self->a->channel));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, ring_complete(self->a->ring, i, &cqe));
		/* What the device had done by then went well, silently. */
		if (cqe.status)
			EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, cqe.status);
		EXPECT_EQ(cqe.status ? 0 : IBCHAN_CQE_SILENT, cqe.flags);
	}
	EXPECT_EQ(0, ring_surplus(self->a->ring));
}

/* --- solicited --- */

/* The works of @b complete in a queue that only solicited messages wake. */
FIXTURE(solicited)
{
	struct calm calm;
	struct side a;
	struct side b;
};

FIXTURE_SETUP(solicited)
{
	struct side_options options = rare_options();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->a, &options));
	options.device = DEVICE_B;
	options.ring_entries = 64;
	options.cq_flags = IBCHAN_CQ_CREATE_SOLICITED;
	ASSERT_EQ(0, side_open(&self->b, &options));
	ASSERT_EQ(0, side_handshake(&self->a, &self->b.endpoint));
	ASSERT_EQ(0, side_handshake(&self->b, &self->a.endpoint));
}

FIXTURE_TEARDOWN(solicited)
{
	side_close(&self->a);
	side_close(&self->b);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static bool all_have_come(void *ring)
{
	return ring_unread(ring) == DEPTH;
}

/* All DEPTH receives of @side come without a call: one with the status @first, then flushed. */
static int all_come_flushed(struct side *side, int first)
{
	unsigned int i;

	if (!eventually(all_have_come, side->ring))
		return -ETIMEDOUT;
	if (status_of(side, 0) != first)
		return -EBADMSG;
	for (i = 1; i < DEPTH; i++)
		if (status_of(side, i) != IBCHAN_STATUS_WR_FLUSH_ERR)
			return -EBADMSG;
	return 0;
}

/* The first of them wakes the queue; the others come while it is being emptied. */
TEST_F(solicited, all_works_of_a_channel_that_breaks_come_by_themselves)
{
	ASSERT_EQ(0, post_receives(&self->b, 0, DEPTH, 16));
	ASSERT_EQ(0, channel_break(self->b.fd, self->b.channel));
	EXPECT_EQ(0, all_come_flushed(&self->b, IBCHAN_STATUS_WR_FLUSH_ERR));
}

/* The receive that is too short for its message may be all that counts as solicited. */
TEST_F(solicited, all_works_of_a_channel_that_the_device_ends_come_by_themselves)
{
	struct ibchan_submit_wr wr = work(&self->a, IBCHAN_OP_SEND, 1, 0, 32);
	int status;

	wr.flags = IBCHAN_WR_SOLICITED;
	ASSERT_EQ(0, post_receives(&self->b, 0, DEPTH, 16));
	ASSERT_EQ(0, post_one(&self->a, wr));
	status = status_of(&self->a, 1);
	/* soft-RoCE says so of a message that is too long; the standard has the other. */
	if (is_soft_roce(&self->a)) {
		EXPECT_EQ(IBCHAN_STATUS_REM_OP_ERR, status);
		EXPECT_EQ(0, all_come_flushed(&self->b, IBCHAN_STATUS_LOC_QP_OP_ERR));
	} else {
		EXPECT_EQ(IBCHAN_STATUS_REM_INV_REQ_ERR, status);
		EXPECT_EQ(0, all_come_flushed(&self->b, IBCHAN_STATUS_LOC_LEN_ERR));
	}
}

/* --- what can be asked for --- */

TEST_HARNESS_MAIN
