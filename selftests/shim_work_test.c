// SPDX-License-Identifier: GPL-2.0-only
/*
 * libibchan's posting and blocking calls: two channels, each with a cq of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

FIXTURE(pair)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a, b;
};

FIXTURE_SETUP(pair)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
}

FIXTURE_TEARDOWN(pair)
{
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(pair, tells_a_work_that_failed_from_a_call_that_was_refused)
{
	struct ibchan_submit_sge out = sge_at(&self->a, 0, 100);
	struct ibchan_remote_region region;
	struct ibchan_error error;
	char text[256];

	ASSERT_EQ(0, ibchan_mr_remote_region(self->b.mr, &region));
	region.rkey ^= 0xff;
	ASSERT_EQ(-EREMOTEIO, ibchan_write(self->a.channel, &out, 1, &region,
					   IBCHAN_TIMEOUT_NEVER, &error));
	ASSERT_EQ(IBCHAN_ERROR_WORK, error.origin);
	ASSERT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, error.status);
	ibchan_error_text(&error, text, sizeof(text));
	ASSERT_TRUE(has(text, "REM_ACCESS_ERR"));
	ASSERT_TRUE(has(text, "remote"));
	/* The first error broke the channel; now the call is refused. */
	ASSERT_EQ(-ESHUTDOWN, ibchan_write(self->a.channel, &out, 1, &region,
					   IBCHAN_TIMEOUT_NEVER, &error));
	ASSERT_EQ(IBCHAN_ERROR_CALL, error.origin);
	ASSERT_EQ(IBCHAN_REASON_BROKEN, error.reason.code);
}

TEST_F(pair, posts_a_long_list_in_one_call)
{
	struct ibchan_cqe done[40];
	struct ibchan_submit_wr wrs[12];
	struct ibchan_submit_sge sges[12][16];
	__u32 accepted = 0;
	int i, j;

	for (i = 0; i < 12; i++) {
		for (j = 0; j < 16; j++)
			sges[i][j] = sge_at(&self->b, (i * 16 + j) * 8, 8);
		wrs[i] = wr_of(&self->b, IBCHAN_OP_RECV, sges[i]);
		wr_elements(&wrs[i], sges[i], 16);
		wrs[i].wr_id = 100 + i;
	}
	ASSERT_EQ(0, ibchan_post(self->context, wrs, 12, &accepted, NULL));
	ASSERT_EQ(12, accepted);
	memset(self->a.memory, 'l', 128);
	for (i = 0; i < 12; i++) {
		sges[0][0] = sge_at(&self->a, 0, 128);
		wrs[i] = wr_of(&self->a, IBCHAN_OP_SEND, sges[0]);
	}
	ASSERT_EQ(0, ibchan_post(self->context, wrs, 12, &accepted, NULL));
	ASSERT_EQ(12, ibchan_cq_wait(self->b.cq, done, 40, 12, patience_ns()));
	for (i = 0; i < 12; i++) {
		ASSERT_EQ(100 + i, done[i].wr_id);
		ASSERT_EQ(128, done[i].bytes);
		ASSERT_EQ(0, memcmp(self->b.memory + i * 128, self->a.memory, 128));
	}
	ASSERT_EQ(12, ibchan_cq_wait(self->a.cq, done, 40, 12, patience_ns()));
}

/* As often as there would be no room left, if one stayed taken each time. */
TEST_F(pair, keeps_no_room_for_the_refused_one_of_a_few)
{
	struct ibchan_submit_sge sges[3] = { sge_at(&self->a, 0, 8), sge_at(&self->a, 8, 8),
				      sge_at(&self->a, MEMORY - 8, 9) };
	struct ibchan_cqe completion;
	struct ibchan_remote_region remote;
	struct ibchan_submit_wr wrs[3];
	struct ibchan_error error;
	__u32 accepted;
	int i, round;

	ASSERT_EQ(0, ibchan_mr_remote_region(self->b.mr, &remote));
	for (i = 0; i < 3; i++) {
		wrs[i] = ibchan_wr_write(self->a.channel, &sges[i], 1, &remote);
		wrs[i].wr_id = 70 + i;
	}
	for (round = 0; round <= IBCHAN_DEFAULT_CQ_ENTRIES; round++) {
		accepted = 99;
		ASSERT_EQ(-EINVAL, ibchan_post(self->context, wrs, 3, &accepted, &error));
		ASSERT_EQ(2, accepted);
		ASSERT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, error.reason.code);
		ASSERT_EQ(2, error.reason.wr);
		for (i = 0; i < 2; i++) {
			ASSERT_EQ(1, wait_one(self->a.cq, &completion));
			ASSERT_EQ(70 + i, completion.wr_id);
			ASSERT_EQ(0, completion.error);
		}
	}
}

