// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a work of libibchan may ask for besides moving registered bytes: atomics, inline data,
 * no signal, solicited messages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

#define INLINE_ROOM	64
#define ENTRIES		32

/* Two ends whose memory allows everything; the receives of b complete in a solicited cq. */
FIXTURE(rare)
{
	struct calm calm;
	struct ibchan_context *context;
	struct ibchan_cq *solicited;
	struct end a, b;
	struct ibchan_remote_region words;
};

static int open_end(struct end *end, struct ibchan_context *context, int index,
		    struct ibchan_cq **solicited)
{
	struct ibchan_mr_params params = {
		.size = sizeof(params), .access = IBCHAN_ACCESS_ALL, .length = MEMORY,
	};
	struct ibchan_builder builder;
	int rc = end_objects(end, context, index);

	rc = rc ?: ibchan_mr_dereg(end->mr);
	params.addr = end->memory;
	rc = rc ?: ibchan_mr_reg(end->pd, &params, &end->mr, NULL);
	rc = rc ?: ibchan_cq_create(end->device, ENTRIES, 0, &end->own_cq, NULL);
	if (!rc && solicited)
		rc = ibchan_cq_create_solicited(end->device, 0, 0, solicited, NULL);
	if (rc)
		return rc;
	end->cq = end->own_cq;
	ibchan_builder_init(&builder, end->pd, end->cq);
	if (solicited)
		builder.recv_cq = *solicited;
	builder.params.access = IBCHAN_ACCESS_ALL;
	builder.params.max_inline_data = INLINE_ROOM;
	builder.params.rnr_retries = 7;
	builder.params.ack_timeout = 18;
	return ibchan_builder_prepare(&builder, &end->prepared, NULL);
}

FIXTURE_SETUP(rare)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, ibchan_context_open(&self->context, NULL));
	ASSERT_EQ(0, open_end(&self->a, self->context, 0, NULL));
	ASSERT_EQ(0, open_end(&self->b, self->context, 1, &self->solicited));
	ASSERT_EQ(0, connect_ends(&self->a, &self->b));
	ASSERT_EQ(0, ibchan_mr_remote_region(self->b.mr, &self->words));
}

