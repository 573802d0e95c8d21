// SPDX-License-Identifier: GPL-2.0-only
/* Connecting by IP address and port, and what can go wrong with it. */
#define _GNU_SOURCE
#define PARAMS(...)	{ .size = sizeof(struct ibchan_connect_params), __VA_ARGS__ }
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shim/meeting.h"
#include "test.h"
#include "thread.h"
#include "world.h"

/* What a request carries on RoCE. */
/* What goes with a message between two ibchans on RoCE. */
#define REQUEST_DATA	48
#define ANSWER_DATA	188
#define REJECT_DATA	140

FIXTURE(connecting)
{
	struct calm calm;
	struct meeting m;
};

FIXTURE_VARIANT(connecting)
{
	int family;
	const char *host;
};

FIXTURE_VARIANT_ADD(connecting, by_ipv4)
{
	.family = AF_INET,
	.host = "10.77.0.1",
};

FIXTURE_VARIANT_ADD(connecting, by_ipv6)
{
	.family = AF_INET6,
	.host = "fd77::1",
};

FIXTURE_SETUP(connecting)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, meeting_begin(&self->m, variant->host));
	ASSERT_EQ(0, end_open(&self->m.asking, self->m.context, 0, NULL));
	ASSERT_EQ(0, end_open(&self->m.asked, self->m.context, 0, NULL));
}

FIXTURE_TEARDOWN(connecting)
{
	EXPECT_EQ(0, meeting_end(&self->m));
	EXPECT_EQ(0, calm_end(&self->calm));
}

static int write_crosses(const struct end *from, const struct end *to)
{
	struct ibchan_submit_sge source = sge_at(from, 0, 5000);
	struct ibchan_remote_region remote;
	int rc;

	memset(from->memory, 0x5b, 5000);
	rc = ibchan_mr_remote_region(to->mr, &remote);
	rc = rc ?: ibchan_write(from->channel, &source, 1, &remote, IBCHAN_TIMEOUT_NEVER, NULL);
	return rc ?: memcmp(from->memory, to->memory, 5000) ? -EBADMSG : 0;
}

TEST_F(connecting, carries_data_both_ways)
{
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asked, &self->m.asking));
	EXPECT_EQ(0, write_crosses(&self->m.asking, &self->m.asked));
}

TEST_F(connecting, tells_both_sides_who_the_other_is)
{
	struct ibchan_connection_info asking, asked;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &asking, NULL));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asked.channel, &asked, NULL));
	EXPECT_EQ(IBCHAN_CHANNEL_CONNECTED, asking.state);
	EXPECT_EQ(IBCHAN_STAGE_DONE, asking.stage);
	EXPECT_EQ(IBCHAN_STAGE_DONE, asked.stage);
	EXPECT_EQ(variant->family, asking.peer.ss_family);
	EXPECT_EQ(0, memcmp(&asking.local, &asked.peer, sizeof(asking.local)));
	EXPECT_EQ(0, memcmp(&asking.peer, &asked.local, sizeof(asking.peer)));
}

/* The address that the route has, not the one that the channel was built with. */
TEST_F(connecting, has_the_address_of_its_family)
{
	struct ibchan_connection_info connection;
	struct ibchan_channel_info info;
	struct ibchan_gid_attr gid;
	const char *name;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	name = ibchan_device_name(self->m.asking.device);
	ASSERT_EQ(0, ibchan_channel_query(self->m.asking.channel, &info, NULL));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &connection, NULL));
	ASSERT_EQ(0, ibchan_gid_query(self->m.context, name, info.params.port,
				      info.params.gid_index, &gid, NULL));
	if (variant->family == AF_INET) {
		EXPECT_EQ(0, memcmp(gid.gid + 12,
				    &((struct sockaddr_in *)&connection.local)->sin_addr, 4));
	} else {
		EXPECT_EQ(0, memcmp(gid.gid,
				    &((struct sockaddr_in6 *)&connection.local)->sin6_addr, 16));
	}
}

