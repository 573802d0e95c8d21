// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scenarios that the examples of the Rust crates show, in C: the blocking pair, the scoped
 * pair on one buffer split in halves, lists of requests, lists of elements that do not match,
 * and a message that is only an immediate. Each has its refusing twin, which the borrow checker
 * would have been there. shim_scope_test.c has the manual scope, shim_pending_test.c the works that
 * nobody polls at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "shim/end.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define HALF_OF_64	32

/* A channel that is its own peer, as in the crates' examples, and two that are each other's. */
FIXTURE(seed)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end loop, a, b;
};

FIXTURE_SETUP(seed)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
	ASSERT_EQ(0, end_open(&self->loop, self->context, 0, NULL));
	ASSERT_EQ(0, end_loop(&self->loop));
}

FIXTURE_TEARDOWN(seed)
{
	end_close(&self->loop);
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* --- the blocking pair --- */

static void *answer_in_capitals(void *arg)
{
	struct blocking *call = arg;
	unsigned char *text = call->end->memory + call->sge.offset;
	__u32 i;

	receive_thread(call);
	if (call->rc)
		return NULL;
	for (i = 0; i < call->completion.bytes; i++)
		text[i] -= 'a' - 'A';
	call->sge.length = call->completion.bytes;
	call->rc = ibchan_send(call->end->channel, &call->sge, 1,
			       IBCHAN_TIMEOUT_NEVER, &call->error);
	return NULL;
}

TEST_F(seed, blocking_pair_asks_and_answers)
{
	struct blocking server = { .end = &self->b, .sge = sge_at(&self->b, 0, 64) };
	struct ibchan_submit_sge question = sge_at(&self->a, 0, 5);
	struct ibchan_submit_sge answer = sge_at(&self->a, 64, 64);
	struct ibchan_error error = { .code = 1 };
	struct ibchan_cqe completion;
	pthread_t thread;

	memcpy(self->a.memory, "hello", 5);
	ASSERT_EQ(0, pthread_create(&thread, NULL, answer_in_capitals, &server));
	ASSERT_EQ(0, ibchan_send(self->a.channel, &question, 1, IBCHAN_TIMEOUT_NEVER, &error));
	EXPECT_EQ(IBCHAN_ERROR_NONE, error.origin);
	EXPECT_EQ(0, error.code);
	ASSERT_EQ(0, ibchan_receive(self->a.channel, &answer, 1,
				    IBCHAN_TIMEOUT_NEVER, &completion, NULL));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, server.rc);
	EXPECT_EQ(5, completion.bytes);
	EXPECT_EQ(IBCHAN_OP_RECV, completion.opcode);
	EXPECT_EQ(self->a.channel, ibchan_cqe_channel(self->context, &completion));
	EXPECT_EQ(0, memcmp(self->a.memory + 64, "HELLO", 5));
}

TEST_F(seed, blocking_calls_on_a_looped_channel_meet)
{
	struct blocking receive = { .end = &self->loop, .sge = sge_at(&self->loop, 64, 64) };
	struct ibchan_submit_sge out = sge_at(&self->loop, 0, 64);
	pthread_t thread;

	pattern(self->loop.memory, 64, 1);
	ASSERT_EQ(0, pthread_create(&thread, NULL, receive_thread, &receive));
	ASSERT_EQ(0, ibchan_send(self->loop.channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, receive.rc);
	EXPECT_EQ(0, same_bytes(self->loop.memory, self->loop.memory + 64, 64));
}

/* --- the scoped pair --- */

static int scope_post(struct ibchan_scope *scope, struct ibchan_pending *pending,
		      const struct end *end, __u32 opcode, struct ibchan_submit_sge sge)
{
	struct ibchan_submit_wr wr = wr_of(end, opcode, &sge);
	int rc = ibchan_scope_post(scope, pending, end->channel, &wr, NULL);

	return ibchan_scope_fail(scope, rc);
}

TEST_F(seed, scoped_pair_uses_the_two_halves_of_one_buffer)
{
	struct ibchan_submit_sge tx = sge_at(&self->loop, 0, HALF_OF_64);
	struct ibchan_submit_sge rx = sge_at(&self->loop, HALF_OF_64, HALF_OF_64);
	struct ibchan_pending send = { 0 }, receive = { 0 };
	unsigned char *buffer = self->loop.memory;
	struct ibchan_scope scope;

	pattern(buffer, HALF_OF_64, 2);
	ibchan_scoped(&scope) {
		if (scope_post(&scope, &send, &self->loop, IBCHAN_OP_SEND, tx))
			break;
		if (scope_post(&scope, &receive, &self->loop, IBCHAN_OP_RECV, rx))
			break;
		while (!ibchan_pending_poll(&send))
			;
		while (!ibchan_pending_poll(&receive))
			;
	}
	EXPECT_EQ(0, ibchan_scope_error(&scope));
	EXPECT_EQ(0, scope.auto_polled);
	EXPECT_EQ(0, ibchan_pending_result(&send));
	EXPECT_EQ(0, ibchan_pending_result(&receive));
	EXPECT_EQ(HALF_OF_64, receive.completion.bytes);
	EXPECT_EQ(0, same_bytes(buffer, buffer + HALF_OF_64, HALF_OF_64));
}

/* What the borrow checker refuses to compile, the kernel refuses to post. */
TEST_F(seed, scoped_pair_with_a_byte_in_common_is_refused)
{
	struct ibchan_submit_sge tx = sge_at(&self->loop, 0, HALF_OF_64 + 1);
	struct ibchan_submit_sge rx = sge_at(&self->loop, HALF_OF_64, HALF_OF_64);
	struct late_send late = { &self->loop, sge_at(&self->loop, 0, HALF_OF_64), gettid(), -1 };
	struct ibchan_pending send = { 0 }, receive = { 0 };
	struct ibchan_scope scope;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &late));
	ibchan_scoped(&scope) {
		if (scope_post(&scope, &receive, &self->loop, IBCHAN_OP_RECV, rx))
			break;
		scope_post(&scope, &send, &self->loop, IBCHAN_OP_SEND, tx);
	}
	/* The block has failed; what was posted before has completed all the same. */
	EXPECT_EQ(-EBUSY, ibchan_scope_error(&scope));
	EXPECT_EQ(-EINVAL, ibchan_pending_result(&send));
	EXPECT_EQ(0, ibchan_pending_result(&receive));
	EXPECT_EQ(1, scope.auto_polled);
	EXPECT_EQ(0, scope.num_failed);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, late.rc);
}