TEST_F(pair, names_a_bad_request_behind_the_first_sixteen)
{
	struct ibchan_submit_sge bad[2] = {
		sge_at(&self->b, HALF, 8), sge_at(&self->b, MEMORY, 1),
	};
	struct ibchan_submit_sge good[20];
	struct ibchan_submit_wr wrs[20];
	struct ibchan_error error;
	__u32 accepted = 99;
	int i;

	for (i = 0; i < 20; i++) {
		struct end *end = i % 2 ? &self->a : &self->b;

		good[i] = sge_at(end, 8 * i, 8);
		wrs[i] = wr_of(end, IBCHAN_OP_RECV, &good[i]);
	}
	wr_elements(&wrs[18], bad, 2);
	ASSERT_EQ(-EINVAL, ibchan_post(self->context, wrs, 20, &accepted, &error));
	ASSERT_EQ(18, accepted);
	ASSERT_EQ(18, error.reason.wr);
	ASSERT_EQ(1, error.reason.element);
}

TEST_F(pair, refuses_elements_that_are_not_in_their_region)
{
	struct ibchan_submit_sge sge = sge_at(&self->a, 0, 1);
	struct ibchan_error error;
	char text[256];

	sge.offset = -1ULL;
	ASSERT_EQ(-EINVAL, ibchan_send(self->a.channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, &error));
	ASSERT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, error.reason.code);
	ibchan_error_text(&error, text, sizeof(text));
	ASSERT_TRUE(has(text, "offset 18446744073709551615 + length 1 "));
	sge = sge_at(&self->a, MEMORY, 1);
	ASSERT_EQ(-EINVAL, ibchan_send(self->a.channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, &error));
	ASSERT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, error.reason.code);
	if (sizeof(size_t) > 4) {
		sge = sge_at(&self->a, 0, (size_t)0x100000001ULL);
		ASSERT_EQ(-EINVAL, ibchan_send(self->a.channel, &sge, 1,
					       IBCHAN_TIMEOUT_NEVER, &error));
		ASSERT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, error.reason.code);
	}
	sge.mr = 0;
	ASSERT_EQ(-ENOENT, ibchan_send(self->a.channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, &error));
	ASSERT_EQ(IBCHAN_REASON_MR_HANDLE, error.reason.code);
	ASSERT_EQ(-EFAULT, ibchan_send(self->a.channel, (void *)16, 2,
				       IBCHAN_TIMEOUT_NEVER, &error));
	ASSERT_EQ(IBCHAN_REASON_ELEMENT_POINTER, error.reason.code);
}

TEST_F(pair, refuses_what_belongs_to_another_context)
{
	struct ibchan_context *other;
	struct end end = { 0 };
	struct ibchan_submit_sge sge;
	struct ibchan_submit_wr wr;
	struct ibchan_error error;

	ASSERT_EQ(0, ibchan_context_open(&other, NULL));
	ASSERT_EQ(0, end_open(&end, other, 0, NULL));
	sge = sge_at(&end, 0, 8);
	EXPECT_EQ(-ENOENT, ibchan_send(self->a.channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, &error));
	EXPECT_EQ(IBCHAN_REASON_MR_HANDLE, error.reason.code);
	sge = sge_at(&self->a, 0, 8);
	wr = wr_of(&self->a, IBCHAN_OP_SEND, &sge);
	EXPECT_EQ(-ENOENT, ibchan_post(other, &wr, 1, NULL, &error));
	EXPECT_EQ(IBCHAN_REASON_CHANNEL_HANDLE, error.reason.code);
	EXPECT_EQ(-ENOENT, ibchan_perform(ibchan_prepared_channel(end.prepared), &wr, 0, NULL,
					  &error));
	EXPECT_EQ(IBCHAN_REASON_CHANNEL_HANDLE, error.reason.code);
	end_close(&end);
	EXPECT_EQ(0, ibchan_context_close(other));
}

TEST_F(pair, refuses_more_elements_than_a_request_can_count)
{
	struct ibchan_submit_sge sge = sge_at(&self->a, 0, 8);
	struct ibchan_submit_wr wr = ibchan_wr_send(self->a.channel, &sge, 0x10001);
	struct ibchan_error error;

	ASSERT_EQ(-EINVAL, ibchan_post(self->context, &wr, 1, NULL, &error));
	ASSERT_EQ(IBCHAN_REASON_TOO_MANY_ELEMENTS, error.reason.code);
}