TEST_F(connecting, takes_as_much_private_data_as_the_transport_and_no_more)
{
	unsigned char data[IBCHAN_PRIVATE_DATA_SIZE + 1];
	struct ibchan_connect_params params = PARAMS(.data = data, .length = REQUEST_DATA + 1);
	struct ibchan_request_info asks;
	struct ibchan_request *request;

	memset(data, 0xd7, sizeof(data));
	EXPECT_EQ(-EINVAL, meeting_ask(&self->m, &params));
	EXPECT_EQ(IBCHAN_REASON_PRIVATE_DATA, self->m.error.reason.code);
	EXPECT_EQ(REQUEST_DATA, self->m.error.reason.value[1]);
	params.length = sizeof(data);
	EXPECT_EQ(-EINVAL, meeting_ask(&self->m, &params));
	EXPECT_EQ(IBCHAN_REASON_PRIVATE_DATA, self->m.error.reason.code);
	params.length = REQUEST_DATA;
	ASSERT_EQ(0, meeting_ask(&self->m, &params));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	ibchan_request_query(request, &asks);
	EXPECT_EQ(0, memcmp(asks.data, data, REQUEST_DATA));
	params.length = sizeof(data);
	EXPECT_EQ(-EINVAL, meeting_answer(&self->m, request, &params));
	EXPECT_EQ(-EINVAL, ibchan_request_reject(request, data, sizeof(data), NULL));
	params.length = ANSWER_DATA + 1;
	EXPECT_EQ(-EINVAL, meeting_answer(&self->m, request, &params));
	EXPECT_EQ(ANSWER_DATA, self->m.error.reason.value[1]);
	params.length = ANSWER_DATA;
	EXPECT_EQ(0, meeting_answer(&self->m, request, &params));
	EXPECT_EQ(0, outcome(self->m.asking.channel, &self->m.error));
}

TEST_F(connecting, refuses_flags_and_members_that_it_does_not_know)
{
	struct ibchan_connect_params params = PARAMS(.flags = IBCHAN_CONNECT_FLAGS + 1);

	EXPECT_EQ(-EOPNOTSUPP, meeting_ask(&self->m, &params));
	params.flags = 0;
	params.size = 0;
	EXPECT_EQ(-EINVAL, meeting_ask(&self->m, &params));
	EXPECT_EQ(IBCHAN_PARAMETER_SIZE, self->m.error.reason.element);
	params.size = sizeof(params);
	params.route_ns = IBCHAN_TIMEOUT_NEVER;
	EXPECT_EQ(-EINVAL, meeting_ask(&self->m, &params));
	EXPECT_EQ(IBCHAN_REASON_NONE, self->m.error.reason.code);
}

/* What the module itself puts in front of the data. */
static const unsigned char like_ours[] =
	"\xc4\x1b\x01\x03\0\0\0\0\0\0\0\0\0\0\0\0 is not what it seems";

TEST_F(connecting, carries_private_data_that_look_like_the_modules_own)
{
	const struct ibchan_connect_params params = {
		.size = sizeof(params),
		.data = like_ours, .length = sizeof(like_ours),
	};
	struct ibchan_connection_info info;
	struct ibchan_request_info asks;
	struct ibchan_request *request;

	ASSERT_EQ(0, meeting_ask(&self->m, &params));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	ibchan_request_query(request, &asks);
	EXPECT_EQ(0, memcmp(asks.data, like_ours, sizeof(like_ours)));
	EXPECT_LE(sizeof(like_ours), asks.length);
	EXPECT_STREQ(ibchan_device_name(self->m.asked.device), asks.device);
	ASSERT_EQ(0, meeting_answer(&self->m, request, &params));
	ASSERT_EQ(0, meeting_outcomes(&self->m));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asked.channel, &info, NULL));
	EXPECT_EQ(0, memcmp(info.data, like_ours, sizeof(like_ours)));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info, NULL));
	EXPECT_EQ(0, memcmp(info.data, like_ours, sizeof(like_ours)));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
}

TEST_F(connecting, carries_four_bytes_that_look_like_the_modules_own)
{
	const struct ibchan_connect_params params = PARAMS(.data = like_ours, .length = 4);
	struct ibchan_request_info asks;
	struct ibchan_request *request;

	ASSERT_EQ(0, meeting_ask(&self->m, &params));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	ibchan_request_query(request, &asks);
	EXPECT_EQ(0, memcmp(asks.data, like_ours, 8));
	EXPECT_EQ(0, ibchan_request_reject(request, NULL, 0, NULL));
}

