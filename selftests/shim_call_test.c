// SPDX-License-Identifier: GPL-2.0-only
/*
 * libibchan's elements, its calls for one range, and channels with a queue of their own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shim/end.h"
#include "shim/fake.h"
#include "test.h"
#include "world.h"

#define GIB	0x40000000ULL

TEST(element_that_leaves_its_region_is_told_from_one_that_is_too_long)
{
	char *const base = (char *)0x10000;
	struct ibchan_mr *mr = fake_mr(base, 5 * GIB);
	struct ibchan_submit_sge sge = { 0 };

	ASSERT_EQ(-EOVERFLOW, ibchan_sge_checked(mr, 0, 4 * GIB, &sge));
	ASSERT_EQ(-EOVERFLOW, ibchan_sge_checked(mr, GIB, 4 * GIB, &sge));
	ASSERT_EQ(-EINVAL, ibchan_sge_checked(mr, GIB + 1, 4 * GIB, &sge));
	ASSERT_EQ(-EINVAL, ibchan_sge_checked(mr, 5 * GIB, 1, &sge));
	ASSERT_EQ(-EINVAL, ibchan_sge_checked(mr, 5 * GIB + 1, 0, &sge));
	ASSERT_EQ(-EINVAL, ibchan_sge_checked(mr, -1ULL, 2, &sge));
	ASSERT_EQ(-EINVAL, ibchan_sge_checked(mr, 1, -1ULL, &sge));
	ASSERT_EQ(0, sge.mr);
	ASSERT_EQ(0, ibchan_sge_checked(mr, 100, 4 * GIB - 1, &sge));
	ASSERT_EQ(FAKE_MR, sge.mr);
	ASSERT_EQ(100, sge.offset);
	ASSERT_EQ(4 * GIB - 1, sge.length);
	ASSERT_EQ(0, ibchan_sge_checked(mr, 100, 0, &sge));
}

/* No message has as much, so a post refuses it. */
TEST(element_of_more_bytes_than_it_can_say_has_the_most_that_it_can)
{
	struct ibchan_mr *mr = fake_mr((char *)0x10000, 5 * GIB);
	struct ibchan_submit_sge sge;

	if (sizeof(size_t) <= 4)
		SKIP(return, "no memory is as long");
	sge = ibchan_sge_unchecked(mr, 0, (size_t)(5 * GIB));
	ASSERT_EQ(4 * GIB - 1, sge.length);
	sge = ibchan_sge_plain(NULL, (size_t)(4 * GIB));
	ASSERT_EQ(4 * GIB - 1, sge.length);
}

static int make_wrong_element(void *arg)
{
	const struct rlimit no_core = { 0, 0 };

	setrlimit(RLIMIT_CORE, &no_core);
	ibchan_sge_new(arg, 90, 11);
	return 0;
}

TEST(element_that_is_wrong_stops_a_build_with_assertions_only)
{
	char buffer[100];
	struct ibchan_mr *mr = fake_mr(buffer, sizeof(buffer));
	struct ibchan_submit_sge sge;

	sge = ibchan_sge_new(mr, 90, 10);
	ASSERT_EQ(10, sge.length);
	ASSERT_EQ(-EINTR, in_child(make_wrong_element, mr));
	sge = sge_new_without_debug(mr, 90, 11);
	ASSERT_EQ(11, sge.length);
	ASSERT_EQ(90, sge.offset);
	ASSERT_EQ(100, ibchan_mr_length(mr));
}

FIXTURE(call)
{
	struct calm calm;
	struct ibchan_context *context;
	struct end a, b;
};

FIXTURE_SETUP(call)
{
	ASSERT_EQ(0, calm_begin(&self->calm));
	ASSERT_EQ(0, open_ends(&self->a, &self->b, &self->context));
}

FIXTURE_TEARDOWN(call)
{
	EXPECT_EQ(0, close_ends(&self->a, &self->b, self->context));
	EXPECT_EQ(0, calm_end(&self->calm));
}

