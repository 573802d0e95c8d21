// SPDX-License-Identifier: GPL-2.0-only
/*
 * Short messages: what arrives is what the region holds, whatever has become of the addresses
 * that it was registered by.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "work.h"
#include "world.h"

/* Bytes of a short message. */
#define SHORT		64
#define HALF		32768
#define OTHER_BYTE	0x11

struct scene {
	struct pair pair;
	struct side *a;
	struct side *b;
	struct side from;	/* @a with a region of one page that a test may take away */
	unsigned char *page;	/* that */
	unsigned char wanted[4096];	/* what it holds */
	size_t size;
};

/* @addr becomes what @from names. */
static int name_region(struct side *from, const struct side *side, unsigned char *addr,
		       size_t length)
{
	struct ibchan_cmd_mr_reg cmd = {
		.addr = address(addr),
		.length = length,
		.pd = side->pd,
		.access = IBCHAN_ACCESS_LOCAL_WRITE,
	};
	int rc = cmd_mr_reg(side->fd, &cmd);

	*from = *side;
	from->mr = cmd.out_mr;
	return rc;
}

static void *map_pages(size_t length)
{
	return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* With as many elements as a request may have by default, or with @elements. */
static int scene_open(struct scene *scene, __u32 elements)
{
	struct side_options options = side_defaults();
	int rc;

	options.params.rnr_retries = 7;
	options.params.max_send_wr = 64;
	if (elements)
		options.params.max_send_sge = elements;
	scene->size = sizeof(scene->wanted);
	rc = pair_open(&scene->pair, PAIR_SAME_DEVICE, &options);
	scene->a = scene->pair.a;
	scene->b = scene->pair.b;
	return rc;
}

/* @page is its region from now on, and has a pattern. */
static int scene_use(struct scene *scene, unsigned char *page)
{
	if (page == MAP_FAILED)
		return -ENOMEM;
	scene->page = page;
	pattern(page, scene->size, 5);
	memcpy(scene->wanted, page, scene->size);
	return name_region(&scene->from, scene->a, page, scene->size);
}

FIXTURE(short_messages)
{
	struct calm calm;
	struct scene scene;
};

FIXTURE_SETUP(short_messages)
{
	ASSERT_EQ(sizeof(self->scene.wanted), getpagesize());
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, scene_open(&self->scene, 0));
	ASSERT_EQ(0, scene_use(&self->scene, map_pages(self->scene.size)));
}

