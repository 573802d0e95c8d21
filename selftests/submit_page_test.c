// SPDX-License-Identifier: GPL-2.0-only
/*
 * The submit page: what stands in it is done as the ioctl does it, or left to that, whatever
 * a program writes there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/ibchan_submit_page.h>

#include "dice.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define DEPTH	4
#define HALF	32768

FIXTURE(submit_page)
{
	struct calm calm;
	struct pair pair;	/* of one file */
	struct side *a;
	struct side *b;
	size_t size;
	struct ibchan_submit_page *page;
};

static void *map_page(int fd, size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IBCHAN_SUBMIT_PAGE);
}

FIXTURE_SETUP(submit_page)
{
	struct side_options options = side_defaults();

	options.params.max_send_wr = DEPTH;
	options.params.max_recv_wr = DEPTH;
	options.params.max_send_sge = 2;
	options.params.rnr_retries = 7;
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_ONE_CQ, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
	self->size = getpagesize();
	self->page = map_page(self->a->fd, self->size);
	ASSERT_NE(MAP_FAILED, self->page);
}

/* The mapping holds the file. */
FIXTURE_TEARDOWN(submit_page)
{
	munmap(self->page, self->size);
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static void load(struct ibchan_submit_page *page, const struct ibchan_submit_wr *wrs,
		 unsigned int n)
{
	page->cmd = submission(page->wrs, n);
	page->cmd.size = sizeof(page->cmd);
	memcpy(page->wrs, wrs, n * sizeof(*wrs));
}

static int sync_file(int fd)
{
	return fdatasync(fd) ? -errno : 0;
}

static struct ibchan_submit_wr receive(const struct side *side, __u64 wr_id)
{
	return work(side, IBCHAN_OP_RECV, wr_id, HALF + 64 * wr_id, 64);
}

static struct ibchan_submit_wr message(const struct side *side, __u64 wr_id)
{
	return work(side, IBCHAN_OP_SEND, wr_id, 0, 64);
}

static unsigned int in_flight(const struct side *side)
{
	struct ibchan_cmd_channel_query query;

	if (side_query(side, &query))
		return -1;
	return query.out_sends_in_flight + query.out_recvs_in_flight;
}

TEST_F(submit_page, what_stands_in_it_is_posted_by_fdatasync_by_fsync_and_by_msync)
{
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), message(self->a, 2) };

	pattern(self->a->memory, 64, 7);
	load(self->page, wrs, 2);
	ASSERT_EQ(0, sync_file(self->a->fd));
	EXPECT_EQ(2, self->page->cmd.entry_num);
	EXPECT_EQ(IBCHAN_REASON_NONE, self->page->cmd.reason.code);
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
	EXPECT_EQ(0, same_bytes(self->a->memory, self->b->memory + HALF + 64, 64));

	pattern(self->a->memory, 64, 8);
	ASSERT_EQ(0, fsync(self->a->fd));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
	EXPECT_EQ(0, same_bytes(self->a->memory, self->b->memory + HALF + 64, 64));

	pattern(self->a->memory, 64, 9);
	ASSERT_EQ(0, msync(self->page, self->size, MS_SYNC));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
	EXPECT_EQ(0, same_bytes(self->a->memory, self->b->memory + HALF + 64, 64));
	EXPECT_EQ(0, ring_surplus(self->a->ring));
}

TEST_F(submit_page, one_request_is_posted_as_well_as_several)
{
	struct ibchan_submit_wr wr = receive(self->b, 1);

	load(self->page, &wr, 1);
	ASSERT_EQ(0, sync_file(self->a->fd));
	EXPECT_EQ(1, in_flight(self->b));
	wr = message(self->a, 2);
	load(self->page, &wr, 1);
	ASSERT_EQ(0, sync_file(self->a->fd));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
}

TEST_F(submit_page, a_wait_in_it_lasts_until_the_completions_are_there)
{
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), message(self->a, 2) };

	load(self->page, wrs, 2);
	self->page->cmd.cq = self->a->ring->cq;
	self->page->cmd.min_complete = 2;
	self->page->cmd.timeout_ns = IBCHAN_TIMEOUT_NEVER;
	self->page->cmd.out_ready = 77;
	ASSERT_EQ(0, sync_file(self->a->fd));
	EXPECT_EQ(2, self->page->cmd.entry_num);
	EXPECT_EQ(2, self->page->cmd.out_ready);
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
}

