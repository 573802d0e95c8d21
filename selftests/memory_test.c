// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinned memory: what can be registered, that it stays while the device may use it whatever
 * the program does with its own mapping, and that all of it is accounted for.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "memlock.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define HALF	32768
#define PAGES	16

FIXTURE(memory)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
	size_t page;
};

FIXTURE_SETUP(memory)
{
	struct side_options options = side_defaults();

	options.params.rnr_retries = 7;
	self->page = getpagesize();
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, pair_open(&self->pair, PAIR_TWO_DEVICES, &options));
	self->a = self->pair.a;
	self->b = self->pair.b;
}

FIXTURE_TEARDOWN(memory)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, calm_end(&self->calm));
}

static void *fresh_pages(size_t length)
{
	return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static struct ibchan_cmd_mr_reg region(const struct side *side, const void *addr, __u64 length,
				       __u32 access)
{
	return (struct ibchan_cmd_mr_reg) {
		.addr = address(addr),
		.length = length,
		.pd = side->pd,
		.access = access,
	};
}

/* What a fresh range of memory says to a registration, which is given back at once. */
static int try_region(const struct side *side, const void *addr, __u64 length, __u32 access)
{
	struct ibchan_cmd_mr_reg cmd = region(side, addr, length, access);
	int rc = cmd_mr_reg(side->fd, &cmd);

	return rc ? rc : destroy(side->fd, cmd.out_mr);
}

static __u64 pinned_bytes(const struct side *side)
{
	struct ibchan_cmd_query query = {};

	return cmd_query(side->fd, &query) ? ~0ULL : query.out.pinned_bytes;
}

/* The last step of giving pages back may be a worker's. */
static bool pins_are(void *arg)
{
	return pins() == *(long *)arg;
}

TEST_F(memory, of_any_alignment_can_be_registered)
{
	char *pages = fresh_pages(PAGES * self->page);
	unsigned int i;

	ASSERT_NE(MAP_FAILED, pages);
	for (i = 0; i < 64; i++) {
		EXPECT_EQ(0, try_region(self->a, pages + i, 1, IBCHAN_ACCESS_LOCAL));
		EXPECT_EQ(0, try_region(self->a, pages + 4095 - i, 2 * i + 1, 0));
		EXPECT_EQ(0, try_region(self->a, pages + i, 3 * self->page, IBCHAN_ACCESS_SHARED));
	}
	munmap(pages, PAGES * self->page);
}

TEST_F(memory, that_is_not_there_is_refused)
{
	char *pages = fresh_pages(3 * self->page);

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, munmap(pages + self->page, self->page));
	EXPECT_EQ(-EFAULT, try_region(self->a, pages, 3 * self->page, 0));
	EXPECT_EQ(-EFAULT, try_region(self->a, pages + self->page, 1, 0));
	EXPECT_EQ(-EFAULT, try_region(self->a, pages + self->page - 1, 2, IBCHAN_ACCESS_LOCAL));
	EXPECT_EQ(0, try_region(self->a, pages, self->page, 0));
	EXPECT_EQ(0, try_region(self->a, pages + 2 * self->page, self->page, 0));
	munmap(pages, 3 * self->page);
}

TEST_F(memory, of_the_kernel_or_beyond_all_addresses_is_refused)
{
	const void *kernel = (void *)0xffff888000000000UL;

	EXPECT_GT(0, try_region(self->a, NULL, 4096, 0));
	EXPECT_GT(0, try_region(self->a, kernel, 4096, 0));
	EXPECT_GT(0, try_region(self->a, (void *)-4096L, 4096, 0));
	EXPECT_GT(0, try_region(self->a, (void *)-4096L, 4097, 0));
	EXPECT_GT(0, try_region(self->a, self->a->memory, ~0ULL, 0));
	EXPECT_GT(0, try_region(self->a, self->a->memory, 1ULL << 63, 0));
	EXPECT_GT(0, try_region(self->a, self->a->memory, -(__u64)self->page, 0));
	EXPECT_EQ(0, try_region(self->a, self->a->memory, self->page, 0));
}

