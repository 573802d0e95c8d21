// SPDX-License-Identifier: GPL-2.0-only
/*
 * A name that stands for several addresses, of which only the last one leads to a listener;
 * and the name of a device. On two soft-RoCE devices of its own, with a file of names that
 * no other process sees.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "cable.h"
#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define NAME		"several.test"
#define LISTENS		"10.88.0.1"
#define REFUSES		"10.88.1.9"	/* of the same network device, with another listener */
#define ELSEWHERE	"10.88.0.2"	/* leads over the other device */
#define SILENT		"fd88::77"	/* nobody has it */

/* Less than the shortest wait for a neighbour who does not answer. */
#define AT_ONCE_MS	(slow() ? 20000 : 1500)

FIXTURE(name)
{
	struct calm calm;
	struct meeting m;
	struct ibchan_listener *refuser;
	char hosts[32];
};

static bool leads_to(void *arg)
{
	const struct meeting *m = arg;
	struct ibchan_route route;

	return !ibchan_route_query(m->context, m->host, NULL, NULL, &route, NULL) &&
	       !strcmp(route.device, CABLE_NEAR);
}

/* A channel of the near device. */
static int open_end(struct end *end, struct ibchan_context *context)
{
	struct ibchan_builder builder;
	int rc = ibchan_device_open(context, CABLE_NEAR, &end->device, NULL);

	rc = rc ?: ibchan_pd_alloc(end->device, &end->pd, NULL);
	rc = rc ?: ibchan_cq_create(end->device, 0, 0, &end->own_cq, NULL);
	if (rc)
		return rc;
	end->memory = aligned_alloc(4096, MEMORY);
	rc = ibchan_mr_reg_shared(end->pd, end->memory, MEMORY, &end->mr, NULL);
	if (rc)
		return rc;
	end->cq = end->own_cq;
	ibchan_builder_init(&builder, end->pd, end->cq);
	builder.params.rnr_retries = 7;
	builder.params.ack_timeout = 18;
	return ibchan_builder_prepare(&builder, &end->prepared, NULL);
}

static void close_end(struct end *end)
{
	unsigned char *memory = end->memory;

	end->memory = NULL;
	end_close(end);
	free(memory);
}

/* Says that NAME has these addresses, and looks whether that is their order. */
static int name_has(FIXTURE_DATA(name) * self, const char *const *addresses, unsigned int num)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *info;
	char text[INET6_ADDRSTRLEN];
	unsigned int i;
	FILE *file = fopen(self->hosts, "we");
	int rc = 0;

	if (!file)
		return -errno;
	for (i = 0; i < num; i++)
		fprintf(file, "%s " NAME "\n", addresses[i]);
	fclose(file);
	if (getaddrinfo(NAME, NULL, &hints, &list))
		return -ENOENT;
	for (info = list, i = 0; info; info = info->ai_next, i++) {
		getnameinfo(info->ai_addr, info->ai_addrlen, text, sizeof(text), NULL, 0,
			    NI_NUMERICHOST);
		if (i >= num || strcmp(text, addresses[i]))
			rc = -EBADMSG;
	}
	freeaddrinfo(list);
	self->m.host = NAME;
	return i == num ? rc : -EBADMSG;
}

#define HAS(...)								\
	name_has(self, (const char *const []){ __VA_ARGS__ },			\
		 sizeof((const char *const []){ __VA_ARGS__ }) / sizeof(char *))

/* The file of names of this test's process only. */
static int own_names(FIXTURE_DATA(name) * self)
{
	int fd;

	strcpy(self->hosts, "/tmp/ibchan-hosts-XXXXXX");
	fd = mkstemp(self->hosts);
	if (fd < 0 || close(fd) || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(self->hosts, "/etc/hosts", NULL, MS_BIND, NULL))
		return -errno;
	return 0;
}

FIXTURE_SETUP(name)
{
	memset(&self->m, 0, sizeof(self->m));
	self->refuser = NULL;
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, cable_lay());
	ASSERT_EQ(0, sh("ip addr add " REFUSES "/24 dev w0; ip addr add fd88::1/64 dev w0 nodad"));
	ASSERT_EQ(0, own_names(self));
	ASSERT_EQ(0, ibchan_context_open(&self->m.context, NULL));
	self->m.host = REFUSES;
	ASSERT_TRUE(eventually(leads_to, &self->m));
	self->m.host = LISTENS;
	ASSERT_TRUE(eventually(leads_to, &self->m));
	ASSERT_EQ(0, open_end(&self->m.asking, self->m.context));
	ASSERT_EQ(0, open_end(&self->m.asked, self->m.context));
	ASSERT_EQ(0, meeting_listen(&self->m, LISTENS));
}