TEST_F(connecting, keeps_the_callers_pointers_with_its_objects)
{
	struct ibchan_happening happening;
	int own;

	EXPECT_EQ(NULL, ibchan_listener_priv(self->m.listener));
	ibchan_listener_set_priv(self->m.listener, &self->m);
	EXPECT_EQ(&self->m, ibchan_listener_priv(self->m.listener));
	EXPECT_EQ(NULL, ibchan_channel_priv(ibchan_prepared_channel(self->m.asking.prepared)));
	ibchan_channel_set_priv(ibchan_prepared_channel(self->m.asking.prepared), &own);
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(&own, ibchan_channel_priv(self->m.asking.channel));
	EXPECT_EQ(NULL, ibchan_channel_priv(self->m.asked.channel));
	do {
		ASSERT_EQ(0, ibchan_next(self->m.context, patience_ns(), &happening, NULL));
		EXPECT_EQ(IBCHAN_NEXT_CONNECTED, happening.kind);
	} while (happening.channel != self->m.asking.channel);
	EXPECT_EQ(&own, happening.priv);
}

/* rdma_cm rejects by itself, with the code that a listener's rejection has. */
TEST_F(connecting, says_that_nobody_listens_at_this_address_of_the_port)
{
	struct ibchan_request *request;

	self->m.host = strchr(self->m.host, ':') ? "10.77.0.1" : "fd77::1";
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	EXPECT_EQ(-ECONNREFUSED, outcome(self->m.asking.channel, &self->m.error));
	EXPECT_EQ(IBCHAN_STAGE_REQUEST, self->m.error.reason.value[0]);
	EXPECT_EQ(-EAGAIN, ibchan_request_take(self->m.listener, 0, &request, NULL));
}

TEST_F(connecting, says_that_the_peer_has_rejected_though_it_said_nothing)
{
	unsigned char nothing[IBCHAN_PRIVATE_DATA_SIZE] = {};
	struct ibchan_connection_info info;
	struct ibchan_request *request;

	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	EXPECT_EQ(0, ibchan_request_reject(request, NULL, 0, NULL));
	EXPECT_EQ(-ECONNRESET, outcome(self->m.asking.channel, &self->m.error));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info, NULL));
	EXPECT_EQ(0, memcmp(info.data, nothing, sizeof(nothing)));
}

/* Which begin like the module's own. */
TEST_F(connecting, brings_a_rejection_of_the_longest_data)
{
	unsigned char data[REJECT_DATA + 1];
	struct ibchan_connection_info info;
	struct ibchan_request *request;

	memset(data, 0xd7, sizeof(data));
	memcpy(data, like_ours, sizeof(like_ours));
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	EXPECT_EQ(-EINVAL, ibchan_request_reject(request, data, REJECT_DATA + 1, NULL));
	EXPECT_EQ(0, ibchan_request_reject(request, data, REJECT_DATA, NULL));
	EXPECT_EQ(-ECONNRESET, outcome(self->m.asking.channel, &self->m.error));
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asking.channel, &info, NULL));
	EXPECT_EQ(0, memcmp(info.data, data, REJECT_DATA));
	EXPECT_EQ(0, info.data[REJECT_DATA]);
	EXPECT_LT(0, info.cm_error);
}

TEST_F(connecting, rejects_who_was_not_taken_when_the_listener_closes)
{
	struct pollfd pollfd = { .events = POLLIN };

	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	pollfd.fd = ibchan_listener_fd(self->m.listener);
	ASSERT_EQ(1, poll(&pollfd, 1, patience_ms()));
	EXPECT_EQ(0, ibchan_listener_close(self->m.listener));
	self->m.listener = NULL;
	EXPECT_EQ(-ECONNRESET, outcome(self->m.asking.channel, &self->m.error));
}

