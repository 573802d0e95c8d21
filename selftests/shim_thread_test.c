// SPDX-License-Identifier: GPL-2.0-only
/*
 * libibchan's rules for threads: any call on any object at the same time as any other, as
 * long as no thread destroys what another uses. To be built with -fsanitize=thread as well.
 *
 * Each worker writes a pattern of its own into a slice of the peer's memory and reads it
 * back, so that a completion which went to the wrong one shows in the data.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

#define WORKERS	8
#define SLICE	512
#define ROUNDS	(slow() ? 20 : 100)

/* A thread on @end's channel; @done counts the works that somebody polled for it. */
struct worker {
	struct ibchan_context *context;
	struct end *end;
	struct ibchan_remote_region remote;
	int (*complete)(struct worker *worker, const struct ibchan_submit_wr *wr);
	int index;
	unsigned int done;
	struct worker *all;
	int rc;
};

static int by_a_blocking_call(struct worker *worker, const struct ibchan_submit_wr *wr)
{
	return ibchan_perform(worker->end->channel, wr, patience_ns(), NULL, NULL);
}

static int by_a_pending_work(struct worker *worker, const struct ibchan_submit_wr *wr)
{
	struct ibchan_pending pending = { 0 };
	int rc = ibchan_pending_post(&pending, worker->end->channel, wr, NULL);

	if (rc)
		return rc;
	if (!ibchan_pending_poll(&pending))
		rc = ibchan_pending_wait(&pending, patience_ns());
	return rc ?: ibchan_pending_result(&pending);
}

static int by_a_scope(struct worker *worker, const struct ibchan_submit_wr *wr)
{
	struct ibchan_pending pending = { 0 };
	struct ibchan_scope scope;

	ibchan_scoped(&scope)
		ibchan_scope_fail(&scope, ibchan_scope_post(&scope, &pending, worker->end->channel,
							    wr, NULL));
	return ibchan_scope_error(&scope);
}

/* Whoever takes the completion, it is counted for the one that its wr_id names. */
static int by_polling(struct worker *worker, const struct ibchan_submit_wr *wr)
{
	unsigned int wanted = __atomic_load_n(&worker->done, __ATOMIC_ACQUIRE) + 1;
	struct ibchan_cq *cq = ibchan_channel_send_cq(worker->end->channel);
	struct ibchan_cqe completion;
	__u64 end = now_ms() + patience_ms();
	int rc = ibchan_post(worker->context, wr, 1, NULL, NULL);

	while (!rc && __atomic_load_n(&worker->done, __ATOMIC_ACQUIRE) != wanted) {
		rc = ibchan_cq_wait(cq, &completion, 1, 1, MS);
		if (rc == 1)
			__atomic_add_fetch(&worker->all[completion.wr_id].done, 1,
					   __ATOMIC_RELEASE);
		if (rc == 1)
			rc = completion.error;
		else if (rc == -ETIMEDOUT && now_ms() < end)
			rc = 0;
	}
	return rc;
}

/* One of each kind on neighbouring threads. */
static int (*const kinds[4])(struct worker *worker, const struct ibchan_submit_wr *wr) = {
	by_a_blocking_call, by_a_pending_work, by_a_scope, by_polling,
};

/* The slice of @worker that @opcode works on: the halves are apart. */
static int one_work(struct worker *worker, __u32 opcode)
{
	size_t offset = 2 * SLICE * worker->index + (opcode == IBCHAN_OP_READ ? SLICE : 0);
	struct ibchan_submit_sge sge = sge_at(worker->end, offset, SLICE);
	struct ibchan_submit_wr wr = wr_of(worker->end, opcode, &sge);

	wr.wr_id = worker->index;
	wr_at(&wr, &worker->remote);
	return worker->complete(worker, &wr);
}

static void *worker_thread(void *arg)
{
	struct worker *worker = arg;
	unsigned char *out = worker->end->memory + 2 * SLICE * worker->index;
	int round;

	for (round = 0; !worker->rc && round < ROUNDS; round++) {
		memset(out, worker->index * 31 + round, SLICE);
		worker->rc = one_work(worker, IBCHAN_OP_WRITE);
		if (!worker->rc)
			worker->rc = one_work(worker, IBCHAN_OP_READ);
		if (!worker->rc && memcmp(out, out + SLICE, SLICE))
			worker->rc = -EILSEQ;
	}
	return NULL;
}

