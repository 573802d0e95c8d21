// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which address a channel takes, what is said about the others, and what becomes of a
 * channel whose address goes. On two soft-RoCE devices of its own, so that addresses can
 * come and go.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include "cable.h"
#include "gid.h"
#include "test.h"
#include "work.h"
#include "world.h"

#define NEAR	CABLE_NEAR
#define FAR	CABLE_FAR

static int await_verdict(int fd, const char *address, int verdict)
{
	struct expected_gid expected = {
		.fd = fd, .device = NEAR, .address = address, .verdict = verdict,
	};

	return gid_await(&expected);
}

FIXTURE(port)
{
	struct calm calm;
	int fd;
};

FIXTURE_SETUP(port)
{
	struct expected_gid far = { .device = FAR, .address = "10.88.0.2" };

	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, cable_lay());
	ASSERT_EQ(0, sh("ip addr add fd88::1/64 dev w0 nodad"));
	self->fd = node_open();
	ASSERT_LE(0, self->fd);
	far.fd = self->fd;
	ASSERT_EQ(0, await_verdict(self->fd, "10.88.0.1", IBCHAN_GID_VERDICT_CHOSEN));
	ASSERT_EQ(0, await_verdict(self->fd, "fd88::1", IBCHAN_GID_VERDICT_LOWER_RANK));
	ASSERT_EQ(0, gid_await(&far));
}

FIXTURE_TEARDOWN(port)
{
	close(self->fd);
	cable_cut();
	EXPECT_EQ(0, calm_end(&self->calm));
}

/* ---- What is said about a table ---- */

TEST_F(port, tells_of_each_address_once_and_has_chosen_the_one_that_channels_take)
{
	struct ibchan_cmd_port_query port = { .port = 1, .name = NEAR };
	unsigned int told = 0, chosen = 0;
	struct ibchan_cmd_gid_query cmd;
	__u32 index = 0;
	int rc;

	ASSERT_EQ(0, cmd_port_query(self->fd, &port));
	while (!(rc = gid_query(self->fd, NEAR, index, &cmd))) {
		ASSERT_LE(index, cmd.out.index);
		index = cmd.out.index + 1;
		told++;
		if (cmd.out.verdict != IBCHAN_GID_VERDICT_CHOSEN)
			continue;
		chosen++;
		EXPECT_EQ(port.out.gid_index, cmd.out.index);
		EXPECT_EQ(0, memcmp(port.out.gid, cmd.out.gid, sizeof(cmd.out.gid)));
	}
	EXPECT_EQ(-ENOENT, rc);
	EXPECT_LE(3, told);
	EXPECT_EQ(1, chosen);
	EXPECT_EQ(-ENOENT, gid_query(self->fd, NEAR, port.out.gid_entries, &cmd));
	EXPECT_EQ(-ENOENT, gid_query(self->fd, NEAR, 0xffffffff, &cmd));
}

TEST_F(port, tells_what_is_behind_an_address)
{
	static const __u8 mac[6] = { 2, 0, 0, 0x88, 0, 1 };
	struct ibchan_cmd_gid_query cmd;

	ASSERT_EQ(0, gid_find(self->fd, NEAR, "10.88.0.1", NULL, &cmd));
	EXPECT_EQ(IBCHAN_GID_TYPE_ROCE_V2, cmd.out.type);
	EXPECT_EQ(if_nametoindex("w0"), cmd.out.ndev_index);
	EXPECT_STREQ("w0", cmd.out.ndev_name);
	EXPECT_EQ(1500, cmd.out.ndev_mtu);
	EXPECT_EQ(IBCHAN_VLAN_NONE, cmd.out.vlan_id);
	EXPECT_EQ(0, memcmp(mac, cmd.out.mac, sizeof(mac)));
}

TEST_F(port, refuses_what_is_no_port_and_no_device)
{
	struct ibchan_cmd_gid_query cmd = { .port = 0, .name = NEAR };

	EXPECT_EQ(-EINVAL, cmd_gid_query(self->fd, &cmd));
	cmd.port = 2;
	EXPECT_EQ(-EINVAL, cmd_gid_query(self->fd, &cmd));
	cmd.port = 0xffffffff;
	EXPECT_EQ(-EINVAL, cmd_gid_query(self->fd, &cmd));
	cmd.port = 1;
	memset(cmd.name, 'x', sizeof(cmd.name));
	EXPECT_EQ(-EINVAL, cmd_gid_query(self->fd, &cmd));
	EXPECT_EQ(-ENODEV, gid_query(self->fd, "rxe99", 0, &cmd));
}