FIXTURE_TEARDOWN(rare)
{
	ibchan_channel_close(self->b.channel);
	self->b.channel = NULL;
	EXPECT_EQ(0, ibchan_cq_destroy(self->solicited));
	end_close(&self->a);
	end_close(&self->b);
	EXPECT_EQ(0, ibchan_context_close(self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static __u64 *word_at(const struct end *end, size_t offset)
{
	return (__u64 *)(end->memory + offset);
}

/* --- requests by opcode: without anything that their opcode does not use --- */

TEST_F(rare, takes_a_request_of_each_opcode_as_it_is_made)
{
	struct ibchan_submit_sge from = sge_at(&self->a, 64, 8), into = sge_at(&self->b, 64, 8);
	struct ibchan_cqe done;
	struct ibchan_submit_wr receive = ibchan_wr_receive(self->b.channel, &into, 1);
	struct ibchan_submit_wr send = ibchan_wr_send(self->a.channel, &from, 1);

	ASSERT_EQ(0, ibchan_post(self->context, &receive, 1, NULL, NULL));
	*word_at(&self->a, 64) = 7;
	ibchan_wr_set_imm(&send, 77);
	send.flags |= IBCHAN_WR_SOLICITED;
	ASSERT_EQ(0, ibchan_perform(self->a.channel, &send, patience_ns(), NULL, NULL));
	ASSERT_EQ(1, wait_one(self->solicited, &done));
	EXPECT_EQ(IBCHAN_CQE_IMM, done.flags & IBCHAN_CQE_IMM);
	EXPECT_EQ(77, done.imm);
	EXPECT_EQ(7, *word_at(&self->b, 64));
}

TEST_F(rare, takes_a_request_for_the_peers_memory_as_it_is_made)
{
	struct ibchan_submit_sge word = sge_at(&self->a, 64, 8);
	struct ibchan_submit_wr wrs[] = {
		ibchan_wr_fetch_add(self->a.channel, &word, &self->words, 3),
		ibchan_wr_compare_swap(self->a.channel, &word, &self->words, 8, 9),
		ibchan_wr_read(self->a.channel, &word, 1, &self->words),
	};
	const __u64 seen[] = { 5, 8, 9 };
	struct ibchan_submit_wr write = ibchan_wr_write(self->a.channel, &word, 1, &self->words);
	int i;

	*word_at(&self->b, 0) = 5;
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, ibchan_perform(self->a.channel, &wrs[i], patience_ns(), NULL, NULL));
		EXPECT_EQ(seen[i], *word_at(&self->a, 64));
	}
	*word_at(&self->a, 64) = 10;
	ASSERT_EQ(0, ibchan_perform(self->a.channel, &write, patience_ns(), NULL, NULL));
	EXPECT_EQ(10, *word_at(&self->b, 0));
}

/* --- atomics --- */

TEST_F(rare, adds_to_a_word_of_the_peers_and_tells_what_it_was)
{
	struct ibchan_submit_sge old = sge_at(&self->a, 64, 8);
	struct ibchan_remote_region word;

	ASSERT_EQ(0, ibchan_remote_region_element(&self->words, __u64, 3, &word));
	*word_at(&self->b, 24) = 40;
	ASSERT_EQ(0, ibchan_fetch_add(self->a.channel, &old, &word, 2, IBCHAN_TIMEOUT_NEVER, NULL));
	ASSERT_EQ(40, *word_at(&self->a, 64));
	ASSERT_EQ(42, *word_at(&self->b, 24));
	ASSERT_EQ(0, ibchan_fetch_add(self->a.channel, &old, &word, -43ULL,
				      IBCHAN_TIMEOUT_NEVER, NULL));
	ASSERT_EQ(42, *word_at(&self->a, 64));
	ASSERT_EQ(-1ULL, *word_at(&self->b, 24));
}

TEST_F(rare, swaps_a_word_of_the_peers_only_if_it_is_as_expected)
{
	struct ibchan_swap values = { .compare = 5, .swap = 0x1122334455667788ULL };
	struct ibchan_submit_sge old = sge_at(&self->a, 64, 8);
	struct ibchan_remote_region word;

	ASSERT_EQ(0, ibchan_remote_region_element(&self->words, __u64, 0, &word));
	*word_at(&self->b, 0) = 4;
	ASSERT_EQ(0, ibchan_compare_swap(self->a.channel, &old, &word, &values,
					 IBCHAN_TIMEOUT_NEVER, NULL));
	ASSERT_EQ(4, *word_at(&self->a, 64));
	ASSERT_EQ(4, *word_at(&self->b, 0));
	values.compare = 4;
	ASSERT_EQ(0, ibchan_compare_swap(self->a.channel, &old, &word, &values,
					 IBCHAN_TIMEOUT_NEVER, NULL));
	ASSERT_EQ(4, *word_at(&self->a, 64));
	ASSERT_EQ(0x1122334455667788ULL, *word_at(&self->b, 0));
}

TEST_F(rare, refuses_an_atomic_of_the_wrong_form)
{
	struct ibchan_submit_sge sges[2] = { sge_at(&self->a, 64, 8), sge_at(&self->a, 80, 8) };
	struct ibchan_submit_wr wr = wr_of(&self->a, IBCHAN_OP_FETCH_ADD, sges);
	const struct ibchan_swap values = { .compare = 0, .swap = 1 };
	struct ibchan_remote_region word;
	struct ibchan_error error;

	ASSERT_EQ(0, ibchan_remote_region_sub(&self->words, 4, 8, &word));
	ASSERT_EQ(-EINVAL, ibchan_fetch_add(self->a.channel, sges, &word, 1,
					    IBCHAN_TIMEOUT_NEVER, &error));
	ASSERT_EQ(IBCHAN_REASON_ATOMIC_FORM, error.reason.code);
	ASSERT_EQ(0, ibchan_remote_region_sub(&self->words, 8, 7, &word));
	ASSERT_EQ(-EINVAL, ibchan_fetch_add(self->a.channel, sges, &word, 1,
					    IBCHAN_TIMEOUT_NEVER, &error));
	ASSERT_EQ(IBCHAN_REASON_REMOTE_BOUNDS, error.reason.code);
	/* The contract has another number where a swap would have that length. */
	ASSERT_EQ(-EINVAL, ibchan_compare_swap(self->a.channel, sges, &word, &values,
					       IBCHAN_TIMEOUT_NEVER, &error));
	ASSERT_EQ(IBCHAN_REASON_ATOMIC_FORM, error.reason.code);
	wr_at(&wr, &self->words);
	wr.num_sge = 2;
	ASSERT_EQ(-EINVAL, ibchan_post(self->context, &wr, 1, NULL, &error));
	ASSERT_EQ(IBCHAN_REASON_TOO_MANY_ELEMENTS, error.reason.code);
	ASSERT_EQ(2, error.reason.value[0]);
	ASSERT_EQ(1, error.reason.value[1]);
}

/* --- inline data --- */

TEST_F(rare, takes_inline_data_along_at_the_post)
{
	char here[8] = "on the ", there[INLINE_ROOM] = "";
	struct ibchan_submit_sge sges[2] = {
		ibchan_sge_plain(here, 7), ibchan_sge_plain(self->a.memory + 100, 5),
	};
	struct ibchan_submit_sge in = ibchan_sge_plain(there, sizeof(there));
	struct ibchan_submit_wr wr = wr_of(&self->a, IBCHAN_OP_SEND, sges);
	struct ibchan_cqe done;

	memcpy(self->a.memory + 100, "stack", 5);
	wr_elements(&wr, sges, 2);
	wr.flags = IBCHAN_WR_INLINE;
	ASSERT_EQ(0, ibchan_post(self->context, &wr, 1, NULL, NULL));
	/* Nobody receives yet, so they have not gone out. */
	memset(here, 'x', sizeof(here));
	memset(self->a.memory + 100, 'x', 5);
	ASSERT_EQ(0, post_receive(self->context, &self->b, &in, 1));
	ASSERT_EQ(1, wait_one(self->solicited, &done));
	ASSERT_EQ(0, done.error);
	ASSERT_EQ(12, done.bytes);
	ASSERT_STREQ("on the stack", there);
	ASSERT_EQ(1, wait_one(self->a.cq, &done));
}

/* --- no signal --- */

static struct ibchan_submit_wr write_of(const struct end *end, const struct ibchan_submit_sge *sge,
					const struct ibchan_remote_region *remote, __u8 flags)
{
	struct ibchan_submit_wr wr = ibchan_wr_write(end->channel, sge, 1, remote);

	wr.flags = flags;
	return wr;
}

TEST_F(rare, shows_no_unsignaled_work_that_succeeds_and_uses_its_place_again)
{
	struct ibchan_submit_sge sge = sge_at(&self->a, 0, 8);
	struct ibchan_cqe done[8];
	struct ibchan_submit_wr wrs[4];
	int i, round;

	for (i = 0; i < 4; i++) {
		wrs[i] = write_of(&self->a, &sge, &self->words, i < 3 ? IBCHAN_WR_UNSIGNALED : 0);
		wrs[i].wr_id = 10 + i;
	}
	for (round = 0; round < ENTRIES; round++) {
		ASSERT_EQ(0, ibchan_post(self->context, wrs, 4, NULL, NULL));
		ASSERT_EQ(1, ibchan_cq_wait(self->a.cq, done, 8, 1, patience_ns()));
		ASSERT_EQ(13, done[0].wr_id);
		ASSERT_EQ(0, done[0].flags);
	}
	ASSERT_EQ(0, ibchan_cq_poll(self->a.cq, done, 8));
}

TEST_F(rare, shows_an_unsignaled_work_that_fails)
{
	struct ibchan_submit_sge sge = sge_at(&self->a, 0, 8);
	struct ibchan_submit_wr wr = write_of(&self->a, &sge, &self->words, IBCHAN_WR_UNSIGNALED);
	struct ibchan_cqe done;

	wr.wr_id = 99;
	wr.rkey ^= 0xff00;
	ASSERT_EQ(0, ibchan_post(self->context, &wr, 1, NULL, NULL));
	ASSERT_EQ(1, wait_one(self->a.cq, &done));
	ASSERT_EQ(99, done.wr_id);
	ASSERT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, done.status);
}