FIXTURE(threads)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a, b, c, d;
	struct worker workers[WORKERS];
	pthread_t ids[WORKERS];
};

FIXTURE_SETUP(threads)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
	ASSERT_EQ(0, end_open(&self->c, self->context, 0, self->a.cq));
	ASSERT_EQ(0, end_open(&self->d, self->context, 1, NULL));
	ASSERT_EQ(0, connect_ends(&self->c, &self->d));
}

FIXTURE_TEARDOWN(threads)
{
	end_close(&self->d);
	end_close(&self->c);
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int start(struct worker *workers, int index, struct end *end, const struct end *peer)
{
	struct worker *worker = &workers[index];
	struct ibchan_remote_region whole;
	int rc;

	worker->end = end;
	worker->index = index;
	worker->complete = kinds[index % 4];
	worker->all = workers;
	rc = ibchan_mr_remote_region(peer->mr, &whole);
	return rc ?: ibchan_remote_region_nth(&whole, SLICE, index, &worker->remote);
}

TEST_F(threads, share_one_channel_for_all_kinds_of_calls)
{
	int i;

	for (i = 0; i < WORKERS; i++) {
		self->workers[i].context = self->context;
		ASSERT_EQ(0, start(self->workers, i, &self->a, &self->b));
	}
	for (i = 0; i < WORKERS; i++)
		ASSERT_EQ(0, pthread_create(&self->ids[i], NULL, worker_thread, &self->workers[i]));
	for (i = 0; i < WORKERS; i++) {
		ASSERT_EQ(0, pthread_join(self->ids[i], NULL));
		EXPECT_EQ(0, self->workers[i].rc);
	}
}

TEST_F(threads, share_one_queue_for_two_channels)
{
	int i;

	for (i = 0; i < WORKERS; i++) {
		self->workers[i].context = self->context;
		ASSERT_EQ(0, start(self->workers, i, i / 4 ? &self->a : &self->c,
				   i / 4 ? &self->b : &self->d));
	}
	ASSERT_LE(0, ibchan_cq_fd(self->a.cq));
	for (i = 0; i < WORKERS; i++)
		ASSERT_EQ(0, pthread_create(&self->ids[i], NULL, worker_thread, &self->workers[i]));
	for (i = 0; i < WORKERS; i++) {
		ASSERT_EQ(0, pthread_join(self->ids[i], NULL));
		EXPECT_EQ(0, self->workers[i].rc);
	}
}

/* Makes, uses and destroys objects of its own in the context of all. */
static int build_and_destroy(struct worker *worker)
{
	struct ibchan_builder builder;
	struct ibchan_cqe done;
	struct ibchan_context_attr info;
	struct end end = { 0 };
	int rc = end_objects(&end, worker->context, worker->index);

	if (rc)
		return rc;
	ibchan_builder_init(&builder, end.pd, NULL);
	rc = ibchan_builder_prepare(&builder, &end.prepared, NULL);
	rc = rc ?: end_loop(&end);
	rc = rc ?: ibchan_post_receive(end.channel, end.mr, 0, 8, 1, NULL);
	rc = rc ?: ibchan_post_send(end.channel, end.mr, 8, 8, 2, NULL);
	if (!rc && ibchan_cq_wait(ibchan_channel_recv_cq(end.channel), &done, 1, 1,
				  patience_ns()) != 1)
		rc = -ETIMEDOUT;
	rc = rc ?: ibchan_context_query(worker->context, &info, NULL);
	end_close(&end);
	return rc;
}

static void *builder_thread(void *arg)
{
	struct worker *worker = arg;
	int round;

	for (round = 0; !worker->rc && round < 10; round++)
		worker->rc = build_and_destroy(worker);
	return NULL;
}

TEST_F(threads, share_one_context_for_objects_of_their_own)
{
	int i;

	for (i = 0; i < 4; i++) {
		self->workers[i].context = self->context;
		self->workers[i].index = i;
		ASSERT_EQ(0, pthread_create(&self->ids[i], NULL, builder_thread,
					    &self->workers[i]));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(self->ids[i], NULL));
		EXPECT_EQ(0, self->workers[i].rc);
	}
}

TEST_HARNESS_MAIN