TEST_F(port, takes_the_first_of_two_that_are_as_good)
{
	ASSERT_EQ(0, sh("ip addr add 10.88.0.3/24 dev w0"));
	EXPECT_EQ(0, await_verdict(self->fd, "10.88.0.3", IBCHAN_GID_VERDICT_SAME_RANK));
	ASSERT_EQ(0, sh("ip addr del 10.88.0.3/24 dev w0"));
	EXPECT_EQ(0, await_verdict(self->fd, "10.88.0.3", -ENOENT));
}

TEST_F(port, has_an_address_of_the_family_that_the_builder_wants)
{
	struct side_options options = side_defaults();
	struct side four, six;

	options.device = NEAR;
	options.params.gid_index = IBCHAN_AUTO_IPV4;
	ASSERT_EQ(0, side_open(&four, &options));
	EXPECT_EQ(10, four.endpoint.gid[12]);
	options.params.gid_index = IBCHAN_AUTO_IPV6;
	ASSERT_EQ(0, side_open(&six, &options));
	EXPECT_EQ(0xfd, six.endpoint.gid[0]);
	EXPECT_EQ(0, side_handshake(&six, &six.endpoint));
	EXPECT_EQ(0, exchange(&six, &six));
	side_close(&four);
	side_close(&six);
}

TEST_F(port, without_an_address_of_the_wanted_family_is_refused_and_says_so)
{
	struct ibchan_cmd_channel_build cmd;
	struct side_options options = side_defaults();
	struct side side;

	/* Then the far device has but one, of IPv4. */
	ASSERT_EQ(0, sh("ip -6 addr flush dev w1"));
	options.device = FAR;
	ASSERT_EQ(0, side_open(&side, &options));
	cmd = (struct ibchan_cmd_channel_build) {
		.pd = side.pd,
		.send_cq = side.ring->cq,
		.recv_cq = side.ring->cq,
		.params = default_params(),
	};
	cmd.params.gid_index = IBCHAN_AUTO_IPV6;
	EXPECT_EQ(-EADDRNOTAVAIL, cmd_channel_build(side.fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_NO_GID, cmd.reason.code);
	EXPECT_EQ(IBCHAN_GID_VERDICT_OTHER_FAMILY, cmd.reason.value[2]);
	side_close(&side);
}

TEST_F(port, that_is_down_takes_none_and_says_so_of_each)
{
	ASSERT_EQ(0, sh("ip link set w0 down"));
	EXPECT_EQ(0, await_verdict(self->fd, "10.88.0.1", IBCHAN_GID_VERDICT_NDEV_DOWN));
	ASSERT_EQ(0, sh("ip link set w0 up"));
	EXPECT_EQ(0, await_verdict(self->fd, "10.88.0.1", IBCHAN_GID_VERDICT_CHOSEN));
	ASSERT_EQ(0, sh("ip link set w1 down"));
	EXPECT_EQ(0, await_verdict(self->fd, "10.88.0.1", IBCHAN_GID_VERDICT_NO_CARRIER));
}

/* From there neither the address is told nor anything of the network device. */
static int look_from_another_namespace(void *arg)
{
	struct ibchan_cmd_gid_query cmd;
	__u32 index, wanted;
	int fd = *(int *)arg;
	int rc;

	rc = gid_find(fd, NEAR, "10.88.0.1", NULL, &cmd);
	wanted = cmd.out.index;
	if (rc)
		return rc;
	if (unshare(CLONE_NEWNET))
		return -errno;
	rc = gid_query(fd, NEAR, wanted, &cmd);
	if (rc)
		return rc;
	if (cmd.out.index != wanted || cmd.out.verdict != IBCHAN_GID_VERDICT_OTHER_NAMESPACE ||
	    cmd.out.ndev_index || cmd.out.ndev_name[0] || cmd.out.ndev_mtu || cmd.out.mac[0])
		return -EBADMSG;
	for (index = 0; index < sizeof(cmd.out.gid); index++)
		if (cmd.out.gid[index])
			return -EACCES;
	return 0;
}

TEST_F(port, has_nothing_for_another_namespace)
{
	EXPECT_EQ(0, in_child(look_from_another_namespace, &self->fd));
}

TEST_F(port, without_a_fitting_address_is_refused_with_the_verdict_on_the_best)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_channel_build cmd;
	struct side side;

	options.device = NEAR;
	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, sh("ip addr flush dev w0"));
	ASSERT_EQ(0, await_verdict(self->fd, "10.88.0.1", -ENOENT));
	ASSERT_EQ(0, await_verdict(self->fd, "fd88::1", -ENOENT));
	cmd = (struct ibchan_cmd_channel_build) {
		.pd = side.pd,
		.send_cq = side.ring->cq,
		.recv_cq = side.ring->cq,
		.params = default_params(),
	};
	EXPECT_EQ(-EADDRNOTAVAIL, cmd_channel_build(side.fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_NO_GID, cmd.reason.code);
	EXPECT_EQ(1, cmd.reason.value[0]);
	EXPECT_LE(3, cmd.reason.value[1]);
	EXPECT_EQ(IBCHAN_GID_VERDICT_NO_ADDRESS, cmd.reason.value[2]);
	side_close(&side);
}

