// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a post refuses, and that it says why; and that what it accepted is not touched by a
 * refusal beside it.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "answer.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define DEPTH	4
#define HALF	32768

FIXTURE(post)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
};

/* Queues of four, and a peer without a receive makes a send wait for as long as it takes. */
static struct side_options small_queues(void)
{
	struct side_options options = side_defaults();

	options.params.max_send_wr = DEPTH;
	options.params.max_recv_wr = DEPTH;
	options.params.max_send_sge = 3;
	options.params.max_recv_sge = 2;
	options.params.rnr_retries = 7;
	return options;
}

FIXTURE_SETUP(post)
{
	struct side_options options = small_queues();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_SAME_DEVICE, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
	ASSERT_EQ(DEPTH, self->a->params.max_send_wr);
	ASSERT_EQ(DEPTH, self->a->params.max_recv_wr);
}

FIXTURE_TEARDOWN(post)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Each in a place of its own. */
static struct ibchan_submit_wr receive(const struct side *side, __u64 wr_id)
{
	return work(side, IBCHAN_OP_RECV, wr_id, HALF + 64 * wr_id, 64);
}

static struct ibchan_submit_wr message(const struct side *side, __u64 wr_id)
{
	return work(side, IBCHAN_OP_SEND, wr_id, 0, 64);
}

static int refused(const struct side *side, const struct ibchan_submit_wr *wr, int error,
		   unsigned int code)
{
	struct answer answer = ask_one(side, wr);

	return is_refusal(&answer, error, code);
}

TEST_F(post, a_batch_with_a_bad_third_entry_posts_two_and_names_the_third)
{
	struct ibchan_submit_wr wrs[DEPTH];
	struct ibchan_cmd_channel_query query;
	struct answer answer;
	unsigned int i;

	for (i = 0; i < DEPTH; i++)
		wrs[i] = receive(self->b, i);
	wrs[2].sge.offset = self->b->length - 1;
	answer = ask(self->b, wrs, DEPTH);
	EXPECT_EQ(-EINVAL, answer.rc);
	EXPECT_EQ(2, answer.cmd.entry_num);
	EXPECT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, answer.cmd.reason.code);
	EXPECT_EQ(2, answer.cmd.reason.wr);
	EXPECT_EQ(0, answer.cmd.reason.element);
	EXPECT_EQ(0, has_values(&answer, self->b->length - 1, 64, self->b->length));
	ASSERT_EQ(0, side_query(self->b, &query));
	EXPECT_EQ(2, query.out.recvs_in_flight);

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, post_one(self->a, message(self->a, 10 + i)));
	EXPECT_EQ(0, succeed(self->b, 0, NULL));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, ring_surplus(self->b->ring));
	EXPECT_EQ(0, exchange(self->a, self->b));
}

TEST_F(post, a_refused_batch_waits_for_nothing)
{
	struct ibchan_submit_wr wr = receive(self->b, 1);
	struct ibchan_cmd_submit cmd = submission(&wr, 1);
	__u64 start = now_ms();

	wr.channel = 0x7fffffff;
	cmd.cq = self->b->ring->cq;
	cmd.min_complete = 1;
	cmd.timeout_ns = IBCHAN_TIMEOUT_NEVER;
	EXPECT_EQ(-ENOENT, cmd_submit(self->b->fd, &cmd));
	EXPECT_LT(now_ms() - start, patience_ms());
}

TEST_F(post, what_a_batch_refuses_for_its_second_channel_leaves_the_first_alone)
{
	struct side_options options = small_queues();
	struct ibchan_submit_wr wrs[3];
	struct answer answer;
	struct pair pair;

	ASSERT_EQ(0, pair_open(&pair, PAIR_ONE_CQ, &options));
	wrs[0] = receive(pair.b, 1);
	wrs[1] = message(pair.a, 2);
	wrs[2] = message(pair.a, 3);
	wrs[2].sge.length = 0x7fffffff;
	answer = ask(pair.a, wrs, 3);
	EXPECT_EQ(-EINVAL, answer.rc);
	EXPECT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, answer.cmd.reason.code);
	EXPECT_EQ(2, answer.cmd.entry_num);
	EXPECT_EQ(2, answer.cmd.reason.wr);
	EXPECT_EQ(0, succeed(pair.b, 1, NULL));
	EXPECT_EQ(0, succeed(pair.a, 2, NULL));
	EXPECT_EQ(0, ring_surplus(pair.a->ring));
	pair_close(&pair);
}

