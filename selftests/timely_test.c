// SPDX-License-Identifier: GPL-2.0-only
/*
 * No call takes longer than its work does. In virtual time only: there a call's time is what the
 * CPU executed and what the call waited for, and nothing that another process did.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "test.h"
#include "work.h"
#include "world.h"

#define RECEIVES	8
/* Nearly as many as a process may have, of a page each, and files that it opens then. */
#define MAPPINGS	60000
#define FILES		16
#define PLAIN		4096
/* Works of one queue that the kernel runs at a time, and some more. */
#define ENDS		300

/* All of a step here; a wait for a time-out, of whatever layer, takes far longer. */
static long limit_ms(void)
{
	return slow() ? 1000 : 100;
}

FIXTURE(timely)
{
	struct calm calm;
	struct side_options options;
	struct pair pair;
	__u64 begin;
	int rc;
};

FIXTURE_SETUP(timely)
{
	if (!getenv("IBCHAN_VIRTUAL"))
		SKIP(return, "time here is not the guest's alone");
	self->options = side_defaults();
	ASSERT_EQ(0, calm_begin(&self->calm));
	self->begin = now_ms();
}

FIXTURE_TEARDOWN(timely)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* 0 if the step that ends here was short, or how long it took in ms; the next one begins. */
static long step(FIXTURE_DATA(timely) * self)
{
	long took = now_ms() - self->begin;

	self->begin = now_ms();
	return took <= limit_ms() ? 0 : took;
}

static int in_flight(FIXTURE_DATA(timely) * self)
{
	return post_receives(self->pair.b, 1, RECEIVES, 64);
}

TEST_F(timely, are_the_steps_to_a_connection_and_its_traffic)
{
	ASSERT_EQ(0, pair_build(&self->pair, PAIR_SAME_DEVICE, &self->options));
	EXPECT_EQ(0, step(self));
	ASSERT_EQ(0, pair_connect(&self->pair));
	EXPECT_EQ(0, step(self));
	EXPECT_EQ(0, exchange(self->pair.a, self->pair.b));
	EXPECT_EQ(0, step(self));
}

TEST_F(timely, is_each_command_that_gives_an_object_back)
{
	struct side *a, *b;

	ASSERT_EQ(0, pair_open(&self->pair, PAIR_SAME_DEVICE, &self->options));
	a = self->pair.a;
	b = self->pair.b;
	ASSERT_EQ(0, in_flight(self));
	step(self);
	EXPECT_EQ(0, channel_break(b->fd, b->channel));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(b, 1));
	EXPECT_EQ(0, step(self));
	EXPECT_EQ(0, destroy(b->fd, b->channel));
	EXPECT_EQ(0, step(self));
	EXPECT_EQ(0, destroy(a->fd, a->channel));
	EXPECT_EQ(0, step(self));
	EXPECT_EQ(0, destroy(b->fd, b->mr));
	EXPECT_EQ(0, step(self));
	EXPECT_EQ(0, destroy(b->fd, b->ring->cq));
	EXPECT_EQ(0, step(self));
	EXPECT_EQ(0, destroy(b->fd, b->pd));
	EXPECT_EQ(0, step(self));
}

TEST_F(timely, is_the_end_of_a_file_with_works_in_flight_until_nothing_is_held)
{
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_SAME_DEVICE, &self->options));
	ASSERT_EQ(0, in_flight(self));
	step(self);
	pair_close(&self->pair);
	EXPECT_EQ(0, step(self));
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, step(self));
}

/* No two neighbours are alike, so that none are merged. */
static char *map_many(size_t length)
{
	char *first = mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;

	for (i = 0; first != MAP_FAILED && i < length; i += 8192)
		if (mprotect(first + i, 4096, PROT_NONE))
			return MAP_FAILED;
	return first;
}

static int open_and_close(FIXTURE_DATA(timely) * self)
{
	int fd = node_open();
	__u32 device;
	int rc;

	if (fd < 0)
		return fd;
	rc = device_open(fd, self->options.device, &device);
	close(fd);
	return rc;
}