TEST_F(call, writes_and_reads_a_range_in_one_line)
{
	struct ibchan_remote_region region, few;
	struct ibchan_cqe done;
	struct ibchan_submit_sge from, into;

	ASSERT_EQ(0, ibchan_mr_remote_region(self->b.mr, &region));
	memset(self->a.memory, 'x', 64);
	from = ibchan_sge_new(self->a.mr, 0, 64);
	into = ibchan_sge_new(self->a.mr, HALF, 64);
	ASSERT_EQ(0, ibchan_post_write(self->a.channel, from, &region, 1, NULL));
	ASSERT_EQ(1, wait_one(self->a.cq, &done));
	EXPECT_EQ(1, done.wr_id);
	EXPECT_EQ(0, done.error);
	ASSERT_EQ(0, ibchan_post_read(self->a.channel, into, &region, 2, NULL));
	ASSERT_EQ(1, wait_one(self->a.cq, &done));
	EXPECT_EQ(2, done.wr_id);
	EXPECT_EQ(0, memcmp(self->a.memory, self->a.memory + HALF, 64));
	/* What the peer's region has no room for is refused, and nothing is posted. */
	ASSERT_EQ(0, ibchan_remote_region_sub(&region, 0, 63, &few));
	EXPECT_EQ(-EINVAL, ibchan_post_write(self->a.channel, from, &few, 3, NULL));
	EXPECT_EQ(-EINVAL, ibchan_post_read(self->a.channel, into, &few, 4, NULL));
	EXPECT_EQ(0, ibchan_cq_poll(self->a.cq, &done, 1));
}

/* A channel of @end's objects to itself, as @builder has it. */
static int loop(struct end *end, const struct ibchan_builder *builder)
{
	return ibchan_builder_prepare(builder, &end->prepared, NULL) ?: end_loop(end);
}

static int handles_of(struct ibchan_context *context)
{
	struct ibchan_context_attr info;
	int rc = ibchan_context_query(context, &info, NULL);

	return rc ? rc : (int)info.handles;
}

TEST_F(call, on_a_channel_with_a_queue_of_its_own_needs_no_other)
{
	int before = handles_of(self->context);
	struct ibchan_cqe done[32];
	struct ibchan_builder builder;
	struct end end = { 0 };
	int i;

	ASSERT_EQ(0, end_objects(&end, self->context, 0));
	ibchan_builder_init(&builder, end.pd, NULL);
	ASSERT_EQ(0, builder.min_cq_entries);
	ASSERT_EQ(0, loop(&end, &builder));
	end.cq = ibchan_channel_send_cq(end.channel);
	EXPECT_EQ(end.cq, ibchan_channel_recv_cq(end.channel));
	/* It holds all that the channel can have in flight, and has no room to spare. */
	for (i = 0; i < IBCHAN_DEFAULT_RECV_WR; i++)
		EXPECT_EQ(0, ibchan_post_receive(end.channel, end.mr, 8 * i, 8, i, NULL));
	for (i = 0; i < IBCHAN_DEFAULT_SEND_WR; i++)
		EXPECT_EQ(0, ibchan_post_send(end.channel, end.mr, HALF, 8, i, NULL));
	EXPECT_EQ(32, ibchan_cq_wait(end.cq, done, 32, 32, patience_ns()));
	end_close(&end);
	ASSERT_EQ(before, handles_of(self->context));
}

TEST_F(call, on_a_channel_with_its_own_queue_for_one_direction_completes_there)
{
	struct ibchan_cqe done;
	struct ibchan_builder builder;
	struct end end = { 0 };

	ASSERT_EQ(0, end_objects(&end, self->context, 0));
	ASSERT_EQ(0, ibchan_cq_create(end.device, 0, 0, &end.own_cq, NULL));
	ibchan_builder_init(&builder, end.pd, end.own_cq);
	builder.recv_cq = NULL;
	ASSERT_EQ(0, loop(&end, &builder));
	EXPECT_EQ(end.own_cq, ibchan_channel_send_cq(end.channel));
	EXPECT_NE(end.own_cq, ibchan_channel_recv_cq(end.channel));
	EXPECT_EQ(0, ibchan_post_receive(end.channel, end.mr, 0, 8, 1, NULL));
	EXPECT_EQ(0, ibchan_post_send(end.channel, end.mr, HALF, 8, 2, NULL));
	EXPECT_EQ(1, wait_one(ibchan_channel_recv_cq(end.channel), &done));
	EXPECT_EQ(1, done.wr_id);
	EXPECT_EQ(1, wait_one(end.own_cq, &done));
	EXPECT_EQ(2, done.wr_id);
	end_close(&end);
}

