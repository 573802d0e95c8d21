// SPDX-License-Identifier: GPL-2.0-only
/*
 * libibchan's pending works: two channels, a's on a cq of its own, b's on a small one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "shim/end.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define ENTRIES	8

FIXTURE(pending)
{
	struct calm calm;
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_cq *cq;
	struct end a, b;
};

FIXTURE_SETUP(pending)
{
	char name[IBCHAN_NAME_SIZE];

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, ibchan_context_open(&self->context, NULL));
	ASSERT_EQ(0, device_name(self->context, 1, name));
	ASSERT_EQ(0, ibchan_device_open(self->context, name, &self->device, NULL));
	ASSERT_EQ(0, ibchan_cq_create(self->device, ENTRIES, 0, &self->cq, NULL));
	ASSERT_EQ(0, end_open(&self->a, self->context, 0, NULL));
	ASSERT_EQ(0, end_open(&self->b, self->context, 1, self->cq));
	ASSERT_EQ(0, connect_ends(&self->a, &self->b));
}

FIXTURE_TEARDOWN(pending)
{
	end_close(&self->a);
	end_close(&self->b);
	EXPECT_EQ(0, ibchan_cq_destroy(self->cq));
	EXPECT_EQ(0, ibchan_device_close(self->device));
	EXPECT_EQ(0, ibchan_context_close(self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Receives are posted at place 0, 1, ... of @end, each 16 bytes long. */
static int post_pending(struct ibchan_pending *pending, const struct end *end, int place)
{
	struct ibchan_submit_sge sge = sge_at(end, 16 * place, 16);
	struct ibchan_submit_wr wr = wr_of(end, IBCHAN_OP_RECV, &sge);

	wr.wr_id = 100 + place;
	return ibchan_pending_post(pending, end->channel, &wr, NULL);
}

static int send_bytes(const struct end *from, size_t bytes)
{
	struct ibchan_submit_sge out = sge_at(from, HALF, bytes);

	return ibchan_send(from->channel, &out, 1, IBCHAN_TIMEOUT_NEVER, NULL);
}

/* A loop of blocking calls has the same slot each time: it gets there within hours. */
TEST_F(pending, is_told_from_any_that_had_its_slot_before_after_four_billion)
{
	struct ibchan_pending pending[2] = { 0 };
	__u32 i;

	ASSERT_EQ(0, post_pending(&pending[0], &self->b, 0));
	ASSERT_EQ(0, send_bytes(&self->a, 4));
	ASSERT_EQ(0, ibchan_pending_wait(&pending[0], patience_ns()));
	/* Those that have just been used are the next ones. */
	ASSERT_LT(0, self->cq->used);
	for (i = 0; i < self->cq->used; i++)
		self->cq->slots[i].generation = UINT32_MAX;
	ASSERT_EQ(0, post_pending(&pending[1], &self->b, 0));
	ASSERT_EQ(0, send_bytes(&self->a, 5));
	ASSERT_EQ(0, ibchan_pending_wait(&pending[1], patience_ns()));
	ASSERT_EQ(5, pending[1].completion.bytes);
}

/* The library has numbers of its own for the works that it keeps, the caller may have any. */
TEST_F(pending, is_told_from_a_polled_work_whose_wr_id_was_its_number_once)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_submit_sge sge = sge_at(&self->b, 512, 16);
	struct ibchan_cqe done;
	__u64 number;

	ASSERT_EQ(0, post_pending(&pending, &self->b, 0));
	number = self->cq->tag | pending.slot;
	ASSERT_EQ(0, send_bytes(&self->a, 4));
	ASSERT_EQ(0, ibchan_pending_wait(&pending, patience_ns()));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &sge, number));
	ASSERT_EQ(0, send_bytes(&self->a, 5));
	ASSERT_EQ(1, wait_one(self->cq, &done));
	ASSERT_EQ(number, done.wr_id);
	ASSERT_EQ(5, done.bytes);
	ASSERT_EQ(4, pending.completion.bytes);
}