TEST_F(submit_page, a_wait_in_it_that_ends_in_time_leaves_what_was_posted)
{
	struct ibchan_submit_wr wr = receive(self->b, 1);

	load(self->page, &wr, 1);
	self->page->cmd.cq = self->a->ring->cq;
	self->page->cmd.min_complete = 1;
	self->page->cmd.timeout_ns = 1000000;
	self->page->cmd.reason.code = IBCHAN_REASON_BUSY;
	EXPECT_EQ(-ETIMEDOUT, sync_file(self->a->fd));
	EXPECT_EQ(1, self->page->cmd.entry_num);
	EXPECT_EQ(0, self->page->cmd.out_ready);
	EXPECT_EQ(IBCHAN_REASON_NONE, self->page->cmd.reason.code);
	EXPECT_EQ(1, in_flight(self->b));
	EXPECT_EQ(0, post_one(self->a, message(self->a, 2)));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
}

TEST_F(submit_page, a_refusal_says_which_request_and_why_and_the_ones_before_it_are_posted)
{
	struct ibchan_submit_wr wrs[3] = {
		receive(self->b, 1), receive(self->b, 2), receive(self->b, 3),
	};
	const struct ibchan_cmd_submit *cmd = &self->page->cmd;

	wrs[1].sge.offset = self->b->length - 1;
	load(self->page, wrs, 3);
	EXPECT_EQ(-EINVAL, sync_file(self->a->fd));
	EXPECT_EQ(1, cmd->entry_num);
	EXPECT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, cmd->reason.code);
	EXPECT_EQ(1, cmd->reason.wr);
	EXPECT_EQ(0, cmd->reason.element);
	EXPECT_EQ(self->b->length - 1, cmd->reason.value[0]);
	EXPECT_EQ(64, cmd->reason.value[1]);
	EXPECT_EQ(self->b->length, cmd->reason.value[2]);
	EXPECT_EQ(1, in_flight(self->b));

	/* Nobody waits behind one. */
	load(self->page, &wrs[1], 1);
	self->page->cmd.cq = self->a->ring->cq;
	self->page->cmd.min_complete = 1;
	self->page->cmd.timeout_ns = IBCHAN_TIMEOUT_NEVER;
	EXPECT_EQ(-EINVAL, sync_file(self->a->fd));
	EXPECT_EQ(0, cmd->entry_num);
	EXPECT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, cmd->reason.code);
	EXPECT_EQ(0, post_one(self->a, message(self->a, 2)));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
}

/* Whoever waits: the second one's. */
TEST_F(submit_page, of_two_channels_the_first_has_its_request_when_the_second_is_refused)
{
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), message(self->a, 2) };
	const struct ibchan_cmd_submit *cmd = &self->page->cmd;
	unsigned int waits;

	wrs[1].sge.offset = self->a->length - 1;
	for (waits = 0; waits < 2; waits++) {
		load(self->page, wrs, 2);
		self->page->cmd.cq = waits ? self->a->ring->cq : 0;
		self->page->cmd.min_complete = waits;
		EXPECT_EQ(-EINVAL, sync_file(self->a->fd));
		EXPECT_EQ(1, cmd->entry_num);
		EXPECT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, cmd->reason.code);
		EXPECT_EQ(1, cmd->reason.wr);
		EXPECT_EQ(1, in_flight(self->b));
		EXPECT_EQ(0, in_flight(self->a));
		EXPECT_EQ(0, post_one(self->a, message(self->a, 2)));
		EXPECT_EQ(0, succeed(self->b, 1, NULL));
		EXPECT_EQ(0, succeed(self->a, 2, NULL));
	}
	/* And the other way round nothing has happened. */
	wrs[1] = wrs[0];
	wrs[0] = message(self->a, 2);
	wrs[0].sge.offset = self->a->length - 1;
	load(self->page, wrs, 2);
	EXPECT_EQ(-EINVAL, sync_file(self->a->fd));
	EXPECT_EQ(0, cmd->entry_num);
	EXPECT_EQ(0, cmd->reason.wr);
	EXPECT_EQ(0, in_flight(self->b));
}