FIXTURE_TEARDOWN(short_messages)
{
	pair_close(&self->scene.pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* A message of @from's region arrives, with those bytes. */
static int send_from(struct scene *scene, __u32 offset, __u32 length,
		     const unsigned char *wanted)
{
	struct side *b = scene->b;
	int rc;

	memset(b->memory, 0, length + 1);
	rc = post_one(b, work(b, IBCHAN_OP_RECV, 2, 0, HALF));
	if (!rc)
		rc = post_one(&scene->from,
			      work(&scene->from, IBCHAN_OP_SEND, 1, offset, length));
	rc = rc ? rc : succeed(scene->a, 1, NULL);
	rc = rc ? rc : succeed(b, 2, NULL);
	rc = rc ? rc : same_bytes(wanted + offset, b->memory, length);
	return rc ? rc : all_bytes(b->memory + length, 1, 0);
}

static int write_from(struct scene *scene, __u32 offset, __u32 length,
		      const unsigned char *wanted)
{
	struct ibchan_submit_wr wr = work(&scene->from, IBCHAN_OP_WRITE, 1, offset, length);
	struct side *b = scene->b;
	int rc;

	memset(b->memory, 0, length + 1);
	work_at(&wr, b, 0);
	rc = post_one(&scene->from, wr);
	rc = rc ? rc : succeed(scene->a, 1, NULL);
	rc = rc ? rc : same_bytes(wanted + offset, b->memory, length);
	return rc ? rc : all_bytes(b->memory + length, 1, 0);
}

static int both_from(struct scene *scene, __u32 offset, __u32 length)
{
	int rc = send_from(scene, offset, length, scene->wanted);

	return rc ? rc : write_from(scene, offset, length, scene->wanted);
}

/* Nothing lies behind the region's page, so a byte too many would be a fault. */
TEST_F(short_messages, of_all_lengths_and_alignments_arrive_whole)
{
	struct scene *scene = &self->scene;
	__u32 length, shift;

	for (length = 1; length <= SHORT; length++) {
		for (shift = 0; shift < 3; shift++)
			ASSERT_EQ(0, both_from(scene, scene->size - length - shift, length))
				TH_LOG("%u bytes, %u from the end", length, shift);
		ASSERT_EQ(0, both_from(scene, length, length));
	}
}

/* More than the device is given at once. */
#define MANY	40

/* Writes of all lengths side by side. */
TEST_F(short_messages, of_many_that_are_posted_at_once_each_arrives_whole)
{
	struct scene *scene = &self->scene;
	struct ibchan_submit_wr wrs[MANY];
	__u32 length, i;

	for (i = 0; i < MANY; i++) {
		wrs[i] = work(&scene->from, IBCHAN_OP_WRITE, i, 100 * i, i + 1);
		work_at(&wrs[i], scene->b, 100 * i);
	}
	memset(scene->b->memory, 0, scene->size);
	ASSERT_EQ(0, post(&scene->from, wrs, MANY));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, succeed(scene->a, i, NULL));
	for (i = 0; i < MANY; i++) {
		length = wrs[i].sge.length;
		EXPECT_EQ(0, same_bytes(scene->wanted + 100 * i, scene->b->memory + 100 * i,
					length));
		EXPECT_EQ(0, all_bytes(scene->b->memory + 100 * i + length, 100 - length, 0));
	}
}

TEST_F(short_messages, leave_from_a_page_that_cannot_be_written_now)
{
	struct scene *scene = &self->scene;

	ASSERT_EQ(0, mprotect(scene->page, scene->size, PROT_READ));
	ASSERT_EQ(0, both_from(scene, 8, SHORT));
	ASSERT_EQ(0, mprotect(scene->page, scene->size, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, both_from(scene, 8, SHORT));
	/* The program writes, and that is sent. */
	pattern(scene->page, scene->size, 6);
	memcpy(scene->wanted, scene->page, scene->size);
	ASSERT_EQ(0, both_from(scene, 8, SHORT));
}

/* A child that has written to its copy of the page, and stays. */
static pid_t fork_writer(const struct scene *scene)
{
	int said[2];
	pid_t child;
	char byte;

	if (pipe(said))
		return -errno;
	child = fork();
	if (!child) {
		memset(scene->page, OTHER_BYTE, scene->size);
		if (write(said[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(said[1]);
	if (child > 0 && read(said[0], &byte, 1) != 1)
		child = -EPIPE;
	close(said[0]);
	return child;
}

TEST_F(short_messages, of_a_process_that_forks_are_its_own_and_not_its_childs)
{
	struct scene *scene = &self->scene;
	pid_t child = fork_writer(scene);

	ASSERT_LT(0, child);
	EXPECT_EQ(0, both_from(scene, 0, SHORT));
	pattern(scene->page, scene->size, 9);
	memcpy(scene->wanted, scene->page, scene->size);
	EXPECT_EQ(0, both_from(scene, 0, SHORT));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	EXPECT_EQ(0, both_from(scene, 0, SHORT));
}

/* ---- Addresses that lead somewhere else ---- */

FIXTURE(taken)
{
	struct calm calm;
	struct scene scene;
	int file;
};

FIXTURE_VARIANT(taken)
{
	/* Behind it the addresses lead elsewhere, or cannot be read. */
	int (*take)(unsigned char *page, size_t size, int file);
	bool is_of_file;
};

static int unmap(unsigned char *page, size_t size, int file)
{
	(void)file;
	return munmap(page, size);
}

static int map_another(unsigned char *page, size_t size, int file)
{
	(void)file;
	if (mmap(page, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) != page)
		return -1;
	memset(page, OTHER_BYTE, size);
	return 0;
}

static int move(unsigned char *page, size_t size, int file)
{
	(void)file;
	if (mremap(page, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, map_pages(size)) == MAP_FAILED)
		return -1;
	return map_another(page, size, file);
}

/* What @taken says, and another page is there when it has been written to. */
static int write_anew(unsigned char *page, size_t size, int taken)
{
	if (!taken)
		memset(page, OTHER_BYTE, size);
	return taken;
}

static int need_no_more(unsigned char *page, size_t size, int file)
{
	(void)file;
	return write_anew(page, size, madvise(page, size, MADV_DONTNEED));
}

static int protect(unsigned char *page, size_t size, int file)
{
	(void)file;
	return mprotect(page, size, PROT_NONE);
}

static int punch(unsigned char *page, size_t size, int file)
{
	(void)file;
	return write_anew(page, size, madvise(page, size, MADV_REMOVE));
}

static int cut_off(unsigned char *page, size_t size, int file)
{
	(void)page;
	(void)size;
	return ftruncate(file, 0);
}

static int cut_off_and_grow(unsigned char *page, size_t size, int file)
{
	return write_anew(page, size, ftruncate(file, 0) || ftruncate(file, size));
}

FIXTURE_VARIANT_ADD(taken, unmapped) { .take = unmap };
FIXTURE_VARIANT_ADD(taken, another_mapping) { .take = map_another };
FIXTURE_VARIANT_ADD(taken, moved_away) { .take = move };
FIXTURE_VARIANT_ADD(taken, not_needed) { .take = need_no_more };
FIXTURE_VARIANT_ADD(taken, not_readable) { .take = protect };
FIXTURE_VARIANT_ADD(taken, a_hole_in_the_file) { .take = punch, .is_of_file = true };
FIXTURE_VARIANT_ADD(taken, a_file_cut_off) { .take = cut_off, .is_of_file = true };
FIXTURE_VARIANT_ADD(taken, a_file_grown_again) { .take = cut_off_and_grow, .is_of_file = true };

static unsigned char *map_file(int file, size_t size)
{
	return ftruncate(file, size) ? MAP_FAILED :
	       mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

FIXTURE_SETUP(taken)
{
	struct scene *scene = &self->scene;

	ASSERT_EQ(sizeof(scene->wanted), getpagesize());
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, scene_open(scene, 0));
	self->file = memfd_create("ibchan", MFD_CLOEXEC);
	ASSERT_LE(0, self->file);
	ASSERT_EQ(0, scene_use(scene, variant->is_of_file ? map_file(self->file, scene->size) :
							    map_pages(scene->size)));
}

FIXTURE_TEARDOWN(taken)
{
	close(self->file);
	pair_close(&self->scene.pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(taken, away_what_the_region_holds_is_sent)
{
	struct scene *scene = &self->scene;

	ASSERT_EQ(0, both_from(scene, 0, SHORT));
	ASSERT_EQ(0, variant->take(scene->page, scene->size, self->file));
	ASSERT_EQ(0, both_from(scene, 0, SHORT));
	ASSERT_EQ(0, both_from(scene, scene->size - 1, 1));
}

TEST_F(short_messages, from_a_region_that_is_registered_where_another_was_they_are_its_own)
{
	struct scene *scene = &self->scene;

	ASSERT_EQ(0, destroy(scene->a->fd, scene->from.mr));
	ASSERT_EQ(0, map_another(scene->page, scene->size, -1));
	ASSERT_EQ(0, scene_use(scene, scene->page));
	ASSERT_EQ(0, both_from(scene, 0, SHORT));
}

/* Both are alive: each is the pages that it was registered with. */
TEST_F(short_messages, of_two_regions_at_the_same_addresses_are_each_its_own)
{
	struct scene *scene = &self->scene;
	unsigned char first[4096];
	struct side second;

	memcpy(first, scene->wanted, sizeof(first));
	ASSERT_EQ(0, map_another(scene->page, scene->size, -1));
	second = scene->from;
	ASSERT_EQ(0, scene_use(scene, scene->page));
	ASSERT_EQ(0, both_from(scene, 0, SHORT));
	memcpy(scene->wanted, first, sizeof(first));
	memset(scene->page, OTHER_BYTE, scene->size);
	scene->from = second;
	ASSERT_EQ(0, both_from(scene, 0, SHORT));
}

#define TURNS	8

/* Takes the page's addresses away when @turn has come, and a little later. */
struct thief {
	struct scene *scene;
	int turn;
	int turn_to_steal;
	unsigned int delay;
	int rc;
};

static void *steal(void *arg)
{
	struct thief *thief = arg;
	unsigned int i;

	while (__atomic_load_n(&thief->turn, __ATOMIC_ACQUIRE) < thief->turn_to_steal)
		sched_yield();
	for (i = 0; i < thief->delay; i++)
		__asm__ volatile("");
	thief->rc = map_another(thief->scene->page, thief->scene->size, -1);
	return NULL;
}

/* A message in each turn. */
static int send_through(struct thief *thief)
{
	int rc = 0;
	int turn;

	for (turn = 0; turn < TURNS && !rc; turn++) {
		__atomic_store_n(&thief->turn, turn, __ATOMIC_RELEASE);
		rc = both_from(thief->scene, SHORT * turn, SHORT);
	}
	__atomic_store_n(&thief->turn, TURNS, __ATOMIC_RELEASE);
	return rc;
}

/* None has a byte of what comes there. */
TEST_F(short_messages, whose_addresses_go_meanwhile_are_what_the_region_holds)
{
	struct scene *scene = &self->scene;
	unsigned int seed = 20261124;
	unsigned int round;

	for (round = 0; round < (slow() ? 10 : 100); round++) {
		struct thief thief = { scene, 0, round % TURNS, rand_r(&seed) % 100000, -1 };
		pthread_t thread;

		ASSERT_EQ(0, pthread_create(&thread, NULL, steal, &thief));
		EXPECT_EQ(0, send_through(&thief));
		pthread_join(thread, NULL);
		ASSERT_EQ(0, thief.rc);
		ASSERT_EQ(0, both_from(scene, 0, SHORT));
		ASSERT_EQ(0, destroy(scene->a->fd, scene->from.mr));
		ASSERT_EQ(0, scene_use(scene, scene->page));
	}
}

TEST_HARNESS_MAIN