FIXTURE_TEARDOWN(name)
{
	close_end(&self->m.asking);
	close_end(&self->m.asked);
	EXPECT_EQ(0, ibchan_listener_close(self->refuser));
	EXPECT_EQ(0, ibchan_listener_close(self->m.listener));
	EXPECT_EQ(0, ibchan_context_close(self->m.context));
	unlink(self->hosts);
	cable_cut();
	EXPECT_EQ(0, calm_end(&self->calm));
}

static const struct ibchan_connect_params asking = {
	.size = sizeof(asking), .data = "may I?", .length = 7,
};

/* The request of who asks, who says "may I?". */
static int take(struct ibchan_listener *listener, struct ibchan_request **request)
{
	struct ibchan_request_info asks;
	int rc = ibchan_request_take(listener, patience_ns(), request, NULL);

	if (rc)
		return rc;
	ibchan_request_query(*request, &asks);
	return strcmp(asking.data, (char *)asks.data) ? -EBADMSG : 0;
}

static int meet(FIXTURE_DATA(name) * self)
{
	struct ibchan_request *request;
	int rc = take(self->m.listener, &request);

	rc = rc ?: meeting_answer(&self->m, request, NULL);
	return rc ?: meeting_outcomes(&self->m);
}

/* At REFUSES, and the same port, somebody listens who is asked and says no. */
static int refuser_listens(FIXTURE_DATA(name) * self)
{
	const struct ibchan_listen_params params = {
		.size = sizeof(params), .host = REFUSES, .service = self->m.port,
	};

	return ibchan_listener_create(self->m.context, &params, &self->refuser, &self->m.error);
}

static int nobody_else_is_asked(FIXTURE_DATA(name) * self)
{
	struct ibchan_request *request;
	int rc = ibchan_request_take(self->m.listener, 0, &request, NULL);

	return rc == -EAGAIN ? 0 : rc ?: -EALREADY;
}

/* Before that, nobody asks the next address. */
static int refuse(FIXTURE_DATA(name) * self)
{
	struct ibchan_request *request;
	int rc = take(self->refuser, &request);

	rc = rc ?: nobody_else_is_asked(self);
	return rc ?: ibchan_request_reject(request, NULL, 0, NULL);
}

TEST_F(name, an_address_that_refuses_is_followed_by_the_next_one)
{
	struct ibchan_connection_info info;
	char peer[INET_ADDRSTRLEN];

	ASSERT_EQ(0, HAS(REFUSES, LISTENS));
	ASSERT_EQ(0, refuser_listens(self));
	ASSERT_EQ(0, meeting_ask(&self->m, &asking));
	ASSERT_EQ(0, refuse(self));
	ASSERT_EQ(0, meet(self)) TH_LOG("%d", self->m.error.code);
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info, NULL));
	inet_ntop(AF_INET, &((struct sockaddr_in *)&info.peer)->sin_addr, peer, sizeof(peer));
	EXPECT_STREQ(LISTENS, peer);
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asked, &self->m.asking));
}

/* The device has listeners, but none of this address. */
TEST_F(name, an_address_where_nobody_listens_is_followed_by_the_next_one)
{
	ASSERT_EQ(0, HAS(REFUSES, LISTENS));
	ASSERT_EQ(0, meeting_ask(&self->m, &asking));
	ASSERT_EQ(0, meet(self)) TH_LOG("%d", self->m.error.code);
}

#define LINK_LOCAL	"fe80::88"

/* The ends anew on a device whose network device has no other address. */
static int open_link_local(FIXTURE_DATA(name) * self)
{
	int rc = sh("ip addr flush dev w0; ip addr add " LINK_LOCAL "/64 dev w0 nodad");

	close_end(&self->m.asking);
	close_end(&self->m.asked);
	self->m.host = LINK_LOCAL "%w0";
	if (rc || !eventually(leads_to, &self->m))
		return -ENODEV;
	rc = open_end(&self->m.asking, self->m.context);
	rc = rc ?: open_end(&self->m.asked, self->m.context);
	return rc ?: ibchan_listener_close(self->m.listener);
}

TEST_F(name, of_a_link_local_address_names_its_network_device_to_listen_and_leads_there)
{
	const struct ibchan_listen_params alone = { .size = sizeof(alone), .host = LINK_LOCAL };
	struct ibchan_listener *listener = NULL;
	struct ibchan_request *request;

	ASSERT_EQ(0, open_link_local(self));
	self->m.listener = NULL;
	EXPECT_EQ(-EINVAL, ibchan_listener_create(self->m.context, &alone, &listener, NULL));
	ASSERT_EQ(0, meeting_listen(&self->m, LINK_LOCAL "%w0"));
	ASSERT_EQ(0, meeting_request(&self->m, NULL, &request));
	ASSERT_EQ(0, meeting_answer(&self->m, request, NULL));
	ASSERT_EQ(0, meeting_outcomes(&self->m)) TH_LOG("%d", self->m.error.code);
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asked, &self->m.asking));
}