/* Also of a single one, which the kernel reads in another way than batches with a wait. */
TEST_F(post, who_cannot_be_answered_has_nothing_posted)
{
	unsigned int page = getpagesize();
	struct ibchan_cmd_submit *deaf = mmap(NULL, page, PROT_READ | PROT_WRITE,
					      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), receive(self->b, 2) };
	struct ibchan_cmd_channel_query query;
	unsigned int i;

	ASSERT_NE(MAP_FAILED, deaf);
	for (i = 0; i < 4; i++) {
		*deaf = submission(wrs, 1 + i % 2);
		deaf->size = sizeof(*deaf);
		deaf->cq = i < 2 ? 0 : self->b->ring->cq;
		ASSERT_EQ(0, mprotect(deaf, page, PROT_READ));
		EXPECT_EQ(-EFAULT, cmd_raw(self->b->fd, IBCHAN_CMD_SUBMIT, deaf));
		ASSERT_EQ(0, mprotect(deaf, page, PROT_READ | PROT_WRITE));
		ASSERT_EQ(0, side_query(self->b, &query));
		EXPECT_EQ(0, query.out.recvs_in_flight);
	}
	munmap(deaf, page);
	EXPECT_EQ(0, exchange(self->a, self->b));
}

TEST_F(post, what_the_struct_held_before_is_not_taken_for_an_answer)
{
	struct ibchan_submit_wr wr = receive(self->b, 1);
	struct ibchan_cmd_submit cmd = submission(&wr, 1);

	memset(&cmd.reason, 0xff, sizeof(cmd.reason));
	cmd.out_ready = 77;
	wr.channel = 0x7fffffff;
	EXPECT_EQ(-ENOENT, cmd_submit(self->b->fd, &cmd));
	EXPECT_EQ(0, cmd.entry_num);
	EXPECT_EQ(0, cmd.out_ready);
	EXPECT_EQ(IBCHAN_REASON_CHANNEL_HANDLE, cmd.reason.code);
	EXPECT_EQ(0, cmd.reason.wr);
	EXPECT_EQ(0, cmd.reason.element);
	EXPECT_EQ(0, cmd.reason.value[1]);

	cmd = submission(&wr, 1);
	memset(&cmd.reason, 0xff, sizeof(cmd.reason));
	wr = receive(self->b, 1);
	wr.sge.offset = self->b->length;
	EXPECT_EQ(-EINVAL, cmd_submit(self->b->fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, cmd.reason.code);
	EXPECT_EQ(0, cmd.reason.wr);
	EXPECT_EQ(0, cmd.reason.element);

	/* A wait that ends in time is no refusal, whatever the last answer was. */
	cmd.entry_num = 0;
	cmd.cq = self->b->ring->cq;
	cmd.min_complete = 1;
	EXPECT_EQ(-ETIMEDOUT, cmd_submit(self->b->fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_NONE, cmd.reason.code);
	wr = receive(self->b, 1);
	cmd.entry_num = 1;
	cmd.reason.code = IBCHAN_REASON_BUSY;
	EXPECT_EQ(-ETIMEDOUT, cmd_submit(self->b->fd, &cmd));
	EXPECT_EQ(1, cmd.entry_num);
	EXPECT_EQ(IBCHAN_REASON_NONE, cmd.reason.code);
	EXPECT_EQ(0, post_one(self->a, message(self->a, 2)));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
}

TEST_F(post, a_full_send_queue_says_so_and_recovers)
{
	struct ibchan_submit_wr wrs[DEPTH + 2];
	struct answer answer;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrs); i++)
		wrs[i] = message(self->a, i);
	answer = ask(self->a, wrs, ARRAY_SIZE(wrs));
	EXPECT_EQ(-EAGAIN, answer.rc);
	EXPECT_EQ(DEPTH, answer.cmd.entry_num);
	EXPECT_EQ(DEPTH, answer.cmd.reason.wr);
	EXPECT_EQ(IBCHAN_REASON_SEND_QUEUE_FULL, answer.cmd.reason.code);
	EXPECT_EQ(0, has_values(&answer, DEPTH, 0, 0));
	EXPECT_EQ(0, refused(self->a, wrs, EAGAIN, IBCHAN_REASON_SEND_QUEUE_FULL));

	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, post_one(self->b, receive(self->b, i)));
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, succeed(self->a, i, NULL));
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, succeed(self->b, i, NULL));
	EXPECT_EQ(0, exchange(self->a, self->b));
	EXPECT_EQ(0, ring_surplus(self->a->ring));
}