/* A channel of @host's file, which completes on a queue of its own. */
static int open_apart(struct side *side, const struct side *host)
{
	struct side_options options = side_defaults();
	int rc;

	memset(side, 0, sizeof(*side));
	side->fd = dup(host->fd);
	side->device = host->device;
	side->pd = host->pd;
	rc = side_cq(side, &options);
	rc = rc ? rc : side_memory(side, &options);
	return rc ? rc : side_channel(side, &options);
}

static int connect_sides(struct side *a, struct side *b)
{
	int rc = side_handshake(a, &b->endpoint);

	return rc ? rc : side_handshake(b, &a->endpoint);
}

/* Nobody asks for these completions: they have to come by themselves. */
static bool becomes_readable(const struct side *side)
{
	struct pollfd poll_fd = { .fd = side->ring->fd, .events = POLLIN };

	return poll(&poll_fd, 1, patience_ms()) == 1;
}

TEST_F(submit_page, of_two_channels_on_two_queues_each_makes_its_event)
{
	struct side_options options = side_defaults();
	struct side near[2], far[2];
	struct ibchan_submit_wr wrs[2];
	unsigned int i;

	ASSERT_EQ(0, open_apart(&near[0], self->a));
	ASSERT_EQ(0, open_apart(&near[1], self->a));
	ASSERT_EQ(0, side_open(&far[0], &options));
	ASSERT_EQ(0, side_share(&far[1], &far[0], &options));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, connect_sides(&near[i], &far[i]));
		wrs[i] = work(&near[i], IBCHAN_OP_RECV, i, 0, 64);
	}
	load(self->page, wrs, 2);
	ASSERT_EQ(0, sync_file(self->a->fd));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, post_one(&far[i], work(&far[i], IBCHAN_OP_SEND, i, 0, 64)));
		ASSERT_EQ(0, succeed(&far[i], i, NULL));
	}
	for (i = 0; i < 2; i++) {
		EXPECT_TRUE(becomes_readable(&near[i]));
		EXPECT_EQ(0, succeed(&near[i], i, NULL));
	}
	for (i = 0; i < 2; i++) {
		side_close(&near[1 - i]);
		side_close(&far[1 - i]);
	}
}

/* Puts something there that is the ioctl's. */
typedef void (*change)(struct ibchan_submit_page *page);

static void ask_for_no_entry(struct ibchan_submit_page *page)
{
	page->cmd.entry_num = 0;
}

static void ask_for_too_many(struct ibchan_submit_page *page)
{
	page->cmd.entry_num = IBCHAN_SUBMIT_PAGE_WRS + 1;
}

static void ask_for_all_there_are(struct ibchan_submit_page *page)
{
	page->cmd.entry_num = 0xffffffff;
}

static void tell_no_size(struct ibchan_submit_page *page)
{
	page->cmd.size = 0;
}

static void tell_a_longer_entry(struct ibchan_submit_page *page)
{
	page->cmd.entry_len = sizeof(page->wrs[0]) + 8;
}

static void set_a_flag(struct ibchan_submit_page *page)
{
	page->cmd.flags = 0x80000000;
}

static void wait_on_nothing_known(struct ibchan_submit_page *page)
{
	page->cmd.cq = 0x7fffffff;
}

static void take_two_elements(struct ibchan_submit_page *page)
{
	page->wrs[1].num_sge = 2;
}

static void take_plain_memory(struct ibchan_submit_page *page)
{
	page->wrs[1].sge.mr = IBCHAN_MR_PLAIN;
}

static void take_an_unknown_region(struct ibchan_submit_page *page)
{
	page->wrs[1].sge.mr = 0x7fffffff;
}

static void take_an_unknown_channel(struct ibchan_submit_page *page)
{
	page->wrs[1].channel = 0x7fffffff;
}

static void bring_an_immediate(struct ibchan_submit_page *page)
{
	page->wrs[1].flags = IBCHAN_WR_IMM;
}

static void ask_for_no_signal(struct ibchan_submit_page *page)
{
	page->wrs[1].flags = IBCHAN_WR_UNSIGNALED;
}