TEST_F(memory, with_a_wrong_combination_of_access_is_refused)
{
	static const __u32 wrong[] = {
		IBCHAN_ACCESS_REMOTE_WRITE,
		IBCHAN_ACCESS_REMOTE_ATOMIC,
		IBCHAN_ACCESS_REMOTE_WRITE | IBCHAN_ACCESS_REMOTE_READ,
		IBCHAN_ACCESS_REMOTE,
	};
	static const __u32 right[] = {
		0, IBCHAN_ACCESS_LOCAL, IBCHAN_ACCESS_REMOTE_READ, IBCHAN_ACCESS_SHARED,
		IBCHAN_ACCESS_ALL,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct ibchan_cmd_mr_reg cmd = region(self->a, self->a->memory, 64, wrong[i]);

		EXPECT_EQ(-EINVAL, cmd_mr_reg(self->a->fd, &cmd));
		EXPECT_EQ(IBCHAN_REASON_ACCESS_COMBINATION, cmd.reason.code);
		EXPECT_EQ(wrong[i], cmd.reason.value[0]);
	}
	for (i = 0; i < ARRAY_SIZE(right); i++)
		EXPECT_EQ(0, try_region(self->a, self->a->memory, 64, right[i]))
			TH_LOG("access %#x", right[i]);
	for (i = 4; i < 32; i++)
		EXPECT_EQ(-EOPNOTSUPP, try_region(self->a, self->a->memory, 64, 1U << i))
			TH_LOG("access bit %u", i);
}

