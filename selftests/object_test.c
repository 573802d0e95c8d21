// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects and what holds what: devices as they are listed, handles and their number, and the
 * order in which things can be given back.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>

#include "test.h"
#include "work.h"
#include "world.h"

FIXTURE(file)
{
	struct calm calm;
	struct side side;	/* has no peer yet */
};

FIXTURE_SETUP(file)
{
	struct side_options options = side_defaults();

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, side_open(&self->side, &options));
}

FIXTURE_TEARDOWN(file)
{
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(file, says_what_it_is_and_what_it_holds)
{
	struct ibchan_cmd_query before = {}, after = {};
	__u32 pd;

	ASSERT_EQ(0, cmd_query(self->side.fd, &before));
	EXPECT_EQ(IBCHAN_ABI_VERSION, before.out.abi_version);
	EXPECT_EQ(IBCHAN_MAX_SGE, before.out.max_sge);
	EXPECT_LE(256, before.out.max_ring_entries);
	EXPECT_EQ(2, before.out.devices);
	EXPECT_EQ(5, before.out.handles);
	EXPECT_LT(5, before.out.max_handles);
	EXPECT_EQ(self->side.length, before.out.pinned_bytes);
	ASSERT_EQ(0, pd_alloc(self->side.fd, self->side.device, &pd));
	ASSERT_EQ(0, cmd_query(self->side.fd, &after));
	EXPECT_EQ(6, after.out.handles);
	ASSERT_EQ(0, destroy(self->side.fd, pd));
	ASSERT_EQ(0, cmd_query(self->side.fd, &after));
	EXPECT_EQ(5, after.out.handles);
}

TEST_F(file, lists_each_device_once_and_then_ends)
{
	struct ibchan_cmd_device_query device = {};
	unsigned int a = 0, b = 0, n;

	for (n = 0; n < 2; n++) {
		device.index = n;
		ASSERT_EQ(0, cmd_device_query(self->side.fd, &device));
		a += !strcmp(device.out.name, DEVICE_A);
		b += !strcmp(device.out.name, DEVICE_B);
		EXPECT_EQ(1, device.out.ports);
		EXPECT_TRUE(device.out.caps & IBCHAN_DEVICE_USER_MR);
		EXPECT_NE(0, device.out.node_guid);
		EXPECT_LT(64, device.out.max_qp_wr);
		EXPECT_LT(0, device.out.max_send_sge);
		EXPECT_LT(0, device.out.max_recv_sge);
		EXPECT_LT(0, device.out.max_read_sge);
		EXPECT_LT(256, device.out.max_cqe);
		EXPECT_LT(0, device.out.max_rd_atomic);
		EXPECT_LT(1 << 20, device.out.max_mr_size);
	}
	EXPECT_EQ(1, a);
	EXPECT_EQ(1, b);
	device.index = n;
	EXPECT_EQ(-ENOENT, cmd_device_query(self->side.fd, &device));
	device.index = 0xffffffff;
	EXPECT_EQ(-ENOENT, cmd_device_query(self->side.fd, &device));
}

TEST_F(file, refuses_a_port_that_is_not_there)
{
	struct ibchan_cmd_port_query port = about_port_of(DEVICE_A);

	port.port = 0;
	EXPECT_EQ(-EINVAL, cmd_port_query(self->side.fd, &port));
	port.port = 2;
	EXPECT_EQ(-EINVAL, cmd_port_query(self->side.fd, &port));
	port.port = 0xffffffff;
	EXPECT_EQ(-EINVAL, cmd_port_query(self->side.fd, &port));
	port.port = 0x101;
	EXPECT_EQ(-EINVAL, cmd_port_query(self->side.fd, &port));
}

TEST_F(file, refuses_a_device_that_is_not_there)
{
	struct ibchan_cmd_port_query port = { .port = 1, .name = "rxe9" };
	__u32 device;

	EXPECT_EQ(-ENODEV, device_open(self->side.fd, "rxe9", &device));
	EXPECT_EQ(-ENODEV, device_open(self->side.fd, "rxe", &device));
	EXPECT_EQ(-ENODEV, device_open(self->side.fd, "rxe00", &device));
	EXPECT_EQ(-ENODEV, cmd_port_query(self->side.fd, &port));
}

TEST_F(file, refuses_a_name_that_is_empty_or_has_no_end)
{
	struct ibchan_cmd_device_open cmd = {};
	int rc;

	rc = cmd_device_open(self->side.fd, &cmd);
	EXPECT_TRUE(rc == -EINVAL || rc == -ENODEV)
		TH_LOG("%d", rc);
	memset(cmd.name, 'r', sizeof(cmd.name));
	EXPECT_EQ(-EINVAL, cmd_device_open(self->side.fd, &cmd));
}

TEST_F(file, gives_back_an_object_only_when_nothing_uses_it)
{
	struct side *side = &self->side;

	EXPECT_EQ(-EBUSY, destroy(side->fd, side->device));
	EXPECT_EQ(-EBUSY, destroy(side->fd, side->pd));
	EXPECT_EQ(-EBUSY, destroy(side->fd, side->ring->cq));
	/* All of them go on working. */
	ASSERT_EQ(0, side_handshake(side, &side->endpoint));
	EXPECT_EQ(0, exchange(side, side));
	EXPECT_EQ(0, destroy(side->fd, side->channel));
	EXPECT_EQ(-EBUSY, destroy(side->fd, side->pd));
	EXPECT_EQ(0, destroy(side->fd, side->mr));
	EXPECT_EQ(0, destroy(side->fd, side->pd));
	EXPECT_EQ(-EBUSY, destroy(side->fd, side->device));
	EXPECT_EQ(0, destroy(side->fd, side->ring->cq));
	EXPECT_EQ(0, destroy(side->fd, side->device));
	EXPECT_EQ(-ENOENT, destroy(side->fd, side->device));
}

TEST_F(file, refuses_a_channel_across_devices)
{
	struct side other = {};
	struct side_options options = side_defaults();
	struct ibchan_cmd_channel_build cmd = {
		.pd = self->side.pd,
		.send_cq = self->side.ring->cq,
		.params = default_params(),
	};

	other.fd = self->side.fd;
	ASSERT_EQ(0, device_open(other.fd, DEVICE_B, &other.device));
	ASSERT_EQ(0, pd_alloc(other.fd, other.device, &other.pd));
	ASSERT_EQ(0, side_cq(&other, &options));
	cmd.recv_cq = other.ring->cq;
	EXPECT_EQ(-EXDEV, cmd_channel_build(self->side.fd, &cmd));
	cmd.recv_cq = self->side.ring->cq;
	cmd.pd = other.pd;
	EXPECT_EQ(-EXDEV, cmd_channel_build(self->side.fd, &cmd));
	cmd.pd = self->side.pd;
	EXPECT_EQ(0, cmd_channel_build(self->side.fd, &cmd));
	ring_unmap(&other.own_ring);
}

TEST_F(file, takes_the_devices_largest_queue)
{
	struct side_options options = side_defaults();
	struct side large = { .fd = self->side.fd, .device = self->side.device };

	options.cq_entries = 0;
	ASSERT_EQ(0, side_cq(&large, &options));
	EXPECT_EQ(0, destroy(large.fd, large.ring->cq));
	ring_unmap(&large.own_ring);
}

/* Devices are the cheapest objects to have many of. */
TEST_F(file, that_holds_as_many_objects_as_it_may_takes_one_more_only_for_another)
{
	struct ibchan_cmd_query query = {};
	__u32 device, last = 0;
	unsigned int n = 0;
	int rc;

	ASSERT_EQ(0, cmd_query(self->side.fd, &query));
	if (query.out.max_handles > 100000)
		SKIP(return, "a file may hold %u objects", query.out.max_handles);
	for (;;) {
		rc = device_open(self->side.fd, DEVICE_A, &device);
		if (rc)
			break;
		last = device;
		n++;
	}
	EXPECT_EQ(-EMFILE, rc);
	EXPECT_EQ(query.out.max_handles - query.out.handles, n);
	ASSERT_EQ(0, destroy(self->side.fd, last));
	EXPECT_EQ(0, device_open(self->side.fd, DEVICE_A, &device));
	EXPECT_EQ(-EMFILE, device_open(self->side.fd, DEVICE_A, &device));
}

TEST_F(file, that_runs_out_of_descriptors_makes_no_queue)
{
	struct ibchan_cmd_query query = {};
	struct ibchan_cmd_cq_create cmd = {
		.device = self->side.device,
		.entries = 16,
		.cq_entries = 16,
	};
	int fd, first = -1, last = -1;

	ASSERT_EQ(0, cmd_query(self->side.fd, &query));
	for (fd = dup(0); fd >= 0; fd = dup(0)) {
		if (first < 0)
			first = fd;
		last = fd;
	}
	EXPECT_EQ(-EMFILE, cmd_cq_create(self->side.fd, &cmd));
	while (last >= first)
		close(last--);
	cmd = (struct ibchan_cmd_cq_create) {
		.device = self->side.device,
		.entries = 16,
		.cq_entries = 16,
	};
	EXPECT_EQ(0, cmd_cq_create(self->side.fd, &cmd));
	EXPECT_EQ(0, destroy(self->side.fd, cmd.out_cq));
	close(cmd.out_fd);
}

/* What `rdma resource` lists under this module's name. */
static int shown_by_rdma(const char *what)
{
	char command[128];

	snprintf(command, sizeof(command), "rdma resource show %s | grep -qw ibchan", what);
	return run_program((const char *const[]) { "sh", "-c", command, NULL });
}

TEST_F(file, shows_its_objects_to_rdma_resource_until_it_closes)
{
	EXPECT_EQ(0, shown_by_rdma("qp"));
	EXPECT_EQ(0, shown_by_rdma("cq"));
	EXPECT_EQ(0, shown_by_rdma("pd"));
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
	EXPECT_EQ(1, shown_by_rdma("qp"));
	EXPECT_EQ(1, shown_by_rdma("cq"));
	EXPECT_EQ(1, shown_by_rdma("mr"));
	EXPECT_EQ(1, shown_by_rdma("pd"));
}

TEST_F(file, closed_under_traffic_takes_everything_with_it)
{
	struct side *side = &self->side;
	struct ibchan_submit_wr wrs[10];
	unsigned int i;

	ASSERT_EQ(0, side_handshake(side, &side->endpoint));
	ASSERT_EQ(0, post_receives(side, 100, 4, 64));
	/* At once: the channel does not wait long for receives that it has not. */
	for (i = 0; i < ARRAY_SIZE(wrs); i++)
		wrs[i] = work(side, IBCHAN_OP_SEND, i, 32768, 32768);
	ASSERT_EQ(0, post(side, wrs, ARRAY_SIZE(wrs)));
	side_close(side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* It has posted nothing, so there is nothing to flush; its memory is the peer's target. */
static int close_target_under_writes(struct pair *pair)
{
	struct ibchan_submit_wr wrs[4];
	unsigned int i;
	int rc;

	for (i = 0; i < ARRAY_SIZE(wrs); i++) {
		wrs[i] = work(pair->a, IBCHAN_OP_WRITE, i, 0, 65536);
		work_at(&wrs[i], pair->b, 0);
		wrs[i].flags = IBCHAN_WR_UNCHECKED;
	}
	rc = post(pair->a, wrs, ARRAY_SIZE(wrs));
	rc = rc ?: destroy(pair->b->fd, pair->b->channel);
	return rc ?: destroy(pair->b->fd, pair->b->mr);
}

TEST_F(file, a_channel_that_never_posted_can_be_closed_while_the_peer_writes)
{
	struct side_options options = side_defaults();
	unsigned int i, n, rounds = slow() ? 5 : 20;
	unsigned char *copy = malloc(65536);
	struct pair pair;

	ASSERT_NE(NULL, copy);
	options.params.ack_timeout = 10;
	options.params.ack_retries = 1;
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, pair_open(&pair, PAIR_TWO_DEVICES, &options));
		memset(pair.a->memory, 0x11 + i, 65536);
		ASSERT_EQ(0, close_target_under_writes(&pair));
		memcpy(copy, pair.b->memory, 65536);
		for (n = 0; n < 4; n++)
			EXPECT_LE(0, status_of(pair.a, n));
		/* Nothing came behind the end. */
		EXPECT_EQ(0, memcmp(copy, pair.b->memory, 65536));
		pair_close(&pair);
	}
	free(copy);
	side_close(&self->side);
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_HARNESS_MAIN