/* All locks of a memory map, of which others wait for some, are taken once in a process. */
TEST_F(timely, are_files_but_the_first_one_of_a_process_with_many_mappings)
{
	const size_t length = MAPPINGS * 4096UL;
	char *first = map_many(length);
	unsigned int i;

	ASSERT_NE(MAP_FAILED, first);
	ASSERT_EQ(0, open_and_close(self));
	step(self);
	for (i = 0; i < FILES; i++)
		EXPECT_EQ(0, open_and_close(self));
	EXPECT_EQ(0, step(self));
	munmap(first, length);
}

/*
 * Another queue of @side's, which waits when it ends: the completions of the message were there as
 * it asked for an event, which then comes with the next completion, and there is none.
 */
static int open_waiting(struct side *side, const struct side_options *options)
{
	int rc;

	ring_unmap(&side->own_ring);
	rc = side_cq(side, options);
	rc = rc ?: side_channel(side, options);
	rc = rc ?: side_handshake(side, &side->endpoint);
	rc = rc ?: post_one(side, work_empty(side, IBCHAN_OP_RECV, 1));
	return rc ?: post_one(side, work_empty(side, IBCHAN_OP_SEND, 2));
}

static int leave_ends(const struct side_options *options)
{
	struct side_options small = *options;
	struct side side;
	unsigned int i;
	int rc;

	small.cq_entries = RECEIVES;
	small.ring_entries = 2;
	small.params.max_send_wr = 1;
	small.params.max_recv_wr = 1;
	rc = side_open(&side, &small);
	for (i = 0; i < ENDS && !rc; i++)
		rc = open_waiting(&side, &small);
	side_close(&side);
	return rc;
}

static int post_plain(const struct side *side, __u32 opcode, __u64 place)
{
	struct ibchan_submit_wr wr = work(side, opcode, opcode, 0, PLAIN);

	wr.sge.offset = address(side->memory + place);
	wr.sge.mr = IBCHAN_MR_PLAIN;
	return post_one(side, wr);
}

/*
 * A worker of the queue that ends cqs gives back the plain memory of a work, and the end of the
 * domain waits for it.
 */
static int use_domain(FIXTURE_DATA(timely) * self)
{
	struct side *side = self->pair.a;
	int rc = pd_alloc(side->fd, side->device, &side->pd);

	rc = rc ?: side_channel(side, &self->options);
	rc = rc ?: side_handshake(side, &side->endpoint);
	rc = rc ?: post_plain(side, IBCHAN_OP_RECV, 0);
	rc = rc ?: post_plain(side, IBCHAN_OP_SEND, PLAIN);
	rc = rc ?: succeed(side, IBCHAN_OP_SEND, NULL);
	rc = rc ?: succeed(side, IBCHAN_OP_RECV, NULL);
	rc = rc ?: destroy(side->fd, side->channel);
	step(self);
	rc = rc ?: destroy(side->fd, side->pd);
	return rc ?: step(self);
}

/* Nothing tells how far the queues are; a domain ends each time that somebody looks. */
static bool have_gone(void *arg)
{
	FIXTURE_DATA(timely) * self = arg;

	self->rc = self->rc ?: use_domain(self);
	return self->rc || counter("cqs") == 1;
}

TEST_F(timely, is_the_end_of_each_domain_beside_queues_that_wait_for_an_event)
{
	struct side *side;

	ASSERT_EQ(0, pair_build(&self->pair, PAIR_LOOPED, &self->options));
	side = self->pair.a;
	ASSERT_EQ(0, destroy(side->fd, side->channel));
	ASSERT_EQ(0, destroy(side->fd, side->mr));
	ASSERT_EQ(0, destroy(side->fd, side->pd));
	ASSERT_EQ(0, leave_ends(&self->options));
	EXPECT_TRUE(eventually(have_gone, self));
	EXPECT_EQ(0, self->rc);
}

TEST_HARNESS_MAIN