/* The level below: the numbers are the caller's, and so is the care for the memory. */
TEST_F(seed, lowest_level_posts_by_wr_id_and_polls_the_queue)
{
	struct ibchan_cqe done[2];
	unsigned char *memory = self->loop.memory;
	int n;

	memory[1] = 0x42;
	ASSERT_EQ(0, ibchan_post_receive(self->loop.channel, self->loop.mr, 0, 1, 2, NULL));
	ASSERT_EQ(0, ibchan_post_send(self->loop.channel, self->loop.mr, 1, 1, 1, NULL));
	n = ibchan_cq_wait(self->loop.cq, done, 2, 2, patience_ns());
	ASSERT_EQ(2, n);
	EXPECT_EQ(3, done[0].wr_id + done[1].wr_id);
	EXPECT_EQ(0, done[0].error);
	EXPECT_EQ(0, done[1].error);
	EXPECT_EQ(0x42, memory[0]);
	EXPECT_EQ(-EINVAL, ibchan_post_send(self->loop.channel, self->loop.mr, MEMORY, 1, 1, NULL));
	EXPECT_EQ(0, ibchan_cq_poll(self->loop.cq, done, 2));
}

/* --- lists of requests --- */

#define LIST	6

/* Receives of the one channel and sends of the other, each with its number as immediate. */
static void fill_list(struct ibchan_submit_wr *wrs, struct ibchan_submit_sge *sges,
		      const struct end *from, const struct end *to)
{
	unsigned int i;

	for (i = 0; i < LIST; i++) {
		sges[i] = sge_at(to, 128 * i, 128);
		wrs[i] = wr_of(to, IBCHAN_OP_RECV, &sges[i]);
		wrs[i].wr_id = 100 + i;
		sges[LIST + i] = sge_at(from, 128 * i, 20 * i);
		wrs[LIST + i] = wr_of(from, IBCHAN_OP_SEND, &sges[LIST + i]);
		wrs[LIST + i].flags = IBCHAN_WR_IMM;
		wrs[LIST + i].imm = i;
		wrs[LIST + i].wr_id = 200 + i;
	}
}

TEST_F(seed, list_of_requests_completes_in_its_order)
{
	struct ibchan_submit_sge sges[2 * LIST];
	struct ibchan_submit_wr wrs[2 * LIST];
	struct ibchan_cqe done[LIST];
	__u32 accepted, i;

	pattern(self->a.memory, LIST * 128, 6);
	fill_list(wrs, sges, &self->a, &self->b);
	ASSERT_EQ(0, ibchan_post(self->context, wrs, 2 * LIST, &accepted, NULL));
	ASSERT_EQ(2 * LIST, accepted);
	ASSERT_EQ(LIST, ibchan_cq_wait(self->b.cq, done, LIST, LIST, patience_ns()));
	for (i = 0; i < LIST; i++) {
		EXPECT_EQ(0, done[i].error);
		EXPECT_EQ(100 + i, done[i].wr_id);
		EXPECT_EQ(20 * i, done[i].bytes);
		EXPECT_EQ(IBCHAN_CQE_IMM, done[i].flags);
		EXPECT_EQ(i, done[i].imm);
		EXPECT_EQ(0, same_bytes(self->a.memory + 128 * i, self->b.memory + 128 * i,
					20 * i));
	}
	ASSERT_EQ(LIST, ibchan_cq_wait(self->a.cq, done, LIST, LIST, patience_ns()));
	for (i = 0; i < LIST; i++)
		EXPECT_EQ(200 + i, done[i].wr_id);
}