TEST_F(submit_page, what_only_the_ioctl_does_is_left_to_it_and_nothing_happens)
{
	static const change changes[] = {
		ask_for_no_entry, ask_for_too_many, ask_for_all_there_are, tell_no_size,
		tell_a_longer_entry, set_a_flag, wait_on_nothing_known, take_two_elements,
		take_plain_memory, take_an_unknown_region, take_an_unknown_channel,
		bring_an_immediate, ask_for_no_signal,
	};
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), message(self->a, 2) };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		struct ibchan_cmd_submit before;

		load(self->page, wrs, 2);
		changes[i](self->page);
		before = self->page->cmd;
		EXPECT_EQ(-ENOTTY, sync_file(self->a->fd))
			TH_LOG("change %u", i);
		EXPECT_EQ(0, memcmp(&before, &self->page->cmd, sizeof(before)));
		EXPECT_EQ(0, in_flight(self->a));
		EXPECT_EQ(0, in_flight(self->b));
	}
	EXPECT_EQ(0, exchange(self->a, self->b));
}

TEST_F(submit_page, what_was_left_to_the_ioctl_can_be_given_to_it_as_it_stands)
{
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), message(self->a, 2) };
	struct ibchan_submit_sge sges[2] = {
		{ .offset = 0, .length = 32, .mr = self->a->mr },
		{ .offset = 32, .length = 32, .mr = self->a->mr },
	};

	work_elements(&wrs[1], sges, 2);
	pattern(self->a->memory, 64, 9);
	load(self->page, wrs, 2);
	EXPECT_EQ(-ENOTTY, sync_file(self->a->fd));
	EXPECT_EQ(0, cmd_submit(self->a->fd, &self->page->cmd));
	EXPECT_EQ(2, self->page->cmd.entry_num);
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
	EXPECT_EQ(0, same_bytes(self->a->memory, self->b->memory + HALF + 64, 64));
}

TEST_F(submit_page, a_file_whose_page_was_never_mapped_has_nothing_to_sync)
{
	int fd = node_open();

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, sync_file(fd));
	close(fd);
}

TEST_F(submit_page, it_can_be_mapped_only_as_it_is)
{
	int fd = self->a->fd, prot = PROT_READ | PROT_WRITE;
	size_t size = self->size;
	void *map;

	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, prot, MAP_SHARED, fd, 0));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, prot, MAP_SHARED, fd, IBCHAN_SUBMIT_PAGE + size));
	EXPECT_EQ(MAP_FAILED, map_page(fd, 2 * size));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, prot, MAP_PRIVATE, fd, IBCHAN_SUBMIT_PAGE));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, prot | PROT_EXEC, MAP_SHARED, fd,
				   IBCHAN_SUBMIT_PAGE));
	map = map_page(fd, size);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(-1, mprotect(map, size, prot | PROT_EXEC));
	EXPECT_EQ(0, munmap(map, size));
}

TEST_F(submit_page, however_often_it_is_mapped_it_is_the_same)
{
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), message(self->a, 2) };
	struct ibchan_submit_page *again = map_page(self->a->fd, self->size);

	ASSERT_NE(MAP_FAILED, again);
	load(again, wrs, 2);
	EXPECT_EQ(0, memcmp(again, self->page, sizeof(*again)));
	munmap(again, self->size);
	EXPECT_EQ(0, sync_file(self->a->fd));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
}

static int child_is_refused(void *arg)
{
	const struct side *side = arg;

	if (sync_file(side->fd) != -EPERM)
		return -EBADMSG;
	if (map_page(side->fd, getpagesize()) != MAP_FAILED || errno != EPERM)
		return -EBADMSG;
	return 0;
}

static int child_has_no_mapping(void *arg)
{
	unsigned char seen;

	return mincore(arg, 1, &seen) && errno == ENOMEM ? 0 : -EBADMSG;
}

