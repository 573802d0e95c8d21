// SPDX-License-Identifier: GPL-2.0-only
/*
 * Laws 5 and 7 below the library: a thread that is cancelled, or jumps out of a wait,
 * leaves its works pending; nothing of its stack is used any more, and each work completes once.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "test.h"
#include "thread.h"
#include "work.h"
#include "world.h"

#define DEPTH		64
#define MESSAGE		256
#define BATCH		4
/* More stack than a submit needs. */
#define STACK_BYTES	16384

FIXTURE(left)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
};

FIXTURE_SETUP(left)
{
	struct side_options options = side_defaults();

	options.params.max_recv_wr = DEPTH;
	options.params.max_send_wr = DEPTH;
	options.params.rnr_retries = 7;
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
}

FIXTURE_TEARDOWN(left)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static unsigned int receives_in_flight(const struct side *side)
{
	struct ibchan_cmd_channel_query query;

	return side_query(side, &query) ? 0 : query.out.recvs_in_flight;
}

/* Posts receives from the caller's stack and waits without end for one of them. */
static int receive_and_wait(struct side *side, unsigned int first, unsigned int n)
{
	struct ibchan_submit_wr wrs[BATCH];
	struct ibchan_cmd_submit cmd;
	unsigned int i;

	for (i = 0; i < n; i++)
		wrs[i] = work(side, IBCHAN_OP_RECV, first + i,
			      MESSAGE * ((first + i) % (2 * DEPTH)), MESSAGE);
	cmd = submission(wrs, n);
	cmd.cq = side->ring->cq;
	cmd.min_complete = 1;
	cmd.timeout_ns = IBCHAN_TIMEOUT_NEVER;
	return cmd_submit(side->fd, &cmd);
}

/* Where the frames were that are left. */
static __attribute_noinline__ void overwrite_stack(void)
{
	unsigned char bytes[STACK_BYTES];

	memset(bytes, 0xd5, sizeof(bytes));
	/* For the compiler: somebody may read them. */
	__asm__ volatile("" : : "r"(bytes) : "memory");
}

static int send_each(struct side *from, unsigned int n)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++) {
		memset(from->memory, i + 1, MESSAGE);
		rc = post_one(from, work(from, IBCHAN_OP_SEND, 1000 + i, 0, MESSAGE));
		if (!rc)
			rc = succeed(from, 1000 + i, NULL);
	}
	return rc;
}

static bool has_arrived(void *arg)
{
	return !receives_in_flight(arg);
}

/* What is in flight completes: in the order of posting, each once, where it belongs. */
static int completes_once(struct side *from, struct side *to, unsigned int n)
{
	struct ibchan_cqe cqe;
	unsigned int i;
	__u64 next = 0;
	int rc;

	rc = send_each(from, n);
	if (!rc && !eventually(has_arrived, to))
		rc = -ETIMEDOUT;
	/* The place of a work is free a moment before its completion is to be read. */
	if (!rc)
		rc = ring_wait(to->ring, n, patience_ms());
	for (i = 0; i < n && !rc; i++) {
		if (ring_read(to->ring, &cqe, 1) != 1 || cqe.wr_id < next || cqe.status)
			return -EBADMSG;
		next = cqe.wr_id + 1;
		rc = all_bytes(to->memory + MESSAGE * (cqe.wr_id % (2 * DEPTH)), MESSAGE, i + 1);
	}
	if (rc)
		return rc;
	return ring_surplus(to->ring) ? -EOVERFLOW : exchange(from, to);
}

/* --- cancellation --- */

/* An ioctl is no cancellation point, so only the asynchronous kind ends it. */
static void *wait_to_be_cancelled(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	receive_and_wait(arg, 0, BATCH);
	return NULL;
}

static bool has_posted_a_batch(void *arg)
{
	return receives_in_flight(arg) == BATCH;
}

static int cancel(pthread_t thread)
{
	void *result;

	pthread_cancel(thread);
	if (pthread_join(thread, &result))
		return -ESRCH;
	return result == PTHREAD_CANCELED ? 0 : -EBADMSG;
}

TEST_F(left, by_a_thread_that_is_cancelled_works_complete)
{
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_to_be_cancelled, self->b));
	ASSERT_TRUE(eventually(has_posted_a_batch, self->b));
	ASSERT_EQ(0, cancel(thread));
	EXPECT_EQ(BATCH, receives_in_flight(self->b));
	EXPECT_EQ(-EBUSY, destroy(self->b->fd, self->b->mr));
	EXPECT_EQ(0, completes_once(self->a, self->b, BATCH));
	EXPECT_EQ(0, destroy(self->b->fd, self->b->mr));
}

struct poster {
	struct side *side;
	unsigned int next;
	sem_t started;
};

static void *post_until_cancelled(void *arg)
{
	struct poster *poster = arg;

	sem_post(&poster->started);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	while (poster->next < DEPTH) {
		unsigned int id = poster->next++;

		post_one(poster->side, work(poster->side, IBCHAN_OP_RECV, id, MESSAGE * id,
					    MESSAGE));
	}
	for (;;)
		ring_wait(poster->side->ring, 1, -1);
	return NULL;
}

TEST_F(left, by_a_thread_that_is_cancelled_anywhere_works_complete)
{
	struct poster poster = { .side = self->b };
	unsigned int rounds = slow() ? 5 : 20;
	unsigned int i;

	sem_init(&poster.started, 0, 0);
	for (i = 0; i < rounds; i++) {
		pthread_t thread;

		poster.next = 0;
		ASSERT_EQ(0, pthread_create(&thread, NULL, post_until_cancelled, &poster));
		sem_wait(&poster.started);
		moment(100 * i);
		ASSERT_EQ(0, cancel(thread));
		ASSERT_EQ(0, completes_once(self->a, self->b, receives_in_flight(self->b)));
	}
	sem_destroy(&poster.started);
}

/* --- jumps --- */

static sigjmp_buf out;

static void jump_out(int signal)
{
	(void)signal;
	siglongjmp(out, 1);
}

static void alarm_after(unsigned int us)
{
	struct itimerval timer = { .it_value.tv_usec = us };

	setitimer(ITIMER_REAL, &timer, NULL);
}

static void catch_alarms(void)
{
	struct sigaction action = { .sa_handler = jump_out };

	sigaction(SIGALRM, &action, NULL);
}

/* Wherever in the call the signal comes, the work is posted or it is not. */
TEST_F(left, by_jumps_from_anywhere_works_complete_once)
{
	/* Survives the jumps, as no automatic variable would. */
	static unsigned int i;

	catch_alarms();
	for (i = 0; i < DEPTH; i++) {
		if (!sigsetjmp(out, 1)) {
			alarm_after(1 + 37 * i);
			receive_and_wait(self->b, i, 1);
		}
		overwrite_stack();
	}
	EXPECT_LT(0, receives_in_flight(self->b));
	EXPECT_EQ(0, completes_once(self->a, self->b, receives_in_flight(self->b)));
}

TEST_HARNESS_MAIN
