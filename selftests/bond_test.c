// SPDX-License-Identifier: GPL-2.0-only
/*
 * A listener at the address of a bond: when the bond fails over, the address is behind
 * another device, and so is the listener. Two veth pairs, an active-backup bond of one end
 * of each, and a soft-RoCE device below each.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>

#include "cable.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define FIRST	"rxe6"	/* on s0 */
#define SECOND	"rxe7"	/* on s1 */
#define ADDRESS	"10.86.0.1"

FIXTURE(bond)
{
	struct calm calm;
	struct side asking;
	struct side asked;
	struct ibchan_address address;
	__u32 listener;
	int listener_fd;
	const char *device;
};

FIXTURE_VARIANT(bond)
{
	const char *fail_over_mac;
};

/* The bond's hardware address changes, or its members have the same. */
FIXTURE_VARIANT_ADD(bond, of_own_hardware_addresses) { .fail_over_mac = "active" };
FIXTURE_VARIANT_ADD(bond, of_one_hardware_address) { .fail_over_mac = "none" };

static int lay(const char *fail_over_mac)
{
	return sh("set -e; ip link add s0 type veth peer name s2;"
		  "ip link add s1 type veth peer name s3;"
		  "ip link add bond6 type bond mode active-backup miimon 50 fail_over_mac %s;"
		  "ip link set s0 master bond6; ip link set s1 master bond6;"
		  "for i in s2 s3 s0 s1 bond6; do ip link set $i up; done;"
		  "ip link set bond6 type bond active_slave s0;"
		  "ip addr add " ADDRESS "/24 dev bond6;"
		  "rdma link add " FIRST " type rxe netdev s0;"
		  "rdma link add " SECOND " type rxe netdev s1", fail_over_mac);
}

static void cut(void)
{
	sh("rdma link delete " FIRST " || :; rdma link delete " SECOND " || :;"
	   "ip link delete bond6 || :; ip link delete s0 || :; ip link delete s1 || :");
}

static bool has_address(void *arg)
{
	FIXTURE_DATA(bond) * self = arg;
	struct side_options options = side_defaults();

	options.device = self->device;
	if (side_open(&self->asking, &options))
		return false;
	if (!memcmp(self->asking.endpoint.gid + 12, self->address.bytes, 4))
		return true;
	side_close(&self->asking);
	return false;
}

/* On the device that has the address: nothing tells when it has. */
static int open_both(FIXTURE_DATA(bond) * self, const char *device)
{
	struct side_options options = side_defaults();

	options.device = device;
	self->device = device;
	if (!eventually(has_address, self))
		return -ETIMEDOUT;
	return side_open(&self->asked, &options);
}

static void close_both(FIXTURE_DATA(bond) * self)
{
	side_close(&self->asking);
	side_close(&self->asked);
}

FIXTURE_SETUP(bond)
{
	self->address = (struct ibchan_address){ .family = AF_INET };
	self->listener_fd = -1;
	inet_pton(AF_INET, ADDRESS, self->address.bytes);
	ASSERT_EQ(0, calm_begin(&self->calm));
	sh("modprobe -q bonding max_bonds=0");
	if (sh("ip link add bond6 type bond && ip link delete bond6"))
		SKIP(return, "this kernel has no bonds");
	ASSERT_EQ(0, lay(variant->fail_over_mac));
}

FIXTURE_TEARDOWN(bond)
{
	close_both(self);
	if (self->listener_fd >= 0)
		close(self->listener_fd);
	cut();
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* Refused, as long as nobody listens there. */
static bool has_asked(void *arg)
{
	FIXTURE_DATA(bond) * self = arg;
	struct pollfd pollfd = { .fd = self->listener_fd, .events = POLLIN };
	struct ibchan_cmd_channel_connect cmd = { .peer = self->address };

	if (!has_address(self))
		return false;
	cmd.channel = self->asking.channel;
	if (!cmd_channel_connect(self->asking.fd, &cmd) && poll(&pollfd, 1, 1000) == 1)
		return true;
	side_close(&self->asking);
	return false;
}

static bool is_connected(void *arg)
{
	return side_state(arg) == IBCHAN_CHANNEL_CONNECTED;
}

static bool has_broken(void *arg)
{
	return side_state(arg) == IBCHAN_CHANNEL_BROKEN;
}

/* @fd is the listener's file. */
static int meet(FIXTURE_DATA(bond) * self, int fd, const struct side *asked)
{
	struct ibchan_cmd_request_take take = { .listener = self->listener };
	struct ibchan_cmd_request_accept accept = { .channel = asked->channel };
	int rc;

	side_close(&self->asking);
	if (!eventually(has_asked, self))
		return -ETIMEDOUT;
	rc = cmd_request_take(fd, &take);
	accept.request = take.out_request;
	rc = rc ?: cmd_request_accept(fd, &accept);
	if (rc)
		return rc;
	return eventually(is_connected, &self->asking) ? 0 : -ECONNREFUSED;
}

static int ends_without_address(struct side *side)
{
	struct ibchan_cmd_channel_query state;

	if (!eventually(has_broken, side) || side_query(side, &state))
		return -ETIMEDOUT;
	return state.out.error == EADDRNOTAVAIL ? 0 : -(int)state.out.error;
}

TEST_F(bond, that_fails_over_ends_what_is_connected_and_takes_its_listeners_along)
{
	struct ibchan_cmd_listener_create listen = { .address = self->address };
	struct side first;

	ASSERT_EQ(0, open_both(self, FIRST));
	first = self->asked;
	ASSERT_EQ(0, cmd_listener_create(first.fd, &listen));
	self->listener = listen.out_listener;
	self->listener_fd = listen.out_fd;
	self->address = listen.out_address;
	EXPECT_EQ(0, meet(self, first.fd, &first));
	EXPECT_EQ(0, exchange(&self->asking, &first));
	ASSERT_EQ(0, post_receives(&self->asking, 1, 1, 64));
	ASSERT_EQ(0, sh("ip link set bond6 type bond active_slave s1"));
	EXPECT_EQ(0, ends_without_address(&self->asking));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(&self->asking, 1));
	EXPECT_EQ(0, ends_without_address(&first));
	side_close(&self->asking);
	/* By the other device nothing leads to who listens on the first one. */
	self->device = SECOND;
	EXPECT_TRUE(eventually(has_asked, self));
}

TEST_HARNESS_MAIN
