// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting plain memory of many pages again and again: what the domain keeps of one work for
 * the next (kmod/verbs/mr.c) must hold no page, and must never be taken for what it is not.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>

#include "departure.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PAGE		4096UL
#define LONG		(64 * PAGE)	/* more pages than a work has elements */
#define ROOM		(16 * LONG)
#define HUGE		(2UL << 20)
#define CANARY		0x5a
#define NUM		12		/* ranges at a time */

FIXTURE(again)
{
	struct calm calm;
	struct pair pair;
	struct side *side;	/* its own peer; sends from its region */
	unsigned char *memory;	/* plain, each page on its own */
	unsigned char *others;	/* pages that nobody may write into */
};

static unsigned char *map_pages(size_t length)
{
	unsigned char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, length, MADV_NOHUGEPAGE);
	return memory;
}

static struct side_options again_options(void)
{
	struct side_options options = side_defaults();

	options.memory = LONG;
	options.params.rnr_retries = 7;
	options.params.min_rnr_timer = 1;
	return options;
}

FIXTURE_SETUP(again)
{
	struct side_options options = again_options();

	ASSERT_EQ(0, restore_device());
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_LOOPED, &options));
	self->side = self->pair.a;
	self->memory = map_pages(ROOM);
	self->others = map_pages(ROOM);
	ASSERT_TRUE(self->memory && self->others);
	memset(self->memory, 0, ROOM);
}

FIXTURE_TEARDOWN(again)
{
	munmap(self->memory, ROOM);
	munmap(self->others, ROOM);
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, restore_device());
}

static struct ibchan_submit_wr plain(const struct side *side, int opcode, __u64 wr_id,
				     const void *memory, __u32 length)
{
	struct ibchan_submit_wr wr = work_empty(side, opcode, wr_id);

	wr.num_sge = 1;
	wr.sge = (struct ibchan_submit_sge) { address(memory), length, IBCHAN_MR_PLAIN };
	return wr;
}

/* Fills a receive into plain memory from the region, and looks at what has come. */
static int receive(const struct side *side, unsigned char *to, __u32 length, unsigned int seed)
{
	int rc;

	pattern(side->memory, length, seed);
	rc = post_one(side, plain(side, IBCHAN_OP_RECV, 1, to, length));
	rc = rc ? rc : post_one(side, work(side, IBCHAN_OP_SEND, 2, 0, length));
	rc = rc ? rc : succeed(side, 1, NULL);
	rc = rc ? rc : succeed(side, 2, NULL);
	return rc ? rc : same_bytes(side->memory, to, length);
}

/* Sends plain memory into the region. */
static int transmit(const struct side *side, unsigned char *from, __u32 length, unsigned int seed)
{
	int rc;

	pattern(from, length, seed);
	memset(side->memory, 0, length);
	rc = post_one(side, work(side, IBCHAN_OP_RECV, 1, 0, length));
	rc = rc ? rc : post_one(side, plain(side, IBCHAN_OP_SEND, 2, from, length));
	rc = rc ? rc : succeed(side, 1, NULL);
	rc = rc ? rc : succeed(side, 2, NULL);
	return rc ? rc : same_bytes(from, side->memory, length);
}

/* Its pages go back to the kernel, and others may get them. */
static int replace(unsigned char *memory, size_t length, unsigned char *others)
{
	if (madvise(memory, length, MADV_DONTNEED) || madvise(others, ROOM, MADV_DONTNEED))
		return -errno;
	memset(others, CANARY, ROOM);
	return 0;
}

TEST_F(again, sends_and_receives_take_turns_in_the_same_memory)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, receive(self->side, self->memory, LONG, i));
		ASSERT_EQ(0, transmit(self->side, self->memory, LONG, 100 + i));
	}
}

TEST_F(again, pages_that_were_replaced_are_written_where_they_are_now)
{
	unsigned int i;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, receive(self->side, self->memory, LONG, i));
		ASSERT_EQ(0, replace(self->memory, LONG, self->others));
		ASSERT_EQ(0, receive(self->side, self->memory, LONG, 100 + i));
		ASSERT_EQ(0, all_bytes(self->others, ROOM, CANARY));
	}
}

static const struct range {
	unsigned int skip;
	unsigned int cut;
} ranges[] = {
	{ 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 1 }, { 4095, 4095 }, { 2, 1 }, { 0, 4095 }, { 0, 0 },
};

/* Into part of what lies behind the first page; nothing around it changes. */
static int receive_inside(const struct side *side, unsigned char *memory,
			  const struct range *range)
{
	unsigned char *to = memory + PAGE + range->skip;
	size_t length = LONG - range->skip - range->cut;
	int rc;

	memset(memory, CANARY, LONG + 2 * PAGE);
	rc = receive(side, to, length, range->skip + range->cut);
	rc = rc ? rc : all_bytes(memory, to - memory, CANARY);
	return rc ? rc : all_bytes(to + length, PAGE + range->cut, CANARY);
}

TEST_F(again, ranges_that_begin_or_end_elsewhere_in_the_same_pages_keep_their_bounds)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		EXPECT_EQ(0, receive_inside(self->side, self->memory, &ranges[i]))
			TH_LOG("%u and %u", ranges[i].skip, ranges[i].cut);
}