TEST_F(submit_page, a_child_has_neither_the_mapping_nor_the_right)
{
	struct ibchan_submit_wr wrs[2] = { receive(self->b, 1), message(self->a, 2) };

	load(self->page, wrs, 2);
	EXPECT_EQ(0, in_child(child_is_refused, self->a));
	EXPECT_EQ(0, in_child(child_has_no_mapping, self->page));
	EXPECT_EQ(0, in_flight(self->b));
	EXPECT_EQ(0, sync_file(self->a->fd));
	EXPECT_EQ(0, succeed(self->b, 1, NULL));
	EXPECT_EQ(0, succeed(self->a, 2, NULL));
}

TEST_F(submit_page, who_damaged_a_ring_is_refused_here_too)
{
	struct ibchan_submit_wr wr = receive(self->b, 1);

	*self->a->ring->head += 1000;
	load(self->page, &wr, 1);
	self->page->cmd.cq = self->a->ring->cq;
	EXPECT_EQ(-EPROTO, sync_file(self->a->fd));
	load(self->page, &wr, 1);
	self->page->cmd.reason.code = IBCHAN_REASON_BUSY;
	EXPECT_EQ(-EPROTO, sync_file(self->a->fd));
	EXPECT_EQ(0, self->page->cmd.entry_num);
	EXPECT_EQ(IBCHAN_REASON_NONE, self->page->cmd.reason.code);
}

/* --- a page that changes while it is read --- */

struct scribbler {
	pthread_t thread;
	struct ibchan_submit_page *page;
	struct ibchan_cmd_submit cmd;
	struct ibchan_submit_wr wrs[2];
	bool stop;
};

/* Either the command as it was meant, or with a word of it anything at all. */
static void *scribble(void *arg)
{
	struct scribbler *scribbler = arg;
	struct dice dice = { .state = 7 };

	while (!__atomic_load_n(&scribbler->stop, __ATOMIC_RELAXED)) {
		__u32 *words = (__u32 *)scribbler->page;
		unsigned int n = (sizeof(scribbler->cmd) + sizeof(scribbler->wrs)) /
				 sizeof(*words);
		unsigned int word = roll(&dice) % n;

		/* The time-out stays, so that each wait ends soon. */
		if (word * sizeof(*words) / 8 != offsetof(struct ibchan_cmd_submit, timeout_ns) / 8)
			__atomic_store_n(&words[word], roll(&dice), __ATOMIC_RELAXED);
		memcpy(scribbler->page->wrs, scribbler->wrs, sizeof(scribbler->wrs));
		scribbler->page->cmd = scribbler->cmd;
		scribbler->page->cmd.entry_num = 1 + roll(&dice) % 3;
		if (roll(&dice) % 2)
			scribbler->page->cmd.cq = 0;
	}
	return NULL;
}

static void empty(const struct ring *ring)
{
	__atomic_store_n(ring->head, __atomic_load_n(ring->tail, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

TEST_F(submit_page, what_another_thread_writes_meanwhile_does_no_harm)
{
	struct scribbler scribbler = {
		.page = self->page,
		.wrs = { receive(self->b, 1), message(self->a, 2) },
	};
	unsigned int i, rounds = slow() ? 2000 : 20000, posted = 0;
	struct side_options options = side_defaults();
	struct pair pair;

	load(self->page, scribbler.wrs, 2);
	self->page->cmd.cq = self->a->ring->cq;
	self->page->cmd.timeout_ns = 1000;
	scribbler.cmd = self->page->cmd;
	ASSERT_EQ(0, pthread_create(&scribbler.thread, NULL, scribble, &scribbler));
	for (i = 0; i < rounds; i++) {
		int rc = sync_file(self->a->fd);

		posted += !rc;
		EXPECT_TRUE(rc == -ENOTTY || is_documented(rc))
			TH_LOG("%d", rc);
		/* A receive came alone, and its place is taken until there is a message for it. */
		if (rc == -EBUSY)
			post_one(self->a, message(self->a, 3));
		empty(self->a->ring);
	}
	__atomic_store_n(&scribbler.stop, true, __ATOMIC_RELAXED);
	pthread_join(scribbler.thread, NULL);
	EXPECT_LT(0, posted);
	/* The module still serves whoever is honest. */
	ASSERT_EQ(0, pair_open(&pair, PAIR_ONE_CQ, &options));
	EXPECT_EQ(0, exchange(pair.a, pair.b));
	pair_close(&pair);
}

TEST_HARNESS_MAIN