TEST_F(post, a_full_receive_queue_says_so_and_recovers)
{
	struct ibchan_submit_wr wrs[DEPTH + 2];
	struct answer answer;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrs); i++)
		wrs[i] = receive(self->b, i);
	answer = ask(self->b, wrs, ARRAY_SIZE(wrs));
	EXPECT_EQ(-EAGAIN, answer.rc);
	EXPECT_EQ(DEPTH, answer.cmd.entry_num);
	EXPECT_EQ(IBCHAN_REASON_RECV_QUEUE_FULL, answer.cmd.reason.code);
	EXPECT_EQ(0, has_values(&answer, DEPTH, 0, 0));

	ASSERT_EQ(0, post_one(self->a, message(self->a, 100)));
	ASSERT_EQ(0, succeed(self->a, 100, NULL));
	ASSERT_EQ(0, succeed(self->b, 0, NULL));
	EXPECT_EQ(0, post_one(self->b, receive(self->b, 5)));
	EXPECT_EQ(0, refused(self->b, wrs, EAGAIN, IBCHAN_REASON_RECV_QUEUE_FULL));
}

TEST_F(post, a_full_ring_says_so_until_it_is_read)
{
	struct side_options options = small_queues();
	struct ibchan_submit_wr wr;
	struct ibchan_cqe cqe;
	struct pair pair;
	unsigned int i;

	options.ring_entries = DEPTH;
	options.params.max_recv_wr = 2 * DEPTH;
	ASSERT_EQ(0, pair_open(&pair, PAIR_SAME_DEVICE, &options));
	ASSERT_EQ(DEPTH, pair.b->ring->header->entries);
	ASSERT_EQ(0, post_receives(pair.b, 0, DEPTH, 64));
	wr = receive(pair.b, DEPTH);
	EXPECT_EQ(0, refused(pair.b, &wr, EAGAIN, IBCHAN_REASON_RING_FULL));

	/* A completion that nobody has read still takes its place. */
	for (i = 0; i < DEPTH; i++)
		ASSERT_EQ(0, post_one(pair.a, message(pair.a, i)));
	ASSERT_EQ(0, ring_wait(pair.b->ring, DEPTH, patience_ms()));
	EXPECT_EQ(0, refused(pair.b, &wr, EAGAIN, IBCHAN_REASON_RING_FULL));
	ASSERT_EQ(1, ring_read(pair.b->ring, &cqe, 1));
	EXPECT_EQ(0, cqe.wr_id);
	EXPECT_EQ(0, post_one(pair.b, wr));
	wr = receive(pair.b, DEPTH + 1);
	EXPECT_EQ(0, refused(pair.b, &wr, EAGAIN, IBCHAN_REASON_RING_FULL));
	pair_close(&pair);
}

TEST_F(post, an_element_must_lie_inside_its_region)
{
	const struct {
		__u64 offset;
		__u32 length;
	} wrong[] = {
		{ self->a->length, 1 },
		{ self->a->length - 63, 64 },
		{ self->a->length + 1, 0 },
		{ 0, self->a->length + 1 },
		{ 1, 0xffffffff },
		{ ~0ULL, 2 },
		{ ~0ULL, 0 },
		{ ~0ULL - 62, 64 },
		{ 1ULL << 63, 1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_SEND, 1, wrong[i].offset,
						  wrong[i].length);
		struct answer answer = ask_one(self->a, &wr);

		EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_OUT_OF_BOUNDS));
		EXPECT_EQ(0, has_values(&answer, wrong[i].offset, wrong[i].length,
					self->a->length));
	}
}

TEST_F(post, an_element_may_end_where_its_region_ends)
{
	struct side *a = self->a, *b = self->b;

	ASSERT_EQ(0, post_one(b, work(b, IBCHAN_OP_RECV, 1, b->length - 64, 64)));
	ASSERT_EQ(0, post_one(b, work(b, IBCHAN_OP_RECV, 2, b->length, 0)));
	ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 1, a->length - 64, 64)));
	ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 2, a->length, 0)));
	EXPECT_EQ(0, succeed(b, 1, NULL));
	EXPECT_EQ(0, succeed(b, 2, NULL));
}