TEST_F(rare, signals_what_somebody_waits_for_whatever_its_flags)
{
	struct ibchan_submit_sge sge = sge_at(&self->a, 0, 8);
	struct ibchan_submit_wr wr = write_of(&self->a, &sge, &self->words, IBCHAN_WR_UNSIGNALED);
	struct ibchan_pending pending = { 0 };
	struct ibchan_cqe done;
	struct ibchan_error error;

	ASSERT_EQ(0, ibchan_perform(self->a.channel, &wr, patience_ns(), &done, NULL));
	ASSERT_EQ(0, done.flags);
	ASSERT_EQ(0, ibchan_pending_post(&pending, self->a.channel, &wr, NULL));
	ASSERT_EQ(0, ibchan_pending_wait(&pending, patience_ns()));
	ASSERT_EQ(0, ibchan_pending_result(&pending));
	wr = wr_of(&self->a, IBCHAN_OP_RECV, &sge);
	wr.flags = IBCHAN_WR_UNSIGNALED;
	ASSERT_EQ(-EINVAL, ibchan_post(self->context, &wr, 1, NULL, &error));
	ASSERT_EQ(IBCHAN_REASON_WR_FLAGS, error.reason.code);
}

/* --- solicited messages --- */

static int is_readable(int fd, int timeout_ms)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, timeout_ms) == 1;
}

