// SPDX-License-Identifier: GPL-2.0-only
/*
 * One completion queue of libibchan for several channels, callers and threads.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/personality.h>
#include <unistd.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

FIXTURE(shared)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a, b;
	struct ibchan_cq *cq;
};

FIXTURE_SETUP(shared)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, ibchan_context_open(&self->context, NULL));
	ASSERT_EQ(0, end_open(&self->a, self->context, 0, NULL));
	ASSERT_EQ(0, end_open(&self->b, self->context, 0, self->a.cq));
	ASSERT_EQ(0, connect_ends(&self->a, &self->b));
	self->cq = self->a.cq;
}

FIXTURE_TEARDOWN(shared)
{
	end_close(&self->b);
	end_close(&self->a);
	EXPECT_EQ(0, ibchan_context_close(self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(shared, keeps_other_completions_that_a_blocking_call_meets)
{
	struct ibchan_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_completion done[16];
	struct ibchan_sge in[8];
	int i, n;

	for (i = 0; i < 8; i++) {
		in[i] = sge_at(&self->b, 8 * i, 8);
		ASSERT_EQ(0, post_receive(self->context, &self->b, &in[i], 50 + i));
	}
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, NULL));
	for (n = 0; n < 8; n += i) {
		i = ibchan_cq_wait(self->cq, done + n, 16 - n, 1, patience_ns());
		ASSERT_LT(0, i);
	}
	ASSERT_EQ(8, n);
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(50 + i, done[i].wr_id);
		ASSERT_EQ(self->b.channel, done[i].channel);
		ASSERT_EQ(IBCHAN_OP_RECV, done[i].opcode);
	}
	ASSERT_EQ(0, ibchan_cq_poll(self->cq, done, 16));
}

TEST_F(shared, is_made_where_reading_implies_executing)
{
	int usual = personality(0xffffffff);
	struct ibchan_cq *cq = NULL;
	struct ibchan_error error;

	ASSERT_EQ(usual, personality(usual | READ_IMPLIES_EXEC));
	EXPECT_EQ(0, ibchan_cq_create(self->a.device, 0, 0, &cq, &error));
	personality(usual);
	EXPECT_EQ(0, ibchan_cq_destroy(cq));
}

TEST_F(shared, counts_what_was_set_aside_against_the_entries)
{
	struct ibchan_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_sge in[2] = { sge_at(&self->b, 0, 8), sge_at(&self->b, 8, 8) };
	struct ibchan_completion done[IBCHAN_DEFAULT_CQ_ENTRIES];
	struct ibchan_error error;
	int i, rc = 0, n = 0;

	/* Nobody polls, so what the receives bring piles up. */
	for (i = 0; i < 2 * IBCHAN_DEFAULT_CQ_ENTRIES && !rc; i++) {
		rc = post_receive(self->context, &self->b, &in[0], i);
		if (!rc)
			rc = ibchan_send(self->a.channel, &out, 1, &error);
	}
	ASSERT_EQ(-EAGAIN, rc);
	do {
		rc = ibchan_cq_poll(self->cq, done, IBCHAN_DEFAULT_CQ_ENTRIES);
		n += rc;
	} while (rc > 0);
	ASSERT_EQ(0, rc);
	ASSERT_LE(IBCHAN_DEFAULT_CQ_ENTRIES - 1, n);
	/* There is room again; the last receive may still wait for its message. */
	ASSERT_EQ(0, post_receive(self->context, &self->b, &in[1], 1));
	ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, NULL));
}

static int is_readable(int epoll)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, 0);
}

TEST_F(shared, has_a_descriptor_that_is_level_triggered)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct ibchan_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_sge in[2] = { sge_at(&self->b, 0, 8), sge_at(&self->b, 8, 8) };
	struct ibchan_wr wr = wr_of(&self->a, IBCHAN_OP_SEND, &out);
	struct ibchan_completion done[4];
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	int fd = ibchan_cq_fd(self->cq);

	ASSERT_LE(0, fd);
	ASSERT_EQ(fd, ibchan_cq_fd(self->cq));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	ASSERT_EQ(0, is_readable(epoll));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &in[0], 1));
	ASSERT_EQ(0, is_readable(epoll));
	ASSERT_EQ(0, ibchan_post(self->context, &wr, 1, NULL, NULL));
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, patience_ms()));
	ASSERT_EQ(1, is_readable(epoll));
	ASSERT_EQ(2, ibchan_cq_wait(self->cq, done, 4, 2, patience_ns()));
	ASSERT_EQ(0, is_readable(epoll));
	close(epoll);
}