TEST_F(post, a_work_needs_handles_of_the_right_kind)
{
	const __u32 wrong[] = { 0, 0x7fffffff, self->a->pd, self->a->device };
	struct ibchan_submit_wr wr;
	struct answer answer;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		wr = message(self->a, 1);
		wr.channel = wrong[i];
		answer = ask_one(self->a, &wr);
		EXPECT_EQ(0, is_refusal(&answer, ENOENT, IBCHAN_REASON_CHANNEL_HANDLE));
		EXPECT_EQ(0, has_values(&answer, wrong[i], 0, 0));
		wr = message(self->a, 1);
		wr.sge.mr = wrong[i];
		answer = ask_one(self->a, &wr);
		EXPECT_EQ(0, is_refusal(&answer, ENOENT, IBCHAN_REASON_MR_HANDLE));
		EXPECT_EQ(0, has_values(&answer, wrong[i], 0, 0));
	}
}

TEST_F(post, more_elements_than_agreed_are_refused)
{
	struct ibchan_submit_sge sges[IBCHAN_MAX_SGE + 1];
	struct ibchan_submit_wr wr;
	struct answer answer;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sges); i++)
		sges[i] = (struct ibchan_submit_sge) { 16 * i, 16, self->a->mr };
	wr = message(self->a, 1);
	work_elements(&wr, sges, 4);
	answer = ask_one(self->a, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS));
	EXPECT_EQ(0, has_values(&answer, 4, 3, 0));
	wr = receive(self->a, 1);
	work_elements(&wr, sges, 3);
	answer = ask_one(self->a, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS));
	EXPECT_EQ(0, has_values(&answer, 3, 2, 0));
	work_elements(&wr, sges, ARRAY_SIZE(sges));
	EXPECT_EQ(0, refused(self->a, &wr, EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS));
	wr.num_sge = 0xffff;
	EXPECT_EQ(0, refused(self->a, &wr, EINVAL, IBCHAN_REASON_TOO_MANY_ELEMENTS));
	work_elements(&wr, sges, 2);
	EXPECT_EQ(0, post_one(self->a, wr));
}

TEST_F(post, a_pointer_to_elements_that_does_not_work_is_refused)
{
	struct ibchan_submit_wr wr = message(self->a, 1);
	struct answer answer;

	work_elements(&wr, (void *)8, 2);
	answer = ask_one(self->a, &wr);
	EXPECT_EQ(0, is_refusal(&answer, EFAULT, IBCHAN_REASON_ELEMENT_POINTER));
	EXPECT_EQ(0, has_values(&answer, 8, 0, 0));
	work_elements(&wr, (void *)0xffff888000000000UL, 2);
	EXPECT_EQ(0, refused(self->a, &wr, EFAULT, IBCHAN_REASON_ELEMENT_POINTER));
}

TEST_F(post, a_member_without_a_meaning_must_be_zero)
{
	struct ibchan_submit_sge sges[2] = { { 0, 8, self->a->mr }, { 8, 8, self->a->mr } };
	struct ibchan_submit_wr wrs[8];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrs); i++)
		wrs[i] = message(self->a, i);
	wrs[0].operand = 1;
	wrs[1].imm = 1;
	wrs[2].rkey = 1;
	wrs[3].remote_addr = 1;
	wrs[4].sges = address(sges);
	work_elements(&wrs[5], sges, 2);
	wrs[5].sge.length = 1;
	work_elements(&wrs[6], sges, 0);
	wrs[6].sges = address(sges);
	wrs[7].remote_length = 8;
	for (i = 0; i < ARRAY_SIZE(wrs); i++)
		EXPECT_EQ(0, refused(self->a, &wrs[i], EINVAL, IBCHAN_REASON_RESERVED));
}

/* Zero is no number that stands for something else: an empty range takes nothing. */
TEST_F(post, refuses_more_bytes_than_the_peers_range_has)
{
	struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_WRITE, 1, 0, 64);
	__u32 opcode;

	work_at(&wr, self->b, 0);
	for (opcode = IBCHAN_OP_WRITE; opcode <= IBCHAN_OP_READ; opcode++) {
		wr.opcode = opcode;
		wr.remote_length = 63;
		EXPECT_EQ(0, refused(self->a, &wr, EINVAL, IBCHAN_REASON_REMOTE_BOUNDS));
		wr.remote_length = 0;
		EXPECT_EQ(0, refused(self->a, &wr, EINVAL, IBCHAN_REASON_REMOTE_BOUNDS));
		wr.remote_length = 64;
		ASSERT_EQ(0, post_one(self->a, wr));
		ASSERT_EQ(0, succeed(self->a, 1, NULL));
	}
}