/* ---- Network devices on top of the port's ---- */

static int add_vlans(void)
{
	return sh("modprobe -q 8021q || :;"
		  "ip link add link w0 name w0.7 type vlan id 7;"
		  "ip link add link w1 name w1.7 type vlan id 7") ||
	       ndevs_up("w0.7", "w1.7", "10.87.0");
}

TEST_F(port, takes_an_address_with_a_tag_only_where_there_is_none_without)
{
	struct expected_gid near = {
		.fd = self->fd, .device = NEAR, .address = "10.87.0.1",
		.verdict = IBCHAN_GID_VERDICT_LOWER_RANK,
	};

	if (add_vlans())
		SKIP(return, "this kernel has no VLANs");
	ASSERT_EQ(0, gid_await(&near));
	EXPECT_EQ(7, near.seen.out.vlan_id);
	EXPECT_STREQ("w0.7", near.seen.out.ndev_name);
	ASSERT_EQ(0, sh("ip link set w0.7 down"));
	near.verdict = IBCHAN_GID_VERDICT_NDEV_DOWN;
	EXPECT_EQ(0, gid_await(&near));
	ASSERT_EQ(0, sh("ip link set w0.7 up; ip addr del 10.88.0.1/24 dev w0"));
	near.verdict = IBCHAN_GID_VERDICT_CHOSEN;
	EXPECT_EQ(0, gid_await(&near));
}

TEST_F(port, of_a_bond_takes_the_address_of_the_bond)
{
	struct expected_gid near = {
		.fd = self->fd, .device = NEAR, .address = "10.86.0.1", .ndev = "bond8",
		.verdict = IBCHAN_GID_VERDICT_CHOSEN,
	};

	if (sh("modprobe -q bonding max_bonds=0 || :;"
	       "ip link add bond8 type bond mode active-backup"))
		SKIP(return, "this kernel has no bonds");
	EXPECT_EQ(0, sh("ip addr flush dev w0; ip link set w0 down; ip link set w0 master bond8;"
			"ip link set bond8 up; ip addr add 10.86.0.1/24 dev bond8"));
	EXPECT_EQ(0, gid_await(&near));
	EXPECT_EQ(if_nametoindex("bond8"), near.seen.out.ndev_index);
	EXPECT_EQ(0, sh("ip link set bond8 down"));
	near.verdict = IBCHAN_GID_VERDICT_NDEV_DOWN;
	EXPECT_EQ(0, gid_await(&near));
	EXPECT_EQ(0, sh("ip link set w0 nomaster; ip link delete bond8"));
}

/* ---- An address that goes ---- */

struct pair_of_two {
	struct side near;	/* its address is the one that goes */
	struct side far;
};

static int pair_of_two_open(struct pair_of_two *pair)
{
	struct side_options options = side_defaults();
	int rc;

	options.device = NEAR;
	rc = side_open(&pair->near, &options);
	options.device = FAR;
	if (!rc)
		rc = side_open(&pair->far, &options);
	if (!rc)
		rc = side_handshake(&pair->near, &pair->far.endpoint);
	if (!rc)
		rc = side_handshake(&pair->far, &pair->near.endpoint);
	return rc;
}

static void pair_of_two_close(struct pair_of_two *pair)
{
	side_close(&pair->near);
	side_close(&pair->far);
}