TEST_F(shared, has_a_descriptor_that_knows_what_was_set_aside)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct ibchan_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_sge in = sge_at(&self->b, 0, 8);
	struct ibchan_completion completion;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct ibchan_wr wr;

	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, ibchan_cq_fd(self->cq), &event));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &in, 1));
	ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, NULL));
	/* Another blocking call meets it, if the first one did not. */
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, patience_ms()));
	wr = wr_of(&self->b, IBCHAN_OP_RECV, &in);
	ASSERT_EQ(-ETIMEDOUT, ibchan_perform(&wr, 0, NULL, NULL));
	ASSERT_EQ(1, is_readable(epoll));
	ASSERT_EQ(1, is_readable(epoll));
	ASSERT_EQ(1, ibchan_cq_poll(self->cq, &completion, 1));
	ASSERT_EQ(1, completion.wr_id);
	ASSERT_EQ(0, is_readable(epoll));
	close(epoll);
}

TEST_F(shared, loops_a_channel_to_itself)
{
	struct ibchan_sge out, in;
	struct ibchan_endpoint own;
	struct ibchan_completion completion;
	struct end end = { 0 };

	ASSERT_EQ(0, end_open(&end, self->context, 0, self->cq));
	ibchan_prepared_endpoint(end.prepared, &own);
	EXPECT_EQ(0, end_connect(&end, &own));
	out = sge_at(&end, 0, 100);
	in = sge_at(&end, HALF, 100);
	memset(end.memory, 'o', 100);
	EXPECT_EQ(0, post_receive(self->context, &end, &in, 5));
	EXPECT_EQ(0, ibchan_send(end.channel, &out, 1, NULL));
	EXPECT_EQ(1, wait_one(self->cq, &completion));
	EXPECT_EQ(0, memcmp(end.memory, end.memory + HALF, 100));
	end_close(&end);
}

TEST_F(shared, keeps_a_prepared_channel_whose_handshake_was_refused)
{
	struct ibchan_endpoint own, wrong;
	struct ibchan_error error;
	struct end end = { 0 };
	char text[256];

	ASSERT_EQ(0, end_open(&end, self->context, 0, self->cq));
	ibchan_prepared_endpoint(end.prepared, &own);
	wrong = own;
	wrong.version = htons(7);
	EXPECT_EQ(-EINVAL, ibchan_prepared_handshake(end.prepared, &wrong, &end.channel, &error));
	ibchan_error_text(&error, text, sizeof(text));
	EXPECT_STREQ("endpoint version: ours 1, theirs 7", text);
	EXPECT_EQ(NULL, end.channel);
	EXPECT_EQ(0, end_connect(&end, &own));
	end_close(&end);
}

TEST_F(shared, refuses_a_builder_with_a_knob_out_of_range)
{
	struct ibchan_prepared *prepared = NULL;
	struct ibchan_builder builder;
	struct ibchan_params params;
	struct ibchan_error error;

	ibchan_builder_init(&builder, self->a.pd, self->cq);
	builder.params.min_rnr_timer = 32;
	ASSERT_EQ(-EINVAL, ibchan_builder_prepare(&builder, &prepared, &error));
	ASSERT_EQ(IBCHAN_REASON_PARAMETER, error.reason.code);
	ASSERT_EQ(IBCHAN_PARAMETER_MIN_RNR_TIMER, error.reason.element);
	ASSERT_EQ(NULL, prepared);
	builder.params.min_rnr_timer = 31;
	ASSERT_EQ(0, ibchan_builder_prepare(&builder, &prepared, &error));
	ibchan_prepared_params(prepared, &params);
	EXPECT_EQ(31, params.min_rnr_timer);
	EXPECT_EQ(1, params.port);
	EXPECT_NE(IBCHAN_AUTO, params.gid_index);
	ASSERT_EQ(0, ibchan_prepared_destroy(prepared));
}

#define THREADS		4
#define MESSAGES	50

struct worker {
	struct ibchan_context *context;
	struct end end;
	pthread_t thread;
	int rc;
};

/* Writes to itself. */
static int loop_once(struct worker *worker, int round)
{
	struct ibchan_sge out = sge_at(&worker->end, 0, 64);
	struct ibchan_remote_region region;
	int rc;

	memset(worker->end.memory, round, 64);
	rc = ibchan_mr_remote_region(worker->end.mr, &region);
	rc = rc ?: ibchan_remote_region_sub(&region, HALF, 64, &region);
	rc = rc ?: ibchan_write(worker->end.channel, &out, 1, &region, NULL);
	if (!rc && memcmp(worker->end.memory, worker->end.memory + HALF, 64))
		rc = -EIO;
	return rc;
}