/* No device takes a message of more than 2 GiB. */
#define LARGEST	0x80000000UL

/* Asks for one work of @num times the whole region. */
static struct answer ask_for_all(const struct side *side, __u32 opcode, size_t length,
				 unsigned int num)
{
	struct ibchan_submit_sge sges[IBCHAN_MAX_SGE];
	struct ibchan_submit_wr wr = work_empty(side, opcode, 1);
	unsigned int i;

	for (i = 0; i < num; i++)
		sges[i] = (struct ibchan_submit_sge) { 0, length, side->mr };
	wr.flags = IBCHAN_WR_UNCHECKED;
	work_elements(&wr, sges, num);
	return ask_one(side, &wr);
}

TEST_F(post, a_message_longer_than_the_device_can_is_refused)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_device_query device = {};
	struct ibchan_cmd_port_query port = about_port_of(DEVICE_A);
	struct answer answer, receive, shorter;
	struct side side;
	unsigned int num;

	/* Out of one region, as often as a message has elements. */
	ASSERT_EQ(0, cmd_device_query(self->a->fd, &device));
	num = device.out.max_send_sge < device.out.max_recv_sge ? device.out.max_send_sge :
								    device.out.max_recv_sge;
	num = num < IBCHAN_MAX_SGE ? num : IBCHAN_MAX_SGE;
	options.memory = LARGEST / num + 4 * 1024 * 1024;
	options.params.max_send_sge = num;
	options.params.max_recv_sge = num;
	if (options.memory > device.out.max_mr_size)
		SKIP(return, "a message cannot be that long: the device's regions are small");
	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, side_handshake(&side, &side.endpoint));
	ASSERT_EQ(0, cmd_port_query(side.fd, &port));
	answer = ask_for_all(&side, IBCHAN_OP_SEND, options.memory, num);
	receive = ask_for_all(&side, IBCHAN_OP_RECV, options.memory, num);
	/* More room than the port takes is only useless. */
	shorter = ask_for_all(&side, IBCHAN_OP_RECV, options.memory, num / 2);
	side_close(&side);
	EXPECT_EQ(0, is_refusal(&answer, EINVAL, IBCHAN_REASON_MESSAGE_TOO_LONG));
	EXPECT_EQ(options.memory * num, answer.cmd.reason.value[0]);
	EXPECT_EQ(port.out.max_message, answer.cmd.reason.value[1]);
	EXPECT_EQ(0, is_refusal(&receive, EINVAL, IBCHAN_REASON_MESSAGE_TOO_LONG));
	EXPECT_EQ(options.memory * num, receive.cmd.reason.value[0]);
	EXPECT_EQ(IBCHAN_MAX_MESSAGE, receive.cmd.reason.value[1]);
	EXPECT_EQ(0, shorter.rc);
}

TEST_F(post, a_channel_without_a_peer_takes_nothing_but_receives)
{
	struct side_options options = small_queues();
	struct ibchan_submit_wr wr;
	struct side side;

	ASSERT_EQ(0, side_open(&side, &options));
	wr = message(&side, 1);
	EXPECT_EQ(0, refused(&side, &wr, ENOTCONN, IBCHAN_REASON_NOT_CONNECTED));
	wr = work(&side, IBCHAN_OP_WRITE, 1, 0, 64);
	work_at(&wr, &side, HALF);
	EXPECT_EQ(0, refused(&side, &wr, ENOTCONN, IBCHAN_REASON_NOT_CONNECTED));
	EXPECT_EQ(0, post_one(&side, receive(&side, 1)));
	side_close(&side);
}

/* The peer's first message has to find it: it is not sent twice here. */
TEST_F(post, a_receive_posted_before_the_handshake_takes_the_first_message)
{
	struct side_options options = small_queues();
	struct ibchan_cqe cqe;
	struct pair pair;

	options.params.rnr_retries = 0;
	ASSERT_EQ(0, pair_build(&pair, PAIR_SAME_DEVICE, &options));
	ASSERT_EQ(0, post_one(pair.b, receive(pair.b, 1)));
	pattern(pair.a->memory, 64, 7);
	ASSERT_EQ(0, pair_connect(&pair));
	ASSERT_EQ(0, post_one(pair.a, message(pair.a, 2)));
	EXPECT_EQ(0, succeed(pair.b, 1, &cqe));
	EXPECT_EQ(64, cqe.bytes);
	EXPECT_EQ(0, same_bytes(pair.a->memory, pair.b->memory + HALF + 64, 64));
	EXPECT_EQ(0, succeed(pair.a, 2, &cqe));
	pair_close(&pair);
}