TEST_F(pending, tells_its_result_as_often_as_it_is_asked)
{
	struct ibchan_pending pending = { 0 };

	ASSERT_EQ(0, post_pending(&pending, &self->b, 3));
	ASSERT_EQ(103, pending.completion.wr_id);
	ASSERT_EQ(self->b.channel, ibchan_cqe_channel(self->context, &pending.completion));
	ASSERT_EQ(0, ibchan_pending_poll(&pending));
	ASSERT_EQ(-EINPROGRESS, ibchan_pending_result(&pending));
	ASSERT_EQ(0, send_bytes(&self->a, 5));
	ASSERT_EQ(0, ibchan_pending_wait(&pending, patience_ns()));
	ASSERT_EQ(0, ibchan_pending_result(&pending));
	ASSERT_EQ(5, pending.completion.bytes);
	ASSERT_EQ(103, pending.completion.wr_id);
	ASSERT_EQ(IBCHAN_OP_RECV, pending.completion.opcode);
	ASSERT_EQ(1, ibchan_pending_poll(&pending));
	ASSERT_EQ(0, ibchan_pending_wait(&pending, 0));
	ASSERT_EQ(0, ibchan_pending_spin(&pending));
	ASSERT_EQ(0, ibchan_pending_result(&pending));
}

TEST_F(pending, that_was_never_posted_says_so)
{
	struct ibchan_pending pending = { 0 };

	ASSERT_EQ(-EINVAL, ibchan_pending_result(&pending));
	ASSERT_EQ(-EINVAL, ibchan_pending_poll(&pending));
	ASSERT_EQ(-EINVAL, ibchan_pending_spin(&pending));
	ASSERT_EQ(-EINVAL, ibchan_pending_wait(&pending, 0));
	ibchan_pending_drop(&pending);
	ibchan_pending_drop(NULL);
	ASSERT_EQ(-EINVAL, ibchan_pending_result(&pending));
}

TEST_F(pending, keeps_to_itself_and_loses_no_other_completion)
{
	struct ibchan_submit_sge sges[2] = { sge_at(&self->b, 0, 16), sge_at(&self->b, 32, 16) };
	struct ibchan_pending pending = { 0 }, last = { 0 };
	struct ibchan_cqe done[4];
	int i;

	ASSERT_EQ(0, post_receive(self->context, &self->b, &sges[0], 1));
	ASSERT_EQ(0, post_pending(&pending, &self->b, 1));
	ASSERT_EQ(0, post_receive(self->context, &self->b, &sges[1], 2));
	ASSERT_EQ(0, post_pending(&last, &self->b, 3));
	for (i = 1; i <= 4; i++)
		ASSERT_EQ(0, send_bytes(&self->a, i));
	/* The last one meets all others, the poll meets none but its own. */
	ASSERT_EQ(0, ibchan_pending_wait(&last, patience_ns()));
	ASSERT_EQ(4, last.completion.bytes);
	ASSERT_EQ(2, ibchan_cq_poll(self->cq, done, 4));
	ASSERT_EQ(1, done[0].wr_id);
	ASSERT_EQ(1, done[0].bytes);
	ASSERT_EQ(2, done[1].wr_id);
	ASSERT_EQ(3, done[1].bytes);
	ASSERT_EQ(1, ibchan_pending_poll(&pending));
	ASSERT_EQ(2, pending.completion.bytes);
	ASSERT_EQ(0, ibchan_cq_poll(self->cq, done, 4));
}

TEST_F(pending, gets_its_result_when_another_call_has_read_the_ring)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_cqe done;
	struct pollfd fd = { .fd = ibchan_cq_fd(self->cq), .events = POLLIN };

	ASSERT_LE(0, fd.fd);
	ASSERT_EQ(0, poll(&fd, 1, 0));
	ASSERT_EQ(0, post_pending(&pending, &self->b, 0));
	ASSERT_EQ(0, send_bytes(&self->a, 7));
	ASSERT_EQ(1, poll(&fd, 1, patience_ms()));
	ASSERT_EQ(0, ibchan_cq_poll(self->cq, &done, 1));
	ASSERT_EQ(0, poll(&fd, 1, 0));
	ASSERT_EQ(-EINPROGRESS, ibchan_pending_result(&pending));
	ASSERT_EQ(1, ibchan_pending_poll(&pending));
	ASSERT_EQ(7, pending.completion.bytes);
}

TEST_F(pending, is_not_posted_again_while_it_is_in_flight)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_channel_info info;

	ASSERT_EQ(0, post_pending(&pending, &self->b, 0));
	ASSERT_EQ(-EALREADY, post_pending(&pending, &self->b, 1));
	ASSERT_EQ(0, ibchan_channel_query(self->b.channel, &info, NULL));
	ASSERT_EQ(1, info.recvs_in_flight);
	ASSERT_EQ(100, pending.completion.wr_id);
	ASSERT_EQ(0, send_bytes(&self->a, 1));
	ASSERT_EQ(0, ibchan_pending_spin(&pending));
	ASSERT_EQ(0, post_pending(&pending, &self->b, 1));
	ASSERT_EQ(-EINPROGRESS, ibchan_pending_result(&pending));
	ASSERT_EQ(0, send_bytes(&self->a, 2));
	ASSERT_EQ(0, ibchan_pending_wait(&pending, patience_ns()));
	ASSERT_EQ(2, pending.completion.bytes);
	ASSERT_EQ(101, pending.completion.wr_id);
}

