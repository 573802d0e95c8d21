// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranges in flight: shared while the device reads them, exclusive while it writes.
 *
 * Works stay in flight as long as the peer does nothing: a receive waits for a message, a
 * send for a receive, and what is posted behind a send waits with it.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "answer.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define DEPTH	256

FIXTURE(busy)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
	struct side other;	/* of a's file and pd; its channel is its own peer */
};

static struct side_options patient_options(void)
{
	struct side_options options = side_defaults();

	options.ring_entries = 4 * DEPTH;
	options.cq_entries = 5 * DEPTH;
	options.params.max_send_wr = DEPTH;
	options.params.max_recv_wr = DEPTH;
	options.params.max_send_sge = 3;
	options.params.max_recv_sge = 3;
	options.params.rnr_retries = 7;
	options.params.min_rnr_timer = 1;
	return options;
}

FIXTURE_SETUP(busy)
{
	struct side_options options = patient_options();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_SAME_DEVICE, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
	options.memory = 4096;
	ASSERT_EQ(0, side_share(&self->other, self->a, &options));
	ASSERT_EQ(0, side_handshake(&self->other, &self->other.endpoint));
}

FIXTURE_TEARDOWN(busy)
{
	side_close(&self->other);
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static struct ibchan_submit_wr into(const struct side *side, __u64 wr_id, __u64 offset,
				    __u32 length)
{
	return work(side, IBCHAN_OP_RECV, wr_id, offset, length);
}

static struct ibchan_submit_wr from(const struct side *side, __u64 wr_id, __u64 offset,
				    __u32 length)
{
	return work(side, IBCHAN_OP_SEND, wr_id, offset, length);
}

static int post_into(const struct side *side, __u64 wr_id, __u64 offset, __u32 length)
{
	return post_one(side, into(side, wr_id, offset, length));
}

static int post_from(const struct side *side, __u64 wr_id, __u64 offset, __u32 length)
{
	return post_one(side, from(side, wr_id, offset, length));
}

/* A range and whose it is. */
struct held {
	__u64 offset;
	__u64 length;
	__u64 wr_id;
	bool written;
};

static struct held held_by(__u64 wr_id, __u64 offset, __u64 length)
{
	return (struct held) { .offset = offset, .length = length, .wr_id = wr_id };
}

/* 0 if @wr is refused because its @element collides with @held. */
static int collides(const struct side *side, struct ibchan_submit_wr wr, unsigned int element,
		    struct held held)
{
	struct answer answer = ask_one(side, &wr);
	int rc = is_refusal(&answer, EBUSY, IBCHAN_REASON_BUSY);

	if (rc)
		return rc;
	if (answer.cmd.reason.wr || answer.cmd.reason.element != element) {
		fprintf(stderr, "# wr %u, element %u instead of %u\n", answer.cmd.reason.wr,
			answer.cmd.reason.element, element);
		return -EBADMSG;
	}
	return has_values(&answer, held.offset, held.length, held.wr_id);
}

static int sends_in_flight(const struct side *side)
{
	struct ibchan_cmd_channel_query query;
	int rc = side_query(side, &query);

	return rc ? rc : (int)query.out.sends_in_flight;
}

static int recvs_in_flight(const struct side *side)
{
	struct ibchan_cmd_channel_query query;
	int rc = side_query(side, &query);

	return rc ? rc : (int)query.out.recvs_in_flight;
}

TEST_F(busy, a_range_that_is_read_may_be_read_again)
{
	struct side *a = self->a;

	ASSERT_EQ(0, post_from(a, 1, 1000, 100));
	EXPECT_EQ(0, post_from(a, 2, 1000, 100));
	EXPECT_EQ(0, post_from(a, 3, 950, 100));
	EXPECT_EQ(3, sends_in_flight(a));
}

TEST_F(busy, a_range_that_is_read_may_not_be_written)
{
	struct side *a = self->a;

	ASSERT_EQ(0, post_from(a, 1, 1000, 100));
	EXPECT_EQ(0, collides(a, into(a, 2, 1000, 100), 0, held_by(1, 1000, 100)));
	EXPECT_EQ(0, post_into(a, 3, 2000, 100));
	EXPECT_EQ(1, recvs_in_flight(a));
}

TEST_F(busy, a_read_of_the_peers_memory_writes_and_a_write_reads)
{
	struct side *a = self->a;
	struct ibchan_submit_wr read = work(a, IBCHAN_OP_READ, 2, 1000, 100);
	struct ibchan_submit_wr write = work(a, IBCHAN_OP_WRITE, 3, 2000, 100);

	work_at(&read, self->b, 0);
	work_at(&write, self->b, 8192);
	/* They wait behind the send. */
	ASSERT_EQ(0, post_from(a, 1, 0, 8));
	ASSERT_EQ(0, post_one(a, read));
	ASSERT_EQ(0, post_one(a, write));
	EXPECT_EQ(0, collides(a, from(a, 4, 1050, 1), 0, held_by(2, 1000, 100)));
	EXPECT_EQ(0, collides(a, into(a, 4, 1050, 1), 0, held_by(2, 1000, 100)));
	EXPECT_EQ(0, collides(a, into(a, 4, 2050, 1), 0, held_by(3, 2000, 100)));
	EXPECT_EQ(0, post_from(a, 4, 2050, 1));
	/* In the other place the read would write what is read, the write read what is written. */
	read.sge.offset = 2099;
	EXPECT_EQ(0, collides(a, read, 0, held_by(3, 2000, 100)));
	write.sge.offset = 901;
	EXPECT_EQ(0, collides(a, write, 0, held_by(2, 1000, 100)));
	write.sge.offset = 900;
	EXPECT_EQ(0, post_one(a, write));
}

TEST_F(busy, one_common_byte_collides_and_neighbours_do_not)
{
	static const struct {
		__u64 offset;
		__u32 length;
	} common[] = {
		{ 901, 100 }, { 1099, 100 }, { 1000, 1 }, { 1099, 1 }, { 1040, 20 }, { 1000, 100 },
		{ 0, 65536 },
	}, beside[] = {
		{ 900, 100 }, { 1100, 100 }, { 899, 1 }, { 1200, 1 },
	};
	struct side *a = self->a;
	unsigned int i;

	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	for (i = 0; i < ARRAY_SIZE(common); i++) {
		struct ibchan_submit_wr wr = into(a, 2, common[i].offset, common[i].length);

		EXPECT_EQ(0, collides(a, wr, 0, held_by(1, 1000, 100)))
			TH_LOG("%llu, %u", common[i].offset, common[i].length);
		wr.opcode = IBCHAN_OP_SEND;
		EXPECT_EQ(0, collides(a, wr, 0, held_by(1, 1000, 100)))
			TH_LOG("%llu, %u", common[i].offset, common[i].length);
	}
	for (i = 0; i < ARRAY_SIZE(beside); i++)
		EXPECT_EQ(0, post_into(a, 10 + i, beside[i].offset, beside[i].length))
			TH_LOG("%llu, %u", beside[i].offset, beside[i].length);
}

TEST_F(busy, an_empty_element_occupies_nothing)
{
	struct side *a = self->a;
	struct ibchan_submit_sge sges[3] = {
		{ 1000, 0, a->mr }, { 1050, 0, a->mr }, { 1050, 1, a->mr },
	};
	struct ibchan_submit_wr wr = work_empty(a, IBCHAN_OP_RECV, 4);

	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	EXPECT_EQ(0, post_into(a, 2, 1050, 0));
	EXPECT_EQ(0, post_from(a, 3, 1050, 0));
	/* Where an empty one is in flight, another may go. */
	EXPECT_EQ(0, post_into(a, 4, 2000, 0));
	EXPECT_EQ(0, post_into(a, 5, 1950, 100));
	/* And it is still counted as an element. */
	work_elements(&wr, sges, 3);
	EXPECT_EQ(0, collides(a, wr, 2, held_by(1, 1000, 100)));
	work_elements(&wr, sges, 2);
	EXPECT_EQ(0, post_one(a, wr));
}

TEST_F(busy, the_entries_of_one_batch_count_against_each_other)
{
	struct side *a = self->a;
	struct ibchan_submit_wr wrs[2] = { into(a, 1, 1000, 100), into(a, 2, 1099, 1) };
	struct answer answer = ask(a, wrs, 2);

	EXPECT_EQ(-EBUSY, answer.rc);
	EXPECT_EQ(1, answer.cmd.entry_num);
	EXPECT_EQ(IBCHAN_REASON_BUSY, answer.cmd.reason.code);
	EXPECT_EQ(1, answer.cmd.reason.wr);
	EXPECT_EQ(0, answer.cmd.reason.element);
	EXPECT_EQ(0, has_values(&answer, 1000, 100, 1));
	EXPECT_EQ(1, recvs_in_flight(a));
	wrs[0] = into(a, 3, 1100, 50);
	wrs[1] = into(a, 4, 1150, 50);
	EXPECT_EQ(0, post(a, wrs, 2));
}

/* More entries than the kernel looks at in one go, and on two channels. */
TEST_F(busy, the_last_of_many_entries_counts_against_the_first)
{
	struct ibchan_submit_wr wrs[40];
	struct answer answer;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrs); i++) {
		wrs[i] = into(self->a, i, 100 * i, 100);
		if (i % 3)
			wrs[i].channel = self->other.channel;
	}
	wrs[38].sge.offset = 50;
	wrs[38].sge.length = 10;
	answer = ask(self->a, wrs, ARRAY_SIZE(wrs));
	EXPECT_EQ(-EBUSY, answer.rc);
	EXPECT_EQ(38, answer.cmd.entry_num);
	EXPECT_EQ(38, answer.cmd.reason.wr);
	EXPECT_EQ(0, has_values(&answer, 0, 100, 0));
	EXPECT_EQ(38, recvs_in_flight(self->a) + recvs_in_flight(&self->other));
	EXPECT_EQ(0, post(self->a, &wrs[39], 1));
}

