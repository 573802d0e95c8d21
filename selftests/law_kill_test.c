// SPDX-License-Identifier: GPL-2.0-only
/*
 * Law 1: SIGKILL at any moment, under load. The moments come from a seed that is printed when
 * a kill fails; IBCHAN_SEED takes another one. IBCHAN_KILLS sets the number of kills.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "thread.h"
#include "work.h"
#include "world.h"

#define KILLS		200
#define KILLS_SLOW	40
/* Rounds from one look at the counters to the next. */
#define BATCH		20
/* Children that are killed in one round. */
#define VICTIMS		5
/* Microseconds of load before the kill, at most. */
#define LOAD_US		15000
#define DEPTH		8
#define MESSAGE		6000
#define PAGES		8

/* Sends and writes come from what lies before these. */
#define RECEIVE_INTO	(DEPTH * MESSAGE)
#define READ_INTO	(2 * DEPTH * MESSAGE)
/* More pages than a request has elements. */
#define LONG_FROM	(3 * DEPTH * MESSAGE)
#define LONG		200000
#define MEMORY		(LONG_FROM + LONG)

struct dice {
	__u64 state;
};

static __u32 roll(struct dice *dice)
{
	dice->state = dice->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return dice->state >> 32;
}

static __u64 number_from(const char *name, __u64 otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* --- what the victims do; none of it ever returns --- */

static void use_up(struct side *side)
{
	ring_surplus(side->ring);
	side->ring->stashed = 0;
}

/* By its address instead of its region. */
static struct ibchan_submit_wr plain(const struct side *side, struct ibchan_submit_wr wr)
{
	wr.sge.offset += address(side->memory);
	wr.sge.mr = IBCHAN_MR_PLAIN;
	return wr;
}

static void post_long_write(const struct side *from, const struct side *to)
{
	struct ibchan_submit_wr wr = work(from, IBCHAN_OP_WRITE, 0, LONG_FROM, LONG);

	work_at(&wr, to, LONG_FROM);
	post_one(from, plain(from, wr));
}

/* All operations, both ways, as many in flight as the queues take; half of plain memory. */
static void *run_traffic(void *arg)
{
	struct pair *pair = arg;
	unsigned int i;

	for (i = 0;; i++) {
		struct side *from = i % 2 ? pair->a : pair->b;
		struct side *to = i % 2 ? pair->b : pair->a;
		__u64 place = MESSAGE * (__u64)(i / 2 % DEPTH);
		struct ibchan_submit_wr recv, wrs[3];
		unsigned int n;

		wrs[0] = work(from, IBCHAN_OP_SEND, i, place, MESSAGE);
		wrs[1] = work(from, IBCHAN_OP_WRITE, i, place, MESSAGE);
		wrs[2] = work(from, IBCHAN_OP_READ, i, READ_INTO + place / 2, MESSAGE / 2);
		work_at(&wrs[1], to, RECEIVE_INTO);
		work_at(&wrs[2], to, place);
		recv = work(to, IBCHAN_OP_RECV, i, RECEIVE_INTO + place, MESSAGE);
		for (n = 0; n < ARRAY_SIZE(wrs) && i % 4 < 2; n++)
			wrs[n] = plain(from, wrs[n]);
		post_one(to, i % 4 < 2 ? plain(to, recv) : recv);
		if (i % 8 == 3)
			post_long_write(from, to);
		post(from, wrs, ARRAY_SIZE(wrs));
		use_up(from);
		use_up(to);
	}
	return NULL;
}

/* Of memory that is unmapped while it is registered. */
static void *run_registrations(void *arg)
{
	struct pair *pair = arg;
	size_t length = PAGES * getpagesize();

	for (;;) {
		struct ibchan_cmd_mr_reg cmd = {
			.length = length,
			.pd = pair->a->pd,
			.access = IBCHAN_ACCESS_SHARED,
		};
		void *map = mmap(NULL, length, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		int rc;

		cmd.addr = address(map);
		rc = cmd_mr_reg(pair->a->fd, &cmd);
		munmap(map, length);
		if (!rc)
			destroy(pair->a->fd, cmd.out_mr);
	}
	return NULL;
}

/* Whole connections, that are closed with works in flight. */
static void *run_connections(void *arg)
{
	struct side_options options = side_defaults();
	static struct side side;

	(void)arg;
	for (;;) {
		if (side_open(&side, &options))
			continue;
		side_handshake(&side, &side.endpoint);
		post_receives(&side, 0, 8, 256);
		side_close(&side);
	}
	return NULL;
}

static int work_until_killed(int ready)
{
	void *(*const threads[])(void *arg) = { run_registrations, run_connections };
	struct side_options options = side_defaults();
	static struct pair pair;
	pthread_t thread;
	unsigned int i;
	int rc;

	options.memory = MEMORY;
	options.params.max_send_wr = 3 * DEPTH;
	options.params.max_recv_wr = DEPTH;
	options.params.rnr_retries = 7;
	rc = pair_open(&pair, PAIR_TWO_DEVICES, &options);
	for (i = 0; i < ARRAY_SIZE(threads) && !rc; i++)
		rc = -pthread_create(&thread, NULL, threads[i], &pair);
	if (!rc && write(ready, "", 1) != 1)
		rc = -EPIPE;
	if (!rc)
		run_traffic(&pair);
	return rc;
}

/* --- the kills --- */

struct victim {
	pid_t pid;
	int ready;
};

static int victim_start(struct victim *victim)
{
	int ready[2];

	if (pipe2(ready, O_CLOEXEC))
		return -errno;
	victim->pid = fork();
	if (!victim->pid)
		_exit(-work_until_killed(ready[1]));
	close(ready[1]);
	victim->ready = ready[0];
	return victim->pid < 0 ? -errno : 0;
}

/* Most are killed under load; a few before they have got so far. */
static void victim_kill(struct victim *victim, struct dice *dice)
{
	unsigned int us = roll(dice) % LOAD_US;
	char byte;

	/* An end without a byte: it has failed, and says why. */
	if (!(roll(dice) % 8) || read(victim->ready, &byte, 1) == 1) {
		moment(us);
		kill(victim->pid, SIGKILL);
	}
	close(victim->ready);
}

static int victim_bury(const struct victim *victim)
{
	int rc = child_result(victim->pid);

	return rc == -EINTR ? 0 : rc ? rc : -EBADMSG;
}

static int kill_some(struct dice *dice)
{
	struct victim victims[VICTIMS];
	unsigned int i, n;
	int rc = 0;

	for (n = 0; n < VICTIMS && !rc; n++)
		rc = victim_start(&victims[n]);
	if (rc)
		n--;
	/* Those that still live are the load; nobody waits for the dead meanwhile. */
	for (i = 0; i < n; i++)
		victim_kill(&victims[i], dice);
	for (i = 0; i < n; i++) {
		int killed = victim_bury(&victims[i]);

		rc = rc ? rc : killed;
	}
	return rc;
}

/* --- what must be as before --- */

static int connects_and_talks(void)
{
	struct side_options options = side_defaults();
	static struct pair pair;
	int rc = pair_open(&pair, PAIR_TWO_DEVICES, &options);

	if (!rc)
		rc = exchange(pair.a, pair.b);
	pair_close(&pair);
	return rc;
}

static int register_pages(const struct side *side, const char *pages, unsigned int n)
{
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(pages),
		.length = n * getpagesize(),
		.pd = side->pd,
		.access = IBCHAN_ACCESS_LOCAL,
	};

	return cmd_mr_reg(side->fd, &cmd);
}

/* As nobody, whom the limit binds: all that it allows can be had, and not a page more. */
static int limit_is_exact(void *arg)
{
	struct rlimit limit = { PAGES * getpagesize(), PAGES * getpagesize() };
	struct side_options options = side_defaults();
	static struct side side;
	char *pages;
	int rc;

	(void)arg;
	rc = drop_privileges();
	if (rc || setrlimit(RLIMIT_MEMLOCK, &limit))
		return rc ? rc : -errno;
	side.fd = node_open();
	rc = side.fd < 0 ? side.fd : device_open(side.fd, options.device, &side.device);
	if (!rc)
		rc = pd_alloc(side.fd, side.device, &side.pd);
	pages = mmap(NULL, (PAGES + 1) * getpagesize(), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!rc && register_pages(&side, pages, PAGES + 1) != -ENOMEM)
		rc = -EOVERFLOW;
	if (!rc)
		rc = register_pages(&side, pages, PAGES);
	if (!rc && register_pages(&side, pages + PAGES * getpagesize(), 1) != -ENOMEM)
		rc = -EOVERFLOW;
	return rc;
}

FIXTURE(killed)
{
	struct calm calm;
	mode_t mode;
};

FIXTURE_SETUP(killed)
{
	struct stat st;

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, stat(NODE, &st));
	self->mode = st.st_mode & 0777;
	ASSERT_EQ(0, chmod(NODE, 0666));
}

FIXTURE_TEARDOWN(killed)
{
	EXPECT_EQ(0, chmod(NODE, self->mode));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(killed, at_random_moments_under_load_leaves_nothing)
{
	__u64 kills = number_from("IBCHAN_KILLS", slow() ? KILLS_SLOW : KILLS);
	__u64 seed = number_from("IBCHAN_SEED", 20261121);
	struct dice dice = { seed };
	long posted = counter("works_posted");
	unsigned int i;

	for (i = VICTIMS; i <= kills; i += VICTIMS) {
		ASSERT_EQ(0, kill_some(&dice))
			TH_LOG("after %u kills with seed %llu", i, seed);
		if (i % BATCH)
			continue;
		ASSERT_EQ(0, calm_end(&self->calm))
			TH_LOG("after %u kills with seed %llu", i, seed);
		ASSERT_EQ(0, connects_and_talks());
		ASSERT_EQ(0, in_child(limit_is_exact, NULL));
	}
	/* There was a load. */
	EXPECT_LT(posted + (long)kills, counter("works_posted"));
}

TEST_HARNESS_MAIN