TEST_F(pending, stays_as_it_was_when_its_post_is_refused)
{
	struct ibchan_submit_sge sge = sge_at(&self->b, MEMORY - 8, 9);
	struct ibchan_submit_wr wr = wr_of(&self->b, IBCHAN_OP_RECV, &sge);
	struct ibchan_pending pending = { 0 };
	struct ibchan_error error;

	ASSERT_EQ(-EINVAL, ibchan_pending_post(&pending, self->b.channel, &wr, &error));
	ASSERT_EQ(IBCHAN_ERROR_CALL, error.origin);
	ASSERT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, error.reason.code);
	ASSERT_EQ(-EINVAL, ibchan_pending_result(&pending));
	/* It was made for another channel. */
	ASSERT_EQ(-ENOENT, ibchan_pending_post(&pending, self->a.channel, &wr, &error));
	ASSERT_EQ(IBCHAN_REASON_CHANNEL_HANDLE, error.reason.code);
}

TEST_F(pending, outlives_a_wait_that_has_timed_out)
{
	struct ibchan_pending pending = { 0 };

	ASSERT_EQ(0, post_pending(&pending, &self->b, 0));
	ASSERT_EQ(-ETIMEDOUT, ibchan_pending_wait(&pending, 20 * MS));
	ASSERT_EQ(-ETIMEDOUT, ibchan_pending_wait(&pending, 0));
	ASSERT_EQ(-EINVAL, ibchan_pending_wait(&pending, -2));
	ASSERT_EQ(-EINPROGRESS, ibchan_pending_result(&pending));
	ASSERT_EQ(0, send_bytes(&self->a, 6));
	ASSERT_EQ(0, ibchan_pending_wait(&pending, patience_ns()));
	ASSERT_EQ(6, pending.completion.bytes);
}

static int drop_at_the_end(struct end *end)
{
	struct ibchan_pending pending ibchan_dropped = { 0 };

	return post_pending(&pending, end, 0);
}

TEST_F(pending, completes_when_it_is_dropped)
{
	struct late_send late = { &self->a, sge_at(&self->a, 0, 3), gettid(), -1 };
	struct ibchan_channel_info info;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &late));
	EXPECT_EQ(0, drop_at_the_end(&self->b));
	EXPECT_EQ(0, ibchan_channel_query(self->b.channel, &info, NULL));
	EXPECT_EQ(0, info.recvs_in_flight);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, late.rc);
}

TEST_F(pending, can_be_asked_after_its_channel_was_closed)
{
	struct ibchan_pending done = { 0 }, flushed = { 0 };

	ASSERT_EQ(0, post_pending(&done, &self->b, 0));
	ASSERT_EQ(0, post_pending(&flushed, &self->b, 1));
	ASSERT_EQ(0, send_bytes(&self->a, 4));
	ASSERT_EQ(0, ibchan_channel_close(self->b.channel));
	self->b.channel = NULL;
	ASSERT_EQ(1, ibchan_pending_poll(&done));
	ASSERT_EQ(0, ibchan_pending_result(&done));
	ASSERT_EQ(4, done.completion.bytes);
	ASSERT_EQ(NULL, ibchan_cqe_channel(self->context, &done.completion));
	ASSERT_EQ(0, ibchan_pending_wait(&flushed, 0));
	ASSERT_EQ(-ECANCELED, ibchan_pending_result(&flushed));
	ASSERT_EQ(101, flushed.completion.wr_id);
}

/* How many more works the cq has a place for whose results are kept. */
static int fill_queue(struct ibchan_pending *works, const struct end *end)
{
	int n;

	memset(works, 0, (ENTRIES + 1) * sizeof(*works));
	for (n = 0; n <= ENTRIES; n++)
		if (post_pending(&works[n], end, 10 + n))
			break;
	return n;
}

/* Replaces b's channel, and so all that was posted on it, by a fresh one. */
static int reopen(struct end *b, struct end *a, struct ibchan_context *context)
{
	struct ibchan_cq *cq = b->cq;

	end_close(b);
	end_close(a);
	return end_open(a, context, 0, NULL) ?: end_open(b, context, 1, cq) ?: connect_ends(a, b);
}