TEST_F(connecting, gives_up_when_nobody_answers_in_time)
{
	const struct ibchan_connect_params params = PARAMS(.connect_ns = 200 * MS);
	__u64 begin = now_ms();

	ASSERT_EQ(0, meeting_ask(&self->m, &params));
	EXPECT_EQ(-ETIMEDOUT, ibchan_channel_connect_wait(self->m.asking.channel, 0, NULL));
	EXPECT_EQ(-ETIMEDOUT, outcome(self->m.asking.channel, &self->m.error));
	EXPECT_LE(200, now_ms() - begin);
	EXPECT_GT(4000 * (slow() ? 10 : 1), now_ms() - begin);
	EXPECT_EQ(IBCHAN_STAGE_REQUEST, self->m.error.reason.value[0]);
}

TEST_F(connecting, leaves_nobody_to_take_when_the_peer_has_given_up)
{
	struct pollfd pollfd = { .events = POLLIN };
	struct ibchan_request *request;
	int rc;

	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	pollfd.fd = ibchan_listener_fd(self->m.listener);
	ASSERT_EQ(1, poll(&pollfd, 1, patience_ms()));
	ASSERT_EQ(0, ibchan_channel_close(self->m.asking.channel));
	self->m.asking.channel = NULL;
	rc = ibchan_request_take(self->m.listener, 300 * MS, &request, NULL);
	if (rc == -ETIMEDOUT)
		return;
	/* Taken before word of it was here: then accepting tells. */
	ASSERT_EQ(0, rc);
	rc = meeting_answer(&self->m, request, NULL);
	if (rc)
		ibchan_request_reject(request, NULL, 0, NULL);
	else
		rc = outcome(self->m.asked.channel, &self->m.error);
	EXPECT_EQ(-ECONNRESET, rc);
}

TEST_F(connecting, breaks_one_side_when_the_other_closes)
{
	struct ibchan_connection_info info;
	struct ibchan_happening happening = { 0 };
	struct pollfd pollfd = { .events = POLLIN };

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, ibchan_channel_close(self->m.asking.channel));
	self->m.asking.channel = NULL;
	pollfd.fd = ibchan_next_fd(self->m.context);
	while (happening.kind != IBCHAN_NEXT_ENDED) {
		ASSERT_EQ(1, poll(&pollfd, 1, patience_ms()));
		ASSERT_EQ(0, ibchan_next(self->m.context, 0, &happening, NULL));
		EXPECT_EQ(self->m.asked.channel, happening.channel);
	}
	EXPECT_EQ(IBCHAN_BY_PEER, happening.by);
	EXPECT_EQ(-ECONNRESET, happening.error);
	ASSERT_EQ(0, ibchan_channel_connection(self->m.asked.channel, &info, NULL));
	EXPECT_EQ(-ECONNRESET, info.error);
	EXPECT_EQ(-ESHUTDOWN, outcome(self->m.asked.channel, &self->m.error));
	EXPECT_EQ(-EAGAIN, ibchan_next(self->m.context, 0, &happening, NULL));
	EXPECT_EQ(0, poll(&pollfd, 1, 0));
}

TEST_F(connecting, breaks_one_side_when_the_other_breaks)
{
	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	ASSERT_EQ(0, ibchan_channel_break(self->m.asked.channel));
	while (!outcome(self->m.asking.channel, &self->m.error))
		;
	EXPECT_EQ(-ESHUTDOWN, self->m.error.code);
}

TEST_F(connecting, can_be_cancelled_by_breaking)
{
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_channel_break(self->m.asking.channel));
	EXPECT_EQ(-ECANCELED, outcome(self->m.asking.channel, &self->m.error));
}

/* The kinds of a channel's events, and for those of connecting their stages. */
static int kinds_of(struct ibchan_channel *channel, __u32 *kinds, __u32 *errors)
{
	struct ibchan_history_event events[IBCHAN_HISTORY_MAX];
	int num = ibchan_channel_history(channel, events, IBCHAN_HISTORY_MAX, NULL);
	int i;

	for (i = 0; i < num; i++) {
		kinds[i] = events[i].kind;
		if (events[i].kind == IBCHAN_HISTORY_CM)
			kinds[i] |= events[i].detail << 16;
		errors[i] = events[i].error;
	}
	return num;
}

