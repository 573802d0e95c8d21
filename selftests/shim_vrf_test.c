// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two devices, each with its network device in a VRF of its own. Nothing leads out of one
 * by the routes of the host, so a program says which address it comes from. Devices like hardware
 * connect then; soft-RoCE finds its way, and is deaf.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "cable.h"
#include "shim/dialer.h"
#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define NEAR	"10.77.0.1"	/* on v0, in vrf8 */
#define FAR	"10.77.0.2"	/* on v1, in vrf9 */
#define FAR6	"fd77::2"
#define NEAR6	"fd77::1"

#define VRFS(what) \
	"\"${IBCHAN_SELFTESTS:-selftests}\"/device vrfs " what

#define DEAF_MS	2000

FIXTURE(vrf)
{
	struct calm calm;
	struct meeting m;
	char near[IBCHAN_NAME_SIZE];
};

/* Nothing tells when the device has the address again. */
static bool leads_to_far(void *arg)
{
	FIXTURE_DATA(vrf) * self = arg;
	struct ibchan_route route;

	return !ibchan_route_query(self->m.context, FAR, NULL, NEAR, &route, NULL) &&
	       !ibchan_route_query(self->m.context, NEAR, NULL, FAR, &route, NULL) &&
	       !ibchan_route_query(self->m.context, FAR6, NULL, NEAR6, &route, NULL);
}

FIXTURE_SETUP(vrf)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	if (access("/sys/class/net/v0", F_OK))
		SKIP(return, "these devices have no network devices");
	sh("modprobe -q vrf || :");
	if (sh("ip link add vrf8 type vrf table 108 && ip link delete vrf8"))
		SKIP(return, "this kernel has no VRFs");
	ASSERT_EQ(0, ibchan_context_open(&self->m.context, NULL));
	ASSERT_EQ(0, device_name(self->m.context, 0, self->near));
	ASSERT_EQ(0, sh(VRFS("enter")));
	ASSERT_TRUE(eventually(leads_to_far, self));
}

FIXTURE_TEARDOWN(vrf)
{
	if (self->m.context) {
		meeting_close(&self->m);
		EXPECT_EQ(0, ibchan_context_close(self->m.context));
		EXPECT_EQ(0, sh(VRFS("leave")));
	}
	EXPECT_EQ(0, calm_end(&self->calm));
}

static bool is_soft(const FIXTURE_DATA(vrf) * self)
{
	return !strncmp(self->near, "rxe", 3);
}

TEST_F(vrf, has_a_route_from_its_own_address_only)
{
	struct ibchan_route route;
	const struct sockaddr_in *in = (const void *)&route.source;

	EXPECT_EQ(-ENETUNREACH, ibchan_route_query(self->m.context, FAR, NULL, NULL, &route,
						   &self->m.error));
	ASSERT_EQ(0, ibchan_route_query(self->m.context, FAR, NULL, NEAR, &route, NULL));
	EXPECT_STREQ(self->near, route.device);
	EXPECT_EQ(if_nametoindex("v0"), route.ifindex);
	EXPECT_EQ(inet_addr(NEAR), in->sin_addr.s_addr);
}

TEST_F(vrf, has_a_route_of_ipv6_from_its_own_address_only)
{
	struct ibchan_route route;

	EXPECT_EQ(-ENETUNREACH, ibchan_route_query(self->m.context, FAR6, NULL, NULL, &route,
						   &self->m.error));
	ASSERT_EQ(0, ibchan_route_query(self->m.context, FAR6, NULL, NEAR6, &route, NULL));
	EXPECT_STREQ(self->near, route.device);
	EXPECT_EQ(AF_INET6, route.source.ss_family);
}

static int meet_from(FIXTURE_DATA(vrf) * self, const struct ibchan_connect_params *params)
{
	int rc = meeting_listen(&self->m, FAR);

	rc = rc ?: end_open(&self->m.asking, self->m.context, 0, NULL);
	rc = rc ?: end_open(&self->m.asked, self->m.context, 1, NULL);
	return rc ?: meeting_connect(&self->m, params, NULL);
}