TEST_F(busy, the_elements_of_one_work_count_against_each_other)
{
	struct side *a = self->a;
	struct ibchan_submit_sge sges[3] = {
		{ 1000, 100, a->mr }, { 2000, 100, a->mr }, { 1050, 100, a->mr },
	};
	struct ibchan_submit_wr wr = work_empty(a, IBCHAN_OP_RECV, 1);

	work_elements(&wr, sges, 3);
	EXPECT_EQ(0, collides(a, wr, 2, held_by(1, 1000, 100)));
	/* Nothing of it is in the way of others now. */
	EXPECT_EQ(0, recvs_in_flight(a));
	sges[2].offset = 1100;
	EXPECT_EQ(0, post_one(a, wr));
}

TEST_F(busy, a_send_may_gather_a_byte_twice)
{
	struct side *a = self->a;
	struct ibchan_submit_sge sges[2] = { { 1000, 100, a->mr }, { 1050, 100, a->mr } };
	struct ibchan_submit_wr wr = work_empty(a, IBCHAN_OP_SEND, 1);

	work_elements(&wr, sges, 2);
	EXPECT_EQ(0, post_one(a, wr));
	wr.opcode = IBCHAN_OP_RECV;
	sges[0].offset = 3000;
	sges[1].offset = 3050;
	EXPECT_EQ(0, collides(a, wr, 1, held_by(1, 3000, 100)));
}