TEST_F(again, ranges_of_pages_that_lie_side_by_side_keep_their_bounds)
{
	unsigned char *room = map_pages(2 * HUGE);
	unsigned char *huge = room + (-address(room) & (HUGE - 1));
	unsigned int i;

	ASSERT_TRUE(room);
	/* Where there are no huge pages, this is what is tested above. */
	madvise(huge, HUGE, MADV_HUGEPAGE);
	for (i = 0; i < ARRAY_SIZE(ranges); i++)
		EXPECT_EQ(0, receive_inside(self->side, huge + LONG, &ranges[i]))
			TH_LOG("%u and %u", ranges[i].skip, ranges[i].cut);
	munmap(room, 2 * HUGE);
}

static bool nothing_is_pinned_since(void *arg)
{
	const struct calm *calm = arg;

	return pins() == calm->pins && charged() == calm->charged;
}

/* The @i-th of a round: another one each round, and none is as long as another. */
static struct ibchan_submit_wr receive_of(const struct side *side, unsigned char *memory,
					  unsigned int round, unsigned int i)
{
	unsigned int n = (5 * i + round) % NUM;

	return plain(side, IBCHAN_OP_RECV, i, memory + n * LONG, (33 + 2 * n) * PAGE);
}

static int fill_receive(const struct side *side, const struct ibchan_submit_wr *wr,
			unsigned int seed)
{
	int rc;

	pattern(side->memory, wr->sge.length, seed);
	rc = post_one(side, work(side, IBCHAN_OP_SEND, 100, 0, wr->sge.length));
	rc = rc ? rc : succeed(side, wr->wr_id, NULL);
	rc = rc ? rc : succeed(side, 100, NULL);
	return rc ? rc : same_bytes(side->memory, (void *)(uintptr_t)wr->sge.offset,
				    wr->sge.length);
}

TEST_F(again, more_ranges_than_a_domain_keeps_come_back_in_any_order)
{
	struct calm calm = { pins(), charged() };
	struct ibchan_submit_wr wr;
	unsigned int round, i;

	for (round = 0; round < 3; round++) {
		long pinned = 0;

		for (i = 0; i < NUM; i++) {
			wr = receive_of(self->side, self->memory, round, i);
			ASSERT_EQ(0, post_one(self->side, wr));
			pinned += wr.sge.length / PAGE;
		}
		EXPECT_EQ(calm.pins + pinned, pins());
		for (i = 0; i < NUM; i++) {
			wr = receive_of(self->side, self->memory, round, i);
			ASSERT_EQ(0, fill_receive(self->side, &wr, 16 * round + i));
		}
		ASSERT_TRUE(eventually(nothing_is_pinned_since, &calm));
	}
}

TEST_F(again, pages_of_a_broken_channel_can_be_posted_on_the_next_one)
{
	struct side_options options = again_options();
	struct ibchan_cqe cqe;
	struct side next;

	ASSERT_EQ(0, receive(self->side, self->memory, LONG, 1));
	ASSERT_EQ(0, post_one(self->side, plain(self->side, IBCHAN_OP_RECV, 3, self->memory,
						LONG)));
	ASSERT_EQ(0, side_share(&next, self->side, &options));
	ASSERT_EQ(0, side_handshake(&next, &next.endpoint));
	ASSERT_EQ(0, channel_break(self->side->fd, self->side->channel));
	ASSERT_EQ(0, ring_complete(self->side->ring, 3, &cqe));
	EXPECT_EQ(0, receive(&next, self->memory, LONG, 2));
	EXPECT_EQ(0, destroy(self->side->fd, self->side->channel));
	EXPECT_EQ(0, receive(&next, self->memory, LONG, 3));
	side_close(&next);
}

TEST_F(again, a_domain_that_has_kept_something_can_go)
{
	ASSERT_EQ(0, receive(self->side, self->memory, LONG, 1));
	ASSERT_EQ(0, destroy(self->side->fd, self->side->mr));
	ASSERT_EQ(0, destroy(self->side->fd, self->side->channel));
	EXPECT_EQ(0, destroy(self->side->fd, self->side->pd));
}

TEST_F(again, a_device_takes_along_what_its_domains_have_kept)
{
	struct ibchan_submit_wr wr = plain(self->side, IBCHAN_OP_RECV, 5, self->memory, LONG);

	ASSERT_EQ(0, receive(self->side, self->memory, LONG, 1));
	ASSERT_EQ(0, post_one(self->side, wr));
	ASSERT_EQ(0, delete_device());
	EXPECT_EQ(-ENODEV, post_one(self->side, wr));
}

struct racer {
	const struct side *side;
	unsigned char *memory;
	unsigned int base;
	int rc;
};

static void *race(void *arg)
{
	struct racer *racer = arg;
	unsigned int i;

	for (i = 0; i < 50 && !racer->rc; i++) {
		struct ibchan_submit_wr wr = plain(racer->side, IBCHAN_OP_WRITE, racer->base + i,
						   racer->memory, 40 * PAGE);

		work_at(&wr, racer->side, 0);
		do
			racer->rc = post_one(racer->side, wr);
		while (racer->rc == -EAGAIN || racer->rc == -ENOMEM);
	}
	return NULL;
}

TEST_F(again, several_threads_post_in_one_domain)
{
	struct racer racers[3] = {};
	pthread_t threads[3];
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		racers[i] = (struct racer) { self->side, self->memory + i * LONG, 1000 * i, 0 };
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, race, &racers[i]));
	}
	for (i = 0; i < ARRAY_SIZE(racers); i++)
		for (n = 0; n < 50; n++)
			ASSERT_EQ(0, succeed(self->side, racers[i].base + n, NULL));
	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, racers[i].rc);
	}
}

TEST_HARNESS_MAIN
