// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the choice of an address thinks of each kind: link-local, deprecated, that another
 * host has, that nobody but this host reaches. On two soft-RoCE devices of its own.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>

#include "cable.h"
#include "gid.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define NEAR		CABLE_NEAR
#define LINK_LOCAL	"fe80::88"

FIXTURE(rule)
{
	struct calm calm;
	struct side_options options;
	int fd;
};

static int await(const FIXTURE_DATA(rule) * self, const char *address, int verdict)
{
	struct expected_gid expected = {
		.fd = self->fd, .device = NEAR, .address = address, .verdict = verdict,
	};

	return gid_await(&expected);
}

FIXTURE_SETUP(rule)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, cable_lay());
	self->fd = node_open();
	ASSERT_LE(0, self->fd);
	self->options = side_defaults();
	self->options.device = NEAR;
	ASSERT_EQ(0, await(self, "10.88.0.1", IBCHAN_GID_VERDICT_CHOSEN));
}

FIXTURE_TEARDOWN(rule)
{
	close(self->fd);
	cable_cut();
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* The address of a channel that takes what it is given. */
static int built_with(FIXTURE_DATA(rule) * self, const char *address)
{
	__u8 gid[IBCHAN_GID_SIZE];
	struct side side;
	int rc = side_open(&side, &self->options);

	gid_of(address, gid);
	if (!rc && memcmp(gid, side.endpoint.gid, sizeof(gid)))
		rc = -EADDRNOTAVAIL;
	side_close(&side);
	return rc;
}

TEST_F(rule, takes_a_link_local_address_of_ipv4_last_even_if_it_was_there_first)
{
	ASSERT_EQ(0, sh("ip addr flush dev w0; ip addr add 169.254.3.3/16 dev w0"));
	ASSERT_EQ(0, await(self, "169.254.3.3", IBCHAN_GID_VERDICT_CHOSEN));
	EXPECT_EQ(0, built_with(self, "169.254.3.3"));
	ASSERT_EQ(0, sh("ip addr add 10.88.0.1/24 dev w0"));
	ASSERT_EQ(0, await(self, "10.88.0.1", IBCHAN_GID_VERDICT_CHOSEN));
	EXPECT_EQ(0, await(self, "169.254.3.3", IBCHAN_GID_VERDICT_LINK_LOCAL));
	EXPECT_EQ(0, built_with(self, "10.88.0.1"));
}

TEST_F(rule, takes_ipv6_before_a_link_local_address_of_ipv4)
{
	ASSERT_EQ(0, sh("ip addr flush dev w0; ip addr add 169.254.3.3/16 dev w0;"
			"ip addr add fd88::1/64 dev w0 nodad"));
	EXPECT_EQ(0, await(self, "fd88::1", IBCHAN_GID_VERDICT_CHOSEN));
	EXPECT_EQ(0, await(self, "169.254.3.3", IBCHAN_GID_VERDICT_LINK_LOCAL));
}

TEST_F(rule, takes_a_deprecated_address_after_one_that_is_not)
{
	ASSERT_EQ(0, sh("ip addr flush dev w0;"
			"ip addr add 10.88.0.5/24 dev w0 valid_lft 3600 preferred_lft 0"));
	ASSERT_EQ(0, await(self, "10.88.0.5", IBCHAN_GID_VERDICT_CHOSEN));
	ASSERT_EQ(0, sh("ip addr add fd88::1/64 dev w0 nodad"));
	EXPECT_EQ(0, await(self, "fd88::1", IBCHAN_GID_VERDICT_CHOSEN));
	EXPECT_EQ(0, await(self, "10.88.0.5", IBCHAN_GID_VERDICT_DEPRECATED));
}

/* The other end of the cable has it, and answers. */
TEST_F(rule, does_not_take_an_address_that_another_host_has)
{
	ASSERT_EQ(0, sh("ip addr flush dev w0; ip addr add fd88::66/64 dev w1 nodad;"
			"echo 1 >/proc/sys/net/ipv6/conf/w0/accept_dad;"
			"ip addr add fd88::66/64 dev w0"));
	EXPECT_EQ(0, await(self, "fd88::66", IBCHAN_GID_VERDICT_DUPLICATE));
	EXPECT_EQ(-EADDRNOTAVAIL, built_with(self, "fd88::66"));
	ASSERT_EQ(0, sh("ip addr add fd88::1/64 dev w0 nodad"));
	EXPECT_EQ(0, await(self, "fd88::1", IBCHAN_GID_VERDICT_CHOSEN));
	EXPECT_EQ(0, built_with(self, "fd88::1"));
}

/* It asks once in a second, and so often that a test has ended before. */
TEST_F(rule, does_not_take_an_address_that_is_not_known_to_be_its_own)
{
	ASSERT_EQ(0, sh("echo 1 >/proc/sys/net/ipv6/conf/w0/accept_dad;"
			"echo 600 >/proc/sys/net/ipv6/conf/w0/dad_transmits;"
			"ip addr flush dev w0; ip addr add fd88::1/64 dev w0"));
	EXPECT_EQ(0, await(self, "fd88::1", IBCHAN_GID_VERDICT_TENTATIVE));
	EXPECT_EQ(-EADDRNOTAVAIL, built_with(self, "fd88::1"));
	ASSERT_EQ(0, sh("ip addr del fd88::1/64 dev w0; ip addr add fd88::1/64 dev w0 nodad"));
	EXPECT_EQ(0, await(self, "fd88::1", IBCHAN_GID_VERDICT_CHOSEN));
}

TEST_F(rule, does_not_take_an_address_of_the_hosts_own_scope)
{
	ASSERT_EQ(0, sh("ip addr flush dev w0; ip addr add 10.88.0.7/32 dev w0 scope host"));
	EXPECT_EQ(0, await(self, "10.88.0.7", IBCHAN_GID_VERDICT_LOOPBACK));
	EXPECT_EQ(-EADDRNOTAVAIL, built_with(self, "10.88.0.7"));
}

/* Peers could not tell it from their own, and it has no Ethernet address. */
TEST_F(rule, does_not_take_an_address_of_the_loopback_device)
{
	ASSERT_EQ(0, sh("rdma link add rxe7 type rxe netdev lo"));
	self->options.device = "rxe7";
	EXPECT_EQ(-EADDRNOTAVAIL, built_with(self, "127.0.0.1"));
	EXPECT_EQ(0, sh("rdma link delete rxe7"));
}

/* The first entries of a table are link-local addresses, whether or not there are such. */
TEST_F(rule, does_not_take_an_address_that_the_network_device_has_not)
{
	EXPECT_EQ(0, await(self, "fe80::ff:fe88:1", IBCHAN_GID_VERDICT_LINK_LOCAL));
	ASSERT_EQ(0, sh("ip addr flush dev w0"));
	EXPECT_EQ(0, await(self, "fe80::ff:fe88:1", IBCHAN_GID_VERDICT_NO_ADDRESS));
	EXPECT_EQ(0, await(self, "10.88.0.1", -ENOENT));
	EXPECT_EQ(-EADDRNOTAVAIL, built_with(self, "fe80::ff:fe88:1"));
}

/* ---- Where there is nothing but a link-local address ---- */

static int link_local_only(const FIXTURE_DATA(rule) * self)
{
	int rc = sh("ip addr flush dev w0; ip addr flush dev w1;"
		    "ip addr add " LINK_LOCAL "/64 dev w0 nodad;"
		    "ip addr add fe80::99/64 dev w1 nodad");

	return rc ?: await(self, LINK_LOCAL, IBCHAN_GID_VERDICT_CHOSEN);
}

TEST_F(rule, lets_ends_shake_hands_by_link_local_addresses_where_there_are_no_others)
{
	struct pair pair;

	ASSERT_EQ(0, link_local_only(self));
	ASSERT_EQ(0, pair_open(&pair, PAIR_SAME_DEVICE, &self->options));
	EXPECT_EQ(0, exchange(pair.a, pair.b));
	EXPECT_EQ(0, exchange(pair.b, pair.a));
	pair_close(&pair);
}

static bool has_settled(void *arg)
{
	return side_state(arg) != IBCHAN_CHANNEL_CONNECTING;
}

static int connect_by(const struct pair *pair, const struct ibchan_address *address)
{
	struct ibchan_cmd_listener_create create = { .address = *address };
	struct ibchan_cmd_channel_connect ask = { .channel = pair->a->channel };
	int rc = cmd_listener_create(pair->b->fd, &create);

	ask.peer = create.out_address;
	ask.peer.scope_id = address->scope_id;
	rc = rc ?: cmd_channel_connect(pair->a->fd, &ask);
	rc = rc ?: side_accept(pair->b, create.out_listener, create.out_fd);
	close(create.out_fd);
	if (rc)
		return rc;
	if (!eventually(has_settled, pair->a) || !eventually(has_settled, pair->b))
		return -ETIMEDOUT;
	return side_state(pair->a) == IBCHAN_CHANNEL_CONNECTED &&
	       side_state(pair->b) == IBCHAN_CHANNEL_CONNECTED ? 0 : -ENOTCONN;
}

TEST_F(rule, lets_ends_connect_by_a_link_local_address_where_there_is_no_other)
{
	struct ibchan_address address = { .family = AF_INET6 };
	struct pair pair;

	ASSERT_EQ(0, link_local_only(self));
	inet_pton(AF_INET6, LINK_LOCAL, address.bytes);
	address.scope_id = if_nametoindex("w0");
	ASSERT_EQ(0, pair_build(&pair, PAIR_SAME_DEVICE, &self->options));
	ASSERT_EQ(0, connect_by(&pair, &address));
	EXPECT_EQ(0, exchange(pair.a, pair.b));
	EXPECT_EQ(0, exchange(pair.b, pair.a));
	pair_close(&pair);
}

TEST_HARNESS_MAIN