TEST_F(post, receives_of_a_channel_that_never_had_a_peer_complete_flushed)
{
	struct side_options options = small_queues();
	struct ibchan_cmd_channel_break cmd = {};
	struct side side;

	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, post_one(&side, receive(&side, 1)));
	ASSERT_EQ(0, post_one(&side, receive(&side, 2)));
	cmd.channel = side.channel;
	ASSERT_EQ(0, cmd_channel_break(side.fd, &cmd));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(&side, 1));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(&side, 2));
	side_close(&side);
}

TEST_F(post, an_array_of_shorter_or_huge_entries_is_refused)
{
	static const __u32 lengths[] = { 0, 8, 56, 63, 0x10000, 0x80000000, 0xffffffff };
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), receive(self->b, 2) };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct ibchan_cmd_submit cmd = submission(wrs, 2);
		struct ibchan_cmd_channel_query query;

		cmd.entry_len = lengths[i];
		EXPECT_EQ(-EINVAL, cmd_submit(self->b->fd, &cmd))
			TH_LOG("length %u", lengths[i]);
		EXPECT_EQ(IBCHAN_REASON_PARAMETER, cmd.reason.code);
		EXPECT_EQ(IBCHAN_PARAMETER_ENTRY_LEN, cmd.reason.element);
		EXPECT_EQ(lengths[i], cmd.reason.value[0]);
		EXPECT_EQ(sizeof(wrs[0]), cmd.reason.value[1]);
		EXPECT_EQ(0, cmd.entry_num);
		ASSERT_EQ(0, side_query(self->b, &query));
		EXPECT_EQ(0, query.out.recvs_in_flight);
	}
}

/* Entries as a later version may have them. */
struct longer_wr {
	struct ibchan_submit_wr wr;
	__u64 more;
};

TEST_F(post, an_array_of_longer_entries_must_have_zero_where_they_are_unknown)
{
	struct longer_wr wrs[3] = {
		{ receive(self->b, 1), 0 },
		{ receive(self->b, 2), 0 },
		{ receive(self->b, 3), 1 },
	};
	struct ibchan_cmd_submit cmd = submission(&wrs[0].wr, 3);

	cmd.entry_len = sizeof(wrs[0]);
	EXPECT_EQ(-E2BIG, cmd_submit(self->b->fd, &cmd));
	EXPECT_EQ(2, cmd.entry_num);
	EXPECT_EQ(2, cmd.reason.wr);
	EXPECT_EQ(0, post_one(self->a, message(self->a, 1)));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
}

TEST_F(post, an_array_that_does_not_work_posts_no_more_than_it_says)
{
	unsigned int page = getpagesize();
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibchan_submit_wr *wrs = (void *)(pages + page - 2 * sizeof(*wrs));
	struct ibchan_cmd_channel_query query;
	struct answer answer;

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, munmap(pages + page, page));
	EXPECT_EQ(-EFAULT, ask(self->b, NULL, 1).rc);
	EXPECT_EQ(-EFAULT, ask(self->b, (void *)0xffff888000000000UL, 1).rc);
	wrs[0] = receive(self->b, 1);
	wrs[1] = receive(self->b, 2);
	answer = ask(self->b, wrs, 3);
	EXPECT_EQ(-EFAULT, answer.rc);
	ASSERT_EQ(0, side_query(self->b, &query));
	EXPECT_EQ(query.out.recvs_in_flight, answer.cmd.entry_num);
	EXPECT_LE(answer.cmd.entry_num, 2);
	wrs[0] = receive(self->b, 3);
	wrs[1] = receive(self->b, 4);
	answer = ask(self->b, wrs, 0xffffffff);
	EXPECT_GT(0, answer.rc);
	ASSERT_EQ(0, side_query(self->b, &query));
	EXPECT_LE(query.out.recvs_in_flight, DEPTH);
	munmap(pages, page);
}

TEST_HARNESS_MAIN