TEST_F(busy, a_range_is_free_again_when_its_work_has_completed)
{
	struct side *a = self->a, *b = self->b;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, post_into(a, i, 1000, 100));
		ASSERT_EQ(0, collides(a, into(a, 99, 1000, 100), 0, held_by(i, 1000, 100)));
		ASSERT_EQ(0, post_from(b, i, 0, 100));
		ASSERT_EQ(0, succeed(a, i, NULL));
		ASSERT_EQ(0, succeed(b, i, NULL));
	}
	ASSERT_EQ(0, post_from(a, 30, 1000, 100));
	ASSERT_EQ(0, collides(a, into(a, 99, 1000, 100), 0, held_by(30, 1000, 100)));
	ASSERT_EQ(0, post_into(b, 31, 0, 100));
	ASSERT_EQ(0, succeed(a, 30, NULL));
	EXPECT_EQ(0, post_into(a, 32, 1000, 100));
}

/* The completion counts, not that somebody reads it. */
TEST_F(busy, a_range_is_free_again_before_its_completion_was_read)
{
	struct side *a = self->a;

	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	ASSERT_EQ(0, post_from(self->b, 2, 0, 100));
	ASSERT_EQ(0, ring_wait(a->ring, 1, patience_ms()));
	EXPECT_EQ(1, ring_unread(a->ring));
	EXPECT_EQ(0, post_into(a, 3, 1000, 100));
	EXPECT_EQ(0, succeed(a, 1, NULL));
}

