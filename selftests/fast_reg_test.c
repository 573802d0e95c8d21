// SPDX-License-Identifier: GPL-2.0-only
/*
 * User memory on a device whose driver cannot register it for the kernel: soft-RoCE is
 * treated as if it were one, by the module's parameter fast_reg_only.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "answer.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define PARAMETER	"/sys/module/ibchan/parameters/fast_reg_only"
#define PAGE		4096UL

FIXTURE(fast_reg)
{
	struct calm calm;
	struct pair pair;
	struct side *a;
	struct side *b;
};

static struct side_options fast_options(void)
{
	struct side_options options = side_defaults();

	options.memory = 5 * PAGE + 100;
	return options;
}

FIXTURE_SETUP(fast_reg)
{
	struct side_options options = fast_options();

	int rc;

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, put_line(PARAMETER, "Y"));
	rc = pair_open(&self->pair, PAIR_TWO_DEVICES, &options);
	/* Nobody tears down what was not set up. */
	if (rc)
		put_line(PARAMETER, "N");
	ASSERT_EQ(0, rc);
	self->a = self->pair.a;
	self->b = self->pair.b;
}

FIXTURE_TEARDOWN(fast_reg)
{
	pair_close(&self->pair);
	EXPECT_EQ(0, put_line(PARAMETER, "N"));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int reg(const struct side *side, struct ibchan_cmd_mr_reg *cmd, void *addr, __u64 length,
	       __u32 access)
{
	*cmd = (struct ibchan_cmd_mr_reg) {
		.addr = address(addr), .length = length, .pd = side->pd, .access = access,
	};
	return cmd_mr_reg(side->fd, cmd);
}

TEST_F(fast_reg, messages_go_both_ways)
{
	EXPECT_EQ(0, exchange(self->a, self->b));
	EXPECT_EQ(0, exchange(self->b, self->a));
}

TEST_F(fast_reg, a_peer_writes_and_reads_by_the_key)
{
	__u32 length = 3 * PAGE + 17;
	struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_WRITE, 1, 55, length);

	pattern(self->a->memory, self->a->length, 1);
	work_at(&wr, self->b, 1234);
	ASSERT_EQ(0, post_one(self->a, wr));
	ASSERT_EQ(0, succeed(self->a, 1, NULL));
	EXPECT_EQ(0, same_bytes(self->a->memory + 55, self->b->memory + 1234, length));
	wr = work(self->a, IBCHAN_OP_READ, 2, 100, length);
	work_at(&wr, self->b, 1234);
	pattern(self->b->memory, self->b->length, 2);
	ASSERT_EQ(0, post_one(self->a, wr));
	ASSERT_EQ(0, succeed(self->a, 2, NULL));
	EXPECT_EQ(0, same_bytes(self->b->memory + 1234, self->a->memory + 100, length));
}

TEST_F(fast_reg, the_key_ends_where_the_range_ends)
{
	__u64 last = self->b->length - 1;
	struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_READ, 1, 0, 1);

	self->b->memory[last] = 42;
	work_at(&wr, self->b, last);
	ASSERT_EQ(0, post_one(self->a, wr));
	ASSERT_EQ(0, succeed(self->a, 1, NULL));
	EXPECT_EQ(42, self->a->memory[0]);
	/* The rest of its last page is not part of it. */
	wr.wr_id = 2;
	wr.remote_addr++;
	ASSERT_EQ(0, post_one(self->a, wr));
	EXPECT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, status_of(self->a, 2));
}

TEST_F(fast_reg, the_key_is_worth_nothing_once_the_region_is_gone)
{
	struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_WRITE, 1, 0, 16);

	work_at(&wr, self->b, 0);
	ASSERT_EQ(0, destroy(self->b->fd, self->b->mr));
	ASSERT_EQ(0, post_one(self->a, wr));
	EXPECT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, status_of(self->a, 1));
}

TEST_F(fast_reg, a_key_allows_what_it_was_made_for)
{
	struct ibchan_submit_wr wr = work(self->a, IBCHAN_OP_WRITE, 1, 0, 16);
	struct ibchan_cmd_mr_reg cmd;
	unsigned char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_EQ(0, reg(self->b, &cmd, memory, 64, IBCHAN_ACCESS_REMOTE_READ));
	EXPECT_NE(0, cmd.out_rkey);
	wr.remote_addr = address(memory);
	wr.rkey = cmd.out_rkey;
	wr.remote_length = 64;
	ASSERT_EQ(0, post_one(self->a, wr));
	EXPECT_EQ(IBCHAN_STATUS_REM_ACCESS_ERR, status_of(self->a, 1));
	ASSERT_EQ(0, destroy(self->b->fd, cmd.out_mr));
	ASSERT_EQ(0, reg(self->b, &cmd, memory, 64, IBCHAN_ACCESS_LOCAL));
	EXPECT_EQ(0, cmd.out_rkey);
	munmap(memory, PAGE);
}

TEST_F(fast_reg, more_pages_than_one_registration_takes_are_refused)
{
	struct ibchan_cmd_device_query query = { .index = 0 };
	struct ibchan_cmd_mr_reg cmd;
	__u64 length;
	void *large;

	ASSERT_EQ(0, cmd_device_query(self->a->fd, &query));
	/* Plain memory has the same limit. */
	length = query.out.max_plain_bytes;
	large = mmap(NULL, length + PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(-EINVAL, reg(self->a, &cmd, large, length + 1, IBCHAN_ACCESS_LOCAL));
	EXPECT_EQ(IBCHAN_REASON_REGION_TOO_LONG, cmd.reason.code);
	EXPECT_EQ(length / PAGE + 1, cmd.reason.value[0]);
	EXPECT_EQ(length / PAGE, cmd.reason.value[1]);
	EXPECT_EQ(0, reg(self->a, &cmd, large, length, IBCHAN_ACCESS_SHARED));
	munmap(large, length + PAGE);
}

TEST_F(fast_reg, memory_that_is_not_there_is_refused)
{
	struct ibchan_cmd_mr_reg cmd;
	long before = pins();

	EXPECT_EQ(-EFAULT, reg(self->a, &cmd, (void *)PAGE, PAGE, IBCHAN_ACCESS_LOCAL));
	EXPECT_EQ(-EINVAL, reg(self->a, &cmd, self->a->memory, 0, IBCHAN_ACCESS_LOCAL));
	EXPECT_EQ(before, pins());
}

TEST_F(fast_reg, many_regions_come_and_go)
{
	struct ibchan_cmd_mr_reg cmd;
	long before = pins();
	unsigned int i;

	for (i = 0; i < 30; i++) {
		ASSERT_EQ(0, reg(self->a, &cmd, self->a->memory + i, PAGE + i,
				 i % 2 ? IBCHAN_ACCESS_LOCAL : IBCHAN_ACCESS_SHARED));
		ASSERT_EQ(0, destroy(self->a->fd, cmd.out_mr));
	}
	EXPECT_EQ(before, pins());
}

TEST_HARNESS_MAIN