TEST_F(vrf, to_vrf_a_channel_carries_messages)
{
	const struct ibchan_connect_params params = { .size = sizeof(params), .source = NEAR };

	if (is_soft(self))
		SKIP(return, "soft-RoCE receives nothing in a VRF");
	ASSERT_EQ(0, meet_from(self, &params)) TH_LOG("%s", ibchan_error_string(&self->m.error));
	EXPECT_EQ(0, messages_cross(&self->m));
}

TEST_F(vrf, without_a_source_connects_nobody)
{
	ASSERT_EQ(0, meeting_listen(&self->m, FAR));
	ASSERT_EQ(0, end_open(&self->m.asking, self->m.context, 0, NULL));
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	EXPECT_EQ(-ENETUNREACH, outcome(self->m.asking.channel, &self->m.error));
}

TEST_F(vrf, is_dialled_from_its_own_address_only)
{
	struct ibchan_message_params params = {
		.size = sizeof(params), .timeout_ns = DEAF_MS * MS, .source = NEAR,
	};
	struct dialer dialer = { .host = FAR };
	struct ibchan_channel *channel;
	struct ibchan_server *server;

	ASSERT_EQ(0, ibchan_serve(FAR, NULL, NULL, &server, &self->m.error));
	port_of_server(server, dialer.port, sizeof(dialer.port));
	dial(&dialer);
	EXPECT_EQ(-ENETUNREACH, dialer.rc);
	dialer.params = &params;
	ASSERT_EQ(0, pthread_create(&dialer.thread, NULL, dial, &dialer));
	EXPECT_EQ(is_soft(self) ? -ETIMEDOUT : 0,
		  ibchan_take(server, DEAF_MS * MS, &channel, &self->m.error));
	ASSERT_EQ(0, join_soon(dialer.thread, NULL));
	EXPECT_EQ(is_soft(self) ? -ETIMEDOUT : 0, dialer.rc);
	if (!is_soft(self)) {
		ibchan_channel_close(channel);
		ibchan_channel_close(dialer.channel);
	}
	EXPECT_EQ(0, ibchan_server_close(server));
}

/* The errno of who asks the listener at @host in vain: no request gets there. */
static int ask_the_deaf(FIXTURE_DATA(vrf) * self, const char *host)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params), .source = NEAR, .connect_ns = DEAF_MS * MS,
	};
	struct ibchan_connection_info info;
	int rc = meeting_listen(&self->m, host);

	rc = rc ?: end_open(&self->m.asking, self->m.context, 0, NULL);
	rc = rc ?: meeting_ask(&self->m, &params);
	if (rc)
		return rc;
	rc = outcome(self->m.asking.channel, &self->m.error);
	if (ibchan_channel_connection(self->m.asking.channel, &info, NULL))
		return -EIO;
	return info.stage == IBCHAN_STAGE_REQUEST ? rc : -EPROTO;
}

/* The VRF hands packets on as its own, and no soft-RoCE device is over the VRF. */
TEST_F(vrf, of_soft_roce_hears_nothing_whatever_udp_accepts)
{
	if (!is_soft(self))
		SKIP(return, "these devices are no soft-RoCE");
	ASSERT_EQ(0, put_line("/proc/sys/net/ipv4/udp_l3mdev_accept", "1"));
	EXPECT_EQ(-ETIMEDOUT, ask_the_deaf(self, FAR));
	EXPECT_EQ(0, put_line("/proc/sys/net/ipv4/udp_l3mdev_accept", "0"));
}

/* The connection manager takes the VRF for the network device, and its hardware address. */
TEST_F(vrf, connects_nobody_within_it)
{
	EXPECT_EQ(-ETIMEDOUT, ask_the_deaf(self, NEAR));
}

TEST_HARNESS_MAIN