#define STAGE_BEGUN(stage)	(IBCHAN_HISTORY_CM | IBCHAN_STAGE_##stage << 16)

static int history_is(struct ibchan_channel *channel, const __u32 *want, int num)
{
	__u32 kinds[IBCHAN_HISTORY_MAX], errors[IBCHAN_HISTORY_MAX];

	return kinds_of(channel, kinds, errors) == num &&
	       !memcmp(kinds, want, num * sizeof(*want));
}

TEST_F(connecting, is_told_stage_by_stage_in_the_history)
{
	const __u32 asking[] = {
		IBCHAN_HISTORY_BUILT, STAGE_BEGUN(ADDRESS), STAGE_BEGUN(ROUTE),
		STAGE_BEGUN(REQUEST), IBCHAN_HISTORY_CONNECTED,
	};
	const __u32 asked[] = {
		IBCHAN_HISTORY_BUILT, STAGE_BEGUN(ACCEPT), IBCHAN_HISTORY_CONNECTED,
		IBCHAN_HISTORY_DISCONNECTED, IBCHAN_HISTORY_BROKEN,
	};

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_TRUE(history_is(self->m.asking.channel, asking, ARRAY_SIZE(asking)));
	EXPECT_TRUE(history_is(self->m.asked.channel, asked, 3));
	ASSERT_EQ(0, ibchan_channel_close(self->m.asking.channel));
	self->m.asking.channel = NULL;
	while (!outcome(self->m.asked.channel, &self->m.error))
		;
	EXPECT_TRUE(history_is(self->m.asked.channel, asked, ARRAY_SIZE(asked)));
}

TEST_F(connecting, that_failed_is_in_the_history_with_stage_and_error)
{
	const __u32 asking[] = {
		IBCHAN_HISTORY_BUILT, STAGE_BEGUN(ADDRESS), STAGE_BEGUN(ROUTE),
		STAGE_BEGUN(REQUEST), STAGE_BEGUN(REQUEST), IBCHAN_HISTORY_BROKEN,
	};
	__u32 kinds[IBCHAN_HISTORY_MAX], errors[IBCHAN_HISTORY_MAX];

	strcpy(self->m.port, "1");
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	EXPECT_EQ(-ECONNREFUSED, outcome(self->m.asking.channel, &self->m.error));
	ASSERT_TRUE(history_is(self->m.asking.channel, asking, ARRAY_SIZE(asking)));
	kinds_of(self->m.asking.channel, kinds, errors);
	EXPECT_EQ(0, errors[3]);
	EXPECT_EQ(ECONNREFUSED, errors[4]);
	EXPECT_EQ(ECONNREFUSED, errors[5]);
}

TEST_F(connecting, is_done_once)
{
	struct ibchan_channel *channel;

	ASSERT_EQ(0, meeting_connect(&self->m, NULL, NULL));
	EXPECT_EQ(-EISCONN, ibchan_prepared_connect((struct ibchan_prepared *)
						    self->m.asking.channel, self->m.host,
						    self->m.port, NULL, &channel, NULL));
	EXPECT_EQ(0, message_crosses(&self->m, &self->m.asking, &self->m.asked));
}

TEST_F(connecting, needs_a_channel_of_the_requests_device)
{
	struct end other = { 0 };
	struct ibchan_request *request;
	struct ibchan_channel *channel;

	ASSERT_EQ(0, end_open(&other, self->m.context, 1, NULL));
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	EXPECT_EQ(-EXDEV, ibchan_request_accept(request, other.prepared, NULL, &channel,
						&self->m.error));
	EXPECT_EQ(IBCHAN_REASON_REQUEST_DEVICE, self->m.error.reason.code);
	EXPECT_EQ(0, meeting_answer(&self->m, request, NULL));
	EXPECT_EQ(0, outcome(self->m.asking.channel, &self->m.error));
	end_close(&other);
}

