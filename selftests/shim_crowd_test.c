// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program whose CPU another one wants, too: it loses the CPU anywhere in a post, which may
 * give it away by itself. What it posted is found in the ring all the same, without a call.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/end.h"
#include "test.h"
#include "world.h"

FIXTURE(crowd)
{
	struct calm calm;
	cpu_set_t cpus;
	pid_t other;
	struct ibchan_context *context;
	struct end a, b;
};

/* This thread, and what it makes later, have the first of @cpus only. */
static int stay_on_one(const cpu_set_t *cpus)
{
	cpu_set_t one;
	int cpu = 0;

	while (!CPU_ISSET(cpu, cpus))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

/* A process that never sleeps, on the CPU of this one. */
static pid_t fork_other(void)
{
	pid_t other = fork();

	if (other)
		return other;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		asm volatile("" ::: "memory");
}

FIXTURE_SETUP(crowd)
{
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(self->cpus), &self->cpus));
	ASSERT_EQ(0, stay_on_one(&self->cpus));
	self->other = fork_other();
	ASSERT_LT(0, self->other);
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, ibchan_context_open(&self->context, NULL));
	ASSERT_EQ(0, end_open(&self->a, self->context, 0, NULL));
	ASSERT_EQ(0, end_open(&self->b, self->context, 0, self->a.cq));
	ASSERT_EQ(0, connect_ends(&self->a, &self->b));
}

FIXTURE_TEARDOWN(crowd)
{
	end_close(&self->b);
	end_close(&self->a);
	EXPECT_EQ(0, ibchan_context_close(self->context));
	EXPECT_EQ(0, kill(self->other, SIGKILL));
	EXPECT_EQ(self->other, waitpid(self->other, NULL, 0));
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Long enough for some hundred losses of the CPU. */
#define CROWDED_MS	3000

/* Polls until @num completions have come; how many did. */
static int poll_for(struct ibchan_cq *cq, int num)
{
	__u64 end = now_ms() + (__u64)patience_ms();
	struct ibchan_cqe completion;
	int got, total = 0;

	while (total < num && now_ms() < end) {
		got = ibchan_cq_poll(cq, &completion, 1);
		if (got < 0 || (got && completion.error))
			return -1;
		total += got;
	}
	return total;
}

/* What one turn posts: a write by itself, or a message with its receive before it. */
static int post_write(struct ibchan_context *context, const struct end *a, const struct end *b)
{
	struct ibchan_submit_sge out = sge_at(a, 0, sizeof(__u64));
	struct ibchan_remote_region remote;
	struct ibchan_submit_wr wr;

	ibchan_mr_remote_region(b->mr, &remote);
	wr = ibchan_wr_write(a->channel, &out, 1, &remote);
	return ibchan_post(context, &wr, 1, NULL, NULL);
}

static int post_message(struct ibchan_context *context, const struct end *a, const struct end *b)
{
	struct ibchan_submit_sge in = sge_at(b, 0, sizeof(__u64));
	struct ibchan_submit_sge out = sge_at(a, 0, sizeof(__u64));
	struct ibchan_submit_wr wrs[2] = {
		wr_of(b, IBCHAN_OP_RECV, &in), wr_of(a, IBCHAN_OP_SEND, &out),
	};

	return ibchan_post(context, wrs, 2, NULL, NULL);
}

/*
 * What turn number @turn posts carries that number. So many completions follow, or it has
 * failed.
 */
static int post_turn(struct ibchan_context *context, const struct end *a, const struct end *b,
		     __u64 turn)
{
	int rc;

	memcpy(a->memory, &turn, sizeof(turn));
	rc = turn % 2 ? post_write(context, a, b) : post_message(context, a, b);
	if (rc)
		return rc;
	return turn % 2 ? 1 : 2;
}

TEST_F(crowd, finds_what_it_posted_without_a_call)
{
	const __u64 end = now_ms() + CROWDED_MS;
	__u64 turn;
	int due;

	for (turn = 1; now_ms() < end; turn++) {
		due = post_turn(self->context, &self->a, &self->b, turn);
		ASSERT_LT(0, due);
		ASSERT_EQ(due, poll_for(self->a.cq, due));
		ASSERT_EQ(0, memcmp(self->b.memory, &turn, sizeof(turn)));
	}
	ASSERT_LT(10, turn);
}

struct poller {
	struct ibchan_cq *cq;
	cpu_set_t cpus;
	atomic_int seen;
	atomic_bool stops;
};

static void *poll_elsewhere(void *arg)
{
	struct poller *poller = arg;
	struct ibchan_cqe completion;

	sched_setaffinity(0, sizeof(poller->cpus), &poller->cpus);
	while (!atomic_load(&poller->stops))
		if (ibchan_cq_poll(poller->cq, &completion, 1) == 1 && !completion.error)
			atomic_fetch_add(&poller->seen, 1);
	return NULL;
}

static bool seen_all(struct poller *poller, int due)
{
	const __u64 end = now_ms() + (__u64)patience_ms();

	while (atomic_load(&poller->seen) < due && now_ms() < end)
		sched_yield();
	return atomic_load(&poller->seen) == due;
}

TEST_F(crowd, has_what_it_posted_found_by_another_thread)
{
	struct poller poller = { .cq = self->a.cq, .cpus = self->cpus };
	const __u64 end = now_ms() + CROWDED_MS;
	bool has_come = true;
	pthread_t thread;
	int due = 0;
	__u64 turn;

	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_elsewhere, &poller));
	for (turn = 1; has_come && now_ms() < end; turn++) {
		due += post_turn(self->context, &self->a, &self->b, turn);
		has_come = seen_all(&poller, due) &&
			   !memcmp(self->b.memory, &turn, sizeof(turn));
	}
	atomic_store(&poller.stops, true);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_TRUE(has_come);
	ASSERT_LT(10, turn);
}

TEST_HARNESS_MAIN