TEST_F(busy, a_range_is_free_again_when_its_work_has_failed)
{
	struct side *a = self->a, *other = &self->other;
	struct ibchan_submit_wr again = into(other, 3, 1000, 100);

	again.sge.mr = a->mr;
	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	ASSERT_EQ(0, post_into(a, 2, 2000, 100));
	EXPECT_EQ(0, collides(other, again, 0, held_by(1, 1000, 100)));
	/* Too long for the first one; the second is flushed. */
	ASSERT_EQ(0, post_from(self->b, 9, 0, 101));
	EXPECT_LT(IBCHAN_STATUS_SUCCESS, status_of(a, 1));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 2));
	EXPECT_EQ(0, post_one(other, again));
	again = into(other, 4, 2000, 100);
	again.sge.mr = a->mr;
	EXPECT_EQ(0, post_one(other, again));
}

TEST_F(busy, a_range_is_free_again_when_its_channel_was_closed)
{
	struct side *a = self->a, *other = &self->other;
	struct ibchan_submit_wr again[2] = { into(other, 3, 1000, 100), into(other, 4, 2000, 100) };

	again[0].sge.mr = a->mr;
	again[1].sge.mr = a->mr;
	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	ASSERT_EQ(0, post_from(a, 2, 2000, 100));
	EXPECT_EQ(0, collides(other, again[0], 0, held_by(1, 1000, 100)));
	EXPECT_EQ(0, collides(other, again[1], 0, held_by(2, 2000, 100)));
	ASSERT_EQ(0, destroy(a->fd, a->channel));
	EXPECT_EQ(0, post(other, again, 2));
}

TEST_F(busy, channels_that_share_a_region_keep_out_of_each_others_way)
{
	struct side *a = self->a, *other = &self->other;
	struct ibchan_submit_wr wr = into(other, 2, 1050, 100);

	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	wr.sge.mr = a->mr;
	EXPECT_EQ(0, collides(other, wr, 0, held_by(1, 1000, 100)));
	/* The same offset of a region of its own is another range. */
	wr.sge.mr = other->mr;
	EXPECT_EQ(0, post_one(other, wr));
	wr = into(other, 3, 2000, 100);
	wr.sge.mr = a->mr;
	EXPECT_EQ(0, post_one(other, wr));
	EXPECT_EQ(0, collides(a, from(a, 4, 2000, 100), 0, held_by(3, 2000, 100)));
}

/* As the contract says; who wants one region to know of another has only one of them. */
TEST_F(busy, another_region_over_the_same_memory_is_not_seen)
{
	struct side *a = self->a;
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(a->memory),
		.length = a->length,
		.pd = a->pd,
		.access = IBCHAN_ACCESS_LOCAL,
	};
	struct ibchan_submit_wr wr = into(a, 2, 1000, 100);

	ASSERT_EQ(0, cmd_mr_reg(a->fd, &cmd));
	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	EXPECT_EQ(0, collides(a, wr, 0, held_by(1, 1000, 100)));
	wr.sge.mr = cmd.out_mr;
	EXPECT_EQ(0, post_one(a, wr));
	EXPECT_EQ(0, collides(a, wr, 0, held_by(2, 1000, 100)));
}

TEST_F(busy, an_unchecked_work_is_not_refused)
{
	struct side *a = self->a;
	struct ibchan_submit_wr recv = into(a, 2, 1050, 100), send = from(a, 3, 1050, 100);

	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	EXPECT_EQ(0, collides(a, recv, 0, held_by(1, 1000, 100)));
	EXPECT_EQ(0, collides(a, send, 0, held_by(1, 1000, 100)));
	recv.flags = IBCHAN_WR_UNCHECKED;
	send.flags = IBCHAN_WR_UNCHECKED;
	EXPECT_EQ(0, post_one(a, recv));
	EXPECT_EQ(0, post_one(a, recv));
	EXPECT_EQ(0, post_one(a, send));
	EXPECT_EQ(3, recvs_in_flight(a));
}

TEST_F(busy, an_unchecked_work_is_in_nobodys_way)
{
	struct side *a = self->a;
	struct ibchan_submit_wr recv = into(a, 1, 1000, 100);

	recv.flags = IBCHAN_WR_UNCHECKED;
	ASSERT_EQ(0, post_one(a, recv));
	EXPECT_EQ(0, post_into(a, 2, 1000, 100));
	/* Whoever comes next meets the checked one. */
	EXPECT_EQ(0, collides(a, from(a, 3, 1000, 1), 0, held_by(2, 1000, 100)));
}