TEST_F(connecting, does_not_leave_by_another_device)
{
	struct end other = { 0 };

	ASSERT_EQ(0, end_open(&other, self->m.context, 1, NULL));
	ASSERT_EQ(0, ibchan_prepared_connect(other.prepared, self->m.host, self->m.port, NULL,
					     &other.channel, NULL));
	other.prepared = NULL;
	EXPECT_EQ(-EXDEV, outcome(other.channel, &self->m.error));
	EXPECT_EQ(IBCHAN_STAGE_ADDRESS, self->m.error.reason.value[0]);
	end_close(&other);
}

TEST_F(connecting, goes_on_for_others_while_one_listener_has_its_backlog)
{
	struct ibchan_listen_params params = {
		.size = sizeof(params), .host = self->m.host, .backlog = 1,
		.service = self->m.port,
	};
	struct ibchan_listener *listener;

	EXPECT_EQ(-EADDRINUSE, ibchan_listener_create(self->m.context, &params, &listener,
						      &self->m.error));
	/* The port is any address's, too. */
	params.host = NULL;
	EXPECT_EQ(-EADDRINUSE, ibchan_listener_create(self->m.context, &params, &listener,
						      &self->m.error));
	EXPECT_EQ(0, meeting_connect(&self->m, NULL, NULL));
}

TEST_F(connecting, goes_where_the_route_leads)
{
	struct ibchan_device *device;
	struct ibchan_route route;

	ASSERT_EQ(0, ibchan_route_query(self->m.context, self->m.host, self->m.port, NULL, &route,
					&self->m.error));
	EXPECT_STREQ(ibchan_device_name(self->m.asking.device), route.device);
	EXPECT_EQ(1, route.port);
	EXPECT_EQ(variant->family, route.source.ss_family);
	ASSERT_EQ(0, ibchan_device_open_for(self->m.context, self->m.host, NULL, &device, NULL));
	EXPECT_STREQ(route.device, ibchan_device_name(device));
	EXPECT_EQ(0, ibchan_device_close(device));
}

TEST_F(connecting, works_for_who_builds_and_waits_in_one_call)
{
	struct ibchan_channel *asking, *asked;
	struct ibchan_builder builder;
	struct ibchan_request *request;

	ibchan_builder_init(&builder, self->m.asking.pd, NULL);
	strcpy(self->m.port, "1");
	EXPECT_EQ(-ECONNREFUSED, ibchan_builder_connect(&builder, self->m.host, self->m.port, NULL,
							&asking, &self->m.error));
	port_of(self->m.listener, self->m.port, sizeof(self->m.port));
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	ASSERT_EQ(0, ibchan_request_reject(request, NULL, 0, NULL));
	EXPECT_EQ(-ETIMEDOUT, ibchan_builder_accept(&builder, self->m.listener, 10 * MS, &asked,
						    &self->m.error));
}

/* A client as a new user writes it: it sends as soon as it is connected. */
static void *send_at_once(void *arg)
{
	struct meeting *m = arg;
	struct ibchan_submit_sge sge = sge_at(&m->asking, 0, 8);
	struct ibchan_builder builder;
	int rc;

	ibchan_builder_init(&builder, m->asking.pd, NULL);
	rc = ibchan_builder_connect(&builder, m->host, m->port, NULL, &m->asking.channel, NULL);
	rc = rc ?: ibchan_send(m->asking.channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, NULL);
	return (void *)(intptr_t)rc;
}

TEST_F(connecting, keeps_the_first_message_for_a_server_that_is_late)
{
	struct ibchan_submit_sge sge = sge_at(&self->m.asked, 0, 8);
	struct ibchan_builder builder;
	pthread_t client;
	void *sent;

	ibchan_builder_init(&builder, self->m.asked.pd, NULL);
	ASSERT_EQ(0, pthread_create(&client, NULL, send_at_once, &self->m));
	ASSERT_EQ(0, ibchan_builder_accept(&builder, self->m.listener, patience_ns(),
					   &self->m.asked.channel, &self->m.error));
	/* Somebody else has the CPU: for far longer than a peer tries by itself. */
	moment(400000);
	EXPECT_EQ(0, ibchan_receive(self->m.asked.channel, &sge, 1,
				    IBCHAN_TIMEOUT_NEVER, NULL, &self->m.error));
	EXPECT_EQ(0, pthread_join(client, &sent));
	EXPECT_EQ(NULL, sent);
}

