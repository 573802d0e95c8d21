// SPDX-License-Identifier: GPL-2.0-only
/* Very many connections by address at once, and connections that are cut off. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/end.h"
#include "test.h"
#include "thread.h"
#include "world.h"

#define HOST	"10.77.0.1"
#define MANY	1000
#define LIMIT_MS 60000
#define CUTS	100

/* Two channels for each connection, all on one cq. */
struct crowd {
	struct ibchan_context *context;
	struct ibchan_device *device;
	struct ibchan_pd *pd;
	struct ibchan_cq *cq;
	struct ibchan_listener *listener;
	struct ibchan_builder builder;
	char port[8];
	int connected;
	int broken;
};

static int crowd_open(struct crowd *crowd, __u32 backlog)
{
	struct ibchan_listen_params params = {
		.size = sizeof(params), .host = HOST, .backlog = backlog,
	};
	struct sockaddr_storage address;
	char name[IBCHAN_NAME_SIZE];
	int rc;

	memset(crowd, 0, sizeof(*crowd));
	rc = ibchan_context_open(&crowd->context, NULL);
	rc = rc ?: device_name(crowd->context, 0, name);
	rc = rc ?: ibchan_device_open(crowd->context, name, &crowd->device, NULL);
	rc = rc ?: ibchan_pd_alloc(crowd->device, &crowd->pd, NULL);
	rc = rc ?: ibchan_cq_create(crowd->device, 64, 10 * MANY, &crowd->cq, NULL);
	rc = rc ?: ibchan_listener_create(crowd->context, &params, &crowd->listener, NULL);
	if (rc)
		return rc;
	ibchan_listener_address(crowd->listener, &address);
	snprintf(crowd->port, sizeof(crowd->port), "%u",
		 ntohs(((struct sockaddr_in *)&address)->sin_port));
	ibchan_builder_init(&crowd->builder, crowd->pd, crowd->cq);
	crowd->builder.params.max_send_wr = 1;
	crowd->builder.params.max_recv_wr = 1;
	crowd->builder.params.max_send_sge = 1;
	crowd->builder.params.max_recv_sge = 1;
	return 0;
}

static int begin_one(struct crowd *crowd, struct ibchan_channel **channel)
{
	/* All of them have the same minute, each stage of the last ones, too. */
	const struct ibchan_connect_params params = {
		.size = sizeof(params),
		.address_ns = LIMIT_MS * MS, .route_ns = LIMIT_MS * MS, .connect_ns = LIMIT_MS * MS,
	};
	struct ibchan_prepared *prepared;
	int rc = ibchan_builder_prepare(&crowd->builder, &prepared, NULL);

	return rc ?: ibchan_prepared_connect(prepared, HOST, crowd->port, &params, channel, NULL);
}

static int accept_waiting(struct crowd *crowd)
{
	struct ibchan_prepared *prepared;
	struct ibchan_request *request;
	struct ibchan_channel *channel;
	int rc;

	while (!(rc = ibchan_request_take(crowd->listener, 0, &request, NULL))) {
		rc = ibchan_builder_prepare(&crowd->builder, &prepared, NULL);
		rc = rc ?: ibchan_request_accept(request, prepared, NULL, &channel, NULL);
		if (rc)
			return rc;
	}
	return rc == -EAGAIN ? 0 : rc;
}

static int count_events(struct crowd *crowd)
{
	struct ibchan_happening happening;
	int rc;

	while (!(rc = ibchan_next(crowd->context, 0, &happening, NULL))) {
		crowd->connected += happening.kind == IBCHAN_NEXT_CONNECTED;
		crowd->broken += happening.kind == IBCHAN_NEXT_ENDED;
	}
	return rc == -EAGAIN ? 0 : rc;
}

/* Until as many channels are connected, or have failed to. */
static int serve(struct crowd *crowd, int channels)
{
	struct pollfd fds[] = {
		{ .fd = ibchan_listener_fd(crowd->listener), .events = POLLIN },
		{ .fd = ibchan_next_fd(crowd->context), .events = POLLIN },
	};
	int rc = 0;

	while (!rc && crowd->connected + crowd->broken < channels) {
		if (poll(fds, 2, LIMIT_MS) != 2 && !fds[0].revents && !fds[1].revents)
			return -ETIMEDOUT;
		rc = accept_waiting(crowd) ?: count_events(crowd);
	}
	return rc;
}