TEST_F(rare, wakes_who_polls_a_solicited_queue_for_a_solicited_message_only)
{
	struct ibchan_submit_sge in[2] = {
		sge_at(&self->b, HALF, 8), sge_at(&self->b, HALF + 8, 8),
	};
	struct ibchan_submit_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_submit_wr wr = wr_of(&self->a, IBCHAN_OP_SEND, &out);
	struct ibchan_cqe done[2];
	int fd = ibchan_cq_fd(self->solicited);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, post_receive(self->context, &self->b, &in[0], 1));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &in[1], 2));
	ASSERT_EQ(0, ibchan_perform(self->a.channel, &wr, patience_ns(), NULL, NULL));
	ASSERT_FALSE(is_readable(fd, 100));
	wr.flags = IBCHAN_WR_SOLICITED;
	ASSERT_EQ(0, ibchan_perform(self->a.channel, &wr, patience_ns(), NULL, NULL));
	ASSERT_TRUE(is_readable(fd, patience_ms()));
	ASSERT_EQ(2, ibchan_cq_poll(self->solicited, done, 2));
	ASSERT_EQ(1, done[0].wr_id);
	ASSERT_EQ(2, done[1].wr_id);
}

/* --- what can be asked for --- */

TEST_F(rare, tells_what_a_work_may_ask_for)
{
	struct ibchan_device_attr device;
	struct ibchan_context_attr info;
	unsigned int op;

	ASSERT_EQ(0, ibchan_context_query(self->context, &info, NULL));
	for (op = IBCHAN_OP_SEND; op <= IBCHAN_OP_FETCH_ADD; op++)
		ASSERT_TRUE(info.opcodes & 1U << op);
	ASSERT_EQ(0, info.opcodes >> (IBCHAN_OP_FETCH_ADD + 1));
	ASSERT_EQ(IBCHAN_WR_FLAGS, info.wr_flags);
	ASSERT_EQ(IBCHAN_SUBMIT_SINCE | IBCHAN_DEADLINE, info.submit_flags);
	ASSERT_EQ(IBCHAN_CQ_CREATE_SOLICITED, info.cq_flags);
	ASSERT_LT(0, ibchan_device_list(self->context, &device, 1, NULL));
	ASSERT_LE(4096, device.max_plain_bytes);
}

TEST_HARNESS_MAIN