TEST_F(memory, has_a_remote_key_only_when_it_is_shared)
{
	static const struct {
		__u32 access;
		int shared;
	} cases[] = {
		{ 0, 0 },
		{ IBCHAN_ACCESS_LOCAL, 0 },
		{ IBCHAN_ACCESS_REMOTE_READ, 1 },
		{ IBCHAN_ACCESS_LOCAL | IBCHAN_ACCESS_REMOTE_WRITE, 1 },
		{ IBCHAN_ACCESS_SHARED, 1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibchan_cmd_mr_reg cmd = region(self->a, self->a->memory, 64,
						      cases[i].access);

		ASSERT_EQ(0, cmd_mr_reg(self->a->fd, &cmd));
		EXPECT_EQ(cases[i].shared, cmd.out_rkey != 0)
			TH_LOG("access %#x", cases[i].access);
		EXPECT_EQ(0, destroy(self->a->fd, cmd.out_mr));
	}
}

/* What a machine of 2 GiB should pin. */
#define MOST_PAGES	4096U

/* A driver of 6.1 wants to write what it pins. */
TEST_F(memory, that_is_mapped_shared_and_read_only_is_refused_with_how_much_can_be)
{
	struct ibchan_cmd_device_query device;
	struct ibchan_cmd_mr_reg cmd;
	__u64 max, pages;
	void *map;
	int fd, rc;

	ASSERT_EQ(0, side_device(self->a, &device));
	max = device.out.max_fast_reg_pages;
	pages = max + 1;
	if (max > MOST_PAGES)
		SKIP(return, "the device registers any memory in one go that this machine has");
	fd = memfd_create("ibchan", MFD_CLOEXEC);
	ASSERT_EQ(0, ftruncate(fd, pages * self->page));
	map = mmap(NULL, pages * self->page, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	EXPECT_EQ(0, try_region(self->a, map, max * self->page, IBCHAN_ACCESS_REMOTE_READ));
	cmd = region(self->a, map, pages * self->page, IBCHAN_ACCESS_REMOTE_READ);
	rc = cmd_mr_reg(self->a->fd, &cmd);
	if (kernel_is_before(6, 2)) {
		EXPECT_EQ(-EOPNOTSUPP, rc);
		EXPECT_EQ(IBCHAN_REASON_READ_ONLY_SHARED, cmd.reason.code);
		EXPECT_EQ(pages, cmd.reason.value[0]);
		EXPECT_EQ(max, cmd.reason.value[1]);
	} else {
		EXPECT_EQ(0, rc);
		EXPECT_EQ(0, destroy(self->a->fd, cmd.out_mr));
	}
	munmap(map, pages * self->page);
	close(fd);
}

TEST_F(memory, is_counted_in_whole_pages_and_the_count_comes_back)
{
	char *pages = fresh_pages(PAGES * self->page);
	__u64 before = pinned_bytes(self->a);
	long pinned = pins();
	struct ibchan_cmd_mr_reg cmd;

	ASSERT_NE(MAP_FAILED, pages);
	cmd = region(self->a, pages + self->page - 1, 2, IBCHAN_ACCESS_LOCAL);
	ASSERT_EQ(0, cmd_mr_reg(self->a->fd, &cmd));
	EXPECT_EQ(before + 2 * self->page, pinned_bytes(self->a));
	EXPECT_EQ(pinned + 2, pins());
	ASSERT_EQ(0, destroy(self->a->fd, cmd.out_mr));
	EXPECT_EQ(before, pinned_bytes(self->a));
	EXPECT_TRUE(eventually(pins_are, &pinned));

	cmd = region(self->a, pages, PAGES * self->page, IBCHAN_ACCESS_LOCAL);
	ASSERT_EQ(0, cmd_mr_reg(self->a->fd, &cmd));
	EXPECT_EQ(before + PAGES * self->page, pinned_bytes(self->a));
	EXPECT_EQ(pinned + PAGES, pins());
	ASSERT_EQ(0, destroy(self->a->fd, cmd.out_mr));
	EXPECT_TRUE(eventually(pins_are, &pinned));
	munmap(pages, PAGES * self->page);
}

TEST_F(memory, that_is_busy_cannot_be_deregistered_and_no_harm_is_done)
{
	struct side *a = self->a, *b = self->b;
	long pinned = pins();

	ASSERT_EQ(0, post_one(b, work(b, IBCHAN_OP_RECV, 1, HALF, 64)));
	EXPECT_EQ(-EBUSY, destroy(b->fd, b->mr));
	EXPECT_EQ(-EBUSY, destroy(b->fd, b->mr));
	EXPECT_EQ(pinned, pins());
	pattern(a->memory, 64, 2);
	ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 2, 0, 64)));
	ASSERT_EQ(0, succeed(a, 2, NULL));
	ASSERT_EQ(0, succeed(b, 1, NULL));
	EXPECT_EQ(0, same_bytes(a->memory, b->memory + HALF, 64));
	EXPECT_EQ(0, destroy(b->fd, b->mr));
	EXPECT_EQ(-ENOENT, destroy(b->fd, b->mr));
}

TEST_F(memory, that_a_waiting_send_reads_cannot_be_deregistered)
{
	struct side *a = self->a, *b = self->b;

	ASSERT_EQ(0, post_one(a, work(a, IBCHAN_OP_SEND, 1, 0, 64)));
	EXPECT_EQ(-EBUSY, destroy(a->fd, a->mr));
	ASSERT_EQ(0, post_one(b, work(b, IBCHAN_OP_RECV, 2, HALF, 64)));
	ASSERT_EQ(0, succeed(a, 1, NULL));
	ASSERT_EQ(0, succeed(b, 2, NULL));
	EXPECT_EQ(0, destroy(a->fd, a->mr));
}

TEST_F(memory, that_was_given_back_is_out_of_the_peers_reach)
{
	struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_WRITE, 1, 0, 64);

	pattern(self->a->memory, 64, 1);
	work_at(&wr, self->b, 0);
	ASSERT_EQ(0, destroy(self->b->fd, self->b->mr));
	ASSERT_EQ(0, post_one(self->a, wr));
	EXPECT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, status_of(self->a, 1));
	EXPECT_EQ(0, all_bytes(self->b->memory, 64, 0));
}

