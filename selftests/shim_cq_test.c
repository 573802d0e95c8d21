// SPDX-License-Identifier: GPL-2.0-only
/*
 * One completion queue of libibchan for several channels and callers; for several threads see
 * shim_thread_test.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
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

TEST_F(shared, counts_what_a_blocking_call_has_passed_over_against_the_entries)
{
	struct ibchan_submit_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_submit_sge in[2] = { sge_at(&self->b, 0, 8), sge_at(&self->b, 8, 8) };
	struct ibchan_cqe done[IBCHAN_DEFAULT_CQ_ENTRIES];
	struct ibchan_error error;
	int i, rc = 0, n = 0;

	/* Nobody polls, so what the receives bring piles up. */
	for (i = 0; i < 2 * IBCHAN_DEFAULT_CQ_ENTRIES && !rc; i++) {
		rc = post_receive(self->context, &self->b, &in[0], i);
		if (!rc)
			rc = ibchan_send(self->a.channel, &out, 1, IBCHAN_TIMEOUT_NEVER, &error);
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
	ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL));
}

/*
 * Each call takes its own completion out of the ring, behind those that nobody has polled, which
 * keep their order. As often as would fill the ring several times.
 */
TEST_F(shared, takes_blocking_calls_for_ever_beside_completions_that_nobody_polls)
{
	struct ibchan_submit_sge in[2] = { sge_at(&self->b, 0, 8), sge_at(&self->b, 8, 8) };
	struct ibchan_submit_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_remote_region remote;
	struct ibchan_cqe done[4];
	int i;

	ASSERT_EQ(0, ibchan_mr_remote_region(self->b.mr, &remote));
	ASSERT_EQ(0, ibchan_remote_region_sub(&remote, HALF, 8, &remote));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &in[0], 71));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &in[1], 72));
	ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL));
	for (i = 0; i < 3 * IBCHAN_DEFAULT_CQ_ENTRIES; i++) {
		ASSERT_EQ(0, ibchan_write(self->a.channel, &out, 1, &remote,
					  IBCHAN_TIMEOUT_NEVER, NULL));
		if (i == IBCHAN_DEFAULT_CQ_ENTRIES / 2)
			ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1,
						 IBCHAN_TIMEOUT_NEVER, NULL));
	}
	ASSERT_EQ(2, ibchan_cq_wait(self->cq, done, 4, 2, patience_ns()));
	EXPECT_EQ(71, done[0].wr_id);
	EXPECT_EQ(72, done[1].wr_id);
	EXPECT_EQ(0, ibchan_cq_poll(self->cq, done, 4));
}

static int is_readable(int epoll)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, 0);
}

TEST_F(shared, has_a_descriptor_that_is_level_triggered)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct ibchan_submit_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_submit_sge in[2] = { sge_at(&self->b, 0, 8), sge_at(&self->b, 8, 8) };
	struct ibchan_submit_wr wr = wr_of(&self->a, IBCHAN_OP_SEND, &out);
	struct ibchan_cqe done[4];
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

TEST_F(shared, has_a_descriptor_that_knows_what_a_blocking_call_has_passed_over)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct ibchan_submit_sge out = sge_at(&self->a, 0, 8);
	struct ibchan_submit_sge in = sge_at(&self->b, 0, 8);
	struct ibchan_cqe completion;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct ibchan_submit_wr wr;

	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, ibchan_cq_fd(self->cq), &event));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &in, 1));
	ASSERT_EQ(0, ibchan_send(self->a.channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL));
	/* Another blocking call meets it, if the first one did not. */
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, patience_ms()));
	wr = wr_of(&self->b, IBCHAN_OP_RECV, &in);
	ASSERT_EQ(-ETIMEDOUT, ibchan_perform(self->b.channel, &wr, 0, NULL, NULL));
	ASSERT_EQ(1, is_readable(epoll));
	ASSERT_EQ(1, is_readable(epoll));
	ASSERT_EQ(1, ibchan_cq_poll(self->cq, &completion, 1));
	ASSERT_EQ(1, completion.wr_id);
	ASSERT_EQ(0, is_readable(epoll));
	close(epoll);
}

/* For threads that wait with a set of their own each: the kernel need not wake all of them. */
TEST_F(shared, has_a_descriptor_that_may_be_waited_for_exclusively)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	int sets[2], i, woken = 0;

	for (i = 0; i < 2; i++) {
		sets[i] = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_LE(0, sets[i]);
		ASSERT_EQ(0, epoll_ctl(sets[i], EPOLL_CTL_ADD, ibchan_cq_fd(self->cq), &event));
	}
	ASSERT_EQ(0, ibchan_post_receive(self->b.channel, self->b.mr, 0, 64, 1, NULL));
	ASSERT_EQ(0, ibchan_post_send(self->a.channel, self->a.mr, 64, 64, 2, NULL));
	for (i = 0; i < 2; i++)
		woken += epoll_wait(sets[i], &event, 1, i ? 0 : patience_ms()) == 1;
	EXPECT_LE(1, woken);
	close(sets[0]);
	close(sets[1]);
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
	wrong.version = 0;
	EXPECT_EQ(-EINVAL, ibchan_prepared_handshake(end.prepared, &wrong, &end.channel, &error));
	ibchan_error_text(&error, text, sizeof(text));
	EXPECT_STREQ("endpoint version: ours 1, theirs 0", text);
	EXPECT_EQ(NULL, end.channel);
	EXPECT_EQ(0, end_connect(&end, &own));
	end_close(&end);
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
	struct ibchan_submit_sge out = sge_at(end, 0, 8), in = sge_at(end, HALF, 8);
	struct ibchan_cqe done;
	int rc = post_receive(context, end, &in, wr_id);

	memcpy(end->memory, &wr_id, sizeof(wr_id));
	rc = rc ? rc : ibchan_send(end->channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL);
	if (!rc && wait_one(end->cq, &done) != 1)
		rc = -ETIME;
	if (!rc && (done.wr_id != wr_id || memcmp(end->memory + HALF, &wr_id, sizeof(wr_id))))
		rc = -EBADMSG;
	return rc;
}

/* Queues that are there at once; they go in another order than they came. */
static int use_passing_queues(struct ibchan_context *context, unsigned int round)
{
	struct end ends[PASSING] = {};
	unsigned int i;
	int rc = 0;

	for (i = 0; i < PASSING && !rc; i++)
		rc = end_open(&ends[i], context, 0, NULL) ?: end_loop(&ends[i]);
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