TEST_F(port, whose_address_goes_breaks_a_channel_that_only_receives)
{
	struct ibchan_cmd_channel_query state;
	struct ibchan_submit_wr wr;
	struct ibchan_cmd_submit cmd;
	struct pair_of_two pair;
	unsigned int i;
	__u64 start;

	ASSERT_EQ(0, pair_of_two_open(&pair));
	ASSERT_EQ(0, exchange(&pair.far, &pair.near));
	ASSERT_EQ(0, post_receives(&pair.near, 0, 8, 64));
	ASSERT_EQ(0, sh("ip addr del 10.88.0.1/24 dev w0"));
	start = now_ms();
	for (i = 0; i < 8; i++)
		EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(&pair.near, i));
	EXPECT_GE(patience_ms() / 2, (long)(now_ms() - start));
	ASSERT_EQ(0, side_query(&pair.near, &state));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, state.out.state);
	EXPECT_EQ(EADDRNOTAVAIL, state.out.error);
	EXPECT_EQ(0, state.out.recvs_in_flight);
	wr = work(&pair.near, IBCHAN_OP_RECV, 99, 0, 64);
	cmd = submission(&wr, 1);
	EXPECT_EQ(-ESHUTDOWN, cmd_submit(pair.near.fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_BROKEN, cmd.reason.code);
	EXPECT_EQ(EADDRNOTAVAIL, cmd.reason.value[0]);
	pair_of_two_close(&pair);
}

TEST_F(port, that_loses_another_address_leaves_a_channel_alone)
{
	struct pair_of_two pair;

	ASSERT_EQ(0, pair_of_two_open(&pair));
	ASSERT_EQ(0, sh("ip addr add 10.88.0.3/24 dev w0"));
	ASSERT_EQ(0, await_verdict(self->fd, "10.88.0.3", IBCHAN_GID_VERDICT_SAME_RANK));
	ASSERT_EQ(0, sh("ip addr del 10.88.0.3/24 dev w0; ip addr del fd88::1/64 dev w0"));
	ASSERT_EQ(0, await_verdict(self->fd, "10.88.0.3", -ENOENT));
	ASSERT_EQ(0, await_verdict(self->fd, "fd88::1", -ENOENT));
	EXPECT_EQ(0, exchange(&pair.far, &pair.near));
	EXPECT_EQ(0, exchange(&pair.near, &pair.far));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(&pair.near));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, side_state(&pair.far));
	pair_of_two_close(&pair);
}

TEST_F(port, whose_address_comes_back_serves_a_new_channel_and_not_the_old_one)
{
	struct pair_of_two pair, next;

	ASSERT_EQ(0, pair_of_two_open(&pair));
	ASSERT_EQ(0, post_receives(&pair.near, 0, 1, 64));
	ASSERT_EQ(0, sh("ip addr del 10.88.0.1/24 dev w0; ip addr add 10.88.0.1/24 dev w0"));
	EXPECT_EQ(IBCHAN_STATUS_WR_FLUSH_ERR, status_of(&pair.near, 0));
	EXPECT_EQ(IBCHAN_CHANNEL_BROKEN, side_state(&pair.near));
	ASSERT_EQ(0, await_verdict(self->fd, "10.88.0.1", IBCHAN_GID_VERDICT_CHOSEN));
	ASSERT_EQ(0, pair_of_two_open(&next));
	EXPECT_EQ(0, exchange(&next.near, &next.far));
	pair_of_two_close(&next);
	pair_of_two_close(&pair);
}

/* It has nothing that could wait for ever, and the address may come back. */
TEST_F(port, whose_address_goes_lets_a_prepared_channel_find_out_at_its_handshake)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_channel_handshake cmd = {};
	struct side side;

	options.device = NEAR;
	ASSERT_EQ(0, side_open(&side, &options));
	ASSERT_EQ(0, sh("ip addr del 10.88.0.1/24 dev w0"));
	ASSERT_EQ(0, await_verdict(self->fd, "10.88.0.1", -ENOENT));
	cmd.channel = side.channel;
	cmd.endpoint = side.endpoint;
	EXPECT_EQ(-EADDRNOTAVAIL, cmd_channel_handshake(side.fd, &cmd));
	EXPECT_EQ(IBCHAN_REASON_GID_GONE, cmd.reason.code);
	EXPECT_EQ(1, cmd.reason.value[0]);
	EXPECT_EQ(side.params.gid_index, cmd.reason.value[1]);
	EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&side));
	ASSERT_EQ(0, sh("ip addr add 10.88.0.1/24 dev w0"));
	ASSERT_EQ(0, await_verdict(self->fd, "10.88.0.1", IBCHAN_GID_VERDICT_CHOSEN));
	EXPECT_EQ(0, side_handshake(&side, &side.endpoint));
	EXPECT_EQ(0, exchange(&side, &side));
	side_close(&side);
}