static void *loop_thread(void *arg)
{
	struct worker *worker = arg;
	int i;

	for (i = 0; i < MESSAGES && !worker->rc; i++)
		worker->rc = loop_once(worker, i + 1);
	return NULL;
}

TEST_F(shared, serves_several_threads_that_block_on_it)
{
	struct worker workers[THREADS] = { 0 };
	struct ibchan_completion completion;
	struct ibchan_endpoint own;
	int i;

	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, end_open(&workers[i].end, self->context, 0, self->cq));
		ibchan_prepared_endpoint(workers[i].end.prepared, &own);
		ASSERT_EQ(0, end_connect(&workers[i].end, &own));
	}
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, loop_thread, &workers[i]));
	for (i = 0; i < THREADS; i++) {
		EXPECT_EQ(0, pthread_join(workers[i].thread, NULL));
		EXPECT_EQ(0, workers[i].rc);
		end_close(&workers[i].end);
	}
	EXPECT_EQ(0, ibchan_cq_poll(self->cq, &completion, 1));
}

/* One thread blocks while another takes whatever comes. */
TEST_F(shared, gives_a_blocking_thread_its_own_though_another_polls)
{
	struct ibchan_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_completion completion;
	struct ibchan_wr wr = wr_of(&self->a, IBCHAN_OP_SEND, &out);
	struct blocking receive;
	pthread_t thread;
	int i;

	for (i = 0; i < MESSAGES; i++) {
		receive = (struct blocking) { &self->b, sge_at(&self->b, 0, 8), { 0 }, { 0 }, -1 };
		ASSERT_EQ(0, pthread_create(&thread, NULL, receive_thread, &receive));
		wr.wr_id = i;
		ASSERT_EQ(0, ibchan_post(self->context, &wr, 1, NULL, NULL));
		ASSERT_EQ(1, wait_one(self->cq, &completion));
		ASSERT_EQ(i, completion.wr_id);
		ASSERT_EQ(IBCHAN_OP_SEND, completion.opcode);
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_EQ(0, receive.rc);
		ASSERT_EQ(8, receive.completion.bytes);
	}
}

/* That this process has mapped. */
static int rings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512];
	int num = 0;

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file))
		num += has(line, "[ibchan");
	fclose(file);
	return num;
}

#define PASSING	3

/* A message of its channel to itself, which completes there. */
static int use_queue(struct ibchan_context *context, struct end *end, __u64 wr_id)
{
	struct ibchan_sge out = sge_at(end, 0, 8), in = sge_at(end, HALF, 8);
	struct ibchan_completion done;
	int rc = post_receive(context, end, &in, wr_id);

	memcpy(end->memory, &wr_id, sizeof(wr_id));
	rc = rc ? rc : ibchan_send(end->channel, &out, 1, NULL);
	if (!rc && wait_one(end->cq, &done) != 1)
		rc = -ETIME;
	if (!rc && (done.wr_id != wr_id || memcmp(end->memory + HALF, &wr_id, sizeof(wr_id))))
		rc = -EBADMSG;
	return rc;
}

static int open_loop(struct end *end, struct ibchan_context *context)
{
	struct ibchan_endpoint own;
	int rc = end_open(end, context, 0, NULL);

	if (rc)
		return rc;
	ibchan_prepared_endpoint(end->prepared, &own);
	return end_connect(end, &own);
}

/* Queues that are there at once; they go in another order than they came. */
static int use_passing_queues(struct ibchan_context *context, unsigned int round)
{
	struct end ends[PASSING] = {};
	unsigned int i;
	int rc = 0;

	for (i = 0; i < PASSING && !rc; i++)
		rc = open_loop(&ends[i], context);
	for (i = 0; i < PASSING && !rc; i++)
		rc = use_queue(context, &ends[i], PASSING * round + i);
	for (i = 0; i < PASSING; i++)
		end_close(&ends[(i + round) % PASSING]);
	return rc;
}

TEST_F(shared, queues_that_come_and_go_leave_one_ring_at_most)
{
	unsigned int round;
	int before = rings();

	/* The queue of this test. */
	ASSERT_EQ(1, before);
	for (round = 0; round < 2 * PASSING; round++)
		ASSERT_EQ(0, use_passing_queues(self->context, round));
	EXPECT_LE(rings(), before + 1);
	EXPECT_GE(rings(), before);
}

TEST_HARNESS_MAIN