TEST_F(busy, the_end_of_an_unchecked_work_frees_nobody_elses_range)
{
	struct side *a = self->a, *other = &self->other;
	struct ibchan_submit_wr recv = into(other, 2, 1000, 100);

	recv.flags = IBCHAN_WR_UNCHECKED;
	recv.sge.mr = a->mr;
	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	ASSERT_EQ(0, post_one(other, recv));
	ASSERT_EQ(0, destroy(other->fd, other->channel));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(a, 2));
	EXPECT_EQ(0, collides(a, into(a, 3, 1000, 100), 0, held_by(1, 1000, 100)));
}

TEST_F(busy, a_refused_work_holds_none_of_its_regions)
{
	struct side *a = self->a, *other = &self->other;
	struct ibchan_submit_sge sges[2] = { { 0, 100, other->mr }, { 1000, 100, a->mr } };
	struct ibchan_submit_wr wr = work_empty(a, IBCHAN_OP_RECV, 2);

	work_elements(&wr, sges, 2);
	ASSERT_EQ(0, post_into(a, 1, 1000, 100));
	EXPECT_EQ(0, collides(a, wr, 1, held_by(1, 1000, 100)));
	EXPECT_EQ(1, recvs_in_flight(a));
	/* Nor its ranges. */
	EXPECT_EQ(0, post_into(other, 3, 0, 100));
	EXPECT_EQ(-EBUSY, destroy(a->fd, other->mr));
	EXPECT_EQ(-EBUSY, destroy(a->fd, a->mr));
	ASSERT_EQ(0, destroy(a->fd, other->channel));
	EXPECT_EQ(0, destroy(a->fd, other->mr));
	ASSERT_EQ(0, destroy(a->fd, a->channel));
	EXPECT_EQ(0, destroy(a->fd, a->mr));
}

TEST_F(busy, a_refusal_takes_no_place_in_the_queue)
{
	struct side *a = self->a;
	unsigned int i;

	for (i = 0; i < DEPTH - 1; i++) {
		ASSERT_EQ(0, post_into(a, i, 8 * i, 8));
		ASSERT_EQ(0, collides(a, into(a, 999, 8 * i, 8), 0, held_by(i, 8 * i, 8)))
			TH_LOG("receive %u", i);
	}
	EXPECT_EQ(DEPTH - 1, recvs_in_flight(a));
	EXPECT_EQ(0, post_into(a, DEPTH, 8 * DEPTH, 8));
	EXPECT_EQ(-EAGAIN, post_into(a, DEPTH + 1, 8 * DEPTH + 8, 8));
}

/*
 * The same rules told in the simplest way: a list of what is held, compared one by one.
 */
#define WINDOW		6000
#define MAX_ELEMENTS	3

struct oracle {
	struct held held[2 * DEPTH * MAX_ELEMENTS];
	unsigned int num;
};

static bool overlap(const struct held *a, const struct held *b)
{
	return a->length && b->length && a->offset < b->offset + b->length &&
	       b->offset < a->offset + a->length;
}

static bool excludes(const struct held *a, const struct held *b)
{
	return overlap(a, b) && (a->written || b->written);
}

static bool has_conflict(const struct oracle *oracle, const struct held *range)
{
	unsigned int i;

	for (i = 0; i < oracle->num; i++)
		if (excludes(&oracle->held[i], range))
			return true;
	return false;
}

static struct held range_of(const struct ibchan_submit_wr *wr, const struct ibchan_submit_sge *sge)
{
	return (struct held) {
		sge->offset, sge->length, wr->wr_id, wr->opcode == IBCHAN_OP_RECV,
	};
}

/* Takes all elements or none: the first one that collides, or IBCHAN_AUTO. */
static __u32 oracle_take(struct oracle *oracle, const struct ibchan_submit_wr *wr,
			 const struct ibchan_submit_sge *sges)
{
	unsigned int before = oracle->num;
	__u32 i;

	for (i = 0; i < wr->num_sge; i++) {
		struct held range = range_of(wr, &sges[i]);

		if (has_conflict(oracle, &range)) {
			oracle->num = before;
			return i;
		}
		oracle->held[oracle->num++] = range;
	}
	return IBCHAN_AUTO;
}

static void oracle_release(struct oracle *oracle, __u64 wr_id)
{
	unsigned int i, kept = 0;

	for (i = 0; i < oracle->num; i++)
		if (oracle->held[i].wr_id != wr_id)
			oracle->held[kept++] = oracle->held[i];
	oracle->num = kept;
}