TEST(a_thousand_connects_at_once_from_one_thread_all_succeed_within_a_minute)
{
	struct ibchan_channel *channel;
	struct crowd crowd;
	__u64 begin, took;
	int i;

	if (slow())
		SKIP(return, "this kernel checks itself: the minute is for others");
	ASSERT_EQ(0, crowd_open(&crowd, MANY));
	begin = now_ms();
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, begin_one(&crowd, &channel));
	EXPECT_EQ(0, serve(&crowd, 2 * MANY));
	took = now_ms() - begin;
	printf("# %d connections in %llu ms, %llu ms each\n", MANY, (unsigned long long)took,
	       (unsigned long long)(took / MANY));
	EXPECT_EQ(2 * MANY, crowd.connected);
	EXPECT_EQ(0, crowd.broken);
	EXPECT_GT(LIMIT_MS, took);
	ASSERT_EQ(0, ibchan_context_close(crowd.context));
}

/* Those who find no room ask again; nobody is sent away. */
TEST(more_requests_than_the_backlog_are_served_later)
{
	struct ibchan_channel *channel;
	struct crowd crowd;
	int i;

	ASSERT_EQ(0, crowd_open(&crowd, 2));
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, begin_one(&crowd, &channel));
	EXPECT_EQ(0, serve(&crowd, 16));
	EXPECT_EQ(16, crowd.connected);
	ASSERT_EQ(0, ibchan_context_close(crowd.context));
}

/* Where a connection is when it is cut off. */
enum cut_point { CUT_ASKING, CUT_WAITING, CUT_TAKEN, CUT_ACCEPTED, CUT_POINTS };

struct cut {
	struct crowd crowd;
	struct ibchan_channel *asking;
	struct ibchan_channel *asked;
	struct ibchan_request *request;
};

static int cut_advance(struct cut *cut, enum cut_point point)
{
	struct ibchan_prepared *prepared;
	int rc = begin_one(&cut->crowd, &cut->asking);

	if (!rc && point >= CUT_TAKEN)
		rc = ibchan_request_take(cut->crowd.listener, patience_ns(), &cut->request, NULL);
	if (!rc && point >= CUT_ACCEPTED) {
		rc = ibchan_builder_prepare(&cut->crowd.builder, &prepared, NULL);
		rc = rc ?: ibchan_request_accept(cut->request, prepared, NULL, &cut->asked, NULL);
		cut->request = NULL;
	}
	return rc;
}

static int cut_off(struct cut *cut, int how)
{
	switch (how) {
	case 0:
		return ibchan_channel_close(cut->asking);
	case 1:
		return ibchan_channel_break(cut->asking);
	case 2:
		return ibchan_listener_close(cut->crowd.listener);
	case 3:
		return cut->request ? ibchan_request_reject(cut->request, "no", 2, NULL) :
				      ibchan_channel_close(cut->asked);
	default:
		return 0;
	}
}

/* The pauses are no waits: each cuts at another moment, which is the point. */
TEST(a_connection_that_is_cut_off_at_any_moment_leaks_nothing)
{
	unsigned int seed = (unsigned int)now_ms();
	struct calm calm;
	struct cut cut;
	int i;

	printf("# seed %u\n", seed);
	srand(seed);
	ASSERT_EQ(0, calm_begin(&calm));
	for (i = 0; i < CUTS; i++) {
		memset(&cut, 0, sizeof(cut));
		ASSERT_EQ(0, crowd_open(&cut.crowd, 4));
		ASSERT_EQ(0, cut_advance(&cut, i % CUT_POINTS)) TH_LOG("round %d", i);
		if (rand() % 4)
			moment(rand() % 3000);
		ASSERT_EQ(0, cut_off(&cut, rand() % 5)) TH_LOG("round %d", i);
		if (rand() % 2)
			moment(rand() % 2000);
		ASSERT_EQ(0, ibchan_context_close(cut.crowd.context));
		ASSERT_EQ(0, counter("channels"));
		ASSERT_EQ(0, counter("contexts"));
	}
	EXPECT_EQ(0, calm_end(&calm));
}

TEST_HARNESS_MAIN