TEST_F(connecting, takes_no_private_data_with_a_length_and_no_pointer)
{
	const struct ibchan_connect_params params = { .size = sizeof(params), .length = 8 };
	struct ibchan_request *request;

	EXPECT_EQ(-EFAULT, meeting_ask(&self->m, &params));
	ASSERT_EQ(0, meeting_ask(&self->m, NULL));
	ASSERT_EQ(0, ibchan_request_take(self->m.listener, patience_ns(), &request, NULL));
	EXPECT_EQ(-EFAULT, meeting_answer(&self->m, request, &params));
	EXPECT_EQ(-EFAULT, ibchan_request_reject(request, NULL, 8, NULL));
	EXPECT_EQ(0, meeting_answer(&self->m, request, NULL));
	EXPECT_EQ(0, meeting_outcomes(&self->m));
}

TEST(a_listener_without_a_host_takes_both_families)
{
	const char * const hosts[] = { "10.77.0.1", "fd77::1" };
	struct ibchan_listen_params params = { .size = sizeof(params) };
	struct ibchan_listener *listener;
	struct ibchan_context *context;
	struct ibchan_request *request;
	struct end end = { 0 };
	unsigned int i;
	char port[8];

	ASSERT_EQ(0, ibchan_context_open(&context, NULL));
	ASSERT_EQ(0, ibchan_listener_create(context, &params, &listener, NULL));
	port_of(listener, port, sizeof(port));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, end_open(&end, context, 0, NULL));
		ASSERT_EQ(0, ibchan_prepared_connect(end.prepared, hosts[i], port, NULL,
						     &end.channel, NULL));
		end.prepared = NULL;
		EXPECT_EQ(0, ibchan_request_take(listener, patience_ns(), &request, NULL));
		EXPECT_EQ(0, ibchan_request_reject(request, NULL, 0, NULL));
		end_close(&end);
	}
	ASSERT_EQ(0, ibchan_context_close(context));
}

TEST(a_listener_of_one_device_sends_away_who_comes_over_another)
{
	struct ibchan_listen_params params = { .size = sizeof(params) };
	struct ibchan_listener *listener;
	struct ibchan_context *context;
	struct ibchan_error error;
	struct end here = { 0 }, there = { 0 };
	char port[8];

	ASSERT_EQ(0, ibchan_context_open(&context, NULL));
	ASSERT_EQ(0, end_open(&here, context, 0, NULL));
	ASSERT_EQ(0, end_open(&there, context, 1, NULL));
	params.device = here.device;
	ASSERT_EQ(0, ibchan_listener_create(context, &params, &listener, &error));
	EXPECT_EQ(-EBUSY, ibchan_device_close(here.device));
	port_of(listener, port, sizeof(port));
	ASSERT_EQ(0, ibchan_prepared_connect(there.prepared, "10.77.0.2", port, NULL,
					     &there.channel, NULL));
	there.prepared = NULL;
	EXPECT_EQ(-ECONNRESET, outcome(there.channel, &error));
	ASSERT_EQ(0, ibchan_listener_close(listener));
	end_close(&here);
	end_close(&there);
	ASSERT_EQ(0, ibchan_context_close(context));
}

TEST(a_listener_of_one_device_has_no_address_of_another)
{
	struct ibchan_listen_params params = { .size = sizeof(params), .host = "10.77.0.2" };
	struct ibchan_listener *listener;
	struct ibchan_context *context;
	struct ibchan_error error;
	struct end here = { 0 };

	ASSERT_EQ(0, ibchan_context_open(&context, NULL));
	ASSERT_EQ(0, end_open(&here, context, 0, NULL));
	params.device = here.device;
	EXPECT_EQ(-EXDEV, ibchan_listener_create(context, &params, &listener, &error));
	EXPECT_EQ(IBCHAN_REASON_CM, error.reason.code);
	params.host = "10.77.0.1";
	ASSERT_EQ(0, ibchan_listener_create(context, &params, &listener, &error));
	ASSERT_EQ(0, ibchan_listener_close(listener));
	end_close(&here);
	ASSERT_EQ(0, ibchan_context_close(context));
}

TEST_HARNESS_MAIN