/* --- lists of elements --- */

#define TOTAL	128

static void gather_list(struct ibchan_submit_sge *sges, const struct end *end)
{
	sges[0] = ibchan_sge_new(end->mr, 1000, 100);
	sges[1] = ibchan_sge_new(end->mr, 3000, 1);
	sges[2] = ibchan_sge_new(end->mr, 2000, 27);
}

static void scatter_list(struct ibchan_submit_sge *sges, const struct end *end)
{
	sges[0] = ibchan_sge_new(end->mr, 9000, 5);
	sges[1] = ibchan_sge_new(end->mr, 8000, 60);
	sges[2] = ibchan_sge_new(end->mr, 7000, 0);
	sges[3] = ibchan_sge_new(end->mr, 6000, 80);
}

/* What the elements hold, one behind the other. */
static size_t join(unsigned char *bytes, const struct end *end,
		   const struct ibchan_submit_sge *sges, unsigned int n)
{
	size_t length = 0;
	unsigned int i;

	for (i = 0; i < n; i++) {
		memcpy(bytes + length, end->memory + sges[i].offset, sges[i].length);
		length += sges[i].length;
	}
	return length;
}

static int same_message(const struct end *a, const struct ibchan_submit_sge *out,
			const struct end *b, const struct ibchan_submit_sge *in)
{
	unsigned char sent[TOTAL], seen[TOTAL + 17];

	if (join(sent, a, out, 3) != TOTAL || join(seen, b, in, 4) != sizeof(seen))
		return -EINVAL;
	/* What is behind the message is as it was. */
	return same_bytes(sent, seen, TOTAL) ?: all_bytes(seen + TOTAL, 17, 0xcc);
}

TEST_F(seed, lists_of_elements_work_for_write_and_read_too)
{
	struct ibchan_remote_region remote;
	struct ibchan_submit_sge out[3], in[4];
	unsigned char sent[TOTAL];

	pattern(self->a.memory, MEMORY, 8);
	gather_list(out, &self->a);
	ASSERT_EQ(0, ibchan_mr_remote_region(self->b.mr, &remote));
	ASSERT_EQ(0, ibchan_remote_region_sub(&remote, 4096, TOTAL + 17, &remote));
	memset(self->b.memory, 0xcc, MEMORY);
	ASSERT_EQ(0, ibchan_write(self->a.channel, out, 3, &remote, IBCHAN_TIMEOUT_NEVER, NULL));
	join(sent, &self->a, out, 3);
	EXPECT_EQ(0, same_bytes(sent, self->b.memory + 4096, TOTAL));
	EXPECT_EQ(0xcc, self->b.memory[4095]);
	/* Back again, into other pieces. */
	scatter_list(in, &self->a);
	ASSERT_EQ(0, ibchan_read(self->a.channel, in, 4, &remote, IBCHAN_TIMEOUT_NEVER, NULL));
	EXPECT_EQ(0, same_message(&self->a, out, &self->a, in));
}

/* --- only an immediate --- */

static int perform_imm(const struct end *end, __u32 opcode, __u32 imm,
		       const struct ibchan_remote_region *remote)
{
	struct ibchan_submit_wr wr = wr_of(end, opcode, NULL);

	wr.flags = IBCHAN_WR_IMM;
	wr.imm = imm;
	if (remote)
		wr_at(&wr, remote);
	return ibchan_perform(end->channel, &wr, patience_ns(), NULL, NULL);
}

TEST_F(seed, only_an_immediate_needs_no_memory_on_either_side)
{
	struct ibchan_cqe completion;
	struct ibchan_remote_region remote;

	memset(self->b.memory, 0xcc, MEMORY);
	ASSERT_EQ(0, ibchan_mr_remote_region(self->b.mr, &remote));
	ASSERT_EQ(0, post_receive(self->context, &self->b, NULL, 1));
	ASSERT_EQ(0, post_receive(self->context, &self->b, NULL, 2));
	ASSERT_EQ(0, perform_imm(&self->a, IBCHAN_OP_SEND, 0xcafebabe, NULL));
	ASSERT_EQ(1, wait_one(self->b.cq, &completion));
	EXPECT_EQ(1, completion.wr_id);
	EXPECT_EQ(0, completion.error);
	EXPECT_EQ(0, completion.bytes);
	EXPECT_EQ(IBCHAN_CQE_IMM, completion.flags);
	EXPECT_EQ(0xcafebabe, completion.imm);
	ASSERT_EQ(0, perform_imm(&self->a, IBCHAN_OP_WRITE, 0, &remote));
	ASSERT_EQ(1, wait_one(self->b.cq, &completion));
	EXPECT_EQ(2, completion.wr_id);
	EXPECT_EQ(IBCHAN_CQE_IMM, completion.flags);
	EXPECT_EQ(0, completion.imm);
	EXPECT_EQ(0, all_bytes(self->b.memory, MEMORY, 0xcc));
}

TEST_HARNESS_MAIN
