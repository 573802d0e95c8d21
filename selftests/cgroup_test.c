// SPDX-License-Identifier: GPL-2.0-only
/*
 * The RDMA controller of cgroups: a process that opens a device and makes objects on it is
 * charged.
 */
#define _GNU_SOURCE

#include "cgroup.h"
#include "test.h"
#include "work.h"
#include "world.h"

FIXTURE(cgroup)
{
	struct calm calm;
	int fd;
};

FIXTURE_SETUP(cgroup)
{
	int rc = cgroup_begin();

	if (rc == -EOPNOTSUPP)
		SKIP(return, "this kernel has no RDMA controller");
	ASSERT_EQ(0, rc);
	ASSERT_EQ(0, calm_begin(&self->calm));
	self->fd = node_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(cgroup)
{
	close(self->fd);
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(0, cgroup_end());
}

/* Both in one number, so that a failure shows both: handles in the hundreds. */
static long usage_of(const char *device)
{
	struct cgroup_usage usage;
	int rc = cgroup_usage(device, &usage);

	return rc ? rc : usage.handles * 100 + usage.objects;
}

#define HOLDS(handles, objects)	((handles) * 100L + (objects))

/* Device, pd, cq, mr and channel. */
static const long whole_side = HOLDS(1, 4);

static int open_side(struct side *side)
{
	struct side_options options = side_defaults();

	return side_open(side, &options);
}

TEST_F(cgroup, pays_for_each_object_from_its_making_to_its_end)
{
	struct side_options options = side_defaults();
	struct side side = { .fd = self->fd };

	EXPECT_EQ(HOLDS(0, 0), usage_of(DEVICE_A));
	ASSERT_EQ(0, device_open(side.fd, DEVICE_A, &side.device));
	EXPECT_EQ(HOLDS(1, 0), usage_of(DEVICE_A));
	ASSERT_EQ(0, pd_alloc(side.fd, side.device, &side.pd));
	EXPECT_EQ(HOLDS(1, 1), usage_of(DEVICE_A));
	ASSERT_EQ(0, side_cq(&side, &options));
	EXPECT_EQ(HOLDS(1, 2), usage_of(DEVICE_A));
	ASSERT_EQ(0, side_memory(&side, &options));
	EXPECT_EQ(HOLDS(1, 3), usage_of(DEVICE_A));
	ASSERT_EQ(0, side_channel(&side, &options));
	EXPECT_EQ(HOLDS(1, 4), usage_of(DEVICE_A));
	EXPECT_EQ(HOLDS(0, 0), usage_of(DEVICE_B));
	ASSERT_EQ(0, destroy(side.fd, side.channel));
	EXPECT_EQ(HOLDS(1, 3), usage_of(DEVICE_A));
	ASSERT_EQ(0, destroy(side.fd, side.mr));
	EXPECT_EQ(HOLDS(1, 2), usage_of(DEVICE_A));
	ASSERT_EQ(0, destroy(side.fd, side.ring->cq));
	EXPECT_EQ(HOLDS(1, 1), usage_of(DEVICE_A));
	ASSERT_EQ(0, destroy(side.fd, side.pd));
	EXPECT_EQ(HOLDS(1, 0), usage_of(DEVICE_A));
	ASSERT_EQ(0, destroy(side.fd, side.device));
	EXPECT_EQ(HOLDS(0, 0), usage_of(DEVICE_A));
	ring_unmap(side.ring);
}

TEST_F(cgroup, pays_on_for_what_a_process_made_before_it_left)
{
	struct side side;
	__u32 pd;

	ASSERT_EQ(0, open_side(&side));
	ASSERT_EQ(0, cgroup_leave());
	EXPECT_EQ(whole_side, usage_of(DEVICE_A));
	ASSERT_EQ(0, pd_alloc(side.fd, side.device, &pd));
	EXPECT_EQ(whole_side, usage_of(DEVICE_A));
	ASSERT_EQ(0, destroy(side.fd, side.channel));
	EXPECT_EQ(whole_side - 1, usage_of(DEVICE_A));
	ASSERT_EQ(0, destroy(side.fd, pd));
	EXPECT_EQ(whole_side - 1, usage_of(DEVICE_A));
	side_close(&side);
	EXPECT_EQ(HOLDS(0, 0), usage_of(DEVICE_A));
}

static int leave_and_destroy(void *arg)
{
	struct side *side = arg;
	int rc = cgroup_leave();

	return rc ? rc : destroy(side->fd, side->channel);
}

TEST_F(cgroup, is_paid_back_by_whoever_gives_the_object_back)
{
	struct side side;

	ASSERT_EQ(0, open_side(&side));
	ASSERT_EQ(0, in_child(leave_and_destroy, &side));
	EXPECT_EQ(whole_side - 1, usage_of(DEVICE_A));
	side_close(&side);
	EXPECT_EQ(HOLDS(0, 0), usage_of(DEVICE_A));
}

TEST_F(cgroup, pays_nothing_for_what_was_refused)
{
	struct ibchan_cmd_mr_reg mr = { .access = IBCHAN_ACCESS_LOCAL };
	struct ibchan_cmd_cq_create cq = { .entries = 16, .cq_entries = 0x7fffffff };
	struct side side;
	__u32 device;

	ASSERT_EQ(0, open_side(&side));
	mr.pd = side.pd;
	cq.device = side.device;
	EXPECT_EQ(-EINVAL, cmd_mr_reg(side.fd, &mr));
	EXPECT_EQ(-EINVAL, cmd_cq_create(side.fd, &cq));
	EXPECT_EQ(-ENODEV, device_open(side.fd, "rxe9", &device));
	EXPECT_EQ(-EBUSY, destroy(side.fd, side.pd));
	EXPECT_EQ(whole_side, usage_of(DEVICE_A));
	side_close(&side);
}

static long handles_of(int fd)
{
	struct ibchan_cmd_query query = {};
	int rc = cmd_query(fd, &query);

	return rc ? rc : (long)query.out.handles;
}

TEST_F(cgroup, with_as_many_devices_open_as_it_may_refuses_one_more_with_edquot)
{
	__u32 device, more;

	ASSERT_EQ(0, cgroup_limit(DEVICE_A, "1", "max"));
	ASSERT_EQ(0, device_open(self->fd, DEVICE_A, &device));
	EXPECT_EQ(-EDQUOT, device_open(self->fd, DEVICE_A, &more));
	EXPECT_EQ(1, handles_of(self->fd));
	EXPECT_EQ(HOLDS(1, 0), usage_of(DEVICE_A));
	/* Another device has limits of its own. */
	EXPECT_EQ(0, device_open(self->fd, DEVICE_B, &more));
	ASSERT_EQ(0, destroy(self->fd, device));
	EXPECT_EQ(0, device_open(self->fd, DEVICE_A, &more));
}

static void expect_refusal(struct __test_metadata *_metadata, int rc,
			   const struct ibchan_reason *reason)
{
	EXPECT_EQ(-EDQUOT, rc);
	EXPECT_EQ(IBCHAN_REASON_CGROUP, reason->code);
	EXPECT_EQ(1, reason->value[0]);
}

TEST_F(cgroup, with_as_many_objects_as_it_may_refuses_each_kind_with_edquot)
{
	struct ibchan_cmd_mr_reg_dmabuf dmabuf = { .length = 4096, .fd = -1 };
	struct ibchan_cmd_channel_build channel = { .params = default_params() };
	struct ibchan_cmd_mr_reg mr = { .length = 64, .access = IBCHAN_ACCESS_LOCAL };
	struct ibchan_cmd_cq_create cq = { .entries = 16 };
	struct side side;
	__u32 pd;

	ASSERT_EQ(0, open_side(&side));
	ASSERT_EQ(0, cgroup_limit(DEVICE_A, "max", "4"));
	mr.pd = side.pd;
	mr.addr = address(side.memory);
	dmabuf.pd = side.pd;
	cq.device = side.device;
	channel.pd = side.pd;
	channel.send_cq = side.ring->cq;
	channel.recv_cq = side.ring->cq;
	EXPECT_EQ(-EDQUOT, pd_alloc(side.fd, side.device, &pd));
	expect_refusal(_metadata, cmd_mr_reg(side.fd, &mr), &mr.reason);
	expect_refusal(_metadata, cmd_mr_reg_dmabuf(side.fd, &dmabuf), &dmabuf.reason);
	expect_refusal(_metadata, cmd_cq_create(side.fd, &cq), &cq.reason);
	expect_refusal(_metadata, cmd_channel_build(side.fd, &channel), &channel.reason);
	EXPECT_EQ(5, handles_of(side.fd));
	EXPECT_EQ(whole_side, usage_of(DEVICE_A));
	ASSERT_EQ(0, side_handshake(&side, &side.endpoint));
	EXPECT_EQ(0, exchange(&side, &side));
	ASSERT_EQ(0, cgroup_limit(DEVICE_A, "max", "5"));
	EXPECT_EQ(0, cmd_channel_build(side.fd, &channel));
	EXPECT_EQ(whole_side + 1, usage_of(DEVICE_A));
	side_close(&side);
}

TEST_HARNESS_MAIN