/* A prepared channel, and one that was refused, take their queue with them. */
TEST_F(call, leaves_no_queue_behind_when_a_channel_does_not_come_to_be)
{
	struct ibchan_channel_info info;
	struct ibchan_builder builder;
	struct ibchan_error error;
	struct ibchan_initial_receive outside;
	struct end end = { 0 };
	int before;

	ASSERT_EQ(0, end_objects(&end, self->context, 0));
	outside = (struct ibchan_initial_receive) { .mr = end.mr, .length = MEMORY + 1 };
	before = handles_of(self->context);
	ibchan_builder_init(&builder, end.pd, NULL);
	builder.params.rnr_retries = 8;
	EXPECT_EQ(-EINVAL, ibchan_builder_prepare(&builder, &end.prepared, &error));
	EXPECT_EQ(IBCHAN_REASON_PARAMETER, error.reason.code);
	EXPECT_EQ(IBCHAN_PARAMETER_RNR_RETRIES, error.reason.element);
	builder.params.rnr_retries = 7;
	builder.min_cq_entries = 0xffffffff;
	EXPECT_EQ(-EINVAL, ibchan_builder_prepare(&builder, &end.prepared, &error));
	EXPECT_EQ(IBCHAN_PARAMETER_CQ_ENTRIES, error.reason.element);
	builder.min_cq_entries = 100;
	builder.receives = &outside;
	builder.num_receives = 1;
	EXPECT_EQ(-EINVAL, ibchan_builder_prepare(&builder, &end.prepared, &error));
	EXPECT_EQ(IBCHAN_REASON_OUT_OF_BOUNDS, error.reason.code);
	builder.num_receives = 0;
	EXPECT_EQ(before, handles_of(self->context));
	EXPECT_EQ(NULL, end.prepared);
	EXPECT_EQ(0, ibchan_builder_prepare(&builder, &end.prepared, &error));
	EXPECT_EQ(before + 2, handles_of(self->context));
	ASSERT_EQ(0, ibchan_channel_query(ibchan_prepared_channel(end.prepared), &info, NULL));
	EXPECT_EQ(7, info.params.rnr_retries);
	EXPECT_EQ(1, info.params.port);
	EXPECT_NE(IBCHAN_AUTO, info.params.gid_index);
	EXPECT_EQ(0, ibchan_prepared_destroy(end.prepared));
	end.prepared = NULL;
	EXPECT_EQ(before, handles_of(self->context));
	end_close(&end);
}

/* All objects are there, so each call is refused for what it asks for. */
TEST_F(call, that_asks_writes_its_error_in_success_and_in_failure)
{
	struct ibchan_device_attr device;
	struct ibchan_context_attr info;
	struct ibchan_gid_attr gid;
	struct ibchan_device *none;
	struct ibchan_error error;

	memset(&error, 0xff, sizeof(error));
	EXPECT_EQ(0, ibchan_context_query(self->context, &info, &error));
	EXPECT_EQ(0, error.code);
	EXPECT_EQ(IBCHAN_ERROR_NONE, error.origin);
	EXPECT_EQ(-ENODEV, ibchan_device_open(self->context, "nowhere", &none, &error));
	EXPECT_EQ(-ENODEV, error.code);
	EXPECT_EQ(IBCHAN_ERROR_CALL, error.origin);
	EXPECT_LT(0, ibchan_device_list(self->context, &device, 1, &error));
	EXPECT_EQ(0, error.code);
	EXPECT_EQ(-EINVAL, ibchan_gid_query(self->context, device.name, 99, 0, &gid, &error));
	EXPECT_EQ(-EINVAL, error.code);
}