/* Is what the kernel names held, by that work, and really in the way? */
static bool names_a_conflict(const struct oracle *oracle, const struct answer *answer,
			     const struct ibchan_submit_wr *wr,
			     const struct ibchan_submit_sge *sges)
{
	const struct ibchan_reason *reason = &answer->cmd.reason;
	const struct held refused = range_of(wr, &sges[reason->element]);
	struct held named;
	unsigned int i;

	for (i = 0; i < oracle->num + reason->element; i++) {
		named = i < oracle->num ? oracle->held[i] :
					  range_of(wr, &sges[i - oracle->num]);
		if (named.offset == reason->value[0] && named.length == reason->value[1] &&
		    named.wr_id == reason->value[2] && excludes(&named, &refused))
			return true;
	}
	return false;
}

/* Works complete in the order of their posting, each kind for itself. */
struct fifo {
	__u64 ids[512];
	unsigned int first;
	unsigned int end;
};

struct game {
	struct side *a;
	struct side *b;
	struct oracle oracle;
	struct fifo recvs;
	struct fifo sends;
	__u64 next_id;
	__u32 state;
	unsigned int accepted;
	unsigned int refused;
};

static __u32 draw(struct game *game, __u32 below)
{
	game->state = game->state * 1664525U + 1013904223U;
	return (game->state >> 8) % below;
}

/* A random work: does the kernel say what the oracle says? */
static int play_post(struct game *game, int opcode)
{
	struct fifo *fifo = opcode == IBCHAN_OP_RECV ? &game->recvs : &game->sends;
	struct ibchan_submit_wr wr = work_empty(game->a, opcode, game->next_id++);
	struct ibchan_submit_sge sges[MAX_ELEMENTS];
	unsigned int i, n = 1 + draw(game, MAX_ELEMENTS);
	struct answer answer;
	__u32 element;

	if (fifo->end - fifo->first == DEPTH)
		return 0;
	for (i = 0; i < n; i++)
		sges[i] = (struct ibchan_submit_sge) {
			draw(game, WINDOW), draw(game, 60), game->a->mr,
		};
	work_elements(&wr, sges, n);
	answer = ask_one(game->a, &wr);
	element = oracle_take(&game->oracle, &wr, sges);
	if (element == IBCHAN_AUTO) {
		game->accepted++;
		fifo->ids[fifo->end++] = wr.wr_id;
		return answer.rc;
	}
	game->refused++;
	if (is_refusal(&answer, EBUSY, IBCHAN_REASON_BUSY) ||
	    answer.cmd.reason.element != element)
		return -EBADMSG;
	return names_a_conflict(&game->oracle, &answer, &wr, sges) ? 0 : -EPROTO;
}

/* The peer sends a message, or has a receive for one: the oldest work there is ends. */
static int play_end(struct game *game, struct fifo *fifo)
{
	struct ibchan_submit_wr wr = fifo == &game->recvs ?
		work_empty(game->b, IBCHAN_OP_SEND, game->next_id++) :
		into(game->b, game->next_id++, 0, 1024);
	__u64 oldest;
	int rc;

	if (fifo->first == fifo->end)
		return 0;
	oldest = fifo->ids[fifo->first++];
	rc = post_one(game->b, wr);
	if (!rc)
		rc = succeed(game->a, oldest, NULL);
	if (!rc)
		rc = succeed(game->b, wr.wr_id, NULL);
	oracle_release(&game->oracle, oldest);
	return rc;
}

static int play(struct game *game)
{
	switch (draw(game, 8)) {
	case 0:
		return play_end(game, &game->recvs);
	case 1:
		return play_end(game, &game->sends);
	case 2:
	case 3:
	case 4:
		return play_post(game, IBCHAN_OP_RECV);
	default:
		return play_post(game, IBCHAN_OP_SEND);
	}
}

TEST_F(busy, a_random_game_ends_as_the_rules_say)
{
	struct game *game = calloc(1, sizeof(*game));
	unsigned int i, rounds = 400;

	ASSERT_NE(NULL, game);
	game->a = self->a;
	game->b = self->b;
	game->state = 20261121;
	for (i = 0; i < rounds; i++)
		ASSERT_EQ(0, play(game))
			TH_LOG("round %u", i);
	/* It was a game: both answers came often. */
	EXPECT_LT(rounds / 8, game->accepted);
	EXPECT_LT(rounds / 8, game->refused);
	EXPECT_EQ(game->sends.end - game->sends.first, sends_in_flight(self->a));
	EXPECT_EQ(game->recvs.end - game->recvs.first, recvs_in_flight(self->a));
	free(game);
}

TEST_HARNESS_MAIN