TEST_F(pair, keeps_a_work_whose_wait_has_timed_out)
{
	struct ibchan_submit_sge in = sge_at(&self->b, 0, 8);
	struct ibchan_submit_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_submit_wr wr = wr_of(&self->b, IBCHAN_OP_RECV, &in);
	struct ibchan_cqe completion;
	struct ibchan_error error;

	wr.wr_id = 4711;
	ASSERT_EQ(-ETIMEDOUT, ibchan_perform(self->b.channel, &wr, 20 * MS, NULL, &error));
	ASSERT_EQ(IBCHAN_ERROR_CALL, error.origin);
	ASSERT_EQ(0, ibchan_cq_poll(self->b.cq, &completion, 1));
	ASSERT_EQ(-ETIMEDOUT, ibchan_cq_wait(self->b.cq, &completion, 1, 1, 0));
	ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL));
	ASSERT_EQ(1, wait_one(self->b.cq, &completion));
	ASSERT_EQ(4711, completion.wr_id);
	ASSERT_EQ(8, completion.bytes);
}

/* How many of the six blocking calls give @err by themselves, with @timeout_ns. */
static int calls_that_give(struct end *end, __s64 timeout_ns, int err)
{
	const struct ibchan_submit_sge sge = sge_at(end, 0, 8);
	const struct ibchan_swap values = { 0 };
	struct ibchan_remote_region remote;
	struct ibchan_error errors[6];
	int i, given = 0;

	if (ibchan_mr_remote_region(end->mr, &remote))
		return -1;
	ibchan_send(end->channel, &sge, 1, timeout_ns, &errors[0]);
	ibchan_receive(end->channel, &sge, 1, timeout_ns, NULL, &errors[1]);
	ibchan_write(end->channel, &sge, 1, &remote, timeout_ns, &errors[2]);
	ibchan_read(end->channel, &sge, 1, &remote, timeout_ns, &errors[3]);
	ibchan_compare_swap(end->channel, &sge, &remote, &values, timeout_ns, &errors[4]);
	ibchan_fetch_add(end->channel, &sge, &remote, 1, timeout_ns, &errors[5]);
	for (i = 0; i < 6; i++)
		given += errors[i].code == err && errors[i].origin == IBCHAN_ERROR_CALL;
	return given;
}

TEST_F(pair, refuses_a_time_that_is_none_in_each_blocking_call)
{
	EXPECT_EQ(6, calls_that_give(&self->a, -2, -EINVAL));
}

static atomic_int alarms;

static void on_alarm(int signal)
{
	(void)signal;
	alarms++;
}

static bool five_alarms(void *arg)
{
	(void)arg;
	return alarms >= 5;
}

static void alarm_every(long ms)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerval timer = { { 0, ms * 1000 }, { 0, ms * 1000 } };

	if (ms)
		alarms = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

TEST_F(pair, ends_a_wait_for_completions_with_eintr_and_loses_nothing)
{
	struct ibchan_submit_sge in = sge_at(&self->b, 0, 8);
	struct ibchan_submit_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_cqe completion;

	ASSERT_EQ(0, post_receive(self->context, &self->b, &in, 9));
	alarm_every(20);
	ASSERT_EQ(-EINTR, ibchan_cq_wait(self->b.cq, &completion, 1, 1, patience_ns()));
	alarm_every(0);
	ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL));
	ASSERT_EQ(1, wait_one(self->b.cq, &completion));
	ASSERT_EQ(9, completion.wr_id);
}

static void *late_send_thread(void *arg)
{
	struct blocking *call = arg;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	if (eventually(five_alarms, NULL))
		call->rc = ibchan_send(call->end->channel, &call->sge, 1,
				       IBCHAN_TIMEOUT_NEVER, &call->error);
	return NULL;
}

TEST_F(pair, does_not_end_a_blocking_call_for_a_signal)
{
	struct blocking send = { &self->a, sge_at(&self->a, 0, 8), { 0 }, { 0 }, -1 };
	struct ibchan_submit_sge in = sge_at(&self->b, 0, 8);
	struct ibchan_cqe completion;
	pthread_t thread;

	alarm_every(20);
	ASSERT_EQ(0, pthread_create(&thread, NULL, late_send_thread, &send));
	EXPECT_EQ(0, ibchan_receive(self->b.channel, &in, 1,
				    IBCHAN_TIMEOUT_NEVER, &completion, NULL));
	alarm_every(0);
	EXPECT_EQ(8, completion.bytes);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, send.rc);
	ASSERT_EQ(0, ibchan_cq_poll(self->b.cq, &completion, 1));
}

TEST_F(pair, refuses_waits_that_make_no_sense)
{
	struct ibchan_cqe done[2];
	struct ibchan_submit_wr wr = wr_of(&self->a, IBCHAN_OP_SEND, NULL);

	ASSERT_EQ(-EINVAL, ibchan_cq_wait(self->a.cq, done, 2, 0, 0));
	ASSERT_EQ(-EINVAL, ibchan_cq_wait(self->a.cq, done, 2, 3, 0));
	ASSERT_EQ(-EINVAL, ibchan_cq_wait(self->a.cq, done, 2, 1, -2));
	ASSERT_EQ(-EINVAL, ibchan_perform(self->a.channel, &wr, -2, NULL, NULL));
	ASSERT_EQ(-ENOENT, ibchan_perform(self->b.channel, &wr, 0, NULL, NULL));
}