/* In the order of the list, before the channel has a peer. */
TEST_F(call, on_a_channel_finds_the_receives_that_its_builder_had)
{
	struct ibchan_channel_info info;
	struct ibchan_cqe done;
	struct ibchan_builder builder;
	struct ibchan_initial_receive receives[2];
	struct end end = { 0 };
	struct ibchan_submit_sge sge;

	ASSERT_EQ(0, end_objects(&end, self->context, 0));
	ibchan_builder_init(&builder, end.pd, NULL);
	receives[0] = (struct ibchan_initial_receive) { end.mr, 0, 8, 70 };
	receives[1] = (struct ibchan_initial_receive) { end.mr, 8, 8, 71 };
	builder.receives = receives;
	builder.num_receives = 2;
	ASSERT_EQ(0, ibchan_builder_prepare(&builder, &end.prepared, NULL));
	ASSERT_EQ(0, ibchan_channel_query(ibchan_prepared_channel(end.prepared), &info, NULL));
	EXPECT_EQ(2, info.recvs_in_flight);
	EXPECT_EQ(0, ibchan_prepared_destroy(end.prepared));
	end.prepared = NULL;
	ASSERT_EQ(0, loop(&end, &builder));
	sge = ibchan_sge_new(end.mr, HALF, 8);
	EXPECT_EQ(0, ibchan_send(end.channel, &sge, 1, IBCHAN_TIMEOUT_NEVER, NULL));
	EXPECT_EQ(1, wait_one(ibchan_channel_recv_cq(end.channel), &done));
	EXPECT_EQ(70, done.wr_id);
	end_close(&end);
}

/* What a program passes that was built with a later library's header. */
struct later_builder {
	struct ibchan_builder now;
	__u64 later;
};

TEST_F(call, takes_a_struct_of_another_time_unless_it_wants_more_than_there_is)
{
	struct later_builder builder;
	struct ibchan_error error;
	struct end end = { 0 };

	ASSERT_EQ(0, end_objects(&end, self->context, 0));
	memset(&builder, 0xff, sizeof(builder));
	ibchan_builder_init_size(&builder.now, sizeof(builder), end.pd, NULL);
	EXPECT_EQ(sizeof(builder), builder.now.size);
	EXPECT_EQ(0, builder.later);
	EXPECT_EQ(0, ibchan_builder_prepare(&builder.now, &end.prepared, &error));
	EXPECT_EQ(0, ibchan_prepared_destroy(end.prepared));
	end.prepared = NULL;
	builder.later = 1;
	EXPECT_EQ(-E2BIG, ibchan_builder_prepare(&builder.now, &end.prepared, &error));
	EXPECT_EQ(-E2BIG, error.code);
	builder.now.size = 0;
	EXPECT_EQ(-EINVAL, ibchan_builder_prepare(&builder.now, &end.prepared, &error));
	EXPECT_EQ(IBCHAN_PARAMETER_SIZE, error.reason.element);
	end_close(&end);
}

TEST_F(call, that_queries_a_channel_tells_its_times_in_nanoseconds)
{
	struct ibchan_channel_info info;
	struct ibchan_builder builder;
	struct end end = { 0 };

	ASSERT_EQ(0, end_objects(&end, self->context, 0));
	ibchan_builder_init(&builder, end.pd, NULL);
	builder.params.rnr_retries = 0;
	builder.params.ack_timeout = 18;
	builder.keepalive_ns = 1000 * MS + 1;
	ASSERT_EQ(0, loop(&end, &builder));
	ASSERT_EQ(0, ibchan_channel_query(end.channel, &info, NULL));
	EXPECT_EQ(4096LL << 18, info.ack_timeout_ns);
	EXPECT_EQ(IBCHAN_DEFAULT_ACK_RETRIES, info.params.ack_retries);
	EXPECT_EQ(2560000, info.rnr_timer_ns);
	EXPECT_EQ(0, info.params.rnr_retries);
	EXPECT_EQ(4 * (4096LL << 18) * (IBCHAN_DEFAULT_ACK_RETRIES + 1), info.worst_case_ns);
	EXPECT_EQ(1001 * MS, info.keepalive_ns);
	EXPECT_LE(1001 * MS, info.notice_ns);
	end_close(&end);
}

TEST_HARNESS_MAIN