/* Looking for its way would take seconds. */
TEST_F(name, an_address_that_nobody_has_holds_up_nobody_who_asks)
{
	struct ibchan_connect_params params = asking;
	__u64 begin;

	params.address_ns = 300 * MS;
	ASSERT_EQ(0, HAS(SILENT, LISTENS));
	begin = now_ms();
	ASSERT_EQ(0, meeting_ask(&self->m, &params));
	EXPECT_GT(AT_ONCE_MS, now_ms() - begin);
	ASSERT_EQ(0, meet(self)) TH_LOG("%d", self->m.error.code);
}

/* ---- Addresses of the device's network that nobody has ---- */

#define DEAD		"10.88.0.91", "10.88.0.92", "10.88.0.93", "10.88.0.94"

/* For one address 5 s, see IBCHAN_DEFAULT_ADDRESS_MS. */
#define ONE_TIME_MS	(IBCHAN_DEFAULT_ADDRESS_MS + (slow() ? 20000 : 1000))

TEST_F(name, dead_addresses_take_the_time_of_one_to_look_for_the_way)
{
	struct ibchan_route route;
	__u64 begin;

	ASSERT_EQ(0, HAS(DEAD));
	begin = now_ms();
	EXPECT_EQ(-EHOSTUNREACH, ibchan_route_query(self->m.context, NAME, NULL, NULL, &route,
						    NULL));
	EXPECT_GT(ONE_TIME_MS, now_ms() - begin);
}

TEST_F(name, dead_addresses_take_the_time_of_one_to_connect)
{
	__u64 begin;

	ASSERT_EQ(0, HAS(DEAD));
	begin = now_ms();
	ASSERT_EQ(0, meeting_ask(&self->m, &asking));
	EXPECT_EQ(-EHOSTUNREACH, outcome(self->m.asking.channel, &self->m.error));
	EXPECT_GT(ONE_TIME_MS, now_ms() - begin);
}

TEST_F(name, dead_addresses_take_the_time_of_one_to_dial)
{
	struct ibchan_channel *channel;
	__u64 begin;

	ASSERT_EQ(0, HAS(DEAD));
	begin = now_ms();
	EXPECT_EQ(-EHOSTUNREACH, ibchan_dial(NAME, self->m.port, NULL, &channel, NULL));
	EXPECT_GT(ONE_TIME_MS, now_ms() - begin);
}

/* It has no answer when the living one has had it for a while. */
TEST_F(name, a_dead_address_does_not_hide_the_way_to_one_that_lives)
{
	struct ibchan_route route;
	char peer[INET_ADDRSTRLEN];
	__u64 begin;

	ASSERT_EQ(0, HAS(SILENT, LISTENS));
	begin = now_ms();
	ASSERT_EQ(0, ibchan_route_query(self->m.context, NAME, NULL, NULL, &route, &self->m.error));
	EXPECT_GT(AT_ONCE_MS, now_ms() - begin);
	inet_ntop(AF_INET, &((struct sockaddr_in *)&route.peer)->sin_addr, peer, sizeof(peer));
	EXPECT_STREQ(LISTENS, peer);
	EXPECT_STREQ(CABLE_NEAR, route.device);
}

/* The order of the name counts where both live. */
TEST_F(name, of_two_addresses_that_live_the_first_is_told)
{
	struct ibchan_route route;
	char peer[INET_ADDRSTRLEN];

	ASSERT_EQ(0, HAS(REFUSES, LISTENS));
	ASSERT_EQ(0, ibchan_route_query(self->m.context, NAME, NULL, NULL, &route, &self->m.error));
	inet_ntop(AF_INET, &((struct sockaddr_in *)&route.peer)->sin_addr, peer, sizeof(peer));
	EXPECT_STREQ(REFUSES, peer);
}

/* Though the other one is first, and a device may lead to it. */
TEST_F(name, of_two_families_that_of_the_source_is_asked)
{
	struct ibchan_route route;
	char peer[INET_ADDRSTRLEN];

	ASSERT_EQ(0, HAS("fd88::1", LISTENS));
	ASSERT_EQ(0, ibchan_route_query(self->m.context, NAME, NULL, LISTENS, &route,
					&self->m.error));
	ASSERT_EQ(AF_INET, route.peer.ss_family);
	inet_ntop(AF_INET, &((struct sockaddr_in *)&route.peer)->sin_addr, peer, sizeof(peer));
	EXPECT_STREQ(LISTENS, peer);
}