/* A channel that is its own peer, with one queue for each direction. */
static int loop_between(struct end *end, struct ibchan_context *context)
{
	struct ibchan_builder builder;
	int rc = end_objects(end, context, 0);

	rc = rc ?: ibchan_cq_create(end->device, 0, 0, &end->own_cq, NULL);
	rc = rc ?: ibchan_cq_create(end->device, 0, 0, &end->cq, NULL);
	if (rc)
		return rc;
	ibchan_builder_init(&builder, end->pd, end->own_cq);
	builder.recv_cq = end->cq;
	return ibchan_builder_prepare(&builder, &end->prepared, NULL) ?: end_loop(end);
}

/* The kernel knows works by numbers of the library's own, the caller by its wr_id. */
TEST_F(pair, says_which_range_of_which_work_is_in_the_way)
{
	struct end end = { 0 };
	struct ibchan_submit_sge taken, sges[2];
	struct ibchan_remote_region remote;
	struct ibchan_submit_wr wrs[2];
	struct ibchan_error error;
	__u32 accepted = 99;
	char text[256];

	ASSERT_EQ(0, loop_between(&end, self->context));
	taken = sge_at(&end, 4096, 64);
	sges[0] = sge_at(&end, 0, 64);
	sges[1] = sge_at(&end, 4100, 8);
	EXPECT_EQ(0, post_receive(self->context, &end, &taken, 123456789012ULL));
	wrs[0] = wr_of(&end, IBCHAN_OP_RECV, &sges[0]);
	EXPECT_EQ(0, ibchan_mr_remote_region(end.mr, &remote));
	wrs[1] = ibchan_wr_write(end.channel, sges, 2, &remote);
	wrs[1].wr_id = 7;
	sges[0].length = 0;
	EXPECT_EQ(-EBUSY, ibchan_post(self->context, wrs, 2, &accepted, &error));
	EXPECT_EQ(1, accepted);
	ibchan_error_text(&error, text, sizeof(text));
	EXPECT_TRUE(has(text, "wr 1 element 1: collides with offset 4096, length 64 "));
	EXPECT_TRUE(has(text, "the work with wr_id 123456789012 still uses"));
	/* A blocking call says it as well. */
	EXPECT_EQ(-EBUSY, ibchan_send(end.channel, &sges[1], 1, IBCHAN_TIMEOUT_NEVER, &error));
	EXPECT_EQ(IBCHAN_ERROR_CALL, error.origin);
	EXPECT_EQ(IBCHAN_REASON_BUSY, error.reason.code);
	EXPECT_EQ(4096, error.reason.value[0]);
	EXPECT_EQ(64, error.reason.value[1]);
	EXPECT_EQ(123456789012ULL, error.reason.value[2]);
	/* And a work that is in its own way is the one that it names. */
	sges[0] = sge_at(&end, 8192, 8);
	sges[1] = sges[0];
	wrs[1].opcode = IBCHAN_OP_READ;
	EXPECT_EQ(-EBUSY, ibchan_post(self->context, &wrs[1], 1, NULL, &error));
	EXPECT_EQ(1, error.reason.element);
	EXPECT_EQ(7, error.reason.value[2]);
	wrs[1].flags = IBCHAN_WR_UNCHECKED;
	EXPECT_EQ(0, ibchan_post(self->context, &wrs[1], 1, NULL, NULL));
	EXPECT_EQ(0, ibchan_channel_close(end.channel));
	end.channel = NULL;
	EXPECT_EQ(0, ibchan_cq_destroy(end.cq));
	end_close(&end);
}

TEST_F(pair, lets_the_completions_of_a_closed_channel_be_polled)
{
	struct ibchan_cqe done[4];
	struct ibchan_submit_sge in[3];
	int i;

	for (i = 0; i < 3; i++) {
		in[i] = sge_at(&self->b, 8 * i, 8);
		ASSERT_EQ(0, post_receive(self->context, &self->b, &in[i], 30 + i));
	}
	ASSERT_EQ(-EBUSY, ibchan_cq_destroy(self->b.cq));
	ASSERT_EQ(0, ibchan_channel_close(self->b.channel));
	self->b.channel = NULL;
	ASSERT_EQ(3, ibchan_cq_poll(self->b.cq, done, 4));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(30 + i, done[i].wr_id);
		ASSERT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, done[i].status);
		ASSERT_EQ(-ECANCELED, done[i].error);
		ASSERT_EQ(NULL, ibchan_cqe_channel(self->context, &done[i]));
	}
}

TEST_HARNESS_MAIN