TEST_F(memory, that_only_this_side_may_use_is_out_of_the_peers_reach)
{
	struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_WRITE, 1, 0, 64);
	struct ibchan_cmd_mr_reg cmd = region(self->b, self->b->memory, 4096,
					      IBCHAN_ACCESS_LOCAL | IBCHAN_ACCESS_REMOTE_READ);

	ASSERT_EQ(0, cmd_mr_reg(self->b->fd, &cmd));
	pattern(self->a->memory, 64, 1);
	work_at(&wr, self->b, 0);
	wr.rkey = cmd.out_rkey;
	ASSERT_EQ(0, post_one(self->a, wr));
	EXPECT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, status_of(self->a, 1));
	EXPECT_EQ(0, all_bytes(self->b->memory, 64, 0));
}

TEST_F(memory, beyond_the_memlock_limit_is_refused_with_used_limit_and_needed)
{
	char *pages = fresh_pages(PAGES * self->page);
	size_t page = self->page;
	/* Both sides of the pair are this process's, and count. */
	__u64 used = pinned_bytes(self->a) + pinned_bytes(self->b);
	struct ibchan_cmd_mr_reg first, second;

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, lose_capability(CAP_IPC_LOCK));
	ASSERT_EQ(0, limit_memlock(used + 8 * page));
	first = region(self->a, pages, 5 * page, IBCHAN_ACCESS_LOCAL);
	ASSERT_EQ(0, cmd_mr_reg(self->a->fd, &first));
	/* Two bytes, but on two pages; and then one page more than the limit leaves. */
	EXPECT_EQ(0, try_region(self->a, pages + 6 * page - 1, 2, IBCHAN_ACCESS_LOCAL));
	second = region(self->a, pages + 6 * page, 3 * page + 1, IBCHAN_ACCESS_LOCAL);
	EXPECT_EQ(-ENOMEM, cmd_mr_reg(self->a->fd, &second));
	EXPECT_EQ(IBCHAN_REASON_MEMLOCK, second.reason.code);
	EXPECT_EQ(used + 5 * page, second.reason.value[0]);
	EXPECT_EQ(used + 8 * page, second.reason.value[1]);
	EXPECT_EQ(4 * page, second.reason.value[2]);

	/* What is given back can be used again. */
	ASSERT_EQ(0, destroy(self->a->fd, first.out_mr));
	EXPECT_EQ(0, try_region(self->a, pages, 8 * page, IBCHAN_ACCESS_LOCAL));
	EXPECT_EQ(-ENOMEM, try_region(self->a, pages, 8 * page + 1, IBCHAN_ACCESS_LOCAL));
	EXPECT_EQ(-ENOMEM, try_region(self->b, pages, 9 * page, IBCHAN_ACCESS_LOCAL));
	munmap(pages, PAGES * page);
}

TEST_F(memory, beyond_the_limit_is_allowed_to_the_privileged)
{
	char *pages = fresh_pages(PAGES * self->page);

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, limit_memlock(self->page));
	EXPECT_EQ(0, try_region(self->a, pages, PAGES * self->page, IBCHAN_ACCESS_LOCAL));
	ASSERT_EQ(0, lose_capability(CAP_IPC_LOCK));
	EXPECT_EQ(-ENOMEM, try_region(self->a, pages, PAGES * self->page, IBCHAN_ACCESS_LOCAL));
	munmap(pages, PAGES * self->page);
}

TEST_F(memory, that_could_not_be_registered_is_not_charged)
{
	size_t page = self->page;
	char *pages = fresh_pages(4 * page);
	__u64 used = pinned_bytes(self->a) + pinned_bytes(self->b);
	unsigned int i;

	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, munmap(pages + 3 * page, page));
	ASSERT_EQ(0, lose_capability(CAP_IPC_LOCK));
	ASSERT_EQ(0, limit_memlock(used + 4 * page));
	for (i = 0; i < 10; i++)
		EXPECT_EQ(-EFAULT, try_region(self->a, pages, 4 * page, IBCHAN_ACCESS_LOCAL));
	EXPECT_EQ(0, try_region(self->a, pages, 3 * page, IBCHAN_ACCESS_LOCAL));
	munmap(pages, 3 * page);
}

TEST_HARNESS_MAIN