/* ---- The way to a peer ---- */

/* A gateway that is silent is waited for 2 s. */
#define SHORT_OF_WAIT_MS	1900

/* A side on the near device whose handshakes are the subject. */
static int near_open(struct side *side, const struct side_options *changed)
{
	struct side_options options = changed ? *changed : side_defaults();

	options.device = NEAR;
	return side_open(side, &options);
}

/* A handshake with a peer at @address, who need not exist. */
static int handshake_with(const struct side *side, const char *address,
			  struct ibchan_reason *reason)
{
	struct ibchan_cmd_channel_handshake cmd = {
		.channel = side->channel, .endpoint = side->endpoint,
	};
	int rc;

	gid_of(address, cmd.endpoint.gid);
	rc = cmd_channel_handshake(side->fd, &cmd);
	*reason = cmd.reason;
	return rc;
}

static bool names_ipv4(const struct ibchan_reason *reason, const char *address)
{
	return !reason->value[1] &&
	       reason->value[2] == (0xffff00000000ULL | ntohl(inet_addr(address)));
}

TEST_F(port, without_a_route_to_the_peer_says_so_and_takes_the_next_one)
{
	struct ibchan_reason reason;
	struct side side;

	ASSERT_EQ(0, near_open(&side, NULL));
	EXPECT_EQ(-EHOSTUNREACH, handshake_with(&side, "10.98.0.1", &reason));
	EXPECT_EQ(IBCHAN_REASON_NO_ROUTE, reason.code);
	EXPECT_EQ(ENETUNREACH, reason.value[0]);
	EXPECT_TRUE(names_ipv4(&reason, "10.98.0.1"));
	ASSERT_EQ(0, sh("ip route add unreachable 10.97.0.0/24"));
	EXPECT_EQ(-EHOSTUNREACH, handshake_with(&side, "10.97.0.1", &reason));
	EXPECT_EQ(IBCHAN_REASON_NO_ROUTE, reason.code);
	EXPECT_EQ(EHOSTUNREACH, reason.value[0]);
	EXPECT_EQ(0, sh("ip route del unreachable 10.97.0.0/24"));
	EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&side));
	EXPECT_EQ(0, side_handshake(&side, &side.endpoint));
	EXPECT_EQ(0, exchange(&side, &side));
	side_close(&side);
}

TEST_F(port, with_an_ipv6_address_asks_the_ipv6_routes)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_gid_query six;
	struct ibchan_reason reason;
	struct side side;

	ASSERT_EQ(0, gid_find(self->fd, NEAR, "fd88::1", NULL, &six));
	options.params.gid_index = six.out.index;
	ASSERT_EQ(0, near_open(&side, &options));
	EXPECT_EQ(-EHOSTUNREACH, handshake_with(&side, "fd99::1", &reason));
	EXPECT_EQ(IBCHAN_REASON_NO_ROUTE, reason.code);
	EXPECT_EQ(ENETUNREACH, reason.value[0]);
	EXPECT_EQ(0xfd99ULL << 48, reason.value[1]);
	EXPECT_EQ(1, reason.value[2]);
	EXPECT_EQ(0, handshake_with(&side, "fd88::55", &reason));
	side_close(&side);
}

/* Its MAC is in the endpoint; whether it is there is for the work to find out. */
TEST_F(port, does_not_wait_for_a_neighbour_that_is_silent)
{
	struct ibchan_reason reason;
	struct side side;
	__u64 start;

	ASSERT_EQ(0, near_open(&side, NULL));
	start = now_ms();
	EXPECT_EQ(0, handshake_with(&side, "10.88.0.55", &reason));
	EXPECT_GE(slow() ? 5000 : SHORT_OF_WAIT_MS, now_ms() - start);
	EXPECT_NE(0, sh("ip neigh show 10.88.0.55 dev w0 | grep -q ."));
	side_close(&side);
}