/* The receives were there before the first address was tried. */
TEST_F(name, receives_that_were_posted_before_are_for_whoever_accepts)
{
	struct ibchan_submit_sge target = sge_at(&self->m.asking, 0, 64);
	struct ibchan_submit_sge source = sge_at(&self->m.asked, 0, 64);
	struct ibchan_submit_wr wr = wr_of(&self->m.asking, IBCHAN_OP_RECV, &target);
	struct ibchan_cqe completion;

	ASSERT_EQ(0, HAS(REFUSES, ELSEWHERE, LISTENS));
	wr.channel = ibchan_channel_handle(ibchan_prepared_channel(self->m.asking.prepared));
	wr.wr_id = 5;
	ASSERT_EQ(0, ibchan_post(self->m.context, &wr, 1, NULL, NULL));
	ASSERT_EQ(0, refuser_listens(self));
	ASSERT_EQ(0, meeting_ask(&self->m, &asking));
	ASSERT_EQ(0, refuse(self));
	ASSERT_EQ(0, meet(self)) TH_LOG("%d", self->m.error.code);
	EXPECT_EQ(0, ibchan_send(self->m.asked.channel, &source, 1, IBCHAN_TIMEOUT_NEVER, NULL));
	ASSERT_EQ(1, wait_one(self->m.asking.cq, &completion));
	EXPECT_EQ(5, completion.wr_id);
	EXPECT_EQ(0, completion.error);
}

/* That of an address that refuses says more than that of one with no way to it. */
TEST_F(name, of_several_errors_the_one_that_came_furthest_is_told)
{
	ASSERT_EQ(0, HAS(REFUSES, ELSEWHERE));
	ASSERT_EQ(0, refuser_listens(self));
	ASSERT_EQ(0, meeting_ask(&self->m, &asking));
	ASSERT_EQ(0, refuse(self));
	EXPECT_EQ(-ECONNRESET, outcome(self->m.asking.channel, &self->m.error));
	EXPECT_EQ(IBCHAN_STAGE_REQUEST, self->m.error.reason.value[0]);
}

/* What was told before stays readable, and a server knows its clients by the name. */
TEST_F(name, of_a_device_that_is_renamed_is_told_as_it_is)
{
	struct ibchan_device *device = self->m.asked.device;
	const char *before = ibchan_device_name(device);
	struct ibchan_request_info asks;
	struct ibchan_request *request;

	EXPECT_STREQ(CABLE_NEAR, before);
	ASSERT_EQ(0, sh("rdma dev set " CABLE_NEAR " name rxe_renamed"));
	EXPECT_STREQ("rxe_renamed", ibchan_device_name(device));
	EXPECT_STREQ(CABLE_NEAR, before);
	EXPECT_EQ(0, meeting_ask(&self->m, &asking));
	EXPECT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	ibchan_request_query(request, &asks);
	EXPECT_STREQ(ibchan_device_name(device), asks.device);
	EXPECT_EQ(0, ibchan_request_reject(request, NULL, 0, NULL));
	EXPECT_EQ(0, sh("rdma dev set rxe_renamed name " CABLE_NEAR));
	EXPECT_EQ(before, ibchan_device_name(device));
}

TEST_F(name, of_a_device_that_is_renamed_before_a_request_is_taken_is_told_as_it_is)
{
	struct pollfd pollfd = { .events = POLLIN };
	struct ibchan_request_info asks;
	struct ibchan_request *request;

	ASSERT_EQ(0, meeting_ask(&self->m, &asking));
	pollfd.fd = ibchan_listener_fd(self->m.listener);
	ASSERT_EQ(1, poll(&pollfd, 1, patience_ms()));
	ASSERT_EQ(0, sh("rdma dev set " CABLE_NEAR " name rxe_renamed"));
	EXPECT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	ibchan_request_query(request, &asks);
	EXPECT_STREQ("rxe_renamed", asks.device);
	EXPECT_EQ(0, ibchan_request_reject(request, NULL, 0, NULL));
	EXPECT_EQ(0, sh("rdma dev set rxe_renamed name " CABLE_NEAR));
}

/* Wherever it is just then. */
TEST_F(name, can_be_closed_while_its_addresses_are_tried)
{
	struct ibchan_connect_params params = asking;
	unsigned int i;

	params.address_ns = 2 * MS;
	ASSERT_EQ(0, HAS(SILENT, REFUSES, ELSEWHERE));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, meeting_ask(&self->m, &params));
		moment(i * 500);
		close_end(&self->m.asking);
		ASSERT_EQ(0, open_end(&self->m.asking, self->m.context));
	}
}

TEST_HARNESS_MAIN