TEST_F(pending, of_a_closed_channel_makes_room_last_and_is_stale_then)
{
	struct ibchan_pending kept[3] = { 0 }, works[ENTRIES + 1];
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post_pending(&kept[i], &self->b, i));
	ASSERT_EQ(0, reopen(&self->b, &self->a, self->context));
	ASSERT_EQ(0, post_pending(&kept[2], &self->b, 0));
	ASSERT_EQ(1, ibchan_pending_poll(&kept[0]));
	ASSERT_EQ(-ECANCELED, ibchan_pending_result(&kept[0]));
	/* All places can be used, the one of the work in flight but one. */
	ASSERT_EQ(ENTRIES - 1, fill_queue(works, &self->b));
	ASSERT_EQ(1, ibchan_pending_poll(&kept[1]));
	ASSERT_EQ(-ESTALE, ibchan_pending_result(&kept[1]));
	ASSERT_EQ(101, kept[1].completion.wr_id);
	ASSERT_EQ(0, ibchan_pending_wait(&kept[1], 0));
	/* Who lost a result gets nobody else's, and nobody else gets theirs. */
	for (i = 1; i <= ENTRIES; i++)
		ASSERT_EQ(0, send_bytes(&self->a, i));
	for (i = 0; i < ENTRIES - 1; i++) {
		ASSERT_EQ(0, ibchan_pending_wait(&works[i], patience_ns()));
		ASSERT_EQ(110 + i, works[i].completion.wr_id);
		ASSERT_EQ(i + 2, works[i].completion.bytes);
	}
	ASSERT_EQ(1, ibchan_pending_poll(&kept[2]));
	ASSERT_EQ(1, kept[2].completion.bytes);
	ASSERT_EQ(-ECANCELED, ibchan_pending_result(&kept[0]));
}

TEST_F(pending, can_be_asked_after_its_queue_was_destroyed)
{
	struct ibchan_pending pending = { 0 }, unknown = { 0 };

	ASSERT_EQ(0, post_pending(&pending, &self->b, 0));
	ASSERT_EQ(0, post_pending(&unknown, &self->b, 1));
	ASSERT_EQ(0, send_bytes(&self->a, 11));
	ASSERT_EQ(0, ibchan_channel_close(self->b.channel));
	self->b.channel = NULL;
	ASSERT_EQ(0, ibchan_cq_destroy(self->cq));
	self->cq = NULL;
	ASSERT_EQ(0, ibchan_pending_wait(&pending, IBCHAN_TIMEOUT_NEVER));
	ASSERT_EQ(0, ibchan_pending_result(&pending));
	ASSERT_EQ(11, pending.completion.bytes);
	ibchan_pending_drop(&unknown);
	ASSERT_EQ(-ECANCELED, ibchan_pending_result(&unknown));
}

static sigjmp_buf out_of_the_wait;

static void on_signal(int signal)
{
	(void)signal;
	siglongjmp(out_of_the_wait, 1);
}

struct victim {
	pthread_t thread;
	pid_t tid;
	int rc;
};

static void *interrupt_thread(void *arg)
{
	struct victim *victim = arg;

	victim->rc = eventually(is_asleep, &victim->tid) ? pthread_kill(victim->thread, SIGUSR1) :
							-ETIMEDOUT;
	return NULL;
}

/* The stack that the work was posted from has other contents long since. */
TEST_F(pending, leaves_nothing_dangling_when_a_signal_jumps_out_of_a_blocking_call)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct victim victim = { pthread_self(), gettid(), -1 };
	struct ibchan_submit_sge in = sge_at(&self->b, 0, 16);
	static struct ibchan_pending works[ENTRIES + 1];
	struct ibchan_cqe completion;
	struct ibchan_pending pending = { 0 };
	pthread_t thread;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, interrupt_thread, &victim));
	if (!sigsetjmp(out_of_the_wait, 1)) {
		ibchan_receive(self->b.channel, &in, 1, IBCHAN_TIMEOUT_NEVER, &completion, NULL);
		ASSERT_TRUE(false);
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, victim.rc);
	ASSERT_EQ(0, post_pending(&pending, &self->b, 5));
	ASSERT_EQ(0, send_bytes(&self->a, 1));
	ASSERT_EQ(0, send_bytes(&self->a, 2));
	ASSERT_EQ(0, ibchan_pending_wait(&pending, patience_ns()));
	ASSERT_EQ(2, pending.completion.bytes);
	ASSERT_EQ(0, ibchan_cq_poll(self->cq, &completion, 1));
	/* The work that was jumped over keeps its place until its channel is closed. */
	ASSERT_EQ(ENTRIES - 1, fill_queue(works, &self->b));
	ASSERT_EQ(0, reopen(&self->b, &self->a, self->context));
	ASSERT_EQ(ENTRIES, fill_queue(works, &self->b));
}

TEST_HARNESS_MAIN