static int open_at(int fd, struct side *side, const char *address)
{
	struct side_options options = side_defaults();
	struct ibchan_cmd_gid_query seen;
	int rc = gid_find(fd, NEAR, address, NULL, &seen);

	options.params.ack_retries = 1;
	options.params.gid_index = seen.out.index;
	return rc ?: near_open(side, &options);
}

/*
 * A message to another address of the same port, by an endpoint with another MAC: soft-RoCE takes
 * for itself what goes to its own one, and sends the rest away.
 */
static int send_to_a_wrong_mac(int fd, const char *from, const char *to)
{
	struct pair_of_two pair = {};
	int rc = open_at(fd, &pair.near, from) ?: open_at(fd, &pair.far, to);

	rc = rc ?: side_handshake(&pair.far, &pair.near.endpoint);
	pair.far.endpoint.mac[5] ^= 0x40;
	rc = rc ?: side_handshake(&pair.near, &pair.far.endpoint);
	rc = rc ?: exchange(&pair.near, &pair.far);
	pair_of_two_close(&pair);
	return rc;
}

static int neighbours_are(const char *state)
{
	return sh("ip neigh replace 10.88.0.3 lladdr 02:00:00:88:00:01 dev w0 nud %1$s;"
		  "ip neigh replace fd88::3 lladdr 02:00:00:88:00:01 dev w0 nud %1$s", state);
}

/* What was learned is no word of the administrator's: the peer's own goes before it. */
TEST_F(port, takes_the_mac_of_a_permanent_neighbour_before_that_of_the_endpoint)
{
	ASSERT_EQ(0, sh("ip addr add 10.88.0.3/24 dev w0; ip addr add fd88::3/64 dev w0 nodad"));
	ASSERT_EQ(0, await_verdict(self->fd, "10.88.0.3", IBCHAN_GID_VERDICT_SAME_RANK));
	ASSERT_EQ(0, await_verdict(self->fd, "fd88::3", IBCHAN_GID_VERDICT_LOWER_RANK));
	ASSERT_EQ(0, neighbours_are("permanent"));
	EXPECT_EQ(0, send_to_a_wrong_mac(self->fd, "10.88.0.1", "10.88.0.3"));
	EXPECT_EQ(0, send_to_a_wrong_mac(self->fd, "fd88::1", "fd88::3"));
	ASSERT_EQ(0, neighbours_are("reachable"));
	EXPECT_GT(0, send_to_a_wrong_mac(self->fd, "10.88.0.1", "10.88.0.3"));
	EXPECT_GT(0, send_to_a_wrong_mac(self->fd, "fd88::1", "fd88::3"));
}

#define SILENT		"10.88.0.77"
#define SILENT_GATEWAY	"ip route add 10.96.0.0/24 via " SILENT " dev w0"

TEST_F(port, waits_a_while_for_a_gateway_and_then_says_that_it_is_silent)
{
	struct ibchan_reason reason;
	struct side side;
	__u64 start;

	ASSERT_EQ(0, sh(SILENT_GATEWAY));
	ASSERT_EQ(0, near_open(&side, NULL));
	start = now_ms();
	EXPECT_EQ(-EHOSTUNREACH, handshake_with(&side, "10.96.0.1", &reason));
	EXPECT_LE(SHORT_OF_WAIT_MS, now_ms() - start);
	EXPECT_GE(patience_ms() / 2, (long)(now_ms() - start));
	EXPECT_EQ(IBCHAN_REASON_NEXT_HOP, reason.code);
	EXPECT_EQ(ETIMEDOUT, reason.value[0]);
	EXPECT_TRUE(names_ipv4(&reason, "10.96.0.1"));
	EXPECT_EQ(IBCHAN_CHANNEL_PREPARED, side_state(&side));
	side_close(&side);
}

/* Again and again, so that it waits whenever something comes. */
static int ask_silent_gateway(void)
{
	__u64 end = now_ms() + patience_ms();
	struct ibchan_reason reason;
	struct side side;
	int rc = near_open(&side, NULL);

	if (rc)
		return rc;
	do
		rc = handshake_with(&side, "10.96.0.1", &reason);
	while (rc == -EHOSTUNREACH && now_ms() < end);
	return rc;
}

/* A child that waits for the gateway. */
static pid_t waiting_child(void)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child)
		_exit(-ask_silent_gateway());
	return child;
}

TEST_F(port, lets_go_of_a_process_that_is_killed_while_it_waits_for_a_gateway)
{
	__u64 start;
	pid_t child;

	ASSERT_EQ(0, sh(SILENT_GATEWAY));
	child = waiting_child();
	EXPECT_TRUE(eventually(neighbour_is_asked, SILENT));
	start = now_ms();
	EXPECT_EQ(0, kill(child, SIGKILL));
	EXPECT_EQ(-EINTR, child_result(child));
	EXPECT_GE(slow() ? 10000 : SHORT_OF_WAIT_MS, now_ms() - start);
}

TEST_F(port, whose_device_leaves_ends_the_wait_for_a_gateway)
{
	pid_t child;
	__u64 start;

	ASSERT_EQ(0, sh(SILENT_GATEWAY));
	child = waiting_child();
	EXPECT_TRUE(eventually(neighbour_is_asked, SILENT));
	start = now_ms();
	EXPECT_EQ(0, sh("rdma link delete " NEAR));
	EXPECT_GE(slow() ? 20000 : 5000, now_ms() - start);
	/* A wait that went on to its end would be followed by -ENODEV. */
	EXPECT_EQ(-ESHUTDOWN, child_result(child));
}

/* What the IP header of a packet from one address to another says; raw sockets see it. */
static int next_header(int raw, const char *from, const char *to, __u8 *tos, __u8 *ttl)
{
	__u64 end = now_ms() + patience_ms();
	__u8 packet[128];
	in_addr_t pair[2] = { inet_addr(from), inet_addr(to) };

	while (now_ms() < end) {
		ssize_t n = recv(raw, packet, sizeof(packet), MSG_DONTWAIT);

		if (n < 20) {
			poll(&(struct pollfd) { .fd = raw, .events = POLLIN }, 1, 100);
			continue;
		}
		if (memcmp(packet + 12, pair, sizeof(pair)))
			continue;
		*tos = packet[1];
		*ttl = packet[8];
		return 0;
	}
	return -ETIMEDOUT;
}

/*
 * In one namespace an address of this host is never behind a gateway. So the far address
 * is away while the near side looks for the way to it.
 */
static int connect_through_gateway(int fd, struct pair_of_two *pair)
{
	struct expected_gid far = {
		.fd = fd, .device = FAR, .address = "10.99.0.9",
		.verdict = IBCHAN_GID_VERDICT_SAME_RANK,
	};
	struct side_options options = side_defaults();
	int rc;

	options.params.traffic_class = 0x68;
	rc = sh("ip addr add 10.99.0.9/32 dev w1") ? -EIO : gid_await(&far);
	if (!rc)
		rc = near_open(&pair->near, &options);
	options.device = FAR;
	options.params.gid_index = far.seen.out.index;
	if (!rc)
		rc = side_open(&pair->far, &options);
	far.verdict = -ENOENT;
	if (!rc)
		rc = sh("ip addr del 10.99.0.9/32 dev w1;"
			"ip route add 10.99.0.0/24 via 10.88.0.2 dev w0 hoplimit 33") ?
		     -EIO : gid_await(&far);
	if (!rc)
		rc = side_handshake(&pair->near, &pair->far.endpoint);
	far.verdict = IBCHAN_GID_VERDICT_SAME_RANK;
	if (!rc)
		rc = sh("ip addr add 10.99.0.9/32 dev w1") ? -EIO : gid_await(&far);
	return rc ? rc : side_handshake(&pair->far, &pair->near.endpoint);
}

TEST_F(port, reaches_a_peer_behind_a_gateway_with_the_hop_limit_of_the_route)
{
	struct pair_of_two pair;
	__u8 tos = 0, ttl = 0;
	int raw;

	ASSERT_EQ(0, connect_through_gateway(self->fd, &pair));
	raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP);
	ASSERT_LE(0, raw);
	ASSERT_EQ(0, exchange(&pair.near, &pair.far));
	ASSERT_EQ(0, next_header(raw, "10.88.0.1", "10.99.0.9", &tos, &ttl));
	EXPECT_EQ(33, ttl);
	EXPECT_EQ(0x68, tos);
	/* The way back is a neighbour's. */
	ASSERT_EQ(0, exchange(&pair.far, &pair.near));
	ASSERT_EQ(0, next_header(raw, "10.99.0.9", "10.88.0.1", &tos, &ttl));
	EXPECT_EQ(64, ttl);
	EXPECT_EQ(0x68, tos);
	close(raw);
	pair_of_two_close(&pair);
}

TEST_HARNESS_MAIN
